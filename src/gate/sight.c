/* See sight.h. */
#include "gate/sight.h"

#include "base/digits.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "gate/replay.h"
#include "gate/token.h"

static const char *status_name(const struct gate_sight *sight)
{
	if (sight->state == GATE_COMPLETED)
		return "completed";
	if (sight->state == GATE_HELD)
		return "held";
	return sight->lease_left_ms > 0 ? "in_flight" : "lost";
}

/* What the store has of it is JSON of ours, or has been damaged. */
static void add_about(struct strbuf *text, struct slice about)
{
	static const char *const names[] = {"gate", "route", "tenant", "scope"};
	struct json document, value;
	bool ours = json_check(about, /* err= */ NULL, &document) == HX_OK && json_type(document) == JSON_OBJECT;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		bool there = ours && json_find(document, slice_str(names[i]), &value);

		json_more_json(text, names[i], there ? value.raw : slice_of(NULL, 0));
	}
}

void gate_sight_json(struct strbuf *text, const struct gate_sight *sight)
{
	char key[2 * sizeof sight->key + 1], token[2 * sizeof sight->token + 1];

	hex_write(sight->key, sizeof sight->key, key);
	hex_write(sight->token, sizeof sight->token, token);
	strbuf_addf(text, "{\"record\":\"%s%s\"", key, token);
	json_more_word(text, "key", sight->key_text);
	json_more_word(text, "status", status_name(sight));
	json_more_word(text, "endpoint", sight->endpoint);
	add_about(text, slice_str(sight->about));
	json_more_time(text, "createdAt", sight->created_ms);
	json_more_int(text, "leaseLeftMs", sight->lease_left_ms);
	json_more_int(text, "openMs", sight->over_ms);
	json_more_int(text, "responseBytes", sight->response_bytes);
	strbuf_add_char(text, '}');
}

bool gate_ask_name(struct slice name, struct gate_ask *ask)
{
	unsigned char bytes[GATE_NAME_BYTES];

	if (!hex_read(name, GATE_NAME_BYTES, bytes))
		return false;
	memcpy(ask->claim.key, bytes, sizeof ask->claim.key);
	memcpy(ask->claim.token, bytes + sizeof ask->claim.key, sizeof ask->claim.token);
	return true;
}

bool gate_read_outcome(struct slice body, bool *ret_done)
{
	struct json document, outcome;

	if (json_check(body, /* err= */ NULL, &document) != HX_OK || json_type(document) != JSON_OBJECT ||
	    !json_find(document, slice_str("outcome"), &outcome))
		return false;
	*ret_done = slice_is(outcome.raw, "\"done\"");
	return *ret_done || slice_is(outcome.raw, "\"not_done\"");
}

bool gate_ask_done(struct gate_ask *ask, struct arena *arena, int64_t ttl_ms)
{
	struct strbuf stored = arena_strbuf(arena, GATE_RESPONSE_BYTES_MIN);

	if (!stored.p || gate_token_draw(ask->resolver, /* err= */ NULL))
		return false;
	gate_response_encode(&(struct gate_response){.status = 200, .body_missing = true}, &stored);
	ASSERT(!stored.failed);
	ask->response = strbuf_slice(&stored);
	ask->claim.ttl_ms = ttl_ms;
	return true;
}

enum hx_code gate_refusal(enum gate_verdict verdict, const char **ret_words)
{
	static const struct {
		enum hx_code code;
		const char *words;
	} refusals[] = {
		[GATE_ABSENT] = {HX_NOT_FOUND, "there is no such record"},
		[GATE_IN_FLIGHT] = {HX_IN_FLIGHT, "its lease lasts: the first request may be at work"},
		[GATE_COMPLETED] = {HX_ALREADY_COMPLETED, "it has been answered: there is nothing to resolve"},
		[GATE_STALE] = {HX_CONCURRENCY_ERROR, "somebody has used the key since it was looked at"},
		[GATE_UNAVAILABLE] = {HX_STORE_UNAVAILABLE, NULL},
	};

	*ret_words = NULL;
	if (verdict == GATE_DONE)
		return HX_OK;
	if ((size_t)verdict >= sizeof refusals / sizeof *refusals || !refusals[verdict].code)
		return HX_STORE_UNAVAILABLE;
	*ret_words = refusals[verdict].words;
	return refusals[verdict].code;
}
