#!/usr/bin/env bash
# Every command that `hapax --help` lists, looked at in the same way: help, unknown options, operands, --json, exit codes, the
# manual; what the contract promises; and every place where a misspelt name is answered with the nearest.
#
# A new command has to be given something to do below ("does"), otherwise every_command_was_seen_at_work says so.
set -u
. tests/support/cli.sh

gate=
finish() {
	for pid in $gate $server; do kill "$pid" 2>/dev/null && wait "$pid"; done
	rm -rf "$dir"
}
unset HAPAX_GATE_UPSTREAM HAPAX_GATE_LISTEN HAPAX_GATE_ADMIN HAPAX_GATE_ADMIN_KEY HAPAX_GATE_STORE HAPAX_GATE_CONFIG
"$hapax" --help | sed -n 's/^  \([a-z]\+\( [a-z-]\+\)\?\)  .*/\1/p' >all
[ "$(wc -l <all)" -gt 44 ] && [ "$(cut -d ' ' -f 1 all | uniq | wc -l)" = "$(cut -d ' ' -f 1 all | sort -u | wc -l)" ]
result the_list_of_commands_by_noun
nowhere=http://127.0.0.1:1

bad=
note() { bad="$bad$*
"; }
sums_up() { # name; fails if anything was noted
	[ -z "$bad" ] || printf '%s' "$bad"
	[ -z "$bad" ]
	result "$1"
	bad=
}
each() { # function: called with the words of every command
	local noun verb
	while read -r noun verb <&3; do "$1" $noun $verb; done 3<all
}
# What the help of a command lists, between blanks.
declare -A options codes
has_option() { [[ ${options[${*:2}]-} == *" $1 "* ]]; }
has_code() { [[ ${codes[${*:2}]-} == *" $1 "* ]]; }
contains() { [[ $(<"$1") == *"$2"* ]]; } # file, text; without a process, since this is asked a thousand times

# --- help: the same shape everywhere

mkdir helps
save_help() {
	# Of several commands that a noun shows, the one meant: its part begins with "hapax NOUN: " or "hapax NOUN VERB: ".
	exits 0 "$@" --help && silent err || note "$*: --help fails, or writes to standard error"
	awk -v head="hapax $*: " '/^hapax [a-z -]*: / { mine = index($0, head) == 1 } mine' out >"helps/$*"
	[ $# -lt 2 ] || "$hapax" "$@" -h | cmp -s - "helps/$*" || note "$*: -h is not --help"
	options[$*]=" $(grep -oE '^  --[a-z-]+' "helps/$*" | tr -d '\n') "
	codes[$*]=" $(sed -n '/^exit codes:/,$s/^  \([0-9]\+\) .*/\1/p' "helps/$*" | tr '\n' ' ')"
	[ -z "$(tr ' ' '\n' <<<"${codes[$*]}" | sed '/^$/d' | uniq -d)" ] || note "$*: an exit code stands there twice"
	contains "helps/$*" "usage: hapax $*" && has_option --help "$@" || note "$*: no usage, or no --help"
	has_code 0 "$@" && has_code 2 "$@" && has_code 70 "$@" || note "$*: exit codes 0, 2 or 70 are missing"
}
each save_help
sums_up help
# An option with a value says what holds without it: a default, an environment, or that it is needed.
says_default() {
	awk -v command="$*" '
	function judge() { if (option != "" && text !~ /default|needed/) print command ": " option " has no default, and does not say that it is needed" }
	/^  --[a-z-]+ \[?[A-Z]/ { judge(); option = $1; text = $0; next }
	/^  --/ || /^exit codes/ { judge(); option = ""; next }
	{ text = text $0 }' "helps/$*" >missing
	[ ! -s missing ] || note "$(cat missing)"
}
each says_default
sums_up every_value_has_a_default_or_is_needed
same_words() { # an option is the same in all commands that speak to a server, which is said by --server URL
	for option in server key-file workspace requester timeout limit cursor; do
		grep -A 3 "^  --$option " "helps/$*" | sed -n "1p; /environment:/p" >>"same.$option"
	done
}
grep -lE '^  --server URL' helps/* | sed 's|helps/||' >clients
while read -r noun verb <&3; do same_words $noun $verb; done 3<clients
for option in server key-file workspace requester timeout limit cursor; do [ "$(grep -- "^  --$option" "same.$option" | sort -u | wc -l)" = 1 ] || note "--$option differs"; done
sums_up the_same_option_is_the_same_everywhere

# --- what is not valid: exit code 2, nothing on standard output, the nearest named; as JSON too

# What is in err is one line, an object with this code. That they are JSON, all of them, is asked in the end.
: >errors
is_error() { # name of the code
	local line
	cat err >>errors
	line=$(<err)
	[[ $line == '{"code":"'$1'","title":"'?*'","detail":"'?*'"}' && $line != *$'\n'* ]]
}
mapfile -t many < <(yes x | head -n 1030)
refuses() {
	exits 2 "$@" --no-such-option && silent out && contains err "has no option --no-such-option" && ! contains err "did you mean" || note "$*: unknown option"
	exits 2 "$@" --no-such-option --json && silent out && is_error VALIDATION_ERROR || note "$*: unknown option as JSON"
	exits 2 "$@" --hlep && contains err "did you mean --help?" || note "$*: --hlep"
	exits 2 "$@" "${many[@]}" && silent out || note "$*: too many operands"
}
each refuses
sums_up what_is_not_known_is_refused
wants_operands() {
	if grep -qE "^usage: hapax $* [A-Z]|^usage: hapax $* [a-z|]+ \[" "helps/$*"; then
		exits 2 "$@" && silent out && complains "$*" || note "$*: without operands"
	fi
	if [ "$(cut -d ' ' -f 1 all | grep -cx "$1")" -gt 1 ] && ! grep -qx "$1" all; then
		exits 2 "$1" && complains "hapax $1 --help" || note "$1 alone"
	fi
}
each wants_operands
sums_up what_is_missing_is_said
last=
misspelt() {
	[ "$1" = "$last" ] || { exits 2 "${1}x" && contains err "did you mean \"$1\"?"; } || note "${1}x"
	last=$1
	[ $# -lt 2 ] || grep -qx "$1" all || { exits 2 "$1" "${2}x" && contains err "did you mean \"$1 $2\"?"; } || note "$1 ${2}x"
}
each misspelt
sums_up the_nearest_command_is_named
without_json() { has_option --json "$@" || echo "$@"; }
[ "$(each without_json | tr '\n' ' ')" = "serve dev gate " ] # which have no result, but a line when they are ready
result json_is_an_option_of_every_command_with_a_result

# --- at work: a server, a gate, a store, and something to do for every command

cat >flows/doc.json <<'END'
{ "workflow": "doc", "kind": "entity", "status_types": ["draft", "sending", "sent", "lost"], "initial_status": "draft",
  "actions": { "Odd": { "kind": "exec", "probe": "Ask", "argv": ["sh", "-c", "exit 1"] }, "Ask": { "kind": "exec", "argv": ["echo", "{\"outcome\":\"done\"}"] } },
  "steps": [ { "step_id": 1, "step_key": "send", "status": "draft", "successful_state": "sent" },
             { "step_id": 2, "step_key": "lose", "status": "sent", "claim_state": ["sending", "sent"], "action": "Odd", "successful_state": "lost", "on_unknown": "hold" } ] }
END
cat >flows/deal.json <<'END'
{ "workflow": "deal", "kind": "run", "actions": { "Ask": { "kind": "exec", "argv": ["echo", "{\"outcome\":\"not_done\"}"] }, "Try": { "kind": "exec", "probe": "Ask", "argv": ["sh", "-c", "exit $(cat ends)"] } },
  "steps": [ { "name": "agree", "type": "approval" }, { "name": "signed", "type": "external_event", "event": "signature" },
             { "name": "try", "type": "task", "action": "Try", "retry": { "max_attempts": 1 } } ] }
END
cat >flows/render.json <<'END'
{ "workflow": "render", "kind": "batch", "actions": { "Ask": { "kind": "exec", "argv": ["echo", "{\"outcome\":\"unknown\"}"] }, "one": { "kind": "exec", "probe": "Ask", "argv": ["sh", "-c", "exit $(cat ends)"] } }, "item_action": "one", "retry": { "max_attempts": 1 } }
END
echo '{ "modules": { "doc": { "janitor": {} } }, "exec": { "enabled": true } }' >config.json
echo 0 >ends
"$hapax" db migrate >out
serve --config config.json
api() { curl -s --max-time 20 "$HAPAX_SERVER/api/v1/$1" -d "$2" "${@:3}"; }
api accounts '{"id": "ann", "balance": 1000}' >out
echo '{"routes": [{"match": "POST /api/v1/jobs/claim", "on_lost": "hold", "upstream_timeout": "100ms", "processing_ttl": "200ms"}]}' >gate.json
"$hapax" gate --upstream "$HAPAX_SERVER" --listen 127.0.0.1:0 --admin 127.0.0.1:0 --store memory: --config gate.json >gate.ready 2>gate.log &
gate=$!
await test -s gate.ready
HAPAX_GATE_ADMIN=$(sed -n 's/.*"admin":"\([^"]*\)".*/\1/p' gate.log)
export HAPAX_GATE_ADMIN
for key in g1 g2; do curl -s --max-time 20 "$(sed 's/^ready //' gate.ready)/api/v1/jobs" -H "Idempotency-Key: $key" -d '{"queue": "q"}'; done | jq -s -e 'length == 2' >out
result server_and_gate_are_there
echo '{"cost": 1}' >items

# Runs a command, and judges its exit code: it is the wanted one, and its help knows it. Standard output has no escapes.
: >seen
try() { # code, words of the command as one, arguments…
	local wanted=$1 words=$2
	shift 2
	echo "$words" >>seen
	exits "$wanted" $words "$@" || { note "hapax $words $*: exit code is not $wanted: $(<err)" && return 1; }
	has_code "$wanted" "$words" || note "$words: its help does not know exit code $wanted"
	! contains out $'\033' && ! contains err $'\033' || note "$words: an escape in a pipe"
}
does() { # words, arguments…: succeeds; with --json its result is one JSON value, and nothing is said beside it
	try 0 "$1" "${@:2}" --json && { jq -s -e 'length == 1' <out >/dev/null 2>&1 || note "$1 --json: not one JSON value"; } && { silent err || note "$1 --json: $(<err)"; }
}
tells() { try 0 "$@" && { [ -s out ] || note "$1: says nothing"; } && { ! jq -e . <out >/dev/null 2>&1 || note "$1: JSON without --json"; }; }
fails() { # code, its name, words, arguments…: the error is an object, with --json
	try "$1" "$3" "${@:4}" && { silent out || note "$3: a result beside the error"; } && { [[ $(<err) != *$'\n'* ]] || note "$3: not one line: $(<err)"; }
	try "$1" "$3" "${@:4}" --json && { is_error "$2" || note "$3 --json: not $2: $(<err)"; }
}
field() { jq -r "$1" <out; }
becomes() { # run, status
	await eval "\"\$hapax\" run show $1 --json | jq -e '.status == \"$2\"' >/dev/null" || note "$1 does not become $2"
}

does init made && tells init made2 && fails 5 ALREADY_EXISTS init made && fails 70 INTERNAL init no/where
does check made/workflows --strict && tells check flows
try 1 check nowhere.json --json && is_error DEFINITION_INVALID && jq -e '.errors == 1' <out >/dev/null || note "check --json"
try 1 graph nowhere.json --json && silent out && jq -s -e '.[0].errors == 1 and .[1].code == "DEFINITION_INVALID"' <err >/dev/null || note "graph --json: $(<err)"
try 0 graph flows/doc.json --json && says '<svg ' || note graph
try 0 explore flows/doc.json && says complete || note explore
try 0 explore flows/doc.json --json && jq -e '.verdict == "complete"' <out >/dev/null || note "explore --json"
try 2 explore nowhere.json && complains nowhere.json || note "explore of nothing"
echo '{ "tests": [ { "name": "t", "then": { "ledger": {} } } ] }' >flows/doc.test.json
try 0 test flows/doc.test.json && says "1 test, 0 failed" || note test
try 0 test flows --json && jq -e '.tests == 1 and .failed == 0' <out >/dev/null || note "test --json"
try 2 test nowhere.json && complains nowhere.json || note "test of nothing"
try 0 completion bash --json && says complete || note completion
sums_up without_a_server

does "entity create" doc d1 && tells "entity create" doc d2 && fails 5 ALREADY_EXISTS "entity create" doc d1
does "entity show" doc d1 && tells "entity show" doc d1 && does "entity list" doc && tells "entity list" doc && tells "entity list" doc --where 'id == "d1"' && does "entity history" doc d1 && tells "entity history" doc d1
does evidence entity:doc:d1 && tells evidence entity:doc:d1 -o d1.json && does evidence entity:doc:d1 -o d1.json && does audit --bundle d1.json && tells audit --bundle d1.json &&
	fails 2 VALIDATION_ERROR audit --bundle nowhere.json && fails 70 INTERNAL evidence entity:doc:d1 -o no/where
does "entity data" doc d1 '{"a":1}' --version 1 && tells "entity data" doc d2 '{"a":1}' --version 1 && fails 5 CONCURRENCY_ERROR "entity data" doc d1 '{}' --version 1
does "entity fire" doc d1 send && tells "entity fire" doc d2 send && fails 5 WRONG_STATUS "entity fire" doc d1 send
try 8 "entity fire" doc d1 lose --json && is_error OUTCOME_UNKNOWN && try 8 "entity fire" doc d2 lose || note "entity fire: $(<err)"
fails 5 CLAIM_FAILED "entity fire" doc d2 lose && does "entity probe" doc d1 lose && tells "entity probe" doc d1 lose && does "entity resolve" doc d1 lose "done" && fails 5 WRONG_STATUS "entity probe" doc d1 lose && tells "entity resolve" doc d2 lose not_done
printf '"%01100000d"' 0 >large
fails 6 TOO_LARGE "entity create" doc d3 --data @large
sums_up entity
does "run start" deal && run=$(field .run.id) && tells "run start" deal && does "run show" "$run" && tells "run show" "$run" && does "run list" && tells "run list" && does "run counts" && tells "run counts" --workflow deal
becomes "$run" WAITING
does "run history" "$run" && tells "run history" "$run" && does "run pause" "$run" && does "run resume" "$run" && fails 5 WRONG_STATUS "run resume" "$run" && becomes "$run" WAITING
does "run approve" "$run" agree && fails 5 WRONG_STATUS "run approve" "$run" agree && echo 75 >ends && does "run signal" "$run" signature && becomes "$run" FAILED
try 7 "run show" "$run" --wait --json && jq -s -e 'length == 1' <out >/dev/null && is_error ACTION_FAILED || note "run show --wait --json"
echo 1 >ends
does "run retry" "$run" && becomes "$run" WAITING && does "run probe" "$run" try && tells "run probe" "$run" try && does "run resolve" "$run" try "done" && becomes "$run" COMPLETED && fails 5 ALREADY_COMPLETED "run cancel" "$run"
does "run migrate" "$run" --to 1 --rename agree=accept --dry-run && tells "run migrate" "$run" --to 1 && fails 5 WRONG_STATUS "run migrate" "$run" --to 99
does "run restart" "$run" --from agree && new=$(field .id) && fails 5 RESTARTED "run restart" "$run" --from agree && run=$new
does "run start" deal && does "run cancel" "$(field .run.id)" && does why "$run" && tells why "$run" && does attention && tells attention
try 5 "run start" deal --wait 10ms --json && jq -s -e 'length == 1' <out >/dev/null && is_error WRONG_STATUS || note "run start --wait --json"
sums_up run
does "batch start" render --account ann --items items --hold && batch=$(field .id) && does "batch add" "$batch" --items items && does "batch start" "$batch" && does "batch show" "$batch" &&
	tells "batch show" "$batch" && does "batch show" "$batch" --items && does "batch items" "$batch" && tells "batch items" "$batch" && does "batch list" && tells "batch list"
unknown() { [ "$("$hapax" batch show "$batch" --json | jq .unknown)" = 2 ]; }
await unknown || note "items do not become unknown"
does "batch probe" "$batch" 0 && tells "batch probe" "$batch" 0 && does "batch resolve" "$batch" 0 "done" && fails 5 WRONG_STATUS "batch probe" "$batch" 0 && does "batch accept" "$batch" 0 && tells "batch resolve" "$batch" 1 "done" && try 0 "batch show" "$batch" --wait 10s --json
fails 5 ALREADY_COMPLETED "batch cancel" "$batch" && does "batch start" render --account ann --items items --hold && does "batch cancel" "$(field .id)" && fails 5 WRONG_STATUS "batch add" "$batch" --items items
sums_up batch
does "account create" eve && tells "account create" mallory --balance 5 && fails 5 ALREADY_EXISTS "account create" eve && does "account show" eve && tells "account show" eve && does "account list" &&
	tells "account list" && does "account credit" eve 5 --key k && tells "account credit" eve 5 --key k && fails 5 ALREADY_EXISTS "account credit" eve 6 --key k && does "account ledger" eve && tells "account ledger" eve
sums_up account
does "schedule put" daily --workflow deal --cron "0 3 * * *" && tells "schedule put" daily --workflow deal --every 1d && fails 2 VALIDATION_ERROR "schedule put" daily --workflow deal --cron nonsense &&
	does "schedule show" daily && tells "schedule show" daily && does "schedule list" && tells "schedule list" && does "schedule trigger" daily --id x && tells "schedule trigger" daily --id x &&
	does "schedule pause" daily && tells "schedule resume" daily && does "schedule resume" daily && tells "schedule pause" daily &&
	does "schedule backfill" daily --from 2026-01-01T00:00:00Z --to 2026-01-01T00:00:00Z && tells "schedule backfill" daily --from 2026-01-01T00:00:00Z --to 2026-01-01T00:00:00Z && does "schedule delete" daily
sums_up schedule
does "bulk cancel" --where 'workflow == "nothing"' --dry-run && tells "bulk cancel" --where 'workflow == "nothing"' --dry-run && does "bulk cancel" --where 'workflow == "deal"' --reason tidy --key k && bulk=$(field .id) &&
	fails 2 KEY_REUSED "bulk cancel" --where 'workflow == "doc"' --key k && fails 2 BAD_QUERY "bulk cancel" --where 'nonsense ==' && fails 2 VALIDATION_ERROR "bulk cancel" &&
	does "bulk show" "$bulk" --wait && tells "bulk show" "$bulk" && does "bulk items" "$bulk" && tells "bulk items" "$bulk" && does "bulk cancel" "$bulk" && tells "bulk cancel" "$bulk" &&
	does "bulk retry" --where 'workflow == "deal"' --wait && tells "bulk retry" --where 'workflow == "deal"' --wait && does "bulk resume" --where 'workflow == "deal"' && tells "bulk resolve" try "done" --where 'workflow == "deal"' &&
	does "bulk signal" signature --where 'workflow == "deal"' --data '{}' && does "bulk migrate" --where 'workflow == "deal"' --to 1 --rename agree=accept && does "bulk redrive" --where 'status == "PARKED"' &&
	does "bulk start" --where 'status == "PENDING"' && tells "bulk start" --where 'status == "PENDING"' --dry-run && does "bulk cancel" --kind batch --where 'total > 9' --dry-run &&
	tells "bulk redrive" --where 'status == "PARKED"' --dry-run && fails 2 VALIDATION_ERROR "bulk retry" --where 'key == null' --dry-run --wait
sums_up bulk
does "job push" q --key k && job=$(field '.jobs[0].id') && does "job show" "$job" && tells "job show" "$job" && does "job list" && tells "job list" && tells "job push" q && fails 5 WRONG_STATUS "job redrive" "$job"
does "job push" p && job=$(field '.jobs[0].id') && fence=$(api jobs/claim '{"queues": ["p"], "owner": "me", "max": 1, "leaseMs": 60000}' | jq '.jobs[0].fence') &&
	api "jobs/$job/fail" "{\"owner\": \"me\", \"fence\": $fence, \"error\": \"no\", \"retryable\": false}" >out && does "job redrive" "$job"
sums_up job
does "gate show" g1 && tells "gate show" g1 && does "gate forget" g1 && tells "gate forget" g2 && fails 4 NOT_FOUND "gate show" g1 && fails 4 NOT_FOUND "gate forget" g1
for key in h1 h2; do curl -s --max-time 20 "$(sed 's/^ready //' gate.ready)/api/v1/jobs/claim" -H "Idempotency-Key: $key" -d '{"queues": ["none"], "owner": "me", "waitMs": 5000}' >out; done
held() { [ "$("$hapax" gate list --held --json | jq '.items | length')" = 2 ]; }
await held || note "records do not become held"
does "gate list" && tells "gate list" --held && does "gate resolve" h1 --done && tells "gate resolve" h2 --not-done && fails 4 NOT_FOUND "gate resolve" h2 --done && fails 2 VALIDATION_ERROR "gate resolve" h1
for words in "gate show" "gate forget"; do fails 69 SERVER_UNAVAILABLE "$words" g1 --admin 127.0.0.1:1; done
sums_up gate
"$hapax" db migrate --db sqlite:keys.db >out
does "key create" --scope read --db sqlite:keys.db && key=$(field .id) && does "key list" --db sqlite:keys.db && tells "key list" --db sqlite:keys.db && does "key revoke" "$key" --db sqlite:keys.db &&
	tells "key revoke" "$key" --db sqlite:keys.db && fails 4 NOT_FOUND "key revoke" key_0000000000001 --db sqlite:keys.db
does audit && tells audit && does "db status" && tells "db status" && does "db migrate" && tells "db migrate" && does "db migrate" --print --db sqlite:new.db
does "db backup" copy.db && tells "db backup" copy2.db && fails 5 ALREADY_EXISTS "db backup" copy.db && does "db raise-fences" && tells "db raise-fences"
sums_up the_store
sort -u seen | comm -23 <(grep -vx 'serve\|dev\|dashboard\|gate' all | sort) - >unseen
[ ! -s unseen ] || { echo "nothing to do was given to:" && cat unseen && false; }
result every_command_was_seen_at_work

# --- what is not there, and who is not: the same code for all

not_there() {
	local words=$*
	case $words in
	"entity create" | "entity list" | "run list" | "run counts" | "batch list" | "account create" | "account list" | "job push" | "job list" | "schedule list") return ;;
	"bulk cancel" | "bulk show" | "bulk items") set -- bulk_0000000000001 ;;
	"schedule put") set -- nothing --workflow nothing --every 1d ;;
	"schedule backfill") set -- nothing --from 2026-01-01T00:00:00Z --to 2026-01-01T00:00:00Z ;;
	"schedule "*) set -- nothing ;;
	"entity fire") set -- doc nobody send ;;
	"entity resolve") set -- doc nobody lose "done" ;;
	"entity probe") set -- doc nobody lose ;;
	"entity data") set -- doc nobody '{}' --version 1 ;;
	"entity "*) set -- doc nobody ;;
	"run start") set -- nothing ;;
	"batch start") set -- nothing --account ann --items items ;;
	"batch add") set -- batch_0000000000001 --items items ;;
	"batch accept" | "batch probe") set -- batch_0000000000001 0 ;;
	"run signal") set -- run_0000000000001 signature ;;
	"run approve") set -- run_0000000000001 agree ;;
	"run restart") set -- run_0000000000001 --from agree ;;
	"run migrate") set -- run_0000000000001 --to 2 ;;
	"run resolve") set -- run_0000000000001 try "done" ;;
	"run probe") set -- run_0000000000001 try ;;
	"batch resolve") set -- batch_0000000000001 0 "done" ;;
	"run "* | "batch "* | "job "*) set -- "$1_0000000000001" ;;
	"account credit") set -- nobody 5 --key k ;;
	"account "*) set -- nobody ;;
	why | evidence) set -- nonsense ;;
	*) return ;;
	esac
	fails 4 NOT_FOUND "$words" "$@"
}
each not_there
for words in audit "db status" "db backup" "db raise-fences" "key list" "key create" "key revoke"; do
	arguments=()
	case $words in "key create") arguments=(--scope read) ;; "key revoke") arguments=(key_0000000000001) ;; "db backup") arguments=(x.db) ;; esac
	fails 4 NOT_FOUND "$words" "${arguments[@]}" --db sqlite:nothing.db
	echo "this is a letter, not a database, and it is long enough to be looked at as one" >letter.db
	fails 69 STORE_UNAVAILABLE "$words" "${arguments[@]}" --db sqlite:letter.db
	fails 78 CONFIG_ERROR "$words" "${arguments[@]}" --db mysql://nowhere
