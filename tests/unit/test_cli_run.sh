#!/usr/bin/env bash
# hapax run … and hapax why, by their output and exit codes, against a real server. Help, manual and page agree.
set -u
. tests/support/cli.sh

cat >flows/deal.json <<'END'
{ "workflow": "deal", "kind": "run",
  "actions": {
    "Echo": { "kind": "exec", "argv": ["sh", "-c", "cat >>echoed; echo >>echoed; printf '{\"n\": 12345678901234567890.10, \"bell\": \"\\\\u001b[31m\"}'"], "effect": "keyed" },
    "Undo": { "kind": "exec", "argv": ["sh", "-c", "echo undone >>undone"], "effect": "keyed" },
    "Try":  { "kind": "exec", "argv": ["sh", "-c", "echo 'what went wrong is told whole, also when it takes more than a few words' >&2; exit $(cat ends)"] } },
  "steps": [
    { "name": "open",  "type": "task", "action": "Echo", "input": "{who: .input.who}", "save_as": "opened", "compensate": "Undo" },
    { "name": "large", "type": "condition", "when": ".input.total > 100", "then": "agree", "else": "try" },
    { "name": "agree", "type": "approval", "timeout": "1h", "save_as": "agreed" },
    { "name": "try",   "type": "task", "action": "Try", "retry": { "max_attempts": 1 } },
    { "name": "signed", "type": "external_event", "event": "signature", "timeout": "1h", "save_as": "signature" } ],
  "output": "{n: .state.opened.n, by: .state.signature.by}" }
END
echo '{ "workflow": "rest", "kind": "run", "steps": [ { "name": "rest", "type": "wait", "for": "1ms" } ] }' >flows/rest.json
echo '{ "exec": { "enabled": true } }' >config.json
echo 0 >ends
serve --config config.json
result the_server_is_there

id_of() { grep -o 'run_[0-9a-z]*' "$dir/out" | head -1; }
start() { # arguments…; the id is in $id
	exits 0 run start deal "$@" --json
	id=$(id_of)
}
# Shows the run until a line of its picture is like this.
shows() { exits 0 run show "$id" && says_like "$1"; }
becomes() { await shows "$1"; }

# --- start

exits 0 run start deal --key k1 --input '{"who": "ann", "total": 500}' && says_like '^deal run_[0-9a-z]{13}: PENDING, version 1$' && silent err
result start
id=$(id_of)
exits 0 run start deal --key k1 --input '{"who": "bob"}' && says_like "^deal $id: [A-Z]+, version [0-9]+, started before with this key, and with another input\$" &&
	exits 0 run start deal --key k1 --input '{"total": 5e2, "who": "ann"}' && says_like "^deal $id: [A-Z]+, version [0-9]+, started before with this key\$" &&
	exits 0 run start deal --key k1 && says_like "^deal $id: [A-Z]+, version [0-9]+, started before with this key\$"
result the_same_key_is_the_same_run
exits 2 run start rest --key k1 && complains "(422 KEY_REUSED)"
result and_a_key_is_not_for_two_workflows
exits 0 run show deal/k1 --json && says "\"id\":\"$id\"" && exits 4 run show rest/k1 && exits 4 run show deal/k0 && complains "this key has no run of this workflow" &&
	exits 2 run show deal/ && complains "neither the id of a run nor WORKFLOW/KEY"
result a_run_by_its_key
exits 0 run start deal --key k1 --json && says_like '^\{"run":\{"id":"run_.*\},"created":false\}$' && exits 0 run start deal --key k1 --workspace other &&
	! says "$id" && exits 4 run show "$id" --workspace other
result workspaces
exits 2 run start && complains "run start wants WORKFLOW" && exits 2 run start deal x && exits 4 run start dael && complains 'did you mean "deal"?' &&
	exits 2 run start deal --input '{"a":}' && complains "--input is not JSON: 1:6:" && exits 2 run start deal --input '[]' &&
	complains "input must be an object" && exits 2 run start deal --input @nowhere && complains "nowhere cannot be read" &&
	exits 2 run start deal --wait 5 && complains "--wait" && exits 2 run start deal --key "$(printf 'ü%.0s' {1..256})" && complains "255" &&
	exits 2 run start deal --wait forever && complains '"forever" is too many' && exits 2 run start deal --key $'k\xff' && complains "key is not UTF-8"
result start_that_is_not_valid
echo '{"who": "file", "total": 500}' >input.json
start --input @input.json && exits 0 run show "$id" --json && says '"input":{"who": "file", "total": 500}' &&
	"$hapax" run start deal --input - --json <input.json >out && id=$(id_of) && exits 0 run show "$id" && says '{"who": "file", "total": 500}'
result input_of_a_file_and_of_standard_input

# --- show

