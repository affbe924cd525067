/*
 * A request that comes from this process itself: no socket, no connection. It is parsed, handled and answered as any other, in one of
 * the server's loops; its answer goes to a function. A server that takes no others has no `listen`.
 *
 *   http_inner_call ─▶ letter to the first loop ─▶ exchange ─▶ handle() … http_respond() ─▶ answered()
 */
#pragma once

#include "serve/server.h"
#include "wire/mailbox.h"

/* Zeroed before. The caller's, who leaves it alone until it is answered. */
struct http_inner {
	struct slice head; /* as it would be sent, with the empty line */
	struct slice body;
	struct slice workspace, requester; /* of who asks, and may do everything there */
	/* Once, in any thread. What the answer has lives only during the call; of the exchange nothing is left for the caller. */
	void (*answered)(struct http_inner *inner, const struct http_answer *answer);
	/* private */
	struct letter letter;
	struct http_server *server;
};

/* HX_STOPPING: the server has stopped, and it is never answered. */
enum hx_code http_inner_call(struct http_server *server, struct http_inner *inner) HX_MUST_CHECK;
/* NULL: it came through a socket. */
const struct http_inner *http_exchange_inner(const struct http_exchange *exchange);