done
sums_up what_is_not_there_is_4
no_server() {
	local operands
	grep -q "^  --server URL" "helps/$*" || return
	operands=$(sed -n "s/^usage: hapax $*\(\( [A-Z]\+\)*\).*/\1/p" "helps/$*")
	case $* in
	"batch start") operands="render --account ann --items items" ;;
	"batch add") operands="batch_0000000000001 --items items" ;;
	"account credit") operands="ann 5 --key k" ;;
	"entity data") operands="doc d1 {} --version 1" ;;
	"schedule backfill") operands="daily --from 2026-01-01T00:00:00Z --to 2026-01-01T00:00:00Z" ;;
	"run restart") operands="run_0000000000001 --from agree" ;;
	"bulk cancel" | "bulk retry" | "bulk resume" | "bulk start" | "bulk redrive") operands="--where key==null" ;;
	"bulk resolve") operands="try done --where key==null" ;;
	"bulk signal") operands="go --where key==null" ;;
	"bulk migrate") operands="--where key==null --to 2" ;;
	"run migrate") operands="run_0000000000001 --to 2" ;;
	*" resolve") operands="$operands done" ;;
	esac
	fails 69 SERVER_UNAVAILABLE "$*" $operands --server $nowhere
}
each no_server
sums_up no_server_is_69

