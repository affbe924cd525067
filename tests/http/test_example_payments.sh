#!/usr/bin/env bash
# examples/payments: its README, walked through (tests/support/walk.sh), and what the outside world saw meanwhile.
set -u
. tests/support/walk.sh

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

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		[ ! -e out ] || cat out
		tail -50 run.out build/payments/gate.log
	fi
}

# --- the walk

walk_split examples/payments/README.md
walk_env=build/payments/env
examples/payments/run.sh >run.out 2>&1 &
runner=$!
await 30 grep -q 'The whole walk is in' run.out
result it_starts
walk 11

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
