#!/usr/bin/env bash
# Runs that compensate themselves after a failure or when their time is over, and restarts, through a hundred kills each.
set -eu
cd "$(dirname "$0")/../.."
RUNS=${RUNS:-300} KILLS=${KILLS:-50} exec tests/chaos/test_failure_kill.sh
