#!/bin/sh
# Random units of batches on both stores, twenty times as many: HAPAX_SOAK is set here, and the test looks at it.
exec "$HAPAX_BUILD/tests/contract/test_batch_random"
