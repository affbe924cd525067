#!/bin/sh
# run.sh: the demo, alive; `make run` builds it and starts it. The engine, on an embedded store that is fresh each time,
# serves the workflows of three examples (billing, order, render); their programs, the outside world, run beside it.
# Ctrl-C stops everything. An engine that is killed is started again on what its store has, as any supervisor would do it.
set -u
cd "$(dirname "$0")/../.." || exit 1
demo=build/demo
world=
server=

fail() {
	echo "run.sh: $1" >&2
	exit 1
}
[ -x build/hapax ] || fail "there is no build/hapax yet; make builds it"
command -v python3 >/dev/null || fail "the demo needs python3"
unset HAPAX_KEY HAPAX_WORKSPACE HAPAX_REQUESTER

stop() {
	trap '' INT TERM HUP
	for pid in $world $server; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
}
trap stop EXIT
trap 'exit 0' INT TERM HUP

# Waits until a program has written to its file that it is ready; if it ends before, its last words are in a file, too.
await() { # pid, file, file of its last words
	until grep -qs '^ready' "$2"; do
		if ! kill -0 "$1" 2>/dev/null; then
			tail -n 1 "$3" >&2
			fail "that is why the demo does not start"
		fi
		sleep 0.05
	done
}

start_world() { # name, command…
	out=$demo/$1.log
	shift
	"$@" >"$out" 2>&1 &
	world="$world $!"
}

start_server() {
	rm -f "$demo/ready"
	build/hapax serve --db "sqlite:$demo/hapax.db" --workflows "$demo/workflows" --config examples/billing/config.json \
		>"$demo/ready" 2>>"$demo/hapax.log" &
	server=$!
	echo "$server" >"$demo/hapax.pid"
	await "$server" "$demo/ready" "$demo/hapax.log"
}

# --- the store, the outside world, the engine

exec 9>build/demo.lock
flock -n 9 || fail "the demo is running already, in another terminal"
rm -rf "$demo"
mkdir -p "$demo/workflows" "$demo/ledger"
for file in billing/workflows/invoice.json order/order.json render/render.json; do
	ln -s "../../../examples/$file" "$demo/workflows/"
done
seq 40 | sed 's/.*/{"input": {"frame": &}, "cost": 5}/' >"$demo/frames.json"
python3 examples/billing/tables.py create "$demo/hapax.db" || exit 1
start_world actions python3 examples/billing/actions.py 9000
await "$!" "$demo/actions.log" "$demo/actions.log"
start_world store python3 examples/render/store.py 9001
await "$!" "$demo/store.log" "$demo/store.log"
start_server
url=$(sed 's/^ready //' "$demo/ready")
export HAPAX_SERVER="$url"
start_world worker python3 examples/order/worker.py "$demo/ledger"

# --- an invoice that is approved, and somebody with money

if ! {
	build/hapax entity create invoice inv-100 --data '{"customer": "Acme"}' &&
		build/hapax entity fire invoice inv-100 approve --input '{"amount": 12000}' &&
		build/hapax account create alice --balance 1000
} >"$demo/set-up" 2>&1; then
	cat "$demo/set-up" >&2
	fail "that is why the demo does not start"
fi

elsewhere=
[ "$url" = http://127.0.0.1:7411 ] || elsewhere="
  export HAPAX_SERVER=$url
"
cat <<END
Hapax is running at $url. Ctrl-C stops it. Where to look:

  the dashboard $url/
  the API       $url/api/v1/openapi.json, in words docs/api.md
  the metrics   $url/metrics
  workflows     examples/billing/workflows/invoice.json  examples/order/order.json  examples/render/render.json
  its data      $demo/: the store hapax.db, the log hapax.log, the process hapax.pid

Three commands to paste into another terminal, in this folder, and once more if you like:
$elsewhere
1. Close an invoice twice at once: it is closed once, and the other one is told.

  (for i in 1 2; do build/hapax entity fire invoice inv-100 close --requester admin & done; wait)

2. Start a run; its payment is reported twice, as payments are, and counts once.

  id=\$(build/hapax run start order --key order-1 --input '{"sku": "lamp", "total": 90}' | grep -o 'run_\w*'); for i in 1 2; do build/hapax run signal \$id payment --id pay-1 --data '{"amount": 90}'; done; build/hapax run show \$id --wait 10s

3. Render a film of 40 frames, 5 each, cancel it after a second, and see the refund.

  id=\$(build/hapax batch start render --account alice --items build/demo/frames.json | grep -o 'batch_\w*'); sleep 1; build/hapax account show alice; build/hapax batch cancel \$id --wait; build/hapax account show alice

What the outside world is asked to do is printed here:

END
tail -q -n 0 -f "$demo/actions.log" "$demo/store.log" "$demo/worker.log" &
world="$! $world"

while :; do
	wait "$server" 2>/dev/null
	code=$?
	[ "$code" -gt 128 ] || exit "$code"
	echo "run.sh: the engine died of signal $((code - 128)); starting it again"
	start_server
done
