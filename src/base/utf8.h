/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
 *
 *   lead        second byte   more      code points
 *   00..7F      —             0         U+0000   .. U+007F
 *   C2..DF      80..BF        0         U+0080   .. U+07FF
 *   E0          A0..BF        1         U+0800   .. U+0FFF    (below A0: overlong)
 *   E1..EF      80..BF        1         U+1000   .. U+FFFF    (ED only to 9F: the rest are surrogates)
 *   F0          90..BF        2         U+10000  .. U+3FFFF   (below 90: overlong)
 *   F1..F3      80..BF        2         U+40000  .. U+FFFFF
 *   F4          80..8F        2         U+100000 .. U+10FFFF
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* How long a sequence with this lead byte is; 0 for a byte that leads none. */
static inline unsigned utf8_length_by_lead(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

static inline bool utf8_continues(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/*
 * The length (1 to 4) of the well-formed sequence that begins at p, or 0 if none does. Needs p < end. Inline,
 * because the scanner of JSON calls it for every character of a text that is not ASCII.
 */
static inline unsigned utf8_sequence(const char *p, const char *end)
{
	const unsigned char *b = (const unsigned char *)p;
	unsigned n = utf8_length_by_lead(b[0]);

	if (n <= 1)
		return n;
	if ((size_t)(end - p) < n || !utf8_continues(b[1]))
		return 0;
	if (n == 2)
		return 2;
	if ((b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xed && b[1] > 0x9f))
		return 0;
	if ((b[0] == 0xf0 && b[1] < 0x90) || (b[0] == 0xf4 && b[1] > 0x8f))
		return 0;
	if (!utf8_continues(b[2]) || (n == 4 && !utf8_continues(b[3])))
		return 0;
	return n;
}

/* The code point of the well-formed sequence of n bytes at p, as utf8_sequence() measured it. */
uint32_t utf8_decode(const char *p, unsigned n);
/* Writes the code point (not a surrogate, at most U+10FFFF) and returns how many bytes that took. */
unsigned utf8_encode(uint32_t code, char ret_bytes[4]);
/* How many bytes at the front are well-formed: text.n if all are. */
size_t utf8_valid_bytes(struct slice text);
/* The length without a sequence that has lost its end, for text that was cut at some byte. */
size_t utf8_cut(struct slice text);
