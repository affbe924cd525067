#!/bin/sh
# The tests of chaos/ that do in make test a part of what they can, whole: HAPAX_SOAK is set here, and they look at it.
for name in batch_races entity_claims gate_kill gate_parallel kill_nine run_cancel run_create run_restart run_workers; do
	"$HAPAX_BUILD/tests/chaos/test_$name" || exit
done