jq -c 'select((.code | length > 0) and (.title | length > 0) and (.detail | length > 0))' <errors >out 2>err && [ "$(wc -l <out)" = "$(wc -l <errors)" ] && [ "$(wc -l <errors)" -gt 80 ]
result errors_are_json

# --- colours and progress: on a terminal, and there only where they are wanted

on_terminal() { script -qec "$*" /dev/null </dev/null >out 2>err; }
escapes() { grep -q "$(printf '\033')\\[[0-9;]*m" out; }
echo '{' >broken.json
TERM=xterm on_terminal "'$hapax' check broken.json" || :
escapes && TERM=xterm on_terminal "'$hapax' run show $run" && escapes
result colours_on_a_terminal
{ NO_COLOR=1 TERM=xterm on_terminal "'$hapax' check broken.json" || :; } && ! escapes && NO_COLOR=1 TERM=xterm on_terminal "'$hapax' run show $run" && ! escapes &&
	{ TERM=dumb on_terminal "'$hapax' check broken.json" || :; } && ! escapes && TERM=dumb on_terminal "'$hapax' run show $run" && ! escapes
result none_where_they_are_not_wanted
for words in "entity list doc" "entity show doc d1" "run list" "run show $run" "batch list" "batch show $batch" "batch items $batch" "account list" "account show eve" "account ledger eve" "job list" "why $run" audit "db status"; do
	NO_COLOR=1 TERM=xterm on_terminal "'$hapax' $words" && ! escapes || note "$words"
