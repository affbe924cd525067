#!/usr/bin/env bash
# hapax test, by its output and exit codes: examples that hold, a difference that can be read, every word of a file, and files that are none.
set -u
. tests/support/cli.sh

exits 0 test "$root/examples/order/order.test.json" && says "5 tests, 0 failed; 6 of 6 steps and calls reached"
result the_tests_of_the_examples_hold

cat >flows/shop.json <<'END'
{ "workflow": "shop", "kind": "run", "on_failure": "compensate",
  "rules": [ { "never": ".ledger.refund and .ledger.ship" } ],
  "actions": {
    "charge": { "kind": "http", "url": "http://127.0.0.1:9/charge", "effect": "keyed" },
    "refund": { "kind": "http", "url": "http://127.0.0.1:9/refund", "effect": "keyed" },
    "ship":   { "kind": "http", "url": "http://127.0.0.1:9/ship", "effect": "claimed" } },
  "steps": [
    { "name": "charge", "type": "task", "action": "charge", "compensate": "refund", "save_as": "charge" },
    { "name": "paid",   "type": "external_event", "event": "paid", "timeout": "1h" },
    { "name": "ok",     "type": "approval", "timeout": "24h", "on_timeout": "fail" },
    { "name": "ship",   "type": "task", "action": "ship", "on_unknown": "hold" } ],
  "output": "{id: .state.charge.id, n: 1}" }
END
echo '{ "services": { "charge": { "returns": { "id": "ch_1" } } } }' >flows/shop.world.json
tests() { printf '{ "world": "shop.world.json", "tests": [\n%s ] }\n' "$1" >flows/shop.test.json; }
paid='{ "event": "paid" }'
# Each word of `when`, and of what services do.
tests '{ "name": "all goes well", "when": ['"$paid"', { "approve": "ok" } ], "then": { "status": "COMPLETED", "doubt": false, "output": { "n": 1.0, "id": "ch_1" },
  "steps": { "charge": "COMPLETED", "ship": "COMPLETED" }, "ledger": { "charge": 1, "ship": 1, "refund": 0 } } },
{ "name": "time is skipped, and the event never comes", "then": { "status": "CANCELLED", "ledger": { "refund": 1, "ship": 0 } } },
{ "name": "an hour is not over yet", "when": [ { "wait": "59m" } ], "then": { "status": "WAITING" } },
{ "name": "an hour is over", "when": [ { "wait": "61m" } ], "then": { "status": "CANCELLED" } },
{ "name": "rejected", "when": ['"$paid"', { "reject": "ok" } ], "then": { "status": "CANCELLED", "ledger": { "refund": 1 } } },
{ "name": "cancelled", "when": [ { "cancel": true, "answer": "OK" } ], "then": { "status": "CANCELLED" } },
{ "name": "cancelled too late", "when": ['"$paid"', { "approve": "ok" }, { "wait": "1m" }, { "cancel": true, "answer": "ALREADY_COMPLETED" } ], "then": { "status": "COMPLETED" } },
{ "name": "lost", "given": { "services": { "charge": ["timeout_after", "timeout", "done"] } }, "when": [ { "wait": "30m" } ], "then": { "ledger": { "charge": 1 } } },
{ "name": "refused", "given": { "services": { "charge": "rejected" } }, "then": { "status": "CANCELLED", "steps": { "charge": "FAILED" } } },
{ "name": "failed", "given": { "services": { "charge": ["failed", "done"] } }, "when": [ { "wait": "30m" } ], "then": { "ledger": { "charge": 1 } } },
{ "name": "killed", "given": { "services": { "charge": ["crash", "crash_after", "done"] } }, "when": [ { "wait": "30m" } ], "then": { "status": "WAITING", "ledger": { "charge": 1 } } },
{ "name": "held", "given": { "services": { "ship": "late" } }, "when": ['"$paid"', { "approve": "ok" } ], "then": { "status": "WAITING", "steps": { "charge": "COMPLETED", "ship": "UNKNOWN" }, "ledger": { "ship": 1 } } }'
exits 0 test flows/shop.test.json && says "12 tests, 0 failed" && [ "$(grep -c '^ok ' out)" -eq 12 ] && silent err
result every_word

