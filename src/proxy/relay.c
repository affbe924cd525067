/* See relay.h. */
#include "proxy/relay.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/strbuf.h"
#include "serve/problem.h"
#include "wire/loop.h"
#include "wire/upstream.h"

#define TIMEOUT_MS                                                                                                     \
	120000 /* of an answer, or of each piece of one: the stream of changes has a sign of life every 15 s */
#define FIELDS_BYTES_MAX 8192
#define FIELDS_MAX 16
#define KEPT_MAX 8

/* In lower case. */
static const char *const fields_sent[] = {
	"accept", "content-type", "idempotency-key", "if-match", "if-none-match", "last-event-id", NULL};
static const char *const fields_shown[] = {
	"content-type",           "etag", "cache-control", "retry-after", "content-security-policy",
	"x-content-type-options", NULL};

struct relay {
	struct upstream *upstream;
	struct upstream_pool *pool; /* NULL: nobody has asked yet */
	struct relay_job *jobs;
	struct strbuf bearer; /* "Bearer hx_…"; empty: there is no key */
	struct strbuf more;   /* those lines */
	struct wire_field more_fields[KEPT_MAX];
	size_t more_n;
};

/* One request. It is its own, since the exchange may be gone before its call is. */
struct relay_job {
	struct upstream_call call;
	struct relay *relay;
	struct relay_job *next, *previous;
	struct http_exchange *exchange; /* NULL: it was answered */
	struct loop *loop;
	struct arena arena;
	bool streams, paused;
	struct wire_field fields[FIELDS_MAX];
};

/* ---- its life ---- */

static struct relay_job *job_new(struct relay *relay, struct http_exchange *exchange)
{
	struct relay_job *job = calloc(1, sizeof *job);

	if (!job)
		return NULL;
	job->relay = relay;
	job->exchange = exchange;
	job->loop = http_exchange_loop(exchange);
	arena_init(&job->arena, 1u << 20);
	LIST_PUSH(relay->jobs, job);
	job->loop->guests++;
	return job;
}

static void relay_job_free(struct relay_job *job)
{
	LIST_DROP(job->relay->jobs, job);
	arena_release(&job->arena);
	free(job);
}

/* ---- the answer ---- */

static void relay_room(struct http_exchange *exchange, void *data)
{
	struct relay_job *job = data;

	(void)exchange;
	if (!job->paused)
		return;
	job->paused = false;
	upstream_call_resume(&job->call);
}

static void relay_head(struct upstream_call *call)
{
	struct relay_job *job = CONTAINER_OF(call, struct relay_job, call);
	const struct wire_head *head = &call->response.head;
	struct wire_field fields[FIELDS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < head->fields.n && n < FIELDS_MAX; i++)
		if (slice_in_nocase(head->fields.at[i].name, fields_shown))
			fields[n++] = head->fields.at[i];
	job->streams = true;
	call->patient = true;
	http_stream_start(job->exchange, &(struct http_answer){.status = call->response.status, .fields = {fields, n}},
			  head->has_length ? (int64_t)head->length : -1, relay_room, job);
}

static size_t relay_data(struct upstream_call *call, struct slice bytes)
{
	struct relay_job *job = CONTAINER_OF(call, struct relay_job, call);
	size_t taken;

	call->unwanted = http_exchange_gone(job->exchange);
	if (call->unwanted)
		return bytes.n;
	taken = http_stream_write(job->exchange, bytes);
	job->paused = taken < bytes.n;
	return taken;
}

static void relay_ended(struct upstream_call *call, enum upstream_end end)
{
	struct relay_job *job = CONTAINER_OF(call, struct relay_job, call);

	job->loop->guests--;
	if (!job->streams)
		http_respond_code(job->exchange, call->code, call->reason);
	else if (end == UPSTREAM_ANSWERED)
		http_stream_end(job->exchange);
	else
		http_stream_abort(job->exchange);
	relay_job_free(job);
}

/* ---- the question ---- */

