#!/usr/bin/env bash
# hapax bulk …: what is sent, what is shown, waiting with a bar, the manual.
set -u
. tests/support/cli.sh

cat >flows/order.json <<'END'
{ "workflow": "order", "kind": "run", "attributes": { "customer": ".input.customer" }, "actions": { "Try": { "kind": "exec", "argv": ["sh", "-c", "exit $(cat ends)"] } },
  "steps": [ { "name": "go", "type": "external_event", "event": "go", "save_as": "went" },
             { "name": "try", "type": "task", "action": "Try", "retry": { "max_attempts": 1 } } ] }
END
echo '{ "exec": { "enabled": true } }' >config.json
echo 75 >ends
serve --config config.json
for n in 1 2 3 4; do exits 0 run start order --key "o-$n" --input "{\"customer\": \"c-$((n % 2))\"}"; done
mine='customer == "c-1"'
exits 0 bulk signal go --where "$mine" --dry-run && is out "2 runs would be selected: nothing was done" &&
	exits 0 bulk signal go --where "$mine" --dry-run --json && is out '{"dryRun":true,"selected":2}'
result dry_run
exits 0 bulk redrive --where 'status == "PARKED" and queue == "mail"' --dry-run && is out "0 jobs would be selected: nothing was done" && exits 2 bulk redrive &&
	complains "--where is missing"
result redrive_is_of_jobs
exits 0 bulk signal go --where "$mine" --data '{"by": "hand"}' --wait 60s && says_like '^bulk_[0-9a-z]{13}: COMPLETED, 2 selected: 2 done, 0 unchanged, 0 refused, 0 skipped$' && silent err
result signal_waited_for
failed() { [ "$("$hapax" run list --where "$mine and status == \"FAILED\"" --json | jq '.items | length')" = 2 ]; }
await failed && "$hapax" run show order/o-1 --json | jq -e '.state.went.by == "hand"' >out
result what_was_sent_has_arrived
echo 0 >ends
exits 0 bulk retry --where "$mine" --reason "it works now" --wait 60s && says "2 done" && exits 0 run show order/o-1 --wait 60s && exits 0 run show order/o-3 --wait 60s &&
	exits 0 run history order/o-1 --json && [ "$(jq '[.items[] | select(.reason == "it works now" and .by == "default")] | length' <out)" = 1 ]
result retry_with_a_reason
exits 0 bulk cancel --where 'workflow == "order"' --key all && says_like '^bulk_[0-9a-z]{13}: 4 selected$' && exits 0 bulk cancel --where 'workflow == "order"' --key all --json && id=$(jq -r .id <out) &&
	exits 0 bulk show "$id" --wait 60s && says_like "^bulk +$id\$" && says_like '^does +cancel, where workflow == "order"$' && says_like '^status +COMPLETED$' && says_like '^key +all$' &&
	says_like '^█{40}  100%$' && says_like '^4 +2 +0 +2 +0 +0$' && exits 0 bulk items "$id" && lines 5 && says_like '^run_[0-9a-z]+ +refused +ALREADY_COMPLETED$'
result cancel_shown_and_listed
exits 0 bulk cancel "$id" && says "$id: COMPLETED, 4 selected" && exits 4 bulk cancel bulk_0000000000001 && exits 2 bulk cancel && complains "wants --where" && exits 2 bulk cancel "$id" --where "$mine" &&
	exits 2 bulk cancel "$id" --reason x && exits 2 bulk retry && complains "--where is missing" && exits 2 bulk cancel --where 'custmer == 1' && complains 'did you mean "customer"?'
result what_is_refused

# --- another version: one that fits is migrated, one that has ended is refused

exits 0 run start order --key o-5 --input '{"customer": "c-5"}'
sed 's/"steps": \[ { "name": "go"/"steps": [ { "name": "start"/' flows/order.json >new.json
curl -s --max-time 20 -X PUT "$HAPAX_SERVER/api/v1/definitions/order" -d @new.json >out && version=$(jq .version <out)
exits 0 bulk migrate --where 'customer in ["c-1", "c-5"]' --to "$version" --rename go=start --wait 60s && says "3 selected: 1 done, 0 unchanged, 2 refused" &&
	"$hapax" run show order/o-5 --json | jq -e ".definitionVersion == $version and .currentStep == \"start\"" >out
result migrate

# --- a bar while somebody waits: of a server that says what it is to show, since ours is done in a moment

cat >slow.py <<'END'
import http.server, json, os

class Slow(http.server.BaseHTTPRequestHandler):
	protocol_version = "HTTP/1.1"

	def answer(self, status, value):
		text = json.dumps(value).encode()
		self.send_response(status)
		self.send_header("Content-Type", "application/json")
		self.send_header("Content-Length", str(len(text)))
		self.end_headers()
		self.wfile.write(text)

	def do_POST(self):
		self.rfile.read(int(self.headers["Content-Length"]))
		self.answer(202, {"id": "bulk_0000000000001", "selected": 8})

	def do_GET(self):
		over = os.path.exists("over")
		counts = {"done": 6 if over else 1, "refused": 1, "unchanged": 0, "skipped": 1 if over else 0, "cancelled": 0}
		self.answer(200, {"id": "bulk_0000000000001", "status": "COMPLETED" if over else "RUNNING", "selected": 8, **counts})

	def log_message(self, *_):
		pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
print(server.server_port, flush=True)
server.serve_forever()
END
python3 slow.py >port &
slow=$!
await test -s port
script -qfec "stty cols 96; '$hapax' bulk cancel --where 'key == null' --server http://127.0.0.1:$(cat port) --wait" typescript >/dev/null &
watcher=$!
seen() { grep -asqF "$1" typescript; }
await seen "RUNNING ████░░░░░░░░░░░░ 25%  2/8  ✓ 1  ✗ 1" && touch over && wait "$watcher" && seen "bulk_0000000000001: COMPLETED, 8 selected: 6 done, 0 unchanged, 1 refused, 1 skipped"
result a_bar_on_a_terminal
kill "$slow" && wait "$slow" 2>/dev/null
help_is_in_manual bulk hapax-bulk.1 && exits 2 bulk cancle && complains 'did you mean "bulk cancel"?'
result manual
