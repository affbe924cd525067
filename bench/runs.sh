#!/usr/bin/env bash
# runs.sh : runs, jobs and workers, next to the raw lane of the same round. `make bench` runs it after gate.sh, through
# tests/with-postgres.
#
#   lane      guarded transitions through one lane (SQLite) or as many as the server has (PostgreSQL), 256 callers: what
#             the store and the lane give at most. A run of three steps is 4 units with 7 transitions, a job 2 of them
#   runs      of three native steps, created over HTTP with an idempotency key and awaited, 1 to 256 under way
#   map       the same runs as the children of one, 256 under way: by the rows that they are, and without a request for each
#   push      jobs over HTTP, one in a request and 100 in a request
#   deliver   jobs that are due, drained by the engine's own dispatcher (native after-effects)
#   claim     jobs of a queue, claimed and completed by tasks in process
#   workers   the same by workers over HTTP, who claim 100 at a time and complete each
#   pick-up   from a job's being due to a waiting worker's having it, on an idle system
#
# As in run.sh a round measures everything once on a fresh store, and numbers are medians of the rounds'. The bars are
# those of SQLite on a machine where the raw lane does 100,000 transitions in a second, so rates are scaled by what the
# lane did in that round; latencies are told beside the disk's commit time. Exits 0 whatever the numbers are.
set -eu

ROUNDS=${ROUNDS:-3}
RUNS=${RUNS:-30000} # at 256 under way, fewer where fewer are
MAP_ITEMS=${MAP_ITEMS:-$((RUNS / 4))}
JOBS=${JOBS:-50000}
PICKUPS=${PICKUPS:-200}
LANE_MOVES=${LANE_MOVES:-150000}
STORES=${STORES:-sqlite postgres}

bin=${HAPAX_BUILD:?run this by make bench}/bench
: "${HAPAX_TEST_PG:?run this by make bench}"
. bench/common.sh

mkdir "$work/workflows"
cat >"$work/workflows/order.json" <<'JSON'
{ "workflow": "order", "kind": "run",
  "actions": { "reserve": { "kind": "native", "function": "reserve", "effect": "keyed" },
               "charge": { "kind": "native", "function": "charge", "effect": "keyed" },
               "ship": { "kind": "native", "function": "ship", "effect": "keyed" } },
  "steps": [ { "name": "reserve", "type": "task", "action": "reserve", "input": "{sku: .input.sku}", "save_as": "reservation" },
             { "name": "charge", "type": "task", "action": "charge" },
             { "name": "ship", "type": "task", "action": "ship" } ],
  "output": "{reservation: .state.reservation}" }
JSON
cat >"$work/workflows/orders.json" <<'JSON'
{ "workflow": "orders", "kind": "run",
  "steps": [ { "name": "all", "type": "map", "over": ".input.skus", "workflow": "order", "input": "{sku: .item, quantity: 3}",
               "concurrency": 256 } ] }
JSON
cat >"$work/workflows/parcel.json" <<'JSON'
{ "workflow": "parcel", "kind": "entity", "status_types": ["open", "done"], "initial_status": "open",
  "actions": { "mail": { "kind": "native", "function": "mail", "effect": "keyed" } },
  "steps": [ { "step_id": 1, "step_key": "finish", "status": "open", "successful_state": "done",
               "success_after_effect": ["mail"] } ] }
JSON
bulk="[$(printf '{"queue":"bulk","payload":{"n":#}},%.0s' $(seq 99)){\"queue\":\"bulk\",\"payload\":{\"n\":#}}]"

# ---- measuring ----

# A store that nobody has used is in $url.
fresh_store() { # store
	rm -f "$work"/runs.db*
	url=sqlite:$work/runs.db
	[ "$1" = sqlite ] || url=$(fresh_database)
}

serve() { # store
	fresh_store "$1"
	start "$bin/run_server" "$url" "$work/workflows" node-1
}

# Appends what the command prints to the results under a name: numbers, of which the first may be scaled.
measure() { # name factor command…
	local name=$1 factor=$2

	shift 2
	"$@" | awk -v f="$factor" '{ $1 *= f; print }' >"$work/one"
	[ -s "$work/one" ] || exit 1
	cat "$work/one" >>"$results/$name"
	printf '  %-24s %s\n' "$name" "$(cat "$work/one")" >&2
}

measure_runs() { # store in-flight runs
	serve "$1"
	measure "$1.runs.$2" 1 "$bin/load" "$address" "$2" "$3" 0 '/api/v1/workflow-runs?wait=30s' \
		'{"definitionId":"order","input":{"sku":"a-#","quantity":3},"idempotencyKey":"order-#"}' \
		'"status":"COMPLETED","version":7,'
	stop_all
}

# Children a second: one request, which is answered when all of them have ended, and the time that it took (the second number).
load_map() {
	"$bin/load" "$address" 1 1 0 '/api/v1/workflow-runs?wait=30s' \
		"{\"definitionId\":\"orders\",\"input\":{\"skus\":[$(seq -s , "$MAP_ITEMS")]}}" '"status":"COMPLETED"' |
		awk -v n="$MAP_ITEMS" '{ print n * 1000 / $2 }'
}

measure_map() { # store
	serve "$1"
	measure "$1.map" 1 load_map
	stop_all
}

