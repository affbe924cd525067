#!/usr/bin/env bash
# start.sh : what it costs to have a server: the time from its start to its line "ready", the memory it holds when nobody asks
# anything, and the size of the stripped program. `make bench` runs it.
#
# A start on an empty store makes the file and brings it to the newest schema; one on a store that is there recovers it.
# Both are timed from before the fork, with the program in the page cache, and are medians. Memory is what is resident (of
# which shared libraries may be others' too), and the server's own share of it. Exits 0 whatever the numbers are.
set -eu

ROUNDS=${ROUNDS:-21}
program=${HAPAX_BUILD:?run this by make bench}/hapax
. bench/common.sh

# Prints the milliseconds from the start to the line "ready"; the server is then $server, with its output at 3.
to_ready() { # store
	local begin=$EPOCHREALTIME line
	exec 3< <(exec "$program" serve --listen 127.0.0.1:0 --db "sqlite:$1" 2>"$work/log")
	server=$!
	pids=("$server")
	if ! read -r -u 3 line || [ "${line% *}" != ready ]; then
		echo "the server did not start" >&2
		cat "$work/log" >&2
		exit 1
	fi
	ms=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", (b - a) * 1000 }')
}
stop() {
	kill "$server"
	cat <&3 >/dev/null # until it has gone
	exec 3<&-
	pids=()
}

for round in $(seq "$ROUNDS"); do
	rm -f "$work"/store*
	to_ready "$work/store"
	echo "$ms" >>"$results/empty"
	# What the start needed is given back then, and the first rounds of the janitors are over.
	[ "$round" -lt "$ROUNDS" ] || read -r -t "${IDLE_SECONDS:-3}" -u 3 line || true
	awk '/^VmRSS/ { print $2 / 1024 }' "/proc/$server/status" >"$results/resident"
	awk '/^Pss:/ { print $2 / 1024 }' "/proc/$server/smaps_rollup" >"$results/share"
	stop
	to_ready "$work/store"
	echo "$ms" >>"$results/again"
	stop
done
strip -o "$work/stripped" "$program"
stat -c %s "$work/stripped" | awk '{ print $1 / 1048576 }' >"$results/size"

tell() { # words name most
	verdict "$1" "$(median <"$results/$2")" %.1f most "$3"
}
tell 'start to ready on an empty store, ms' empty 50
tell 'start to ready on a store that is there, ms' again 50
tell 'resident memory when idle, MiB' resident 20
tell 'its own share of that, MiB' share ''
tell 'stripped program, MiB' size 1.5
