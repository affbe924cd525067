#!/usr/bin/env bash
# hapax explore, by its output and exit codes: the classic mistakes of examples/explore are found, their mended twins are clean, and the
# same question has the same answer.
set -u
. tests/support/cli.sh
examples=$root/examples/explore

world_of() { # example
	[ ! -e "$examples/$1.world.json" ] || printf '%s\n' --world "$examples/$1.world.json"
}
# found EXAMPLE RULE WORDS FIELD: the story ends as it should, and its twin has none.
found() {
	# shellcheck disable=SC2046
	exits 1 explore "$examples/$1.json" $(world_of "$1") --brief && says "found: $2: $3" && says_like "$1.json:[0-9]+: workflow .*, $4: " &&
		complains "a rule was broken" || return 1
	# shellcheck disable=SC2046
	exits 0 explore "$examples/$1.mended.json" $(world_of "$1.mended") && says_like '^complete: ' && ! says 'not reached' && silent err
}
found double-charge once "charge has happened twice" on_unknown
result a_double_charge_after_a_timeout
found refund-before-void undone "the run is CANCELLED, charge has happened, and refund has not" on_unknown
result a_refund_before_the_charge_is_void
exits 1 explore "$examples/refund-before-void.json" --world "$examples/refund-before-void.world.json" --brief && says "to blame: assumption A6"
result an_assumption_is_blamed_where_the_definition_is_right
found mail-in-the-action once "Mail has happened twice" on_unknown
result a_mail_in_the_action
found claim-without-probe once "Pay has happened twice" on_unknown
result a_claim_without_a_probe

exits 1 explore "$examples/cancel-race.json" --world "$examples/cancel-race.world.json" --brief &&
	says 'found: never: what is never to be is: .status == "CANCELLED" and .ledger.ship' && says "cancel-race.world.json:2: workflow parcel, never: " &&
	says "cancels the run" && exits 0 explore "$examples/cancel-race.mended.json" --world "$examples/cancel-race.mended.world.json" &&
	says_like '^complete: '
result a_cancel_that_races_completion

exits 1 explore "$examples/double-charge.json" && says "tried: on_unknown: hold, step charge" &&
	says "tried: effect: keyed, action charge" && says "explored again, 0 found, complete" && [ "$(grep -c ^tried: out)" -eq 2 ] &&
	[ "$(grep ^tried: out | cut -d, -f1 | tr '\n' ';')" = "tried: effect: keyed;tried: on_unknown: hold;" ]
result suggestions_that_were_tried
# What one would want first stands first; what was not seen to its end last.
sed 's/"claimed"/"claimed", "probe": "find"/; s/"actions": {/&\n "find": { "kind": "http", "url": "http:\/\/127.0.0.1:9\/f", "effect": "idempotent" },/' "$examples/double-charge.json" >flows/probed.json
order() { grep ^tried: out | sed 's/, .*found, / /; s/;.*//' | tr '\n' ';'; }
exits 1 explore flows/probed.json && [ "$(order)" = "tried: on_unknown: probe complete;tried: effect: keyed complete;tried: on_unknown: hold complete;" ] &&
	exits 1 explore "$examples/claim-without-probe.json" --seconds 1 --mishaps 9 --crashes 9 --pauses 9 && [ "$(order)" = "tried: on_unknown: hold complete;tried: effect: keyed bounded;" ]
result suggestions_in_their_order
rm flows/probed.json
sed 's/"on_unknown": "retry"/"on_unknown": "hold"/' "$examples/double-charge.json" >flows/held.json
exits 0 explore flows/held.json && exits 1 explore "$examples/refund-before-void.json" --world "$examples/refund-before-void.world.json" &&
	! says "tried: effect: keyed"
result what_is_suggested_helps_and_what_does_not_help_is_not

exits 1 explore "$examples/claim-without-probe.json" --json && jq -e '.verdict == "found" and .found.rule == "once" and .found.step == "pay"
	and .found.field == "on_unknown" and .found.line == 6 and .found.shortest and .found.mishaps == 1
	and .tried[0].change == "effect: keyed" and .tried[1].change == "on_unknown: hold" and .tried[0].found == 0 and ([.found.story[].who] | index("caller-2") and index("janitor")) and (.covered | length == 1)' <out >/dev/null
result the_story_as_json

exits 1 explore "$examples/claim-without-probe.json" --brief --sarif && jq -e '.version == "2.1.0" and (.runs[0].results | length == 1)
	and .runs[0].results[0].ruleId == "once" and .runs[0].results[0].locations[0].physicalLocation.region.startLine == 6
	and (.runs[0].results[0].codeFlows[0].threadFlows[0].locations | length == 10)' <out >/dev/null &&
	exits 0 explore "$examples/claim-without-probe.mended.json" --sarif && jq -e '.runs[0].results == []' <out >/dev/null