done
sums_up no_command_colours_without_being_allowed

# --- names that are misspelt

means() { # exit code, what was meant, arguments…
	exits "$1" "${@:3}" && complains "did you mean $2?" || note "hapax ${*:3}: not \"did you mean $2?\": $(<err)"
}
means 4 '"doc"' entity create dok x
means 4 '"doc"' entity show dok x
means 4 '"doc"' entity list dok
means 4 '"doc"' entity fire dok x send
means 4 '"doc"' entity resolve dok x send "done"
means 4 '"doc"' entity data dok x '{}' --version 1
means 4 '"doc"' entity history dok x
means 4 '"doc"' why entity:dok:x
means 4 '"deal"' run start dael
means 4 '"render"' batch start rendr --account ann --items items
means 4 '"send"' entity fire doc d1 sned
means 4 '"lose"' entity resolve doc d1 loose "done"
means 2 '"sending"' entity list doc --status sendign
means 4 '"agree"' run approve "$run" agre
means 4 '"signature"' run signal "$run" signatur
means 4 '"try"' run resolve "$run" tri "done"
means 2 COMPLETED run list --status completed
means 2 CANCELLING run list --status CANCELING
means 2 OUT_OF_CREDIT batch list --status OUT_OF_CREDITS
means 2 SUCCEEDED batch items "$batch" --status SUCEEDED
means 2 accepted batch items "$batch" --decision acepted
means 2 PARKED job list --status PARKD
means 2 execute key create --scope exeute
means 2 zsh completion zhs
means 0 '"deal"' run list --workflow dael
means 0 '"render"' batch list --workflow rendr
means 2 '"--version"' --verison
exits 2 --server x run list && complains "options stand after the command" && exits 2 run --limit 5 list && complains "options stand after the command" || note "an option in front of the command: $(<err)"
for words in "run start doc" "batch start deal --account ann --items items" "entity create render"; do
	exits 4 $words && complains "is of kind" || note "hapax $words: $(<err)"
