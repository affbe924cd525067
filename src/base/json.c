/*
 * The scanner. Each scan_*() takes the place to begin at and returns the place after what it has accepted, or
 * NULL after noting what is wrong and where. Nothing looks at *p before it has compared p with the end: the
 * text has no terminator.
 *
 * The document loop has no recursion. What it needs to know about the open brackets is one bit each, object or
 * array, so 64 of them are a word (see JSON_DEPTH_MAX).
 *
 * Most bytes of real documents are inside of strings. scan_string() therefore looks at eight bytes at a time
 * and only falls back to single ones at a quote, a backslash, a control character or a byte of UTF-8.
 */
#include "base/json.h"

#include <stdint.h>

#include "base/digits.h"
#include "base/json_walk.h"
#include "base/utf8.h"

_Static_assert(JSON_DEPTH_MAX <= 64, "the stack of scan_document() is one word");

struct scan {
	const char *end;
	const char *fault;
	const char *what;
};

/* Always NULL, so that `return fail(...)` reads as one step. */
static __attribute__((cold, noinline)) const char *fail(struct scan *s, const char *at, const char *what)
{
	s->fault = at;
	s->what = what;
	return NULL;
}

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline const char *skip_digits(const char *p, const char *end)
{
	while (p < end && is_digit(*p))
		p++;
	return p;
}

/* Four hex digits at p as a number, or -1. */
static int hex4(const char *p, const char *end)
{
	int value = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4 && value >= 0; i++)
		value = hex_digit(p[i]) < 0 ? -1 : value << 4 | hex_digit(p[i]);
	return value;
}

/* p is after "\u". A high surrogate is only half of a character: the escape of the low one must follow. */
static const char *scan_unicode_escape(struct scan *s, const char *p)
{
	const char *escape = p - 2;
	int unit = hex4(p, s->end);

	if (unit < 0)
		return fail(s, escape, "\\u needs four hexadecimal digits");
	if (unit < 0xd800 || unit > 0xdfff)
		return p + 4;
	if (unit <= 0xdbff && s->end - p >= 10 && p[4] == '\\' && p[5] == 'u') {
		unit = hex4(p + 6, s->end);
		if (unit >= 0xdc00 && unit <= 0xdfff)
			return p + 10;
	}
	return fail(s, escape, "a surrogate stands alone");
}

/* p is at the backslash. */
static const char *scan_escape(struct scan *s, const char *p)
{
	if (s->end - p < 2)
		return fail(s, s->end, "the text ends inside of a string");
	if (p[1] == 'u')
		return scan_unicode_escape(s, p + 2);
	return memchr("\"\\/bfnrt", p[1], 8) ? p + 2 : fail(s, p, "there is no such escape");
}

/* A borrow only ever spoils the bytes above a true hit, so the lowest marked byte is one. */
static inline uint64_t mark_special(uint64_t w)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);

	return ((w - ones * 0x20) | ((w ^ ones * '"') - ones) | ((w ^ ones * '\\') - ones) | w) & ones * 0x80;
}

/* The first byte from p on that is not a plain ASCII character of a string. */
static inline const char *skip_plain(const char *p, const char *end)
{
	p = json_until(p, end, mark_special);
	while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' && *p != '\\')
		p++;
	return p;
}

/* A run of characters that are not ASCII, at least one. */
static const char *scan_utf8(struct scan *s, const char *p)
{
	do {
		unsigned n = utf8_sequence(p, s->end);

		if (n == 0)
			return fail(s, p, "a string is not valid UTF-8");
		p += n;
	} while (p < s->end && (unsigned char)*p >= 0x80);
	return p;
}

/* p is after the opening quote. */
static inline const char *scan_string(struct scan *s, const char *p)
{
	for (;;) {
		p = skip_plain(p, s->end);
		if (p == s->end)
			return fail(s, p, "the text ends inside of a string");
		if (*p == '"')
			return p + 1;
		if (*p == '\\') {
			p = scan_escape(s, p);
			if (!p)
				return NULL;
			continue;
		}
		if ((unsigned char)*p < 0x20)
			return fail(s, p, "a control character in a string must be escaped");
		p = scan_utf8(s, p);
		if (!p)
			return NULL;
	}
}

static const char *scan_number(struct scan *s, const char *p)
{
	if (*p == '-')
		p++;
	if (p == s->end || !is_digit(*p))
		return fail(s, p, "a number needs a digit here");
	if (*p == '0' && p + 1 < s->end && is_digit(p[1]))
		return fail(s, p, "a number may not begin with 0");
	p = skip_digits(p, s->end);
	if (p < s->end && *p == '.') {
		p++;
		if (p == s->end || !is_digit(*p))
			return fail(s, p, "a number needs a digit after its point");
		p = skip_digits(p, s->end);
	}
	if (p < s->end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < s->end && (*p == '+' || *p == '-'))
			p++;
		if (p == s->end || !is_digit(*p))
			return fail(s, p, "a number needs a digit in its exponent");
		p = skip_digits(p, s->end);
	}
	return p;
}

static const char *scan_word(struct scan *s, const char *p, const char *word, size_t n)
{
	if ((size_t)(s->end - p) < n || memcmp(p, word, n) != 0)
		return fail(s, p, "a value is expected here");
	return p + n;
}