result the_story_as_sarif
well_formed() { python3 -c 'import sys, xml.etree.ElementTree as e; t = e.parse(sys.argv[1]).getroot(); print(t.get("failures"), len(t.findall("testcase")), len(t.findall("testcase/failure")))' out; }
exits 1 explore "$examples/cancel-race.json" --world "$examples/cancel-race.world.json" --junit && [ "$(well_formed)" = "1 13 1" ] &&
	exits 0 explore "$examples/claim-without-probe.mended.json" --junit && [ "$(well_formed)" = "0 13 0" ] &&
	exits 2 explore "$examples/cancel-race.json" --json --junit && complains "take one"
result the_story_as_junit

exits 0 explore "$root/examples/order/order.json" --mishaps 1 && says_like '^complete: ' && says 'order approve not reached' &&
	says_like '^but 1 of [0-9]+ steps and calls were reached by none of them, so nothing is said of these'
result the_order_of_the_examples_is_clean
echo '{ "inputs": [ { "total": 2000 } ] }' >rich.json
exits 0 explore "$root/examples/order/order.json" --world rich.json --mishaps 0 && ! says 'not reached$' && ! says 'nothing is said'
result an_input_leads_to_the_other_side_of_a_condition
exits 0 check --explore "$root/examples/billing/workflows" && says "explore: once: CloseBilling has happened twice for one decision, step close; \`hapax explore\` tells how" &&
	exits 0 check "$root/examples/billing/workflows" && ! says explore && exits 0 check --explore "$examples/double-charge.mended.json" && ! says explore:
result check_says_when_there_is_something_to_say
exits 1 explore "$root/examples/billing/workflows" --brief && says "found: once: CloseBilling has happened twice"
result what_billing_says_in_words

exits 1 explore "$examples/mail-in-the-action.json" && cp out first && exits 1 explore "$examples/mail-in-the-action.json" && cmp out first &&
	exits 1 explore "$examples/mail-in-the-action.json" --seed 7 && cp out seventh &&
	exits 1 explore "$examples/mail-in-the-action.json" --seed 7 && cmp out seventh
result the_same_seed_gives_the_same_bytes

# A whole walk of a run that is undone: what tasks hold on the way, gaps between fields too, must not depend on where the program lies.
undone=$root/tests/explore/no-way-back.mended.json
exits 0 explore "$undone" --seed 7 && cp out seventh &&
	exits 0 explore "$undone" --seed 7 && cmp out seventh &&
	exits 0 explore "$undone" --seed 7 && cmp out seventh
result the_same_walk_has_the_same_states

sed 's/"claimed"/"keyed"/' "$examples/claim-without-probe.json" >flows/keyed.json
echo '{ "services": { "Pay": { "dedupes": false } } }' >world.json
exits 0 explore flows/keyed.json && exits 1 explore flows/keyed.json --world world.json && says "to blame: assumption A5"
result a_service_that_does_not_keep_its_word
echo '{ "services": { "Pay": { "may": ["done", "failed_after"] } } }' >world.json
exits 1 explore flows/keyed.json --world world.json && says "found: silence: Pay has happened" && says ", on_5xx: "
result a_service_that_fails_after_it_has_acted
exits 0 explore flows/keyed.json --crashes 0 --pauses 0 --lost 0 --failures 0 && says "Pay: done; not reached: failed rejected"
result without_mishaps
exits 0 explore flows/keyed.json --nodes 1 --callers 1 && says "1 node, 1 caller;" && exits 0 explore flows/keyed.json --mishaps 3 --seconds 1 &&
	says_like '^(bounded: all schedules with up to [0-9] mishap|complete)'
result bounds
big=$root/tests/explore/settled-while-cancelled.mended.json
exits 0 explore "$big" --mishaps 9 --crashes 9 --seconds 3600 --for 300ms && says_like '^bounded: ' && exits 2 explore "$big" --for 10 && complains "--for"
result a_time_of_the_clock
sed 's/"kind": "entity",/&\n  "world": { "services": { "Pay": { "dedupes": false } } },/' flows/keyed.json >flows/worldly.json
exits 1 explore flows/worldly.json --brief && says "to blame: assumption A5" && echo '{ "services": { "Pay": { "dedupes": true } } }' >world.json && exits 0 explore flows/worldly.json --world world.json &&
	sed 's/"dedupes": false } }/"dedupes": false } }, "rules": []/' flows/worldly.json >flows/misspelt.json && exits 1 check flows/misspelt.json && says_like ':2: .*"rules"'
result a_world_of_the_definition
rm -f flows/worldly.json flows/misspelt.json

