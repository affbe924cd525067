/*
 * A relay: requests of a page on this machine, carried to a server elsewhere in the name of one API key. For `hapax dashboard`.
 *
 *   the page ──▶ relay_pass ──▶ upstream, with the key ──▶ the answer, in pieces as it comes ──▶ the page
 *
 * What goes on is named here, and nothing else does: of a request its method, path, query, body and the few fields that the API
 * reads; never a cookie, an origin or a key that the page brings. Of an answer its status, its body and the fields that a page
 * needs; never a cookie that would be set here. Who may ask at all is the caller's to say. All of it in the one loop of its server.
 */
#pragma once

#include "base/error.h"
#include "base/slice.h"
#include "serve/server.h"

struct relay;

/* Texts are copied. key NULL: none. fields: whole lines, ending with CRLF, that every request gets besides. */
enum hx_code relay_new(const char *url, const char *key, struct slice fields, struct relay **ret,
		       struct hx_error *err) HX_MUST_CHECK;
/* After its server has stopped, and before that is freed. Takes NULL. */
void relay_free(struct relay *relay);
/* In the loop's thread: the exchange is the relay's. target: path and query, as they are sent. */
void relay_pass(struct relay *relay, struct http_exchange *exchange, struct slice target);
