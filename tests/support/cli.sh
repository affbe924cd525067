# cli.sh: for tests of the program's verbs, to be sourced: a server in a folder of its own, hapax run and judged by its
# output and exit code. Needs `set -u`; leaves the test in $dir, with the definitions of $dir/flows served.
hapax=${HAPAX_BUILD:-$PWD/build}/hapax
root=$PWD
if [ ! -x "$hapax" ]; then
	echo "[  SKIPPED ] the program is not built in this flavour"
	exit 0
fi
dir=$(mktemp -d)
server=
finish() {
	[ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server"; }
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 143' INT TERM
cd "$dir" || exit 1
export LC_ALL=C.UTF-8 # characters are counted
unset HAPAX_DB HAPAX_LISTEN HAPAX_WORKFLOWS HAPAX_CONFIG HAPAX_NODE HAPAX_SERVER HAPAX_KEY HAPAX_WORKSPACE HAPAX_REQUESTER HAPAX_TIMEOUT COLUMNS
mkdir flows
touch out err log

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		tail -n 20 "$dir/out" "$dir/err" "$dir/log"
	fi
}
# Runs hapax and compares its exit code; standard output and error are in out and err.
exits() { # code, arguments…
	local wanted=$1 code
	shift
	"$hapax" "$@" >"$dir/out" 2>"$dir/err"
	code=$?
	[ "$code" -eq "$wanted" ] || { echo "hapax $*: exit code $code, not $wanted" && false; }
}
says() { grep -qF -- "$1" "$dir/out"; }
says_like() { grep -qE -- "$1" "$dir/out"; }
complains() { grep -qF -- "$1" "$dir/err"; }
silent() { [ ! -s "$dir/$1" ]; }
is() { [ "$(cat "$dir/$1")" = "$2" ]; }
lines() { [ "$(wc -l <"$dir/out")" -eq "$1" ]; }
await() { # command…, for at most 60 s
	local end=$((SECONDS + 60))
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.02
	done
}
serve() { # arguments…
	"$hapax" serve --db sqlite::memory: --listen 127.0.0.1:0 --workflows flows "$@" >ready 2>log &
	server=$!
	await test -s ready
	HAPAX_SERVER=$(sed 's/^ready //' ready)
	export HAPAX_SERVER
}

# Is each line of a list in the manual, as the manual writes it?
in_manual() { # page
	while read -r line; do
		grep -qF -- "${line//-/\\-}" "$root/man/$1" || { echo "not in man/$1: $line" && return 1; }
	done
}
# The verbs, options and exit codes of a noun's help are in its manual.
help_is_in_manual() { # noun, page
	"$hapax" "$1" --help | sed -n "s/^usage: \(hapax $1 [a-z]*\).*/\1/p" >verbs && test -s verbs && in_manual "$2" <verbs &&
		"$hapax" "$1" --help | grep -oE '^  --[a-z-]+' | tr -d ' ' | sort -u >options && in_manual "$2" <options &&
		"$hapax" "$1" --help | sed -n 's/^  \([0-9][0-9]*\)  .*/.B \1/p' | sort -u >codes && in_manual "$2" <codes
}