done
curl -s --max-time 20 "$HAPAX_SERVER/api/v1/functions/claim" -d '{"worker": "w", "functions": [{"name": "greeting", "version": "1"}], "waitMs": 0}' >out
exits 0 run list --workflow greeting && silent err && exits 0 run list --workflow greting && complains 'did you mean "greeting"?' || note "functions are runs: $(<err)"
exits 0 run list --workflow doc && complains 'no workflow "doc"' && exits 0 run list --workflow dael --json && silent err && exits 0 batch list --workflow render && silent err || note "a hint too many"
# The API says it to those who ask it themselves.
for path in "workflow-runs?status=completed:COMPLETED" "jobs?status=PARKD:PARKED" "batches?status=QUEUD:QUEUED" "batches/$batch/items?status=FAILD:FAILED" "batches/$batch/items?decision=acepted:accepted"; do
	curl -s --max-time 20 "$HAPAX_SERVER/api/v1/${path%:*}" | jq -e --arg word "${path##*:}" '.code == "VALIDATION_ERROR" and (.detail | contains("did you mean \"" + $word + "\"?"))' >out || note "$path"
done
sums_up the_nearest_name_is_named

# --- the manual: every command, option and exit code, in the page of its noun, or in hapax(1)

declare -A said
for page in "$root"/man/*.1; do
	name=${page##*/}
	sed 's/\\-/-/g; s/\\f[BIRP]//g; s/\\&//g' "$page" >page
	said[$name]=" $(grep -oE -- '--[a-z-]+' page | sort -u | tr '\n' ' ') $(sed -n 's/^\.B \([0-9]\+\)$/=\1/p' page | tr '\n' ' ') $(tr -s '\n"' '  ' <page)"
