#!/usr/bin/env bash
# hapax explore --worker, in short; all of it is the soak.
HAPAX_BRIEF=1 exec tests/soak/explore_worker.sh
