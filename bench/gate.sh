#!/usr/bin/env bash
# gate.sh : what a key costs, as ratios. `make bench` runs it after run.sh.
#
# Ceilings, in which there is nothing of the engine (raw_http.c): bytes that look like HTTP, through another thread and
# back; the same with a group commit of a gate record; with the three rows of an entity beside it. Our own: the HTTP server
# with nothing behind it (echo.c); the API that creates an entity, with a key; `hapax gate` in front of the raw echo, bare
# (not guarded) and guarded. SQLite, with every commit synced.
#
# As in run.sh a round measures everything once and a ratio is the median of the rounds' ratios; the numbers are for
# people to read, and a missed goal says so.
set -eu

ROUNDS=${ROUNDS:-3}
REQUESTS=${GATE_REQUESTS:-40000}
KEYS=1000 # of replays

bin=${HAPAX_BUILD:?run this by make bench}
. bench/common.sh

cat >"$work/bench.json" <<'JSON'
{ "workflow": "bench", "kind": "entity", "status_types": ["open", "done"], "initial_status": "open",
  "steps": [ { "step_id": 1, "step_key": "finish", "status": "open", "successful_state": "done" } ] }
JSON
mkdir "$work/workflows"
mv "$work/bench.json" "$work/workflows/"
echo '{ "routes": [ { "match": "POST /bare*", "guard": false } ] }' >"$work/gate.json"

# ---- measuring ----

measure() { # name connections keys target body
	local rate

	read -r rate _ < <("$bin/bench/load" "$address" "$2" "$REQUESTS" "$3" "$4" "$5")
	echo "$rate" >>"$results/$1.$2"
	printf '  %-18s %4d connections %8d per second\n' "$1" "$2" "$rate" >&2
}

measure_ceilings() { # connections
	start "$bin/bench/raw_http" 127.0.0.1:0 echo
	measure ceiling.echo "$1" 0 /echo '{"n":#}'
	stop_all
	start "$bin/bench/echo" 127.0.0.1:0
	measure echo "$1" 0 /echo '{"n":#}'
	stop_all
	for rows in record entity; do
		migrate "sqlite:$work/raw.db"
		start "$bin/bench/raw_http" 127.0.0.1:0 "$rows" "$work/raw.db"
		measure "ceiling.$rows" "$1" -1 /record '{"n":#}'
		stop_all
	done
}

measure_api() { # connections
	start "$bin/hapax" serve --db "sqlite:$work/api.db" --listen 127.0.0.1:0 --workflows "$work/workflows"
	measure api.plain "$1" 0 /api/v1/entities/bench '{"id":"plain-#","data":{}}'
	measure api.created "$1" -1 /api/v1/entities/bench '{"id":"order-#","data":{}}'
	measure api.replayed "$1" "$KEYS" /api/v1/entities/bench '{"id":"again-#","data":{}}'
	stop_all
}

measure_proxy() { # connections
	start "$bin/bench/raw_http" 127.0.0.1:0 echo
	start "$bin/hapax" gate --upstream "http://$address" --listen 127.0.0.1:0 --store "sqlite:$work/gate.db" \
		--config "$work/gate.json"
	measure proxy.bare "$1" 0 /bare '{"n":#}'
	measure proxy.created "$1" -1 /payments '{"n":#}'
	measure proxy.replayed "$1" "$KEYS" /payments '{"n":#}'
	stop_all
}

# ---- telling ----

share() { # words name reference bar
	for connections in 64 256; do
		verdict "$1, $connections connections" "$(ratio "$2.$connections" "$3.$connections")" %.2f least "$4"
	done
}

for round in $(seq "$ROUNDS"); do
	echo "gate, round $round of $ROUNDS" >&2
	for connections in 64 256; do
		measure_ceilings "$connections"
		measure_api "$connections"
		measure_proxy "$connections"
	done
done

echo
printf '%-52s %12s %12s\n' 'requests per second' '64' '256'
while IFS='|' read -r name title; do
	printf '%-52s %12d %12d\n' "$title" "$(median <"$results/$name.64")" "$(median <"$results/$name.256")"
done <<'ROWS'
ceiling.echo|raw echo, hardly reading what it gets
echo|our HTTP server, plain echo
ceiling.record|HTTP, group commit of a gate record, reply
ceiling.entity|the same, with the rows of an entity
api.plain|our API, creating entities without a key
api.created|our API, creating entities with a key
api.replayed|our API, replayed
proxy.bare|hapax gate, bare pass-through
proxy.created|hapax gate, created
proxy.replayed|hapax gate, replayed
ROWS
echo "(median of $ROUNDS)"
echo
share 'API created / the same rows' api.created ceiling.entity 0.70
share 'API created / a gate record alone' api.created ceiling.record ''
share 'API replayed / plain HTTP echo, same server' api.replayed echo 0.80
share 'API replayed / raw echo' api.replayed ceiling.echo ''
share 'gate created / bare pass-through' proxy.created proxy.bare 0.40
share 'gate replayed / bare pass-through' proxy.replayed proxy.bare 1.00
