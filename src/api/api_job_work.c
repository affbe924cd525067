/*
 * The worker's side of jobs: claim some, keep the claim, say how it went. Each is one task (flow/job_work.h).
 *
 * A claim waits in its lane for jobs to come, and takes no thread. If its client goes away meanwhile nothing more is claimed
 * for it; what was claimed and could not be told comes back when its lease is over.
 */
#include "api/api.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "base/trace.h"
#include "flow/job_work.h"

#define CLAIM_BYTES_MAX (160u << 20)

/* ---- reading requests ---- */

/* A whole number of the body; absent: otherwise. False after answering 400. */
static bool read_number(struct http_call *call, struct json body, const char *member, int64_t min, int64_t max,
			int64_t otherwise, int64_t *ret_number)
{
	struct json value;
	struct hx_error err;

	*ret_number = otherwise;
	if (!json_find(body, slice_str(member), &value))
		return true;
	if (json_int64(value, &err, ret_number) == HX_OK && *ret_number >= min && *ret_number <= max)
		return true;
	return api_invalid(call, "%s is a whole number from %lld to %lld", member, (long long)min, (long long)max);
}

static bool read_lease(struct http_call *call, struct json body, int64_t *ret_ms)
{
	return read_number(call, body, "leaseMs", JOB_LEASE_MS_MIN, JOB_LEASE_MS_MAX,
			   engine_config(api_of(call)->engine)->lease_ms, ret_ms);
}

static bool read_owner(struct http_call *call, struct json body, struct slice *ret_owner)
{
	struct json value;

	*ret_owner = slice_of(NULL, 0);
	if (json_find(body, slice_str("owner"), &value) && json_type(value) == JSON_STRING)
		*ret_owner = json_string_decode(value, call->arena);
	if (ret_owner->n >= 1 && ret_owner->n <= JOB_OWNER_BYTES_MAX && !memchr(ret_owner->p, '\0', ret_owner->n))
		return true;
	return api_invalid(call, "owner is a string of 1 to %d bytes: the worker's own name", JOB_OWNER_BYTES_MAX);
}

bool api_queue_checked(struct http_call *call, struct json value, struct slice *ret_queue)
{
	struct slice queue = {NULL, 0};

	if (json_type(value) == JSON_STRING)
		queue = json_string_decode(value, call->arena);
	if (!api_name_checked(call, queue, "a queue"))
		return false;
	if (slice_is(queue, JOB_QUEUE_AFTER_EFFECTS))
		return api_refuse(call, HX_VALIDATION_ERROR, "this queue is the engine's own");
	*ret_queue = queue;
	return true;
}

static bool read_queues(struct http_call *call, struct json body, struct job_claim_request *rq)
{
	struct json queues, queue;
	struct json_iter it;
	size_t n = 0;

	if (json_find(body, slice_str("queues"), &queues) && json_type(queues) == JSON_ARRAY) {
		it = json_iter_of(queues);
		for (; json_iter_element(&it, &queue); n++)
			if (n < JOB_QUEUES_MAX && !api_queue_checked(call, queue, &rq->queues[n]))
				return false;
	}
	rq->queues_n = n;
	for (size_t i = 0; i < n && i < JOB_QUEUES_MAX; i++)
		rq->limits[i] = config_queue_limits(engine_config(api_of(call)->engine), rq->queues[i]);
	if (n >= 1 && n <= JOB_QUEUES_MAX)
		return true;
	return api_invalid(call, "queues is an array of 1 to %d names", JOB_QUEUES_MAX);
}

/* ---- claim ---- */

struct claim_call {
	struct api_task task;
	struct job_claim claim;
	struct job_claim_request rq;
	struct lane_place places[JOB_QUEUES_MAX];
};

