/*
 * SHA-256 (FIPS 180-4) for a build without OpenSSL (make SLIM=1). Plain C, no table but the constants; about a third as fast as
 * OpenSSL's. tests/unit/base/test_hash.c has the standard's vectors for the one, tests/unit/test_slim.sh compares both.
 */
#include "base/hash.h"

#define BLOCK_BYTES 64

static const uint32_t rounds[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

struct state {
	uint32_t h[8];
	uint64_t bytes;
	unsigned char block[BLOCK_BYTES];
	size_t filled;
};

static uint32_t turn(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

/* Words are big-endian. */
static void expand(const unsigned char block[BLOCK_BYTES], uint32_t w[64])
{
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
}

static void mix(struct state *s)
{
	uint32_t w[64], v[8];

	expand(s->block, w);
	memcpy(v, s->h, sizeof v);
	for (int i = 0; i < 64; i++) {
		uint32_t e = v[4], a = v[0];
		uint32_t one = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
			       rounds[i] + w[i];
		uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof *v);
		v[4] += one;
		v[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		s->h[i] += v[i];
	s->filled = 0;
}

static void sha256_own_add(struct state *s, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	s->bytes += n;
	while (n) {
		size_t room = BLOCK_BYTES - s->filled, take = n < room ? n : room;

		memcpy(s->block + s->filled, p, take);
		s->filled += take;
		p += take;
		n -= take;
		if (s->filled == BLOCK_BYTES)
			mix(s);
	}
}

/* A one bit, zeros, and the length in bits as the last eight bytes of a block. */
static void finish(struct state *s, uint8_t ret_digest[SHA256_BYTES])
{
	uint64_t bits = s->bytes * 8;
	unsigned char length[8];

	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(bits >> (56 - 8 * i));
	sha256_own_add(s, "\x80", 1);
	while (s->filled != BLOCK_BYTES - sizeof length)
		sha256_own_add(s, "", 1);
	sha256_own_add(s, length, sizeof length);
	for (int i = 0; i < SHA256_BYTES; i++)
		ret_digest[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_parts(const struct slice parts[], size_t n, uint8_t ret_digest[SHA256_BYTES])
{
	struct state s = {
		.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};

	for (size_t i = 0; i < n; i++)
		sha256_own_add(&s, parts[i].p, parts[i].n);
	finish(&s, ret_digest);
}
