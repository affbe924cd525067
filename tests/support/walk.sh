# walk.sh: for tests that walk through the README of an example, to be sourced. Every command of the page is run in order, every
# answer compared with the one that is printed there:
#
#   ```terminal   a program that is to run in a terminal of its own: started, and left running; an engine until it is ready
#   ```sh         is run once, or with "again" until its answer comes, at most 30 s
#   ```text       behind it is the answer (none: nothing is printed): … stands for anything, alone on a line for any number of lines, and any number of
#                 blanks is one
#
# The variable `id` is kept from block to block; what is in $walk_env is read before each.
walk_env=/dev/null
walk_terminals=

await() { # seconds, command…
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

# NNN.sh or NNN.terminal, with NNN.again and NNN.text
walk_split() { # page
	awk '
	/^```terminal/ { n++; file = sprintf("%03d.terminal", n); next }
	/^```sh/       { n++; file = sprintf("%03d.sh", n); if (/again/) print "" >sprintf("%03d.again", n); next }
	/^```text/     { file = sprintf("%03d.text", n); next }
	/^```/         { file = ""; next }
	file != ""     { print >file }' "$1"
}

# Does out, as one line, fit a .text?
walk_fits() { # text
	awk '
	function plain(s) { gsub(/[ \t\r]+/, " ", s); sub(/ $/, "", s); return s }
	NR == FNR && $0 == "…" { want = want "(\n|[^\n]*\n)*"; next }
	NR == FNR {
		line = plain($0)
		gsub(/[][\\.^$*+?(){}|]/, "\\\\&", line)
		gsub(/…/, "[^\n]*", line)
		want = want line "\n"
		next
	}
	{ got = got plain($0) "\n" }
	END { exit got !~ "^" want "$" }' "$1" out
}

walk_runs_and_fits() { # NNN
	touch "$1.text"
	bash -c ". $walk_env; [ ! -e id ] || read -r id <id; . ./$1.sh; [ -z \"\${id:-}\" ] || echo \"\$id\" >id" >out 2>&1
	walk_fits "$1.text"
}

# Needs result(), which judges the last command.
walk() { # how many blocks there are at least
	local n=0 script first
	ls [0-9]*.sh [0-9]*.terminal 2>/dev/null | sort >blocks
	while read -r script <&3; do
		n=${script%.*}
		first=$(grep -m 1 -v '^\. ' "$script")
		if [ "${script##*.}" = terminal ]; then
			bash -c ". $walk_env; exec $(cat "$script")" >"$n.log" 2>&1 &
			walk_terminals="$walk_terminals $!"
			[[ $first != *"hapax serve"* ]] || await 30 grep -qs '^ready ' "$n.log"
			continue
		elif [ -e "$n.again" ]; then await 30 walk_runs_and_fits "$n"; else walk_runs_and_fits "$n"; fi
		result "walk_$n ${first:0:60}"
	done 3<blocks
	[ "$((10#$n))" -ge "$1" ]
	result the_walk_has_its_blocks
}
