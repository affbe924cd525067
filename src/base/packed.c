/* See packed.h. */
#include "base/packed.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/error.h"

#define GZIP_WINDOW (16 + MAX_WBITS) /* zlib's word for "as gzip writes it" */

char *packed_text(const struct packed *packed)
{
	char *text = malloc(packed->whole + 1);
	z_stream stream = {
		.next_in = (unsigned char *)packed->bytes, /* zlib never writes there */
		.avail_in = (unsigned)packed->n,
		.next_out = (unsigned char *)text,
		.avail_out = (unsigned)packed->whole,
	};

	ASSERT(text);
	ASSERT(inflateInit2(&stream, GZIP_WINDOW) == Z_OK);
	ASSERT(inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out == packed->whole);
	inflateEnd(&stream);
	text[packed->whole] = '\0';
	return text;
}
