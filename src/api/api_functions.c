/*
 * The worker's side of functions: claim turns, read their journals, write them on. Each is one task (flow/function.h). A claim waits in its
 * lane for turns to come, as that of a job does (api_job_work.c).
 */
#include <string.h>

#include "api/api.h"
#include "base/hash.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "engine/definitions.h"
#include "engine/runs.h"
#include "flow/function.h"
#include "serve/problem.h"

#define FUNCTION_CLAIM_BYTES_MAX (96u << 20)
#define FUNCTION_CALL_BYTES_MAX (192u << 20)
#define FUNCTION_WARM_MAX 10000
#define FUNCTION_CALLS_MAX 100 /* in one request */

static const char no_such_run[] = "there is no such run of a function";

/* ---- reading requests ---- */

static bool function_number(struct http_call *call, struct json body, const char *member, int64_t min, int64_t max,
			    int64_t otherwise, int64_t *ret_number)
{
	struct json value;
	struct hx_error err;

	*ret_number = otherwise;
	if (!json_find(body, slice_str(member), &value))
		return otherwise >= 0 || api_invalid(call, "%s is missing", member);
	if (json_int64(value, &err, ret_number) == HX_OK && *ret_number >= min && *ret_number <= max)
		return true;
	return api_invalid(call, "%s is a whole number from %lld to %lld", member, (long long)min, (long long)max);
}

static bool function_text(struct http_call *call, struct json body, const char *member, size_t bytes_max,
			  struct slice *ret_text)
{
	struct json value;

	*ret_text = slice_of(NULL, 0);
	if (json_find(body, slice_str(member), &value) && json_type(value) == JSON_STRING)
		*ret_text = json_string_decode(value, call->arena);
	for (size_t i = 0; i < ret_text->n; i++)
		if ((unsigned char)ret_text->p[i] < 0x20)
			ret_text->n = 0;
	if (ret_text->n >= 1 && ret_text->n <= bytes_max)
		return true;
	return api_invalid(call, "%s is a string of 1 to %zu bytes without control characters", member, bytes_max);
}

/* A definition of another kind wins: nobody would ever get a turn. */
static bool name_is_free(struct http_call *call, struct slice name)
{
	struct definitions *definitions = api_parts(call)->definitions;

	if (!definitions_find(definitions, name) && !definitions_run(definitions, name) &&
	    !definitions_batch(definitions, name))
		return true;
	return api_refuse(call, HX_NAME_TAKEN, NULL);
}

/* For a worker that does not say how long it wants a turn for. */
static int64_t defined_lease(struct http_call *call, struct slice name)
{
	const struct run_machine *machine = definitions_function(api_parts(call)->definitions, name);
	int64_t lease_ms = machine ? machine->definition->lease_ms : 0;

	return lease_ms < FUNCTION_LEASE_MS_MAX ? lease_ms : FUNCTION_LEASE_MS_MAX;
}

static const struct limits *defined_limits(struct http_call *call, struct slice name)
{
	const struct run_machine *machine = definitions_function(api_parts(call)->definitions, name);

	return machine ? &machine->definition->limits : NULL;
}

static bool read_polled(struct http_call *call, struct json body, struct function_claim_request *rq)
{
	static const char *const known[] = {"name", "version", NULL};
	struct function_polled *polled;
	struct json array, value;
	bool given = json_find(body, slice_str("leaseMs"), &value);
	struct json_iter it;

	if (!json_find(body, slice_str("functions"), &array) || json_type(array) != JSON_ARRAY || !json_count(array) ||
	    json_count(array) > FUNCTION_POLLED_MAX)
		return api_invalid(call, "functions is an array of 1 to %d: {name, version}", FUNCTION_POLLED_MAX);
	polled = api_alloc(call, json_count(array) * sizeof *polled);
	if (!polled)
		return false;
	rq->polled = polled;
	it = json_iter_of(array);
	while (json_iter_element(&it, &value)) {
		struct function_polled *p = &polled[rq->polled_n++];

		if (json_type(value) != JSON_OBJECT)
			return api_invalid(call, "functions has objects: {name, version}");
		if (!api_members_known(call, value, known) ||
		    !function_text(call, value, "name", FUNCTION_NAME_BYTES_MAX, &p->name) ||
		    !function_text(call, value, "version", FUNCTION_VERSION_BYTES_MAX, &p->version) ||
		    !name_is_free(call, p->name))
			return false;
		p->lease_ms = given ? 0 : defined_lease(call, p->name);
		p->limits = defined_limits(call, p->name);
	}
	return true;
}

