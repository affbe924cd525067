#!/bin/sh
# A batch of 100,000 items on PostgreSQL too: HAPAX_SOAK is set here, and the test looks at it.
exec "$HAPAX_BUILD/tests/chaos/test_batch_large"
