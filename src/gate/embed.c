/*
 * The gate in somebody else's program: hx_gate_* of hapax.h, which has the contract.
 *
 * The order of things is the guard's; each of its asks is made here and waited for. An entry:
 *
 *              ┌ completed by another ──▶ REPLAY
 *   begin ─────┤                              ┌──────────────────── abort ─────────────────────┐
 *              └ ours ──▶ OPEN ── complete ───┼ stored, or stale ──────────────────────────────┴▶ CLOSED
 *                          ▲                  ├ refused, nothing was written ──▶ OPEN
 *                          └──────────────────┴ nobody knows ──▶ DOUBTFUL ── complete: as from OPEN
 *
 * From DOUBTFUL it is never aborted: what may have been done is not let go. A completion with writes that is repeated
 * there writes only into a record that still has its token; finding none that is PROCESSING, it asks by the token
 * whether that was its own doing. If the record is another's or gone, nobody will ever know: it stays DOUBTFUL.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/latch.h"
#include "base/sized.h"
#include "base/steady_clock.h"
#include "gate/embed_unit.h"
#include "gate/fingerprint.h"
#include "gate/guard.h"
#include "gate/home.h"
#include "gate/key.h"
#include "gate/replay.h"
#include "gate/scope.h"
#include "gate/sweeper.h"
#include "gate/token.h"

#define KEY_MAX 255
#define TTL_MS_DEFAULT (INT64_C(24) * 60 * 60 * 1000)
#define LEASE_MS_DEFAULT 60000
#define SWEEP_EVERY_MS 60000
#define DRAIN_MS 10000
#define FIELDS_MAX 64
#define ENTRY_BYTES_MAX (64u << 20)
#define SCRATCH_BYTES_MAX (256u << 20)

struct hx_gate {
	struct gate_home *home; /* NULL: the store is the program's own */
	struct gate_store *store;
	struct gate_sweeper *sweeper; /* of such a store; a home has its own */
	struct embed_texts texts;
	char *url, *space;
	struct steady_clock clock;
	struct hx_gate_options options;
};

struct hx_gate_entry {
	struct hx_gate *gate;
	struct guard guard;
	struct mono_time asked_by; /* when its last ask was to be given up */
	enum { ENTRY_OPEN, ENTRY_DOUBTFUL, ENTRY_REPLAY, ENTRY_CLOSED } at;
	size_t writes_n; /* of the completion that is in doubt: it can only be repeated as it was */
	struct hx_gate_response replay;
	struct hx_gate_event event; /* what is known of it before the outcome */
	struct arena arena;
};

/* ---- opening ---- */

static enum hx_code embed_open_store(struct hx_gate *gate, struct hx_error *err)
{
	struct gate_home_options home = {.url = gate->url,
					 .sweep_every_ms = SWEEP_EVERY_MS,
					 .clock = &gate->clock.clock,
					 .store_timeout_ms = GATE_STORE_TIMEOUT_MS};
	enum hx_code code;

	if (!gate->options.store) {
		code = gate_home_open(&home, &gate->home, err);
		if (!code)
			gate->store = gate_home_store(gate->home);
		return code;
	}
	code = gate_user_new(gate->options.store, &gate->clock.clock, &gate->store, err);
	if (!code && gate->options.store->sweep)
		code = gate_sweeper_new(gate->store, SWEEP_EVERY_MS, /* held= */ NULL, &gate->sweeper, err);
	return code;
}

static enum hx_code embed_check(const struct hx_gate_options *options, struct hx_error *err)
{
	const struct hx_gate_store *store = options->store;

	if (!options->store_url == !store)
		return error_set(err, HX_CONFIG_ERROR, "a gate has a store_url or a store, and not both");
	if (store && (!store->acquire || !store->complete || !store->remove))
		return error_set(err, HX_CONFIG_ERROR, "a store has acquire, complete and remove");
	if (options->ttl_ms < 0 || options->lease_ms < 0)
		return error_set(err, HX_CONFIG_ERROR, "ttl_ms and lease_ms are from 1 on, or 0 for the default");
	return HX_OK;
}

static enum hx_code read_options(const struct hx_gate_options *given, struct hx_gate_options *ret_own,
				 struct hx_gate_store *ret_store, struct hx_error *err)
{
	enum hx_code code = SIZED_READ(given, ret_own, "hx_gate_options", err);

