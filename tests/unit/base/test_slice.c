/* Slices: equality, order, and printing without a terminator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/slice.h"

static int sign(int order)
{
	return (order > 0) - (order < 0);
}

static void equality_counts_every_byte(void **state)
{
	(void)state;
	assert_true(slice_eq(slice_str("abc"), slice_of("abcd", 3)));
	assert_false(slice_eq(slice_str("abc"), slice_str("abd")));
	assert_false(slice_eq(slice_str("abc"), slice_str("ab")));
	assert_true(slice_eq(slice_of(NULL, 0), slice_str("")));
	assert_false(slice_eq(slice_of("a\0b", 3), slice_of("a\0c", 3)));
	assert_int_equal(slice_str(NULL).n, 0);
	assert_true(slice_is(slice_of("run_", 3), "run"));
	assert_false(slice_is(slice_of("run\0", 4), "run"));
}

static void order_is_by_bytes_and_then_by_length(void **state)
{
	static const char *const sorted[] = {"", "A", "a", "aa", "ab", "b", "\x7f", "\xc3\xa9", "\xf0\x9f\x98\x80"};
	const int n = sizeof sorted / sizeof sorted[0];

	(void)state;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			assert_int_equal(sign(slice_compare(slice_str(sorted[i]), slice_str(sorted[j]))), sign(i - j));
	assert_int_equal(slice_compare(slice_of(NULL, 0), slice_of(NULL, 0)), 0);
	assert_true(slice_compare(slice_of("a\0", 2), slice_str("a")) > 0);
}

static void arguments_for_printf(void **state)
{
	char text[32];

	(void)state;
	snprintf(text, sizeof text, "<%.*s>", SLICE_ARGS(slice_of("abcdef", 3)));
	assert_string_equal(text, "<abc>");
	snprintf(text, sizeof text, "<%.*s>", SLICE_ARGS(slice_of(NULL, 0)));
	assert_string_equal(text, "<>");
	/* A length past INT_MAX must not turn into a negative precision, which has no bound at all. */
	snprintf(text, sizeof text, "<%.*s>", SLICE_ARGS(slice_of("terminated", (size_t)INT_MAX + 1)));
	assert_string_equal(text, "<terminated>");
}

static void a_cut_tells_an_empty_rest_from_none(void **state)
{
	struct slice rest = slice_str("a=");

	(void)state;
	assert_true(slice_is(slice_cut(&rest, '='), "a"));
	assert_true(rest.p && rest.n == 0);
	rest = slice_str("ab");
	assert_true(slice_is(slice_cut(&rest, '='), "ab"));
	assert_null(rest.p);
	assert_int_equal(slice_cut(&rest, '=').n, 0);
	assert_null(rest.p);
}

static void lists_are_read_item_by_item(void **state)
{
	static const char *const known[] = {"close", "te", NULL};
	struct slice rest = slice_str(" , a b ,,CLOSE\t,"), item;

	(void)state;
	assert_true(slice_list_next(&rest, &item));
	assert_true(slice_is(item, "a b"));
	assert_true(slice_list_next(&rest, &item));
	assert_true(slice_in_nocase(item, known));
	assert_false(slice_in(item, known));
	assert_false(slice_list_next(&rest, &item));
}

static void a_beginning_may_be_all_of_it(void **state)
{
	(void)state;
	assert_true(slice_starts(slice_str("http"), "http"));
	assert_false(slice_starts(slice_str("htt"), "http"));
	assert_false(slice_starts(slice_str("HTTP"), "http"));
	assert_true(slice_starts_nocase(slice_str("HTTPs"), "http"));
	assert_false(slice_is_nocase(slice_str("k"), "\xe2\x84\xaa")); /* the sign of the kelvin, in no locale */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equality_counts_every_byte),  cmocka_unit_test(order_is_by_bytes_and_then_by_length),
		cmocka_unit_test(arguments_for_printf),        cmocka_unit_test(a_cut_tells_an_empty_rest_from_none),
		cmocka_unit_test(lists_are_read_item_by_item), cmocka_unit_test(a_beginning_may_be_all_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
