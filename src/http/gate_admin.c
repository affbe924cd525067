/*
 * See gate_admin.h. A look goes through the store slice by slice, each one an ask, so that no store is kept busy for long:
 *
 *   look ─▶ gate_ask ─▶ done (any thread) ─▶ http_resume ─▶ the loop ─┬─ there is more: the next slice
 *                                                                    └─ answer
 */
#include "http/gate_admin.h"

#include <stdio.h>

#include "base/json_string.h"
#include "base/strbuf.h"
#include "http/bearer.h"
#include "http/charset.h"
#include "http/local.h"
#include "http/loop.h"
#include "http/metrics.h"
#include "http/problem.h"

#define LOOK_BUDGET 1000 /* records in one slice */
#define ITEMS_MAX 100    /* then the answer says that there are more */
#define TEXT_BYTES_MAX (1u << 20)
/* A record is named by its key and the token that was seen: what somebody has taken over meanwhile is another one. */
#define NAME_BYTES (HX_GATE_KEY_BYTES + HX_GATE_TOKEN_BYTES)

/* One question of a person, in the exchange's arena. */
struct inquiry {
	struct gate_admin *admin;
	struct http_exchange *exchange;
	struct gate_ticket ticket;
	struct gate_sight items[ITEMS_MAX];
	size_t items_n;
	bool more;
	void (*resumed)(struct http_exchange *exchange, void *data);
};

static void respond_text(struct http_exchange *exchange, int status, const char *type, struct slice text)
{
	struct wire_field fields[] = {{slice_str("Content-Type"), slice_str(type)}};

	http_respond(exchange, &(struct http_answer){.status = status, .fields = {fields, 1}, .body = text});
}

#define TEXT_TYPE "text/plain; charset=utf-8"

static void healthz(struct http_call *call)
{
	respond_text(call->exchange, 200, TEXT_TYPE, slice_str("ok\n"));
}

static void metrics(struct http_call *call)
{
	const struct gate_admin *admin = call->context;
	struct http_server *door = admin->door;
	struct http_stats http = {0};
	struct strbuf text;

	strbuf_init(&text, TEXT_BYTES_MAX);
	proxy_write_metrics(admin->proxy, &text);
	if (door)
		http_server_read_stats(door, &http);

	const struct metric of_door[] = {METRIC_CROWDED_OUT(&http)};

	METRICS_ADD_ALL(&text, of_door);
	respond_text(call->exchange, 200, METRICS_CONTENT_TYPE, strbuf_slice(&text));
	strbuf_release(&text);
}

/* ---- asking ---- */

static void answered(struct gate_ticket *ticket)
{
	struct inquiry *inquiry = CONTAINER_OF(ticket, struct inquiry, ticket);

	if (!http_resume(inquiry->exchange, inquiry->resumed, inquiry))
		http_respond_code(inquiry->exchange, HX_STOPPING, NULL);
}

/* NULL: there was no memory, and that is answered. */
static struct inquiry *inquire(struct http_call *call, void (*resumed)(struct http_exchange *exchange, void *data))
{
	struct inquiry *inquiry = arena_zalloc(call->arena, sizeof *inquiry);

	if (!inquiry) {
		http_respond_code(call->exchange, HX_NO_MEMORY, NULL);
		return NULL;
	}
	inquiry->admin = call->context;
	inquiry->exchange = call->exchange;
	inquiry->resumed = resumed;
	inquiry->ticket.done = answered;
	return inquiry;
}

/* ---- ready? ---- */

static void heard(struct http_exchange *exchange, void *data)
{
	const struct inquiry *inquiry = data;
	bool there = inquiry->ticket.reply.verdict != GATE_UNAVAILABLE;
	bool doubted = clock_doubted_ms(inquiry->ticket.store->clock) != 0;

	respond_text(exchange, there ? 200 : 503, TEXT_TYPE,
		     slice_str(!there    ? "not ready: the store is lost\n"
			       : doubted ? "ready; this machine's clock has jumped: expiry waits\n"
					 : "ready\n"));
}

