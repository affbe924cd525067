/* What the client gets: the upstream's answer (at once or in pieces), a stored one, or a problem. */
#include "proxy/proxy_job.h"
#include "serve/problem.h"

#define MARKERS_MAX 2

/* Where an outcome is shown; a released key and a store that was not asked are no state of a record. */
static bool is_shown(const struct proxy_job *job)
{
	return job->guarded && job->policy->status_headers && job->guard.at == GUARD_ENDED && !job->guard.unknown &&
	       job->guard.outcome != HX_GATE_RELEASED && job->guard.outcome != HX_GATE_STORE_ERROR;
}

/* Returns how many were added. */
static size_t add_markers(const struct proxy_job *job, struct wire_field out[MARKERS_MAX])
{
	size_t n = 0;

	if (!is_shown(job))
		return 0;
	out[n++] = (struct wire_field){slice_str("Idempotency-Status"),
				       slice_str(hx_gate_outcome_name(job->guard.outcome))};
	if (job->guard.outcome == HX_GATE_REPLAYED)
		out[n++] = (struct wire_field){slice_str("Idempotency-Replayed"), slice_str("true")};
	return n;
}

static bool is_to_head(const struct proxy_job *job)
{
	return slice_is(job->request->wire.method, "HEAD");
}

/* The exchange's part is over. */
static struct http_exchange *take_exchange(struct proxy_job *job)
{
	struct http_exchange *exchange = job->exchange;

	job->exchange = NULL;
	job->answer = ANSWER_GIVEN;
	return exchange;
}

static void respond_bare(struct proxy_job *job, int status)
{
	http_respond(take_exchange(job), &(struct http_answer){.status = status});
}

/* The head of the upstream's answer. False: no memory. */
static bool pass_head(const struct proxy_job *job, struct http_answer *ret_answer)
{
	struct arena *arena = http_exchange_arena(job->exchange);
	size_t n = 0;
	struct wire_field *fields = proxy_answer_fields(&job->call.response, arena, MARKERS_MAX, &n);

	if (!fields)
		return false;
	n += add_markers(job, fields + n);
	*ret_answer = (struct http_answer){.status = job->call.response.status, .fields = {fields, n}};
	return true;
}

void answer_pass(struct proxy_job *job)
{
	const struct wire_head *head = &job->call.response.head;
	struct http_answer answer;

	if (!pass_head(job, &answer)) {
		respond_bare(job, 500);
		return;
	}
	answer.body = strbuf_slice(&job->kept);
	if (!is_to_head(job) && answer.status != 304) {
		http_respond(take_exchange(job), &answer);
		return;
	}

	/* The length is that of a body which is not here. */
	struct http_exchange *exchange = take_exchange(job);

	http_stream_start(exchange, &answer, head->has_length ? (int64_t)head->length : -1, NULL, NULL);
	http_stream_end(exchange);
}

/* The end of an answer that releases its key must come after the release, so it must not show before: no length. */
void answer_stream(struct proxy_job *job, void (*room)(struct http_exchange *exchange, void *data))
{
	const struct wire_head *head = &job->call.response.head;
	bool releasing = job->guarded && job->guard.at != GUARD_ENDED;
	struct http_answer answer;

	if (!pass_head(job, &answer))
		answer = (struct http_answer){.status = job->call.response.status};
	http_stream_start(job->exchange, &answer, head->has_length && !releasing ? (int64_t)head->length : -1, room,
			  job);
	job->answer = ANSWER_STREAMS;
}

void answer_replay(struct proxy_job *job, const struct gate_response *response)
{
	struct arena *arena = http_exchange_arena(job->exchange);
	struct wire_field *fields = arena_alloc(arena, (response->fields_n + MARKERS_MAX) * sizeof *fields);
	size_t n = 0;

	if (!fields) {
		respond_bare(job, 500);
		return;
	}
	/* What was stored was allowed then: what is forbidden now does not go on leaking until its ttl. */
	for (size_t i = 0; i < response->fields_n; i++)
		if (gate_replays_field(&job->policy->replay, response->fields[i].name, /* connection= */ NULL, 0))
			fields[n++] = (struct wire_field){response->fields[i].name, response->fields[i].value};
	n += add_markers(job, fields + n);

	struct http_exchange *exchange = take_exchange(job);
	struct http_answer answer = {.status = response->status, .fields = {fields, n}, .body = response->body};

	if (slice_is(job->request->wire.method, "HEAD")) { /* how long its body would be was not stored */
		http_stream_start(exchange, &answer, /* length= */ -1, NULL, NULL);
		http_stream_end(exchange);
	} else {
		http_respond(exchange, &answer);
	}
}

static unsigned seconds_of(int64_t ms)
{
	int64_t s = ms / 1000 + (ms % 1000 != 0);

	return s > UINT32_MAX ? UINT32_MAX : (unsigned)s;
}

void answer_problem(struct proxy_job *job, enum hx_code code, const char *detail)
{
	struct arena *arena = http_exchange_arena(job->exchange);
	struct problem problem = {.code = code, .detail = slice_str(detail)};
	struct wire_field *fields;
	struct http_answer answer;
	size_t n;

	if (job->guarded && (code == HX_IN_FLIGHT || code == HX_HELD))
		problem.retry_after_s = seconds_of(job->guard.retry_after_ms);
	problem_answer(&problem, arena, &answer);
	n = answer.fields.n;
	fields = arena_alloc(arena, (n + MARKERS_MAX) * sizeof *fields);
	if (fields) {
		for (size_t i = 0; i < n; i++)
			fields[i] = answer.fields.at[i];
		n += add_markers(job, fields + n);
		answer.fields = (struct wire_fields){fields, n};
	}
	http_respond(take_exchange(job), &answer);
}