static bool read_warm(struct http_call *call, struct json body, struct function_claim_request *rq)
{
	struct function_warm *warm;
	struct json array, value, run;
	struct json_iter it;

	if (!json_find(body, slice_str("warm"), &array))
		return true;
	if (json_type(array) != JSON_ARRAY || json_count(array) > FUNCTION_WARM_MAX)
		return api_invalid(call, "warm is an array of at most %d: {run, seq}", FUNCTION_WARM_MAX);
	warm = api_alloc(call, (json_count(array) + 1) * sizeof *warm);
	if (!warm)
		return false;
	rq->warm = warm;
	it = json_iter_of(array);
	while (json_iter_element(&it, &value)) {
		struct function_warm *w = &warm[rq->warm_n];

		if (json_type(value) != JSON_OBJECT || !json_find(value, slice_str("run"), &run) ||
		    json_type(run) != JSON_STRING)
			return api_invalid(call, "warm has objects: {run, seq}");
		if (!function_number(call, value, "seq", 0, INT64_MAX, -1, &w->seq))
			return false;
		rq->warm_n += id_parse("run", json_string_view(run, call->arena), &w->subject);
	}
	return true;
}

static bool read_claim_request(struct http_call *call, struct json body, struct function_claim_request *rq)
{
	int64_t lease = engine_config(api_of(call)->engine)->lease_ms, max;

	rq->workspace = api_workspace(call);
	if (!function_text(call, body, "worker", FUNCTION_WORKER_BYTES_MAX, &rq->worker) ||
	    !read_polled(call, body, rq) || !read_warm(call, body, rq) ||
	    !function_number(call, body, "max", 1, 1000, /* otherwise= */ 1, &max) ||
	    !function_number(call, body, "leaseMs", FUNCTION_LEASE_MS_MIN, FUNCTION_LEASE_MS_MAX,
			     lease < FUNCTION_LEASE_MS_MAX ? lease : FUNCTION_LEASE_MS_MAX, &rq->lease_ms))
		return false;
	rq->max = max < FUNCTION_TURNS_MAX ? max : FUNCTION_TURNS_MAX;
	return function_number(call, body, "waitMs", 0, FUNCTION_WAIT_MS_MAX, /* otherwise= */ 0, &rq->wait_ms);
}

/* ---- claim ---- */

struct function_claim_call {
	struct api_task task;
	struct function_claim claim;
	struct function_claim_request rq;
	struct lane_place places[FUNCTION_POLLED_MAX];
};

static void add_journal(struct strbuf *text, int64_t subject, int64_t now, const struct function_entry *entries,
			size_t n)
{
	json_more(text, "journal");
	strbuf_add_char(text, '[');
	for (size_t i = 0; i < n; i++) {
		strbuf_add_str(text, i ? "," : "");
		entry_write(subject, &entries[i], now, /* output= */ true, text);
	}
	strbuf_add_char(text, ']');
}

static const char default_retry[] =
	"{\"maxAttempts\":3,\"initialMs\":1000,\"factor\":2,\"maxMs\":300000,\"jitter\":true}";

static void add_turn(struct strbuf *text, const struct function_turn *turn, int64_t fence_floor)
{
	const struct function_row *row = &turn->row;

	strbuf_add_char(text, '{');
	json_more_id(text, "run", "run", row->subject);
	json_more_text(text, "function", row->name);
	json_more_text(text, "version", row->turn_version);
	json_more_text(text, "key", row->key);
	json_more_int(text, "fence", fence_floor + row->fence);
	json_more_int(text, "seq", row->seq);
	json_more_json(text, "input", row->input);
	json_more_int(text, "attempt", row->lapses + 1);
	json_more_json(text, "retry", row->retry.p ? row->retry : slice_str(default_retry));
	json_more_time(text, "leaseUntil", row->until);
	json_more_int(text, "from", turn->from);
	add_journal(text, row->subject, row->now, turn->journal, turn->journal_n);
	json_more_bool(text, "more", turn->more);
	json_more_bool(text, "cancelled", strcmp(row->status, RUN_CANCELLING) == 0);
	strbuf_add_char(text, '}');
}

static const char too_many_polls[] =
	"20000 names and versions of functions have been polled for in this workspace within 30 days: there is no room for others";