tests '{ "name": "two differ", "when": [ { "cancel": true } ],
  "then": { "status": "COMPLETED",
            "ledger": { "refund": 2 } } },
{ "name": "this one holds", "then": { "status": "CANCELLED" } },
{ "name": "not heard", "when": [ { "cancel": true, "answer": "NOT_FOUND" } ], "then": { "status": "CANCELLED" } }'
exits 1 test flows/shop.test.json && says "FAILED two differ" && says 'flows/shop.test.json:3: status: expected "COMPLETED", was "CANCELLED"' &&
	says 'flows/shop.test.json:4: ledger.refund: expected 2, was 1' && says "cancels the run" && says "ok     this one holds" &&
	says "answer: expected NOT_FOUND, was OK" && complains "2 of 3 tests failed" && says "not reached: shop ship"
result a_difference_that_can_be_read
well_formed() { python3 -c 'import sys, xml.etree.ElementTree as e; t = e.parse("out").getroot(); print(len(t.findall("testsuite/testcase")), len(t.findall("testsuite/testcase/failure")), t.find("testsuite").get("failures"))'; }
exits 1 test flows/shop.test.json --junit && [ "$(well_formed)" = "3 2 2" ] && exits 1 test flows --json &&
	jq -e '.tests == 3 and .failed == 2 and .files[0].tests[0].differences[1] == {"path": "ledger.refund", "expected": "2", "was": "1", "line": 4}
	and (.files[0].tests[0].story | length > 3) and .files[0].tests[1].passed' <out >/dev/null && exits 2 test flows --json --junit
result for_machines

# The rules hold in every test: the user's own, and ours.
sed -i 's/"compensate": "refund"/"compensate": "ship"/' flows/shop.json
sed -i 's/.ledger.refund and .ledger.ship/.status == \\"CANCELLED\\" and .ledger.ship/' flows/shop.json
tests '{ "name": "a rule", "when": [ { "cancel": true } ], "then": { "status": "CANCELLED" } }'
exits 1 test flows/shop.test.json && says "never: expected the rule holds, was what is never to be is"
result rules_hold_in_every_test
cp "$root/examples/explore/double-charge.json" flows/double-charge.json
echo '{ "tests": [ { "name": "once", "given": { "services": { "charge": ["timeout_after", "done"] } }, "then": { "status": "COMPLETED" } } ] }' >flows/double-charge.test.json
exits 1 test flows/double-charge.test.json && says "once: expected the rule holds, was charge has happened twice"
result an_effect_that_happens_twice_fails

cat >flows/payout.test.json <<END
{ "definitions": ["$root/examples/explore/claim-without-probe.mended.json"],
  "tests": [
    { "name": "paid", "when": [ { "fire": "pay", "as": "cron", "answer": "OK" }, { "fire": "pay", "answer": "WRONG_STATUS" } ], "then": { "status": "paid", "ledger": { "Pay": 1 } } },
    { "name": "refused", "given": { "services": { "Pay": "failed" } }, "when": [ { "fire": "pay" } ], "then": { "status": "approved" } },
    { "name": "from the end", "given": { "status": "paid" }, "when": [ { "fire": "pay", "answer": "WRONG_STATUS" } ], "then": { "ledger": { "Pay": 0 } } } ] }
END
exits 0 test flows/payout.test.json && says "3 tests, 0 failed"
result entities

# What a test can say of moments: during a call, after a pause, when what is late has come.
cat >flows/moments.test.json <<END
{ "definitions": ["$root/examples/explore/cancel-race.mended.json"],
  "tests": [
    { "name": "during", "when": [ { "cancel": true, "during": "ship" } ], "then": { "status": "CANCELLED", "ledger": { "ship": 1, "recall": 1 } } },
    { "name": "before", "when": [ { "cancel": true, "during": "pack" } ], "then": { "status": "CANCELLED", "ledger": { "pack": 1, "unpack": 1, "ship": 0 } } },
    { "name": "paused", "given": { "services": { "ship": ["pause", "pause_after", "done"] } }, "then": { "status": "COMPLETED", "ledger": { "ship": 1 } } },
    { "name": "late", "given": { "services": { "ship": ["pause_late", "crash_late", "done"] } }, "when": [ { "wait": "1ms" }, { "land": "ship" }, { "land": "pack" } ], "then": { "status": "COMPLETED", "ledger": { "ship": 1 } } } ] }
