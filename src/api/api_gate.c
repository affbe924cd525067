/* See api_gate.h. The order of things is the guard's (src/gate/guard.h); here it is carried out. */
#include "api/api_gate.h"

#include "api/api.h"
#include "gate/fingerprint.h"
#include "gate/guard.h"
#include "gate/key.h"
#include "gate/policy.h"
#include "gate/replay.h"
#include "gate/scope.h"
#include "gate/token.h"
#include "wire/loop.h"

#define KEPT_FIELDS_MAX 8 /* of an answer of ours, and so of a stored one */
#define TRIES_MAX 10      /* each of them lost to a record that then was gone */
#define KEPT_BYTES_MIN 64 /* reserved at once: an answer without its body always has room */
#define SPACE_BYTES                                                                                                    \
	(ENTITY_NAME_MAX + 8) /* "api:" and the workspace: the gate in front of others may share the store */

struct api_gate {
	struct http_call *call;
	struct guard guard;
	struct gate_ticket ticket;
	struct strbuf kept; /* the stored form of the answer */
	bool bodyless;      /* it was too large: retries will not get it */
	bool carried;       /* a unit was built that carries the record */
	bool tells_more;    /* the answer is not the kept one */
	unsigned line;      /* its completion there, where that is not the first */
	bool stale;
	unsigned tries; /* of one unit */
	void (*again)(void *data);
	void *again_data;
};

static struct engine *engine_of(const struct api_gate *gate)
{
	return api_of(gate->call)->engine;
}

/* ---- the answer's stored form ---- */

static void keep_without_body(struct api_gate *gate, int status)
{
	gate->bodyless = true;
	strbuf_reset(&gate->kept);
	gate_response_encode(&(struct gate_response){.status = status, .body_missing = true}, &gate->kept);
	ASSERT(!gate->kept.failed); /* KEPT_BYTES_MIN */
}

/* To be stored it has only what may be repeated; so the first answer is the same as all others. */
static void gate_keep(struct api_gate *gate, const struct http_answer *answer, bool to_be_stored)
{
	static const struct gate_replay_rule rule = {.kind = REPLAY_SAFE};
	struct gate_field fields[KEPT_FIELDS_MAX];
	struct gate_response response = {.status = answer->status, .fields = fields, .body = answer->body};

	ASSERT(answer->fields.n <= KEPT_FIELDS_MAX);
	for (size_t i = 0; i < answer->fields.n; i++) {
		const struct wire_field *field = &answer->fields.at[i];

		if (!to_be_stored || gate_replays_field(&rule, field->name, /* connection= */ NULL, 0))
			fields[response.fields_n++] = (struct gate_field){field->name, field->value};
	}
	gate->bodyless = false;
	strbuf_reset(&gate->kept);
	gate_response_encode(&response, &gate->kept);
	if (gate->kept.failed)
		keep_without_body(gate, answer->status);
}

/* ---- sending ---- */

/* The gate lives in the exchange, which goes with the answer: this is the last that is done with either. */
static void send_marked(struct api_gate *gate, const struct http_answer *answer, const char *status)
{
	struct wire_field fields[KEPT_FIELDS_MAX + 2];
	struct http_answer marked = *answer;
	struct strbuf kept = gate->kept;
	bool replayed = status && strcmp(status, hx_gate_outcome_name(HX_GATE_REPLAYED)) == 0;
	size_t n = answer->fields.n;

	ASSERT(n <= KEPT_FIELDS_MAX);
	if (n)
		memcpy(fields, answer->fields.at, n * sizeof *fields);
	if (status)
		fields[n++] = (struct wire_field){slice_str("Idempotency-Status"), slice_str(status)};
	if (replayed)
		fields[n++] = (struct wire_field){slice_str("Idempotency-Replayed"), slice_str("true")};
	marked.fields = (struct wire_fields){fields, n};
	http_respond(gate->call->exchange, &marked);
	strbuf_release(&kept);
}

static void send_problem(struct api_gate *gate, const struct problem *problem, const char *status)
{
	struct http_answer answer;

	problem_answer(problem, gate->call->arena, &answer);
	send_marked(gate, &answer, status);
}

