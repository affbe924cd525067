#!/usr/bin/env bash
# run.sh : the engine against the bare stores, on this machine's own disk, as ratios. `make bench` runs it through
# tests/with-postgres, so that the private PostgreSQL and the SQLite files lie in the same temporary folder.
#
# A round measures each pair once, its sides one right after the other; a ratio is the median of the rounds' ratios.
# Each measurement begins with a store of its own and ends after a fixed number of transitions.
#
# 64 or 512 transitions are under way at any time. The bare store gets them in the largest batches that this allows:
# all in one transaction on SQLite, a quarter in each of the four connections on PostgreSQL. Group commit in the lane
# makes smaller ones, because some callers come back while the others are being written; so the bare store is measured
# a second time, at the batch size that the lane was seen to have. The goal is held against both ratios.
#
# PostgreSQL gets a lane for each processor, from 2 to 4: more lanes only make the batches smaller. LANES overrules it.
#
# Exits 0 whatever the numbers are: they are for people to read.
set -eu

ROUNDS=${ROUNDS:-3}
SQLITE_MOVES=${SQLITE_MOVES:-150000}
PG_MOVES=${PG_MOVES:-100000}
GOAL=0.60
connections=4 # CONNECTIONS in workload.h
lanes=$(nproc)
lanes=${LANES:-$((lanes < 2 ? 2 : lanes > 4 ? 4 : lanes))}

bin=${HAPAX_BUILD:?run this by make bench}/bench
pg=${HAPAX_TEST_PG:?run this by make bench}
schema=src/db/schema
work=$(mktemp -d "${TMPDIR:-/tmp}/hapax-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() {
	printf '%s\n' "$*" >&2
}

# A database of its own for each measurement, with nothing left to be written back from the one before.
fresh_database() {
	psql -qX "$pg" -c 'DROP DATABASE IF EXISTS hapax_bench' -c 'CREATE DATABASE hapax_bench' -c CHECKPOINT \
		>/dev/null 2>&1
	echo "${pg%/*}/hapax_bench"
}

raw_sqlite() { # batch
	rm -f "$work"/store*
	"$bin/raw_sqlite" "$schema/0001_subjects.sqlite.sql" "$work/store" "$1" "$SQLITE_MOVES"
}

lane_sqlite() { # callers
	rm -f "$work"/store*
	"$bin/lane" "sqlite:$work/store" "$1" "$SQLITE_MOVES"
}

raw_postgres() { # batch
	"$bin/raw_postgres" "$schema/0001_subjects.postgres.sql" "$(fresh_database)" "$1" "$PG_MOVES"
}

lane_postgres() { # callers
	"$bin/lane" "$(fresh_database)" "$1" "$PG_MOVES" "$lanes"
}

# Appends "rate batch" to the results of one side of one pair.
measure() { # store callers side argument
	local result
	result=$("${3%_own}_$1" "$4")
	echo "$result" >>"$work/$1.$2.$3"
	say "  $1, $2 callers, ${3%_own}: ${result% *} per second in batches of ${result#* }"
}

measure_pair() { # store callers batch
	local own
	measure "$1" "$2" raw "$3"
	measure "$1" "$2" lane "$2"
	own=$(tail -n 1 "$work/$1.$2.lane" | awk '{ printf "%.0f", $2 }')
	measure "$1" "$2" raw_own "$own"
}

median() {
	sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

side() { # store callers side column
	awk -v c="$4" '{ print $c }' "$work/$1.$2.$3" | median
}

# lane / raw, or lane / raw_own.
ratio() { # store callers side
	paste -d ' ' "$work/$1.$2.lane" "$work/$1.$2.$3" | awk '{ print $1 / $3 }' | median
}

row() { # store callers title
	printf '%-22s %7d  %8d (%5.1f)  %8d (%5.1f)   %.2f   %8d (%5.1f)   %.2f\n' "$3" "$2" \
		"$(side "$1" "$2" raw 1)" "$(side "$1" "$2" raw 2)" "$(side "$1" "$2" lane 1)" "$(side "$1" "$2" lane 2)" \
		"$(ratio "$1" "$2" raw)" "$(side "$1" "$2" raw_own 1)" "$(side "$1" "$2" raw_own 2)" \
		"$(ratio "$1" "$2" raw_own)"
}

verdict() { # store callers name
	awk -v name="$3 $2" -v goal="$GOAL" -v same="$(ratio "$1" "$2" raw)" -v own="$(ratio "$1" "$2" raw_own)" '
	function words(ratio) { return sprintf("%.2f%s", ratio, ratio >= goal ? "" : " MISSED") }
	BEGIN {
		printf "%s: %s for the same callers, %s at the same batch size (goal %.2f)\n", name, words(same),
			words(own), goal
	}'
}

syncs=$("$bin/disk_sync" "$work/sync" 3)
rm -f "$work/sync"
for round in $(seq "$ROUNDS"); do
	say "round $round of $ROUNDS"
	for callers in 64 512; do
		measure_pair sqlite "$callers" "$callers"
	done
	for callers in 64 512; do
		measure_pair postgres "$callers" $((callers / connections))
	done
done

echo "transitions per second, median of $ROUNDS (in brackets: transitions in a transaction)"
echo "this disk: $syncs fdatasync of 4 KiB per second; $(nproc) processors"
echo
printf '%-22s %7s  %16s  %16s  %5s  %17s  %5s\n' '' callers 'bare store' lane ratio "bare, lane's batch" ratio
for callers in 64 512; do
	row sqlite "$callers" 'SQLite, 1 lane'
done
for callers in 64 512; do
	row postgres "$callers" "PostgreSQL, $lanes lanes"
done
echo
for callers in 64 512; do
	verdict sqlite "$callers" 'lane/raw SQLite'
done
for callers in 64 512; do
	verdict postgres "$callers" 'lanes/raw PostgreSQL'
done
