#!/usr/bin/env bash
# hapax entity …, and after-effects as jobs, by their output and exit codes: against a real server, and against one that answers
# whatever a test wants. Help and manual say the same.
set -u

. tests/support/cli.sh

fake=
finish() {
	for pid in $server $fake; do kill "$pid" 2>/dev/null && wait "$pid"; done
	rm -rf "$dir"
}

# --- a real server

cat >flows/doc.json <<'END'
{ "workflow": "doc", "kind": "entity", "status_types": ["new", "ready", "printing", "printed", "odd"], "initial_status": "new",
  "actions": {
    "Print":  { "kind": "exec", "argv": ["sh", "-c", "cat >&2; exit $(cat ends)"], "timeout": "5s" },
    "Tell":   { "kind": "exec", "argv": ["sh", "-c", "exit $(cat tell)"], "effect": "keyed" },
    "Refuse": { "kind": "exec", "argv": ["sh", "-c", "printf '{\"is_invalid\": true, \"reason\": \"too \\\\u001bthin\"}'"], "effect": "idempotent" },
    "Echo":   { "kind": "exec", "argv": ["cat"], "effect": "idempotent" } },
  "steps": [
    { "step_id": 1, "step_key": "prepare", "status": "new", "successful_state": { "clerk": "ready", "admin": "ready" }, "action": { "clerk": "Echo", "admin": "Refuse" } },
    { "step_id": 2, "step_key": "print", "status": "ready", "successful_state": "printed", "action": "Print", "on_unknown": "hold",
      "claim_state": ["printing", "ready"], "success_after_effect": ["Tell"] },
    { "step_id": 3, "step_key": "lose", "status": "printed", "successful_state": "odd" } ] }
END
echo '{ "modules": { "doc": { "janitor": {} } }, "exec": { "enabled": true } }' >config.json
echo 0 >ends
echo 0 >tell
serve --config config.json
result the_server_is_there
url=$HAPAX_SERVER

exits 0 entity create doc d1 --data '{"pages": 12345678901234567890.10}' && is out "doc d1: new, version 1" && silent err &&
	exits 5 entity create doc d1 && complains "exists already (409 ALREADY_EXISTS)" && silent out
result create
exits 0 entity create doc && says_like '^doc ent_[0-9a-z]{13}: new, version 1$'
result create_without_an_id
exits 2 entity create && complains "entity create wants WORKFLOW [ID]" && exits 2 entity create doc a b &&
	complains 'and "b" is too many' && exits 2 entity create doc "" && complains "empty" && exits 2 entity create doc x --data '{"a":}' &&
	complains "--data is not JSON: 1:6:" && exits 4 entity create dco x && complains 'did you mean "doc"?' &&
	exits 2 entity create doc "$(printf '%0256d' 0)" && complains "1 to 255 bytes"
result create_that_is_not_valid
exits 2 entity create doc $'\xff' && complains 'is not UTF-8: \xff' && exits 2 entity list doc --requester $'\xfe' && complains "requester is not UTF-8"
result bytes_that_would_become_others
exits 0 entity show doc d1 && says_like '^status +new$' && says_like '^version +1$' && says_like '^claim +none$' &&
	says '{"pages": 12345678901234567890.10}' && exits 0 entity show doc d1 --json &&
	says_like '^\{"workflow":"doc","id":"d1","status":"new","version":1,.*\}$'
result show
exits 0 entity list doc --where 'id == "d1" and status == "new"' && says_like '^d1 +new +1 ' && exits 0 entity list doc --where 'id == "d1"' --order createdAt --json &&
	exits 2 entity list doc --where 'colour == "red"' && complains "(400 BAD_QUERY)" && exits 2 entity list doc --order updatedAt && complains "nothing is kept in the order"
result list_is_searched
export HAPAX_WORKSPACE=data
exits 0 entity create doc dd --data '{"a": {"b": 1}, "c": 2}' && exits 0 entity data doc dd '{"a": {"b": null, "x": 3}}' --version 1 &&
	is out "doc dd: new, version 2" && exits 0 entity show doc dd && says '{"a":{"x":3},"c":2}' && exits 5 entity data doc dd '{}' --version 1 &&
	complains "(409 CONCURRENCY_ERROR)" && exits 2 entity data doc dd '{}' && complains "version" && exits 2 entity data doc dd '[' --version 2
result data_is_merged
unset HAPAX_WORKSPACE
exits 4 entity show doc nobody && complains "there is no such entity (404 NOT_FOUND)" &&
	exits 4 entity show doc nobody --json &&
	is err '{"code":"NOT_FOUND","title":"there is no such thing here","detail":"there is no such entity"}'
