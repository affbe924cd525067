#!/usr/bin/env bash
# hapax batch …, by its output and exit codes, against a real server. Help and manual agree.
set -u
. tests/support/cli.sh

# An item makes made/BATCH/N; it waits while there is a file `closed`, fails for good where broken/N is, and its outcome is unknown
# where strange/N is. Its key is BATCH/N.
cat >render.sh <<'END'
id=${HAPAX_IDEMPOTENCY_KEY%%/*} n=${HAPAX_IDEMPOTENCY_KEY#*/}
n=${n%%/*}
while [ -e closed ]; do sleep 0.02; done
[ ! -e "broken/$n" ] || { echo "no paper for $n" >&2 && exit 78; }
[ ! -e "strange/$n" ] || exit 1
mkdir -p "made/$id" && : >"made/$id/$n" && printf '{"file": "%s.png", "bell": "\\u001b[31m"}' "$n"
END
cat >delete.sh <<'END'
id=${HAPAX_IDEMPOTENCY_KEY%%/*} n=${HAPAX_IDEMPOTENCY_KEY#*/}
rm -f "made/$id/${n%%/*}"
END
cat >flows/render.json <<'END'
{ "workflow": "render", "kind": "batch",
  "actions": { "one": { "kind": "exec", "argv": ["sh", "render.sh"] },
               "delete": { "kind": "exec", "argv": ["sh", "delete.sh"], "effect": "idempotent" } },
  "item_action": "one", "cleanup_action": "delete", "concurrency": 4, "retry": { "max_attempts": 2, "initial": "10ms" } }
END
mkdir made broken strange
echo '{ "exec": { "enabled": true } }' >config.json

items() { seq 0 $(($1 - 1)) | sed 's/.*/{"input": {"frame": &}, "cost": 5}/'; }
items 10 >ten.jsonl

# --- items that are not valid: told with file and line, and nothing is asked of any server

bad() { # text, what is told
	printf '%b' "$1" >bad.json
	exits 2 batch start render --account ann --items bad.json --server http://127.0.0.1:1 && complains "$2"
}
bad '' 'bad.json:1: there is no item in it' && bad '\n \n' 'bad.json:1: there is no item in it' && bad '[]' 'bad.json:1: there is no item in it'
result items_that_are_not_there
bad '{"cost": 1}\n{"cost": }\n' 'bad.json:2:10: ' && bad '{"cost": 1}\n\nnonsense\n' 'bad.json:3:1: ' &&
	bad '[{"cost": 1},\n {"cost": }]' 'bad.json:2:11: ' && bad '{\n  "cost": 1\n}\n' 'one item to a line, or all in an array' &&
	bad '{"cost": 1} {"cost": 2}' 'bad.json:1:13: nothing may follow the value' && bad '[{"cost": 1}]\n[]' 'bad.json:2:1: nothing may follow'
result items_that_are_not_json
bad '{"cost": 1}\n{"cost": -1}\n' 'bad.json:2: the cost is a whole number from 0 to 1000000000, not -1' && bad '{"cost": 1.5}' 'not 1.5' &&
	bad '{"cost": 5.0}' 'not 5.0' && bad '{"cost": "5"}' 'not "5"' && bad '{"cost": 1000000001}' 'not 1000000001' &&
	bad '[{"cost": 1},\n\n{"input": {}}]' 'bad.json:3: the cost is missing' && bad '[{"cost": 1},\n7]' 'bad.json:2: an item is an object' &&
	bad '{"cost": 1, "inptu": 2}' 'no member "inptu"; did you mean "input"?' && bad '{"cost": 1}\n{"cost": 1, "cost": 2}' 'bad.json:2: in the item, 1:13:' &&
	bad "{\"cost\": 1, \"input\": \"$(head -c 1048576 /dev/zero | tr '\0' x)\"}" 'bad.json:1: the input has 1048578 bytes'
result items_that_are_not_items
items 1000001 >many.jsonl
exits 2 batch start render --account ann --items many.jsonl && complains 'many.jsonl:1000001: a batch has at most 1000000 items'
result one_item_too_many
rm many.jsonl
exits 2 batch start render --account ann --items nowhere && complains "nowhere cannot be read: No such file" &&
	exits 2 batch start render --account ann --items . && complains "cannot be read" && exits 2 batch add batch_0000000000001 &&
	complains "batch add wants --items" && ! complains needed && exits 0 batch add --help && says "standard input; needed" && ! says "needed with" && "$hapax" batch start render --account ann --items - <bad.json >out 2>err; [ $? -eq 2 ] && complains "standard input:1: "
