/*
 * One request on its way through the proxy. The guard (guard.h) says what is next; here it is carried out.
 *
 *   guarded       guard ─ask─▶ store ─letter─▶ guard ─▶ upstream ─▶ guard ─ask─▶ store ─letter─▶ guard ─▶ the client
 *   not guarded                                 upstream ─▶ the client
 *
 * The answer, seen from the client:
 *
 *            head                 it ends, and the record is settled
 *   NONE ──────────▶ KEPT ──────────────────────────────────────────────────────────▶ GIVEN
 *                     │ too large, to be stored       the record is COMPLETED              ▲
 *                     ├─────────────────────▶ WAITS ─────────────────────────▶ STREAMS ────┘ all sent, record settled
 *                     └─ too large, not to be stored; not guarded ─────────────▶
 *
 * Invariants: nothing of an answer that is to be stored goes out before the record is COMPLETED (or the store has failed
 * to do so); the last byte of one that is not to be stored goes out after its record is removed; a job has at most one
 * ticket asked, and while it has, nothing else of it moves but the upstream's end.
 *
 * An answer that could not be stored is given to the client, marked so; the job then lives on without an exchange and
 * tries again, with a growing pause, as long as its lease lasts (storing_*).
 */
#include "proxy/proxy_job.h"

#include "base/digits.h"

#define RETRY_MS_MIN 100
#define RETRY_MS_MAX 5000
#define RECORD_TEXT_BYTES 17 /* a prefix that tells records apart in a log */

static void carry_out(struct proxy_job *job);
static void stream_on(struct proxy_job *job);

/* ---- events ---- */

static void record_text(const struct proxy_job *job, char ret_text[RECORD_TEXT_BYTES])
{
	hex_write(job->guard.ask.claim.key, RECORD_TEXT_BYTES / 2, ret_text);
}

/* What happens with every request is for those who look closely; what needs a second look is for everybody. */
static enum log_level level_of(const struct guard *guard)
{
	if (guard->unknown)
		return LOG_LEVEL_WARN;
	switch (guard->outcome) {
	case HX_GATE_CREATED:
	case HX_GATE_REPLAYED:
	case HX_GATE_CONFLICT:
		return LOG_LEVEL_DEBUG;
	case HX_GATE_STORE_ERROR:
	case HX_GATE_UNSTORED:
		return LOG_LEVEL_WARN;
	default:
		return LOG_LEVEL_INFO;
	}
}

static void note_event(const struct proxy_job *job)
{
	struct proxy *proxy = job->home->proxy;
	const struct guard *guard = &job->guard;
	struct log *log = proxy->options.log;
	char record[RECORD_TEXT_BYTES];

	proxy_count(guard->unknown ? &proxy->stats.unknown : &proxy->stats.outcomes[guard->outcome]);
	if (!log || level_of(guard) < log->level_min)
		return;
	record_text(job, record);
	log_write(log, level_of(guard), "a guarded request has ended",
		  LOG_FIELDS(log_text("outcome", guard->unknown ? "unknown" : hx_gate_outcome_name(guard->outcome)),
			     log_slice("method", job->request->wire.method), log_slice("path", job->request->wire.path),
			     log_text("record", record)));
}

/* ---- the store ---- */

/* In any thread. Whatever is left when the loop has ended is let go by proxy_free(). */
static void store_answered(struct gate_ticket *ticket)
{
	struct proxy_job *job = CONTAINER_OF(ticket, struct proxy_job, ticket);

	if (ticket->reply.verdict == GATE_COMPLETED) {
		strbuf_reset(&job->stored);
		strbuf_add_slice(&job->stored, ticket->reply.response);
	}
	(void)mailbox_post(job->home->loop->mailbox, &job->letter);
}

static void proxy_job_ask(struct proxy_job *job)
{
	if (job->guard.at == GUARD_ACQUIRING)
		guard_note_asked(&job->guard, clock_mono(job->home->loop->clock));
	if (!guard_takes_back(&job->guard))
		job->ticket.by = (struct mono_time){0};
	job->ticket.ask = job->guard.ask;
	job->ticket.done = store_answered;
	gate_ask(job->home->proxy->options.store, &job->ticket);
}

