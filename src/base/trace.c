/* See trace.h. */
#include "base/trace.h"

#include <sys/random.h>

#include "base/digits.h"
#include "base/hash.h"
#include "base/json_string.h"
#include "base/json_walk.h"

#define ID_AT 3 /* of the trace, 32 digits */
#define ID_DIGITS 32
#define SPAN_AT 36 /* of the parent, 16 digits */
#define SPAN_DIGITS 16
#define FLAGS_AT 53
#define TRACE_IDS_BYTES ((ID_DIGITS + SPAN_DIGITS) / 2)
#define FLAGS_KEPT 3 /* sampled; the trace id is random. All others are to be zero in version 00 */

static int trace_digit(char c)
{
	return c >= 'A' && c <= 'F' ? -1 : hex_digit(c);
}

static bool is_nothing(const char *digits, size_t n)
{
	return strspn(digits, "0") >= n;
}

static bool is_parent(struct slice text)
{
	if (text.n < TRACE_PARENT_BYTES || (text.n > TRACE_PARENT_BYTES && text.p[TRACE_PARENT_BYTES] != '-'))
		return false;
	for (size_t i = 0; i < TRACE_PARENT_BYTES; i++) {
		bool dash = i == ID_AT - 1 || i == SPAN_AT - 1 || i == FLAGS_AT - 1;

		if (dash ? text.p[i] != '-' : trace_digit(text.p[i]) < 0)
			return false;
	}
	if (memcmp(text.p, "ff", 2) == 0 || (memcmp(text.p, "00", 2) == 0 && text.n > TRACE_PARENT_BYTES))
		return false;
	return !is_nothing(text.p + ID_AT, ID_DIGITS) && !is_nothing(text.p + SPAN_AT, SPAN_DIGITS);
}

/* Members of a list, which are the tracers' own business; but a header of ours must stay one line of ASCII. */
static bool is_state(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((text.p[i] < ' ' && text.p[i] != '\t') || text.p[i] > '~')
			return false;
	return text.n >= 1 && text.n <= TRACE_STATE_BYTES_MAX;
}

struct slice trace_of(struct slice parent, struct slice state, struct arena *arena)
{
	char text[TRACE_PARENT_BYTES + 1 + TRACE_STATE_BYTES_MAX];
	size_t n = TRACE_PARENT_BYTES;

	if (!is_parent(parent))
		return slice_of(NULL, 0);
	memcpy(text, parent.p, n);
	memcpy(text, "00", 2);
	text[FLAGS_AT] = '0';
	text[FLAGS_AT + 1] = (char)('0' + (trace_digit(parent.p[FLAGS_AT + 1]) & FLAGS_KEPT));
	if (is_state(state)) {
		text[n] = ' ';
		memcpy(text + n + 1, state.p, state.n);
		n += 1 + state.n;
	}
	return arena_copy(arena, slice_of(text, n));
}

struct slice trace_parent(struct slice trace)
{
	return slice_of(trace.p, trace.n < TRACE_PARENT_BYTES ? 0 : TRACE_PARENT_BYTES);
}

struct slice trace_state(struct slice trace)
{
	size_t before = TRACE_PARENT_BYTES + 1;

	return trace.n > before ? slice_of(trace.p + before, trace.n - before) : slice_of(NULL, 0);
}

/* Of two ids, 16 bytes and 8, which are not zero. */
static struct slice trace_write(uint8_t ids[TRACE_IDS_BYTES], char text[TRACE_PARENT_BYTES])
{
	char hex[2 * TRACE_IDS_BYTES + 1];

	ids[ID_DIGITS / 2 - 1] |= 1;
	ids[TRACE_IDS_BYTES - 1] |= 1;
	hex_write(ids, TRACE_IDS_BYTES, hex);
	memcpy(text, "00-", ID_AT);
	memcpy(text + ID_AT, hex, ID_DIGITS);
	text[SPAN_AT - 1] = '-';
	memcpy(text + SPAN_AT, hex + ID_DIGITS, SPAN_DIGITS);
	memcpy(text + SPAN_AT + SPAN_DIGITS, "-01", TRACE_PARENT_BYTES - SPAN_AT - SPAN_DIGITS);
	return slice_of(text, TRACE_PARENT_BYTES);
}

struct slice trace_new(char ret_text[TRACE_PARENT_BYTES])
{
	uint8_t ids[TRACE_IDS_BYTES] = {0};

	ASSERT(getrandom(ids, sizeof ids, 0) == sizeof ids); /* so few are there at once */
	return trace_write(ids, ret_text);
}

/* Every call has one, so it is a quick hash: ids of traces tell calls apart for those who look, and nothing rests on them. */
struct slice trace_of_key(struct slice key, char ret_text[TRACE_PARENT_BYTES])
{
	const uint64_t hashes[] = {hash_bytes(1, key.p, key.n), hash_bytes(2, key.p, key.n),
				   hash_bytes(3, key.p, key.n)};
	uint8_t ids[TRACE_IDS_BYTES];

	memcpy(ids, hashes, sizeof ids);
	return trace_write(ids, ret_text);
}

void trace_continue(char *trace, size_t n, struct slice key, int64_t fence, int64_t attempt)
{
	char hex[SPAN_DIGITS + 1];
	uint64_t span;

	if (n < TRACE_PARENT_BYTES)
		return;
	span = hash_bytes(hash_mix((uint64_t)fence, (uint64_t)attempt), trace, TRACE_PARENT_BYTES);
	span = hash_bytes(span, key.p, key.n) | 1; /* an id of zeros is none */
	hex_write(&span, sizeof span, hex);
	memcpy(trace + SPAN_AT, hex, SPAN_DIGITS);
}

void trace_add_members(struct slice trace, struct strbuf *text)
{
	struct slice state = trace_state(trace);

	if (trace_parent(trace).n)
		strbuf_addf(text, "\"traceparent\":\"%.*s\",", SLICE_ARGS(trace_parent(trace)));
	if (state.n) {
		strbuf_add_str(text, "\"tracestate\":");
		json_quote(state, text);
		strbuf_add_char(text, ',');
	}
}

static struct slice member(struct json object, const char *name, struct arena *arena)
{
	struct json value;

	if (!json_find(object, slice_str(name), &value) || json_type(value) != JSON_STRING)
		return slice_of(NULL, 0);
	return json_string_decode(value, arena);
}

struct slice trace_of_members(struct json object, struct arena *arena)
{
	struct slice parent = member(object, "traceparent", arena);

	return parent.n ? trace_of(parent, member(object, "tracestate", arena), arena) : parent;
}