measure_jobs() { # store
	serve "$1"
	measure "$1.push" 1 "$bin/load" "$address" 64 $((JOBS / 2)) 0 /api/v1/jobs '{"queue":"single","payload":{"n":#}}'
	measure "$1.push.bulk" 100 "$bin/load" "$address" 16 $((JOBS / 100)) 0 /api/v1/jobs "$bulk"
	measure "$1.workers" 1 "$bin/worker" "$address" 64 $((JOBS / 2)) single
	stop_all
	for how in deliver claim; do
		fresh_store "$1"
		measure "$1.$how" 1 "$bin/jobs" "$url" "$work/workflows" "$JOBS" "$how"
	done
}

measure_pickup() { # store
	local first

	serve "$1"
	first=$address
	measure "$1.pickup.now" 1 "$bin/pickup" "$first" "$first" "$PICKUPS" 0
	measure "$1.pickup.later" 1 "$bin/pickup" "$first" "$first" "$PICKUPS" 30
	if [ "$1" = postgres ]; then
		start "$bin/run_server" "$url" "$work/workflows" node-2
		measure "$1.pickup.across" 1 "$bin/pickup" "$first" "$address" "$PICKUPS" 0
	fi
	stop_all
}

measure_store() { # store
	fresh_store "$1"
	measure "$1.lane" 1 "$bin/lane" "$url" 256 "$LANE_MOVES" "$lanes"
	measure_runs "$1" 1 $((RUNS / 20))
	measure_runs "$1" 16 $((RUNS / 4))
	measure_runs "$1" 64 $((RUNS / 2))
	measure_runs "$1" 256 "$RUNS"
	measure_map "$1"
	measure_jobs "$1"
	measure_pickup "$1"
}

# ---- telling ----

row() { # title name column format
	printf '%-58s' "$1"
	for store in $STORES; do
		if [ -f "$results/$store.$2" ]; then
			# shellcheck disable=SC2059
			printf " %12s" "$(printf "$4" "$(column "$store.$2" "$3")")"
		else
			printf ' %12s' '-'
		fi
	done
	echo
}

# A rate on SQLite, for each 100,000 transitions of the lane in the same round.
verdict_rate() { # words name bar
	verdict "$1, for 100,000 transitions of the raw lane" \
		"$(awk -v r="$(ratio "$2" sqlite.lane)" 'BEGIN { print r * 100000 }')" %.0f least "$3"
}

verdict_latency() { # words name column bar
	verdict "$1, ms" "$(column "$2" "$3")" %.2f most "$4"
}

measure_disk
for round in $(seq "$ROUNDS"); do
	echo "runs, round $round of $ROUNDS" >&2
	for store in $STORES; do
		measure_store "$store"
	done
done

echo
echo "one commit of this disk: $commit_ms ms; $(nproc) processors"
# shellcheck disable=SC2086
printf "%-58s$(printf ' %%12s%.0s' $STORES)\n" 'a second, or milliseconds' $STORES
row 'raw lane, 256 callers: transitions' lane 1 %.0f
for n in 1 16 64 256; do
	row "runs of 3 native steps, created and awaited, $n in flight" "runs.$n" 1 %.0f
done
row "children of a map over $MAP_ITEMS, 256 in flight" map 1 %.0f
row 'latency of a run at 1 in flight, p50 ms' runs.1 2 %.2f
row 'latency of a run at 1 in flight, p99 ms' runs.1 3 %.2f
row 'jobs pushed one by one, 64 connections' push 1 %.0f
row 'jobs pushed 100 at a time, 16 connections' push.bulk 1 %.0f
row 'jobs drained in process, by the dispatcher' deliver 1 %.0f
row 'jobs drained in process, claimed from a queue' claim 1 %.0f
row 'jobs drained by 64 workers over HTTP' workers 1 %.0f
row 'pick-up of a job that is due at once, p50 ms' pickup.now 1 %.2f
row 'pick-up of a job that is due at once, p99 ms' pickup.now 2 %.2f
row 'pick-up of a job that falls due, p50 ms' pickup.later 1 %.2f
row 'pick-up of a job that another node was given, p50 ms' pickup.across 1 %.2f
row 'pick-up of a job that another node was given, p99 ms' pickup.across 2 %.2f
echo "(median of $ROUNDS)"
echo
case $STORES in *sqlite*)
	verdict_rate 'runs at 256 in flight' sqlite.runs.256 6000
	verdict_rate 'jobs drained by the dispatcher' sqlite.deliver 20000
	verdict_rate 'jobs claimed from a queue' sqlite.claim 20000
	verdict_latency 'a run at 1 in flight, p50, sqlite, of 5 commits of the disk' sqlite.runs.1 2 \
		"$(awk -v c="$commit_ms" 'BEGIN { print 5 * c }')"
	;;
esac
for store in $STORES; do
	verdict "children of a map for each run at 256 in flight, $store" "$(ratio "$store.map" "$store.runs.256")" %.2f least 0.5
	verdict_latency "pick-up on one node, p50, $store" "$store.pickup.now" 1 5
	verdict_latency "pick-up when it falls due, p50, $store" "$store.pickup.later" 1 5
	[ "$store" = sqlite ] || verdict_latency "pick-up across nodes, p50, $store" "$store.pickup.across" 1 5
done