/* ---- storing after all ---- */

static void storing_end(struct proxy_job *job, const char *message)
{
	struct proxy *proxy = job->home->proxy;
	char record[RECORD_TEXT_BYTES];

	record_text(job, record);
	log_info(proxy->options.log, message, log_text("record", record));
	atomic_fetch_sub(&proxy->storing, 1);
	job_free(job);
}

/* The store may be one that cannot take the body. That it was done it must know before another is let in. */
static void storing_last(struct proxy_job *job)
{
	strbuf_reset(&job->stored);
	gate_response_encode(&(struct gate_response){.status = job->call.response.status, .body_missing = true},
			     &job->stored);
	job->ticket.ask.response = strbuf_slice(&job->stored);
	job->ticket.ask.instead = true;
	job->ticket.by = (struct mono_time){0};
	gate_ask(job->home->proxy->options.store, &job->ticket);
}

/* Waits, longer each time; until the lease is over, since then the record may be another's. */
static void storing_wait(struct proxy_job *job)
{
	struct loop *loop = job->home->loop;
	struct mono_time at = mono_add_ms(loop->now, job->retry_ms);

	if (job->ticket.ask.instead) {
		storing_end(job, "an answer could not be stored while its lease lasted");
		return;
	}
	if (at.ns >= job->lease_until.ns || at.ns >= atomic_load(&job->home->proxy->storing_until)) {
		storing_last(job);
		return;
	}
	job->retry_ms = job->retry_ms * 2 < RETRY_MS_MAX ? job->retry_ms * 2 : RETRY_MS_MAX;
	deadline_set_at(&job->home->retries, &job->retry, at);
}

static void storing_begin(struct proxy_job *job)
{
	struct proxy *proxy = job->home->proxy;

	if (atomic_fetch_add(&proxy->storing, 1) >= PROXY_STORING_MAX) {
		storing_end(job, "an answer was not stored: too many others are waiting for the store");
		return;
	}
	strbuf_release(&job->kept);
	job->retry_ms = RETRY_MS_MIN;
	storing_wait(job);
}

static void storing_answered(struct proxy_job *job)
{
	if (job->ticket.reply.verdict == GATE_UNAVAILABLE)
		storing_wait(job);
	else if (job->ticket.reply.verdict != GATE_DONE)
		storing_end(job, "an answer could not be stored: its record is another's by now");
	else
		storing_end(job, job->ticket.ask.instead ? "an answer was not stored, only that there was one"
							 : "an answer was stored after all");
}

void job_retry(struct deadline *deadline)
{
	struct proxy_job *job = CONTAINER_OF(deadline, struct proxy_job, retry);

	/* The ask is still the completion that failed. */
	job->ticket.by = (struct mono_time){0};
	gate_ask(job->home->proxy->options.store, &job->ticket);
}

/* ---- the end ---- */

static bool is_unstored(const struct proxy_job *job)
{
	return job->guarded && !job->guard.unknown && job->guard.outcome == HX_GATE_UNSTORED;
}

/* The client has been answered. */
static void proxy_job_leave(struct proxy_job *job)
{
	ASSERT(job->answer == ANSWER_GIVEN);
	if (is_unstored(job))
		storing_begin(job);
	else
		job_free(job);
}

/* It was done, and is not done again; a person has to look. (Or there is no memory to read it: that passes.) */
static void note_damaged(const struct proxy_job *job, const struct hx_error *err)
{
	struct proxy *proxy = job->home->proxy;
	char record[RECORD_TEXT_BYTES];

	record_text(job, record);
	if (err->code == HX_RECORD_DAMAGED)
		proxy_count(&proxy->stats.damaged);
	log_error(proxy->options.log, "a stored answer cannot be read", log_text("code", hx_code_name(err->code)),
		  log_slice("method", job->request->wire.method), log_slice("path", job->request->wire.path),
		  log_slice("key", job->guard.ask.key_text), log_text("record", record));
}