	if (!code && ret_own->store) {
		code = SIZED_READ(ret_own->store, ret_store, "hx_gate_store", err);
		ret_own->store = ret_store;
	}
	return code ? code : embed_check(ret_own, err);
}

enum hx_code hx_gate_open(const struct hx_gate_options *options, struct hx_gate **ret_gate, struct hx_error *err)
{
	struct hx_gate_options own;
	struct hx_gate_store store;
	enum hx_code code = read_options(options, &own, &store, err);
	struct hx_gate *gate = code ? NULL : calloc(1, sizeof *gate);

	if (code)
		return code;
	options = &own;
	if (!gate)
		return error_set(err, HX_NO_MEMORY, "a gate");
	embed_texts_init(&gate->texts);
	steady_clock_init(&gate->clock, clock_system(), /* log= */ NULL);
	gate->options = *options;
	gate->options.ttl_ms = options->ttl_ms ? options->ttl_ms : TTL_MS_DEFAULT;
	gate->options.lease_ms = options->lease_ms ? options->lease_ms : LEASE_MS_DEFAULT;
	gate->url = strdup(options->store_url ? options->store_url : "");
	gate->space = strdup(options->space ? options->space : "embedded");
	code = gate->url && gate->space ? embed_open_store(gate, err) : error_set(err, HX_NO_MEMORY, "a gate");
	return HAND_OVER(code, gate, hx_gate_close, ret_gate);
}

void hx_gate_close(struct hx_gate *gate)
{
	if (!gate)
		return;
	gate_sweeper_free(gate->sweeper);
	if (!gate->home)
		gate_store_free(gate->store);
	gate_home_close(gate->home, DRAIN_MS);
	embed_texts_release(&gate->texts);
	free(gate->url);
	free(gate->space);
	steady_clock_release(&gate->clock);
	free(gate);
}

/* ---- asking the store, and waiting ---- */

struct waiting {
	struct gate_ticket ticket;
	struct arena *arena; /* where a response goes */
	struct latch latch;
};

static void embed_answered(struct gate_ticket *ticket)
{
	struct waiting *w = (struct waiting *)ticket;

	ticket->reply.response = arena_copy(w->arena, ticket->reply.response);
	latch_open(&w->latch);
}

static void ask_store(struct hx_gate_entry *entry, struct gate_reply *ret_reply)
{
	struct waiting w = {.ticket = {.ask = entry->guard.ask, .done = embed_answered}, .arena = &entry->arena};

	if (guard_takes_back(&entry->guard))
		w.ticket.by = entry->asked_by;
	latch_init(&w.latch);
	gate_ask(entry->gate->store, &w.ticket);
	latch_wait(&w.latch);
	latch_release(&w.latch);
	entry->asked_by = w.ticket.by;
	*ret_reply = w.ticket.reply;
}

/* Until the work is the caller's, or the guard has ended. The last reply is told. */
static void drive(struct hx_gate_entry *entry, struct gate_reply *ret_reply)
{
	while (entry->guard.at != GUARD_EXECUTING && entry->guard.at != GUARD_ENDED) {
		ask_store(entry, ret_reply);
		guard_take_reply(&entry->guard, ret_reply);
	}
}

static void embed_tell(const struct hx_gate_entry *entry, enum hx_gate_outcome outcome, enum hx_code code)
{
	const struct hx_gate_options *options = &entry->gate->options;
	struct hx_gate_event event = entry->event;

	event.outcome = outcome;
	event.code = code;
	if (options->on_event)
		options->on_event(options->data, &event);
}

/* ---- begin ---- */

static enum hx_code make_claim(struct hx_gate_entry *entry, const struct hx_gate_request *request, struct slice key,
			       struct hx_error *err, struct hx_gate_claim *ret_claim)
{
	const struct hx_gate_options *options = &entry->gate->options;
	struct gate_fingerprint_rule rule = {.off = options->no_fingerprint != 0};
	struct gate_scope scope = {
		.space = slice_str(entry->gate->space),
		.tenant = slice_str(request->tenant),
		.has_tenant = request->tenant != NULL,
		.endpoint = request->method || request->path,
		.method = slice_str(request->method),
		.path = slice_str(request->path),
	};

