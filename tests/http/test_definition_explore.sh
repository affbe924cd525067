#!/usr/bin/env bash
# PUT /definitions/{name}?explore=10s: what breaks a rule is not put, and told with its story; one at a time, aside, in its time.
set -u
. tests/support/cli.sh
command -v curl >/dev/null && command -v jq >/dev/null || { echo "[  SKIPPED ] curl and jq are needed" && exit 0; }
serve
examples=$root/examples/explore
put() { # name, query, file
	curl -sS -o out -w '%{http_code}' -X PUT -H 'Content-Type: application/json' --data-binary @"$3" "$HAPAX_SERVER/api/v1/definitions/$1$2" >code 2>err
}
got() { [ "$(cat code)" = "$1" ] && jq -e "$2" <out >/dev/null; }

put checkout '?explore=20s' "$examples/double-charge.json" &&
	got 422 '.code == "DEFINITION_INVALID" and .findings == [{"severity": "error", "line": 5, "rule": "explore", "text": .detail}] and (.detail | startswith("once: charge has happened twice"))
	and (.story | length == 4) and .story[0].who == "node-a" and .story[0].line == 5 and .story[3] == {"who": "charge", "what": "does it, and says so", "line": 0}' &&
	[ "$(curl -sS -o /dev/null -w '%{http_code}' "$HAPAX_SERVER/api/v1/definitions/checkout")" = 404 ]
result what_breaks_a_rule_is_not_put
put checkout '?explore=20s' "$examples/double-charge.mended.json" && got 200 '.version == 1 and .findings == []' &&
	put checkout '' "$examples/double-charge.json" && got 200 '.version == 2'
result what_breaks_none_is_and_who_does_not_ask_is_not_told
put checkout '?explore=10' "$examples/double-charge.json" && got 400 '.code == "VALIDATION_ERROR"' && put checkout '?explore=500ms' "$examples/double-charge.json" && got 400 '.detail | contains("at most 60s")' &&
	put checkout '?explore=61s' "$examples/double-charge.json" && got 400 '.code == "VALIDATION_ERROR"'
result durations
echo '{ "workflow": "checkout" }' >wrong.json
put checkout '?explore=10s' wrong.json && got 422 '.findings | length > 0 and all(.rule != "explore")' && echo 'no json' >wrong.json && put checkout '?explore=10s' wrong.json && got 422 true
result what_is_not_valid_is_refused_for_that

# One that is in force, for the dashboard: whatever is found is the answer, with what would help; a world of the definition's own counts.
explore() { # name, query
	curl -sS -o out -w '%{http_code}' -X POST "$HAPAX_SERVER/api/v1/definitions/$1/explore$2" >code 2>err
}
explore checkout '?for=20s' && got 200 '.verdict == "found" and .found.rule == "once" and (.found.story | length == 4) and .tried[0].change == "effect: keyed"' &&
	jq '. + {"world": {"services": {"charge": {"dedupes": true}}}}' "$examples/double-charge.json" >own.json && put checkout '?explore=20s' own.json && got 200 '.version == 3' &&
	explore checkout '' && got 200 '.verdict == "complete" and (has("found") | not)' &&
	jq '.world.services = {"chrge": {}}' own.json >wrong.json && put checkout '' wrong.json && got 422 '.findings[0].text | contains("did you mean \"charge\"?")' &&
	explore nowhere '' && got 404 true && explore checkout '?for=2m' && got 400 '.detail | contains("at most 60s")'
result one_that_is_in_force

# A large one takes its whole time: others are told so meanwhile, all else goes on, and what was found by then, nothing, is a warning.
put settlement '?explore=3s' "$root/tests/explore/settled-while-cancelled.mended.json" &
first=$!
# Below 19 there is nothing: of a server that has it already, its child has the same.
priority() { # pid, at most
	ps -o ni= -p "$1" | awk -v max="${2:-19}" '{ print ($1 > max ? max : $1) }'
}
explores() { pgrep -P "$server" -f 'explore /dev/stdin' >/dev/null; }
await explores && cp out first.out 2>/dev/null
curl -sS -o busy -w '%{http_code}' -X PUT --data-binary @"$examples/double-charge.json" -H 'Content-Type: application/json' "$HAPAX_SERVER/api/v1/definitions/checkout?explore=3s" >busy.code
[ "$(cat busy.code)" = 503 ] && jq -e '.code == "BUSY" and (.detail | contains("is being explored"))' <busy >/dev/null && exits 0 run list &&
	[ "$(priority "$(pgrep -P "$server" -f 'explore /dev/stdin')")" -gt "$(priority "$server" 18)" ]
result one_at_a_time_and_aside
wait "$first" && got 200 '.version == 1 and .findings[0].severity == "warning" and .findings[0].rule == "explore"'
result when_its_time_is_over
# A server that stops waits for none.
put settlement '?explore=60s' "$root/tests/explore/settled-while-cancelled.mended.json" &
first=$!
await explores && begun=$SECONDS && kill "$server" && wait "$server" && server= && [ $((SECONDS - begun)) -lt 8 ] && wait "$first" && got 503 '.code == "BUSY" or .code == "STOPPING"'
result a_server_that_stops
exit 0
