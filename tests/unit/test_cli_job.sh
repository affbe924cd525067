#!/usr/bin/env bash
# hapax job …, by their output and exit codes, against a real server. Help and manual agree. (After-effects as jobs are in
# test_cli_entity.sh.)
set -u
. tests/support/cli.sh

serve
result the_server_is_there
api() { curl -s --max-time 20 "$HAPAX_SERVER/api/v1/jobs$1" -d "$2" >"$dir/api"; }
claim() { # queue, owner; the id and the fence are in $id and $fence
	api /claim "{\"queues\": [\"$1\"], \"owner\": \"$2\", \"max\": 1, \"leaseMs\": 60000, \"waitMs\": ${3:-0}}" &&
		id=$(grep -o 'job_[0-9a-z]*' api | head -1) && fence=$(sed -n 's/.*"fence":\([0-9]*\).*/\1/p' api) && [ -n "$id" ]
}

exits 0 job push mail --payload '{"n": 12345678901234567890.10}' --key k1 && says_like '^job_[0-9a-z]{13}$' && silent err
result push
first=$(cat out)
exits 0 job push mail --key k1 && is out "$first, pushed before with this key" && exits 0 job push post --key k1 && ! says "$first" &&
	exits 0 job push mail --key k1 --json && is out "{\"jobs\":[{\"id\":\"$first\",\"created\":false}]}"
result a_key_is_one_job_in_its_queue
exits 2 job push && exits 2 job push mail --priority 1001 && complains "--priority is a whole number from -1000 to 1000" && exits 2 job push mail --priority x &&
	exits 2 job push mail --run-at yesterday && complains "--run-at is a time like" && complains "a duration like 5m" && exits 2 job push mail --payload '{' && complains "--payload is not JSON"
result push_that_is_not_valid
exits 0 job push later --run-at 1h && exits 0 job push later --run-at 2099-01-01T00:00:00Z && ! claim later me && exits 0 job list --queue later --json &&
	says '"runAt":"2099-01-01T00:00:00.000Z"' && exits 0 why "$(grep -o 'job_[0-9a-z]*' out | tail -1)" && says "is AVAILABLE: waits for its time, 2099"
result push_for_later
echo '"low"' >low.json
exits 0 job push line --payload @low.json --priority -5 && echo '"high"' | "$hapax" job push line --payload - --priority 5 >out && claim line me &&
	grep -q '"payload":"high"' api && claim line me && grep -q '"payload":"low"' api
result the_highest_priority_is_claimed_first

# A worker that waits is woken by the push.
{ claim soon me 20000 && echo "$id" >claimed; } &
waiter=$!
exits 0 job push soon && wait "$waiter" && says "$(cat claimed)"
result push_wakes_a_worker

claim mail ann && [ "$id" = "$first" ] && exits 0 job show "$id" && says_like "^id +$first\$" && says_like '^status +RUNNING$' && says_like '^queue +mail$' &&
	says '{"n": 12345678901234567890.10}' && exits 0 job show "$id" --json && says '"status":"RUNNING"' && exits 4 job show job_0000000000000 && exits 2 job show
result show
exits 0 why "$id" && says 'is with "ann", whose lease lasts until'
result why
api "/$id/fail" "{\"owner\": \"ann\", \"fence\": $fence, \"error\": \"no \\u001b[31mpaper\", \"retryable\": false}" && exits 0 job list --status PARKED &&
	says_like "^$id +PARKED +mail +1 .*no .*paper" && ! grep -q "$(printf '\033')" out && exits 0 job list --queue nothing && lines 1
result list
exits 0 job redrive "$id" && is out "$id: AVAILABLE" && exits 5 job redrive "$id" && exits 4 job redrive x && claim mail bob && [ "$id" = "$first" ] &&
	api "/$id/complete" "{\"owner\": \"bob\", \"fence\": $fence, \"output\": [1]}" && exits 0 job show "$id" && says_like '^status +COMPLETED$'
result redrive
for i in 1 2 3; do "$hapax" job push many --payload "$i" >/dev/null; done
exits 0 job list --queue many --limit 2 && lines 4 && exits 0 job list --queue many --limit 2 --cursor "$(sed -n "s/^there are more: --cursor '\(.*\)'$/\1/p" out)" && lines 2 &&
	exits 0 job list --workspace other && lines 1
result pages
help_is_in_manual job hapax-job.1 && exits 2 job pish && complains 'did you mean "job push"?'
result help_and_manual
exit 0