static size_t relay_fields(struct relay_job *job, const struct http_request *request, char length[24])
{
	const struct wire_fields *given = &request->wire.head.fields;
	struct relay *relay = job->relay;
	struct wire_field *out = job->fields;
	size_t n = 0;

	out[n++] = (struct wire_field){slice_str("Host"), upstream_authority(relay->upstream)};
	if (relay->bearer.n)
		out[n++] = (struct wire_field){slice_str("Authorization"), strbuf_slice(&relay->bearer)};
	if (request->body.n || !slice_is(request->wire.method, "GET")) {
		snprintf(length, 24, "%zu", request->body.n);
		out[n++] = (struct wire_field){slice_str("Content-Length"), slice_str(length)};
	}
	for (size_t i = 0; i < relay->more_n && n < FIELDS_MAX; i++)
		out[n++] = relay->more_fields[i];
	for (size_t i = 0; i < given->n && n < FIELDS_MAX; i++)
		if (slice_in_nocase(given->at[i].name, fields_sent))
			out[n++] = given->at[i];
	return n;
}

void relay_pass(struct relay *relay, struct http_exchange *exchange, struct slice target)
{
	const struct http_request *request = http_exchange_request(exchange);
	bool reads = slice_is(request->wire.method, "GET");
	struct relay_job *job;
	char *length;

	if (!relay->pool)
		relay->pool = upstream_join(relay->upstream, http_exchange_loop(exchange));
	job = relay->pool ? job_new(relay, exchange) : NULL;
	if (!job) {
		http_respond_code(exchange, HX_NO_MEMORY, NULL);
		return;
	}
	length = arena_alloc(&job->arena, 24);
	ASSERT(length); /* of a new arena */
	job->call = (struct upstream_call){
		.method = request->wire.method,
		.target = target,
		.fields = {job->fields, relay_fields(job, request, length)},
		.body = request->body,
		.arena = &job->arena,
		.timeout_ms = TIMEOUT_MS,
		.repeatable = reads,
		.fresh = !reads,
		.head = relay_head,
		.data = relay_data,
		.ended = relay_ended,
	};
	http_exchange_do_not_time(exchange);
	upstream_call_start(relay->pool, &job->call);
}

/* ---- the relay ---- */

/* "Name: value" lines, as they came. */
static void split_lines(struct relay *relay)
{
	struct slice rest = strbuf_slice(&relay->more);

	while (rest.n && relay->more_n < KEPT_MAX) {
		struct slice line = slice_cut(&rest, '\n'), name = slice_cut(&line, ':');

		line = slice_trim(line);
		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		relay->more_fields[relay->more_n++] = (struct wire_field){name, line};
	}
}

enum hx_code relay_new(const char *url, const char *key, struct slice fields, struct relay **ret, struct hx_error *err)
{
	struct relay *relay = calloc(1, sizeof *relay);
	enum hx_code code;

	if (!relay)
		return error_set(err, HX_NO_MEMORY, "the relay");
	strbuf_init(&relay->bearer, FIELDS_BYTES_MAX);
	strbuf_init(&relay->more, FIELDS_BYTES_MAX);
	if (key)
		strbuf_addf(&relay->bearer, "Bearer %s", key);
	strbuf_add_slice(&relay->more, fields);
	split_lines(relay);
	code = relay->bearer.failed || relay->more.failed ? error_set(err, HX_NO_MEMORY, "the relay")
							  : upstream_new(url, clock_system(), &relay->upstream, err);
	if (code)
		relay_free(relay);
	else
		*ret = relay;
	return code;
}

void relay_free(struct relay *relay)
{
	if (!relay)
		return;
	while (relay->jobs) {
		struct relay_job *job = relay->jobs;

		if (job->streams)
			http_stream_abort(job->exchange);
		else
			http_respond_code(job->exchange, HX_STOPPING, NULL);
		relay_job_free(job);
	}
	upstream_free(relay->upstream);
	strbuf_release(&relay->bearer);
	strbuf_release(&relay->more);
	free(relay);
}
