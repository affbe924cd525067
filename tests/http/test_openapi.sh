#!/usr/bin/env bash
# GET /api/v1/openapi.json against a real server: the document, all that it says, and the page that is made out of it.
set -u
. tests/support/cli.sh

cat >flows/doc.json <<'JSON'
{ "workflow": "doc", "kind": "entity", "meta": { "module": "papers" },
  "status_types": ["draft", "approved", "closing", "closed"], "initial_status": "draft",
  "actions": { "Ok": { "kind": "exec", "argv": ["echo", "{\"receipt\": 7}"] },
               "Reject": { "kind": "exec", "argv": ["sh", "-c", "echo '{\"why\": \"no\"}'; exit 65"] },
               "Fail": { "kind": "exec", "argv": ["sh", "-c", "exit 78"] },
               "Ask": { "kind": "exec", "argv": ["echo", "{\"outcome\": \"done\", \"output\": 7}"] },
               "Lose": { "kind": "exec", "probe": "Ask", "argv": ["sh", "-c", "exit 1"] } },
  "steps": [ { "step_id": 1, "step_key": "approve", "status": "draft", "successful_state": "approved" },
             { "step_id": 2, "step_key": "close", "status": "approved", "claim_state": ["closing", "approved"], "successful_state": "closed", "action": "Ok" },
             { "step_id": 3, "step_key": "reject", "status": "approved", "claim_state": ["closing", "approved"], "successful_state": "closed", "action": "Reject" },
             { "step_id": 4, "step_key": "fail", "status": "approved", "claim_state": ["closing", "approved"], "successful_state": "closed", "action": "Fail" },
             { "step_id": 5, "step_key": "lose", "status": "approved", "claim_state": ["closing", "approved"], "successful_state": "closed", "action": "Lose", "on_unknown": "hold" },
             { "step_id": 6, "step_key": "mine", "status": "approved", "successful_state": { "admin": "closed" } } ] }
JSON
cat >flows/talk.json <<'JSON'
{ "workflow": "talk", "kind": "run", "steps": [
  { "name": "say", "type": "approval", "timeout": "24h", "on_timeout": "fail" },
  { "name": "hear", "type": "external_event", "event": "papers", "timeout": "24h" } ] }
JSON
one_step() { # workflow, action, more of the step
	printf '{ "workflow": "%s", "kind": "run", "actions": { "ask": { "kind": "exec", "argv": ["echo", "nothing"] }, "go": %s },\n  "steps": [ { "name": "go", "type": "task", "action": "go"%s } ] }\n' \
		"$1" "$2" "$3" >"flows/$1.json"
}
one_step quick '{ "kind": "noop" }' ', "save_as": "went"'
one_step broken '{ "kind": "exec", "argv": ["sh", "-c", "exit 78"] }' ''
one_step lost '{ "kind": "exec", "probe": "ask", "argv": ["sh", "-c", "exit 1"] }' ', "on_unknown": "hold"'
one_step work '{ "kind": "worker", "queue": "stock", "effect": "keyed" }' ''
cat >flows/undone.json <<'JSON'
{ "workflow": "undone", "kind": "run", "actions": { "go": { "kind": "noop" }, "back": { "kind": "noop" } },
  "steps": [ { "name": "go", "type": "task", "action": "go", "compensate": "back" },
             { "name": "say", "type": "approval", "timeout": "24h", "on_timeout": "fail" } ] }
JSON
batch() { # workflow, argv
	printf '{ "workflow": "%s", "kind": "batch", "actions": { "make": { "kind": "exec", "probe": "ask", "argv": %s }, "ask": { "kind": "exec", "argv": ["echo", "nothing"] }, "drop": { "kind": "noop" } },\n  "item_action": "make", "cleanup_action": "drop" }\n' \
		"$1" "$2" >"flows/$1.json"
}
batch pack '["echo", "{\"file\": 1}"]'
batch slow '["sh", "-c", "until [ -e go ]; do sleep 0.02; done"]'
batch odd '["sh", "-c", "exit 1"]'
echo '{ "exec": { "enabled": true }, "modules": { "papers": { "janitor": { "every": "1h", "stuck_after": "1h" } } },
  "hooks": { "h": { "verify": { "scheme": "hmac-sha256", "secrets": ["sesame"] }, "id": "/id", "push": { "queue": "hooked" } } } }' >config.json

serve --config config.json
# That of Debian, which has its packages.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
"$python" "$root/scripts/api-reference.py" "$hapax" >reference.md 2>err && diff "$root/docs/api-reference.md" reference.md >out
result the_reference_is_up_to_date # otherwise: make reference
ROOT=$root "$python" "$root/tests/http/openapi_walk.py" "$HAPAX_SERVER" 2>err || { cat err && echo "not ok the_walk"; }
exit 0
