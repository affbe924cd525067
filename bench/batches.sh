#!/usr/bin/env bash
# batches.sh : what one item of a batch costs, in batches of 1,000, 10,000 and 100,000: it must not grow with the batch. `make
# bench` runs it after runs.sh, through tests/with-postgres.
#
#   load       the request with all items, until it is acknowledged
#   work       items of a native action, 64 at a time, all of one account: a start with its debit and an end each, so 2 units and 1 ledger entry
#   teardown   the cancel of a batch of which all items but the last are done: flip and refund, and a cleanup call for each
#   memory     of the server, at its highest since the start, above what it had before the batch
#
# The lane of the same round is the ceiling: an item cannot cost less than two of its transitions. Numbers are medians of
# the rounds'. Exits 0 whatever they are.
set -eu

ROUNDS=${ROUNDS:-3}
SIZES=${SIZES:-1000 10000 100000}
LANE_MOVES=${LANE_MOVES:-150000}
STORES=${STORES:-sqlite postgres}

bin=${HAPAX_BUILD:?run this by make bench}/bench
: "${HAPAX_TEST_PG:?run this by make bench}"
. bench/common.sh

mkdir "$work/workflows"
cat >"$work/workflows/render.json" <<'JSON'
{ "workflow": "render", "kind": "batch", "concurrency": 64,
  "actions": { "render": { "kind": "native", "function": "ship", "effect": "keyed" },
               "delete": { "kind": "native", "function": "reserve", "effect": "idempotent" } },
  "item_action": "render", "cleanup_action": "delete" }
JSON

now_us() {
	echo "${EPOCHREALTIME/./}"
}

call() { # method path [body…]
	curl -sS --fail-with-body -X "$1" -H 'Content-Type: application/json' "http://$address/api/v1$2" "${@:3}"
}

await() { # id status
	local is

	for _ in $(seq 100); do
		is=$(call GET "/batches/$1?wait=5s" | jq -r .status)
		[ "$is" != "$2" ] || return 0
		[ "$is" = RUNNING ] || [ "$is" = QUEUED ] || [ "$is" = CANCELLING ] || break
	done
	echo "the batch is $is, not $2" >&2
	exit 1
}

# Appends microseconds per item to the results under a name.
note() { # name microseconds items
	awk -v us="$2" -v n="$3" 'BEGIN { printf "%.2f\n", us / n }' >>"$results/$1"
	printf '  %-28s %s\n' "$1" "$(tail -1 "$results/$1")" >&2
}

rss_kb() { # VmHWM or VmRSS
	awk -v what="$1:" '$1 == what { print $2 }' "/proc/${pids[0]}/status"
}

start_batch() { # account
	printf '{"workflow":"render","account":"%s","items":%s}' "$1" "$(cat "$work/items")" >"$work/body"
	began=$(now_us)
	id=$(call POST /batches --data-binary "@$work/body" | jq -r .id)
}

measure_size() { # store items
	local before

	rm -f "$work"/batch.db*
	url=sqlite:$work/batch.db
	[ "$1" = sqlite ] || url=$(fresh_database)
	start "$bin/run_server" "$url" "$work/workflows" node-1
	awk -v n="$2" 'BEGIN { printf "["; for (i = 0; i < n; i++) printf "%s{\"input\":{\"frame\":%d},\"cost\":3}", i ? "," : "", i; printf "]" }' >"$work/items"
	call POST /accounts -d '{"id":"rich","balance":1000000000}' >/dev/null
	call POST /accounts -d "{\"id\":\"short\",\"balance\":$(($2 * 3 - 1))}" >/dev/null
	before=$(rss_kb VmRSS)
	start_batch rich
	note "$1.load.$2" $(($(now_us) - began)) "$2"
	began=$(now_us)
	await "$id" COMPLETED
	note "$1.work.$2" $(($(now_us) - began)) "$2"
	start_batch short
	for _ in $(seq 1000); do
		[ "$(call GET "/batches/$id" | jq -r .status)" != OUT_OF_CREDIT ] || break
		sleep 0.1
	done
	began=$(now_us)
	call POST "/batches/$id/cancel" >/dev/null
	await "$id" CANCELLED
	note "$1.teardown.$2" $(($(now_us) - began)) "$2"
	note "$1.memory.$2" $(($(rss_kb VmHWM) - before)) 1024
	stop_all
}

for round in $(seq "$ROUNDS"); do
	echo "batches, round $round of $ROUNDS" >&2
	for store in $STORES; do
		url=sqlite:$work/lane.db
		[ "$store" = sqlite ] || url=$(fresh_database)
		"$bin/lane" "$url" 256 "$LANE_MOVES" "$lanes" | awk '{ print 1000000 / $1 }' >>"$results/$store.lane"
		rm -f "$work"/lane.db*
		for size in $SIZES; do
			measure_size "$store" "$size"
		done
	done
done

row() { # title name
	printf '%-52s' "$1"
	for store in $STORES; do
		printf ' %12s' "$(median <"$results/$store.$2")"
	done
	echo
}

echo
# shellcheck disable=SC2086
printf "%-52s$(printf ' %%12s%.0s' $STORES)\n" 'microseconds for one item' $STORES
row 'raw lane, 256 callers: one transition' lane
for what in load work teardown; do
	for size in $SIZES; do
		row "$what, batch of $size" "$what.$size"
	done
done
for size in $SIZES; do
	row "memory above the start, MiB, batch of $size" "memory.$size"
done
echo "(median of $ROUNDS)"
echo
first=${SIZES%% *} last=${SIZES##* }
for store in $STORES; do
	for what in load work teardown; do
		verdict "$what on $store, an item of $last over one of $first" \
			"$(ratio "$store.$what.$last" "$store.$what.$first")" %.2f most 1.30
	done
done
case $STORES in *postgres*)
	verdict 'items of one account in a second, postgres, 64 at a time' \
		"$(awk -v us="$(median <"$results/postgres.work.$last")" 'BEGIN { print 1000000 / us }')" %.0f least 5000
	;;
esac
