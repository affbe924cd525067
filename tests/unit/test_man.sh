#!/usr/bin/env bash
# The manual: every page is clean, can be found from hapax(1), and names no page that is not there; hapax(5) and docs/definitions.md have every
# field that the parsers know, docs/gate.md every one of the gate's; the examples of hapax(5) are valid.
set -u

hapax=${HAPAX_BUILD:-$PWD/build}/hapax
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C.UTF-8
. tests/support/notes.sh

# ---- the pages ----

for page in man/*.[1-8]; do
	groff -ww -man -Tutf8 "$page" >"$dir/page" 2>"$dir/warnings" || note "$page cannot be formatted"
	[ ! -s "$dir/warnings" ] || note "$(cat "$dir/warnings")"
	[ -s "$dir/page" ] || note "$page is empty"
	grep -qx '.SH NAME' "$page" && grep -qx '.SH SEE ALSO' "$page" || note "$page has no NAME or no SEE ALSO"
	grep -qx '\.nh' "$page" || note "$page breaks words such as hapax-gate over two lines"
done
result every_page_is_clean

for page in man/*.[1-8]; do
	while read -r name; do
		[ -e "man/$name" ] || note "$page names a page that is not there: $name"
	done < <(tr -d '\\' <"$page" | grep -oE '(^\.[A-Z]+ |[ (])hapax[a-z-]* \([1-8]\)' | sed 's/.*\(hapax[a-z-]*\) (\(.\))/\1.\2/')
done
result every_page_that_is_named_exists

for page in man/*.[1-8]; do
	name=${page#man/} section=${page##*.}
	name=${name%.*}
	[ "$page" = man/hapax.1 ] || sed -n '/^.SH SEE ALSO/,$p' man/hapax.1 | tr -d '\\' | grep -qx ".BR $name ($section),\?" ||
		note "SEE ALSO of hapax(1) has no $name($section)"
done
result hapax_1_leads_to_every_page

# ---- the fields ----

# The names in the parsers' tables: initialisers of known[] and fields[], to their ';'.
names_in() { # file…
	awk '/(known|fields)\[[^]]*\] = \{/ { on = 1 }
	     on { s = $0; while (match(s, /"[a-z_0-9]+"/)) { print substr(s, RSTART + 1, RLENGTH - 2); s = substr(s, RSTART + RLENGTH) } }
	     /;/ { on = 0 }' "$@"
}
{ names_in src/model/*.c && sed -n 's/^#define CLAIM_OTHER_NAME "\(.*\)"/\1/p' src/model/step.c; } | sort -u >"$dir/fields"
[ "$(wc -l <"$dir/fields")" -gt 70 ] || note "hardly any field was found in src/model"

# As words that are set in bold.
grep -E '^\.B[RI]? |\\fB' man/hapax.5 | sed 's/\\(dq/ /g; s/\\f.//g' | tr -d '\\' | grep -oE '[a-z_0-9]+' | sort -u >"$dir/man"
bad=$bad$(comm -23 "$dir/fields" "$dir/man" | sed 's/^/not in man\/hapax.5: /')
result every_field_is_in_the_manual

names_in src/model/config.c | sort -u >"$dir/config"
comm -23 "$dir/fields" "$dir/config" >"$dir/definitions"
grep -oE '`[^`]*`|"[a-z_0-9]+":?' docs/definitions.md | grep -oE '[a-z_0-9]+' | sort -u >"$dir/page"
bad=$(comm -23 "$dir/definitions" "$dir/page" | sed 's/^/not in docs\/definitions.md: /')
result every_field_of_definitions_is_in_their_page

names_in src/gate/policy.c | sort -u >"$dir/policy"
[ "$(wc -l <"$dir/policy")" -gt 20 ] || note "hardly any field was found in src/gate/policy.c"
grep -oE '`[^`]*`' docs/gate.md | grep -oE '[a-z_0-9]+' | sort -u >"$dir/page"
bad=$bad$(comm -23 "$dir/policy" "$dir/page" | sed 's/^/not in docs\/gate.md: /')
result every_field_of_the_gate_is_in_its_page

# A fuzzer that does not know a field reads nothing of it.
bad=$(for of in definition:fields gate_policy:policy; do
	grep -oE '"\\"[a-z_0-9]+\\""' "tests/fuzz/${of%:*}.dict" | tr -d '"\\' | sort -u | comm -23 "$dir/${of#*:}" - |
		sed "s/^/not in tests\/fuzz\/${of%:*}.dict: /"
done)
result every_field_is_in_the_dictionaries_of_the_fuzzers

# ---- the examples ----

if [ ! -x "$hapax" ]; then
	echo "[  SKIPPED ] the program is not built in this flavour"
	exit 0
fi
mkdir "$dir/flows"
awk -v dir="$dir" '
	/^\.nf/ { n++; text = ""; on = 1; next }
	/^\.fi/ { on = 0; file = dir (text ~ /"workflow":/ ? "/flows/" n ".json" : "/config.json"); printf "%s", text >file; next }
	on      { gsub(/\\-/, "-"); text = text $0 "\n" }' man/hapax.5
[ "$(ls "$dir/flows" | wc -l)" -eq 4 ] || note "hapax(5) has no example for each kind"
"$hapax" check --strict "$dir/flows" --config "$dir/config.json" >"$dir/out" 2>&1 || note "$(cat "$dir/out")"
result the_examples_are_valid

# ---- the tables of verbs: what a page says of a command is what its row says ----

# The synopsis as text, a line for each command.
synopsis() { # page
	sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p' "$1" | sed 's/\\-/-/g; s/\\&//g' | awk '
	function flush() { if (line != "") print line; line = "" }
	/^\.(br|PP|SH)/ { flush(); next }
	{ text = $0
	  glued = text ~ /^\.[BRI][BRI] /
	  sub(/^\.[BRI]+ /, "", text)
	  gsub(/"/, "", text)
	  if (glued)
		  gsub(/ /, "", text)
	  line = line (line == "" ? "" : " ") text }
	END { flush() }' | grep '^hapax '
}
client='\[--server URL\] \[--key-file FILE\] \[--workspace NAME\] \[--requester NAME\] \[--timeout DURATION\] \[--json\]'
usages() { # noun
	"$hapax" "$1" --help | awk '/^usage: / { line = $0; on = 1; next }
		on && /^ / { sub(/^ +/, ""); line = line " " $0; next }
		on { print line; on = 0 }' | sed "s/^usage: //; s/$client/[CLIENT]/"
}
# These say more than a usage can, or have a sign that a manual does not: two ways to call it, one of two options, a field of a file instead.
says_more='^hapax (batch start|explore|test|gate|gate resolve|graph) (WORKFLOW|ID|KEY|FILE|PATH|\[?--upstream)'
for page in man/hapax-*.1; do
	noun=${page#man/hapax-} noun=${noun%.1}
	synopsis "$page" | grep -vE "$says_more" | sort >"$dir/page"
	usages "$noun" | grep -vE "$says_more" | sort >"$dir/usage"
	[ "$noun" = graph ] || [ "$noun" = explore ] || [ "$noun" = test ] || [ -s "$dir/usage" ] || note "hapax $noun --help has no usage"
	comm -23 "$dir/usage" "$dir/page" >"$dir/out"
	[ ! -s "$dir/out" ] || note "not in $page: $(cat "$dir/out")"
	comm -13 "$dir/usage" "$dir/page" | grep "^hapax $noun " >"$dir/out" && note "only in $page: $(cat "$dir/out")"
done
result every_synopsis_is_the_usage

# And no page calls a value by another name than its commands do, or has an option that no command has.
"$hapax" completion bash | grep -oE -- '--[a-z]+[a-z-]*' | sort -u >"$dir/all"
for page in man/hapax-*.1; do
	noun=${page#man/hapax-} noun=${noun%.1}
	"$hapax" "$noun" --help | sed -nE 's/^  (--[a-z-]+) \[?([A-Z:]+).*/\1 \2/p' | sort -u >"$dir/options"
	tr -d '\\' <"$page" | sed -nE 's/^\.BI (--[a-z-]+) " \[?([A-Z:]+).*/\1 \2/p' | sort -u | comm -23 - "$dir/options" >"$dir/out"
	tr -d '\\' <"$page" | grep -oE -- '--[a-z]+[a-z-]*' | sort -u | comm -23 - "$dir/all" >>"$dir/out"
	[ ! -s "$dir/out" ] || note "$page has what hapax $noun does not have: $(cat "$dir/out")"
done
result no_page_has_an_option_that_is_gone
exit 0