	*ret_claim = (struct hx_gate_claim){
		.lease_ms = options->lease_ms, .ttl_ms = options->ttl_ms, .hold = options->hold};
	gate_record_key(&scope, key, ret_claim->key);
	if (request->caller)
		gate_hash_caller(ret_claim->key, slice_str("embedded"), slice_str(request->caller), ret_claim->caller);
	if (gate_token_draw(ret_claim->token, err))
		return err->code = HX_STORE_UNAVAILABLE;
	LOCAL_ARENA(scratch, SCRATCH_BYTES_MAX);
	return gate_fingerprint(&rule, slice_str(request->content_type), slice_of(request->body, request->body_bytes),
				&scratch, err, ret_claim->fingerprint);
}

static const char *kept(struct hx_gate_entry *entry, const char *text)
{
	return text ? arena_copy(&entry->arena, slice_str(text)).p : NULL;
}

static enum hx_code entry_new(struct hx_gate *gate, const struct hx_gate_request *request,
			      struct hx_gate_entry **ret_entry, struct hx_error *err)
{
	struct hx_gate_entry *entry = calloc(1, sizeof *entry);
	struct slice value = slice_str(request->key), key;
	struct hx_gate_claim claim;
	enum hx_code code;

	if (!entry)
		return error_set(err, HX_NO_MEMORY, "an entry");
	entry->gate = gate;
	arena_init(&entry->arena, ENTRY_BYTES_MAX);
	code = gate_key_from_header(&value, request->key != NULL, KEY_MAX, &entry->arena, err, &key);
	if (!code)
		code = make_claim(entry, request, key, err, &claim);
	if (!code) {
		guard_init(&entry->guard, &claim);
		key = arena_copy(&entry->arena, key);
		entry->guard.ask.endpoint = gate_endpoint_text(slice_str(request->method), slice_str(request->path),
							       &entry->arena);
		entry->guard.ask.key_text = key;
		entry->event = (struct hx_gate_event){
			.method = kept(entry, request->method),
			.path = kept(entry, request->path),
			.tenant = kept(entry, request->tenant),
			.key = key.p,
		};
		if (entry->arena.failed)
			code = arena_error(&entry->arena, err);
	}
	return HAND_OVER(code, entry, hx_gate_entry_free, ret_entry);
}

/* Texts in the stored form have no NUL after them. */
static enum hx_code read_replay(struct hx_gate_entry *entry, struct slice bytes, struct hx_error *err)
{
	struct gate_response response;
	enum hx_code code = gate_response_decode(bytes, &entry->arena, err, &response);
	struct hx_gate_field *fields;

	if (code)
		return code;
	if (response.body_missing)
		return error_set(err, HX_RESPONSE_NOT_STORED, "%s", hx_code_text(HX_RESPONSE_NOT_STORED));
	fields = arena_alloc(&entry->arena, response.fields_n * sizeof *fields);
	for (size_t i = 0; fields && i < response.fields_n; i++)
		fields[i] = (struct hx_gate_field){
			arena_copy(&entry->arena, response.fields[i].name).p,
			arena_copy(&entry->arena, response.fields[i].value).p,
		};
	if (entry->arena.failed)
		return arena_error(&entry->arena, err);
	entry->at = ENTRY_REPLAY;
	entry->replay = (struct hx_gate_response){sizeof entry->replay, response.status, response.fields_n, fields,
						  response.body.p,      response.body.n};
	return HX_OK;
}

/* What an entry that is not to be executed comes to. */
static enum hx_code embed_ended(struct hx_gate_entry *entry, const struct gate_reply *reply, struct hx_error *err)
{
	enum hx_gate_outcome outcome = entry->guard.outcome;
	enum hx_code code = entry->guard.code;

	if (outcome == HX_GATE_REPLAYED)
		code = read_replay(entry, reply->response, err);
	else
		(void)error_set(err, code, "%s", hx_code_text(code));
	if (code == HX_RESPONSE_NOT_STORED)
		outcome = HX_GATE_CONFLICT;
	else if (code && outcome == HX_GATE_REPLAYED)
		outcome = HX_GATE_STORE_ERROR;
	embed_tell(entry, outcome, code);
	return code;
}

enum hx_code hx_gate_begin(struct hx_gate *gate, const struct hx_gate_request *request,
			   struct hx_gate_entry **ret_entry, int64_t *ret_retry_after_ms, struct hx_error *err)
{
	struct gate_reply reply = {0};
	struct hx_gate_entry *entry = NULL;
	struct hx_gate_request own;
	enum hx_code code = SIZED_READ(request, &own, "hx_gate_request", err);