END
exits 0 test flows/moments.test.json && says "4 tests, 0 failed"
result moments
sed -i 's/"during": "pack"/"during": "recall"/' flows/moments.test.json
exits 1 test flows/moments.test.json && says "during: expected recall, was no call of it is under way"
result a_moment_that_never_comes
cat >flows/batch.test.json <<END
{ "definitions": ["$root/examples/explore/late-item.mended.json"],
  "tests": [
    { "name": "all is drawn", "then": { "status": "COMPLETED", "ledger": { "draw": 2 } } },
    { "name": "voided", "given": { "services": { "draw": "late" } }, "when": [ { "cancel": true }, { "land": "draw" } ], "then": { "status": "CANCELLED", "ledger": { "draw": 0 } } } ] }
END
exits 0 test flows/batch.test.json && says "2 tests, 0 failed"
result batches
cat >flows/dry.test.json <<END
{ "definitions": ["$root/examples/explore/late-item.mended.json"],
  "tests": [
    { "name": "nobody pays", "given": { "balance": 1 }, "then": { "status": "OUT_OF_CREDIT", "ledger": { "draw": 1 } } },
    { "name": "paid", "given": { "balance": 1 }, "when": [ { "credit": 3, "answer": "OK" } ], "then": { "status": "COMPLETED", "ledger": { "draw": 2 } } },
    { "name": "kept", "given": { "balance": 1 }, "when": [ { "accept": 0, "answer": "OK" }, { "accept": 1, "answer": "WRONG_STATUS" }, { "cancel": true } ], "then": { "status": "CANCELLED", "ledger": { "draw": 1, "delete": 0 } } },
    { "name": "not kept", "given": { "balance": 1 }, "when": [ { "cancel": true } ], "then": { "status": "CANCELLED", "ledger": { "draw": 1, "delete": 1 } } } ] }
END
exits 0 test flows/dry.test.json && says "4 tests, 0 failed"
result an_account_that_runs_dry

# Files that are none: the line, and the nearest name.
wrong() { # text, complaint
	printf '%s' "$1" >flows/shop.test.json
	exits 2 test flows/shop.test.json && complains flows/shop.test.json:1: && complains "$2"
}
sed -i 's/"compensate": "ship"/"compensate": "refund"/' flows/shop.json
wrong '{ "test": [] }' '"tests"' && wrong '{ "tests": [ { "name": "x" } ] }' '"then"' && wrong '{ "tests": [ { "name": "x", "then": { "stauts": "" } } ] }' '"status"' &&
	wrong '{ "tests": [ { "name": "x", "then": { "ledger": { "chrge": 1 } } } ] }' '"charge"' &&
	wrong '{ "tests": [ { "name": "x", "given": { "services": { "chrge": "done" } }, "then": {} } ] }' '"charge"' &&
	wrong '{ "tests": [ { "name": "x", "given": { "services": { "charge": "dne" } }, "then": {} } ] }' '"done"' &&
	wrong '{ "tests": [ { "name": "x", "given": { "status": "paid" }, "then": {} } ] }' PENDING &&
	wrong '{ "tests": [ { "name": "x", "given": { "balance": 1 }, "then": {} } ] }' "a balance is for a batch" &&
	wrong '{ "tests": [ { "name": "x", "when": [ { "accept": 0 } ], "then": {} } ] }' "accept are for a batch" &&
	wrong '{ "tests": [ { "name": "x", "when": [ { "accept": 2 } ], "then": {} } ] }' 'accept is 2' &&
	wrong '{ "tests": [ { "name": "x", "when": [ { "fire": "a" } ], "then": {} } ] }' "not fired" &&
	wrong '{ "tests": [ { "name": "x", "when": [ { "cancel": true, "wait": "1s" } ], "then": {} } ] }' "it is one of" &&
	wrong '{ "tests": [ { "name": "x", "when": [ { "event": "pad" } ], "then": {} } ] }' '"paid"' &&
	wrong '{ "tests": [ { "name": "x", "when": [ { "approve": "okk" } ], "then": {} } ] }' '"ok"' &&
	wrong '{ "tests": [ { "name": "x", "when": [ { "cancel": true, "answer": "NOT_FUND" } ], "then": {} } ] }' '"NOT_FOUND"' &&
	wrong '{ "tests": [ { "name": "x", "when": [ { "cancel": true, "during": "chrge" } ], "then": {} } ] }' '"charge"' &&
	wrong '{ "tests": [ { "name": "x", "when": [ { "land": "chrge" } ], "then": {} } ] }' '"charge"' &&
	wrong '{ "tests": [ { "name": "x", "when": [ { "wait": "1s", "during": "charge" } ], "then": {} } ] }' "nobody waits during a call" &&
	wrong '{ "tests": [ { "name": "x", "workflow": "other", "then": {} } ] }' "no run, no entity and no batch other"
