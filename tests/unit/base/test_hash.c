/* SHA-256 against the vectors of FIPS 180-4; the table hash for what a table needs of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

static const char *hex_of(const void *bytes, size_t n)
{
	static char text[2 * SHA256_BYTES + 1];
	uint8_t digest[SHA256_BYTES];

	sha256(bytes, n, digest);
	sha256_hex(digest, text);
	return text;
}

static void known_digests(void **state)
{
	static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

	(void)state;
	assert_string_equal(hex_of(NULL, 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_string_equal(hex_of("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_string_equal(hex_of(two_blocks, sizeof two_blocks - 1),
			    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void a_pair_is_the_joined_text(void **state)
{
	static const char text[] = "the head of the chain and the digest of the next row";
	uint8_t whole[SHA256_BYTES], parts[SHA256_BYTES];

	(void)state;
	sha256(text, sizeof text, whole);
	for (size_t cut = 0; cut <= sizeof text; cut++) {
		sha256_pair(slice_of(text, cut), slice_of(text + cut, sizeof text - cut), parts);
		assert_memory_equal(parts, whole, SHA256_BYTES);
	}
}

static void parts_are_the_joined_text(void **state)
{
	const struct slice four[] = {slice_str("one"), slice_of(NULL, 0), slice_str("two"), slice_str("three")};
	uint8_t whole[SHA256_BYTES], parts[SHA256_BYTES];

	(void)state;
	sha256("onetwothree", 11, whole);
	sha256_parts(four, 4, parts);
	assert_memory_equal(parts, whole, SHA256_BYTES);
	sha256(NULL, 0, whole);
	sha256_parts(NULL, 0, parts);
	assert_memory_equal(parts, whole, SHA256_BYTES);
}

static void the_table_hash_sees_length_seed_and_every_byte(void **state)
{
	char text[40] = {0};
	uint64_t base = hash_bytes(1, text, 20);

	(void)state;
	assert_true(hash_bytes(1, text, 20) == base);
	assert_true(hash_bytes(2, text, 20) != base);
	assert_true(hash_bytes(1, text, 19) != base);
	assert_true(hash_bytes(1, text, 24) != base);
	for (int i = 0; i < 20; i++) {
		text[i] = 1;
		assert_true(hash_bytes(1, text, 20) != base);
		text[i] = 0;
	}
	assert_true(hash_bytes(1, NULL, 0) != hash_bytes(2, NULL, 0));
}

static void the_table_hash_does_not_care_where_the_bytes_lie(void **state)
{
	char bytes[64];

	(void)state;
	for (int shift = 0; shift < 8; shift++) {
		memcpy(bytes + shift, "claimed by node 7, fence 12", 27);
		assert_true(hash_bytes(3, bytes + shift, 27) == hash_bytes(3, "claimed by node 7, fence 12", 27));
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Ids, fences and counts are small: whoever begins with one of them must not find another pair. */
static void pairs_of_small_numbers_are_told_apart(void **state)
{
	enum { SMALL = 300 };
	static uint64_t all[SMALL * SMALL];

	(void)state;
	for (uint64_t h = 0; h < SMALL; h++)
		for (uint64_t v = 0; v < SMALL; v++)
			all[h * SMALL + v] = hash_mix(h, v);
	qsort(all, SMALL * SMALL, sizeof *all, compare);
	for (size_t i = 1; i < SMALL * SMALL; i++)
		assert_true(all[i] != all[i - 1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_digests),
		cmocka_unit_test(a_pair_is_the_joined_text),
		cmocka_unit_test(parts_are_the_joined_text),
		cmocka_unit_test(the_table_hash_sees_length_seed_and_every_byte),
		cmocka_unit_test(the_table_hash_does_not_care_where_the_bytes_lie),
		cmocka_unit_test(pairs_of_small_numbers_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