/* A stored answer may turn out to be one without its body, or not to be ours at all. */
static bool read_stored(struct proxy_job *job, struct gate_response *ret_response)
{
	struct guard *guard = &job->guard;
	struct hx_error err = {.code = HX_NO_MEMORY};

	if (job->stored.failed || gate_response_decode(strbuf_slice(&job->stored), http_exchange_arena(job->exchange),
						       &err, ret_response) != HX_OK) {
		note_damaged(job, &err);
		guard->outcome = HX_GATE_STORE_ERROR;
		guard->code = err.code;
		return false;
	}
	if (!ret_response->body_missing)
		return true;
	guard->outcome = HX_GATE_CONFLICT;
	guard->code = HX_RESPONSE_NOT_STORED;
	return false;
}

/* The upstream's answer, or why there is none. */
static void give_result(struct proxy_job *job)
{
	if (job->end == UPSTREAM_ANSWERED)
		answer_pass(job);
	else
		answer_problem(job, job->call.code, job->call.reason);
	proxy_job_leave(job);
}

/* The upstream was not asked: a stored answer, or a refusal. */
static void give_verdict(struct proxy_job *job)
{
	struct gate_response response;
	bool replay = job->guard.outcome == HX_GATE_REPLAYED && read_stored(job, &response);

	note_event(job);
	if (replay)
		answer_replay(job, &response);
	else
		answer_problem(job, job->guard.code, NULL);
	proxy_job_leave(job);
}

/* The guard has ended. */
static void conclude(struct proxy_job *job)
{
	switch (job->answer) {
	case ANSWER_NONE:
	case ANSWER_KEPT:
		if (!job->over) {
			give_verdict(job);
			break;
		}
		note_event(job);
		give_result(job);
		break;
	case ANSWER_WAITS:
	case ANSWER_STREAMS:
		note_event(job);
		stream_on(job);
		break;
	case ANSWER_GIVEN:
		break;
	}
}

/* ---- streaming ---- */

static void room(struct http_exchange *exchange, void *data)
{
	(void)exchange;
	stream_on(data);
}

static bool is_settled(const struct proxy_job *job)
{
	return job->over && (!job->guarded || job->guard.at == GUARD_ENDED);
}

/* Never while a write waits for room: the room would come for a job that is no more. */
static void end_stream(struct proxy_job *job)
{
	struct http_exchange *exchange = job->exchange;

	job->exchange = NULL;
	job->answer = ANSWER_GIVEN;
	if (job->end == UPSTREAM_ANSWERED)
		http_stream_end(exchange);
	else
		http_stream_abort(exchange);
	proxy_job_leave(job);
}

/* Does what can be done: the head, what is kept, then what the upstream still has, then the end. */
static void stream_on(struct proxy_job *job)
{
	if (job->answer != ANSWER_STREAMS)
		answer_stream(job, room);
	job->call.patient = !http_exchange_gone(job->exchange);
	job->kept_sent += http_stream_write(job->exchange,
					    slice_of(job->kept.p + job->kept_sent, job->kept.n - job->kept_sent));
	if (job->kept_sent < job->kept.n)
		return;
	strbuf_release(&job->kept);
	job->kept_sent = 0;
	if (job->paused) {
		job->paused = false;
		upstream_call_resume(&job->call);
	} else if (is_settled(job)) {
		end_stream(job);
	}
}

/* ---- the upstream ---- */

/* The stored form of the answer. False: no memory. */
static bool encode(struct proxy_job *job, bool body_missing)
{
	struct gate_response response = {.status = job->call.response.status, .body_missing = body_missing};
	struct arena *arena = http_exchange_arena(job->exchange);

	response.fields = proxy_stored_fields(&job->call.response, &job->policy->replay, arena, &response.fields_n);
	if (!body_missing)
		response.body = strbuf_slice(&job->kept);
	strbuf_reset(&job->stored);
	if (response.fields)
		gate_response_encode(&response, &job->stored);
	job->guard.ask.response = strbuf_slice(&job->stored);
	return response.fields && !job->stored.failed;
}