static void function_claim_done(struct seat *seat, enum hx_code code)
{
	struct function_claim_call *cc = (struct function_claim_call *)seat;
	struct http_call *call = cc->task.call;
	struct strbuf text;

	atomic_fetch_sub(&api_of(call)->claiming, 1);
	if (code) {
		http_respond_code(call->exchange, code, cc->claim.full ? too_many_polls : NULL);
		api_task_free(&cc->task);
		return;
	}
	strbuf_init(&text, FUNCTION_CLAIM_BYTES_MAX);
	strbuf_add_str(&text, "{\"turns\":[");
	for (size_t i = 0; i < cc->claim.n; i++) {
		strbuf_add_str(&text, i ? "," : "");
		add_turn(&text, &cc->claim.turns[i], engine_fence_floor(api_of(call)->engine));
	}
	strbuf_add_str(&text, "]}");
	api_answer(call, 200, &text, 0);
	api_task_free(&cc->task);
}

static bool function_gave_up(const void *context)
{
	return !api_is_awaited(context);
}

static size_t function_took(const struct seat *seat, size_t place)
{
	return function_claim_took(&((const struct function_claim_call *)seat)->claim, &seat->places[place]);
}

void api_function_claim(struct http_call *call)
{
	static const char *const known[] = {"worker", "functions", "max", "waitMs", "leaseMs", "warm", NULL};
	struct function_claim_request rq = {.gave_up = function_gave_up, .gave_up_context = call};
	struct function_claim_call *cc;
	struct json body;

	if (!api_body(call, known, &body) || !read_claim_request(call, body, &rq))
		return;
	cc = api_task_new(call, sizeof *cc, FUNCTION_CLAIM_BYTES_MAX, function_claim_done);
	if (!cc)
		return;
	cc->rq = rq;
	function_claim_init(&cc->claim, &cc->rq, &cc->task.arena);
	atomic_fetch_add(&api_of(call)->claiming, 1);
	if (rq.wait_ms > 0) {
		http_exchange_do_not_time(call->exchange);
		cc->task.seat.places = cc->places;
		cc->task.seat.places_n = function_claim_places(&cc->rq, cc->places);
		cc->task.seat.took = function_took;
	}
	/* Any lane may claim any turn: workers spread over them. */
	api_task_start(&cc->task, &cc->claim.task, (uint64_t)(uintptr_t)cc >> 4);
}

/* ---- the journal, written ---- */

struct function_call_call {
	struct api_task task;
	struct function_call fn;
	struct function_request rq;
	char hash[2 * SHA256_BYTES + 1];
	struct function_calls *among; /* NULL: it is the whole request */
	size_t place;
};

/* Calls about many runs in one request: each is taken or refused by itself, and all are answered when the last of them is. */
struct function_calls {
	struct http_call *call;
	atomic_size_t left;
	size_t n;
	struct strbuf told[FUNCTION_CALLS_MAX]; /* {"status", "body"} */
};

static void write_told(const void *of, struct strbuf *text)
{
	function_call_write(of, text);
}

static void tell_calls(struct function_calls *calls)
{
	struct strbuf text;

	strbuf_init(&text, FUNCTION_CALL_BYTES_MAX);
	strbuf_add_str(&text, "{\"answers\":[");
	for (size_t i = 0; i < calls->n; i++) {
		strbuf_add_str(&text, i ? "," : "");
		strbuf_add_slice(&text, strbuf_slice(&calls->told[i]));
		text.failed |= calls->told[i].failed;
		strbuf_release(&calls->told[i]);
	}
	strbuf_add_str(&text, "]}");
	api_answer(calls->call, 200, &text, 0);
}

/* In any thread. The last one may be the end of the request, and of everything that lies in its memory. */
static void tell_one(struct function_calls *calls, size_t place, enum hx_code code, const char *detail,
		     const struct function_call *fn)
{
	struct strbuf *text = &calls->told[place];

	strbuf_init(text, FUNCTION_CALL_BYTES_MAX);
	strbuf_addf(text, "{\"status\":%d,\"body\":", code ? hx_code_http_status(code) : 200);
	if (code)
		problem_write(&(struct problem){.code = code, .detail = slice_str(detail)}, text);
	else
		function_call_write(fn, text);
	strbuf_add_char(text, '}');
	if (atomic_fetch_sub(&calls->left, 1) == 1)
		tell_calls(calls);
}

