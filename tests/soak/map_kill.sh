#!/usr/bin/env bash
# A map over 10,000 items as child runs, killed 100 times, on SQLite and, under tests/with-postgres, on two nodes with PostgreSQL: each child
# once, the results whole. Then once more with a cancel in the middle. And one over 100,000, whose memory is as flat.
set -eu
cd "$(dirname "$0")/../.."
ITEMS=${ITEMS:-10000} KILLS=${KILLS:-100} tests/chaos/test_children_kill.sh
ITEMS=${ITEMS_MOST:-100000} KILLS=2 tests/chaos/test_children_kill.sh
