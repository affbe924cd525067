#!/bin/sh
# Nodes that are killed a thousand times while they work on batches: HAPAX_SOAK is set here, and the test looks at it.
exec "$HAPAX_BUILD/tests/chaos/test_batch_kill"
