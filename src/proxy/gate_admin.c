/*
 * See gate_admin.h. A look goes through the store slice by slice, each one an ask, so that no store is kept busy for long:
 *
 *   look ─▶ gate_ask ─▶ done (any thread) ─▶ http_resume ─▶ the loop ─┬─ there is more: the next slice
 *                                                                    └─ answer
 */
#include "proxy/gate_admin.h"

#include <stdio.h>

#include "base/digits.h"
#include "base/strbuf.h"
#include "gate/sight.h"
#include "serve/bearer.h"
#include "serve/local.h"
#include "serve/metrics.h"
#include "serve/problem.h"
#include "wire/loop.h"

#define LOOK_BUDGET 1000 /* records in one slice */
#define READY_BYTES 200
#define ITEMS_MAX 100 /* of a page, and a few more: what came in one slice is not parted */
#define TEXT_BYTES_MAX (1u << 20)

/* One question of a person, in the exchange's arena. */
struct inquiry {
	struct gate_admin *admin;
	struct http_exchange *exchange;
	struct gate_ticket ticket;
	struct sentinel_question question;
	const char *why;          /* the store is away */
	struct gate_sight *items; /* ITEMS_MAX + GATE_SIGHTS_MAX, of a look */
	size_t items_n;
	int64_t next; /* where the next page begins; 0: that was all */
	void (*resumed)(struct http_exchange *exchange, void *data);
};

static void healthz(struct http_call *call)
{
	http_respond_text(call->exchange, 200, HTTP_PLAIN_TEXT, slice_str("ok\n"));
}

static void metrics(struct http_call *call)
{
	const struct gate_admin *admin = call->context;
	struct http_server *door = admin->door;
	struct http_stats http = {0};

	LOCAL_STRBUF(text, TEXT_BYTES_MAX);
	proxy_write_metrics(admin->proxy, &text);
	if (door)
		http_server_read_stats(door, &http);

	const struct metric of_door[] = {METRIC_CROWDED_OUT(&http)};

	METRICS_ADD_ALL(&text, of_door);
	http_respond_text(call->exchange, 200, METRICS_CONTENT_TYPE, strbuf_slice(&text));
}

/* ---- asking ---- */

static void gate_admin_answered(struct gate_ticket *ticket)
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
	inquiry->ticket.done = gate_admin_answered;
	return inquiry;
}

/* ---- ready? ---- */

static void heard(struct http_exchange *exchange, void *data)
{
	const struct inquiry *inquiry = data;
	bool there = inquiry->ticket.reply.verdict != GATE_UNAVAILABLE;
	bool doubted = clock_doubted_ms(inquiry->admin->store->clock) != 0;

	char words[READY_BYTES] = "ready\n";

	if (!there)
		snprintf(words, sizeof words, "not ready: %s\n", inquiry->why ? inquiry->why : "the store is lost");
	else if (doubted)
		snprintf(words, sizeof words, "ready; this machine's clock has jumped: expiry waits\n");
	http_respond_text(exchange, there ? 200 : 503, HTTP_PLAIN_TEXT, slice_str(words));
}

static void store_known(struct sentinel_question *question, const char *why)
{
	struct inquiry *inquiry = CONTAINER_OF(question, struct inquiry, question);

	inquiry->ticket.reply.verdict = why ? GATE_UNAVAILABLE : GATE_DONE;
	inquiry->why = why;
	gate_admin_answered(&inquiry->ticket);
}

/* Whoever asks makes us ask the store, for next to nothing: so what is said is true, also of a gate that nobody else uses. */
static void readyz(struct http_call *call)
{
	struct gate_admin *admin = call->context;
	struct inquiry *inquiry;

	if (!atomic_load(&admin->ready)) {
		http_respond_text(call->exchange, 503, HTTP_PLAIN_TEXT, slice_str("not ready\n"));
		return;
	}
	inquiry = inquire(call, heard);
	if (!inquiry)
		return;
	inquiry->ticket.ask = (struct gate_ask){.op = GATE_LOOK, .budget = 1};
	inquiry->question.answered = store_known;
	if (admin->sentinel)
		sentinel_ask(admin->sentinel, &inquiry->question);
	else
		gate_ask(admin->store, &inquiry->ticket);
}

/* ---- looking ---- */

static void gate_admin_show(struct inquiry *inquiry)
{
	LOCAL_STRBUF(text, TEXT_BYTES_MAX);
	strbuf_add_str(&text, "{\"items\":[");
	for (size_t i = 0; i < inquiry->items_n; i++) {
		strbuf_add_str(&text, i ? "," : "");
		gate_sight_json(&text, &inquiry->items[i]);
	}
	strbuf_addf(&text, "],\"more\":%s,\"cursor\":", inquiry->next ? "true" : "false");
	if (inquiry->next)
		strbuf_addf(&text, "\"%lld\"}\n", (long long)inquiry->next);
	else
		strbuf_add_str(&text, "null}\n");
	http_respond_text(inquiry->exchange, 200, "application/json", strbuf_slice(&text));
}

static void looked(struct http_exchange *exchange, void *data)
{
	struct inquiry *inquiry = data;
	const struct gate_reply *reply = &inquiry->ticket.reply;

	if (reply->verdict == GATE_UNAVAILABLE) {
		http_respond_code(exchange, HX_STORE_UNAVAILABLE, NULL);
		return;
	}
	for (size_t i = 0; i < reply->sights_n; i++)
		inquiry->items[inquiry->items_n++] = reply->sights[i];
	if (reply->next == 0 || inquiry->items_n >= ITEMS_MAX) {
		inquiry->next = reply->next;
		gate_admin_show(inquiry);
		return;
	}
	inquiry->ticket.ask.after = reply->next;
	inquiry->ticket.by = (struct mono_time){0};
	gate_ask(inquiry->admin->store, &inquiry->ticket);
}

