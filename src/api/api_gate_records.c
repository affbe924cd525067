/*
 * Records of gates (`hapax gate`) that keep them in this store: those that are held, which wait for a person; all of them, or those of a
 * key; and the person's word. For the operator, that is for admins of the workspace `default`: such a record is of no workspace.
 *
 * The API's own records are in the same table. They are never held, and they are not shown: whose they are is in no column.
 */
#include "api/api_dashboard.h"
#include "api/api_list.h"
#include "gate/policy.h"
#include "gate/sight.h"
#include "wire/loop.h"

#define LOOK_BUDGET 1000                           /* records in one slice */
#define LOOKS_MAX 50                               /* slices of one call: what comes after them is the next page's */
#define ITEMS_MAX 100                              /* and a few more */
#define DONE_TTL_MS (INT64_C(24) * 60 * 60 * 1000) /* the gate's default */

/* In the exchange's arena. */
struct look {
	struct http_call *call;
	struct gate_ticket ticket;
	struct strbuf text;
	unsigned looks, items;
};

static bool is_operator(struct http_call *call)
{
	return slice_is(api_workspace(call), "default") ||
	       api_refuse(call, HX_FORBIDDEN, "records of gates are for admins of the workspace default");
}

static struct gate_store *store_of(const struct look *look)
{
	return api_parts(look->call)->gate_store;
}

static struct look *look_new(struct http_call *call, void (*done)(struct gate_ticket *ticket))
{
	struct look *look = api_alloc(call, sizeof *look);

	if (!look)
		return NULL;
	*look = (struct look){.call = call, .ticket = {.done = done}};
	strbuf_init(&look->text, API_TEXT_BYTES_MAX);
	return look;
}

static void look_end(struct look *look, int64_t next)
{
	struct strbuf text = look->text;

	strbuf_add_str(&text, "],\"cursor\":");
	if (next)
		strbuf_addf(&text, "\"%lld\"}", (long long)next);
	else
		strbuf_add_str(&text, "null}");
	api_answer(look->call, 200, &text, 0);
}

static void looked(struct gate_ticket *ticket)
{
	struct look *look = CONTAINER_OF(ticket, struct look, ticket);
	const struct gate_reply *reply = &ticket->reply;

	if (reply->verdict == GATE_UNAVAILABLE) {
		strbuf_release(&look->text);
		http_respond_code(look->call->exchange, HX_STORE_UNAVAILABLE, NULL);
		return;
	}
	for (size_t i = 0; i < reply->sights_n; i++) {
		if (!reply->sights[i].about[0])
			continue; /* the API's own */
		strbuf_add_str(&look->text, look->items++ ? "," : "");
		gate_sight_json(&look->text, &reply->sights[i]);
	}
	if (!reply->next || look->items >= ITEMS_MAX || ++look->looks >= LOOKS_MAX) {
		look_end(look, reply->next);
		return;
	}
	ticket->ask.after = reply->next;
	ticket->by = (struct mono_time){0};
	gate_ask(store_of(look), ticket);
}

void api_gate_records(struct http_call *call)
{
	struct gate_ask ask = {.op = GATE_LOOK, .budget = LOOK_BUDGET, .sought = GATE_SEEK_ALL};
	struct slice held = {0};
	struct look *look;

	if (!is_operator(call) || !api_query_number(call, "cursor", /* otherwise= */ 0, INT64_MAX, &ask.after))
		return;
	(void)!query_find(&call->query, "key", &ask.key_text);
	if (query_find(&call->query, "held", &held) == 1 && slice_is(held, "true"))
		ask.sought = GATE_SEEK_HELD;
	look = look_new(call, looked);
	if (!look)
		return;
	look->ticket.ask = ask;
	strbuf_add_str(&look->text, "{\"items\":[");
	gate_ask(store_of(look), &look->ticket);
}

/* ---- a person's word ---- */

static void resolved(struct gate_ticket *ticket)
{
	struct look *look = CONTAINER_OF(ticket, struct look, ticket);
	const char *words, *outcome = ticket->ask.response.n ? "done" : "not_done";
	enum hx_code code = gate_refusal(ticket->reply.verdict, &words);
	char record[2 * SHA256_BYTES + 1];

	if (code) {
		http_respond_code(look->call->exchange, code, words);
		return;
	}
	sha256_hex(ticket->ask.claim.key, record);
	log_info(api_parts(look->call)->log, "a record was resolved by request", log_text("outcome", outcome),
		 log_text("record", record), log_slice("by", api_requester(look->call)));
	strbuf_addf(&look->text, "{\"resolved\":true,\"outcome\":\"%s\"}", outcome);
	api_answer(look->call, 200, &look->text, 0);
}

void api_gate_resolve(struct http_call *call)
{
	struct gate_ask ask = {.op = GATE_RESOLVE};
	struct look *look;
	bool done = false;

	if (!is_operator(call))
		return;
	if (!gate_read_outcome(call->request->body, &done)) {
		api_refuse(call, HX_VALIDATION_ERROR, "outcome is \"done\" or \"not_done\"");
		return;
	}
	if (!gate_ask_name(call_param(call, "record"), &ask)) {
		api_refuse(call, HX_VALIDATION_ERROR, "a record is 96 hex digits, as it was shown");
		return;
	}
	look = look_new(call, resolved);
	if (!look)
		return;
	look->ticket.ask = ask;
	if (done && !gate_ask_done(&look->ticket.ask, call->arena, DONE_TTL_MS))
		http_respond_code(call->exchange, HX_NO_MEMORY, NULL);
	else
		gate_ask(store_of(look), &look->ticket);
}
