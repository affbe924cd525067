/*
 * Getting the items of a batch to the server, in requests of a bounded size.
 *
 *   all of it in one request:   POST /batches ─▶ QUEUED
 *   more than that:             POST /batches, held, with the first piece ─▶ POST …/items, a piece each … ─▶ POST …/start
 *
 * What if an answer is lost? A piece has an Idempotency-Key, so it is sent again until it is answered, and lands once; the first
 * request likewise, where the batch has a key. What if this program is lost? The batch stays held and charges nothing. With --key
 * the same command finds it, sees by its `total` how much is there, and sends the rest: items are numbered in the order of the file.
 */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_walk.h"
#include "cli/batch_parts.h"
#include "cli/question.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "gate/token.h"
#include "model/text.h"

#define PIECE_BYTES_MAX (4u << 20) /* far below max_body_bytes of a server */
#define PIECE_ITEMS_MAX 20000
#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS 2000

/* ---- one piece ---- */

/* The items that fit, at least one; returns how many. The iterator stands before the next. */
static int64_t add_piece(struct client *client, struct json_iter *it)
{
	size_t from = client->body.n;
	int64_t n = 0;

	question_member(client, "items");
	strbuf_add_char(&client->body, '[');
	for (;;) {
		struct json_iter next = *it;
		struct json item;

		if (n == PIECE_ITEMS_MAX || !json_iter_element(&next, &item))
			break;
		if (n > 0 && client->body.n - from + item.raw.n > PIECE_BYTES_MAX)
			break;
		strbuf_add_str(&client->body, n > 0 ? "," : "");
		strbuf_add_slice(&client->body, item.raw);
		*it = next;
		n++;
	}
	strbuf_add_char(&client->body, ']');
	return n;
}

static struct json_iter items_from(const struct batch_items *items, int64_t from)
{
	struct json_iter it = json_iter_of(items->array);
	struct json item;

	for (int64_t i = 0; i < from; i++)
		(void)json_iter_element(&it, &item); /* there are so many */
	return it;
}

static void tell_loaded(const struct client *client, int64_t loaded, int64_t total)
{
	char line[80];

	if (client->json || !terminal_is_watched())
		return;
	snprintf(line, sizeof line, "loading: %lld of %lld items", (long long)loaded, (long long)total);
	terminal_tell(loaded < total ? line : "");
}

/* ---- asking until there is an answer ---- */

/* Nobody knows whether it was done, or it was not; the next time it may be. */
static bool is_passing(enum hx_code code)
{
	return code == HX_OUTCOME_UNKNOWN || code == HX_SERVER_UNAVAILABLE || code == HX_STORE_UNAVAILABLE ||
	       code == HX_BUSY || code == HX_STOPPING || code == HX_IN_FLIGHT || code == HX_CLAIM_FAILED ||
	       code == HX_STALE_FENCE;
}

/* What is left of many tries: the last one may not have been done, but one before it. */
static enum hx_code give_up(enum hx_code code, bool unsure, struct hx_error *err)
{
	struct hx_error why = *err;

	if (!unsure || code == HX_OUTCOME_UNKNOWN)
		return code;
	return error_set(err, HX_OUTCOME_UNKNOWN, "it is not known whether this took effect: %s", why.detail);
}

/* A question that may be asked again, for as long as --timeout says. A server that was never met is not waited for. */
static enum hx_code ask_on(struct client *client, bool met, struct json *ret_answer, struct hx_error *err)
{
	struct mono_time deadline = mono_add_ms(clock_mono(clock_system()), client->timeout_ms);
	int64_t pause = PAUSE_MIN_MS;
	bool unsure = false;

	for (;;) {
		enum hx_code code;

		strbuf_reset(&client->answer);
		code = client_ask(client, "POST", ret_answer, err);
		met |= code != HX_SERVER_UNAVAILABLE;
		unsure |= code == HX_OUTCOME_UNKNOWN;
		if (!is_passing(code) || !met)
			return code;
		if (mono_add_ms(clock_mono(clock_system()), pause).ns >= deadline.ns)
			return give_up(code, unsure, err);
		/* Woken early: asked early. */
		(void)nanosleep(&(struct timespec){pause / 1000, pause % 1000 * 1000000}, NULL);
		pause = pause * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause * 2;
	}
}

/* ---- several pieces ---- */

struct load {
	struct client *client;
	const struct batch_items *items;
	const char *id;
	const char *key_stem; /* of the keys; that of a piece has its first item after it */
	int64_t sent;
};

static void batch_load_begin(const struct load *load, const char *verb, const char *key)
{
	client_next(load->client, BATCH_PATH);
	client_segment(load->client, load->id);
	client_path(load->client, verb);
	load->client->key = key;
}

static enum hx_code send_piece(struct load *load, struct json_iter *it, struct json *ret_batch, struct hx_error *err)
{
	const char *key = text_printf(&load->client->arena, "%s/%lld", load->key_stem, (long long)load->sent);
	enum hx_code code;
	int64_t n;

	if (!key)
		return arena_error(&load->client->arena, err);
	batch_load_begin(load, "/items", key);
	n = add_piece(load->client, it);
	question_end(load->client);
	code = ask_on(load->client, /* met= */ load->sent > 0, ret_batch, err);
	load->sent += code ? 0 : n;
	return code;
}

