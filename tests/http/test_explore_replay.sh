#!/usr/bin/env bash
# No false alarm: what `hapax explore` finds in examples/explore and tests/explore is saved as a test, and breaks the same rule on a real
# server with a real service, which loses answers and acts late: the same end, the same effects, twice where they were twice. The
# mended twin, treated the same, holds there as it does in memory.
set -u
. tests/support/cli.sh

world_of() { # file without .json
	[ ! -e "$1.world.json" ] || printf '%s\n' --world "$1.world.json"
}
save() { # file without .json, name: as a test of it, and of its mended twin
	# shellcheck disable=SC2046
	"$hapax" explore "$1.json" $(world_of "$1") --mishaps 1 --brief --save-test "$2.test.json" >"$2.explored" 2>&1 || [ $? -eq 1 ] || return 1
	sed -e "s,/$2\.json,/$2.mended.json," -e "s,/$2\.world\.json,/$2.mended.world.json," "$2.test.json" >"$2.mended.test.json"
}
replay() { # name, of this replay, options
	local name=$1 as=$2 twin code
	shift 2
	"$hapax" test "$name.mended.test.json" --server "$@" >"$as.mended" 2>&1 &
	twin=$!
	"$hapax" test "$name.test.json" --server "$@" >"$as.replayed" 2>&1
	code=$?
	wait "$twin" && [ "$code" -eq 1 ] && grep -q 'the rule holds, was' "$as.replayed" && grep -q '^  on a real server: the same end' "$as.replayed" &&
		grep -q '^  on a real server: the same end' "$as.mended" && touch "$as.ok"
}
told() { # name, of this replay
	[ -e "$2.ok" ] || tail -n 30 "$1.explored" "$2.replayed" "$2.mended"
	[ -e "$2.ok" ]
	result "${2//-/_}"
}
# Mostly they wait: each with its mended twin, and six of these at a time.
room() {
	while [ "$(jobs -rp | wc -l)" -ge 6 ]; do wait -n; done
}
names=()
for file in "$root"/examples/explore/*.mended.json "$root"/tests/explore/*.mended.json; do
	file=${file%.mended.json}
	name=$(basename "$file")
	names+=("$name")
	room
	(save "$file" "$name" && replay "$name" "$name") &
done
# Two in one world: they meet at a table, which is made in the store there, or by a hook, which is called there.
save_pair() { # name, files, world; how the twin is another
	local name=$1 world=$2 twin=$3
	shift 3
	"$hapax" explore "$@" --world "$world" --mishaps 1 --brief --save-test "$name.test.json" >"$name.explored" 2>&1 || [ $? -eq 1 ] || return 1
	sed -e "$twin" "$name.test.json" >"$name.mended.test.json"
}
together=$root/examples/explore/together
pairs=(shelf hook fire)
cat >parcel.json <<'END'
{ "workflow": "parcel", "kind": "entity", "status_types": ["packed", "sending", "sent"], "initial_status": "packed",
  "actions": { "Send": { "kind": "http", "url": "http://127.0.0.1:9/s", "effect": "keyed" } },
  "steps": [ { "step_id": 1, "step_key": "send", "status": "packed", "successful_state": "sent", "action": "Send", "claim_state": ["sending", "packed"], "on_unknown": "hold" } ] }
END
fire_world() { printf '{ "services": { "%s": { "tells": { "workflow": "parcel", "step": "send" } } },
  "rules": [ { "workflow": "order", "never": ".status == \\"CANCELLED\\" and .with.ledger.Send" } ] }' "$1"; }
fire_world charge >fire.world.json
fire_world release >fire.mended.world.json
room
(save_pair fire fire.world.json 's,/order\.json,/order.mended.json,; s,fire\.world,fire.mended.world,; s/"tell": "charge"/"tell": "release"/' \
	"$together/order.json" parcel.json && replay fire fire) &
room
(save_pair shelf "$together/shelf.world.json" 's,/recount\.json,/recount.mended.json,' "$together/sale.json" "$together/recount.json" && replay shelf shelf) &
(save_pair hook "$together/hook.world.json" 's,/order\.json,/order.mended.json,; s,hook\.world,hook.mended.world,; s/"tell": "charge"/"tell": "release"/' \
	"$together/order.json" "$together/fulfil.json" && replay hook hook) &
wait
for name in "${names[@]}" "${pairs[@]}"; do told "$name" "$name"; done
[ "${#names[@]}" -ge 16 ] && jq -e '.tests[0].when == [{"start": "sale", "during": "ask"}]' shelf.test.json >/dev/null &&
	jq -e '.tests[0].when == [{"cancel": true, "during": "charge"}, {"tell": "charge"}]' hook.test.json >/dev/null
result all_sixteen_and_two_pairs

# The same on PostgreSQL, where time is real: a run, an entity, a batch and two who meet by a hook; in a soak all of them.
on_postgres=(double-charge claim-without-probe late-item hook)
[ -z "${HAPAX_SOAK:-}" ] || read -ra on_postgres <<<"${names[*]/approved-by-nobody/approved-in-time}"
[ -n "${HAPAX_TEST_PG:-}" ] || on_postgres=()
# Nobody approves for a day, which is not waited for: the same with two seconds.
mkdir -p soon
for twin in json mended.json; do
	sed 's/"24h"/"2s"/' "$root/tests/explore/approved-by-nobody.$twin" >"soon/approved-in-time.$twin"
done
save "$PWD/soon/approved-in-time" approved-in-time
cat >take.json <<'END'
{ "workflow": "take", "kind": "run", "actions": { "take": { "kind": "sql", "statements": [ { "name": "take", "sql": "UPDATE stock SET n = n - 1 WHERE n > 0", "must": true } ] } },
  "world": { "tables": [ "CREATE TABLE stock (n INTEGER)", "INSERT INTO stock VALUES (1)" ] }, "steps": [ { "name": "take", "type": "task", "action": "take" } ] }
END
echo '{ "tests": [ { "name": "one is there", "given": { "with": { "workflow": "take" } }, "then": { "status": "COMPLETED", "with": { "status": "FAILED" } } } ] }' >take.test.json
[ -z "${HAPAX_TEST_PG:-}" ] || "$hapax" test take.test.json --server --db "$HAPAX_TEST_PG" >take.replayed 2>&1 &
for name in "${on_postgres[@]}"; do
	room
	replay "$name" "$name-on-postgres" --db "$HAPAX_TEST_PG" &
done
wait
for name in "${on_postgres[@]}"; do told "$name" "$name-on-postgres"; done
[ -z "${HAPAX_TEST_PG:-}" ] || { grep -q '^ok     one is there' take.replayed && grep -q 'on a real server: the same end' take.replayed; } || { cat take.replayed && false; }
result tables_of_the_world_on_postgres
[ -z "${HAPAX_TEST_PG:-}" ] || [ -z "$(psql "$HAPAX_TEST_PG" -Atc "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'hapax_test%'")" ]
result no_schema_is_left

# Two entities that are one row of a table: the one acts while the other moves it on. Moments are others there.
cat >ship.json <<'END'
{ "workflow": "ship", "kind": "entity", "meta": { "table": "parcel" }, "status_types": ["packed", "shipped"], "initial_status": "packed",
  "world": { "tables": [ "CREATE TABLE parcel (id TEXT PRIMARY KEY, status TEXT, version INTEGER, updated_at INTEGER)", "INSERT INTO parcel VALUES ('p-1', 'packed', 7, 0)" ] },
  "actions": { "Ship": { "kind": "http", "url": "http://127.0.0.1:9/s", "effect": "keyed" } },
  "steps": [ { "step_id": 1, "step_key": "ship", "status": "packed", "successful_state": "shipped", "action": "Ship" } ] }
END
sed 's/"ship"/"refund"/g; s/"shipped"/"refunded"/g; s/"Ship"/"Refund"/g' ship.json >refund.json
echo '{ "definitions": ["ship.json", "refund.json"], "tests": [ { "name": "both", "workflow": "ship", "given": { "with": { "workflow": "refund" } },
  "when": [ { "fire": "refund", "of": "refund" }, { "fire": "ship", "during": "Refund", "answer": "OK" } ], "then": {} } ] }' >ship.test.json
exits 1 test ship.test.json --server && says "silence: expected the rule holds, was Refund has happened" && says "on a real server: the same end"
result two_entities_that_are_one_row
sed -i 's/"parcel"/"no.parcel"/' ship.json && exits 70 test ship.test.json --server
! says "on a real server"
result what_was_not_tried_there_is_not_told
# Where somebody is killed the store is a file, and the server begins again.
cp "$root/examples/explore/double-charge.mended.json" flows/shop.json
echo '{ "tests": [ { "name": "killed", "given": { "services": { "charge": ["crash_after", "done"] } }, "then": { "status": "COMPLETED", "ledger": { "charge": 1 } } } ] }' >flows/shop.test.json
exits 0 test flows/shop.test.json --server && says "on a real server: the same end"
result a_server_that_is_killed
echo '{ "tests": [ { "name": "heard", "when": [ { "cancel": true, "answer": "ALREADY_COMPLETED" } ], "then": { "status": "COMPLETED" } },
  { "name": "refused", "given": { "services": { "charge": "rejected" } }, "then": { "status": "FAILED" } } ] }' >flows/shop.test.json
exits 0 test flows/shop.test.json --server --json && jq -e '[.files[0].tests[].real] == ["the same end", "the same end"]' <out >/dev/null
result what_callers_hear_is_compared
cp "$root/examples/explore/late-item.mended.json" flows/shop.json
echo '{ "tests": [ { "name": "paid", "given": { "balance": 1 }, "when": [ { "credit": 3, "answer": "OK" } ], "then": { "status": "COMPLETED", "ledger": { "draw": 2 } } },
  { "name": "kept", "given": { "balance": 1 }, "when": [ { "accept": 0, "answer": "OK" }, { "accept": 1, "answer": "WRONG_STATUS" }, { "cancel": true } ], "then": { "status": "CANCELLED", "ledger": { "delete": 0 } } } ] }' >flows/shop.test.json
exits 0 test flows/shop.test.json --server && [ "$(grep -c '^  on a real server: the same end' out)" -eq 2 ]
result an_account_that_runs_dry
# What is otherwise there is seen: this definition takes for done what the mock says has failed, and tests in memory have no statuses.
sed 's/"effect": "keyed"/&, "outcomes": { "429": "done" }/' "$root/examples/explore/double-charge.mended.json" >flows/shop.json
echo '{ "tests": [ { "name": "fails", "given": { "services": { "charge": "failed" } }, "then": { "status": "FAILED" } } ] }' >flows/shop.test.json
exits 0 test flows/shop.test.json && exits 1 test flows/shop.test.json --server && says "FAILED fails" &&
	says 'on a real server: status: "FAILED" in memory, "COMPLETED" there' && complains "1 of 1 tests failed"
result what_is_otherwise_there_is_seen
leftovers() { find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'hapax-test-*' -user "$(id -un)" -newer flows/shop.json | grep -q .; }
! leftovers
result nothing_is_left
exit 0
