/* See inner.h. */
#include "serve/inner.h"

#include "serve/exchange.h"
#include "serve/problem.h"
#include "serve/server_loop.h"

static enum hx_code parse(struct http_exchange *ex, const struct http_inner *inner, const char **ret_reason)
{
	const struct wire_limits *limits = &ex->home->server->options.head;
	struct slice head = arena_copy(&ex->arena, inner->head);
	struct wire_field *fields;
	struct wire_scan scan = {0};
	struct wire_error err = {HX_BAD_REQUEST, "this is not one request"};

	if (!head.p)
		return HX_NO_MEMORY;
	*ret_reason = err.reason;
	if (wire_scan_request(&scan, head, limits, &err) != WIRE_DONE || scan.at != head.n) {
		*ret_reason = err.reason;
		return err.code;
	}
	fields = arena_alloc(&ex->arena, wire_scan_fields(&scan) * sizeof *fields);
	if (!fields)
		return HX_NO_MEMORY;
	if (wire_request_parse(wire_scan_head(&scan, head.p), fields, &ex->request.wire, &err) != WIRE_DONE) {
		*ret_reason = err.reason;
		return err.code;
	}
	return exchange_add_body(ex, inner->body, /* announced= */ 0);
}

/* Before there was an exchange to answer. */
static void inner_refuse(struct http_inner *inner, enum hx_code code, const char *reason)
{
	struct http_answer answer;

	LOCAL_ARENA(arena, 16384);
	problem_answer(&(struct problem){.code = code, .detail = slice_str(reason)}, &arena, &answer);
	inner->answered(inner, &answer);
}

/* In the loop's thread. */
static void inner_deliver(struct letter *letter)
{
	struct http_inner *inner = CONTAINER_OF(letter, struct http_inner, letter);
	struct http_exchange *ex = exchange_new(&inner->server->loops[0]);
	const char *reason = NULL;
	enum hx_code code = ex ? parse(ex, inner, &reason) : HX_NO_MEMORY;

	if (code) {
		if (ex)
			exchange_drop(ex);
		inner_refuse(inner, code, reason);
		return;
	}
	ex->inner = inner;
	ex->asked = true; /* all of it is there: nobody has to be asked whether it may be read */
	exchange_hand_over(ex);
	exchange_drop(ex); /* a connection would have this reference */
}

enum hx_code http_inner_call(struct http_server *server, struct http_inner *inner)
{
	inner->server = server;
	inner->letter.deliver = inner_deliver;
	return mailbox_post(server->loops[0].loop.mailbox, &inner->letter) == MAILBOX_POSTED ? HX_OK : HX_STOPPING;
}

const struct http_inner *http_exchange_inner(const struct http_exchange *exchange)
{
	return exchange->inner;
}
