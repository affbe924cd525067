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
