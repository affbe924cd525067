#!/bin/sh
# check-includes.sh [ROOT] : dependencies in src/ point one way, and this says where they do not.
#
#     base <- db <- task <- { flow, gate, act } <- engine <- api <- cli         model and wire use only base
#     base <- wire <- { act, serve } <- { api, proxy } <- cli
#     flow <- sim <- trial <- cli: in the program and in tests, never in the library
#
# "uses" below lists, for each folder, every folder that its files may name in #include "folder/…". hapax.h is open
# to all. Each violation is printed as file:line; a folder that is not in the list is a violation too, so that a new
# one is placed knowingly.
set -eu
export LC_ALL=C
cd "${1:-.}"

if [ -d src ]; then
	files=$(find src -name '*.[ch]' | sort)
else
	files=
fi
# shellcheck disable=SC2086  # names of sources hold no blanks
[ -z "$files" ] || exec awk '
function allow(folder, list,   n, i, names) {
	known[folder] = 1
	n = split(folder " " list, names, " ")
	for (i = 1; i <= n; i++)
		uses[folder, names[i]] = 1
}
function violation(text) {
	printf "%s:%d: %s\n", FILENAME, FNR, text
	bad = 1
}
BEGIN {
	allow("base",  "")
	allow("model", "base")
	allow("db",    "base")
	allow("task",  "base db")
	allow("flow",  "base db task model")
	allow("gate",  "base db task model")
	allow("wire",  "base")
	allow("act",   "base db task model wire")
	allow("serve", "base model wire")
	allow("sim",   "base db task model flow")
	allow("trial", "base db task model flow sim")
	allow("engine", "base db task model flow gate act")
	allow("api",   "base db task model flow gate act engine wire serve")
	allow("proxy", "base db task model gate wire serve")
	allow("cli",   "base db task model flow gate act engine wire serve api proxy sim trial")
}
FNR == 1 {
	split(FILENAME, part, "/")
	from = part[2]
	if (!(from in known))
		violation("src/" from " has no place in scripts/check-includes.sh")
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
	target = $0
	sub(/^[^"]*"/, "", target)
	sub(/".*$/, "", target)
	if (target == "hapax.h")
		next
	if (target ~ /^\.\.?\// || target !~ /\//) {
		violation("#include \"" target "\": write the path from src/, as in \"" from "/" target "\"")
		next
	}
	to = target
	sub(/\/.*$/, "", to)
	if ((from in known) && !((from, to) in uses))
		violation(from " may not use " to " (#include \"" target "\")")
}
END { exit bad }
' $files
