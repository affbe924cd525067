#!/usr/bin/env bash
# examples/payments: every command of its README is run in order, every answer compared with the one that is printed
# there. In the README a block ```sh is run once, ```sh again until its answer comes (at most 30 s), and the block ```text
# behind it is the answer, in which … stands for anything, alone on a line for any number of lines, and any number of
# blanks is one.
set -u

build=${HAPAX_BUILD:-$PWD/build}
root=$PWD
if [ ! -x "$build/hapax" ]; then
	echo "[  SKIPPED ] the program is not built in this flavour"
	exit 0
fi
for tool in python3 curl; do
	command -v $tool >/dev/null || { echo "not ok $tool is needed for the example" && exit 1; }
done
dir=$(mktemp -d)
runner=
finish() {
	[ -z "$runner" ] || { kill "$runner" 2>/dev/null && wait "$runner"; }
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 143' TERM INT

# The example in a tree of its own.
mkdir -p "$dir/build" "$dir/examples"
ln -s "$build/hapax" "$dir/build/hapax"
cp -r "$root/examples/payments" "$dir/examples/"
cd "$dir" || exit 1
unset GATE HAPAX_GATE_UPSTREAM HAPAX_GATE_LISTEN HAPAX_GATE_ADMIN HAPAX_GATE_STORE HAPAX_GATE_CONFIG HAPAX_TIMEOUT

await() { # seconds, command…
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		[ ! -e out ] || cat out
		tail -50 run.out build/payments/gate.log
	fi
}

# --- the walk

# NNN.sh, NNN.again, NNN.text
awk '
/^```sh/   { n++; file = sprintf("%03d.sh", n); if (/again/) print "" >sprintf("%03d.again", n); next }
/^```text/ { file = sprintf("%03d.text", n); next }
/^```/     { file = ""; next }
file != "" { print >file }' examples/payments/README.md

# Does out, as one line, fit a .text?
fits() { # text
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
runs_and_fits() { # NNN
	bash -c ". build/payments/env; . ./$1.sh" >out 2>&1
	fits "$1.text"
}

examples/payments/run.sh >run.out 2>&1 &
runner=$!
await 30 grep -q 'The whole walk is in' run.out
result it_starts
for script in [0-9]*.sh; do
	n=${script%.sh}
	first=$(grep -m 1 -v '^\. ' "$script")
	if [ -e "$n.again" ]; then await 30 runs_and_fits "$n"; else runs_and_fits "$n"; fi
	result "walk_$n ${first:0:60}"
done
[ "${n#0}" -ge 11 ]
result the_walk_has_its_blocks

# --- what the service was made to pay: nothing but what the page says

tail -n +2 build/payments/paid | grep -v 'the caller is gone' >out
diff - out >&2 <<'END'
/payments: paid 500, payment 1
/payments: paid 600, payment 2
/payments: paid 700, payment 3
/payments: paid 700, payment 4
/transfers: paid 800, payment 5
/transfers: paid 800, payment 6
END
result six_payments
[ "$(grep -c 'the gate died of signal 9; starting it again' run.out)" = 2 ]
result the_gate_is_started_again

# --- the banner's command is that of the walk; Ctrl-C ends everything

grep -qF "  $(grep -m 1 -o 'curl.*' 001.sh | sed 's/-si/-i/')" run.out
result the_banner
gate=$(cat build/payments/gate.pid)
kill "$runner" && wait "$runner"
result it_stops_well
runner=
! kill -0 "$gate" 2>/dev/null && ! bash -c '. build/payments/env; curl -s $GATE/'
result nothing_is_left
exit 0