rule() { printf '{ "rules": [ { %s } ] }' "$1" >world.json; }
rule '"sometimes": ".ledger.Pay and .status == \"gone\""'
exits 1 explore flows/keyed.json --world world.json && says "found: sometimes: what is sometimes to be never was"
result an_empty_world_proves_nothing
rule '"ends": ".status == \"paid\""'
exits 1 explore flows/keyed.json --world world.json && says "found: ends: nothing goes on any more, and it is not so"
result what_must_be_so_at_the_end
rule '"always": ".status != \"paid\" or .ledger.Pay", "workflow": "payout"'
exits 0 explore flows/keyed.json --world world.json
result what_is_always_so
rule '"always": ".status != \"paying\""'
exits 1 explore flows/keyed.json --world world.json && says "found: always: "
result what_is_not_always_so
rule '"never": ".ledger.Pya"' && exits 2 explore flows/keyed.json --world world.json && complains 'no definition has an action "Pya"; did you mean "Pay"?' &&
	rule '"never": ".stauts"' && exits 2 explore flows/keyed.json --world world.json && complains status &&
	rule '"never": "true", "always": "true"' && exits 2 explore flows/keyed.json --world world.json && complains "it is one of never, always, ends and sometimes" &&
	rule '"never": "true", "workflow": "pyout"' && exits 2 explore flows/keyed.json --world world.json && complains '"payout"'
result rules_that_are_none

# Rules of a definition: read with it, checked with it, and found broken at their line.
sed 's/"workflow": "payout",/&\n  "rules": [\n    { "never": ".status == \\"paid\\" and .ledger.Pay" } ],/' flows/keyed.json >flows/ruled.json
exits 0 check --strict flows/ruled.json && exits 1 explore flows/ruled.json && says 'found: never: what is never to be is: .status == "paid" and .ledger.Pay' &&
	says_like 'flows/ruled.json:[0-9]+: workflow payout, never: '
result rules_of_a_definition
sed 's/.ledger.Pay" }/.ledger.Pya" }/' flows/ruled.json >flows/misspelt.json
exits 1 check flows/misspelt.json && says 'no definition has an action "Pya"; did you mean "Pay"?' && exits 2 explore flows/misspelt.json &&
	sed 's/"never"/"nevr"/' flows/ruled.json >flows/misspelt.json && exits 1 check flows/misspelt.json && says '"never"'
result rules_of_a_definition_that_are_none
sed 's/"never": .* } \],/"sometimes": ".status == \\"gone\\"", "workflow": "payout" } ],/' flows/ruled.json >flows/empty.json
exits 1 explore flows/empty.json && says "found: sometimes: what is sometimes to be never was" && says "flows/empty.json:" &&
	sed 's/"workflow": "payout" }/"workflow": "other" }/' flows/empty.json >flows/misspelt.json && exits 1 check flows/misspelt.json && says "about its own workflow, payout"
result rules_of_a_definition_are_about_its_workflow

# As a test: what is written breaks the rule that the story breaks; what cannot be said is not written, nor is what is there overwritten.
exits 1 explore "$examples/cancel-race.json" --world "$examples/cancel-race.world.json" --brief --save-test flows/story.test.json &&
	jq -e '.tests[0].when == [{"cancel": true, "during": "ship"}]' flows/story.test.json >/dev/null && exits 1 test flows/story.test.json &&
	says "never: expected the rule holds, was what is never to be is" && exits 70 explore "$examples/double-charge.json" --brief --save-test flows/story.test.json &&
	complains "story.test.json cannot be written" && exits 1 test flows/story.test.json && says "never: expected" &&
	exits 0 explore "$examples/double-charge.mended.json" --save-test none.test.json && [ ! -e none.test.json ]
result a_story_as_a_test
cat >flows/siblings.json <<'END'
{ "workflow": "opening", "kind": "run",
  "actions": {
    "open":   { "kind": "http", "url": "http://127.0.0.1:9/", "effect": "keyed" },
    "close":  { "kind": "http", "url": "http://127.0.0.1:9/", "effect": "keyed" },
    "pay":    { "kind": "http", "url": "http://127.0.0.1:9/", "effect": "keyed" },
    "return": { "kind": "http", "url": "http://127.0.0.1:9/", "effect": "keyed" } },
  "rules": [ { "never": ".ledger.return and .ledger.open and (.ledger.close | not)" } ],
  "steps": [
    { "name": "both", "type": "parallel", "branches": {
        "account": [ { "name": "open", "type": "task", "action": "open", "compensate": "close" } ],
        "deposit": [ { "name": "pay", "type": "task", "action": "pay", "compensate": "return" } ] } } ] }
END
exits 2 explore flows/siblings.json --brief --save-test flows/siblings.test.json && says "found: never: " && complains "a moment that a test cannot name" &&
	[ ! -e flows/siblings.test.json ]