static void function_call_done(struct seat *seat, enum hx_code code)
{
	struct function_call_call *fc = (struct function_call_call *)seat;
	const struct function_work *work = &fc->fn.work;
	const char *words = code && code == work->code ? work->detail : NULL;

	atomic_fetch_add(&api_parts(fc->task.call)->metrics->jobs_stale, code == HX_STALE_FENCE);
	if (!code && work->taken && work->turn_ends && run_is_terminal(work->to))
		tally_add(&api_parts(fc->task.call)->metrics->runs_ended, TALLY_FUNCTIONS, work->to);
	words = code == HX_NOT_FOUND ? no_such_run : words;
	if (!fc->among) {
		api_task_end(&fc->task, code, words, &(struct api_told){200, .write = write_told, .of = &fc->fn});
		return;
	}
	tell_one(fc->among, fc->place, code, words, &fc->fn);
	api_task_free(&fc->task);
}

static void hash_call(struct slice bytes, char text[2 * SHA256_BYTES + 1])
{
	uint8_t digest[SHA256_BYTES];

	sha256(bytes.p, bytes.n, digest);
	sha256_hex(digest, text);
}

/* What a call has besides entries and end. False after answering. */
static bool read_call(struct http_call *call, struct json body, struct function_request *rq)
{
	static const char *const known[] = {"worker", "fence", "seq", "entries", "end", "leaseMs", NULL};
	const struct run_policy *policy = api_parts(call)->run_policy;

	rq->workspace = api_workspace(call);
	rq->machine_of = policy->machine_of;
	rq->machine_context = policy->context;
	if (!api_members_known(call, body, known) ||
	    !function_text(call, body, "worker", FUNCTION_WORKER_BYTES_MAX, &rq->worker) ||
	    !function_number(call, body, "fence", 1, INT64_MAX, -1, &rq->fence) ||
	    !function_number(call, body, "seq", 0, INT64_MAX, -1, &rq->seq) ||
	    !function_number(call, body, "leaseMs", FUNCTION_LEASE_MS_MIN, FUNCTION_LEASE_MS_MAX, 0, &rq->lease_ms))
		return false;
	rq->fence -= engine_fence_floor(api_of(call)->engine); /* from before a restore: below 1, and stale */
	return true;
}

static void start_call(struct function_call_call *fc, const struct function_request *rq, struct slice bytes)
{
	hash_call(bytes, fc->hash);
	fc->rq = *rq;
	fc->rq.hash = slice_str(fc->hash);
	function_call_init(&fc->fn, &fc->rq, &fc->task.arena);
	api_task_start(&fc->task, &fc->fn.task, (uint64_t)rq->subject);
}

void api_function_journal(struct http_call *call)
{
	static const char *const known[] = {"worker", "fence", "seq", "entries", "end", "leaseMs", NULL};
	struct function_request rq = {0};
	struct function_call_call *fc;
	struct json body;

	if (!api_body(call, known, &body) || !api_run_id(call, &rq.subject) || !read_call(call, body, &rq))
		return;
	function_parse(body, call->arena, &rq);
	fc = api_task_new(call, sizeof *fc, FUNCTION_CALL_BYTES_MAX, function_call_done);
	if (fc)
		start_call(fc, &rq, call->request->body);
}

/* One of {run, call}. False after answering: whoever sends what is no call at all is told so, and none of them is begun. */
static bool read_part(struct http_call *call, struct json part, struct function_request *rq, struct json *ret_body)
{
	static const char *const known[] = {"run", "call", NULL};
	struct json run;

	if (json_type(part) != JSON_OBJECT || !json_find(part, slice_str("run"), &run) ||
	    json_type(run) != JSON_STRING || !json_find(part, slice_str("call"), ret_body) ||
	    json_type(*ret_body) != JSON_OBJECT)
		return api_invalid(call, "calls has objects: {run, call}");
	if (!id_parse("run", json_string_view(run, call->arena), &rq->subject))
		rq->subject = 0;
	return api_members_known(call, part, known) && read_call(call, *ret_body, rq);
}

/* In its lane, unless it is refused at once. */
static void begin_part(struct function_calls *calls, size_t place, struct function_request *rq, struct json body)
{
	struct http_call *call = calls->call;
	struct function_call_call *fc;

	if (!rq->subject) {
		tell_one(calls, place, HX_NOT_FOUND, no_such_run, NULL);
		return;
	}
	function_parse(body, call->arena, rq);
	fc = api_task_alloc(call, sizeof *fc, FUNCTION_CALL_BYTES_MAX, function_call_done);
	if (!fc) {
		tell_one(calls, place, HX_BUSY, NULL, NULL);
		return;
	}
	fc->among = calls;
	fc->place = place;
	start_call(fc, rq, body.raw);
}