/* Whoever asks makes us ask the store, for next to nothing: so what is said is true, also of a gate that nobody else uses. */
static void readyz(struct http_call *call)
{
	struct gate_admin *admin = call->context;
	struct inquiry *inquiry;

	if (!atomic_load(&admin->ready)) {
		respond_text(call->exchange, 503, TEXT_TYPE, slice_str("not ready\n"));
		return;
	}
	inquiry = inquire(call, heard);
	if (!inquiry)
		return;
	inquiry->ticket.ask = (struct gate_ask){.op = GATE_LOOK, .budget = 1};
	gate_ask(admin->store, &inquiry->ticket);
}

/* ---- looking ---- */

static const char *status_name(const struct gate_sight *sight)
{
	if (sight->state == GATE_COMPLETED)
		return "completed";
	if (sight->state == GATE_HELD)
		return "held";
	return sight->lease_left_ms > 0 ? "in_flight" : "lost";
}

static void add_hex(struct strbuf *text, const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		strbuf_addf(text, "%02x", bytes[i]);
}

static void add_item(struct strbuf *text, const struct gate_sight *sight)
{
	char created[WALL_TIME_TEXT_BYTES];

	wall_time_format((struct wall_time){sight->created_ms}, created);
	strbuf_add_str(text, "{\"record\":\"");
	add_hex(text, sight->key, sizeof sight->key);
	add_hex(text, sight->token, sizeof sight->token);
	strbuf_addf(text, "\",\"status\":\"%s\",\"endpoint\":", status_name(sight));
	json_quote(slice_str(sight->endpoint), text);
	strbuf_addf(text, ",\"createdAt\":\"%s\",\"leaseLeftMs\":%lld,\"responseBytes\":%lld}", created,
		    (long long)sight->lease_left_ms, (long long)sight->response_bytes);
}

static void show(struct inquiry *inquiry)
{
	struct strbuf text;

	strbuf_init(&text, TEXT_BYTES_MAX);
	strbuf_add_str(&text, "{\"items\":[");
	for (size_t i = 0; i < inquiry->items_n; i++) {
		strbuf_add_str(&text, i ? "," : "");
		add_item(&text, &inquiry->items[i]);
	}
	strbuf_addf(&text, "],\"more\":%s}\n", inquiry->more ? "true" : "false");
	respond_text(inquiry->exchange, 200, "application/json", strbuf_slice(&text));
	strbuf_release(&text);
}

static void looked(struct http_exchange *exchange, void *data)
{
	struct inquiry *inquiry = data;
	const struct gate_reply *reply = &inquiry->ticket.reply;

	if (reply->verdict == GATE_UNAVAILABLE) {
		http_respond_code(exchange, HX_STORE_UNAVAILABLE, NULL);
		return;
	}
	size_t taken = 0;

	while (taken < reply->sights_n && inquiry->items_n < ITEMS_MAX)
		inquiry->items[inquiry->items_n++] = reply->sights[taken++];
	inquiry->more = taken < reply->sights_n || (inquiry->items_n == ITEMS_MAX && reply->next != 0);
	if (reply->next == 0 || inquiry->more) {
		show(inquiry);
		return;
	}
	inquiry->ticket.ask.after = reply->next;
	gate_ask(inquiry->admin->store, &inquiry->ticket);
}

static void look(struct http_call *call)
{
	struct hx_error err;
	struct slice key;
	struct inquiry *inquiry;

	if (query_get(&call->query, "key", &err, &key) != HX_OK) {
		http_respond_error(call->exchange, &err);
		return;
	}
	if (key.p && key.n == 0) {
		http_respond_code(call->exchange, HX_VALIDATION_ERROR, "no client can have sent an empty key");
		return;
	}
	inquiry = inquire(call, looked);
	if (!inquiry)
		return;
	inquiry->ticket.ask = (struct gate_ask){.op = GATE_LOOK, .key_text = key, .budget = LOOK_BUDGET};
	gate_ask(inquiry->admin->store, &inquiry->ticket);
}

/* ---- forgetting ---- */

