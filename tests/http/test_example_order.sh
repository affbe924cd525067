#!/usr/bin/env bash
# examples/order: its README, walked through (tests/support/walk.sh) with a worker in Python and one in JavaScript, and
# what the ledger of the outside world says afterwards.
set -u
. tests/support/walk.sh

walk_begin examples/order/README.md
walk 15

# --- what the outside world saw

cat build/order/ledger/* | sort >out
printf '%s\n' 'release sofa' 'reserve cup' 'reserve lamp' 'reserve sofa' 'reserve table' | diff - out
result five_effects
# The stopped worker woke up, and its word was not taken.
await 60 grep -qh '^complete: HTTP Error 409: Conflict' [0-9]*.log
result the_stale_worker_was_told
grep -qh '^reserve table attempt 1 fence 1$' [0-9]*.log && grep -qh '^reserve table attempt 2 fence 2$' [0-9]*.log
result the_second_worker_has_a_higher_fence
build/hapax run list --json >out && [ "$(grep -o '"id":"run_' out | wc -l)" = 5 ]
result five_runs
"$build/hapax" check --strict "$root/examples/order/order.json" >out 2>&1
result the_definition_is_clean
# --- the engine is killed while a run waits and both workers ask for jobs: all three go on

waits() { build/hapax run show "$id" >out 2>&1 && grep -q '◷  approve' out; }
id=$(build/hapax run start order --key order-6 --input '{"sku": "chest", "total": 1500}' --json | grep -o 'run_[0-9a-z]*' | head -1)
await 60 waits
result a_run_waits
set -- $walk_terminals
kill -KILL "$1" && wait "$1" 2>/dev/null
bash -c "exec $(cat 002.terminal)" >again.log 2>&1 &
server=$!
walk_terminals="$server $2 $3"
await 60 grep -qs '^ready ' again.log
result the_engine_is_there_again
build/hapax run approve "$id" approve >out 2>&1 && build/hapax run signal "$id" payment >out 2>&1 && build/hapax run show "$id" --wait 30s >out 2>&1 &&
	[ "$(ls build/order/ledger | grep -c "$id")" = 1 ]
result the_run_goes_on
build/hapax run start order --key order-7 --input '{"sku": "no-rug", "total": 1}' --wait 30s >out 2>&1
grep -q 'there is no rug on the shelves' out
result the_workers_go_on
kill "$server" && wait "$server"
result the_engine_stops_well
exit 0