result a_story_that_no_test_can_say
rm -f flows/*.test.json

# A new version meets runs that began with the old one.
cat >old.json <<'END'
{ "workflow": "booking", "kind": "run",
  "actions": {
    "charge": { "kind": "http", "url": "http://127.0.0.1:9/", "effect": "keyed" },
    "refund": { "kind": "http", "url": "http://127.0.0.1:9/", "effect": "keyed" } },
  "steps": [
    { "name": "charge", "type": "task", "action": "charge", "compensate": "refund" },
    { "name": "ok", "type": "approval" } ] }
END
sed 's/, "compensate": "refund"//' old.json >new.json
exits 0 explore new.json --mishaps 1 --brief && exits 1 explore --diff old.json new.json --brief && says "found: undone: the run is CANCELLED, charge has happened" &&
	says "new.json:6: workflow booking, step charge, compensate: the new version does not undo what the old one has done" && says "migrates the run to the new version" &&
	exits 2 explore --diff old.json new.json --brief --save-test diff.test.json && [ ! -e diff.test.json ]
result a_new_version_that_forgets_the_way_back
sed 's/"type": "approval"/&, "timeout": "1h"/' old.json >new.json
exits 0 explore --diff old.json new.json --mishaps 1 --brief && says_like '^complete: ' && ! says 'not reached$' && exits 2 explore --diff nowhere.json new.json &&
	exits 2 explore --diff flows/keyed.json new.json && complains "nothing here that can be explored"
result a_new_version_that_does_not

# Of an entity: who was charged by the old version is charged again by the new one, each of which charges once. What the engine refuses
# to put is no mistake of the definition's: a status that goes while somebody is in it.
cat >old.json <<'END'
{ "workflow": "parcel", "kind": "entity", "status_types": ["open", "paying", "paid", "shipping", "shipped"], "initial_status": "open",
  "rules": [ { "never": ".ledger.charge > 1" }, { "sometimes": ".ledger.charge and .ledger.ship" } ],
  "actions": {
    "charge": { "kind": "http", "url": "http://127.0.0.1:9/c", "effect": "keyed" },
    "ship": { "kind": "http", "url": "http://127.0.0.1:9/s", "effect": "keyed" } },
  "steps": [
    { "step_id": 1, "step_key": "pay", "status": "open", "successful_state": "paid", "action": "charge", "claim_state": ["paying", "open"], "on_unknown": "hold" },
    { "step_id": 2, "step_key": "send", "status": "paid", "successful_state": "shipped", "action": "ship", "claim_state": ["shipping", "paid"], "on_unknown": "hold" } ] }
END
sed -e '/"step_key": "pay"/s/"action": "charge"/"action": "ship"/' -e '/"step_key": "send"/s/"action": "ship"/"action": "charge"/' old.json >new.json
exits 0 explore old.json --mishaps 1 --brief && exits 0 explore new.json --mishaps 1 --brief && exits 1 explore --diff old.json new.json --mishaps 1 --brief &&
	says "found: never: what is never to be is: .ledger.charge > 1" && says "operator       puts the new version" && says "by the new version; e1 is paid  (new.json:8)" &&
	exits 2 explore --diff old.json new.json --mishaps 1 --brief --save-test diff.test.json && [ ! -e diff.test.json ]
result an_entity_whose_definition_changes_under_way
sed -e 's/"shipping"/"sending"/g' old.json >new.json
exits 0 explore --diff old.json new.json --mishaps 1 --brief && says_like '^complete: ' && ! says 'not reached$'
result a_status_that_goes_is_no_alarm
# An after-effect that has certainly failed is tried again by the definition in force, under its key: that is promised, and no mistake.
sed -e '$s/"on_unknown": "hold"/&, "success_after_effect": ["ship"]/' old.json >effects.json
sed -e 's/9\/s/9\/t/' effects.json >new.json
exits 0 explore --diff effects.json new.json --mishaps 1 --brief && says_like '^complete: ' && says_like 'after-effect.*failed'
result an_after_effect_goes_where_the_new_version_says

# A schedule beside its workflow: the next slot comes while the run of the last one rests.
cat >flows/payout.json <<'END'
{ "workflow": "payout", "kind": "run", "rules": [ { "never": ".open > 1" }, { "sometimes": ".ledger.pay > 1" } ],
  "actions": { "pay": { "kind": "http", "url": "http://127.0.0.1:9/p", "effect": "keyed" } },
  "steps": [ { "name": "cool", "type": "wait", "for": "2h" }, { "name": "pay", "type": "task", "action": "pay" } ] }
END
slots() { # overlap
	echo "{ \"schedule\": \"hourly\", \"kind\": \"schedule\", \"workflow\": \"payout\", \"every\": \"1h\", \"overlap\": \"$1\" }" >flows/hourly.json
}
slots allow
exits 1 explore flows/payout.json flows/hourly.json --brief && says "found: never: what is never to be is: .open > 1" && says "starts a run of payout"
result a_schedule_whose_runs_meet
slots queue
exits 0 explore flows/payout.json flows/hourly.json --brief && says_like '^complete: '
result slots_that_wait
for overlap in skip cancel; do
	slots $overlap
	exits 1 explore flows/payout.json flows/hourly.json --mishaps 1 --brief && says "what is sometimes to be never was"
	result "slots_that_meet_and_$overlap"
done

# Two steps without a claim: the first moves the entity on while the second acts. With claims that are held there is one at a time.
cat >flows/race.json <<'END'
{ "workflow": "race", "kind": "entity", "status_types": ["a", "b", "c", "ab", "ac"], "initial_status": "a",
  "actions": {
    "X": { "kind": "http", "url": "http://127.0.0.1:9/x", "effect": "keyed" },
    "Y": { "kind": "http", "url": "http://127.0.0.1:9/y", "effect": "keyed" } },
  "steps": [
    { "step_id": 1, "step_key": "x", "status": "a", "successful_state": "b", "action": "X" },
    { "step_id": 2, "step_key": "y", "status": "a", "successful_state": "c", "action": "Y" } ] }
END
sed 's/"action": "X"/&, "claim_state": ["ab", "a"], "on_unknown": "hold"/; s/"action": "Y"/&, "claim_state": ["ac", "a"], "on_unknown": "hold"/' flows/race.json >flows/raceless.json
exits 1 explore flows/race.json --brief && says "found: silence: Y has happened" && says "claim_state: without a claim another step moves it on" &&
	says "race from a, 0 mishaps" && says "caller-2       hears 409 CONCURRENCY_ERROR" && exits 0 explore flows/raceless.json --mishaps 1 && says_like '^complete: '
result two_steps_without_a_claim

# Two that are clean alone, and not together: they meet at a table of the world's.
together=$examples/together
exits 0 explore "$root/tests/explore/also/bounded.json" --mishaps 1 --brief && says '2 scenarios' && says_like '^complete: '
result two_of_a_workflow_with_a_limit_share_it
exits 0 explore "$together/sale.json" --world "$together/shelf.world.json" --mishaps 1 --brief && says '2 scenarios' && says_like '^complete: ' && says 'sale take' &&
	exits 0 explore "$together/recount.json" --world "$together/shelf.world.json" --mishaps 0 --brief && says_like '^complete: ' &&
	exits 1 explore "$together/sale.json" "$together/recount.json" --world "$together/shelf.world.json" --brief && says "sale + recount, 0 mishaps, 11 events" &&
	says 'found: never: what is never to be is: .tables.shelf[0].sold == 1 and .tables.shelf[0].here == 1' && says 'the tables are {"shelf":[{"sku":"cup","here":0,' &&
	says 'step take is COMPLETED' && exits 0 explore "$together/sale.json" "$together/recount.mended.json" --world "$together/shelf.world.json" --mishaps 0 &&
	says '5 scenarios' && says_like '^complete: ' && ! says 'not reached$'
result two_that_meet_at_a_table
cat >flows/ship.json <<'END'
{ "workflow": "ship", "kind": "entity", "meta": { "table": "app.parcel" }, "status_types": ["packed", "shipped"], "initial_status": "packed",
  "world": { "tables": [ "CREATE TABLE parcel (id TEXT PRIMARY KEY, status TEXT, version INTEGER, updated_at INTEGER)", "INSERT INTO parcel VALUES ('p-1', 'packed', 7, 0)" ] },
  "actions": { "Ship": { "kind": "http", "url": "http://127.0.0.1:9/s", "effect": "keyed" } },
  "steps": [ { "step_id": 1, "step_key": "ship", "status": "packed", "successful_state": "shipped", "action": "Ship" } ] }
END
sed 's/"ship"/"refund"/g; s/"shipped"/"refunded"/g; s/"Ship"/"Refund"/g' flows/ship.json >flows/refund.json
held() { sed -e "s/\"packed\", \"$2\"\]/\"packed\", \"$3\", \"$2\"]/; s/\"action\": \"[A-Z][a-z]*\"/&, \"claim_state\": [\"$3\", \"packed\"], \"on_unknown\": \"hold\"/" "flows/$1.json" >"flows/$1.held.json"; }
held ship shipped shipping && held refund refunded refunding
exits 0 explore flows/ship.json --mishaps 1 && exits 0 explore flows/refund.json --mishaps 1 && exits 1 explore flows/ship.json flows/refund.json --brief &&
	says "found: silence: Refund has happened" && says "ship from packed + refund from packed, 0 mishaps" && says '"status":"shipped","version":2' &&
	exits 0 explore flows/ship.held.json flows/refund.held.json && says_like '^complete: ' && says '3 scenarios'
result two_entities_that_are_one_row
# By a hook: nothing is shipped before the charge was done, whose service starts the run, or signals it.
exits 0 explore "$together/order.json" --mishaps 1 && exits 0 explore "$together/fulfil.json" --mishaps 1 &&
	exits 1 explore "$together/order.json" "$together/fulfil.json" --world "$together/hook.world.json" --brief && says "order + fulfil, 0 mishaps, 13 events" &&
	says "does it, and says so, and calls the hook of fulfil" && says "the run of order is CANCELLED" &&
	exits 0 explore "$together/order.mended.json" "$together/fulfil.json" --world "$together/hook.mended.world.json" --mishaps 1 && says_like '^complete: '
result two_that_meet_by_a_hook
sed 's/{ "name": "ship"/{ "name": "paid", "type": "external_event", "event": "paid" }, &/' "$together/fulfil.json" >flows/fulfil.json
tells() { printf '{ "services": { "charge": { "tells": { %s } } }, "rules": [ { "workflow": "order", "never": ".with.steps.paid and (.ledger.charge | not)" } ] }' "$1" >world.json; }
tells '"workflow": "fulfil", "event": "paid"' && exits 0 explore "$together/order.json" flows/fulfil.json --world world.json --mishaps 0 && says '3 scenarios' &&
	tells '"workflow": "fulfil", "event": "other"' && exits 1 explore "$together/order.json" flows/fulfil.json --world world.json --brief &&
	tells '"workflow": "fulfill"' && exits 2 explore "$together/order.json" flows/fulfil.json --world world.json && complains 'did you mean "fulfil"?' &&
	tells '"event": "paid"' && exits 2 explore "$together/order.json" flows/fulfil.json --world world.json && complains '"workflow" is missing'
result what_a_hook_signals
rm flows/fulfil.json
# A hook fires a step of an entity: nobody else does, and not before it was told.
cat >flows/parcel.json <<'END'
{ "workflow": "parcel", "kind": "entity", "status_types": ["packed", "sending", "sent"], "initial_status": "packed",
  "actions": { "Send": { "kind": "http", "url": "http://127.0.0.1:9/s", "effect": "keyed" } },
  "steps": [ { "step_id": 1, "step_key": "send", "status": "packed", "successful_state": "sent", "action": "Send", "claim_state": ["sending", "packed"], "on_unknown": "hold" } ] }
END
fires() { printf '{ "services": { "charge": { "tells": { "workflow": "parcel"%s } } }, "rules": [ { "workflow": "order", "never": "%s" } ] }' "$1" "$2" >world.json; }
fires ', "step": "send"' '.with.workflow == \"parcel\" and .with.ledger.Send and (.ledger.charge | not)' && exits 0 explore "$together/order.json" flows/parcel.json --world world.json --mishaps 0 && says '3 scenarios' && says_like '^complete: ' &&
	fires ', "step": "send"' '.status == \"CANCELLED\" and .with.ledger.Send' && exits 1 explore "$together/order.json" flows/parcel.json --world world.json --brief --save-test flows/fires.test.json &&
	says "hook           fires send as default; e2 is packed" && says "hook           hears 200 OK" && exits 1 test flows/fires.test.json && jq -e '.tests[0].when == [{"cancel": true, "during": "charge"}, {"tell": "charge"}]' flows/fires.test.json >/dev/null &&
	fires ', "step": "snd"' true && exits 2 explore "$together/order.json" flows/parcel.json --world world.json && complains 'did you mean "send"?' &&
	fires '' true && exits 2 explore "$together/order.json" flows/parcel.json --world world.json && complains 'no definition has a step'
result what_a_hook_fires
rm flows/parcel.json flows/fires.test.json
# Three in one world do what no two of them can do.
cat >flows/three.json <<'END'
{ "workflow": "NAME", "kind": "run", "actions": { "mark": { "kind": "sql", "statements": [ { "name": "mark", "sql": "UPDATE marks SET n = n + 1, NAME = 1" } ] } },
  "steps": [ { "name": "mark", "type": "task", "action": "mark" } ] }
END
for name in red green blue; do sed "s/NAME/$name/g" flows/three.json >"flows/$name.json"; done
rm flows/three.json
echo '{ "tables": [ "CREATE TABLE marks (n INTEGER, red INTEGER, green INTEGER, blue INTEGER)", "INSERT INTO marks VALUES (0, 0, 0, 0)" ],
  "rules": [ { "never": ".tables.marks[0].red == 1 and .tables.marks[0].green == 1 and .tables.marks[0].blue == 1" } ] }' >world.json
exits 0 explore flows/red.json flows/green.json flows/blue.json --world world.json --mishaps 0 --brief && says '9 scenarios' && says_like '^complete: ' &&
	exits 1 explore flows/red.json flows/green.json flows/blue.json --world world.json --mishaps 0 --brief --together 3 --save-test flows/three.test.json &&
	says 'red + green + blue, 0 mishaps' && says '19 scenarios' && jq -e '.tests[0].given.with.with.workflow == "blue"' flows/three.test.json >/dev/null && exits 1 test flows/three.test.json &&
	exits 0 explore flows/red.json flows/green.json --world world.json --mishaps 0 --brief --together 1 && says '2 scenarios'
result three_that_meet_at_a_table
echo '{ "rules": [ { "sometimes": ".with.workflow == \"fulfil\" and .with.ledger.ship" } ], "services": { "charge": { "tells": { "workflow": "fulfil" } } } }' >world.json
exits 0 explore "$together/order.json" "$together/fulfil.json" --world world.json --mishaps 0 --together 3 && says '3 scenarios'
result a_hook_starts_one_run
rm flows/red.json flows/green.json flows/blue.json flows/three.test.json
# A statement runs as it stands: a constraint refuses it, and what cannot be run here is told at once.
shop() { printf '{ "workflow": "shop", "kind": "run", "actions": { "take": { "kind": "sql", "statements": [ { "name": "take", "sql": "%s" } ] } },
  "steps": [ { "name": "take", "type": "task", "action": "take", "retry": { "max_attempts": 2 } } ] }' "$1" >flows/shop.json; }
world() { printf '{ "tables": [ "%s", "INSERT INTO stock VALUES (1)" ], "rules": [ { "never": ".with.status == \\"COMPLETED\\" and .status == \\"COMPLETED\\"" }, { "sometimes": ".status == \\"FAILED\\"" } ] }' "$1" >world.json; }
shop 'UPDATE stock SET n = n - 1' && world 'CREATE TABLE stock (n INTEGER CHECK (n >= 0))' && exits 0 explore flows/shop.json --world world.json && says_like '^complete: ' &&
	world 'CREATE TABLE stock (n INTEGER)' && exits 1 explore flows/shop.json --world world.json --brief && says "shop + shop, 0 mishaps" && says "the second is COMPLETED"
result a_constraint_refuses_the_second_of_two
shop 'UPDATE stuck SET n = n - 1' && exits 2 explore flows/shop.json --world world.json && complains "no such table: stuck" && silent out &&
	world 'CREATE TABLE stock (n INTEGER); DROP TABLE x' && exits 2 explore flows/shop.json --world world.json && complains 'world.json:1: error: table: it is one CREATE TABLE' &&
	world 'CREATE TABLE stock (n INTEGER, at TEXT DEFAULT CURRENT_TIMESTAMP)' && exits 2 explore flows/shop.json --world world.json && complains 'ask :now for the time' &&
	world 'CREATE TABLE hx_stock (n INTEGER)' && exits 2 explore flows/shop.json --world world.json && complains 'it is one CREATE TABLE' &&
	world 'CREATE TABLE stock (n INTEGER' && exits 2 explore flows/shop.json --world world.json && complains 'incomplete input' &&
	sed -i "s/, \"INSERT INTO parcel[^]]*//" flows/ship.json && exits 2 explore flows/ship.json && complains 'parcel: it has no row that could be an entity'
