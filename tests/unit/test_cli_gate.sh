#!/usr/bin/env bash
# hapax gate, show and forget, by their output and exit codes: a real gate in front of a real service. What happens to
# requests is tests/http's; here it is options, findings, signals, and what a person sees. Help, manual and page agree.
set -u

hapax=${HAPAX_BUILD:-$PWD/build}/hapax
man=$PWD/man/hapax-gate.1
page=$PWD/docs/gate.md
policy=$PWD/src/gate/policy.c
if [ ! -x "$hapax" ]; then
	echo "[  SKIPPED ] the program is not built in this flavour"
	exit 0
fi
dir=$(mktemp -d)
gate=
service=
redis_lost=
finish() {
	[ -z "$redis_lost" ] || "$HAPAX_TEST_REDIS_CTL" start
	for pid in $gate $service; do kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 143' INT TERM
cd "$dir" || exit 1
unset HAPAX_GATE_UPSTREAM HAPAX_GATE_LISTEN HAPAX_GATE_ADMIN HAPAX_GATE_ADMIN_KEY HAPAX_GATE_STORE HAPAX_GATE_CONFIG HAPAX_TIMEOUT
touch out err log

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		tail -n 20 "$dir/out" "$dir/err" "$dir/log"
	fi
}
exits() { # code, arguments…
	local wanted=$1 code
	shift
	"$hapax" "$@" >"$dir/out" 2>"$dir/err"
	code=$?
	[ "$code" -eq "$wanted" ] || { echo "hapax $*: exit code $code, not $wanted" && false; }
}
says() { grep -qF -- "$1" "$dir/out"; }
says_like() { grep -qE -- "$1" "$dir/out"; }
complains() { grep -qF -- "$1" "$dir/err"; }
logged() { grep -qF -- "$1" "$dir/log"; }
silent() { [ ! -s "$dir/$1" ]; }
is() { [ "$(cat "$dir/$1")" = "$2" ]; }
await() { # command…, for at most 60 s
	local end=$((SECONDS + 60))
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.02
	done
}

# --- a service that counts; POST /slow waits for the file go, POST /die closes without an answer

cat >service.py <<'END'
import http.server, os, socket, threading, time

calls, lock = 0, threading.Lock()


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        global calls
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with lock:
            calls += 1
            answer = b"call %d" % calls
        open("called", "w").write(str(calls))
        if self.path == "/slow":
            while not os.path.exists("go"):
                time.sleep(0.01)
        if self.path == "/die":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(201)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
print(server.server_address[1], flush=True)
server.serve_forever()
END
python3 service.py >service.port 2>service.log &
service=$!
await test -s service.port
result the_service_is_there
upstream=http://127.0.0.1:$(cat service.port)

# Starts a gate and waits until it is ready; its admin address is in HAPAX_GATE_ADMIN then, if it has one.
start() { # arguments…
	: >ready
	: >log
	unset HAPAX_GATE_ADMIN
	"$hapax" gate --listen 127.0.0.1:0 "$@" >ready 2>log &
	gate=$!
	await test -s ready || return 1
	port=$(sed -n 's/^ready http:\/\/127.0.0.1:\([0-9]*\)$/\1/p' ready)
	HAPAX_GATE_ADMIN=$(sed -n 's/.*"admin":"\([^"]*\)".*/\1/p' log)
	if [ -n "$HAPAX_GATE_ADMIN" ]; then export HAPAX_GATE_ADMIN; else unset HAPAX_GATE_ADMIN; fi
	[ -n "$port" ]
}
# Stops it, which must go well.
stop() {
	local code
	kill -TERM "$gate"
	wait "$gate"
	code=$?
	gate=
	[ "$code" -eq 0 ] || { echo "the gate's exit code is $code" && false; }
}
# Sends a request; the whole answer is in out.
post() { # path, key as the header has it
	exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
	printf 'POST %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\nIdempotency-Key: %s\r\nContent-Length: 2\r\n\r\nhi' "$1" "$2" >&3
	cat <&3 >"$dir/out"
	exec 3>&-
}
# Asks the admin address whether the gate is ready.
probed() { # status, words
	exec 3<>"/dev/tcp/${HAPAX_GATE_ADMIN%:*}/${HAPAX_GATE_ADMIN##*:}" || return 1
	printf 'GET /readyz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n' >&3
	cat <&3 >"$dir/out"
	exec 3>&-
	says "HTTP/1.1 $1" && is_last "$2"
}
is_last() { [ "$(tail -n 1 "$dir/out")" = "$1" ]; }
answered() { says "HTTP/1.1 $1 " && says "Idempotency-Status: $2"; }

# --- what is not valid

