/* Durations: the five units, the ceiling of each at its edge, and everything that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/duration.h"

static int64_t parsed(const char *text)
{
	struct hx_error err;
	int64_t ms = -1;

	if (duration_parse("lease", slice_str(text), &err, &ms) != HX_OK)
		fail_msg("%s: %s", text, err.detail);
	return ms;
}

static void units(void **state)
{
	(void)state;
	assert_int_equal(parsed("250ms"), 250);
	assert_int_equal(parsed("1ms"), 1);
	assert_int_equal(parsed("5s"), 5000);
	assert_int_equal(parsed("2m"), 120000);
	assert_int_equal(parsed("24h"), 86400000);
	assert_int_equal(parsed("7d"), 604800000);
	assert_int_equal(parsed("100s"), 100000);
}

static void the_ceiling_holds_at_the_limit_and_one_past(void **state)
{
	static const struct {
		const char *longest, *too_long;
	} limits[] = {
		{"100000d", "100001d"},
		{"2400000h", "2400001h"},
		{"144000000m", "144000001m"},
		{"8640000000s", "8640000001s"},
		{"8640000000000ms", "8640000000001ms"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		struct hx_error err;
		int64_t ms = -1;

		assert_true(parsed(limits[i].longest) == DURATION_MS_MAX);
		assert_int_equal(duration_parse("ttl", slice_str(limits[i].too_long), &err, &ms), HX_VALIDATION_ERROR);
		assert_non_null(strstr(err.detail, "too long"));
		assert_int_equal(ms, -1);
	}
	/* Its nanoseconds fit beside an uptime of years. */
	assert_true(DURATION_MS_MAX < INT64_MAX / 1000000 - INT64_C(10) * 365 * 86400 * 1000);
}

static void what_is_refused_is_named(void **state)
{
	/* clang-format off */
	static const char *const bad[] = {
		"", "s", "5", "0", "0s", "0ms", "00s", "-5s", "+5s", "1.5s", "1e3s", " 5s", "5s ", "5 s", "\t5s",
		"5s\n", "05s", "007m", "5S", "5MS", "5sec", "5s5", "1h30m", "five s", "0x10s", "5us", "5w", "5y",
		"ms", "5mss", "5,5s", "\xd9\xa3s", "9223372036854775807ms", "9223372036854775808ms",
		"18446744073709551617s", "99999999999999999999999999999d",
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct hx_error err = {0};
		int64_t ms = -1;

		if (duration_parse("entry_lock", slice_str(bad[i]), &err, &ms) != HX_VALIDATION_ERROR)
			fail_msg("\"%s\" was accepted", bad[i]);
		assert_int_equal(ms, -1);
		assert_int_equal(err.code, HX_VALIDATION_ERROR);
		assert_true(strncmp(err.detail, "entry_lock: \"", 13) == 0);
	}
	assert_int_equal(duration_parse("x", slice_of(NULL, 0), NULL, &(int64_t){0}), HX_VALIDATION_ERROR);
	assert_int_equal(duration_parse("x", slice_of("5s\0", 3), NULL, &(int64_t){0}), HX_VALIDATION_ERROR);
}

static void the_detail_shows_the_value_safely(void **state)
{
	char text[1000];
	struct hx_error err;
	int64_t ms;

	(void)state;
	assert_int_equal(duration_parse("lease", slice_str("5\x1b[2Js"), &err, &ms), HX_VALIDATION_ERROR);
	assert_string_equal(err.detail,
			    "lease: \"5\\u001b[2Js\" is not a duration; write it like 250ms, 5s, 2m, 24h or 7d");
	memset(text, '9', sizeof text);
	assert_int_equal(duration_parse("lease", slice_of(text, sizeof text), &err, &ms), HX_VALIDATION_ERROR);
	assert_non_null(strstr(err.detail, "999...\" is not a duration"));
}

static void text_is_shortest_and_comes_back(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{1, "1ms"},
		{999, "999ms"},
		{1000, "1s"},
		{1001, "1001ms"},
		{60000, "1m"},
		{90000, "90s"},
		{3600000, "1h"},
		{5400000, "90m"},
		{86400000, "1d"},
		{90000000, "25h"},
		{604800000, "7d"},
		{DURATION_MS_MAX, "100000d"},
		{DURATION_MS_MAX - 1, "8639999999999ms"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[DURATION_TEXT_BYTES];

		duration_format(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
		assert_true(parsed(text) == cases[i].ms);
	}
}

static void any_number_has_a_text(void **state)
{
	char text[DURATION_TEXT_BYTES];

	(void)state;
	duration_format(0, text);
	assert_string_equal(text, "0ms");
	duration_format(-5000, text);
	assert_string_equal(text, "-5s");
	duration_format(INT64_MIN, text);
	assert_string_equal(text, "-9223372036854775808ms");
	duration_format(INT64_MAX, text);
	assert_string_equal(text, "9223372036854775807ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units),
		cmocka_unit_test(the_ceiling_holds_at_the_limit_and_one_past),
		cmocka_unit_test(what_is_refused_is_named),
		cmocka_unit_test(the_detail_shows_the_value_safely),
		cmocka_unit_test(text_is_shortest_and_comes_back),
		cmocka_unit_test(any_number_has_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
