#!/bin/sh
# run.sh: the payments example, alive. Starts a service that pays and `hapax gate` in front of it, on free ports and a
# fresh store; Ctrl-C stops both. A gate that is killed is started again on what its store has, as any supervisor would
# do it.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=examples/payments
demo=build/payments
service=
gate=
shown=

[ -x build/hapax ] || { echo "run.sh: there is no build/hapax yet; make builds it" >&2; exit 1; }
command -v python3 >/dev/null || { echo "run.sh: the service wants python3" >&2; exit 1; }

stop() {
	trap '' INT TERM HUP
	for pid in $gate $service $shown; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
}
trap stop EXIT
trap 'exit 0' INT TERM HUP

# Waits until a program has said that it is ready; if it dies before, so do we.
await() { # pid file
	until grep -q '^ready ' "$2" 2>/dev/null; do
		kill -0 "$1" 2>/dev/null || { wait "$1"; exit 1; }
		sleep 0.05
	done
}

start_gate() {
	rm -f "$demo/ready"
	build/hapax gate --upstream "$upstream" --listen "127.0.0.1:$port" --admin "127.0.0.1:$admin_port" \
		--store "sqlite:$demo/gate.db" --config $here/gate.json >"$demo/ready" 2>>"$demo/gate.log" &
	gate=$!
	echo "$gate" >"$demo/gate.pid"
	await "$gate" "$demo/ready"
}

rm -rf "$demo"
mkdir -p "$demo"
python3 $here/payments.py >"$demo/paid" &
service=$!
await "$service" "$demo/paid"
upstream=$(sed -n 's/^ready //p' "$demo/paid")

# The gate keeps its ports when it is started again, so they are chosen here.
read -r port admin_port <<END
$(python3 -c 'import socket; s = [socket.create_server(("127.0.0.1", 0)) for _ in "12"]; print(*(x.getsockname()[1] for x in s))')
END
start_gate
cat >"$demo/env" <<END
export GATE=http://127.0.0.1:$port HAPAX_GATE_ADMIN=127.0.0.1:$admin_port
END
cat <<END
The service is at $upstream, and the gate in front of it at http://127.0.0.1:$port. The gate's store, log and pid
are in $demo/. Ctrl-C stops both. In another terminal, twice:

  . $demo/env
  curl -i \$GATE/payments -H 'Idempotency-Key: "order-1"' -H 'Content-Type: application/json' -d '{"amount": 500}'

The whole walk is in $here/README.md. What the service is made to pay is printed below.

END
tail -n +2 -f "$demo/paid" &
shown=$!

while :; do
	wait "$gate" 2>/dev/null
	code=$?
	[ "$code" -gt 128 ] || exit "$code"
	echo "run.sh: the gate died of signal $((code - 128)); starting it again"
	start_gate
done
