/* UTF-8 against its definition: every code point, and every pair of a lead and a second byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/utf8.h"

static void every_code_point_goes_there_and_back(void **state)
{
	(void)state;
	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		char bytes[4];

		if (code >= 0xd800 && code <= 0xdfff)
			continue;

		unsigned n = utf8_encode(code, bytes);

		if (utf8_sequence(bytes, bytes + n) != n || utf8_decode(bytes, n) != code)
			fail_msg("U+%04X", code);
		if (n > 1 && utf8_sequence(bytes, bytes + n - 1) != 0)
			fail_msg("U+%04X without its last byte", code);
	}
}

/* What remains when surrogates, overlong forms and numbers past the end are taken out, counted by hand. */
static void exactly_the_well_formed_sequences_are_accepted(void **state)
{
	unsigned count[5] = {0};

	(void)state;
	for (unsigned lead = 0; lead < 256; lead++) {
		for (unsigned second = 0; second < 256; second++) {
			char bytes[4] = {(char)lead, (char)second, (char)0x80, (char)0x80};

			count[utf8_sequence(bytes, bytes + 4)]++;
		}
	}
	assert_int_equal(count[1], 128 * 256);
	assert_int_equal(count[2], 30 * 64);
	assert_int_equal(count[3], 32 + 14 * 64 + 32);
	assert_int_equal(count[4], 48 + 3 * 64 + 16);
}

static void faults_are_refused(void **state)
{
	/* clang-format off */
	static const char *const bad[] = {
		"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xed\xa0\x80",
		"\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
		"\xff", "\xfe", "\xc3", "\xc3(", "\xe2\x82", "\xe2\x82(", "\xe2(\xac", "\xf0\x9f\x98",
		"\xf0\x9f\x98(", "\xf0\x9f(\x80", "\xf8\x88\x80\x80\x80",
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct slice text = slice_str(bad[i]);

		assert_int_equal(utf8_sequence(text.p, text.p + text.n), 0);
		assert_int_equal(utf8_valid_bytes(text), 0);
	}
}

static void the_valid_beginning_is_measured(void **state)
{
	(void)state;
	assert_int_equal(utf8_valid_bytes(slice_of(NULL, 0)), 0);
	assert_int_equal(utf8_valid_bytes(slice_of("a\0b", 3)), 3);
	assert_int_equal(utf8_valid_bytes(slice_str("h\xc3\xa9llo")), 6);
	assert_int_equal(utf8_valid_bytes(slice_str("h\xc3\xa9\xffllo")), 3);
	assert_int_equal(utf8_valid_bytes(slice_str("h\xc3")), 1);
}

static void a_cut_drops_only_what_has_lost_its_end(void **state)
{
	static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
	static const size_t kept[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};

	(void)state;
	for (size_t n = 0; n < sizeof kept / sizeof kept[0]; n++)
		assert_int_equal(utf8_cut(slice_of(text, n)), kept[n]);
	assert_int_equal(utf8_cut(slice_of(NULL, 0)), 0);
	/* Garbage is not a character that lost its end, and is left alone. */
	assert_int_equal(utf8_cut(slice_str("\x80\x80\x80\x80")), 4);
	assert_int_equal(utf8_cut(slice_str("a\xff")), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_point_goes_there_and_back),
		cmocka_unit_test(exactly_the_well_formed_sequences_are_accepted),
		cmocka_unit_test(faults_are_refused),
		cmocka_unit_test(the_valid_beginning_is_measured),
		cmocka_unit_test(a_cut_drops_only_what_has_lost_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
