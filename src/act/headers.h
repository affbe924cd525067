/*
 * The headers of an http call: the engine's own, then the action's with their secrets filled in.
 *
 *   Content-Type: application/json      an action may say otherwise
 *   Idempotency-Key: KEY                unless the call has none
 *   Hapax-Fence: N                      without a lease the last holder's
 *   Hapax-Attempt: N
 *   traceparent: …, tracestate: …       unless the call has none
 *
 * Those that frame the message or carry the promise are not for an action to write: such a call is refused, and so
 * is a value with a CR, LF, NUL or another control character, which would write headers of its own.
 */
#ifndef HX_ACT_HEADERS_H
#define HX_ACT_HEADERS_H

#include <curl/curl.h>

#include "act/kind.h"
#include "act/secret.h"

#define HEADER_LINE_BYTES_MAX 16384

/* HX_CONFIG_ERROR names the header and what is wrong, never a value; HX_NO_MEMORY. */
enum hx_code headers_build(const struct job *job, struct secrets *secrets, struct curl_slist **ret_headers,
			   struct hx_error *err) HX_MUST_CHECK;
/* Overwrites them first: they hold secrets. Takes NULL. */
void headers_free(struct curl_slist *headers);

#endif