result show_what_is_not_there
odd='a/b ü?#%&+ ..'
exits 0 entity create doc "$odd" && is out "doc $odd: new, version 1" && exits 0 entity show doc "$odd" && says "$odd" &&
	exits 0 entity history doc "$odd" && exits 0 entity create doc .. && exits 0 entity show doc .. &&
	exits 0 entity create doc -- --x && exits 0 entity show doc -- --x && exits 2 entity show doc -x
result ids_are_encoded
exits 0 entity create doc d1 --workspace other && exits 4 entity show doc "$odd" --workspace other &&
	HAPAX_WORKSPACE=other exits 0 entity list doc && [ "$(wc -l <out)" = 2 ]
result workspaces
export HAPAX_WORKSPACE=wide
accent=$(printf 'e\u0301') # an e, and an accent that stands above it
exits 0 entity create doc 日本 && exits 0 entity create doc "$accent" && LC_ALL=C exits 0 entity list doc && says_like '^ID    STATUS ' && says_like '^日本  new ' && says_like "^$accent     new "
result wide_and_combining_characters_are_in_columns
unset HAPAX_WORKSPACE
echo '{"pages": 7}' >data.json
exits 0 entity create doc f1 --data @data.json --workspace files && HAPAX_WORKSPACE=files exits 0 entity show doc f1 && says '{"pages": 7}' &&
	"$hapax" entity create doc f2 --data - --workspace files <data.json >out && HAPAX_WORKSPACE=files exits 0 entity show doc f2 && says '{"pages": 7}' &&
	exits 2 entity create doc f3 --data @nowhere && complains "nowhere cannot be read: No such file" &&
	exits 2 entity create doc f3 --data @. && complains ". cannot be read"
result data_of_a_file_and_of_standard_input
HAPAX_WORKSPACE=files exits 0 why entity:doc:f1 && says 'entity:doc:f1 is new: waits for somebody to fire "prepare"' && exits 4 why entity:doc:nobody
result why

exits 0 entity fire doc d1 prepare --requester clerk --input '{"n": 1e400}' && says "doc d1: ready, version 2" &&
	says '"input":{"n": 1e400}' && exits 5 entity fire doc d1 prepare --requester clerk && complains "(409 WRONG_STATUS)"
result fire
exits 77 entity fire doc "$odd" prepare && complains "may not fire this step (403 REQUESTER_NOT_ALLOWED)" &&
	HAPAX_REQUESTER=nobody exits 77 entity fire doc "$odd" prepare && exits 4 entity fire doc d1 frobnicate &&
	exits 2 entity fire doc d1 && complains "entity fire wants WORKFLOW ID STEP"
result who_may_not
exits 2 entity fire doc "$odd" prepare --requester admin && complains "too" && complains "(422 INVALID)" &&
	! grep -q "$(printf '\033')" err
result a_rejection_tells_the_reason
exits 5 entity fire doc d1 print --version 1 && complains "(409 CONCURRENCY_ERROR)" &&
	exits 2 entity fire doc d1 print --version 0 && exits 2 entity fire doc d1 print --version 1.0 &&
	exits 2 entity fire doc d1 print --version 99999999999999999999
result fire_at_a_version
echo 75 >ends
exits 7 entity fire doc d1 print && complains "(502 ACTION_FAILED)" && exits 0 entity show doc d1 && says_like '^status +ready$'
result an_action_that_fails
echo 1 >ends
exits 8 entity fire doc d1 print --version 4 && complains "(504 OUTCOME_UNKNOWN)" && exits 0 entity show doc d1 &&
	says_like '^claim +print by default, held for a person, fence 2$' &&
	exits 5 entity fire doc d1 print && complains "(409 CLAIM_FAILED)" &&
	complains 'the outcome of the step "print" is unknown, and a person has to resolve it: see `hapax why`, `hapax entity resolve`'
result an_outcome_that_is_unknown
exits 0 entity list doc --held && [ "$(wc -l <out)" = 2 ] && says_like '^d1 +printing +5 .*print by default, held for a person$' &&
	exits 0 entity list doc --status new && ! says printing && exits 2 entity list doc --status nonsense
result list
exits 0 entity list --held && [ "$(wc -l <out)" = 2 ] && says_like 'held_claim +entity:doc:d1 +doc +print' && exits 2 entity list && exits 2 entity list --held --status new
result held_ones_of_all_workflows
exits 0 entity list doc --limit 2 && says "there are more: --cursor '" && [ "$(wc -l <out)" = 4 ] &&
	exits 0 entity list doc --limit 2 --cursor "$(sed -n "s/^there are more: --cursor '\(.*\)'$/\1/p" out)" &&
	says "$odd" && exits 2 entity list doc --limit 0 && exits 2 entity list doc --limit 501 && exits 0 entity list doc --json &&
	says '"cursor":null'
