/* SHA-256 through the low-level OpenSSL calls: the EVP front would allocate on every digest of the hot path. See hash.h. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "base/hash.h"

void sha256_parts(const struct slice parts[], size_t n, uint8_t ret_digest[SHA256_BYTES])
{
	SHA256_CTX c;

	SHA256_Init(&c);
	for (size_t i = 0; i < n; i++)
		SHA256_Update(&c, parts[i].p, parts[i].n);
	SHA256_Final(ret_digest, &c);
}