void api_function_journals(struct http_call *call)
{
	static const char *const known[] = {"calls", NULL};
	struct function_request *rqs;
	struct function_calls *calls;
	struct json body, array, *bodies;
	struct json_iter it;
	size_t n = 0;

	if (!api_body(call, known, &body))
		return;
	if (!json_find(body, slice_str("calls"), &array) || json_type(array) != JSON_ARRAY || !json_count(array) ||
	    json_count(array) > FUNCTION_CALLS_MAX) {
		api_invalid(call, "calls is an array of 1 to %d: {run, call}", FUNCTION_CALLS_MAX);
		return;
	}
	calls = api_alloc(call, sizeof *calls + json_count(array) * (sizeof *rqs + sizeof *bodies));
	if (!calls)
		return;
	rqs = (struct function_request *)(calls + 1);
	bodies = (struct json *)(rqs + json_count(array));
	it = json_iter_of(array);
	for (struct json part; json_iter_element(&it, &part); n++)
		if (!read_part(call, part, &rqs[n], &bodies[n]))
			return;
	calls->call = call;
	calls->n = n;
	calls->left = n + 1; /* this thread is one of them: nothing is gone before the last is begun */
	for (size_t i = 0; i < n; i++)
		begin_part(calls, i, &rqs[i], bodies[i]);
	if (atomic_fetch_sub(&calls->left, 1) == 1)
		tell_calls(calls);
}

/* ---- the journal, read ---- */

static void build_journal(struct api_query *query, struct unit *unit)
{
	static const struct function_named none = {0};

	function_read(unit, api_workspace(query->call), query->subject, &none, /* ended_after= */ -1);
	function_read_journal(unit, query->subject, query->number, FUNCTION_PAGE_BYTES_MAX);
}

enum { JOURNAL_LINE = 6 }; /* after those of function_read() */

static enum hx_code answered_journal(struct api_query *query, const struct unit_result *result)
{
	const struct db_rows *rows = &result->rows[JOURNAL_LINE];
	struct function_work work;
	struct function_entry *entries;
	LOCAL_ARENA(arena, FUNCTION_CALL_BYTES_MAX);
	enum hx_code code = function_work_take(result, 0, FUNCTION_STATE, &arena, &work);
	int64_t last;
	bool more;

	if (code)
		return code;
	if (work.row.fence != query->limit)
		return HX_STALE_FENCE;
	entries = arena_zalloc(&arena, (rows->n + 1) * sizeof *entries);
	for (size_t i = 0; entries && i < rows->n; i++)
		entries[i] = entry_of_row(rows, i, &arena);
	if (arena.failed)
		return HX_TOO_LARGE;
	more = db_cell(&result->rows[JOURNAL_LINE + 1], 0, 0)->i > (int64_t)rows->n;
	strbuf_add_char(&query->text, '{');
	add_journal(&query->text, work.row.subject, work.row.now, entries, rows->n);
	/* What has ended since the row was read is told here, as in a claim. */
	last = rows->n ? entries[rows->n - 1].seq : 0;
	json_more_int(&query->text, "seq", more || last > work.row.seq ? last : work.row.seq);
	json_more_bool(&query->text, "more", more);
	strbuf_add_char(&query->text, '}');
	return HX_OK;
}

/* A seq, from 0 on. */
static bool read_after(struct http_call *call, int64_t *ret_after)
{
	struct slice text = {NULL, 0};
	struct hx_error err;

	*ret_after = 0;
	if (!query_get(&call->query, "after", &err, &text) && (!text.p || slice_is(text, "0")))
		return true;
	return api_query_number(call, "after", 0, INT64_MAX, ret_after);
}

void api_function_read(struct http_call *call)
{
	struct api_query query = {.call = call, .build = build_journal, .answered = answered_journal};

	if (!api_run_id(call, &query.subject) || !api_query_number(call, "fence", 0, INT64_MAX, &query.limit) ||
	    !read_after(call, &query.number))
		return;
	query.limit -= engine_fence_floor(api_of(call)->engine);
	api_query_ask(&query, (uint64_t)query.subject);
}