/* As an action's call would have it: the work on a job is a span of its own. */
static void add_trace(struct strbuf *text, const struct job_claimed *job)
{
	char trace[TRACE_PARENT_BYTES + 1 + TRACE_STATE_BYTES_MAX];

	if (job->trace.n > sizeof trace)
		return;
	if (job->trace.n)
		memcpy(trace, job->trace.p, job->trace.n);
	trace_continue(trace, job->trace.n, job->key, job->fence, job->attempt);
	trace_add_members(slice_of(trace, job->trace.n), text);
}

static void add_claimed(struct strbuf *text, const struct job_claimed *job, int64_t fence_floor)
{
	strbuf_add_char(text, '{');
	json_more_id(text, "id", "job", job->subject);
	json_more_text(text, "queue", job->queue);
	json_more_json(text, "payload", job->payload);
	json_more_int(text, "attempt", job->attempt);
	json_more_int(text, "fence", fence_floor + job->fence);
	json_more_text(text, "idempotencyKey", job->key);
	strbuf_add_char(text, ',');
	add_trace(text, job);
	json_more_time(text, "leaseUntil", job->until_ms);
	strbuf_add_char(text, '}');
}

static void respond_claimed(const struct claim_call *cc)
{
	struct strbuf text;

	strbuf_init(&text, CLAIM_BYTES_MAX);
	strbuf_add_str(&text, "{\"jobs\":[");
	for (size_t i = 0; i < cc->claim.n; i++) {
		strbuf_add_str(&text, i ? "," : "");
		add_claimed(&text, &cc->claim.jobs[i], engine_fence_floor(api_of(cc->task.call)->engine));
	}
	strbuf_add_str(&text, "]}");
	api_answer(cc->task.call, 200, &text, 0);
}

static void claim_done(struct seat *seat, enum hx_code code)
{
	struct claim_call *cc = (struct claim_call *)seat;

	atomic_fetch_sub(&api_of(cc->task.call)->claiming, 1);
	atomic_fetch_add(&api_parts(cc->task.call)->metrics->jobs_in_line, cc->claim.in_line);
	if (code == HX_OK)
		respond_claimed(cc);
	else
		http_respond_code(cc->task.call->exchange, code, NULL);
	api_task_free(&cc->task);
}

static bool gave_up(const void *context)
{
	return !api_is_awaited(context);
}

static size_t took(const struct seat *seat, size_t place)
{
	return job_claim_took(&((const struct claim_call *)seat)->claim, &seat->places[place]);
}

static void start_claim(struct http_call *call, const struct job_claim_request *rq)
{
	struct claim_call *cc = api_task_new(call, sizeof *cc, CLAIM_BYTES_MAX, claim_done);

	if (!cc)
		return;
	cc->rq = *rq;
	cc->rq.gave_up = gave_up;
	cc->rq.gave_up_context = call;
	job_claim_init(&cc->claim, &cc->rq, &cc->task.arena);
	atomic_fetch_add(&api_of(call)->claiming, 1);
	if (rq->wait_ms > 0) {
		http_exchange_do_not_time(call->exchange);
		cc->task.seat.places = cc->places;
		cc->task.seat.places_n = job_claim_places(&cc->rq, cc->places);
		cc->task.seat.took = took;
	}
	/* Any lane may claim any job: workers spread over them. */
	api_task_start(&cc->task, &cc->claim.task, (uint64_t)(uintptr_t)cc >> 4);
}

void api_job_claim(struct http_call *call)
{
	static const char *const known[] = {"queues", "owner", "max", "leaseMs", "waitMs", NULL};
	struct job_claim_request rq = {.workspace = api_workspace(call)};
	struct json body;

	if (api_body(call, known, &body) && read_queues(call, body, &rq) && read_owner(call, body, &rq.owner) &&
	    read_number(call, body, "max", 1, JOB_CLAIM_MAX, /* otherwise= */ 1, &rq.max) &&
	    read_lease(call, body, &rq.lease_ms) &&
	    read_number(call, body, "waitMs", 0, JOB_WAIT_MS_MAX, /* otherwise= */ 0, &rq.wait_ms))
		start_claim(call, &rq);
}

