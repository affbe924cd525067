/*
 * Any bytes as a request. Fed whole and in random pieces they must be read alike (verdict, reason, parts, body), with
 * ample limits and with small ones; no byte past the end is looked at (every piece is a block of its own size);
 * and what was accepted, written again by our own writer, is accepted again with the same parts.
 */
#include <stdint.h>

#include "unit/wire/reader.h"
#include "wire/charset.h"
#include "wire/query.h"
#include "wire/target.h"
#include "wire/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct wire_limits ample = {.line_bytes = 8192, .head_bytes = 32768, .fields = 100};

static size_t next_random(void *data, size_t left)
{
	uint64_t *random = data;
	size_t most;

	*random = hash_mix(*random, 0x9e3779b97f4a7c15u);
	most = *random & 0x100 ? 4 : 64; /* often between two bytes that belong together */
	most = most < left ? most : left;
	return 1 + (*random >> 20) % most;
}

static void try_pieces(struct slice bytes, const struct wire_limits *limits)
{
	struct outcome whole = reader_read(READ_REQUEST, bytes, limits, next_whole, NULL), other;
	uint64_t random = hash_bytes(1, bytes.p, bytes.n);

	for (int i = 0; i < 3; i++) {
		other = reader_read(READ_REQUEST, bytes, limits, next_random, &random);
		ASSERT(outcome_equal(&whole, &other));
	}
	if (bytes.n < 300) {
		other = reader_read(READ_REQUEST, bytes, limits, next_byte, NULL);
		ASSERT(outcome_equal(&whole, &other));
	}
	if (whole.verdict == WIRE_BAD)
		ASSERT(hx_code_http_status(whole.err.code) >= 400 && whole.err.reason);
	if (whole.verdict == WIRE_DONE)
		ASSERT(whole.head.framing != WIRE_UNTIL_CLOSE && whole.used <= bytes.n);
}

static void write_request(const struct wire_request *request, struct strbuf *sb)
{
	strbuf_init(sb, SIZE_MAX / 4);
	head_write_request(request->method, request->target, sb);
	if (request->head.minor == 0)
		sb->p[sb->n - 3] = '0';
	for (size_t i = 0; i < request->head.fields.n; i++)
		ASSERT(head_write_field(request->head.fields.at[i].name, request->head.fields.at[i].value, sb));
	head_write_end(sb);
}

static void try_again(const struct wire_request *request)
{
	struct wire_limits limits = {.line_bytes = 8192, .head_bytes = 65536, .fields = 100};
	struct wire_field fields[READER_FIELDS_MAX];
	struct wire_request again;
	struct wire_scan scan = {0};
	struct wire_error err;
	struct strbuf sb;

	write_request(request, &sb);
	ASSERT(wire_scan_request(&scan, strbuf_slice(&sb), &limits, &err) == WIRE_DONE);
	ASSERT(wire_request_parse(wire_scan_head(&scan, sb.p), fields, &again, &err) == WIRE_DONE);
	ASSERT(slice_eq(again.path, request->path) && slice_eq(again.query, request->query));
	ASSERT(slice_eq(again.host, request->host) && slice_eq(again.method, request->method));
	ASSERT(again.head.framing == request->head.framing && again.head.length == request->head.length);
	ASSERT(again.head.keep_alive == request->head.keep_alive && again.head.minor == request->head.minor);
	ASSERT(again.head.fields.n == request->head.fields.n);
	strbuf_release(&sb);
}

/* What a router does with it. */
static void try_decoding(const struct wire_request *request)
{
	struct hx_error err;
	struct query query;
	struct slice text;
	struct arena arena;

	arena_init(&arena, 1u << 20);
	ASSERT(chars_are(request->path, CHAR_PATH) && chars_are(request->query, CHAR_QUERY));
	if (percent_decode(request->path, /* plus_is_space= */ false, &arena, &err, &text) == HX_OK)
		ASSERT(text.n <= request->path.n);
	if (query_parse(request->query, &arena, &err, &query) == HX_OK)
		ASSERT(query.n <= QUERY_PARAMS_MAX);
	arena_release(&arena);
}

static void try_head(struct slice bytes)
{
	struct wire_field fields[READER_FIELDS_MAX];
	struct wire_request request;
	struct wire_scan scan = {0};
	struct wire_error err;

	if (wire_scan_request(&scan, bytes, &ample, &err) != WIRE_DONE ||
	    wire_request_parse(wire_scan_head(&scan, bytes.p), fields, &request, &err) != WIRE_DONE)
		return;
	ASSERT(is_token(request.method));
	ASSERT(request.head.minor == 0 || host_valid(request.host));
	for (size_t i = 0; i < request.head.fields.n; i++)
		ASSERT(is_token(fields[i].name) && chars_are(fields[i].value, CHAR_VALUE));
	try_again(&request);
	try_decoding(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice bytes = slice_of(data, size);
	uint64_t h = hash_bytes(3, data, size);
	struct wire_limits small = {.line_bytes = h % 64, .head_bytes = (h >> 8) % 256, .fields = (h >> 16) % 8};

	try_pieces(bytes, &ample);
	try_pieces(bytes, &small);
	try_head(bytes);
	return 0;
}
