/* See packed.h. */
#include "base/packed.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/error.h"

#define GZIP_WINDOW (16 + MAX_WBITS) /* zlib's word for "as gzip writes it" */

/* No literal: with this text the program's literals are unpacked (cli/literals.c). */
static const char version_of_zlib[] = ZLIB_VERSION;

void packed_into(const struct packed *packed, char *to)
{
	z_stream stream = {
		.next_in = (unsigned char *)packed->bytes, /* zlib never writes there */
		.avail_in = (unsigned)packed->n,
		.next_out = (unsigned char *)to,
		.avail_out = (unsigned)packed->whole,
	};

	ASSERT(inflateInit2_(&stream, GZIP_WINDOW, version_of_zlib, (int)sizeof stream) == Z_OK);
	ASSERT(inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out == packed->whole);
	inflateEnd(&stream);
}

char *packed_text(const struct packed *packed)
{
	char *text = malloc(packed->whole + 1);

	ASSERT(text);
	packed_into(packed, text);
	text[packed->whole] = '\0';
	return text;
}
