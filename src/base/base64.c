/* See base64.h. */
#include "base/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_append(struct slice bytes, struct strbuf *out)
{
	const unsigned char *p = (const unsigned char *)bytes.p;

	for (size_t i = 0; i < bytes.n; i += 3) {
		size_t left = bytes.n - i;
		unsigned group = (unsigned)p[i] << 16;
		char text[4];

		group |= left > 1 ? (unsigned)p[i + 1] << 8 : 0;
		group |= left > 2 ? (unsigned)p[i + 2] : 0;
		text[0] = digits[group >> 18];
		text[1] = digits[group >> 12 & 63];
		text[2] = left > 1 ? digits[group >> 6 & 63] : '=';
		text[3] = left > 2 ? digits[group & 63] : '=';
		strbuf_add(out, text, sizeof text);
	}
}