	if (!code)
		code = entry_new(gate, &own, &entry, err);
	if (code)
		return code;
	guard_note_asked(&entry->guard, clock_mono(clock_system()));
	drive(entry, &reply);
	if (entry->guard.at == GUARD_EXECUTING && clock_mono(clock_system()).ns >= guard_work_until(&entry->guard).ns) {
		guard_take_result(&entry->guard, GUARD_NOTHING);
		drive(entry, &reply);
		entry->guard.outcome = HX_GATE_STORE_ERROR; /* it took longer than the lease */
		entry->guard.code = HX_STORE_UNAVAILABLE;
	}
	if (entry->guard.at == GUARD_ENDED)
		code = embed_ended(entry, &reply, err);
	if ((code == HX_IN_FLIGHT || code == HX_HELD) && ret_retry_after_ms)
		*ret_retry_after_ms = entry->guard.retry_after_ms;
	return HAND_OVER(code, entry, hx_gate_entry_free, ret_entry);
}

const struct hx_gate_response *hx_gate_replay(const struct hx_gate_entry *entry)
{
	return entry->at == ENTRY_REPLAY ? &entry->replay : NULL;
}

void hx_gate_entry_free(struct hx_gate_entry *entry)
{
	if (!entry)
		return;
	arena_release(&entry->arena);
	free(entry);
}

/* ---- complete and abort ---- */

static enum hx_code encode(const struct hx_gate_response *response, struct strbuf *out, struct hx_error *err)
{
	static const struct gate_replay_rule rule = {.kind = REPLAY_SAFE};
	struct gate_field fields[FIELDS_MAX];
	struct gate_response stored = {.status = response->status, .fields = fields};

	if (response->status < 100 || response->status > 999 || response->fields_n > FIELDS_MAX)
		return error_set(err, HX_VALIDATION_ERROR,
				 "a response has a status of three digits and at most %d fields", FIELDS_MAX);
	stored.body_missing = response->body_bytes > HX_GATE_BODY_BYTES_MAX;
	if (!stored.body_missing)
		stored.body = slice_of(response->body, response->body_bytes);
	for (size_t i = 0; i < response->fields_n; i++) {
		struct gate_field field = {slice_str(response->fields[i].name), slice_str(response->fields[i].value)};

		if (gate_replays_field(&rule, field.name, /* connection= */ NULL, 0))
			fields[stored.fields_n++] = field;
	}
	gate_response_encode(&stored, out);
	return out->failed ? strbuf_error(out, err) : HX_OK;
}

/* By the token alone. Where the guard ends without knowing, it is left where it was, to be asked again. */
static enum hx_code complete_alone(struct hx_gate_entry *entry, struct hx_error *err)
{
	struct guard before = entry->guard;
	struct gate_reply reply;

	guard_take_result(&entry->guard, GUARD_STORE);
	drive(entry, &reply);
	embed_tell(entry, entry->guard.outcome, HX_OK);
	if (entry->guard.outcome == HX_GATE_UNSTORED) {
		entry->guard = before;
		entry->at = ENTRY_DOUBTFUL;
		return error_set(err, HX_STORE_UNAVAILABLE, "it is not known whether the answer is stored");
	}
	entry->at = ENTRY_CLOSED;
	if (entry->guard.outcome == HX_GATE_STALE)
		return error_set(err, HX_STALE_FENCE, "the record is another's by now, or gone");
	return HX_OK;
}

static enum hx_code still_unknown(const char *why, struct hx_error *err)
{
	return error_set(err, HX_OUTCOME_UNKNOWN, "%s: %s", hx_code_text(HX_OUTCOME_UNKNOWN), why);
}

/*
 * The unit of a repetition found no record of this token that is PROCESSING. One that is COMPLETED is its own doing; one
 * that is another's or gone may be so because nothing was written, or because it was, and the record has expired since.
 */
static enum hx_code lost_in_doubt(struct hx_gate_entry *entry, struct hx_error *err)
{
	struct guard before = entry->guard;
	struct hx_error why;

	if (!complete_alone(entry, &why))
		return HX_OK;
	entry->guard = before;
	entry->at = ENTRY_DOUBTFUL;
	return still_unknown(why.detail, err);
}

/* The unit found no record that is PROCESSING. */
static enum hx_code embed_lost(struct hx_gate_entry *entry, struct hx_error *err)
{
	if (entry->at == ENTRY_DOUBTFUL)
		return lost_in_doubt(entry, err);
	entry->at = ENTRY_CLOSED;
	embed_tell(entry, HX_GATE_STALE, HX_OK);
	return error_set(err, HX_STALE_FENCE, "the record is another's by now, or gone: nothing was written");
}