result tables_that_are_none
# An entity and a run: both are driven, fired at, and seen by the rules of each.
cat >flows/piece.json <<'END'
{ "workflow": "piece", "kind": "entity", "status_types": ["good", "scrapping", "scrapped"], "initial_status": "good",
  "actions": { "Scrap": { "kind": "sql", "statements": [ { "name": "scrap", "sql": "UPDATE stock SET n = n - 1 WHERE n > 0", "must": true } ] } },
  "steps": [ { "step_id": 1, "step_key": "scrap", "status": "good", "successful_state": "scrapped", "action": "Scrap", "claim_state": ["scrapping", "good"] } ] }
END
cat >flows/sell.json <<'END'
{ "workflow": "sell", "kind": "run", "actions": {
    "take": { "kind": "sql", "statements": [ { "name": "take", "sql": "UPDATE stock SET n = n - 1 WHERE n > 0", "must": true } ] },
    "back": { "kind": "sql", "statements": [ { "name": "back", "sql": "UPDATE stock SET n = n + 1" } ] },
    "charge": { "kind": "http", "url": "http://127.0.0.1:9/c", "effect": "keyed" } },
  "steps": [ { "name": "take", "type": "task", "action": "take", "compensate": "back" }, { "name": "charge", "type": "task", "action": "charge" } ] }
