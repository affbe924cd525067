#!/usr/bin/env bash
# examples/billing: its README, walked through (tests/support/walk.sh) beside the demo, and what the outside world saw.
set -u
. tests/support/walk.sh

walk_begin examples/billing/README.md
walk_start examples/demo/run.sh 'is printed here'
walk 10

# --- what the outside world saw

grep -qE '^close inv-1: calls 1, effects 1, key ent_' run.log && grep -qE '^mail inv-1: calls 1, effects 1, key ' run.log
result one_effect_for_two_callers
# The kill may have come before the call was made; then there was one call. Never two effects, never two keys.
last=$(grep '^close inv-2: ' run.log | tail -1)
[[ $last =~ calls\ [12],\ effects\ 1, ]] && [ "$(grep '^close inv-2: ' run.log | sed 's/.*key //' | sort -u | wc -l)" = 1 ]
result one_effect_and_one_key_through_a_kill
grep -q 'the engine died of signal 9; starting it again' run.log
result the_engine_is_started_again

"$build/hapax" check --strict "$root/examples/billing/workflows" --config "$root/examples/billing/config.json" >out 2>&1
result the_definition_is_clean
exit 0
