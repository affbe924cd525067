#!/usr/bin/env bash
# All stories of explore and their mended twins on a real server, on SQLite and on PostgreSQL: of the latter make test has three.
HAPAX_SOAK=1 exec tests/http/test_explore_replay.sh