END
meet() { printf '{ "tables": [ "CREATE TABLE stock (n INTEGER)", "INSERT INTO stock VALUES (1)" ], "rules": [ { "never": ".tables.stock[0].n < 0" },
  { "workflow": "sell", "sometimes": ".with.status == \\"scrapped\\" and .status == \\"FAILED\\"" }, { "workflow": "piece", "sometimes": ".status == \\"scrapped\\" and .with.status == \\"CANCELLED\\"" },
  { "workflow": "sell", "never": ".with.workflow == \\"piece\\" and .with.status == \\"scrapped\\" and .status == \\"%s\\"" } ] }' "$1" >world.json; }
meet COMPLETED && exits 0 explore flows/piece.json flows/sell.json --world world.json --mishaps 0 && says_like '^complete: ' && says '5 scenarios' &&
	meet CANCELLED && exits 1 explore flows/piece.json flows/sell.json --world world.json --brief && says "piece from good + sell, 0 mishaps" && says 'e1: good → scrapping, a claim' &&
	says 'fires scrap as default; e1 is good'
result an_entity_and_a_run_that_meet
# Whatever stands in them: names in quotes, bytes, what is infinite. Or they are refused before anything is explored.
cat >flows/odd.json <<'END'
{ "workflow": "odd", "kind": "run", "steps": [ { "name": "take", "type": "task", "action": "take" } ],
  "actions": { "take": { "kind": "sql", "statements": [ { "name": "take", "sql": "UPDATE \"a\"\"b\" SET bytes = x'00ff', \"it's\" = 9e999" } ] } },
  "world": { "tables": [ "CREATE TABLE \"a\"\"b\" (bytes BLOB, \"it's\" REAL)", "INSERT INTO \"a\"\"b\" VALUES (x'01', -9e999)" ] },
  "rules": [ { "never": ".tables[\"a\\\"b\"][0].bytes == \"00FF\"" } ] }
