/* See excerpt.h. One character at a time, so that a cut never falls inside of one or of its escape. */
#include "base/excerpt.h"

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/utf8.h"

static bool breaks_or_turns_a_line(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code <= 0x9f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

static unsigned write_escape(uint32_t code, char ret_piece[EXCERPT_PIECE_BYTES])
{
	static const char short_form[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

	if (code < sizeof short_form && short_form[code]) {
		ret_piece[0] = '\\';
		ret_piece[1] = short_form[code];
		return 2;
	}
	return (unsigned)snprintf(ret_piece, EXCERPT_PIECE_BYTES, "\\u%04x", (unsigned)code & 0xffff);
}

unsigned excerpt_take(struct slice *text, bool quoted, char ret_piece[EXCERPT_PIECE_BYTES])
{
	ASSERT(text->n > 0);

	const char *p = text->p;
	unsigned n = utf8_sequence(p, p + text->n);

	*text = slice_of(p + (n ? n : 1), text->n - (n ? n : 1));
	if (n == 0)
		return (unsigned)snprintf(ret_piece, EXCERPT_PIECE_BYTES, "%s\\x%02x", quoted ? "\\" : "",
					  (unsigned char)*p);
	if (breaks_or_turns_a_line(utf8_decode(p, n)))
		return write_escape(utf8_decode(p, n), ret_piece);
	if (quoted && (*p == '"' || *p == '\\')) {
		ret_piece[0] = '\\';
		ret_piece[1] = *p;
		return 2;
	}
	memcpy(ret_piece, p, n);
	return n;
}

struct excerpt excerpt_of(struct slice text)
{
	struct excerpt e;
	size_t at = 0;

	while (text.n > 0) {
		char piece[EXCERPT_PIECE_BYTES];
		unsigned n = excerpt_take(&text, /* quoted= */ false, piece);

		if (at + n > EXCERPT_BYTES_MAX) {
			memcpy(e.text + at, "...", 4);
			return e;
		}
		memcpy(e.text + at, piece, n);
		at += n;
	}
	e.text[at] = '\0';
	return e;
}