/* It was done, and is not done again; a person has to look. */
static void tell_damaged(const struct api_gate *gate)
{
	const struct gate_ask *ask = &gate->guard.ask;

	atomic_fetch_add(&engine_parts(engine_of(gate))->metrics->gate_damaged, 1);
	log_error(engine_parts(engine_of(gate))->log, "a stored answer is damaged: it is not given again",
		  log_slice("key", ask->key_text), log_slice("endpoint", ask->endpoint));
}

/* What is in the stored form; without its body, that it cannot be told any more. */
static void send_stored(struct api_gate *gate, struct slice bytes, const char *status)
{
	struct wire_field fields[KEPT_FIELDS_MAX];
	struct http_answer answer = {.fields = {fields, 0}};
	struct gate_response response;
	struct hx_error err;
	enum hx_code code = gate_response_decode(bytes, gate->call->arena, &err, &response);

	if (!code && response.fields_n > KEPT_FIELDS_MAX)
		code = HX_RECORD_DAMAGED;
	if (code == HX_RECORD_DAMAGED)
		tell_damaged(gate);
	if (code || response.body_missing) {
		send_problem(gate, &(struct problem){.code = code ? code : HX_RESPONSE_NOT_STORED},
			     code ? NULL : hx_gate_outcome_name(HX_GATE_CONFLICT));
		return;
	}
	answer.status = response.status;
	answer.body = response.body;
	for (; answer.fields.n < response.fields_n; answer.fields.n++) {
		const struct gate_field *field = &response.fields[answer.fields.n];

		fields[answer.fields.n] = (struct wire_field){field->name, field->value};
	}
	send_marked(gate, &answer, status);
}

/* ---- the end ---- */

static void gate_tell(const struct api_gate *gate, enum hx_gate_outcome outcome)
{
	struct log *log = engine_parts(engine_of(gate))->log;
	const struct gate_ask *ask = &gate->guard.ask;

	atomic_fetch_add(&engine_parts(engine_of(gate))->metrics->gate_outcomes[outcome], 1);
	if (outcome == HX_GATE_STALE || outcome == HX_GATE_UNSTORED || outcome == HX_GATE_STORE_ERROR)
		log_warn(log, "an idempotency key could not be kept to",
			 log_text("outcome", hx_gate_outcome_name(outcome)), log_slice("key", ask->key_text),
			 log_slice("endpoint", ask->endpoint));
	else
		log_debug(log, "an idempotency key was used", log_text("outcome", hx_gate_outcome_name(outcome)),
			  log_slice("key", ask->key_text), log_slice("endpoint", ask->endpoint));
}

static unsigned seconds(int64_t ms)
{
	return (unsigned)((ms + 999) / 1000);
}

static void end_gate(struct api_gate *gate)
{
	const struct guard *guard = &gate->guard;

	if (guard->unknown) {
		send_stored(gate, strbuf_slice(&gate->kept), /* status= */ NULL);
		return;
	}
	gate_tell(gate, guard->outcome);
	switch (guard->outcome) {
	case HX_GATE_REPLAYED:
		send_stored(gate, gate->ticket.reply.response, hx_gate_outcome_name(HX_GATE_REPLAYED));
		break;
	case HX_GATE_CREATED:
	case HX_GATE_STALE:
	case HX_GATE_UNSTORED:
		send_stored(gate, strbuf_slice(&gate->kept), hx_gate_outcome_name(guard->outcome));
		break;
	case HX_GATE_RELEASED:
		send_stored(gate, strbuf_slice(&gate->kept), /* status= */ NULL);
		break;
	case HX_GATE_CONFLICT:
	case HX_GATE_MISMATCH:
		send_problem(gate,
			     &(struct problem){.code = guard->code, .retry_after_s = seconds(guard->retry_after_ms)},
			     hx_gate_outcome_name(guard->outcome));
		break;
	default:
		send_problem(gate, &(struct problem){.code = HX_STORE_UNAVAILABLE}, /* status= */ NULL);
	}
}

/* ---- the handler between its two sides ---- */

