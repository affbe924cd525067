#!/usr/bin/env bash
# Both clients on a real engine: the API, and functions that are killed at each of their calls.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${HAPAX_BUILD:-$here/../../build}
if [ ! -x "$build/hapax" ]; then
	echo "[  SKIPPED ] the program is not built in this flavour"
	exit 0
fi
work=$(mktemp -d) && cd "$work" || exit 1
server=
finish() {
	[ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 143' TERM INT
unset HAPAX_DB HAPAX_WORKSPACE HAPAX_REQUESTER HAPAX_TIMEOUT HAPAX_CONFIG HAPAX_WORKFLOWS HAPAX_NODE HAPAX_LISTEN HAPAX_KEY
export PYTHONPATH=$here/../../clients/python PYTHONDONTWRITEBYTECODE=1 HAPAX=$build/hapax
mkdir node_modules flows && ln -s "$here/../../clients/js" node_modules/hapax && cp "$here"/*.mjs . || exit 1
cat >flows/pipe.json <<'.'
{ "workflow": "pipe", "kind": "run", "actions": {},
  "steps": [ { "name": "go", "type": "external_event", "event": "go", "timeout": "1h", "save_as": "go" } ], "output": "{x: .state.go.x}" }
.
cat >flows/door.json <<'.'
{ "workflow": "door", "kind": "entity", "status_types": ["shut", "open"], "initial_status": "shut",
  "steps": [ { "step_id": 1, "step_key": "open", "status": "shut", "successful_state": "open" } ] }
.
cat >flows/pack.json <<'.'
{ "workflow": "pack", "kind": "batch", "actions": { "pack": { "kind": "noop" } }, "item_action": "pack" }
.
"$build/hapax" serve --db sqlite:hapax.db --workflows flows --listen 127.0.0.1:0 >ready 2>log &
server=$!
for _ in {1..600}; do
	! grep -qs '^ready ' ready || break
	sleep 0.1
done
HAPAX_SERVER=$(sed -n 's/^ready //p' ready)
export HAPAX_SERVER
[ -n "$HAPAX_SERVER" ] || { echo "not ok the_engine_is_ready" && cat log && exit 1; }
node api.mjs || echo "not ok js: the client of the API"
python3 "$here/api.py" || echo "not ok python: the client of the API"
if [ "$(curl -s -o out -w '%{http_code}' "$HAPAX_SERVER/api/v1/functions/claim" -d '{}')" = 404 ]; then
	echo "[  SKIPPED ] this engine knows no functions"
	exit 0
fi
timeout 120 node crash.mjs || echo "not ok js: hapax.test()"
timeout 120 python3 "$here/crash.py" || echo "not ok python: hapax.test()"
