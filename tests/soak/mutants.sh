#!/bin/sh
# All mutants: HAPAX_SOAK is set here, and the script looks at it.
exec tests/mutants/run