done
in_its_page() {
	local page=hapax-$1.1 word
	[ -n "${said[$page]-}" ] || page=hapax.1
	[[ ${said[$page]} == *"hapax $* "* ]] || note "$*: not in $page"
	for word in ${options[$*]} $(printf '=%s ' ${codes[$*]}); do [[ ${said[$page]} == *" $word "* ]] || note "$*: ${word/=/exit code } is not in $page"; done
}
each in_its_page
for code in $(sed -n 's/^\tX([A-Z_]*, [0-9]*, [0-9]*, \([0-9]*\), ".*/\1/p' "$root/include/hapax.h" | sort -un); do [[ ${said[hapax.1]} == *" =$code "* ]] || note "exit code $code is not in hapax.1"; done
for noun in $(cut -d ' ' -f 1 all | uniq); do [[ ${said[hapax.1]} == *"hapax $noun "* ]] || note "hapax $noun is not in hapax.1"; done
sums_up the_manual_has_everything

# --- the contract: these commands, with these options

while read -r line; do
	words=${line%%:*}
	[ -s "helps/$words" ] || { note "there is no hapax $words" && continue; }
	for option in ${line#*:}; do has_option "$option" $words || note "$words has no $option"; done
done <<'END'
serve: --db --listen --workflows --config --node --no-migrate --tls-terminated --test-clock
dev: --db --listen --workflows --config --node --no-migrate --tls-terminated
gate: --upstream --listen --admin --store --config --no-migrate
gate list: --held --json
gate show: --json
gate resolve: --done --not-done --json
gate forget: --json
check: --config --strict --json
explore: --world --nodes --callers --crashes --pauses --lost --seconds --seed --html --json --junit --sarif
test: --watch --json --junit
graph: --output --json
entity create: --server --json
entity show: --server --json
entity fire: --server --json
entity list: --server --json
attention: --kind --limit --cursor --server --json
run start: --server --json
run show: --server --json
run list: --server --json
run cancel: --server --json
run retry: --server --json
run restart: --server --json
run migrate: --server --json
run pause: --server --json
run resume: --server --json
run signal: --server --json
run approve: --server --json
run resolve: --server --json
batch start: --server --json
batch show: --server --json
batch cancel: --server --json
batch accept: --server --json
job push: --server --json
job list: --server --json
job show: --server --json
job redrive: --server --json
why: --server --json
evidence: --output --server --json
audit: --db --bundle --json
db status: --db --json
db migrate: --db --print --json
db backup: --db --json
key create: --db --workspace --requester --scope --json
key list: --db --json
key revoke: --db --json
init: --json
completion: --json
END
grep -q 'for short: -o' helps/graph || note "graph has no -o"
grep -q 'default: http://127.0.0.1:7411' "helps/entity show" && grep -q 'environment: HAPAX_SERVER' "helps/entity show" || note "--server has another default"
sums_up the_contract
exit 0
