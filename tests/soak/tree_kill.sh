#!/usr/bin/env bash
# Trees of depth 5 and width 5, each cancelled after another number of calls, at every one of the first 50, every other one while nodes are
# killed (-9): on SQLite, and on PostgreSQL with two nodes.
set -eu
cd "$(dirname "$0")/../.."
POINTS=${POINTS:-50} KILLS=${KILLS:-4} exec tests/chaos/test_tree_cancel.sh
