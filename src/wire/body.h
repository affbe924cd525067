/*
 * The body of a message, wherever its end is said to be: one reader for the server's requests and the gate's
 * responses. It hands out slices of what it is fed and copies nothing.
 *
 *	wire_body_init(&body, &head, false);
 *	while (verdict == WIRE_MORE && in.n > 0) {
 *		verdict = wire_body_read(&body, in, &used, &data, &err);
 *		... data ...
 *		in = slice_of(in.p + used, in.n - used);
 *	}
 *
 * Call it once with empty bytes at the start: a body of no bytes is DONE at once.
 */
#pragma once

#include "wire/chunk.h"
#include "wire/wire.h"

struct wire_body {
	enum wire_framing framing;
	bool is_response; /* what is wrong is then the upstream's fault: 502 */
	uint64_t left;    /* WIRE_LENGTH */
	struct chunk_decoder chunks;
};

void wire_body_init(struct wire_body *body, const struct wire_head *head, bool is_response);
/* As chunk_read(), for all framings. Bytes that are not used belong to the next message. */
enum wire_verdict wire_body_read(struct wire_body *body, struct slice in, size_t *ret_used, struct slice *ret_data,
				 struct wire_error *err) HX_MUST_CHECK;
/* How many bytes are announced that were not read yet: of the whole body, or where it is chunked of its chunk. */
uint64_t wire_body_announced(const struct wire_body *body);
/* The sender has closed while the verdict was MORE: DONE if that is how the body ends, otherwise BAD. */
enum wire_verdict wire_body_closed(const struct wire_body *body, struct wire_error *err) HX_MUST_CHECK;
