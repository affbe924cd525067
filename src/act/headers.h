/*
 * The header fields of an http call: the engine's own, then the action's with their secrets filled in.
 *
 *   Host: …, User-Agent: hapax/V        an action may say otherwise
 *   Content-Type: application/json      likewise, and Accept; of a body (act/request.h)
 *   Idempotency-Key: KEY                unless the call has none
 *   Hapax-Fence: N                      without a lease the last holder's
 *   Hapax-Attempt: N
 *   traceparent: …, tracestate: …       unless the call has none
 *   Content-Length: N                   unless there is no body in what only asks
 *
 * Those that frame the message or carry the promise are not for an action to write: such a call is refused, and so
 * is a value with a CR, LF, NUL or another control character, which would write headers of its own.
 */
#pragma once

#include "act/kind.h"
#include "act/request.h"
#include "act/secret.h"
#include "base/arena.h"
#include "wire/wire.h"

#define HEADER_LINE_BYTES_MAX 16384

/* In the arena, in the job, in its action and in the request. HX_CONFIG_ERROR names the header and what is wrong, never a value; HX_NO_MEMORY. */
enum hx_code headers_build(const struct job *job, const struct request *request, struct slice host,
			   struct secrets *secrets, struct arena *arena, struct wire_fields *ret_fields,
			   struct hx_error *err) HX_MUST_CHECK;
/* Overwrites the values that hold secrets. Before the arena is let go. */
void headers_wipe(const struct action *action, struct wire_fields fields);
