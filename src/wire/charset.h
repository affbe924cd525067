/*
 * Which bytes may stand where in HTTP/1.1, as one table. Whatever is in no class is refused wherever it appears
 * in a head: control characters, DEL, and everything above ASCII outside of field values.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum {
	CHAR_TOKEN = 1, /* methods, field names (RFC 9110, 5.6.2) */
	CHAR_VALUE = 2, /* field values and whole lines: HTAB, SP, visible ASCII, 0x80 and above as opaque bytes */
	CHAR_PATH = 4,  /* RFC 3986's path, and [ ] | ^ which browsers leave as they are */
	CHAR_QUERY = 8, /* CHAR_PATH, and ? { } \ ` for the same reason */
	CHAR_HOST = 16, /* names and IPv4 addresses: RFC 3986's unreserved characters */
	CHAR_HEX = 32,
	CHAR_DIGIT = 64,
	CHAR_EXTENSION = 128, /* chunk extensions: HTAB, SP, visible ASCII */
};

extern const uint8_t charset[256];

static inline bool char_is(char c, uint8_t classes)
{
	return (charset[(unsigned char)c] & classes) != 0;
}

/* All bytes in the class; true for an empty slice. */
static inline bool chars_are(struct slice s, uint8_t classes)
{
	for (size_t i = 0; i < s.n; i++)
		if (!char_is(s.p[i], classes))
			return false;
	return true;
}

static inline bool is_token(struct slice s)
{
	return s.n > 0 && chars_are(s, CHAR_TOKEN);
}

static inline unsigned hex_value(char c)
{
	return c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10);
}
