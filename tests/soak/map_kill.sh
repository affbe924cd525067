#!/usr/bin/env bash
# A map over 10,000 items as child runs, killed 100 times, on SQLite and, under tests/with-postgres, on PostgreSQL: each child once, the
# results whole. Then once more with a cancel in the middle.
set -eu
cd "$(dirname "$0")/../.."
for store in sqlite:h.db ${HAPAX_TEST_PG:-}; do
	echo "# $store"
	ITEMS=${ITEMS:-10000} KILLS=${KILLS:-100} STORE=$store tests/chaos/test_children_kill.sh
done
