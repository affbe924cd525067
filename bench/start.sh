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
}

for round in $(seq "$ROUNDS"); do
	rm -f "$work"/store*
	to_ready "$work/store"
	echo "$ms" >>"$work/empty"
	[ "$round" -lt "$ROUNDS" ] || sleep 3 # idle: what the start needed is given back, the first rounds of the janitors are over
	awk '/^VmRSS/ { print $2 / 1024 }' "/proc/$server/status" >"$work/resident"
	awk '/^Pss:/ { print $2 / 1024 }' "/proc/$server/smaps_rollup" >"$work/share"
	stop
	to_ready "$work/store"
	echo "$ms" >>"$work/again"
	stop
done
strip -o "$work/stripped" "$program"
stat -c %s "$work/stripped" | awk '{ print $1 / 1048576 }' >"$work/size"

row() { # words name unit goal
	awk -v words="$1" -v v="$(median <"$work/$2")" -v unit="$3" -v goal="$4" 'BEGIN {
		printf "%-46s %7.1f %s", words, v, unit
		if (goal)
			printf "   (goal: under %d)%s", goal, v < goal ? "" : " MISSED"
		print "" }'
}
row "start to ready, empty store" empty ms 100
row "start to ready, a store that is there" again ms ""
row "resident memory, idle" resident MiB 20
row "its own share of it" share MiB ""
row "stripped program" size MiB 2
