#!/bin/sh
# Two nodes on the same hot rows for a minute: HAPAX_SOAK is set here, and the test looks at it.
exec "$HAPAX_BUILD/tests/chaos/test_hot_rows"