/* A value that has no brackets. p < end. */
static inline const char *scan_scalar(struct scan *s, const char *p)
{
	switch (*p) {
	case '"':
		return scan_string(s, p + 1);
	case 't':
		return scan_word(s, p, "true", 4);
	case 'f':
		return scan_word(s, p, "false", 5);
	case 'n':
		return scan_word(s, p, "null", 4);
	default:
		return *p == '-' || is_digit(*p) ? scan_number(s, p) : fail(s, p, "a value is expected here");
	}
}

/* The name of a member and its colon. */
static inline const char *scan_name(struct scan *s, const char *p)
{
	p = json_space_end(p, s->end);
	if (p == s->end)
		return fail(s, p, "the text ends inside of an object");
	if (*p != '"')
		return fail(s, p, "the name of a member is expected here, in double quotes");
	p = scan_string(s, p + 1);
	if (!p)
		return NULL;
	p = json_space_end(p, s->end);
	if (p == s->end || *p != ':')
		return fail(s, p, "a colon is expected here, after the name of a member");
	return p + 1;
}

/* The brackets that are open around the current place; bit 0 of objects is the innermost. */
struct nesting {
	uint64_t objects;
	unsigned depth;
};

static inline bool in_object(const struct nesting *open)
{
	return open->objects & 1;
}

static inline char closing_bracket(const struct nesting *open)
{
	return in_object(open) ? '}' : ']';
}

/*
 * After a value: closes the brackets that end here. Stops where the next value begins, after a comma (and a
 * name), or with nothing open any more, which is the end of the document's value.
 */
static inline const char *scan_behind_value(struct scan *s, const char *p, struct nesting *open)
{
	while (open->depth > 0) {
		p = json_space_end(p, s->end);
		if (p == s->end)
			return fail(s, p, "the text ends before a bracket is closed");
		if (*p == ',')
			return in_object(open) ? scan_name(s, p + 1) : p + 1;
		if (*p != closing_bracket(open))
			return fail(s, p,
				    in_object(open) ? "a comma or } is expected here"
						    : "a comma or ] is expected here");
		p++;
		open->objects >>= 1;
		open->depth--;
	}
	return p;
}

/* One value with everything in it, from its first byte on. */
static const char *scan_document(struct scan *s, const char *p)
{
	struct nesting open = {0};

	do {
		p = json_space_end(p, s->end);
		if (p == s->end)
			return fail(s, p, "the text ends where a value is expected");
		if (*p == '{' || *p == '[') {
			if (open.depth == JSON_DEPTH_MAX)
				return fail(s, p, "the brackets are nested too deeply");
			open.objects = open.objects << 1 | (*p == '{');
			open.depth++;
			p = json_space_end(p + 1, s->end);
			if (p == s->end || *p != closing_bracket(&open)) {
				p = in_object(&open) ? scan_name(s, p) : p;
				continue;
			}
		} else {
			p = scan_scalar(s, p);
		}
		if (p)
			p = scan_behind_value(s, p, &open);
	} while (p && open.depth > 0);
	return p;
}

static enum hx_code json_refuse(const struct scan *s, struct slice text, struct hx_error *err)
{
	struct json_position at = json_locate(text, (size_t)(s->fault - text.p));

	return error_set(err, HX_VALIDATION_ERROR, "%zu:%zu: %s", at.line, at.column, s->what);
}

enum hx_code json_check(struct slice text, struct hx_error *err, struct json *ret_value)
{
	if (text.n == 0)
		return error_set(err, HX_VALIDATION_ERROR, "1:1: the text is empty");

	struct scan s = {.end = text.p + text.n};
	const char *start = json_space_end(text.p, s.end);
	const char *p;

	if (text.n >= 3 && memcmp(text.p, "\xef\xbb\xbf", 3) == 0)
		p = fail(&s, text.p, "a byte order mark is not part of JSON");
	else
		p = scan_document(&s, start);
	if (!p)
		return json_refuse(&s, text, err);

	const char *rest = json_space_end(p, s.end);

	if (rest < s.end) {
		(void)fail(&s, rest, "nothing may follow the value"); /* its result says only what we know */
		return json_refuse(&s, text, err);
	}
	*ret_value = (struct json){slice_of(start, (size_t)(p - start))};
	return HX_OK;
}

enum json_type json_type(struct json value)
{
	ASSERT(value.raw.n > 0);
	switch (value.raw.p[0]) {
	case '{':
		return JSON_OBJECT;
	case '[':
		return JSON_ARRAY;
	case '"':
		return JSON_STRING;
	case 't':
	case 'f':
		return JSON_BOOL;
	case 'n':
		return JSON_NULL;
	default:
		return JSON_NUMBER;
	}
}

const char *json_type_name(enum json_type type)
{
	static const char *const names[] = {"null", "boolean", "number", "string", "array", "object"};

	ASSERT((unsigned)type < sizeof names / sizeof names[0]);
	return names[type];
}

struct json_position json_locate(struct slice text, size_t offset)
{
	struct json_position at = {1, 1};

	ASSERT(offset <= text.n);
	for (size_t i = 0; i < offset;) {
		unsigned n = utf8_sequence(text.p + i, text.p + text.n);

		if (text.p[i] == '\n')
			at = (struct json_position){at.line + 1, 1};
		else
			at.column++;
		i += n ? n : 1;
	}
	return at;
}
