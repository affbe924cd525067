#!/usr/bin/env bash
# A workspace that means harm beside one that only works, on two nodes and a PostgreSQL of this test alone, for HAPAX_SOAK_SECONDS
# (an hour): the good one's 99th percentile stays below three times that of its quiet hours, and nothing of its work is lost or done
# twice. What is done to it, and how it is judged, is in tests/support/hostile.py.
set -u
[ "${1:-}" = inside ] || exec tests/with-postgres "$0" inside
if [ ! -x "${HAPAX_BUILD:-$PWD/build}/hapax" ]; then
	echo "[  SKIPPED ] the program is not built in this flavour"
	exit 0
fi
export HAPAX_SOAK_SECONDS=${HAPAX_SOAK_SECONDS:-3600} PYTHONDONTWRITEBYTECODE=1
exec python3 tests/support/hostile.py
