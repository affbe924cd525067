#!/usr/bin/env bash
# hapax explore --worker: functions in JavaScript and Python, their workers' calls cut; mistakes are found, and their mended twins are clean.
# charge.mjs and its twin are walked with docs/explore.md. HAPAX_BRIEF: what make test has time for (tests/clients/test_explore_worker.sh).
set -u
root=$(pwd)
build=${HAPAX_BUILD:-$root/build}
work=$(mktemp -d "${TMPDIR:-/tmp}/explore-worker.XXXXXX")
trap 'rm -rf "$work"' EXIT
[ -x "$build/hapax" ] || { echo "[  SKIPPED ] the program is not built in this flavour"; exit 0; }
export PYTHONPATH=$root/clients/python PYTHONDONTWRITEBYTECODE=1
export MALLOC_PERTURB_=165 # what a killed worker has said is not read after its connection is gone
mkdir "$work/node_modules" && ln -s "$root/clients/js" "$work/node_modules/hapax"
cp examples/functions/order.mjs "$work/"
echo '{ "inputs": [ { "sku": "lamp", "total": 1200 } ], "events": { "payment": { "amount": 7 } } }' >"$work/order.world.json"

explore() { # rc words… -- options: the exit code, and lines that are in the report
	local rc=$1 name=$2 line bad=
	shift 2
	local lines=()
	while [ "$1" != -- ]; do lines+=("$1"); shift; done
	shift
	timeout 600 "$build/hapax" explore "$@" >"$work/out" 2>"$work/err"
	local got=$?
	[ $got = "$rc" ] || bad="exit $got"
	for line in "${lines[@]}"; do grep -qF -- "$line" "$work/out" "$work/err" || bad="$bad; no line: $line"; done
	echo "${bad:+not }ok $name"
	[ -z "$bad" ] || { echo "$bad"; cat "$work/out" "$work/err"; }
}

whole() { [ -n "${HAPAX_BRIEF:-}" ] || explore "$@"; }
brief() { [ -z "${HAPAX_BRIEF:-}" ] || explore "$@"; }

# The examples are clean, and every call of the plain schedule is there to be cut.
whole 0 order_in_javascript_is_clean 'up to 0 mishaps, and some with more; no rule was broken' 'order call 8: ' 'dedupes (A5)' -- \
	--worker "node $work/order.mjs $work/ledger" --world "$work/order.world.json" --seconds 2 --mishaps 1
whole 0 order_in_python_is_clean 'bounded: not all schedules were seen' 'order call 8: ' -- \
	--worker "python3 examples/functions/order.py $work/ledger" --world "$work/order.world.json" --seconds 1 --mishaps 1

# Chance between the steps: whichever way it falls, another worker goes the other way before long.
whole 1 chance_diverges 'found: same: the code does not go the same way again: its journal has step show' 'diverges' -- \
	--worker "python3 examples/explore/experiment.py" --seconds 5
whole 0 chance_that_is_asked_of_ctx_does_not 'no rule was broken' -- \
	--worker "python3 examples/explore/experiment.mended.py" --seconds 1 --mishaps 1

# A claimed step that is tried again; what is suggested was tried.
brief 1 a_claimed_step_is_tried_again 'found: once: charge has been executed 2 times under one key, RUN/charge/' -- \
	--worker "python3 examples/explore/retried.py" --seconds 1 --mishaps 1 --brief
whole 1 a_claimed_step_that_is_tried_again 'found: once: charge has been executed 2 times under one key, RUN/charge/' \
	'function checkout, step charge, onUnknown: retry repeats' 'worker-a       is killed: that did not arrive' \
	'tried: onUnknown: hold, step charge: explored again, 0 found' 'provided that the service dedupes by the key of the step' -- \
	--worker "python3 examples/explore/retried.py" --seconds 1 --mishaps 1
cp "$work/out" "$work/first"
whole 1 the_same_bytes_again -- --worker "python3 examples/explore/retried.py" --seconds 1 --mishaps 1
[ -n "${HAPAX_BRIEF:-}" ] || { cmp "$work/first" "$work/out" >&2 && echo "ok same_bytes" || echo "not ok same_bytes"; }

# All schedules with one mishap of a function with a keyed and a claimed step, both to be undone, cancelled at each call: a step that was
# done and never undone was found so in both clients.
cat >"$work/undone.py" <<'PY'
import hapax


