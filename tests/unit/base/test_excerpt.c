/* Foreign text made visible: nothing breaks a line, drives a terminal or splits a character. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/excerpt.h"
#include "base/utf8.h"

static void ordinary_text_is_shown_as_it_is(void **state)
{
	(void)state;
	assert_string_equal(excerpt_of(slice_str("run_01h9 \"quoted\" h\xc3\xa9llo")).text,
			    "run_01h9 \"quoted\" h\xc3\xa9llo");
	assert_string_equal(excerpt_of(slice_of(NULL, 0)).text, "");
}

static void what_is_not_printable_is_escaped(void **state)
{
	(void)state;
	assert_string_equal(excerpt_of(slice_of("a\0\n\t\x1b[31m\x7f", 10)).text, "a\\u0000\\n\\t\\u001b[31m\\u007f");
	assert_string_equal(excerpt_of(slice_str("\xc2\x85 \xc2\x9b \xe2\x80\xa8 \xe2\x80\xa9")).text,
			    "\\u0085 \\u009b \\u2028 \\u2029");
	assert_string_equal(excerpt_of(slice_str("a\xe2\x80\xaa \xe2\x80\xae \xe2\x81\xa6 \xe2\x81\xa9")).text,
			    "a\\u202a \\u202e \\u2066 \\u2069");
	assert_string_equal(excerpt_of(slice_str("\xff\xc3(\xed\xa0\x80")).text, "\\xff\\xc3(\\xed\\xa0\\x80");
	assert_string_equal(excerpt_of(slice_str("\\n")).text,
			    "\\n"); /* known limit: not told apart from a line feed */
}

static void a_long_text_is_cut_at_the_limit_and_not_before(void **state)
{
	char text[EXCERPT_BYTES_MAX + 1];

	(void)state;
	memset(text, 'x', sizeof text);

	struct excerpt whole = excerpt_of(slice_of(text, EXCERPT_BYTES_MAX));
	struct excerpt cut = excerpt_of(slice_of(text, EXCERPT_BYTES_MAX + 1));

	assert_int_equal(strlen(whole.text), EXCERPT_BYTES_MAX);
	assert_int_equal(strlen(cut.text), EXCERPT_BYTES_MAX + 3);
	assert_string_equal(cut.text + EXCERPT_BYTES_MAX, "...");
}

static void a_cut_never_splits_a_character_or_an_escape(void **state)
{
	static const char *const pieces[] = {"\xf0\x9f\x98\x80", "\x01", "\xff", "\xc3\xa9", "\n"};

	(void)state;
	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		for (size_t pad = 0; pad < 8; pad++) {
			char text[300] = {0};

			memset(text, 'x', pad);
			while (strlen(text) + 4 < sizeof text)
				memcpy(text + strlen(text), pieces[i], strlen(pieces[i]));

			struct excerpt e = excerpt_of(slice_str(text));
			size_t n = strlen(e.text);
			struct slice one = slice_str(pieces[i]);
			char shown[EXCERPT_PIECE_BYTES];
			unsigned length = excerpt_take(&one, false, shown);

			assert_int_equal(utf8_valid_bytes(slice_of(e.text, n)), n);
			assert_memory_equal(e.text + n - 3, "...", 3);
			assert_int_equal((n - 3 - pad) % length, 0);
		}
	}
}

static void quoted_pieces_make_a_json_string(void **state)
{
	struct slice text = slice_of("\"\\\n\x1f\xff/\0", 7);
	char all[64];
	size_t n = 0;

	(void)state;
	while (text.n > 0) {
		char piece[EXCERPT_PIECE_BYTES];
		unsigned taken = excerpt_take(&text, true, piece);

		assert_in_range(taken, 1, 6);
		memcpy(all + n, piece, taken);
		n += taken;
	}
	all[n] = '\0';
	assert_string_equal(all, "\\\"\\\\\\n\\u001f\\\\xff/\\u0000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_text_is_shown_as_it_is),
		cmocka_unit_test(what_is_not_printable_is_escaped),
		cmocka_unit_test(a_long_text_is_cut_at_the_limit_and_not_before),
		cmocka_unit_test(a_cut_never_splits_a_character_or_an_escape),
		cmocka_unit_test(quoted_pieces_make_a_json_string),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
