/* See body.h. */
#include "wire/body.h"

void wire_body_init(struct wire_body *body, const struct wire_head *head, bool is_response)
{
	*body = (struct wire_body){.framing = head->framing, .is_response = is_response, .left = head->length};
}

static enum wire_verdict read_length(struct wire_body *body, struct slice in, size_t *ret_used, struct slice *ret_data)
{
	size_t n = in.n < body->left ? in.n : (size_t)body->left;

	*ret_used = n;
	*ret_data = slice_of(in.p, n);
	body->left -= n;
	return body->left == 0 ? WIRE_DONE : WIRE_MORE;
}

enum wire_verdict wire_body_read(struct wire_body *body, struct slice in, size_t *ret_used, struct slice *ret_data,
				 struct wire_error *err)
{
	enum wire_verdict verdict;

	switch (body->framing) {
	case WIRE_LENGTH:
		return read_length(body, in, ret_used, ret_data);
	case WIRE_CHUNKED:
		verdict = chunk_read(&body->chunks, in, ret_used, ret_data, err);
		if (verdict == WIRE_BAD && body->is_response)
			err->code = HX_BAD_GATEWAY;
		return verdict;
	case WIRE_UNTIL_CLOSE:
		*ret_used = in.n;
		*ret_data = in;
		return WIRE_MORE;
	case WIRE_NO_BODY:
		break;
	}
	*ret_used = 0;
	*ret_data = slice_of(NULL, 0);
	return WIRE_DONE;
}

uint64_t wire_body_announced(const struct wire_body *body)
{
	return body->framing == WIRE_LENGTH    ? body->left
	       : body->framing == WIRE_CHUNKED ? chunk_announced(&body->chunks)
					       : 0;
}

enum wire_verdict wire_body_closed(const struct wire_body *body, struct wire_error *err)
{
	if (body->framing == WIRE_UNTIL_CLOSE)
		return WIRE_DONE;
	return wire_bad(err, body->is_response ? HX_BAD_GATEWAY : HX_BAD_REQUEST, "the connection closed in a body");
}
