/* See hmac.h. */
#include "base/hmac.h"

#include <string.h>

#include "base/error.h"

#define BLOCK_BYTES 64

static void hash_padded(const uint8_t block[BLOCK_BYTES], uint8_t pad, const struct slice parts[], size_t n,
			uint8_t ret[SHA256_BYTES])
{
	struct slice all[HMAC_PARTS_MAX + 1];
	uint8_t padded[BLOCK_BYTES];

	ASSERT(n <= HMAC_PARTS_MAX);
	for (size_t i = 0; i < BLOCK_BYTES; i++)
		padded[i] = block[i] ^ pad;
	all[0] = slice_of((const char *)padded, sizeof padded);
	for (size_t i = 0; i < n; i++)
		all[i + 1] = parts[i];
	sha256_parts(all, n + 1, ret);
}

void hmac_sha256(struct slice key, const struct slice parts[], size_t n, uint8_t ret_mac[SHA256_BYTES])
{
	uint8_t block[BLOCK_BYTES] = {0}, inner[SHA256_BYTES];
	struct slice outer;

	if (key.n > sizeof block)
		sha256(key.p, key.n, block);
	else if (key.n)
		memcpy(block, key.p, key.n);
	hash_padded(block, 0x36, parts, n, inner);
	outer = slice_of((const char *)inner, sizeof inner);
	hash_padded(block, 0x5c, &outer, 1, ret_mac);
}

bool bytes_equal_slowly(const void *a, const void *b, size_t n)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t differ = 0;

	for (size_t i = 0; i < n; i++)
		differ |= (uint8_t)(x[i] ^ y[i]);
	return differ == 0;
}