END
exits 1 explore flows/odd.json --brief && says 'the tables are {"a\"b":[{"bytes":"00FF","it'"'"'s":null}]}'
result values_that_json_does_not_have
columns() { seq -f ',c%g' "$2" | tr -d '\n' | sed "s/.*/CREATE TABLE $1 (n INTEGER&)/"; }
shop 'UPDATE stock SET n = n - 1' && world "$(columns stock 70)" && sed -i 's/INTO stock/& (n)/' world.json && exits 2 explore flows/shop.json --world world.json && silent out && complains 'too many arguments' &&
	printf '{ "tables": [ "%s", "%s", "%s", "%s", "%s" ] }' "$(columns stock 60)" "$(columns b 60)" "$(columns c 60)" "$(columns d 60)" "$(columns e 60)" >world.json &&
	exits 2 explore flows/shop.json --world world.json && silent out && complains 'they have too many columns'
result tables_with_very_many_columns
rm -f flows/ship*.json flows/refund*.json flows/shop.json flows/odd.json

printf '{\n "servces": { } }\n' >world.json
exits 2 explore flows/keyed.json --world world.json && silent out && complains 'world.json:2: error: ' && complains '"services"'
result a_field_that_is_none
printf '{ "services": {\n "Pya": { } } }\n' >world.json
exits 2 explore flows/keyed.json --world world.json && complains 'world.json:2: error: name: no definition has an action "Pya"; did you mean "Pay"?'
result a_service_that_nobody_calls
echo '{ "services": { "Pay": { "may": ["dne"], "dedupes": 1 } } }' >world.json
exits 2 explore flows/keyed.json --world world.json && complains '"done"' && complains dedupes
result words_and_types
exits 2 explore nowhere.json && silent out && complains nowhere.json && exits 2 explore flows/keyed.json --world nowhere.json &&
	exits 2 explore flows/keyed.json --nodes 4 && complains "--nodes is a number from 1 to 3" && exits 2 explore flows/keyed.json --seed x &&
	exits 2 explore && complains PATH