start --key k2 --input '{"who": "ann", "total": 500}' && becomes '^◷  agree +WAITING' && says_like '^workflow +deal, definition 1$' &&
	says_like '^status +WAITING, version [0-9]+$' && says_like '^key +k2$' &&
	says_like '^✓  open +COMPLETED +1 +[0-9:.]{12} +[0-9.]+m?s +\{"n": 12345678901234567890.10' && says_like '^✓  large .* true$' &&
	says_like '^·  signed +PENDING$' && says_like '^why: .*agree'
result show
! grep -q "$(printf '\033')" out
result no_escape_reaches_a_pipe
COLUMNS=60 exits 0 run show "$id" && says_like '^✓  open .*…$' && [ "$(grep -m 1 '^✓' out | wc -m)" = 61 ] && COLUMNS=nonsense exits 0 run show "$id"
result lines_are_cut
kept=$id
start --input "{\"total\": 500, \"name\": \"$(printf '日%.0s' {1..99})\"}" && COLUMNS=60 exits 0 run show "$id" && says_like '^input .*日…$' &&
	[[ $(grep '^input' out | LC_ALL=C.UTF-8 wc -L) =~ ^(59|60)$ ]]
result lines_with_wide_characters_are_cut
id=$kept
{ printf '{"total": 500, "large": ["' && head -c 600000 /dev/zero | sed 's/\x00/ü/g' | head -c 900000 && printf '"%s]}' "$(head -c 60000 /dev/zero | tr '\0' '\n')." | tr -d . ; } >large.json
kept=$id
start --input @large.json && exits 0 run show "$id" && says_like '^input +\{"total": 500, "large": \["ü+…$' && [ "$(grep '^input' out | wc -m)" = 121 ]
result a_large_value_is_cut
id=$kept
exits 4 run show run_0000000000000 && complains "(404 NOT_FOUND)" && exits 4 run show nonsense && exits 2 run show
result show_what_is_not_there
exits 5 run show "$id" --wait 200ms && says_like '^◷  agree' && complains "the run has not ended within 200ms, it is WAITING" &&
	exits 5 run start deal --key k2 --wait 100ms --json && says_like '^\{"run":\{.*\},"created":false\}$' && complains '"code":"WRONG_STATUS"'
result waiting_that_is_not_enough
script -qec "stty cols 90; '$hapax' run show $id --wait 1100ms" /dev/null >out
grep -q "$(printf '\r\033\\[K')$id WAITING, step agree, 1s" out && grep -q "$(printf '\033\\[33m◷\033\\[0m')  agree" out &&
	[ "$(grep -a ' open ' out | sed 's/\x1b\[[0-9]*m//g' | tr -d '\r\n' | wc -m)" = 90 ]
result progress_and_colours_on_a_terminal
NO_COLOR=1 script -qec "'$hapax' run show $id" /dev/null >out && says "◷  agree"
result no_colours_where_they_are_not_wanted
exits 0 why "$id" && says_like "^$id is WAITING: .*agree" && exits 0 why "$id" --json && says_like '^\{"id":"run_[^"]*","status":"WAITING","why":".+"\}$' &&
	exits 4 why run_0000000000000 && exits 2 why
result why

# --- approve, signal, wait

version=$("$hapax" run show "$id" --json | sed 's/.*"version":\([0-9]*\).*/\1/')
exits 5 run approve "$id" agree --version 1 && complains "(409 CONCURRENCY_ERROR)" && exits 2 run approve "$id" agree --version x &&
	exits 4 run approve "$id" nonsense && exits 2 run approve "$id" &&
	exits 0 run approve "$id" agree --by ann --comment 'it is "fine"' --version "$version" && says_like "^$id: [A-Z]+, version [0-9]+\$" &&
	exits 5 run approve "$id" agree --reject && complains "(409 WRONG_STATUS)"
result approve
becomes '^◷  signed' && says '"comment":"it is \"fine\""'
result the_decision_is_the_output
exits 4 run signal "$id" nonsense && exits 0 run signal "$id" signature --id s1 --data '{"by": "bob"}' && says_like "^$id: [A-Z]+, version [0-9]+\$" &&
	exits 0 run signal "$id" signature --id s1 --data '{"by": "eve"}' && says ", the event was there already: nothing was done" &&
	exits 0 run show "$id" --wait 20s && says_like '^status +COMPLETED' && says_like '^output +\{"n":12345678901234567890.10,"by":"bob"\}$' &&
	exits 0 run start deal --key k2 --wait 1s && says 'output: {"n":12345678901234567890.10,"by":"bob"}'
result signal_and_wait
exits 5 run signal "$id" signature && exits 5 run cancel "$id" && complains "(409 ALREADY_COMPLETED)" && exits 5 run pause "$id" && exits 5 run retry "$id"
result a_run_that_is_past_it
exits 0 run history "$id" && says_like '^SEQ +FROM +TO' && says_like '^1 +PENDING +1 ' && says_like ' COMPLETED ' && exits 0 run history "$id" --limit 1 &&
	says "there are more: --cursor" && exits 4 run history run_0000000000000
