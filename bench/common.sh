# shellcheck shell=bash
# common.sh : what the scripts of the benchmark share; they source it. A temporary folder $work that goes with the script,
# servers that end with it, medians, verdicts, and the number of lanes that a server has on PostgreSQL.
#
# What is measured goes into $results, a file for each name with a line for each round, and what is told of it into
# $results/verdicts: bench.py keeps them (BENCH_RAW) and makes the page of them.

lanes=$(nproc)
lanes=$((lanes < 2 ? 2 : lanes > 4 ? 4 : lanes))
work=$(mktemp -d "${TMPDIR:-/tmp}/hapax-bench.XXXXXX")
results=${BENCH_RAW:-$work}/$(basename "$0" .sh)
mkdir -p "$results"
pids=()
end() {
	[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Starts a server and waits for its line "ready http://ADDRESS"; the address is in $address.
start() { # command…
	local ready="$work/ready.${#pids[@]}"

	: >"$ready"
	"$@" >"$ready" 2>"$work/log" &
	pids+=($!)
	for _ in $(seq 200); do
		address=$(sed -n 's|^ready http://||p' "$ready")
		[ -z "$address" ] || return 0
		kill -0 "${pids[-1]}" 2>/dev/null || break
		sleep 0.05
	done
	echo "a server did not start: $*" >&2
	cat "$work/log" >&2
	exit 1
}

stop_all() {
	kill "${pids[@]}"
	wait "${pids[@]}" 2>/dev/null || true
	pids=()
	rm -f "$work"/*.db*
}

# A store with the engine's schema in it and nothing else, for a program that is not the engine.
migrate() { # URL
	"$HAPAX_BUILD/hapax" db migrate --db "$1" >/dev/null
}

# A database of its own for each measurement, with nothing left to be written back from the one before.
fresh_database() {
	psql -qX "$HAPAX_TEST_PG" -c 'DROP DATABASE IF EXISTS hapax_bench' -c 'CREATE DATABASE hapax_bench' \
		-c CHECKPOINT >/dev/null 2>&1
	echo "${HAPAX_TEST_PG%/*}/hapax_bench"
}

median() {
	sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# The median of the rounds' ratios of two results; what counts in a line is its first number.
ratio() { # name name
	paste -d ' ' <(cut -d ' ' -f 1 "$results/$1") <(cut -d ' ' -f 1 "$results/$2") | awk '{ print $1 / $2 }' | median
}

# The median of a column of a result.
column() { # name column
	awk -v c="$2" '{ print $c }' "$results/$1" | median
}

# How many times a second this disk syncs, in $syncs, and how long that takes, in $commit_ms.
measure_disk() {
	syncs=$("$HAPAX_BUILD/bench/disk_sync" "$work/sync" "${DISK_SECONDS:-3}")
	rm -f "$work/sync"
	# shellcheck disable=SC2034
	commit_ms=$(awk -v n="$syncs" 'BEGIN { printf "%.3f", 1000 / n }')
	echo "$syncs" >>"$results/syncs"
}

# Tells a number, and whether it is as it should be: at least or at most its bar ("": it has none).
verdict() { # words number format least|most bar
	awk -v words="$1" -v n="$2" -v format="$3" -v sense="$4" -v bar="$5" 'BEGIN {
		printf "%s: " format, words, n
		if (bar != "")
			printf " (bar " format ")%s", bar, (sense == "least" ? n >= bar : n <= bar) ? "" : " MISSED"
		print "" }'
	printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$4" "$5" >>"$results/verdicts"
}