result files_that_are_not_there
exits 2 batch start && exits 2 batch start render && complains "wants --account and --items" && exits 2 batch start render --items ten.jsonl &&
	exits 2 batch start batch_0000000000001 --hold && complains "--key, --data and --hold are for a new batch" &&
	exits 2 batch start render --account ann --items ten.jsonl --hold --wait && complains "--hold and --wait" &&
	exits 2 batch start render --account ann --items ten.jsonl --wait 5 && complains '--wait: "5" is not a duration' &&
	exits 2 batch start render --account ann --items ten.jsonl --wait= && exits 2 batch resolve batch_0000000000001 0 maybe && complains "done or not_done"
result start_that_is_not_valid
exits 69 batch start render --account ann --items ten.jsonl --server http://127.0.0.1:1 && complains 'is `hapax serve` running?' &&
	exits 69 batch add batch_0000000000001 --items ten.jsonl --server http://127.0.0.1:1
result no_server

serve --config config.json
result the_server_is_there

api() { curl -s --max-time 20 "$HAPAX_SERVER/api/v1/$1" -d "$2" >"$dir/api"; }
balance() { # account, what it has
	curl -s "$HAPAX_SERVER/api/v1/accounts/$1" | grep -q "\"balance\":$2[,}]"
}
id_of() { grep -o 'batch_[0-9a-z]*' "$dir/out" | head -1; }
start() { # arguments…; the id is in $id
	exits 0 batch start render --account ann "$@" --json
	id=$(id_of)
}
shows() { exits 0 batch show "$id" && says_like "$1"; }
becomes() { await shows "$1"; }
api accounts '{"id": "ann", "balance": 100000}' && api accounts '{"id": "bob", "balance": 12}'
result accounts

# --- start, show, items

touch broken/7
exits 0 batch start render --account ann --items ten.jsonl --key k1 --wait && silent err &&
	says_like '^render batch_[0-9a-z]{13}: COMPLETED, 10 items: 9 succeeded, 1 failed; 45 charged, 0 refunded, 45 paid$'
result start_and_wait
id=$(id_of)
exits 0 batch start render --account ann --items ten.jsonl --key k1 && says_like "^render $id: COMPLETED, .*, started before with this key\$" &&
	exits 0 batch start render --account ann --items ten.jsonl --key k1 --json && says_like '^\{"id":"batch_.*,"created":false\}$' && balance ann 99955
result the_same_key_is_the_same_batch
exits 0 batch show "$id" && says_like "^batch +$id\$" && says_like '^workflow +render, definition 1$' && says_like '^account +ann$' &&
	says_like '^status +COMPLETED, version [0-9]+$' && says_like '^key +k1$' && says_like '^█{40}  100%$' &&
	says_like '^TOTAL +PENDING +RUNNING +SUCCEEDED +FAILED +UNKNOWN$' && says_like '^10 +0 +0 +9 +1 +0$' && ! says DECIDED &&
	says_like '^CHARGED +REFUNDED +PAID$' && says_like '^45 +0 +45$' && ! says 'why:' && ! grep -q "$(printf '\033')" out
result show
exits 0 batch show "$id" --json && says_like '^\{"id":.*"charged":45,' && lines 1 && exits 0 batch show "$id" --items --json && lines 1 && says_like '^\{"id":"batch_.*"charged":45,.*"items":\[\{"n":0,.*\]\}$' &&
	exits 0 batch show "$id" --items && says_like '^N +STATUS +DECISION +COST +CHARGED +ATTEMPT +INPUT +OUTPUT$' && exits 4 batch show batch_0000000000001 &&
	complains "(404 NOT_FOUND)" && exits 4 batch show "$id" --workspace other && exits 4 batch show nonsense
result show_in_other_ways
exits 0 batch items "$id" && lines 11 && says_like '^0 +SUCCEEDED +5 +5 +1 +\{"frame": ?0\} +\{"file": ?"0.png"' && says_like '^7 +FAILED +5 +0 +1 .*no paper for 7' &&
	! grep -q "$(printf '\033')" out && exits 0 batch items "$id" --status FAILED && lines 2 && exits 0 batch items "$id" --limit 4 && lines 6 &&
	exits 0 batch items "$id" --limit 4 --cursor "$(sed -n "s/^there are more: --cursor '\(.*\)'$/\1/p" out)" && says_like '^4 ' && ! says_like '^3 '
result items
exits 0 batch accept "$id" 3 && is out "item 3: SUCCEEDED, accepted" && exits 0 batch accept "$id" 3 && exits 5 batch accept "$id" 7 &&
	exits 4 batch accept "$id" 10 && exits 2 batch accept "$id" && exits 0 batch items "$id" --decision accepted && lines 2 && says_like '^3 +SUCCEEDED +accepted'