@hapax.function("undone")
def undone(ctx, input):
    ctx.step("reserve", lambda key: 4, compensate=lambda out, key: None)
    ctx.step("charge", lambda key: "paid", effect="claimed", compensate=lambda out, key: None)


hapax.work([undone])
PY
cat >"$work/undone.mjs" <<'JS'
import hapax from "hapax";
const undone = hapax.function("undone", async (ctx) => {
  await ctx.step("reserve", { compensate: () => {} }, () => 4);
  await ctx.step("charge", { effect: "claimed", compensate: () => {} }, () => "paid");
});
await hapax.work({ functions: [undone] });
JS
whole 0 what_was_done_is_undone_python 'complete: every schedule within these bounds' -- \
	--worker "python3 $work/undone.py" --seconds 60 --mishaps 1 --pauses 0 --lost 0
whole 0 what_was_done_is_undone_javascript 'complete: every schedule within these bounds' -- \
	--worker "node $work/undone.mjs" --seconds 60 --mishaps 1 --pauses 0 --lost 0

brief 0 what_was_done_is_undone 'no rule was broken' 'has executed charge: done; ends its turn: completed: killed_before' -- \
	--worker "node $work/undone.mjs" --seconds 1 --mishaps 1 --pauses 0 --lost 0

# Steps that begin while others are executed, children and a race, all to be undone: what comes when is not the same each time.
cat >"$work/mixed.mjs" <<'JS'
import hapax from "hapax";
const undo = { compensate: () => {} }, claimed = { effect: "claimed", compensate: () => {} };
const pack = hapax.function("pack", async (ctx) => { await ctx.step("fold", undo, () => 1); });
const mixed = hapax.function("mixed", async (ctx) => {
  const branch = async () => { await ctx.step("quick", undo, () => 1); return ctx.step("second", claimed, () => 2); };
  const slow = ctx.step("slow", undo, () => new Promise((done) => setTimeout(() => done(3), 20)));
  await ctx.all([branch(), slow]);
  await ctx.child("pack", pack, {});
  await ctx.race([ctx.event("go"), ctx.sleep("limit", "1h")]);
  await ctx.step("last", { effect: "claimed" }, () => 5);
});
await hapax.work({ functions: [mixed, pack] });
JS
whole 0 what_is_mixed_is_done_once_and_undone 'no rule was broken' -- --worker "node $work/mixed.mjs" --seconds 30 --mishaps 1 --brief

# The world: a keyed step whose service does not dedupe; rules of the user's.
cat >"$work/keyed.py" <<'PY'
import hapax


@hapax.function("keyed")
def keyed(ctx, input):
    ctx.step("mail", lambda key: "sent")


hapax.work([keyed])
PY
echo '{ "services": { "mail": { "dedupes": false } } }' >"$work/once.json"
whole 1 a_service_that_does_not_dedupe 'found: once: mail has been executed 2 times' 'tried: effect: claimed, step mail' -- \
	--worker "python3 $work/keyed.py" --world "$work/once.json" --seconds 1 --mishaps 1
echo '{ "rules": [ { "ends": ".ledger.mail == 2" } ] }' >"$work/rule.json"
whole 1 a_rule_of_the_users 'found: ends: nothing goes on any more, and it is not so: .ledger.mail == 2' -- \
	--worker "python3 $work/keyed.py" --world "$work/rule.json" --seconds 1
for form in json junit sarif; do
	[ -z "${HAPAX_BRIEF:-}" ] || break
	"$build/hapax" explore --worker "python3 $work/keyed.py" --world "$work/once.json" --seconds 1 --mishaps 1 --brief --$form >"$work/out" 2>"$work/err"
	python3 -c 'import json, sys, xml.dom.minidom; text = open(sys.argv[1]).read(); xml.dom.minidom.parseString(text) if sys.argv[2] == "junit" else json.loads(text)' \
		"$work/out" $form && grep -q 'mail has been executed 2 times' "$work/out" && echo "ok as_$form" || { echo "not ok as_$form"; cat "$work/out"; }
done

# What cannot be explored.
explore 2 a_worker_that_ends 'the worker has ended by itself (3): no such thing' -- --worker 'echo no such thing >&2; exit 3'
explore 2 nothing_at_all 'explore wants PATH…, or --worker' -- --seconds 1
exit 0