result pages
exits 2 entity resolve doc d1 print maybe && complains "done or not_done" && exits 2 entity resolve doc d1 print &&
	exits 5 entity resolve doc d1 lose "done" && exits 5 entity resolve doc "$odd" print "done" &&
	exits 0 entity resolve doc d1 print not_done && says "doc d1: ready, version 6"
result resolve_as_not_done
echo 78 >tell
exits 8 entity fire doc d1 print && exits 0 entity resolve doc d1 print "done" --output '{"sheets": 3}' &&
	says "doc d1: printed, version 8" && says 'output: {"sheets": 3}'
result resolve_as_done
exits 0 entity history doc d1 && says_like '^SEQ +FROM +TO +VERSION' && says_like '^8 +printing +printed +8 +3 ' &&
	exits 0 entity history doc d1 --limit 3 && says "there are more: --cursor '3'" &&
	exits 0 entity history doc d1 --cursor 7 --json && says '"seq":8' && exits 4 entity history doc nobody
result history

parked() { exits 0 job list --status PARKED && says_like '^job_.* PARKED +after-effects +1 +Tell of doc d1 '; }
await parked
result a_job_that_is_parked
job=$(sed -n 's/^\(job_[^ ]*\) .*/\1/p' out)
exits 0 job list --json && says "\"id\":\"$job\"" && exits 0 job list --workspace other && [ "$(wc -l <out)" = 1 ]
result job_list
echo 0 >tell
exits 0 job redrive "$job" && is out "$job: AVAILABLE"
result job_redrive
completed() { exits 0 job list --status COMPLETED && says "$job"; }
await completed && exits 5 job redrive "$job" && complains "it is not parked" && exits 4 job redrive x && exits 2 job redrive
result job_redrive_of_what_is_not_parked

# --- no server, and addresses that are none

exits 69 entity show doc d1 --server http://127.0.0.1:1 && complains "no server at http://127.0.0.1:1" &&
	complains 'is `hapax serve` running?' && exits 69 entity fire doc d1 lose --server http://127.0.0.1:1 --json &&
	complains '"code":"SERVER_UNAVAILABLE"' && exits 69 job list --server http://nowhere.invalid
result no_server
refused() { for bad; do exits 2 job list --server "$bad" || return 1; done; }
refused 127.0.0.1:7411 https:// http:// http://127.0.0.1:0 http://127.0.0.1:x http://u:p@h http://h/path \
	"http://h?q" "http://h#f" "http://h :1" "http://[::1" ftp://h
result addresses_that_are_not_valid
exits 0 job list --server "$url/" && exits 0 job list --server "${url/127.0.0.1/localhost}" &&
	exits 69 job list --server http://[::1]:1 && complains "http://[::1]:1"
result addresses_that_are_valid
exits 2 job list --workspace "$(printf 'a\r\nX: y')" && complains 'a\r\nX: y' && exits 2 job list --timeout 1 &&
	exits 2 job list --timeout 0s
result options_that_are_not_valid

# --- a server that answers whatever stands in the file `answer`; an empty one: it waits until the client goes

cat >fake.c <<'END'
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

static char text[1 << 16];

int main(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	FILE *file;

	if (bind(listener, (void *)&at, n) || listen(listener, 5) || getsockname(listener, (void *)&at, &n))
		return 1;
	printf("http://127.0.0.1:%d\n", ntohs(at.sin_port));
	fflush(stdout);
	for (;;) {
		int fd = accept(listener, 0, 0);
		ssize_t got = recv(fd, text, sizeof text - 1, 0);
		size_t size;

		text[got < 0 ? 0 : got] = 0;
		file = fopen("request", "w");
		fputs(text, file);
		fclose(file);
		file = fopen("answer", "r");
		size = fread(text, 1, sizeof text, file);
		fclose(file);
		if (size == 0)
			while (recv(fd, text, sizeof text, 0) > 0)
				;
		for (size_t i = 0; i < size; i += 7) /* in small pieces, as networks do */
			send(fd, text + i, size - i < 7 ? size - i : 7, MSG_NOSIGNAL);
		shutdown(fd, SHUT_WR);
		while (recv(fd, text, sizeof text, 0) > 0)
			;
		close(fd);
	}
}
END
gcc -o fake fake.c || exit 1
: >answer
./fake >fake.out &
fake=$!
await test -s fake.out
HAPAX_SERVER=$(cat fake.out)

problem='{"type":"urn:x","title":"t","status":409,"detail":"words","code":"STALE_FENCE"}'
printf 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n' \
	"${problem:0:16}" $((${#problem} - 16)) "${problem:16}" >answer