/*
 * What an answer says about the work. 2xx and 3xx: done. A problem is definite, and nothing was done or it was undone,
 * but for those that say that nobody knows, or that come from where the work was cut off.
 */
static enum guard_result result_of(const struct http_answer *answer)
{
	if (answer->status < 400)
		return GUARD_STORE;
	switch (answer->code) {
	case HX_OK: /* an error of the handler's own making */
	case HX_RESPONSE_NOT_STORED:
	case HX_OUTCOME_UNKNOWN:
	case HX_STOPPING: /* the lanes were stopped under it: an action may be under way */
	case HX_INTERNAL:
	case HX_NO_MEMORY:
		return GUARD_UNKNOWN;
	default:
		return GUARD_PASS;
	}
}

static void gate_go_on(struct api_gate *gate);

/* In whatever thread the handler answers from. */
static void captured(struct http_exchange *exchange, const struct http_answer *answer, void *data)
{
	struct api_gate *gate = data;
	enum guard_result result = result_of(answer);

	(void)exchange;
	if (result == GUARD_STORE && gate->carried) {
		gate->guard.outcome = gate->stale ? HX_GATE_STALE : HX_GATE_CREATED;
		gate->guard.at = GUARD_ENDED;
		if (!gate->stale)
			gate_note_completed(engine_parts(engine_of(gate))->gate_store, &gate->guard.ask.claim,
					    strbuf_slice(&gate->kept));
		if (gate->bodyless || gate->tells_more) {
			gate_tell(gate, gate->guard.outcome);
			send_marked(gate, answer, hx_gate_outcome_name(gate->guard.outcome));
			return;
		}
		end_gate(gate); /* with the bytes that are stored */
		return;
	}
	if (gate->guard.at == GUARD_ACQUIRING) { /* one unit, not won: there is no record of ours */
		if (result != GUARD_UNKNOWN)
			gate_tell(gate, HX_GATE_RELEASED);
		send_marked(gate, answer, /* status= */ NULL);
		return;
	}
	gate_keep(gate, answer, result == GUARD_STORE);
	gate->guard.ask.response = strbuf_slice(&gate->kept);
	guard_take_result(&gate->guard, result);
	gate_go_on(gate);
}

static void api_gate_run(struct http_exchange *exchange, void *data)
{
	struct api_gate *gate = data;

	(void)exchange;
	gate->call->route->handle(gate->call);
}

/* The record is ours. */
static void gate_execute(struct api_gate *gate)
{
	struct http_exchange *exchange = gate->call->exchange;
	struct mono_time now = clock_mono(engine_parts(engine_of(gate))->clock);

	http_capture(exchange, captured, gate);
	if (now.ns >= guard_work_until(&gate->guard).ns)
		http_respond_code(exchange, HX_STORE_UNAVAILABLE,
				  "the store took longer than a request may; nothing was done");
	else if (gate->again)
		gate->again(gate->again_data);
	else if (!http_resume(exchange, api_gate_run, gate))
		http_respond_code(exchange, HX_BUSY, "the server has stopped; nothing was done");
}

static void gate_answered(struct gate_ticket *ticket)
{
	struct api_gate *gate = CONTAINER_OF(ticket, struct api_gate, ticket);

	guard_take_reply(&gate->guard, &ticket->reply);
	gate_go_on(gate);
}

static void gate_go_on(struct api_gate *gate)
{
	switch (gate->guard.at) {
	case GUARD_EXECUTING:
		gate_execute(gate);
		break;
	case GUARD_ENDED:
		end_gate(gate);
		break;
	case GUARD_ACQUIRING:
	case GUARD_COMPLETING:
	case GUARD_REMOVING:
		if (!guard_takes_back(&gate->guard))
			gate->ticket.by = (struct mono_time){0};
		gate->ticket.ask = gate->guard.ask;
		gate->ticket.done = gate_answered;
		gate_ask(engine_parts(engine_of(gate))->gate_store, &gate->ticket);
		break;
	}
}

static void acquire(struct api_gate *gate)
{
	guard_note_asked(&gate->guard, clock_mono(engine_parts(engine_of(gate))->clock));
	gate_go_on(gate);
}

