# shellcheck shell=bash
# common.sh : what the scripts of the benchmark share; they source it. A temporary folder $work that goes with the script,
# servers that end with it, medians, and the number of lanes that a server has on PostgreSQL.

lanes=$(nproc)
lanes=$((lanes < 2 ? 2 : lanes > 4 ? 4 : lanes))
work=$(mktemp -d "${TMPDIR:-/tmp}/hapax-bench.XXXXXX")
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
	paste -d ' ' <(cut -d ' ' -f 1 "$work/$1") <(cut -d ' ' -f 1 "$work/$2") | awk '{ print $1 / $2 }' | median
}
