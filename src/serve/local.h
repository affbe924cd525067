/*
 * Is it a program on this machine that asks, or a web page of elsewhere through a browser on it?
 *
 * Whoever listens on loopback without a key trusts all that reaches it, and a browser carries there whatever any page asks for.
 * Three things of a request give that away, each of them alone:
 *
 *   Host             a name that is not this machine's: a domain that has just become 127.0.0.1 (DNS rebinding). A name without a dot
 *                    is one, too; only localhost, 127.0.0.0/8 and [::1] are not. Absent (HTTP/1.0): no browser
 *   Origin           of another place than this machine, or there twice
 *   Sec-Fetch-Site   cross-site: a browser's own word, also where it sends no Origin
 */
#pragma once

#include "wire/wire.h"

/* NULL: nothing speaks against it. Otherwise what the client is told, with 403. */
const char *local_refusal(const struct wire_request *request);

/*
 * Is it our own page that asks, of which the browser has brought a cookie along? SameSite keeps other sites out, and not another port
 * or name of this one. By Sec-Fetch-Site where the browser says it (same-origin; or none, for who types an address, which only reads);
 * otherwise by Origin, which must be the place that Host names: every browser sends it with what is not a GET. NULL: it is.
 */
const char *own_page_refusal(const struct wire_request *request);
