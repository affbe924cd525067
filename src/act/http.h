/*
 * The http kind: POST through libcurl, all calls on one thread.
 *
 * The hazard that shapes it: libcurl takes a reused connection that dies without an answer for a stale one and
 * silently sends the request again, which is two effects and a clean return code. And when nobody listens any more
 * the second attempt ends in "could not connect", as if nothing had ever been sent. So
 *
 *   - whether something was sent is not read off the return code but seen: libcurl's pre-request callback comes after
 *     the connection (with TLS) is there and before the first byte of the request. Not called: nothing was sent;
 *   - a call that is not idempotent is sent once. The pre-request callback refuses the second time, the seek callback
 *     refuses to rewind the body, and a call without a body, which needs no rewinding, gets a connection of its own;
 *   - a connection that has been idle for longer than many servers keep one is not used again;
 *   - nor is an idle one on which bytes are waiting: they would be taken for the reply (sockets.h).
 *
 * All else is switched off: redirects, proxies of the environment, other protocols, HTTP/2 (it has resends of its
 * own), Expect, cookies, signals. TLS is verified. Each connection is judged by outbound.h when its socket is made.
 */
#ifndef HX_ACT_HTTP_H
#define HX_ACT_HTTP_H

#include "act/kind.h"
#include "act/outbound.h"

struct http_options {
	const struct outbound *outbound;         /* NULL: public addresses only. Must outlive the kind */
	const struct secret_rules *secret_rules; /* NULL: any may be named. Likewise */
	const char *ca_file;                     /* NULL: the system's */
};

enum hx_code http_kind_new(const struct http_options *options, size_t slots, struct kind **ret_kind,
			   struct hx_error *err) HX_MUST_CHECK;

#endif