exits 2 gate && complains "gate wants --upstream URL" && silent out && exits 2 gate shwo && complains 'did you mean "gate show"' &&
	exits 2 gate --upsteam x && complains "did you mean --upstream?"
result an_upstream_is_needed
exits 78 gate --upstream "$upstream" --listen 7412 && complains "--listen: " && exits 78 gate --upstream "$upstream" --admin x:1 &&
	complains "--admin: " && exits 78 gate --upstream "$upstream" --admin 0.0.0.0:0 && complains "only loopback" &&
	exits 78 gate --upstream 127.0.0.1:3000 --store memory: && complains "http://" &&
	exits 78 gate --upstream "$upstream" --store mysql://u:secret@h && complains "the store: this is not a store" && ! complains secret
result addresses_that_are_not_valid
[ ! -e gate.db ]
result nothing_was_made_meanwhile
exits 69 gate --upstream "$upstream" --store sqlite:no/such/folder/gate.db && complains "the store: "
result a_store_that_cannot_be_opened
printf '{ "store": "memory:",\n  "ttl": "0s",\n  "routes": [ { "match": "POST /x", "upstream": "http://h" },\n { "match": "post /y" } ] }\n' >bad.json
exits 78 gate --upstream "$upstream" --config bad.json && complains 'bad.json:2: error: duration: ttl: "0s"' &&
	complains 'bad.json:3: error: misplaced field: route POST /x: "upstream"' && complains 'bad.json:4: error: value: ' &&
	complains "hapax: bad.json: not a valid configuration" && exits 78 gate --upstream "$upstream" --config missing.json &&
	complains "missing.json: error: file: "
result every_finding_has_its_line

# --- a gate on its default store

start --upstream "$upstream" --admin 127.0.0.1:0 && [ -f gate.db ] && ! logged '"level":"warn"'
result it_says_that_it_is_ready
post /pay k1 && answered 201 created && says "call 1" && post /pay '"k1"' && answered 201 replayed && says "call 1"
result one_request_per_key
exits 0 gate show k1 && [ "$(wc -l <out)" = 2 ] && says_like '^RECORD +GATE +ROUTE +ENDPOINT +SCOPE +TENANT +STATUS +CREATED +LEASE LEFT +BYTES$' &&
	says_like '^[0-9a-f]{16}  gate +POST /pay +endpoint +completed +20[0-9T:.-]+Z +[0-9]+$'
result show
exits 0 gate show k1 --json && says_like '^\{"items":\[\{"record":"[0-9a-f]+",.*"status":"completed".*\}$'
result show_as_json
exits 4 gate show nobody && complains "no such record of the key nobody" && exits 4 gate show nobody --json &&
	complains '"code":"NOT_FOUND"' && exits 2 gate show && complains "gate show wants KEY" && exits 2 gate show a b
result show_what_is_not_there
odd='a/b ?&=%+#'
post /pay "\"$odd\"" && answered 201 created && exits 0 gate show "$odd" && says "POST /pay"
result keys_are_encoded

exits 0 gate forget k1 && is out "forgotten: the next request with this key is executed" && exits 4 gate show k1 &&
	exits 4 gate forget k1 && post /pay k1 && answered 201 created && says "call 3"
result forget
post /other k1 && exits 2 gate forget k1 && [ "$(wc -l <out)" = 3 ] && complains "2 records have this key: say which one with --record" &&
	exits 4 gate forget k1 --record nonsense
result forget_one_of_several_must_be_told_which
exits 0 gate show k1 && record=$(sed -n 's/^\([0-9a-f]*\)  gate *POST \/other .*/\1/p' out) && exits 0 gate forget k1 --record "$record" --json &&
	exits 0 gate show k1 && ! says /other && says /pay
result forget_by_the_record

exits 75 gate --upstream "$upstream" && complains "gate.db"
result a_second_gate_on_one_file_is_refused
exits 69 gate show k1 --admin 127.0.0.1:1 && complains 'is `hapax gate --admin` running?' && exits 2 gate show k1 --admin 1 &&
	complains "--admin" && exits 76 gate show k1 --admin "${upstream#http://}"
result no_gate_there

# --- signals

post /slow s1 &
client=$!
await grep -qx 5 called
exits 5 gate forget s1 && complains "IN_FLIGHT" && exits 0 gate show s1 && says_like ' in_flight .* [0-9]+s '
result what_is_at_work_is_not_forgotten
kill -TERM "$gate"
await logged "stopping" && touch go && wait "$client" && answered 201 created && says "call 5"
result what_is_in_flight_is_finished
wait "$gate"
[ $? -eq 0 ]
result and_it_exits_0
gate=
rm go
start --upstream "$upstream" && post /slow s1 && answered 201 replayed && says "call 5" && ! logged '"admin"'
result and_was_stored
post /slow s2 &
client=$!
await grep -qx 6 called
kill -TERM "$gate" && await logged "stopping" && kill -TERM "$gate"
wait "$gate" 2>/dev/null
[ $? -eq 143 ]
result a_second_signal_does_not_wait
gate=
wait "$client"
touch go

