#!/usr/bin/env bash
# calls.sh : what an http call of an action costs, by how many are under way: it must not grow with them. `make bench` runs it.
#
# The action port against a raw echo in C, with no store around it (calls.c). What counts is the CPU of one call, in
# microseconds: it is the same on a busy machine. Exits 0 whatever the numbers are.
set -eu

ROUNDS=${ROUNDS:-3}
CALLS=${CALLS:-40000}
WAYS=${WAYS:-64 256 1024 4096}

bin=${HAPAX_BUILD:?run this by make bench}/bench
. bench/common.sh
ulimit -n "$(ulimit -Hn)" # two descriptors for each call

for round in $(seq "$ROUNDS"); do
	echo "calls, round $round of $ROUNDS" >&2
	for n in $WAYS; do
		start "$bin/raw_http" 127.0.0.1:0 echo
		"$bin/calls" "http://$address/echo" "$n" $((CALLS < n ? n : CALLS)) | awk '{ print $1 }' >>"$results/calls.$n"
		printf '  %5d under way %8s us\n' "$n" "$(tail -n 1 "$results/calls.$n")" >&2
		stop_all
	done
done

echo
printf '%-52s %12s\n' 'an http call of an action' 'us of CPU'
for n in $WAYS; do
	printf '%-52s %12s\n' "$n under way" "$(median <"$results/calls.$n")"
done
echo "(median of $ROUNDS)"
echo
first=${WAYS%% *}
for n in ${WAYS#* }; do
	verdict "an http call with $n under way, of one with $first" "$(ratio "calls.$n" "calls.$first")" %.2f most 1.30
done
