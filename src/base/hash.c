/* See hash.h. The digest itself is in sha256_openssl.c, or in sha256_own.c where there is no OpenSSL (make SLIM=1). */
#include "base/hash.h"

#include "base/digits.h"

void sha256(const void *bytes, size_t n, uint8_t ret_digest[SHA256_BYTES])
{
	sha256_pair(slice_of(bytes, n), slice_of(NULL, 0), ret_digest);
}

void sha256_pair(struct slice a, struct slice b, uint8_t ret_digest[SHA256_BYTES])
{
	sha256_parts((struct slice[]){a, b}, 2, ret_digest);
}

void sha256_hex(const uint8_t digest[SHA256_BYTES], char ret_text[2 * SHA256_BYTES + 1])
{
	hex_write(digest, SHA256_BYTES, ret_text);
}

uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint64_t word;

	h = hash_mix(h, n);
	for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
		memcpy(&word, p, sizeof word);
		h = hash_mix(h, word);
	}
	word = 0;
	if (n)
		memcpy(&word, p, n);
	return hash_mix(h, word);
}
