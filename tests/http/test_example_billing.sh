#!/usr/bin/env bash
# examples/billing: its README, walked through (tests/support/walk.sh), and what the outside world saw meanwhile.
set -u
. tests/support/walk.sh

build=${HAPAX_BUILD:-$PWD/build}
root=$PWD
if [ ! -x "$build/hapax" ]; then
	echo "[  SKIPPED ] the program is not built in this flavour"
	exit 0
fi
if ! command -v python3 >/dev/null; then
	echo "not ok python3 is needed for the example's action server"
	exit 1
fi
dir=$(mktemp -d)
runner=
finish() {
	[ -z "$runner" ] || { kill "$runner" 2>/dev/null && wait "$runner"; }
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 143' TERM INT

# The example in a tree of its own, on free ports.
mkdir -p "$dir/build" "$dir/examples"
ln -s "$build/hapax" "$dir/build/hapax"
cp -r "$root/examples/billing" "$dir/examples/"
cd "$dir" || exit 1
read -r port actions_port < <(python3 -c '
import socket
s = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(x.getsockname()[1] for x in s))')
sed -i "s/\b7411\b/$port/g; s/\b9000\b/$actions_port/g" examples/billing/{README.md,run.sh,workflows/invoice.json}
unset HAPAX_DB HAPAX_WORKSPACE HAPAX_REQUESTER HAPAX_TIMEOUT HAPAX_CONFIG HAPAX_WORKFLOWS HAPAX_NODE
export HAPAX_LISTEN=127.0.0.1:$port HAPAX_SERVER=http://127.0.0.1:$port

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		[ ! -e out ] || cat out
		tail -50 run.out
	fi
}

# --- the walk

walk_split examples/billing/README.md
examples/billing/run.sh >run.out 2>&1 &
runner=$!
await 30 grep -q 'The engine is running' run.out
result it_starts
walk 10

# --- what the outside world saw

grep -qE '^close inv-1: calls 1, effects 1, key ent_' run.out && grep -qE '^mail inv-1: calls 1, effects 1, key ' run.out
result one_effect_for_two_callers
# The kill may have come before the call was made; then there was one call. Never two effects, never two keys.
last=$(grep '^close inv-2: ' run.out | tail -1)
[[ $last =~ calls\ [12],\ effects\ 1, ]] && [ "$(grep '^close inv-2: ' run.out | sed 's/.*key //' | sort -u | wc -l)" = 1 ]
result one_effect_and_one_key_through_a_kill
grep -q 'the engine died of signal 9; starting it again' run.out
result the_engine_is_started_again

# --- the banner's commands are those of the walk; Ctrl-C ends everything

grep -q '^  build/hapax entity history invoice inv-1; build/hapax job list' run.out &&
	grep -q 'for i in 1 2; do build/hapax entity fire invoice inv-1 close --requester admin & done; wait' run.out
result the_banner
server=$(cat build/demo/hapax.pid)
kill "$runner" && wait "$runner"
result it_stops_well
runner=
! kill -0 "$server" 2>/dev/null && ! build/hapax job list >out 2>&1 && grep -q 'is `hapax serve` running?' out
result nothing_is_left
"$build/hapax" check --strict "$root/examples/billing/workflows" --config "$root/examples/billing/config.json" >out 2>&1
result the_definition_is_clean
exit 0