/* It came, and there is no memory for it: as good as an answer that was cut short. */
static void lose_answer(struct proxy_job *job)
{
	job->end = UPSTREAM_UNKNOWN;
	job->call.code = HX_NO_MEMORY;
	job->call.reason = "there is no memory for the upstream's answer";
}

static void take_result(struct proxy_job *job, enum guard_result result)
{
	if (result == GUARD_STORE && !encode(job, /* body_missing= */ job->answer == ANSWER_WAITS)) {
		lose_answer(job);
		result = GUARD_UNKNOWN;
	}
	guard_take_result(&job->guard, result);
	carry_out(job);
}

static bool is_to_be_stored(const struct proxy_job *job)
{
	return job->guarded && gate_policy_stores(job->policy, job->call.response.status);
}

static size_t keep_max(const struct proxy_job *job)
{
	return job->guarded ? job->policy->max_stored_bytes : PROXY_PASS_BYTES;
}

/* The answer is not kept as a whole. */
static void become_stream(struct proxy_job *job)
{
	if (!is_to_be_stored(job)) {
		stream_on(job);
		return;
	}
	job->answer = ANSWER_WAITS;
	take_result(job, GUARD_STORE);
}

static struct proxy_job *job_of(struct upstream_call *call)
{
	return CONTAINER_OF(call, struct proxy_job, call);
}

static void on_head(struct upstream_call *call)
{
	struct proxy_job *job = job_of(call);

	job->answer = ANSWER_KEPT;
	if (call->response.head.framing == WIRE_LENGTH && call->response.head.length > keep_max(job))
		become_stream(job);
}

static size_t on_data(struct upstream_call *call, struct slice bytes)
{
	struct proxy_job *job = job_of(call);
	size_t taken = 0;

	if (job->kept.failed) { /* a part of it is lost: there is no answer any more */
		call->unwanted = true;
		return bytes.n;
	}
	if (job->answer == ANSWER_KEPT && bytes.n > keep_max(job) - job->kept.n)
		become_stream(job);
	if (job->answer == ANSWER_KEPT) {
		strbuf_add_slice(&job->kept, bytes);
		return bytes.n;
	}
	call->patient = !http_exchange_gone(job->exchange);
	call->unwanted = http_exchange_closed(job->exchange) && (!job->guarded || job->guard.at == GUARD_ENDED);
	if (call->unwanted)
		return bytes.n;
	if (job->answer == ANSWER_STREAMS && job->kept_sent == job->kept.n)
		taken = http_stream_write(job->exchange, bytes);
	job->paused = taken < bytes.n;
	return taken;
}

/* Nobody who may be waiting for the first bytes (events, long polls) is kept waiting for the last ones. */
static void on_drained(struct upstream_call *call)
{
	struct proxy_job *job = job_of(call);

	if (job->answer == ANSWER_KEPT && !job->guarded && call->response.head.framing != WIRE_LENGTH)
		become_stream(job);
}

static enum guard_result result_of(const struct proxy_job *job)
{
	switch (job->end) {
	case UPSTREAM_NOT_SENT:
		return GUARD_NOTHING;
	case UPSTREAM_UNKNOWN:
		return GUARD_UNKNOWN;
	case UPSTREAM_ANSWERED:
		break;
	}
	return is_to_be_stored(job) ? GUARD_STORE : GUARD_PASS;
}

static void on_ended(struct upstream_call *call, enum upstream_end end)
{
	struct proxy_job *job = job_of(call);

	job->over = true;
	job->end = end;
	if (job->kept.failed && end == UPSTREAM_ANSWERED)
		lose_answer(job);
	if (job->guarded && job->guard.at == GUARD_EXECUTING)
		take_result(job, result_of(job));
	else if (job->answer == ANSWER_STREAMS)
		stream_on(job);
	else if (!job->guarded)
		give_result(job);
}

/* 100 was for us: the body had been read before the upstream was asked. */
static void on_interim(struct upstream_call *call)
{
	struct proxy_job *job = job_of(call);
	size_t n = 0;
	const struct wire_field *fields;

	if (call->response.status == 100)
		return;
	fields = proxy_answer_fields(&call->response, http_exchange_arena(job->exchange), 0, &n);
	if (fields)
		http_send_interim(job->exchange,
				  &(struct http_answer){.status = call->response.status, .fields = {fields, n}});
}