# --- where options come from, and what is said about them

printf '{ "upstream": "http://127.0.0.1:1", "store": "memory:", "admin": "127.0.0.1:0", "sweep": false,\n  "routes": [ { "match": "POST /die", "on_lost": "hold",\n    "processing_ttl": "300ms", "upstream_timeout": "1s" } ] }\n' >gate.json
HAPAX_GATE_CONFIG=gate.json HAPAX_GATE_UPSTREAM=http://127.0.0.1:2 start --upstream "$upstream" &&
	logged "the store is in memory: all records are lost at exit" &&
	logged "gate.json:3: warning: lease: route POST /die: processing_ttl (300ms) is not above upstream_timeout (1s)"
result a_warning_is_told_and_no_obstacle
post /pay k1 && answered 201 created
result a_flag_comes_before_environment_and_file
post /die d1 && says "HTTP/1.1 502 " && says BAD_GATEWAY && calls=$(cat called)
held() { exits 0 gate show d1 && says " held "; }
await held && post /die d1 && answered 409 conflict && [ "$(cat called)" = "$calls" ]
result what_is_lost_is_held_for_a_person
says '"code":"HELD"' && says "Retry-After: 60"
result the_client_is_told_that_it_is_held
await logged "a record is held" && logged '"key":"d1"' && exits 0 gate list --held && says_like '^d1 +[0-9a-f]{16} +gate +POST /die +held ' && [ "$(wc -l <out)" = 2 ] &&
	exits 0 gate list && says_like '^k1 ' && says_like '^d1 ' && [ "$(curl -s "$HAPAX_GATE_ADMIN/metrics" | sed -n 's/^hapax_gate_held //p')" = 1 ]
result what_is_held_is_logged_counted_and_listed
exits 2 gate resolve d1 && complains "--done or --not-done" && exits 2 gate resolve d1 --done --not-done && exits 4 gate resolve nobody --done && exits 4 gate resolve k1 --done
result a_decision_is_one_of_two
post /die d2 && await eval 'exits 0 gate show d2 && says " held "' && calls=$(cat called) && exits 0 gate resolve d2 --done && says "resolved: it was done" &&
	post /die d2 && answered 409 conflict && says RESPONSE_NOT_STORED && [ "$(cat called)" = "$calls" ] && exits 4 gate resolve d2 --not-done && exits 0 gate forget d2
result what_was_done_is_not_executed_again
post /die d3 && await eval 'exits 0 gate show d3 && says " held "' && calls=$(cat called) && exits 0 gate resolve d3 --not-done --json && is out '{"resolved":true}' &&
	post /die d3 && says "HTTP/1.1 502 " && [ "$(cat called)" = $((calls + 1)) ]
result what_was_not_done_is_executed
post /pay -k && answered 201 created && exits 0 gate show -k && says "POST /pay" && exits 2 gate show -k --jsno && complains 'did you mean --json' &&
	post /pay --k && answered 201 created && exits 0 gate show --json -- --k && says '"key":"--k"' && exits 0 gate forget -k && exits 0 gate forget -- --k
result a_key_may_begin_with_a_dash
calls=$(cat called)
exits 0 gate forget d1 && post /die d1 && says "HTTP/1.1 502 " && [ "$(cat called)" = $((calls + 1)) ]
result and_executed_again_when_it_was_forgotten
stop && HAPAX_GATE_CONFIG=gate.json HAPAX_GATE_UPSTREAM=$upstream start && post /pay k2 && answered 201 created && stop &&
	start --config gate.json && post /pay k3 && says "HTTP/1.1 502 " && says UPSTREAM_UNREACHABLE && stop
result the_environment_comes_before_the_file
printf '{ "routes": [ { "match": "POST /pay", "required": false } ] }\n' >again.json
reloaded() { logged "$1"; }
start --upstream "$upstream" --store memory: --config again.json && post /pay k20 && answered 201 created
printf '{ "header": "X-Key", "upstream": "http://127.0.0.1:2", "name": "other", "routes": [ { "match": "POST /pay", "guard": false } ] }\n' >again.json
kill -HUP "$gate" && await reloaded "the configuration was read again" && logged '"field":"name"' && ! logged '"field":"upstream"' &&
	post /pay k20 && says "HTTP/1.1 201 " && ! says Idempotency-Status