result files_that_are_none
mkdir none && exits 2 test none && complains "no *.test.json" && exits 2 test flows/nothing.test.json && exits 2 test && cp flows/shop.json flows/a.json.txt &&
	echo '{ "tests": [ { "name": "x", "then": {} } ] }' >flows/lonely.json && exits 2 test flows/lonely.json && complains "names no definitions"
result usage
rm -f flows/lonely.json flows/double-charge.json && exits 0 check flows && says "1 file"
result a_folder_of_definitions_may_have_tests

# In tables of the world's, statements run.
mkdir stock && cat >stock/stock.json <<'END'
{ "workflow": "stock", "kind": "run", "actions": { "take": { "kind": "sql", "statements": [ { "name": "take", "sql": "UPDATE stock SET n = n - 1 WHERE n > 0", "must": true } ] } },
  "world": { "tables": [ "CREATE TABLE stock (n INTEGER)", "INSERT INTO stock VALUES (1)" ] }, "steps": [ { "name": "take", "type": "task", "action": "take" } ] }
END
echo '{ "tests": [ { "name": "one is taken", "then": { "status": "COMPLETED", "ledger": { "take": 1 }, "tables": { "stock": [ { "n": 0 } ] } } } ] }' >stock/stock.test.json
exits 0 test stock/stock.test.json && sed -i 's/"n": 0/"n": 1/' stock/stock.test.json && exits 1 test stock/stock.test.json && says 'tables.stock: expected [ { "n": 1 } ], was [{"n":0}]' &&
	sed -i 's/INTO stock/INTO stck/' stock/stock.json && exits 1 test stock/stock.test.json && says "tables: expected can be made, was INSERT INTO stck VALUES (1): "
result tables_of_the_world

