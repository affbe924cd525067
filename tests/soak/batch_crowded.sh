#!/bin/sh
# Many batches of one account on PostgreSQL: HAPAX_SOAK is set here, and the test looks at it.
exec "$HAPAX_BUILD/tests/chaos/test_batch_parallel"