exits 5 entity fire doc d1 lose --input '{"a": [1, 2]}' --version 7 --requester r --workspace w && is err "hapax: words (409 STALE_FENCE)"
result an_answer_in_chunks
tr -d '\r' <request >plain
grep -qx 'POST /api/v1/entities/doc/d1/steps/lose HTTP/1.1' plain && grep -qx 'Hapax-Workspace: w' plain &&
	grep -qx 'Hapax-Requester: r' plain && grep -qx 'Content-Type: application/json' plain && grep -qx 'Content-Length: 35' plain &&
	[ "$(tail -n 1 plain)" = '{"input":{"a": [1, 2]},"version":7}' ]
result the_request
printf 'HTTP/1.1 200 OK\r\n\r\n{"items":[],"cursor":null}' >answer
exits 0 job list --json && is out '{"items":[],"cursor":null}' && ! grep -q Content-Length request
result an_answer_until_the_end
printf 'HTTP/1.1 418 Teapot\r\nContent-Length: 33\r\n\r\n{"code":"NEW_ONE","detail":"new"}' >answer
exits 2 job list && is err "hapax: new (418 NEW_ONE)"
result a_code_that_is_not_known
printf 'HTTP/1.1 502 Bad\r\n\r\n{"code":"ACTION_FAILED","detail":"%s\\u001b[31m"}' "$(printf 'ü%.0s' {1..300})" >answer
exits 7 job list && [[ $(cat err) == "hapax: üü"*"ü... (502 ACTION_FAILED)" ]] && iconv -f utf-8 -t utf-8 err >out
result long_words_are_cut_and_the_code_is_not
printf 'HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n<html' >answer
exits 76 job list && complains "not as a hapax server does" && printf 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello' >answer &&
	exits 76 job list && printf 'SSH-2.0-OpenSSH\r\n' >answer && exits 76 job list &&
	printf 'HTTP/1.1 200 OK\nContent-Length: 2\n\n{}' >answer && exits 76 job list &&
	printf 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}' >answer && exits 76 job list
result what_is_no_hapax_server
printf 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"entity"' >answer
exits 8 entity fire doc d1 lose && complains "went away before it answered" && complains "not known whether this took effect" &&
	exits 69 job list && complains "went away"
result an_answer_that_breaks_off
: >answer
exits 8 entity fire doc d1 lose --timeout 200ms && complains "did not answer within 200ms: it is not known" &&
	exits 69 job list --timeout 200ms && complains "did not answer within 200ms" && HAPAX_TIMEOUT=100ms exits 69 job list
result no_answer_in_time
kill -KILL "$server" && wait "$server"
server=
exits 69 entity show doc d1 --server "$url"
result a_server_that_is_gone

# --- help and manual

helps() { # verb
	exits 0 entity "$1" --help && says_like "^usage: hapax entity $1 \[?WORKFLOW" && says "default: http://127.0.0.1:7411" &&
		says "environment: HAPAX_SERVER" && says "exit codes"
}
helps create && helps show && helps list && helps fire && helps resolve && helps data && helps history
result help_of_each_verb
exits 0 help && says "hapax COMMAND" && says "run start" && exits 0 help entity && says "usage: hapax entity fire" && exits 0 help entity fire && says "usage: hapax entity fire" &&
	! says "usage: hapax entity show" && exits 2 help entiti && complains 'did you mean "entity"' && exits 2 help entity fier
result help_as_a_word
exits 0 entity --help && says "usage: hapax entity create" && says "usage: hapax entity history" && exits 0 job --help &&
	says "usage: hapax job redrive ID" && exits 2 entity frie && complains 'did you mean "entity fire"?'
result help_of_the_nouns
"$hapax" --help | sed -n 's/^  \([a-z]* *[a-z]*\)  .*/hapax \1/p' | grep -v '^hapax \(run\|batch\|account\|job\|key\|schedule\|bulk\|explore\|test\) ' >verbs # these have pages of their own
[ "$(wc -l <verbs)" -ge 12 ] && in_manual hapax.1 <verbs
result every_verb_is_in_the_manual
help_is_in_manual schedule hapax-schedule.1
result the_manual_of_schedules
for noun in entity serve check db why; do "$hapax" $noun --help; done | grep -oE '^  --[a-z-]+' | tr -d ' ' | sort -u >options
[ "$(wc -l <options)" -ge 20 ] && in_manual hapax.1 <options
result every_option_is_in_the_manual
for noun in entity serve check db why; do "$hapax" $noun --help; done | sed -n 's/^  \([0-9][0-9]*\)  .*/.B \1/p' | sort -u >codes
[ "$(wc -l <codes)" -ge 10 ] && in_manual hapax.1 <codes
result every_exit_code_is_in_the_manual
exit 0
