#!/bin/sh
# Nodes that are killed while they drive runs, for half an hour: HAPAX_SOAK is set here, and the test looks at it.
exec "$HAPAX_BUILD/tests/chaos/test_run_kill"