result accept
exits 5 batch cancel "$id" && complains "(409 ALREADY_COMPLETED)" && exits 5 batch cancel "$id" --wait && balance ann 99955
result cancel_of_a_completed_one
exits 4 batch start rendr --account ann --items ten.jsonl && exits 4 batch start render --account eve --items ten.jsonl
result what_is_not_there
tr '\n' ',' <ten.jsonl | sed 's/^/[/; s/,$/]\n/' >ten.json
exits 0 batch start render --account ann --items ten.json --wait 20s && says ": COMPLETED, 10 items: 9 succeeded" &&
	"$hapax" batch start render --account ann --items - --wait 20s --json <ten.jsonl >out && says_like '^\{"id":.*"status":"COMPLETED".*"created":true\}$'
result items_in_an_array_and_of_standard_input
rm broken/7

# --- hold, add, start

start --items ten.jsonl --hold && exits 0 batch add "$id" --items ten.jsonl --key more && says "render $id: PENDING, 20 items" &&
	exits 0 batch add "$id" --items ten.jsonl --key more && says "PENDING, 20 items" && exits 0 batch add "$id" --items ten.jsonl && says "PENDING, 30 items" &&
	exits 2 batch add "$id" --items bad.json && exits 4 batch add batch_0000000000001 --items ten.jsonl
result add
exits 0 batch start "$id" --wait && says_like "^render $id: COMPLETED, 30 items: 30 succeeded; 150 charged, 0 refunded, 150 paid\$" &&
	exits 5 batch add "$id" --items ten.jsonl && complains "(409 WRONG_STATUS)"
result start_of_a_held_one
start --items ten.jsonl --hold && exits 0 batch cancel "$id" && is out "$id: torn down, 10 of 10 items cancelled, 0 refunded" && exits 0 batch cancel "$id" &&
	says "torn down" && exits 7 batch show "$id" --wait && complains "the batch is CANCELLED" && exits 5 batch start "$id"
result cancel_of_a_held_one

# --- while it runs: waiting, the bar, ^C, cancel

touch closed
start --items ten.jsonl && becomes '^10 +6 +4 +0 ' && says_like '^░{40}  0%$' && says_like '^20 +0 +20$' && says_like '^why: ' && exits 0 why "$id" && says_like "^$id is RUNNING: "
result show_one_that_runs
exits 5 batch show "$id" --wait 100ms && says_like '^status +RUNNING' && complains "the batch has not ended within 100ms, it is RUNNING"
result waiting_that_is_not_enough
script -qfec "stty cols 96; '$hapax' batch show $id --wait" typescript >/dev/null &
watcher=$!
seen() { grep -qsF "$1" typescript; }
await seen "$(printf '\r\033[K')RUNNING ░░░░░░░░░░░░░░░░ 0%  0/10  ✓ 0  ✗ 0  20 charged"
result a_bar_on_a_terminal
env --default-signal=INT "$hapax" batch show "$id" --wait >out 2>err &
waiter=$!
# Before it is hapax it is a shell, which catches it too.
catches_interrupt() { [ "$(cat "/proc/$waiter/comm")" = hapax ] && grep -q '^SigCgt:.*[2367abef]$' "/proc/$waiter/status"; }
await catches_interrupt && kill -INT "$waiter"
wait "$waiter"
[ $? -eq 130 ] && silent out && is err "$id goes on: hapax batch show $id tells how far it is" && shows '^status +RUNNING'
result who_stops_waiting_stops_nothing
exits 0 batch cancel "$id" && says "$id: accepted" && exits 0 batch cancel "$id" --json && says '"status":"ACCEPTED"' && shows '^status +RUNNING, version [0-9]+, to be cancelled$' &&
	exits 5 batch cancel "$id" --wait 100ms && complains "the batch has not ended within 100ms"
result cancel_of_a_running_one
await seen "to be cancelled ░░░░"
result the_bar_says_what_is_to_come
rm closed
exits 0 batch cancel "$id" --wait && is out "$id: torn down, 10 of 10 items cancelled, 20 refunded" && [ -z "$(ls -A "made/$id" 2>/dev/null)" ] &&
	shows '^20 +20 +0$' && exits 5 batch accept "$id" 0
result cancel_and_wait
# What was never begun is still PENDING, and cancelled: the two are told apart, and no percentage says that it goes on.
shows '^█{16}░{24}  cancelled, with 4 of 10 done$' && says_like '^10 +6 +0 +4 +0 +0$' && says_like '^DECIDED +ACCEPTED +CANCELLED$' && says_like '^10 +0 +10$'
result show_of_a_cancelled_one
wait "$watcher"
[ $? -eq 7 ] && grep -aqE '^status +CANCELLED' typescript && grep -aq "hapax: the batch is CANCELLED" typescript
result and_the_watcher_is_told

# --- money

