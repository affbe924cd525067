#!/usr/bin/env bash
# run.sh : the engine against the bare stores, on this machine's own disk, as ratios. `make bench` runs it through
# tests/with-postgres, so that the private PostgreSQL and the SQLite files lie in the same temporary folder.
#
# 64 or 512 transitions are under way at any time. The bare store gets them in the largest batches that this allows:
# all in one transaction on SQLite, a quarter in each of four connections on PostgreSQL. What group commit makes of
# them in a lane is somewhat less, because some callers come back while others are being written; so bare SQLite is
# measured a second time, at the batch size that the lane was seen to have.
#
# PostgreSQL gets a lane for each processor, from 2 to 4, and then 4 lanes: more than there are processors only make
# the batches smaller.
#
# A round measures everything once, the sides of a ratio one right after the other; a ratio is the median of the rounds'
# ratios. Each measurement has a fresh store and ends after a fixed number of transitions. Exits 0 whatever the
# numbers are: they are for people to read, and a missed goal says so.
set -eu

ROUNDS=${ROUNDS:-3}
SQLITE_MOVES=${SQLITE_MOVES:-150000}
PG_MOVES=${PG_MOVES:-100000}
GOAL=0.60

bin=${HAPAX_BUILD:?run this by make bench}/bench
: "${HAPAX_TEST_PG:?run this by make bench}"
connections=4 # CONNECTIONS in workload.h
. bench/common.sh
lane_counts=$lanes
[ "$lanes" -eq 4 ] || lane_counts="$lanes 4"

# ---- measuring ----

raw_sqlite() { # batch
	rm -f "$work"/store*
	migrate "sqlite:$work/store"
	"$bin/raw_sqlite" "$work/store" "$1" "$SQLITE_MOVES"
}

lane_sqlite() { # callers
	rm -f "$work"/store*
	"$bin/lane" "sqlite:$work/store" "$1" "$SQLITE_MOVES"
}

raw_postgres() { # batch
	local url

	url=$(fresh_database)
	migrate "$url"
	"$bin/raw_postgres" "$url" "$1" "$PG_MOVES"
}

lane_postgres() { # callers lanes
	"$bin/lane" "$(fresh_database)" "$1" "$PG_MOVES" "$2"
}

# Appends "rate batch" to the results under a name.
measure() { # name command…
	local name=$1 result
	shift
	result=$("$@")
	echo "$result" >>"$results/$name"
	printf '  %-20s %8d per second in batches of %s\n' "$name" "${result% *}" "${result#* }" >&2
}

measure_sqlite() { # callers
	local own
	measure "sqlite.$1.raw" raw_sqlite "$1"
	measure "sqlite.$1.lane" lane_sqlite "$1"
	own=$(tail -n 1 "$results/sqlite.$1.lane" | awk '{ printf "%.0f", $2 }')
	measure "sqlite.$1.own" raw_sqlite "$own"
}

measure_postgres() { # callers
	measure "postgres.$1.raw" raw_postgres $(($1 / connections))
	for n in $lane_counts; do
		measure "postgres.$1.lane$n" lane_postgres "$1" "$n"
	done
}

# ---- telling ----

row() { # title callers name reference
	printf '%-34s %7d  %9d (%5.1f)' "$1" "$2" "$(column "$3" 1)" "$(column "$3" 2)"
	[ $# -lt 4 ] || printf '   %.2f' "$(ratio "$3" "$4")"
	echo
}

measure_disk
for round in $(seq "$ROUNDS"); do
	echo "round $round of $ROUNDS" >&2
	for callers in 64 512; do
		measure_sqlite "$callers"
		measure_postgres "$callers"
	done
done

echo "this disk: $syncs fdatasync of 4 KiB per second; $(nproc) processors"
echo
printf '%-34s %7s  %17s  %s\n' '' callers 'transitions/s' 'of the bare store'
for callers in 64 512; do
	row 'bare SQLite' "$callers" "sqlite.$callers.raw"
	row 'one lane' "$callers" "sqlite.$callers.lane" "sqlite.$callers.raw"
	row "bare SQLite in the lane's batches" "$callers" "sqlite.$callers.own"
	row 'one lane, against that' "$callers" "sqlite.$callers.lane" "sqlite.$callers.own"
done
for callers in 64 512; do
	row "bare PostgreSQL, $connections connections" "$callers" "postgres.$callers.raw"
	for n in $lane_counts; do
		row "$n lanes" "$callers" "postgres.$callers.lane$n" "postgres.$callers.raw"
	done
done
echo "(median of $ROUNDS; in brackets: transitions in a transaction)"
echo
for callers in 64 512; do
	verdict "a lane, of bare SQLite, $callers callers" "$(ratio "sqlite.$callers.lane" "sqlite.$callers.raw")" %.2f least "$GOAL"
done
for callers in 64 512; do
	verdict "$lanes lanes, of bare PostgreSQL, $callers callers" \
		"$(ratio "postgres.$callers.lane$lanes" "postgres.$callers.raw")" %.2f least "$GOAL"
done