/* ---- heartbeat, complete, fail ---- */

struct settle_call {
	struct api_task task;
	struct job_settle settle;
	struct job_settle_request rq;
};

static void write_settled(const void *of, struct strbuf *text)
{
	const struct settle_call *sc = of;

	strbuf_add_char(text, '{');
	json_more_id(text, "id", "job", sc->rq.subject);
	json_more_text(text, "status", slice_str(sc->settle.status));
	if (sc->rq.kind == JOB_HEARTBEAT)
		json_more_time(text, "leaseUntil", sc->settle.until_ms);
	strbuf_add_char(text, '}');
}

static void settle_done(struct seat *seat, enum hx_code code)
{
	struct settle_call *sc = (struct settle_call *)seat;

	atomic_fetch_add(&api_parts(sc->task.call)->metrics->jobs_stale, code == HX_STALE_FENCE);
	api_task_end(&sc->task, code, code == HX_NOT_FOUND ? "there is no such job" : NULL,
		     &(struct api_told){200, .write = write_settled, .of = sc});
}

static void start_settle(struct http_call *call, const struct job_settle_request *rq)
{
	struct settle_call *sc = api_task_new(call, sizeof *sc, /* arena_bytes_max= */ 0, settle_done);

	if (!sc)
		return;
	sc->rq = *rq;
	job_settle_init(&sc->settle, &sc->rq, call->arena);
	api_task_start(&sc->task, &sc->settle.task, (uint64_t)rq->subject);
}

/* What all three have. */
static bool read_claim(struct http_call *call, struct json body, struct job_settle_request *rq)
{
	struct json fence;

	rq->workspace = api_workspace(call);
	if (!api_job_id(call, &rq->subject) || !read_owner(call, body, &rq->owner))
		return false;
	if (!json_find(body, slice_str("fence"), &fence))
		return api_refuse(call, HX_VALIDATION_ERROR, "fence is missing: it came with the claim");
	if (!read_number(call, body, "fence", 1, INT64_MAX, 0, &rq->fence))
		return false;
	rq->fence -= engine_fence_floor(api_of(call)->engine); /* from before a restore: below 1, and stale */
	return true;
}

void api_job_heartbeat(struct http_call *call)
{
	static const char *const known[] = {"owner", "fence", "leaseMs", NULL};
	struct job_settle_request rq = {.kind = JOB_HEARTBEAT};
	struct json body;

	if (api_body(call, known, &body) && read_claim(call, body, &rq) && read_lease(call, body, &rq.lease_ms))
		start_settle(call, &rq);
}

void api_job_complete(struct http_call *call)
{
	static const char *const known[] = {"owner", "fence", "output", NULL};
	struct job_settle_request rq = {.kind = JOB_COMPLETE};
	struct json body;

	if (api_body(call, known, &body) && read_claim(call, body, &rq) &&
	    api_member(call, body, "output", JOB_PAYLOAD_BYTES_MAX, "output is at most 1 MiB", &rq.output))
		start_settle(call, &rq);
}

void api_job_fail(struct http_call *call)
{
	static const char *const known[] = {"owner", "fence", "error", "retryable", NULL};
	struct job_settle_request rq = {.kind = JOB_FAIL, .retryable = true};
	struct json body, error;

	if (!api_body(call, known, &body) || !read_claim(call, body, &rq))
		return;
	if (json_find(body, slice_str("error"), &error) && json_type(error) == JSON_STRING)
		rq.output = json_string_decode(error, call->arena);
	if (!rq.output.p || memchr(rq.output.p, '\0', rq.output.n)) {
		http_respond_code(call->exchange, HX_VALIDATION_ERROR,
				  "error must be a string, without U+0000: what went wrong");
		return;
	}
	if (api_bool(call, body, "retryable", &rq.retryable))
		start_settle(call, &rq);
}
