#!/bin/sh
# All pairs of units of batches, also statement by statement: HAPAX_SOAK is set here, and the test looks at it.
exec "$HAPAX_BUILD/tests/contract/test_batch_pairs"