/* False: it is not as it should be, and that is answered. */
static bool read_number(struct http_call *call, const char *name, int64_t *ret_number)
{
	struct hx_error err;
	struct slice text;
	uint64_t number = 0;

	enum hx_code code = query_get(&call->query, name, &err, &text);

	if (!code && text.n && !digits_number(text, INT64_MAX, &number))
		code = error_set(&err, HX_VALIDATION_ERROR, "a cursor is as the page before told it");
	if (code)
		http_respond_error(call->exchange, &err);
	*ret_number = (int64_t)number;
	return !code;
}

static bool is_asked(struct http_call *call, const char *name)
{
	struct slice value = {0};

	return query_find(&call->query, name, &value) == 1 && slice_is(value, "true");
}

static bool read_look(struct http_call *call, struct gate_ask *ask)
{
	struct hx_error err;

	enum hx_code code = query_get(&call->query, "key", &err, &ask->key_text);

	if (!code && ask->key_text.p && ask->key_text.n == 0)
		code = error_set(&err, HX_VALIDATION_ERROR, "no client can have sent an empty key");
	if (code) {
		http_respond_error(call->exchange, &err);
		return false;
	}
	if (is_asked(call, "all"))
		ask->sought = GATE_SEEK_ALL;
	if (is_asked(call, "held"))
		ask->sought = GATE_SEEK_HELD;
	return read_number(call, "cursor", &ask->after);
}

static void gate_admin_look(struct http_call *call)
{
	struct gate_ask ask = {.op = GATE_LOOK, .budget = LOOK_BUDGET};
	struct inquiry *inquiry;

	if (!read_look(call, &ask))
		return;
	inquiry = inquire(call, looked);
	if (!inquiry)
		return;
	inquiry->items = arena_alloc(call->arena, (ITEMS_MAX + GATE_SIGHTS_MAX) * sizeof *inquiry->items);
	if (!inquiry->items) {
		http_respond_code(call->exchange, HX_NO_MEMORY, NULL);
		return;
	}
	inquiry->ticket.ask = ask;
	gate_ask(inquiry->admin->store, &inquiry->ticket);
}

/* ---- deciding: forgetting, and saying what became of one ---- */

static void decided(struct http_exchange *exchange, void *data)
{
	struct inquiry *inquiry = data;
	const struct gate_ask *ask = &inquiry->ticket.ask;
	bool forgets = ask->op == GATE_FORGET;
	const char *outcome = forgets ? "forgotten" : ask->response.n ? "done" : "not_done", *words;
	enum hx_code code = gate_refusal(inquiry->ticket.reply.verdict, &words);
	char record[2 * SHA256_BYTES + 1];

	if (code) {
		http_respond_code(exchange, code, words);
		return;
	}
	sha256_hex(ask->claim.key, record);
	log_info(inquiry->admin->log,
		 forgets ? "a record was forgotten by request" : "a record was resolved by request",
		 log_text("outcome", outcome), log_text("record", record));
	http_respond_text(exchange, 200, "application/json",
			  slice_str(forgets ? "{\"forgotten\":true}\n" : "{\"resolved\":true}\n"));
}

/* NULL: it cannot be asked, and that is answered. */
static struct inquiry *gate_admin_decide(struct http_call *call, enum gate_op op)
{
	struct gate_ask ask = {.op = op};
	struct inquiry *inquiry;

	if (!gate_ask_name(call_param(call, "record"), &ask)) {
		http_respond_code(call->exchange, HX_VALIDATION_ERROR, "a record is 96 hex digits, as it was shown");
		return NULL;
	}
	inquiry = inquire(call, decided);
	if (inquiry)
		inquiry->ticket.ask = ask;
	return inquiry;
}

static void gate_admin_forget(struct http_call *call)
{
	struct inquiry *inquiry = gate_admin_decide(call, GATE_FORGET);

	if (inquiry)
		gate_ask(inquiry->admin->store, &inquiry->ticket);
}

static void gate_admin_resolve(struct http_call *call)
{
	struct inquiry *inquiry;
	bool done = false;

	if (!gate_read_outcome(call->request->body, &done)) {
		http_respond_code(call->exchange, HX_VALIDATION_ERROR, "outcome is \"done\" or \"not_done\"");
		return;
	}
	inquiry = gate_admin_decide(call, GATE_RESOLVE);
	if (!inquiry)
		return;
	if (done && !gate_ask_done(&inquiry->ticket.ask, call->arena, proxy_ttl_ms(inquiry->admin->proxy)))
		http_respond_code(call->exchange, HX_NO_MEMORY, NULL);
	else
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

static bool gate_admin_admit(struct http_call *call)
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
	{"GET", "/gate/records", gate_admin_look, ROUTE_READ,
	 .summary = "Shows the records of an idempotency key, or those whose outcome nobody knows."},
	{"POST", "/gate/records/{record}/resolve", gate_admin_resolve, ROUTE_ADMIN,
	 .summary = "Says what became of a request whose lease is over and whose outcome nobody knew."},
	{"DELETE", "/gate/records/{record}", gate_admin_forget, ROUTE_ADMIN,
	 .summary = "Forgets one record, unless its lease lasts."},
};

struct router *gate_admin_router_new(struct gate_admin *admin)
{
	return router_new(routes, sizeof routes / sizeof *routes, gate_admin_admit, admin);
}
