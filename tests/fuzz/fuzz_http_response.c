/*
 * Any bytes as an upstream's response, to a GET and to a HEAD. Fed whole and in random pieces they must be read alike;
 * no byte past the end is looked at; whatever is wrong is a 502; and a response that is accepted to a GET and
 * has a length or chunks is the same to a HEAD, without its body.
 */
#include <stdint.h>

#include "unit/wire/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t next_random(void *data, size_t left)
{
	uint64_t *random = data;
	size_t most;

	*random = hash_mix(*random, 0x9e3779b97f4a7c15u);
	most = *random & 0x100 ? 4 : 64;
	most = most < left ? most : left;
	return 1 + (*random >> 20) % most;
}

static struct outcome try_pieces(enum reader_kind kind, struct slice bytes, const struct wire_limits *limits)
{
	struct outcome whole = reader_read(kind, bytes, limits, next_whole, NULL), other;
	uint64_t random = hash_bytes(1, bytes.p, bytes.n);

	for (int i = 0; i < 3; i++) {
		other = reader_read(kind, bytes, limits, next_random, &random);
		ASSERT(outcome_equal(&whole, &other));
	}
	if (bytes.n < 300) {
		other = reader_read(kind, bytes, limits, next_byte, NULL);
		ASSERT(outcome_equal(&whole, &other));
	}
	if (whole.verdict == WIRE_BAD)
		ASSERT(whole.err.code == HX_BAD_GATEWAY && whole.err.reason);
	if (whole.has_head)
		ASSERT(whole.status >= 100 && whole.status <= 599);
	return whole;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct wire_limits ample = {.line_bytes = 8192, .head_bytes = 32768, .fields = 100};
	struct slice bytes = slice_of(data, size);
	uint64_t h = hash_bytes(3, data, size);
	struct wire_limits small = {.line_bytes = h % 64, .head_bytes = (h >> 8) % 256, .fields = (h >> 16) % 8};
	struct outcome get = try_pieces(READ_RESPONSE, bytes, &ample);
	struct outcome head = try_pieces(READ_RESPONSE_TO_HEAD, bytes, &ample);

	(void)try_pieces(READ_RESPONSE, bytes, &small);
	ASSERT(get.has_head == head.has_head && get.head_bytes == head.head_bytes && get.status == head.status);
	if (head.has_head)
		ASSERT(head.verdict == WIRE_DONE && head.used == head.head_bytes && head.body_bytes == 0);
	if (get.verdict == WIRE_DONE && get.head.framing == WIRE_LENGTH)
		ASSERT(get.body_bytes == get.head.length);
	return 0;
}
