/*
 * SHA-256, of one piece or of several, by OpenSSL; and a fast 64-bit mix for tables in memory (not for anything that
 * is stored: it depends on the byte order of the machine, and anybody can make collisions of it).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define SHA256_BYTES 32

void sha256(const void *bytes, size_t n, uint8_t ret_digest[SHA256_BYTES]);
/* The digest of a followed by b, without joining them first. */
void sha256_pair(struct slice a, struct slice b, uint8_t ret_digest[SHA256_BYTES]);
/* The same for any number of parts. */
void sha256_parts(const struct slice parts[], size_t n, uint8_t ret_digest[SHA256_BYTES]);
/* Lower-case hex with a NUL. */
void sha256_hex(const uint8_t digest[SHA256_BYTES], char ret_text[2 * SHA256_BYTES + 1]);

/* Multiplied before the value comes in: small numbers in another order are another hash. */
static inline uint64_t hash_mix(uint64_t h, uint64_t v)
{
	h = h * 0x9e3779b97f4a7c15u + v;
	h = (h ^ (h >> 32)) * 0xff51afd7ed558ccdu;
	return h ^ (h >> 33);
}

uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n);