result a_hangup_reads_the_configuration_again
printf '{ "routes": [ { "match": "POST /pay", "gaurd": false } ] }\n' >again.json
kill -HUP "$gate" && await reloaded "the configuration is kept as it was" && logged "gaurd" && post /pay k20 && says "HTTP/1.1 201 " &&
	! says Idempotency-Status && stop
result and_keeps_the_old_one_where_the_new_one_is_wrong
HAPAX_GATE_ADMIN_KEY=short
export HAPAX_GATE_ADMIN_KEY
exits 78 gate --upstream "$upstream" --admin 127.0.0.1:0 --store memory: && complains "HAPAX_GATE_ADMIN_KEY must be 16 to 512" && ! complains short
result an_admin_key_that_can_be_guessed_is_refused
HAPAX_GATE_ADMIN_KEY=a-key-of-the-gate-1
start --upstream "$upstream" --admin 127.0.0.1:0 --store memory: && post /pay k9 && answered 201 created && exits 0 gate show k9 &&
	HAPAX_GATE_ADMIN_KEY=a-key-of-the-gate-2 exits 77 gate show k9 && HAPAX_GATE_ADMIN_KEY='' exits 77 gate forget k9 &&
	complains HAPAX_GATE_ADMIN_KEY && post /pay k9 && answered 201 replayed && await probed "200 " ready && stop
result with_an_admin_key_the_verbs_need_it
unset HAPAX_GATE_ADMIN_KEY
if [ -n "${HAPAX_TEST_REDIS:-}" ]; then
	exits 69 gate --upstream "$upstream" --store redis://:secret@127.0.0.1:1/0 && complains "the store: redis: 127.0.0.1:1: " &&
		! complains secret && silent out
	result a_redis_that_is_not_there
	start --upstream "$upstream" --admin 127.0.0.1:0 --store "$HAPAX_TEST_REDIS" && post /pay "redis-$$" &&
		answered 201 created && post /pay "redis-$$" && answered 201 replayed && await probed "200 " ready
	result redis
	redis_lost=yes
	"$HAPAX_TEST_REDIS_CTL" stop immediate && await probed "503 " "not ready: the store is lost" && post /pay "lost-$$" &&
		says "HTTP/1.1 503 " && says STORE_UNAVAILABLE
	result a_redis_that_is_lost
	"$HAPAX_TEST_REDIS_CTL" start && redis_lost= && await probed "200 " ready && post /pay "lost-$$" && answered 201 created && stop
	result and_found_again
fi
if [ -n "${HAPAX_TEST_PG:-}" ]; then
	schema=gate_$$
	psql -qX "$HAPAX_TEST_PG" -c "CREATE SCHEMA $schema" >"$dir/out" 2>"$dir/err" &&
		start --upstream "$upstream" --store "$HAPAX_TEST_PG?options=-csearch_path%3D$schema" && post /pay k1 &&
		answered 201 created && post /pay k1 && answered 201 replayed && stop
	result postgres
	psql -qX "$HAPAX_TEST_PG" -c "DROP SCHEMA $schema CASCADE" >/dev/null 2>&1
fi

# --- help, manual and page

exits 0 gate --help && says "usage: hapax gate [--upstream URL]" && says "usage: hapax gate show KEY" &&
	says "usage: hapax gate forget KEY" && says "default: 127.0.0.1:7412" && says "environment: HAPAX_GATE_STORE" && says "exit codes"
result help
in_manual() {
	while read -r line; do
		grep -qF -- "${line//-/\\-}" "$man" || { echo "not in the manual: $line" && return 1; }
	done
}
"$hapax" gate --help | grep -oE '^  --[a-z-]+' | tr -d ' ' | sort -u >options
[ "$(wc -l <options)" -ge 9 ] && in_manual <options
result every_option_is_in_the_manual
"$hapax" gate --help | sed -n 's/^  \([0-9][0-9]*\)  .*/.B \1/p' | sort -u >codes
[ "$(wc -l <codes)" -ge 8 ] && in_manual <codes
result every_exit_code_is_in_the_manual
sed -n '/ fields\[\] = {/,/};/p' "$policy" | grep -oE '"[a-z_]+"' | tr -d '"' >fields
bad=$(while read -r field; do grep -qE "^\| \`$field\` |\"$field\"" "$page" || echo "not in docs/gate.md: $field"; done <fields)
[ "$(wc -l <fields)" -ge 25 ] && [ -z "$bad" ] || { echo "$bad" && false; }
result every_field_is_on_the_page
sed -n '/^```json$/,/^```$/p' "$page" | grep -v '^```' >page.json
[ -s page.json ] && exits 78 gate --config page.json --listen nowhere && ! complains page.json:
result the_example_of_the_page_is_valid
exit 0