static void forgotten(struct http_exchange *exchange, void *data)
{
	struct inquiry *inquiry = data;
	char record[2 * SHA256_BYTES + 1];

	switch (inquiry->ticket.reply.verdict) {
	case GATE_DONE:
		sha256_hex(inquiry->ticket.ask.claim.key, record);
		log_info(inquiry->admin->log, "a record was forgotten by request", log_text("record", record));
		respond_text(exchange, 200, "application/json", slice_str("{\"forgotten\":true}\n"));
		break;
	case GATE_ABSENT:
		http_respond_code(exchange, HX_NOT_FOUND, "there is no such record");
		break;
	case GATE_IN_FLIGHT:
		http_respond_code(exchange, HX_IN_FLIGHT, "its lease lasts: the first request may be at work");
		break;
	case GATE_STALE:
		http_respond_code(exchange, HX_CONCURRENCY_ERROR, "somebody has used the key since it was looked at");
		break;
	default:
		http_respond_code(exchange, HX_STORE_UNAVAILABLE, NULL);
		break;
	}
}

static bool parse_record(struct slice text, unsigned char ret_name[NAME_BYTES])
{
	if (text.n != (size_t)2 * NAME_BYTES || !chars_are(text, CHAR_HEX))
		return false;
	for (size_t i = 0; i < NAME_BYTES; i++)
		ret_name[i] = (unsigned char)(hex_value(text.p[2 * i]) << 4 | hex_value(text.p[2 * i + 1]));
	return true;
}

static void forget(struct http_call *call)
{
	struct hx_gate_claim claim = {0};
	unsigned char name[NAME_BYTES];
	struct inquiry *inquiry;

	if (!parse_record(call_param(call, "record"), name)) {
		http_respond_code(call->exchange, HX_VALIDATION_ERROR, "a record is 96 hex digits, as it was shown");
		return;
	}
	memcpy(claim.key, name, sizeof claim.key);
	memcpy(claim.token, name + sizeof claim.key, sizeof claim.token);
	inquiry = inquire(call, forgotten);
	if (!inquiry)
		return;
	inquiry->ticket.ask = (struct gate_ask){.op = GATE_FORGET, .claim = claim};
	gate_ask(inquiry->admin->store, &inquiry->ticket);
}

/* ---- who may ask ---- */

void gate_admin_set_key(struct gate_admin *admin, const char *key)
{
	admin->has_key = key != NULL;
	if (key)
		sha256(key, strlen(key), admin->key_digest);
}

/* Digests are compared: how long that takes says nothing of the key. */
static bool has_the_key(const struct gate_admin *admin, const struct http_call *call)
{
	uint8_t digest[SHA256_BYTES];
	struct slice key;

	if (!bearer_key(call->request->wire.head.fields, &key) || key.n == 0)
		return false;
	sha256(key.p, key.n, digest);
	return memcmp(digest, admin->key_digest, sizeof digest) == 0;
}

static bool admit(struct http_call *call)
{
	const struct gate_admin *admin = call->context;
	const char *foreign = local_refusal(&call->request->wire);

	if (call->route->scope == ROUTE_PUBLIC || (admin->has_key && has_the_key(admin, call)))
		return true;
	if (admin->has_key)
		http_respond_problem(
			call->exchange,
			&(struct problem){
				.code = HX_UNAUTHENTICATED,
				.detail = slice_str("send the gate's admin key: Authorization: Bearer …"),
				.field = {slice_str("WWW-Authenticate"), slice_str("Bearer realm=\"hapax gate\"")},
			});
	else if (foreign)
		http_respond_code(call->exchange, HX_FORBIDDEN, foreign);
	return !admin->has_key && !foreign;
}

/* ---- the table ---- */

static const struct route routes[] = {
	{"GET", "/healthz", healthz, ROUTE_PUBLIC, .summary = "Says that the process runs."},
	{"GET", "/readyz", readyz, ROUTE_PUBLIC, .summary = "Says whether it takes requests, and its store is there."},
	{"GET", "/metrics", metrics, ROUTE_READ, .summary = "Counters in Prometheus' text form."},
	{"GET", "/gate/records", look, ROUTE_READ,
	 .summary = "Shows the records of an idempotency key, or those whose outcome nobody knows."},
	{"DELETE", "/gate/records/{record}", forget, ROUTE_ADMIN,
	 .summary = "Forgets one record, unless its lease lasts."},
};

struct router *gate_admin_router_new(struct gate_admin *admin)
{
	return router_new(routes, sizeof routes / sizeof *routes, admit, admin);
}
