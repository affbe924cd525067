/* What of utf8.h is not inline. */
#include "base/utf8.h"

#include "base/error.h"

uint32_t utf8_decode(const char *p, unsigned n)
{
	const unsigned char *b = (const unsigned char *)p;

	ASSERT(n >= 1 && n <= 4);
	if (n == 1)
		return b[0];

	uint32_t code = b[0] & (0x7fu >> n);

	for (unsigned i = 1; i < n; i++)
		code = code << 6 | (b[i] & 0x3fu);
	return code;
}

unsigned utf8_encode(uint32_t code, char ret_bytes[4])
{
	ASSERT(code <= 0x10ffff && (code < 0xd800 || code > 0xdfff));
	if (code < 0x80) {
		ret_bytes[0] = (char)code;
		return 1;
	}

	unsigned n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (unsigned i = n - 1; i > 0; i--, code >>= 6)
		ret_bytes[i] = (char)(0x80 | (code & 0x3f));
	ret_bytes[0] = (char)((0xf00u >> n & 0xff) | code);
	return n;
}

size_t utf8_valid_bytes(struct slice text)
{
	size_t at = 0;

	while (at < text.n) {
		unsigned n = utf8_sequence(text.p + at, text.p + text.n);

		if (n == 0)
			break;
		at += n;
	}
	return at;
}

size_t utf8_cut(struct slice text)
{
	for (size_t back = 1; back <= 3 && back <= text.n; back++) {
		unsigned char byte = (unsigned char)text.p[text.n - back];

		if (!utf8_continues(byte))
			return utf8_length_by_lead(byte) > back ? text.n - back : text.n;
	}
	return text.n;
}