result usage
echo '{ "workflow": "b", "kind": "batch", "actions": { "do": { "kind": "http", "url": "http://127.0.0.1:9/", "effect": "keyed" } }, "item_action": "do" }' >flows/b.json
exits 0 explore flows/b.json --mishaps 1 && says_like '^complete: ' && says "b item: do: done failed rejected timeout timeout_after late"
result a_batch_alone
exits 1 explore "$examples/late-item.json" --brief && says "found: undone: item 0 was cancelled and its money given back, and draw is there" &&
	says_like 'late-item.json:[0-9]+: workflow thumbnails, step item, void: ' && says "cancels the batch" &&
	says "item 0 is cancelled, and what it was charged is given back" && exits 0 explore "$examples/late-item.mended.json" --mishaps 1 && says_like '^complete: '
result an_item_after_its_refund
# The account runs dry: nobody has to pay, and it waits for whoever does.
echo '{ "rules": [ { "ends": ".status != \"OUT_OF_CREDIT\"" } ] }' >world.json
exits 1 explore "$examples/late-item.mended.json" --world world.json --brief --save-test flows/dry.test.json && says "an account that runs dry, 0 mishaps" && says "the batch is OUT_OF_CREDIT" &&
	jq -e '.tests[0].given.balance == 1' flows/dry.test.json >/dev/null && exits 1 test flows/dry.test.json
result an_account_that_runs_dry
echo '{ "rules": [ { "never": ".ledger.draw > 1 and .status == \"RUNNING\" and .doubt" }, { "sometimes": ".status == \"CANCELLED\" and .ledger.draw and (.ledger.delete | not)" } ] }' >world.json
exits 0 explore "$examples/late-item.mended.json" --world world.json --mishaps 0 && says_like '^complete: '
result an_item_that_is_accepted
rm flows/dry.test.json
sed 's/"effect": "keyed"/"effect": "claimed"/; s/"cleanup_action"/"on_unknown": "retry", &/' "$examples/late-item.mended.json" >flows/twice.json
exits 1 explore flows/twice.json --brief && says "found: once: draw has happened twice for one decision, step item" && says_like 'flows/twice.json:[0-9]+: .*on_unknown: retry'
result an_item_that_is_done_twice
"$hapax" explore --help | grep -oE '^  --[a-z-]+' | tr -d ' ' | in_manual hapax-explore.1 &&
	"$hapax" explore --help | sed -n 's/^  \([0-9][0-9]*\)  .*/.B \1/p' | sort -u | in_manual hapax-explore.1
result the_manual_has_every_option
# Every field of a world, and all that a service may do, is on the page.
{ sed -n 's/^	{"\([a-z_]*\)", FIELD.*/\1/p' "$root/src/model/trial_world.c" "$root/src/model/user_rule.c"
	sed -n '/^static const char \*const may_names/,/};/p' "$root/src/model/trial_world.c" | grep -oE '"[a-z_]+"' | tr -d '"'; } >fields
page_has() { grep -qF "| \`$1\` |" "$root/docs/explore.md" || { echo "not in docs/explore.md: $1" && false; }; }
test "$(wc -l <fields)" -ge 14 && while read -r field; do page_has "$field" || break; done <fields
result the_page_has_every_field
exit 0
