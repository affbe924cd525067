#!/bin/sh
# run.sh: the billing example, alive. Starts the engine on an embedded store, fresh each time, and the small action
# server beside it; Ctrl-C stops both. An engine that is killed is started again on what its store has, as any
# supervisor would do it.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=examples/billing
demo=build/demo
actions=
server=

[ -x build/hapax ] || { echo "run.sh: there is no build/hapax yet; make builds it" >&2; exit 1; }

stop() {
	trap '' INT TERM HUP
	for pid in $server $actions; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
}
trap stop EXIT
trap 'exit 0' INT TERM HUP

# Waits until a program has written to its file that it is ready; if it dies before, so do we.
await() { # pid file
	until [ -s "$2" ]; do
		kill -0 "$1" 2>/dev/null || { wait "$1"; exit 1; }
		sleep 0.05
	done
}

start_server() {
	rm -f "$demo/ready"
	build/hapax serve --db "sqlite:$demo/hapax.db" --workflows $here/workflows --config $here/config.json \
		>"$demo/ready" &
	server=$!
	echo "$server" >"$demo/hapax.pid"
	await "$server" "$demo/ready"
	cat "$demo/ready"
}

rm -rf "$demo"
mkdir -p "$demo"
if command -v python3 >/dev/null; then
	python3 $here/tables.py create "$demo/hapax.db" || exit 1
	python3 $here/actions.py 9000 "$demo/actions.ready" &
	actions=$!
	await "$actions" "$demo/actions.ready"
else
	echo "run.sh: python3 is missing, so there are no actions and no tables: approve, close and the rest will fail"
fi
start_server

url=$(sed 's/^ready //' "$demo/ready")
[ "$url" = http://127.0.0.1:7411 ] || echo "in the other terminal first: export HAPAX_SERVER=$url"
cat <<END

The engine is running; its store and its pid are in $demo/. Ctrl-C stops it. In another terminal:

  build/hapax entity create invoice inv-1 && build/hapax entity fire invoice inv-1 approve --input '{"amount": 12000}'
  for i in 1 2; do build/hapax entity fire invoice inv-1 close --requester admin & done; wait
  build/hapax entity history invoice inv-1; build/hapax job list

The whole walk is in $here/README.md. What the action server is asked to do is printed below.

END

while :; do
	wait "$server" 2>/dev/null
	code=$?
	[ "$code" -gt 128 ] || exit "$code"
	echo "run.sh: the engine died of signal $((code - 128)); starting it again"
	start_server
done
