#!/usr/bin/env bash
# 1,000 functions of five steps; a worker is killed every 300 ms and a node every second, until the last of them has ended.
set -eu
cd "$(dirname "$0")/../.."
FUNCTIONS=${FUNCTIONS:-1000} WORKER_KILLS=${WORKER_KILLS:-100000} NODE_KILLS=${NODE_KILLS:-100000} exec tests/chaos/test_functions_kill.sh
