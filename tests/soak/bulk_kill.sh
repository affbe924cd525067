#!/usr/bin/env bash
# A bulk that cancels 10,000 of 13,334 runs, its node killed ten times in the middle, on SQLite and, under tests/with-postgres, on PostgreSQL
# with two nodes that are killed in turn: one result for each, none cancelled twice. Then fewer of batches and of entities.
set -eu
cd "$(dirname "$0")/../.."
ITEMS=${ITEMS:-13334} KILLS=${KILLS:-10} tests/chaos/test_bulk_kill.sh
for kind in batch entity; do
	KIND=$kind ITEMS=${FEW:-800} KILLS=${KILLS:-10} tests/chaos/test_bulk_kill.sh
done
