#!/usr/bin/env bash
# examples/demo, which `make run` starts: it prints the commands of README's quick start (test_docs_pages.sh has run them),
# they can be pasted again, and it can be killed, started twice, kept from its ports, and stopped.
set -u
. tests/support/walk.sh

walk_begin README.md
demo=examples/demo/run.sh
walk_start $demo 'is printed here'

# --- what it prints

sed -n 's/^  \([(i].*build\/hapax.*\)/\1/p' run.log >pasted
python3 "$root/tests/support/page.py" split page.md && cat 00[123].sh | diff - pasted >out
result the_commands_of_README_and_no_others
[ "$(ls [0-9]*.sh | wc -l)" = 3 ] && [ "$(wc -l <pasted)" = 3 ]
result three_commands_of_one_line
for path in $(grep -oE '(examples|docs|build)/[a-z./-]+[a-z]' run.log | sort -u); do
	[ -e "$path" ] || [ -e "$root/$path" ] || echo "$path"
done >out
[ ! -s out ] && curl -sf "$HAPAX_SERVER/metrics" >out && grep -q "$HAPAX_SERVER/metrics" run.log
result where_to_look_is_there
curl -sf "$HAPAX_SERVER/api/v1/openapi.json" >out
result the_description_of_the_API_is_there

# --- pasted, and pasted again

paste() { bash -c "$(sed -n "$1p" pasted)" >out 2>&1; }
paste 1 && paste 1
[ "$(grep -c '409 WRONG_STATUS' out)" = 2 ] && await 60 grep -q '^close inv-100: ' run.log && [ "$(grep -c '^close inv-100: calls 1, effects 1' run.log)" = 1 ]
result an_invoice_is_closed_once
paste 2 && paste 2 && grep -q '^status *COMPLETED' out && [ "$(grep -c 'nothing was done' out)" = 2 ] && [ "$(ls build/demo/ledger | wc -l)" = 1 ]
result a_run_is_there_once
paste 3 && paste 3 && grep -q ' 40 of 40 items cancelled, [1-9][0-9]* refunded' out && [ "$(grep -c '^balance *1000$' out)" = 1 ]
result every_batch_is_refunded
await 60 eval '[ "$(grep -c "is CANCELLED" run.log)" = 2 ]' && [ -z "$(curl -s "localhost:$port_9001/batch_")" ]
result nothing_that_was_rendered_is_left

# --- killed, started twice, without a port, stopped

old=$(cat build/demo/hapax.pid)
kill -KILL "$old"
await 60 build/hapax entity show invoice inv-100 >out 2>&1 && [ "$(cat build/demo/hapax.pid)" != "$old" ] && grep -q 'died of signal 9; starting it again' run.log
result killed_it_is_there_again
! $demo >out 2>&1 && grep -q 'running already' out && build/hapax entity show invoice inv-100 >out 2>&1
result a_second_one_is_refused
pids="$(cat build/demo/hapax.pid) $(cat "/proc/$runner/task/$runner/children")"
kill "$runner" && wait "$runner"
result it_stops_well
for pid in $pids; do ! kill -0 "$pid" 2>/dev/null || echo "$pid"; done >out
[ ! -s out ] && ! build/hapax job list >out 2>&1 && grep -q 'is `hapax serve` running?' out
result nothing_is_left_running
for port in $port_9000 $port_9001 $port_7411; do
	rm -f taken.log # of the one before
	python3 -c '
import socket, sys, time
taken = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
time.sleep(60)' "$port" >taken.log &
	taker=$!
	walk_terminals="$walk_terminals $taker"
	await 60 grep -qs ready taken.log
	! $demo >out 2>&1 && grep -q "cannot listen on 127.0.0.1:$port: Address already in use" out && [ "$(wc -l <out)" = 2 ]
	result "a_port_that_is_taken_is_named"
	kill "$taker"
	wait "$taker" 2>/dev/null
done
exit 0
