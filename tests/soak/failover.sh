#!/usr/bin/env bash
# A failover to a synchronous standby (docs/operations.md): the primary is killed while clients create runs, the standby is promoted,
# and the server, which has both in its URL, goes on. Nothing that was acknowledged is lost, and every run comes to its end.
#
#   primary (with-postgres, of this test alone) ── synchronous ──▶ standby      hapax serve --db postgres://standby,primary/…
#      │ killed                                                       │ promoted
set -u
[ "${1:-}" = inside ] || exec tests/with-postgres "$0" inside
[ "$(id -u)" -eq 0 ] && as=(runuser -u postgres --) || as=()

hapax=${HAPAX_BUILD:-$PWD/build}/hapax
bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
dir=$(mktemp -d /tmp/hapax-fo.XXXXXX)
[ "${#as[@]}" -eq 0 ] || chown postgres "$dir"
server=
clients=
finish() {
	touch "$dir/stop"
	for pid in $clients; do wait "$pid"; done
	[ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null
	[ ! -f "$dir/standby/postmaster.pid" ] || control stop -m immediate
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 143' TERM INT

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		tail -n 20 "$dir"/*.log "$dir/out" 2>/dev/null
	fi
}
await() { # seconds, command…
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}
ask() { psql -h 127.0.0.1 -U hapax -p "$1" -d hapax_test -Atqc "$2" 2>/dev/null; }      # port, sql
says() { [ "$(ask "$1" "$2")" = "$3" ]; }                                              # port, sql, answer
control() { (cd "$dir" && "${as[@]}" "$bin/pg_ctl" -D "$dir/standby" -s -w "$@" </dev/null); } # words…
acknowledged() { [ "$(wc -l <"$dir/acknowledged")" -ge "$1" ]; }                       # how many

# ---- a primary and its synchronous standby ----

first=$HAPAX_TEST_PG_PORT
second=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
(cd "$dir" && "${as[@]}" "$bin/pg_basebackup" -D "$dir/standby" -R -X stream -c fast -d "postgres://hapax@127.0.0.1:$first/?application_name=standby") >"$dir/out" 2>&1
printf "port = %s\nunix_socket_directories = '%s'\n" "$second" "$dir" | "${as[@]}" tee "$dir/standby/port.conf" >/dev/null
control -l "$dir/standby.log" start && ask "$first" "ALTER SYSTEM SET synchronous_standby_names = 'standby'" && ask "$first" 'SELECT pg_reload_conf()' >"$dir/out" &&
	await 20 says "$first" 'SELECT sync_state FROM pg_stat_replication' sync
result a_synchronous_standby

# ---- a server that knows both, the standby first ----

mkdir "$dir/flows"
cat >"$dir/flows/hop.json" <<'JSON'
{ "workflow": "hop", "kind": "run", "actions": { "nothing": { "kind": "noop" } },
  "steps": [ { "name": "one", "type": "task", "action": "nothing" }, { "name": "rest", "type": "wait", "for": "1s" },
             { "name": "two", "type": "task", "action": "nothing" } ] }
JSON
"$hapax" serve --db "postgres://hapax@127.0.0.1:$second,127.0.0.1:$first/hapax_test" --listen 127.0.0.1:0 --workflows "$dir/flows" \
	>"$dir/ready" 2>"$dir/serve.log" &
server=$!
await 30 grep -qs '^ready ' "$dir/ready"
result the_server_starts
url=$(sed -n 's/^ready //p' "$dir/ready")
says "$second" "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hapax'" 0
result no_session_on_the_standby
"$hapax" audit --db "postgres://hapax@127.0.0.1:$second/hapax_test" >"$dir/out" 2>&1
result an_audit_reads_the_standby

# ---- clients, each with keys of its own ----

touch "$dir/acknowledged" "$dir/others"
client() { # number
	local n=0 status
	while [ ! -e "$dir/stop" ]; do
		n=$((n + 1))
		status=$(curl -s -o /dev/null -w '%{http_code}' --max-time 30 "$url/api/v1/workflow-runs" \
			-d "{\"definitionId\": \"hop\", \"idempotencyKey\": \"$1-$n\"}")
		case $status in
		20?) echo "$1-$n" >>"$dir/acknowledged" ;;
		*) echo "$status" >>"$dir/others" && sleep 0.1 ;;
		esac
	done
}
for n in 1 2 3 4; do
	client "$n" &
	clients="$clients $!"
done
await 30 acknowledged 100
result clients_are_served

# ---- the failover ----

"$HAPAX_TEST_PG_CTL" stop immediate
before=$(wc -l <"$dir/acknowledged")
control promote && ask "$second" "ALTER SYSTEM SET synchronous_standby_names = ''" && ask "$second" 'SELECT pg_reload_conf()' >"$dir/out"
result the_standby_is_promoted
await 60 acknowledged $((before + 100))
result the_server_goes_on
touch "$dir/stop"
for pid in $clients; do wait "$pid"; done
clients=

# ---- what is there ----

sed "s/.*/('&')/; \$!s/\$/,/" "$dir/acknowledged" >"$dir/keys"
says "$second" "SELECT count(*) FROM (VALUES $(cat "$dir/keys")) a (k) WHERE NOT EXISTS (SELECT 1 FROM hx_run WHERE run_key = k)" 0
result nothing_acknowledged_is_lost
await 90 says "$second" "SELECT count(*) FROM hx_run r JOIN hx_subject s ON s.id = r.subject WHERE s.status <> 'COMPLETED'" 0
result every_run_comes_to_its_end
"$hapax" audit --db "postgres://hapax@127.0.0.1:$second/hapax_test" >"$dir/out" 2>&1
result the_audit_finds_nothing
echo "# acknowledged $(wc -l <"$dir/acknowledged"), $before of them before; not 2xx: $(sort "$dir/others" | uniq -c | tr -s ' \n' ' ')"
exit 0