/* In doubt, a write that the store refused tells that the record was still PROCESSING; other failures tell nothing. */
static enum hx_code embed_failed(const struct hx_gate_entry *entry, const struct hx_error *why, struct hx_error *err)
{
	bool unreachable = why->code == HX_STORE_UNAVAILABLE || why->code == HX_CONCURRENCY_ERROR ||
			   why->code == HX_NO_MEMORY;

	if (entry->at == ENTRY_DOUBTFUL && why->code != HX_DATA_ERROR)
		return still_unknown(why->detail, err);
	return error_set(err, unreachable ? HX_STORE_UNAVAILABLE : HX_DATA_ERROR, "%s", why->detail);
}

static enum hx_code complete_with(struct hx_gate_entry *entry, size_t writes_n, const struct hx_gate_write *writes,
				  struct hx_error *err)
{
	const struct lanes *lanes = entry->gate->home ? gate_home_lanes(entry->gate->home) : NULL;
	struct embed_result result;
	struct unit unit;
	enum hx_code code;

	if (!lanes)
		return error_set(err, HX_VALIDATION_ERROR,
				 "writes need a store that is a database: sqlite: or postgres:");
	code = embed_unit_build(&entry->gate->texts, &entry->guard.ask, entry->at == ENTRY_DOUBTFUL, writes_n, writes,
				&unit, err);
	if (code)
		return code;
	embed_unit_run(lanes, &entry->guard.ask, &unit, &result);
	switch (result.verdict) {
	case UNIT_WON:
		entry->at = ENTRY_CLOSED;
		embed_tell(entry, HX_GATE_CREATED, HX_OK);
		return HX_OK;
	case UNIT_LOST:
		return embed_lost(entry, err);
	case UNIT_REFUSED: /* the record was still PROCESSING: whatever came before has not landed */
		entry->at = ENTRY_OPEN;
		return error_set(err, HX_INVALID, "write %d changed no row", result.line - 1);
	case UNIT_FAILED:
		return embed_failed(entry, &result.error, err);
	case UNIT_UNKNOWN:
		break;
	}
	entry->at = ENTRY_DOUBTFUL;
	embed_tell(entry, HX_GATE_UNSTORED, HX_OUTCOME_UNKNOWN);
	return error_set(err, HX_OUTCOME_UNKNOWN, "%s", hx_code_text(HX_OUTCOME_UNKNOWN));
}

enum hx_code hx_gate_complete(struct hx_gate_entry *entry, const struct hx_gate_response *response, size_t writes_n,
			      const struct hx_gate_write *writes, struct hx_error *err)
{
	struct hx_gate_response own;
	enum hx_code code = SIZED_READ(response, &own, "hx_gate_response", err);

	if (code)
		return code;
	if (entry->at != ENTRY_OPEN && entry->at != ENTRY_DOUBTFUL)
		return error_set(err, HX_WRONG_STATUS, "there is nothing to complete");
	if (entry->at == ENTRY_DOUBTFUL && writes_n != entry->writes_n)
		return error_set(err, HX_WRONG_STATUS, "a completion that is in doubt can only be repeated as it was");
	entry->writes_n = writes_n;
	LOCAL_STRBUF(stored, 2 * HX_GATE_BODY_BYTES_MAX);
	code = encode(&own, &stored, err);
	entry->guard.ask.response = strbuf_slice(&stored);
	if (code)
		return code;
	return writes_n ? complete_with(entry, writes_n, writes, err) : complete_alone(entry, err);
}

enum hx_code hx_gate_abort(struct hx_gate_entry *entry, struct hx_error *err)
{
	struct gate_reply reply;

	if (entry->at != ENTRY_OPEN)
		return error_set(err, HX_WRONG_STATUS, "%s",
				 entry->at == ENTRY_DOUBTFUL ? "what may have been done is not let go"
							     : "there is nothing to let go");
	guard_take_result(&entry->guard, GUARD_NOTHING);
	drive(entry, &reply);
	entry->at = ENTRY_CLOSED;
	embed_tell(entry, HX_GATE_RELEASED, HX_OK);
	if (reply.verdict == GATE_STALE)
		return error_set(err, HX_STALE_FENCE, "the record is another's by now, and was left alone");
	if (reply.verdict == GATE_UNAVAILABLE)
		return error_set(err, HX_STORE_UNAVAILABLE, "it goes when its lease is over");
	return HX_OK;
}
