#!/bin/sh
# All pairs of units, also statement by statement: HAPAX_SOAK is set here, and the tests look at it.
"$HAPAX_BUILD/tests/contract/test_pairs" && "$HAPAX_BUILD/tests/contract/test_function_pairs" &&
	"$HAPAX_BUILD/tests/contract/test_family_pairs" && exec "$HAPAX_BUILD/tests/contract/test_batch_pairs"
