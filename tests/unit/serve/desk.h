/*
 * A server without sockets: hands requests to a handler and shows the bytes of its answer. For what stands after the
 * connection: routers, problems, exchanges.
 */
#ifndef HX_TESTS_UNIT_SERVE_DESK_H
#define HX_TESTS_UNIT_SERVE_DESK_H

#include <stdlib.h>

#include "serve/exchange.h"
#include "serve/server_loop.h"

struct desk {
	struct http_server *server;
	struct http_exchange *exchange; /* of the last request; kept for its answer */
};

static inline void desk_open(struct desk *desk, void (*handle)(void *, struct http_exchange *), void *data)
{
	struct http_server *server = calloc(1, sizeof *server + sizeof server->loops[0]);

	ASSERT(server);
	server->references = 1;
	server->options = server_options_default();
	server->options.handle = handle;
	server->options.data = data;
	server->loops_n = 1;
	ASSERT(server_loop_init(&server->loops[0], server, NULL) == HX_OK);
	*desk = (struct desk){.server = server};
}

static inline void desk_clear(struct desk *desk)
{
	if (!desk->exchange)
		return;
	mailbox_deliver(desk->server->loops[0].loop.mailbox);
	exchange_drop(desk->exchange);
	desk->exchange = NULL;
}

static inline void desk_close(struct desk *desk)
{
	desk_clear(desk);
	ASSERT(desk->server->references == 1);
	server_drop(desk->server);
}

/* A request without its last empty line, e.g. "GET / HTTP/1.1\r\nHost: a\r\n". */
static inline void desk_load(struct desk *desk, const char *head, struct slice body)
{
	struct http_exchange *ex;
	struct wire_field *fields;
	struct wire_error err;
	struct strbuf sb;

	desk_clear(desk);
	desk->exchange = ex = exchange_new(&desk->server->loops[0]);
	ASSERT(ex);
	strbuf_init(&sb, 65536);
	strbuf_addf(&sb, "%s\r\n", head);
	fields = arena_alloc(&ex->arena, 100 * sizeof *fields);
	ASSERT(wire_request_parse(arena_copy(&ex->arena, strbuf_slice(&sb)), fields, &ex->request.wire, &err) ==
	       WIRE_DONE);
	ASSERT(exchange_add_body(ex, body, 0) == HX_OK);
	strbuf_release(&sb);
}

/* The whole answer, until the next request. The handler must have answered. */
static inline const char *desk_ask(struct desk *desk, const char *head, const char *body)
{
	desk_load(desk, head, slice_str(body));
	exchange_hand_over(desk->exchange);
	ASSERT(desk->exchange->phase == EXCHANGE_ANSWERED && !desk->exchange->failed);
	return desk->exchange->out.p;
}

#endif