/* ---- units that carry the record ---- */

static void keep_for_unit(struct api_gate *gate, const struct http_answer *answer, bool failed)
{
	gate->carried = true;
	if (failed)
		keep_without_body(gate, answer->status);
	else
		gate_keep(gate, answer, /* to_be_stored= */ true);
	gate->guard.ask.response = strbuf_slice(&gate->kept);
}

void api_gate_open_unit(struct api_gate *gate, const struct http_answer *answer, bool failed, struct unit *unit)
{
	keep_for_unit(gate, answer, failed);
	if (gate->guard.at == GUARD_EXECUTING)
		gate_add_completion_first(unit, &gate->guard.ask, /* again= */ false);
	else
		gate_add_completed(unit, &gate->guard.ask.claim, gate->guard.ask.response);
}

bool api_gate_lost(const struct unit_result *result)
{
	return result->verdict == UNIT_LOST && result->line == 0;
}

void api_gate_find_out(struct api_gate *gate, void (*again)(void *data), void *data)
{
	struct gate_ask ask = gate->guard.ask;

	gate->carried = false;
	if (gate->tries++ == TRIES_MAX) {
		http_respond_code(gate->call->exchange, HX_BUSY, "records of this key come and go: nothing was done");
		return;
	}
	http_capture(gate->call->exchange, NULL, NULL); /* nobody else answers from here on */
	guard_init(&gate->guard, &ask.claim);
	gate->guard.ask.key_text = ask.key_text;
	gate->guard.ask.old_key = ask.old_key;
	gate->guard.ask.endpoint = ask.endpoint;
	gate->again = again;
	gate->again_data = data;
	acquire(gate);
}

void api_gate_acquire(struct api_gate *gate, void (*again)(void *data), void *data)
{
	gate->carried = false;
	if (gate->guard.at == GUARD_EXECUTING)
		again(data);
	else
		api_gate_find_out(gate, again, data);
}

void api_gate_tell_more(struct api_gate *gate)
{
	gate->tells_more = true;
}

void api_gate_not_carried(struct api_gate *gate)
{
	gate->carried = false;
}

struct mono_time api_gate_work_until(const struct api_gate *gate)
{
	return guard_work_until(&gate->guard);
}

void api_gate_carry(struct api_gate *gate, const struct api_told *told, struct unit *unit)
{
	struct api_json json;

	ASSERT(gate->guard.at == GUARD_EXECUTING);
	LOCAL_STRBUF(text, API_TEXT_BYTES_MAX);
	told->write(told->of, &text);
	api_json_init(&json, told->status, strbuf_slice(&text), told->etag_version);
	keep_for_unit(gate, &json.answer, text.failed);
	gate->line = unit->lines_n;
	gate_add_completion(unit, &gate->guard.ask);
}

void api_gate_carried(struct api_gate *gate, const struct unit_result *result)
{
	gate->stale = result->rows[gate->line].n == 0;
}

/* ---- admission ---- */

static bool mutates(const struct http_call *call)
{
	static const char *const methods[] = {"POST", "PUT", "PATCH", "DELETE", NULL};

	return slice_in(slice_str(call->route->method), methods);
}

static enum hx_code gate_read_key(struct http_call *call, struct hx_error *err, struct slice *ret_key)
{
	size_t n;
	const struct wire_field *field = wire_find(call->request->wire.head.fields, "Idempotency-Key", &n);

	/* That there is more than one is all that matters of the others. */
	return gate_key_from_header(field ? &field->value : NULL, n, API_GATE_KEY_MAX, call->arena, err, ret_key);
}

/*
 * Where version 0.1 kept the record of this request: under a key that its requester was a part of. Such records live for
 * API_GATE_TTL_MS, and what was done under them is not done again after an upgrade. This, `old_key` in gate/record.h and
 * gate_store_has_old() can go when nobody comes from 0.1 any more.
 */
