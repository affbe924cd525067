#!/usr/bin/env bash
# 1,000 schedules with a slot every second, on a node with SQLite, and on three with PostgreSQL, which are killed in turn: each slot has one
# run, none is missing.
set -eu
cd "$(dirname "$0")/../.."
SCHEDULES=${SCHEDULES:-1000} SECONDS_UP=${SECONDS_UP:-60} exec tests/chaos/test_schedule_kill.sh
