/*
 * The chunked transfer coding, read strictly and piece by piece, and written.
 *
 *   1a;name=value CRLF      size in hex, extensions (read over)
 *   26 bytes CRLF
 *   0 CRLF                  the last chunk
 *   Name: value CRLF        trailers (checked like header fields, read over)
 *   CRLF
 *
 * The decoder copies nothing: data comes back as slices of what was fed. A size is 1 to 16 hex digits with nothing
 * around them, at most 2^63-1. Lines end with CRLF alone. Extensions are visible ASCII; extensions and trailers
 * of one message together have at most CHUNK_EXTRA_BYTES_MAX, since they are bytes that no body limit counts.
 */
#pragma once

#include "base/strbuf.h"
#include "wire/wire.h"

#define CHUNK_EXTRA_BYTES_MAX 8192
#define CHUNK_SIZE_DIGITS_MAX 16

/* Zero it before the first byte. */
struct chunk_decoder {
	uint8_t state;
	uint8_t digits;
	uint16_t extra_bytes;
	uint64_t left; /* of this chunk */
};

/*
 * Reads on in `in` until there is data to hand out, the body ends, or the bytes do: *ret_used is how far it got and
 * *ret_data a slice of in, perhaps empty. Call again with the rest while the verdict is MORE. What follows a DONE
 * belongs to the next message.
 */
enum wire_verdict chunk_read(struct chunk_decoder *decoder, struct slice in, size_t *ret_used, struct slice *ret_data,
			     struct wire_error *err) HX_MUST_CHECK;

/* What is left of the chunk that the bytes so far have announced; 0 while its size is still being read. */
uint64_t chunk_announced(const struct chunk_decoder *decoder);

/* Appends one chunk; nothing for empty data, which would be the end. */
void chunk_write(struct slice data, struct strbuf *sb);
/* Appends the last chunk, without trailers. */
void chunk_write_end(struct strbuf *sb);

/* What chunk_write() adds to n bytes of data, at most. */
#define CHUNK_OVERHEAD_BYTES (CHUNK_SIZE_DIGITS_MAX + 4)
