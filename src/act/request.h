/*
 * The request of an http call, made of its envelope by what the action says (model/action_request.h). Pure.
 *
 * The host is the url's, whatever an expression gives. A value in the path or the query is percent-encoded, so it stays one value; one with
 * a control character is refused, and so are a value in the path that is empty, and a path with a segment of dots: with those the
 * request would be another one than the definition shows. Nothing here looks at the attempt: all tries under one key are the same bytes.
 */
#pragma once

#include "act/kind.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "wire/wire.h"

#define REQUEST_BODY_BYTES_MAX (48u << 20)
#define REQUEST_TARGET_BYTES_MAX 16384

struct request {
	struct slice method, target, body;
	const char *content_type; /* NULL: there is no body */
	const struct slice *
		values; /* of the action's headers, each in its place; .p NULL: it is left out. Unless it is as written */
	struct wire_fields more; /* of its headers as a whole, where an expression gives them */
};

/*
 * `target` is the path and the query of the url. Everything is in the arena, in the job, in its action and in *made, which is empty before.
 * HX_CONFIG_ERROR: this call can never be made, the detail says why; HX_NO_MEMORY.
 */
enum hx_code request_build(const struct job *job, struct slice target, struct arena *arena, struct strbuf *made,
			   struct request *ret_request, struct hx_error *err) HX_MUST_CHECK;

/* What `output` makes of {status, headers, body}: appended. HX_CONFIG_ERROR: it cannot be made. */
enum hx_code request_output(const struct expression *output, struct slice reply, struct strbuf *made,
			    struct hx_error *err) HX_MUST_CHECK;
/* {"status":…,"headers":{…},"body":…}, names of headers in small letters, those that stand several times joined by commas. */
void request_write_reply(long status, struct wire_fields fields, struct slice body, struct strbuf *out);