exits 0 batch start render --account bob --items ten.jsonl && id=$(id_of) && becomes '^status +OUT_OF_CREDIT' &&
	says_like '^needs +5 for the next item' && says_like '^10 +8 +0 +2 ' && exits 0 why "$id" && says "credit" && exits 5 batch show "$id" --wait 50ms && complains "it is OUT_OF_CREDIT"
result out_of_credit
script -qfec "stty cols 96; '$hapax' batch show $id --wait" typescript >/dev/null &
watcher=$!
await seen "out of credit (the next item costs 5) ███░░░░░░░░░░░░░ 20%  2/10  ✓ 2  ✗ 0  10 charged"
result the_bar_says_so
api accounts/bob/credit '{"amount": 100, "key": "c1"}' && wait "$watcher" && shows '^50 +0 +50$' && balance bob 62
result a_credit_resumes_it

# --- unknown, resolve

touch strange/1
start --items ten.jsonl --wait && exits 0 batch items "$id" --status UNKNOWN && lines 2 && exits 5 batch resolve "$id" 0 not_done && exits 0 batch resolve "$id" 1 "done" --output '{"found": 1}' &&
	is out "item 1: SUCCEEDED" && exits 0 batch items "$id" && says_like '^1 +SUCCEEDED .*\{"found": ?1\}' && exits 5 batch resolve "$id" 1 not_done
result resolve
start --items ten.jsonl --wait && exits 0 batch resolve "$id" 1 not_done && is out "item 1: FAILED" && shows '^45 +0 +45$'
result resolve_to_what_was_not_done
rm strange/1

# --- more than one request holds

items 45000 >large.jsonl
exits 0 batch start render --account ann --items large.jsonl --key l1 --hold && says_like '^render batch_.*: PENDING, 45000 items$' && id=$(id_of) &&
	exits 0 batch items "$id" --limit 1 --json && says '"frame": 0' && exits 0 batch start render --account ann --items large.jsonl --key l1 --hold &&
	says "$id: PENDING, 45000 items, started before with this key" && exits 0 batch cancel "$id" --wait && says "$id: torn down, 45000 of 45000 items cancelled, 0 refunded"
result a_large_batch_is_loaded_in_pieces
# What a program that was killed after its first request has left behind.
touch closed
{ printf '{"workflow": "render", "account": "ann", "idempotencyKey": "l2", "hold": true, "items": [' && head -20000 large.jsonl | tr '\n' ',' | sed 's/,$//' && printf ']}'; } >first.json
curl -s --max-time 60 "$HAPAX_SERVER/api/v1/batches" -d @first.json >out && says '"total":20000' && id=$(id_of) &&
	exits 0 batch start render --account ann --items large.jsonl --key l2 && says_like "^render $id: [A-Z]+, 45000 items.*, started before with this key\$" &&
	exits 0 batch show "$id" --json && ! says '"status":"PENDING"' && ! says '"startedAt":null' &&
	becomes '^status +RUNNING' && exits 0 batch start render --account ann --items large.jsonl --key l2 && says "$id: RUNNING, 45000 items"
result what_was_left_half_loaded_is_loaded_on
exits 0 batch cancel "$id" && rm closed && exits 0 batch cancel "$id" --wait && says_like "^$id: torn down, 45000 of 45000 items cancelled, [0-9]+ refunded\$"
result and_torn_down
{ cat large.jsonl && echo '{"cost": -1}'; } >worse.jsonl
exits 2 batch start render --account ann --items worse.jsonl --key l3 && complains "worse.jsonl:45001: the cost" && exits 0 batch list && ! says l3
result one_bad_line_at_the_end_creates_nothing

# --- list

exits 0 batch list && says_like '^ID +WORKFLOW +ACCOUNT +STATUS +DONE +PAID +CREATED +KEY$' && says_like ' render +ann +COMPLETED +10/10 +45 .* k1$' &&
	exits 0 batch list --status OUT_OF_CREDIT && lines 1 && exits 0 batch list --workflow nothing && lines 1 && exits 2 batch list --status nonsense &&
	exits 0 batch list --limit 2 && lines 4 && says "there are more: --cursor" && exits 0 batch list --json && says '"cursor":null'
result list
touch closed
"$hapax" batch start render --account ann --items ten.jsonl --key k9 --wait >waited 2>&1 &
waiter=$!
runs() { exits 0 batch list --status RUNNING && says k9; }
await runs
kill -KILL "$server" && wait "$server" 2>/dev/null
server=
rm closed
wait "$waiter"
[ $? -eq 8 ] && grep -q 'has been started, and how it ended is not known' waited
result a_server_that_goes_away_while_one_waits

# --- help, manual

exits 0 batch start --help && says "--wait [DURATION]" && says "exit codes" && exits 2 batch strat && complains 'did you mean "batch start"?' &&
	help_is_in_manual batch hapax-batch.1
result help_and_manual
exit 0
