/*
 * See chunk.h. One state per place in the grammar; what may follow is in the function of that state.
 *
 *   SIZE ─digits─▶ SIZE ─CR─▶ SIZE_LF ─LF, size>0─▶ DATA ─all─▶ DATA_CR ─CR─▶ DATA_LF ─LF─▶ SIZE
 *     └─ ";" ─▶ EXTENSION ─CR─▶ ┘  └─LF, size=0─▶ LINE ─CR─▶ END_LF ─LF─▶ END
 *                                                  │ ▲
 *                                                  ▼ └─LF─ VALUE_LF ◀─CR─┐
 *                                                 NAME ─ ":" ─▶ VALUE ───┘
 */
#include "wire/chunk.h"

#include "wire/charset.h"

enum state { SIZE, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, LINE, NAME, VALUE, VALUE_LF, END_LF, END };

static const char *take_size(struct chunk_decoder *d, char c)
{
	if (char_is(c, CHAR_HEX)) {
		if (d->digits == CHUNK_SIZE_DIGITS_MAX || d->left > INT64_MAX >> 4)
			return "a chunk size is too large";
		d->left = d->left << 4 | hex_value(c);
		d->digits++;
		return NULL;
	}
	if (d->digits == 0 || (c != '\r' && c != ';'))
		return "a chunk size is not a plain hex number";
	d->state = c == '\r' ? SIZE_LF : EXTENSION;
	return NULL;
}

/* Bytes of one class, until the one that ends them. */
static const char *take_until(struct chunk_decoder *d, char c, char end, enum state next, uint8_t allowed,
			      const char *wrong)
{
	if (c == end)
		d->state = next;
	else if (!char_is(c, allowed))
		return wrong;
	return NULL;
}

static const char *take_line_start(struct chunk_decoder *d, char c)
{
	if (c == '\r')
		d->state = END_LF;
	else if (char_is(c, CHAR_TOKEN))
		d->state = NAME;
	else
		return "a trailer line does not begin with a field name";
	return NULL;
}

static const char *take_exactly(struct chunk_decoder *d, char c, char wanted, enum state next)
{
	d->state = next;
	return c == wanted ? NULL : "a line of the chunked coding does not end with CRLF";
}

/* One byte outside of data. NULL, or what is wrong with it. */
static const char *take_char(struct chunk_decoder *d, char c)
{
	switch ((enum state)d->state) {
	case SIZE:
		return take_size(d, c);
	case EXTENSION:
		return take_until(d, c, '\r', SIZE_LF, CHAR_EXTENSION,
				  "a chunk extension has a byte that is not allowed");
	case SIZE_LF:
		d->digits = 0;
		return take_exactly(d, c, '\n', d->left > 0 ? DATA : LINE);
	case DATA_CR:
		return take_exactly(d, c, '\r', DATA_LF);
	case DATA_LF:
		return take_exactly(d, c, '\n', SIZE);
	case LINE:
		return take_line_start(d, c);
	case NAME:
		return take_until(d, c, ':', VALUE, CHAR_TOKEN, "a trailer line has no colon after its field name");
	case VALUE:
		return take_until(d, c, '\r', VALUE_LF, CHAR_VALUE, "there is a control character in a trailer");
	case VALUE_LF:
		return take_exactly(d, c, '\n', LINE);
	case END_LF:
		return take_exactly(d, c, '\n', END);
	case DATA:
	case END:
		break;
	}
	ASSERT(!"a byte for a state that takes none");
	return NULL;
}

static bool is_extra(enum state state)
{
	return state == EXTENSION || state == NAME || state == VALUE;
}

static struct slice take_data(struct chunk_decoder *d, struct slice in)
{
	size_t n = in.n < d->left ? in.n : (size_t)d->left;

	d->left -= n;
	if (d->left == 0)
		d->state = DATA_CR;
	return slice_of(in.p, n);
}

enum wire_verdict chunk_read(struct chunk_decoder *decoder, struct slice in, size_t *ret_used, struct slice *ret_data,
			     struct wire_error *err)
{
	size_t at = 0;

	ASSERT(decoder->state != END);
	*ret_data = slice_of(NULL, 0);
	while (at < in.n && decoder->state != DATA && decoder->state != END) {
		const char *wrong = take_char(decoder, in.p[at++]);

		*ret_used = at;
		if (wrong)
			return wire_bad(err, HX_BAD_REQUEST, wrong);
		if (is_extra(decoder->state) && ++decoder->extra_bytes > CHUNK_EXTRA_BYTES_MAX)
			return wire_bad(err, HX_HEAD_TOO_LARGE, "chunk extensions and trailers are too large");
	}
	if (decoder->state == DATA)
		*ret_data = take_data(decoder, slice_of(in.p + at, in.n - at));
	*ret_used = at + ret_data->n;
	return decoder->state == END ? WIRE_DONE : WIRE_MORE;
}

uint64_t chunk_announced(const struct chunk_decoder *decoder)
{
	return decoder->state == DATA ? decoder->left : 0;
}

void chunk_write(struct slice data, struct strbuf *sb)
{
	if (data.n == 0)
		return;
	strbuf_addf(sb, "%zx\r\n", data.n);
	strbuf_add_slice(sb, data);
	strbuf_add(sb, "\r\n", 2);
}

void chunk_write_end(struct strbuf *sb)
{
	strbuf_add_str(sb, "0\r\n\r\n");
}