result history

# --- reject, fail, retry, unknown, resolve

start --input '{"who": "ann", "total": 500}' && becomes '^◷  agree' && exits 0 run approve "$id" agree --reject --by bob && becomes '^✗  agree +FAILED' &&
	says_like '^status +FAILED' && says_like '^error +.*REJECTED' && [ "$(grep -c '^error' out)" -eq 1 ] && exits 7 run show "$id" --wait 1s && complains "the run is FAILED at step agree"
result reject
echo 75 >ends
exits 7 run start deal --input '{"total": 1}' --wait 20s && complains "the run is FAILED at step try: exit code 75: what went wrong is told whole, also when it takes more than a few words" && says_like '^deal run_.*: FAILED'
result a_run_that_fails
id=$(id_of)
echo 0 >ends
exits 0 run retry "$id" && says_like "^$id: [A-Z]+, version [0-9]+\$" && becomes '^◷  signed' && says_like '^✓  try +COMPLETED' && says_like '^↷  agree +SKIPPED' &&
	[ "$(grep -c "\"id\":\"$id\"" echoed)" = 1 ]
result retry_repeats_nothing_that_is_done
echo 1 >ends
start --input '{"total": 1}' && becomes '^\?  try +UNKNOWN' && exits 0 run list --unknown && says "$id" && lines 2 && exits 0 why "$id" && says "person"
result a_step_that_is_unknown
exits 2 run resolve "$id" try maybe && exits 5 run resolve "$id" open "done" && exits 0 run resolve "$id" try "done" --output '{"found": 1}' &&
	becomes '^◷  signed' && says_like '^✓  try .*\{"found": 1\}' && exits 5 run resolve "$id" try not_done
result resolve

# --- pause, resume, cancel

exits 0 run pause "$id" && says_like "^$id: PAUSED, version" && exits 0 run signal "$id" signature --data '{"by": "p"}' && exits 0 run show "$id" &&
	says_like '^status +PAUSED' && exits 0 run resume "$id" && exits 0 run show "$id" --wait 20s && says '"by":"p"'
result pause_and_resume
exits 0 run start deal --key 'a/b c' --input '{"who": "ann", "total": 500}' --json && id=$(id_of) && becomes '^◷  agree' && exits 0 run approve 'deal/a/b c' agree &&
	becomes '^\?  try' && exits 0 run resolve 'deal/a/b c' try done && exits 0 run signal 'deal/a/b c' signature --data '{"by": "q"}' && exits 0 run show 'deal/a/b c' --wait 20s && says '"by":"q"'
result verbs_by_the_key_of_a_run
start --input '{"who": "ann", "total": 500}' && becomes '^◷  agree' && exits 5 run cancel "$id" --version 1 && exits 0 run cancel "$id" &&
	exits 0 run cancel "$id" && becomes '^status +CANCELLED' && says_like '^↶  open +UNDONE' && exits 7 run show "$id" --wait 1s &&
	complains "the run is CANCELLED" && [ "$(wc -l <undone)" = 1 ]
result cancel

# --- list

exits 0 run list && says_like '^ID +WORKFLOW +STATUS +VERSION +STEP' && exits 0 run list --status CANCELLED && lines 2 && says "$id" &&
	exits 0 run list --status COMPLETED --workflow deal && says k2 && exits 0 run list --workflow nothing && lines 1 && exits 2 run list --status nonsense &&
	exits 0 run list --limit 2 && lines 4 && exits 0 run list --limit 2 --cursor "$(sed -n "s/^there are more: --cursor '\(.*\)'$/\1/p" out)" && ! says "$id" &&
	exits 0 run list --json && says '"cursor":null'
result list
exits 69 run list --server http://127.0.0.1:1 && complains 'is `hapax serve` running?'
result no_server
waits() { exits 0 run list --status WAITING && says k9; }
"$hapax" run start deal --key k9 --input '{"total": 500}' --wait 20s >waited 2>&1 &
waiter=$!
await waits
kill -KILL "$server" && wait "$server" 2>/dev/null
server=
wait "$waiter"
[ $? -eq 8 ] && grep -q 'not known' waited
result a_server_that_goes_away_while_one_waits

# --- help, manual, page

exits 0 run start --help && says "default: http://127.0.0.1:7411" && says "[default: {}]" && says "exit codes" && exits 2 run strat &&
	complains 'did you mean "run start"?' && help_is_in_manual run hapax-run.1 && echo "hapax why" | in_manual hapax-run.1
result help_and_manual
awk '/^```json definition/ { n++; file = sprintf("page%d.json", n); next } /^```/ { file = ""; next } file != "" { print >file }' "$root/docs/runs.md"
exits 0 check --strict page*.json
result the_definitions_of_the_page_are_clean
exit 0
