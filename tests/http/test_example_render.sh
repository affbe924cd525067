#!/usr/bin/env bash
# examples/render: its README, walked through (tests/support/walk.sh), and what the store and the ledgers say afterwards.
set -u
. tests/support/walk.sh

walk_begin examples/render/README.md
store_log() { cat 001.log; } # the first terminal of the page

walk 17

# --- what the store was made to do

[ "$(store_log | grep -c '^rendering ')" -gt 120 ] && ! store_log | grep '^rendering ' | sort | uniq -d | grep .
result no_frame_is_rendered_twice
[ "$(curl -s "localhost:$port_9001/" | wc -l)" = 121 ] # three films, and a frame
result no_artifact_is_left_that_nobody_paid_for
await 60 eval '[ "$(store_log | grep -c " is COMPLETED {\"total\": 40, \"succeeded\": 40, .*\"charged\": 200, \"refunded\": 0}")" = 3 ] &&
	[ "$(store_log | grep -c " is CANCELLED {\"total\": 40, ")" = 2 ]'
result the_owner_is_told_once_of_each_end
# What was cancelled was refunded: the totals that the owner is told, and one picture paid.
store_log | grep -q ' is CANCELLED .*"accepted": 1, "cancelled": 39' && store_log | grep -q ' is CANCELLED .*"accepted": 0, "cancelled": 40'
result the_totals

# --- the books: every balance is that of the entry before it and the amount, and no key comes twice

balances() { # account, balance
	curl -s "$HAPAX_SERVER/api/v1/accounts/$1/ledger?limit=500" >out && python3 - "$2" <<'END'
import json, sys
ledger = json.load(open("out"))
entries, sum = ledger["items"], 0
for entry in entries:
    sum += entry["amount"]
    assert entry["balance"] == sum >= 0, entry
assert ledger["cursor"] is None and sum == int(sys.argv[1]) and len({e["key"] for e in entries}) == len(entries), sum
END
}
balances alice 595 && balances bob 0
result the_books_balance

# --- a node dies with frames at the store, and the batch is cancelled before anybody knows: their keys are void first

start_engine() {
	bash -c "exec $(cat 002.terminal)" >"$1.log" 2>&1 &
	server=$!
	walk_terminals="$walk_terminals $server"
	await 60 grep -qs '^ready ' "$1.log"
}
artifacts_of() { curl -s "localhost:$port_9001/$1" | wc -l; }
rendering() { store_log | grep -c "^rendering $id/"; }
begun_at_least() { [ "$(rendering)" -ge "$1" ]; }
id=$(build/hapax batch start render --account alice --items build/render/items.json --json | grep -o 'batch_[0-9a-z]*' | head -1)
await 60 begun_at_least 5 && kill -9 "$(cat build/render/pid)" && start_engine again &&
	build/hapax batch cancel "$id" >out 2>&1 && build/hapax batch cancel "$id" --wait 30s >out 2>&1
result cancelled_while_its_node_is_dead
store_log | grep -q "^void $id/" && [ "$(artifacts_of "$id")" = 0 ] && balances alice 595
result void_deleted_and_refunded
# Whoever still has such a frame under way comes too late.
key=$(store_log | grep -m 1 -o "^void $id/.*" | sed 's/^void //')
code=$(curl -s -o out -w '%{http_code}' "localhost:$port_9001/render" -H "Idempotency-Key: $key" -d '{"input": {"frame": 1}}')
[ "$code" = 422 ] && [ "$(artifacts_of "$id")" = 0 ]
result a_late_call_is_refused

"$build/hapax" check --strict "$root/examples/render/render.json" >out 2>&1
result the_definition_is_clean
kill "$server" && wait "$server"
result the_engine_stops_well
exit 0