static enum hx_code send_rest(struct load *load, struct json *ret_batch, struct hx_error *err)
{
	struct json_iter it = items_from(load->items, load->sent);
	enum hx_code code = HX_OK;

	while (load->sent < load->items->n && !code) {
		tell_loaded(load->client, load->sent, load->items->n);
		code = send_piece(load, &it, ret_batch, err);
	}
	tell_loaded(load->client, load->items->n, load->items->n);
	return code;
}

static enum hx_code send_start(const struct load *load, struct json *ret_batch, struct hx_error *err)
{
	batch_load_begin(load, "/start", "start");
	question_end(load->client);
	return ask_on(load->client, /* met= */ true, ret_batch, err);
}

/* ---- a new batch ---- */

static enum hx_code ask_first(struct client *client, const struct batch_order *order, const struct batch_items *items,
			      struct json *ret_batch, int64_t *ret_sent, struct hx_error *err)
{
	struct json_iter it = json_iter_of(items->array);

	client_next(client, BATCH_PATH);
	question_text(client, "workflow", order->workflow);
	question_text(client, "account", order->account);
	if (order->key)
		question_text(client, "idempotencyKey", order->key);
	if (order->data && question_json(client, "data", order->data, "--data", err))
		return err->code;
	*ret_sent = add_piece(client, &it);
	if (order->hold || *ret_sent < items->n) {
		question_member(client, "hold");
		strbuf_add_str(&client->body, "true");
	}
	question_end(client);
	return order->key ? ask_on(client, /* met= */ false, ret_batch, err)
			  : client_ask(client, "POST", ret_batch, err);
}

/* What is left behind, and how to go on; after it what went wrong, since the end of it may be cut. */
static enum hx_code tell_left(const struct load *load, bool has_key, enum hx_code code, struct hx_error *err)
{
	struct hx_error why = *err;

	code = is_passing(code) ? HX_OUTCOME_UNKNOWN : code; /* the others promise that nothing was done */
	if (load->sent == load->items->n)
		return error_set(err, code, "%s is loaded and held (to go on: hapax batch start %s): %s", load->id,
				 load->id, why.detail);
	return error_set(err, code, "%s is held, with %lld of %lld items (%s): %s", load->id, (long long)load->sent,
			 (long long)load->items->n,
			 has_key ? "the same command goes on" : "hapax batch cancel takes it away", why.detail);
}

/* The batch is held; the first piece may not be all that is there, if the key has found it. */
static enum hx_code load_on(struct load *load, const struct batch_order *order, struct json *ret_batch,
			    struct hx_error *err)
{
	enum hx_code code;

	load->sent = batch_number(*ret_batch, "total");
	if (load->sent > load->items->n)
		return error_set(err, HX_WRONG_STATUS,
				 "%s has been loaded with other items: there are %lld in it already", load->id,
				 (long long)load->sent);
	code = send_rest(load, ret_batch, err);
	if (!code && !order->hold)
		code = send_start(load, ret_batch, err);
	return code ? tell_left(load, order->key != NULL, code, err) : HX_OK;
}

enum hx_code batch_send(struct client *client, const struct batch_order *order, const struct batch_items *items,
			struct json *ret_batch, bool *ret_created, struct hx_error *err)
{
	struct load load = {.client = client, .items = items, .key_stem = "load"};
	int64_t sent = 0;
	enum hx_code code = ask_first(client, order, items, ret_batch, &sent, err);

	if (code)
		return code;
	*ret_created = text_member_is_true(*ret_batch, "created");
	load.id = arena_copy(&client->arena, client_member(client, *ret_batch, "id")).p;
	if (!load.id || !*load.id)
		return error_set(err, HX_BAD_GATEWAY, "%s: there is no batch in the answer", client->server);
	if (sent == items->n || !slice_is(client_member(client, *ret_batch, "status"), "PENDING"))
		return HX_OK;
	return load_on(&load, order, ret_batch, err);
}

/* ---- more items ---- */

/* A stem that nobody else has. */
static enum hx_code draw_stem(char ret_stem[2 * HX_GATE_TOKEN_BYTES + 1], struct hx_error *err)
{
	unsigned char token[HX_GATE_TOKEN_BYTES];
	enum hx_code code = gate_token_draw(token, err);

	for (size_t i = 0; i < sizeof token && !code; i++)
		snprintf(ret_stem + 2 * i, 3, "%02x", token[i]);
	return code;
}

enum hx_code batch_add(struct client *client, const char *id, const char *key, const struct batch_items *items,
		       struct json *ret_batch, struct hx_error *err)
{
	char stem[2 * HX_GATE_TOKEN_BYTES + 1];
	struct load load = {.client = client, .items = items, .id = id, .key_stem = key ? key : stem};
	enum hx_code code = key ? HX_OK : draw_stem(stem, err);
	struct hx_error why;

	if (!code)
		code = send_rest(&load, ret_batch, err);
	if (!code || load.sent == 0)
		return code;
	why = *err;
	return error_set(err, is_passing(code) ? HX_OUTCOME_UNKNOWN : code,
			 "only %lld of %lld items have been added%s: %s", (long long)load.sent, (long long)items->n,
			 key ? " (the same command adds the rest)" : "", why.detail);
}
