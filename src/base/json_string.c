/*
 * See json_string.h. Decoding goes in pieces: a run of bytes that mean themselves, then one escape. The text is
 * never longer than the string that means it (the longest character takes four bytes and is written with at
 * least four), so the raw length is a sufficient size.
 */
#include "base/json_string.h"

#include "base/utf8.h"

/* What stands between the quotes. */
static struct slice inside(struct json string)
{
	ASSERT(json_type(string) == JSON_STRING && string.raw.n >= 2);
	return slice_of(string.raw.p + 1, string.raw.n - 2);
}

static bool has_escapes(struct slice body)
{
	return body.n > 0 && memchr(body.p, '\\', body.n) != NULL;
}

static uint32_t hex4(const char *p)
{
	uint32_t value = 0;

	/* Letters have bit 6 set, and their low bits count from 1. */
	for (int i = 0; i < 4; i++)
		value = value << 4 | (((unsigned char)p[i] & 15u) + ((unsigned char)p[i] >> 6) * 9u);
	return value & 0xffff;
}

/*
 * The character of the \u escape at *p, which has its six bytes; steps over it, and over the second one that a
 * high surrogate has in checked text.
 */
static uint32_t take_unicode_escape(const char **p, const char *end)
{
	uint32_t unit = hex4(*p + 2);
	uint32_t low;

	*p += 6;
	if (unit < 0xd800 || unit > 0xdfff)
		return unit;
	if (unit > 0xdbff || end - *p < 6)
		return 0xfffd;
	low = hex4(*p + 2);
	*p += 6;
	return low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
}

/* What the letter after a backslash means; the others (quote, backslash, slash) mean themselves. */
static char short_escape(char c)
{
	static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
	const char *at = memchr(letters, c, sizeof letters - 1);

	return at ? meanings[at - letters] : c;
}

/* Decodes the escape whose backslash is at *p, steps over it, returns the number of bytes written. */
static unsigned take_escape(const char **p, const char *end, char ret_bytes[4])
{
	if (end - *p >= 6 && (*p)[1] == 'u')
		return utf8_encode(take_unicode_escape(p, end), ret_bytes);

	char c = end - *p >= 2 ? (*p)[1] : '\\';

	*p = end - *p >= 2 ? *p + 2 : end;
	ret_bytes[0] = short_escape(c);
	return 1;
}

/* Writes the text of the body to `to`, which has room for body.n bytes, and returns its length. */
static size_t decode_body(struct slice body, char *to)
{
	const char *p = body.p;
	const char *end = body.p + body.n;
	char *at = to;

	while (p < end) {
		const char *escape = memchr(p, '\\', (size_t)(end - p));
		size_t run = (size_t)((escape ? escape : end) - p);
		char bytes[4];

		memcpy(at, p, run);
		at += run;
		p += run;
		if (!escape)
			break;

		unsigned n = take_escape(&p, end, bytes);

		memcpy(at, bytes, n);
		at += n;
	}
	return (size_t)(at - to);
}

struct slice json_string_decode(struct json string, struct arena *a)
{
	struct slice body = inside(string);
	char *to;

	if (!has_escapes(body))
		return arena_copy(a, body);
	to = arena_alloc(a, body.n + 1);
	if (!to)
		return slice_of(NULL, 0);

	size_t n = decode_body(body, to);

	to[n] = '\0';
	return slice_of(to, n);
}

struct slice json_string_view(struct json string, struct arena *a)
{
	struct slice body = inside(string);

	return has_escapes(body) ? json_string_decode(string, a) : body;
}

struct slice json_string_view_in(struct json string, char *buffer, size_t room)
{
	struct slice body = inside(string);

	if (!has_escapes(body))
		return body;
	return body.n > room ? slice_of(NULL, 0) : slice_of(buffer, decode_body(body, buffer));
}

bool json_string_is(struct json string, struct slice text)
{
	struct slice body = inside(string);
	const char *p = body.p;
	const char *end = body.p + body.n;

	if (!has_escapes(body))
		return slice_eq(body, text);
	while (p < end) {
		char bytes[4];
		unsigned n = 1;

		if (*p == '\\')
			n = take_escape(&p, end, bytes);
		else
			bytes[0] = *p++;
		if (text.n < n || memcmp(text.p, bytes, n) != 0)
			return false;
		text = slice_of(text.p + n, text.n - n);
	}
	return text.n == 0;
}

static void quote_special(unsigned char c, struct strbuf *sb)
{
	static const char short_form[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

	if (c == '"' || c == '\\')
		strbuf_add(sb, (char[]){'\\', (char)c}, 2);
	else if (c < sizeof short_form && short_form[c])
		strbuf_add(sb, (char[]){'\\', short_form[c]}, 2);
	else if (c < 0x20)
		strbuf_addf(sb, "\\u%04x", c);
	else
		strbuf_add_str(sb, "\xef\xbf\xbd");
}

/* How many bytes from p on can be written as they are. */
static size_t plain_bytes(const char *p, const char *end)
{
	const char *start = p;

	while (p < end) {
		unsigned char c = (unsigned char)*p;
		unsigned n = c < 0x80 ? c >= 0x20 && c != '"' && c != '\\' : utf8_sequence(p, end);

		if (n == 0)
			break;
		p += n;
	}
	return (size_t)(p - start);
}

void json_quote(struct slice text, struct strbuf *sb)
{
	strbuf_add_char(sb, '"');
	for (size_t at = 0; at < text.n;) {
		size_t run = plain_bytes(text.p + at, text.p + text.n);

		strbuf_add(sb, text.p + at, run);
		at += run;
		if (at < text.n)
			quote_special((unsigned char)text.p[at++], sb);
	}
	strbuf_add_char(sb, '"');
}