static enum hx_code make_old_key(struct http_call *call, const struct gate_scope *scope, struct slice key,
				 struct hx_error *err, struct slice *ret_old)
{
	struct gate_scope old = *scope;
	unsigned char *bytes = arena_alloc(call->arena, HX_GATE_KEY_BYTES);

	if (!bytes)
		return arena_error(call->arena, err);
	old.has_tenant = true;
	old.tenant = api_requester(call);
	gate_record_key(&old, key, bytes);
	*ret_old = slice_of(bytes, HX_GATE_KEY_BYTES);
	return HX_OK;
}

/* What the query names in the place of a segment (api_run_key.c) says whom the request is about, as its path does. */
static enum hx_code address_in_query(struct http_call *call, struct gate_scope *scope, struct hx_error *err)
{
	const char *with = call->route->with;

	if (!with)
		return HX_OK;
	scope->parts_n = 1;
	scope->parts[0].name = slice_str(with);
	scope->parts[0].present = true;
	return query_get(&call->query, with, err, &scope->parts[0].value);
}

static enum hx_code make_claim(struct http_call *call, struct slice key, struct hx_error *err,
			       struct hx_gate_claim *ret_claim, struct slice *ret_old)
{
	static const struct gate_fingerprint_rule whole = {0};
	char space[SPACE_BYTES] = "api:";
	struct slice workspace = api_workspace(call);
	struct gate_scope scope = {
		.space = slice_of(space, 4 + workspace.n),
		.endpoint = true,
		.method = call->request->wire.method,
		.path = call->request->wire.path,
	};
	enum hx_code code = address_in_query(call, &scope, err);

	if (code)
		return code;
	memcpy(space + 4, workspace.p, workspace.n); /* admitted: at most ENTITY_NAME_MAX */
	*ret_claim = (struct hx_gate_claim){.lease_ms = API_GATE_LEASE_MS, .ttl_ms = API_GATE_TTL_MS};
	gate_record_key(&scope, key, ret_claim->key);
	gate_hash_caller(ret_claim->key, scope.space, api_requester(call), ret_claim->caller);
	if (gate_store_has_old(api_parts(call)->gate_store))
		code = make_old_key(call, &scope, key, err, ret_old);
	if (!code)
		code = gate_token_draw(ret_claim->token, err);
	if (code)
		return code;
	return gate_fingerprint(&whole, slice_str("application/json"), call->request->body, call->arena, err,
				ret_claim->fingerprint);
}

static enum hx_code gate_new(struct http_call *call, struct slice key, struct hx_error *err, struct api_gate **ret)
{
	struct api_gate *gate = arena_zalloc(call->arena, sizeof *gate);
	struct hx_gate_claim claim;
	struct slice old_key = {0};
	enum hx_code code;

	if (!gate)
		return arena_error(call->arena, err);
	code = make_claim(call, key, err, &claim, &old_key);
	if (code)
		return code;
	gate->call = call;
	guard_init(&gate->guard, &claim);
	gate->guard.ask.key_text = key;
	gate->guard.ask.old_key = old_key;
	gate->guard.ask.endpoint = gate_endpoint_text(call->request->wire.method, call->request->wire.path,
						      call->arena);
	strbuf_init(&gate->kept, GATE_STORED_BYTES_MAX);
	if (!strbuf_reserve(&gate->kept, KEPT_BYTES_MIN))
		return strbuf_error(&gate->kept, err);
	*ret = gate;
	return HX_OK;
}

bool api_gate_admit(struct http_call *call)
{
	struct slice key;
	struct hx_error err;
	enum hx_code code;

	if (!mutates(call))
		return true;
	code = gate_read_key(call, &err, &key);
	if (code == HX_KEY_REQUIRED)
		return true; /* a key is the caller's choice */
	if (!code)
		code = gate_new(call, key, &err, &call->gate);
	if (code)
		return api_refuse(call, code, err.detail);
	if (call->route->one_unit && !call->gate->guard.ask.old_key.n &&
	    !gate_is_recalled(engine_parts(engine_of(call->gate))->gate_store, &call->gate->guard.ask.claim)) {
		http_capture(call->exchange, captured, call->gate);
		return true;
	}
	acquire(call->gate);
	return false;
}