static void on_switched(struct upstream_call *call, int fd, struct tls_link *tls, struct slice rest)
{
	struct proxy_job *job = job_of(call);

	if (proxy_open_tunnel(job, fd, tls, rest)) {
		job_free(job);
		return;
	}
	call->code = HX_BAD_GATEWAY;
	call->reason = "the upstream has switched to a protocol that nobody has asked for";
	on_ended(call, UPSTREAM_UNKNOWN);
}

static void proxy_job_execute(struct proxy_job *job)
{
	if (job->guarded)
		job->call.begin_by = guard_work_until(&job->guard);
	upstream_call_start(job->home->pool, &job->call);
}

/* ---- what moves it ---- */

static void carry_out(struct proxy_job *job)
{
	switch (job->guard.at) {
	case GUARD_ACQUIRING:
	case GUARD_COMPLETING:
	case GUARD_REMOVING:
		proxy_job_ask(job);
		break;
	case GUARD_EXECUTING:
		proxy_job_execute(job);
		break;
	case GUARD_ENDED:
		conclude(job);
		break;
	}
}

static void proxy_job_deliver(struct letter *letter)
{
	struct proxy_job *job = CONTAINER_OF(letter, struct proxy_job, letter);

	if (job->retry_ms > 0) {
		storing_answered(job);
		return;
	}
	guard_take_reply(&job->guard, &job->ticket.reply);
	carry_out(job);
}

static bool is_safe_to_repeat(struct slice method)
{
	return slice_is(method, "GET") || slice_is(method, "HEAD") || slice_is(method, "OPTIONS");
}

/* All that can fail for want of memory is done before the key is taken. False: no memory. */
static bool prepare_call(struct proxy_job *job)
{
	const struct wire_request *request = &job->request->wire;
	struct arena *arena = http_exchange_arena(job->exchange);

	job->call = (struct upstream_call){
		.method = request->method,
		.target = proxy_request_target(request, arena),
		.body = job->request->body,
		.arena = arena,
		.timeout_ms = job->policy->upstream_timeout_ms,
		.repeatable = !job->guarded && !job->reserved && is_safe_to_repeat(request->method),
		.fresh = job->guarded && job->policy->hold, /* a person is not called for an idle connection's end */
		.head = on_head,
		.interim = on_interim,
		.switched = on_switched,
		.data = on_data,
		.drained = on_drained,
		.ended = on_ended,
	};
	job->call.upgrade = job->reserved;
	job->call.fresh |= job->reserved;
	return proxy_request_fields(job, arena, &job->call.fields) && !arena->failed;
}

void job_start(struct proxy_job *job)
{
	struct proxy *proxy = job->home->proxy;
	struct hx_error err = {0};
	struct slice protocols;
	enum hx_code code = job->policy->guard ? proxy_claim(job, &err) : HX_KEY_REQUIRED;

	job->letter.deliver = proxy_job_deliver;
	job->guarded = code == HX_OK;
	if (code == HX_KEY_REQUIRED && (!job->policy->guard || !job->policy->required))
		code = HX_OK;
	if (code == HX_OK && !job->guarded && proxy_wants_upgrade(&job->request->wire, &protocols) &&
	    !proxy_reserve_tunnel(job))
		code = error_set(&err, HX_BUSY, "there are max_tunnels tunnels already");
	if (code == HX_OK && !prepare_call(job))
		code = error_set(&err, HX_NO_MEMORY, "there is no memory for the request");
	if (code != HX_OK) {
		proxy_count(&proxy->stats.refused);
		job->guarded = false;
		answer_problem(job, code, err.detail);
		proxy_job_leave(job);
		return;
	}
	if (job->guarded) {
		job->lease_until = mono_add_ms(job->home->loop->now, job->policy->processing_ttl_ms);
		carry_out(job);
	} else {
		proxy_count(&proxy->stats.forwarded);
		proxy_job_execute(job);
	}
}