# Several in one world: each begins when it is told to, or at the beginning, and all is done to whom it is said.
cp "$root"/examples/explore/together/*.json stock/
cat >stock/shelf.test.json <<'END'
{ "definitions": ["sale.json", "recount.json"], "world": "shelf.world.json", "tests": [
  { "name": "one after the other", "workflow": "recount", "given": { "with": { "workflow": "sale" } },
    "then": { "status": "COMPLETED", "ledger": { "ask": 1 }, "with": { "status": "COMPLETED", "ledger": { "charge": 1 } }, "tables": { "counted": [ { "sku": "cup", "here": 1, "turn": 0 } ] } } },
  { "name": "sold first", "workflow": "recount", "given": { "with": { "workflow": "sale" } }, "when": [ { "start": "recount" } ],
    "then": { "status": "COMPLETED", "tables": { "counted": [ { "sku": "cup", "here": 0, "turn": 1 } ] } } },
  { "name": "two are sold", "workflow": "sale", "given": { "with": { "workflow": "sale", "with": { "workflow": "recount" } } }, "when": [ { "start": "sale/2" } ],
    "then": { "status": "COMPLETED", "with": { "status": "FAILED", "with": { "status": "COMPLETED" } }, "tables": { "shelf": [ { "sku": "cup", "here": 0, "sold": 1, "turn": 1 } ] } } },
  { "name": "cancelled", "workflow": "sale", "given": { "with": { "workflow": "recount" } }, "when": [ { "cancel": true, "during": "ask", "of": "recount" } ],
    "then": { "status": "COMPLETED", "with": { "status": "CANCELLED" } } } ] }
END
exits 0 test stock/shelf.test.json && says "4 tests, 0 failed"
result several_in_one_world
sed -i 's/"start": "sale.2"/"start": "sale", "during": "charge"/' stock/shelf.test.json
exits 1 test stock/shelf.test.json && says 'shelf.test.json:7: with.status: expected "FAILED", was "COMPLETED"' && says 'status: expected "COMPLETED", was "FAILED"'
result who_is_meant
cat >stock/hook.test.json <<'END'
{ "definitions": ["order.json", "fulfil.json"], "world": "hook.world.json", "tests": [
  { "name": "told", "given": { "with": { "workflow": "fulfil" } }, "when": [ { "tell": "charge" }, { "approve": "check" } ],
    "then": { "status": "COMPLETED", "with": { "status": "COMPLETED", "ledger": { "ship": 1 } } } },
  { "name": "not told", "given": { "with": { "workflow": "fulfil" } }, "when": [ { "approve": "check" } ], "then": { "status": "COMPLETED", "with": { "status": "PENDING" } } },
  { "name": "there is nothing to tell yet", "given": { "with": { "workflow": "fulfil" } }, "when": [ { "tell": "charge", "during": "charge" } ], "then": { "with": { "status": "PENDING" } } } ] }
END
exits 0 test stock/hook.test.json && says "3 tests, 0 failed" && sed -i 's/{ "approve": "check" } \], "then": { "status": "COMPLETED", "with": { "status": "PEN/{ "cancel": true, "of": "fulfil" } ], "then": { "with": { "status": "PEN/; s/"tell": "charge", "during"/"tell": "refund", "during"/' stock/hook.test.json &&
	exits 1 test stock/hook.test.json && says "when: expected it has begun, was it has not" && says "tell: expected the world says whom its service tells, was it does not"
result a_hook_that_is_told
meeting() { # given.with, when, complaint
	printf '{ "definitions": ["sale.json", "recount.json"], "world": "shelf.world.json", "tests": [ { "name": "x", "workflow": "sale", "given": { "with": %s }, "when": [ %s ], "then": { "with": {} } } ] }' "$1" "$2" >stock/x.test.json
	exits 2 test stock/x.test.json && complains x.test.json:1: && complains "$3"
}
meeting '{}' '{ "cancel": true }' '"workflow" is missing' && meeting '{ "workflow": "recnt" }' '{ "cancel": true }' 'no batch recnt' &&
	meeting '{ "workflow": "recount" }' '{ "start": "sale/2" }' 'the test is about no sale/2' && meeting '{ "workflow": "recount", "status": "x" }' '{ "cancel": true }' 'begins PENDING' &&
	meeting '{ "workflow": "recount", "with": { "workflow": "sale", "with": { "workflow": "sale" } } }' '{ "cancel": true }' 'they are 3 at most' &&
	meeting '{ "workflow": "recount" }' '{ "tell": "chrge" }' '"charge"' && meeting '{ "workflow": "recount" }' '{ "cancel": true, "of": "recnt" }' 'the test is about no recnt'
result those_who_cannot_meet

tests '{ "name": "watched", "then": { "status": "CANCELLED" } }'
"$hapax" test flows/shop.test.json --watch >watched 2>/dev/null &
watcher=$!
await grep -q "1 test, 0 failed" watched && tests '{ "name": "changed", "then": { "status": "COMPLETED" } }' && await grep -q "FAILED changed" watched
result watched
kill "$watcher" && wait "$watcher"

exits 2 test flows/shop.test.json --db postgres://127.0.0.1/x && complains "--db is the store of --server" &&
	exits 2 test flows/shop.test.json --server --db sqlite:x.db && complains "--db is a database of PostgreSQL"
result a_store_is_of_a_server_and_postgres

"$hapax" test --help | grep -oE '^  --[a-z-]+' | tr -d ' ' | in_manual hapax-test.1
result the_manual_has_every_option
# Every field of a file is in the manual and on the page.
sed -n 's/^	{"\([a-z_]*\)", *FIELD.*/\1/p' "$root/src/trial/example_file.c" | sort -u >fields
bad=
while read -r field; do
	grep -qE "^\.BR? $field\b" "$root/man/hapax-test.1" && grep -q "\b$field\b" "$root/docs/explore.md" || bad="$bad $field"
done <fields
[ -z "$bad" ] && [ "$(wc -l <fields)" -ge 18 ] || { echo "missing:$bad" && false; }
result every_field_is_in_the_manual
exit 0
