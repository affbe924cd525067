/* Numbers by exact value: one normal form, exact comparison, integers without a detour over double. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/json_number.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static struct json checked(const char *text)
{
	struct hx_error err;
	struct json value = {{NULL, 0}};

	if (json_check(slice_str(text), &err, &value) != HX_OK)
		fail_msg("%s: %s", text, err.detail);
	return value;
}

static void assert_normal(const char *text, const char *expected)
{
	struct json_number number = json_number_of(checked(text));
	struct strbuf sb;

	strbuf_init(&sb, strlen(text) + 24);
	json_number_append(&number, &sb);
	assert_string_equal(sb.p, expected);

	/* It is a number itself, and already in its normal form. */
	struct json_number again = json_number_of(checked(expected));

	strbuf_reset(&sb);
	json_number_append(&again, &sb);
	assert_string_equal(sb.p, expected);
	assert_int_equal(json_number_compare(&number, &again), 0);
	strbuf_release(&sb);
}

static void one_spelling_per_value(void **state)
{
	/* clang-format off */
	static const char *const cases[][2] = {
		{"0", "0"}, {"-0", "0"}, {"0.0", "0"}, {"-0.000", "0"}, {"0e5", "0"},
		{"-0e-999999999999999999999999", "0"}, {"1", "1"}, {"1.0", "1"}, {"1e0", "1"}, {"1E+0", "1"},
		{"1e-0", "1"}, {"10e-1", "1"}, {"0.1e1", "1"}, {"100e-2", "1"}, {"0.001e3", "1"},
		{"1.000e00000", "1"}, {"-1.0", "-1"}, {"-10e-1", "-1"}, {"12", "12"}, {"120", "12e1"}, {"100", "1e2"},
		{"1e2", "1e2"}, {"1.5", "15e-1"}, {"0.5", "5e-1"}, {"-0.5", "-5e-1"}, {"10.01", "1001e-2"},
		{"0.0120e+07", "12e4"}, {"1.10", "11e-1"}, {"101.0", "101"}, {"1010.0", "101e1"},
		{"9007199254740992", "9007199254740992"}, {"9007199254740993", "9007199254740993"},
		{"9007199254740993.0", "9007199254740993"},
		{"123456789012345678901234567890", "12345678901234567890123456789e1"}, {"1e400", "1e400"},
		{"10e399", "1e400"}, {"0.1e401", "1e400"}, {"1e-400", "1e-400"},
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_normal(cases[i][0], cases[i][1]);
}

/* Exponents of 18 digits are int64, longer ones are decimal text: nothing may show where one ends. */
static void huge_exponents_stay_exact(void **state)
{
	/* clang-format off */
	static const char *const cases[][2] = {
		{"1e999999999999", "1e999999999999"}, {"10e999999999998", "1e999999999999"},
		{"1e999999999999999999", "1e999999999999999999"}, {"10e999999999999999999", "1e1000000000000000000"},
		{"1e1000000000000000000", "1e1000000000000000000"},
		{"0.1e1000000000000000000", "1e999999999999999999"},
		{"0.1e-999999999999999999", "1e-1000000000000000000"},
		{"10e-1000000000000000000", "1e-999999999999999999"},
		{"0.001e-1000000000000000000", "1e-1000000000000000003"},
		{"1000e9999999999999999999999", "1e10000000000000000000002"},
		{"1.25e10000000000000000000001", "125e9999999999999999999999"},
		{"10e9999999999999999999", "1e10000000000000000000"},
		{"1.5e-99999999999999999999", "15e-100000000000000000000"},
		{"1e00000000000000000000000000000000007", "1e7"},
		{"-1e+99999999999999999999999999999999999", "-1e99999999999999999999999999999999999"},
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_normal(cases[i][0], cases[i][1]);
}

static void a_failed_buffer_is_survived(void **state)
{
	struct json_number number = json_number_of(checked("1.5e-99999999999999999999"));

	(void)state;
	for (size_t room = 0; room < 25; room++) {
		struct strbuf sb;

		strbuf_init(&sb, room);
		json_number_append(&number, &sb);
		assert_true(sb.failed || room >= 24); /* 15e- and 21 digits, of which one may be a spare */
		strbuf_release(&sb);
	}
}

static void comparison_is_exact(void **state)
{
	/* Rising; every one is compared with every other. */
	/* clang-format off */
	static const char *const rising[] = {
		"-1e99999999999999999999", "-9e99999999999999999998", "-1e400", "-123.5", "-123.4999999999999999999",
		"-10", "-9.5", "-1e-400", "-1e-99999999999999999999", "0", "1e-99999999999999999999",
		"2e-99999999999999999999", "1e-400", "0.1", "0.10000000000000000000000001", "0.5", "0.75", "1", "1.5",
		"9", "10", "11", "99.9", "100", "9007199254740992", "9007199254740993", "18446744073709551616",
		"1e400", "1.01e400", "1e401", "1e999999999999999999", "1e1000000000000000000",
		"1.5e1000000000000000000", "1e99999999999999999999", "1e100000000000000000000",
	};
	/* clang-format on */
	/* clang-format off */
	static const char *const equal[][2] = {
		{"0", "-0.0e7"}, {"1", "1.0"}, {"10.0", "1e1"}, {"1.25", "125e-2"}, {"12.5e1", "1.25e2"},
		{"1e1000000000000000000", "10e999999999999999999"},
		{"0.01e-99999999999999999999", "1e-100000000000000000001"},
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < COUNT(rising); i++) {
		for (size_t j = 0; j < COUNT(rising); j++) {
			struct json_number a = json_number_of(checked(rising[i])),
					   b = json_number_of(checked(rising[j]));
			int order = json_number_compare(&a, &b);

			if ((order > 0) - (order < 0) != (i > j) - (i < j))
				fail_msg("%s and %s: %d", rising[i], rising[j], order);
		}
	}
	for (size_t i = 0; i < COUNT(equal); i++) {
		struct json_number a = json_number_of(checked(equal[i][0])), b = json_number_of(checked(equal[i][1]));

		assert_int_equal(json_number_compare(&a, &b), 0);
		assert_int_equal(json_number_compare(&b, &a), 0);
	}
}

static void integers(void **state)
{
	/* clang-format off */
	static const struct {
		const char *text;
		int64_t value;
	} good[] = {
		{"0", 0}, {"-0", 0}, {"-0.0", 0}, {"0e99999999999999999999999", 0}, {"7", 7}, {"-7", -7}, {"7.0", 7},
		{"70e-1", 7}, {"1e2", 100}, {"1.5e1", 15}, {"0.001e3", 1}, {"1E+3", 1000},
		{"9007199254740993", 9007199254740993}, {"9223372036854775807", INT64_MAX},
		{"-9223372036854775808", INT64_MIN}, {"-9223372036854775807", -INT64_MAX},
		{"9223372036854775807.000", INT64_MAX}, {"922337203685477580.7e1", INT64_MAX},
		{"-92233720368547758080e-1", INT64_MIN}, {"1e18", 1000000000000000000},
		{"1000000000000000000000e-3", 1000000000000000000},
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		struct hx_error err;
		int64_t value = -77;

		if (json_int64(checked(good[i].text), &err, &value) != HX_OK)
			fail_msg("%s: %s", good[i].text, err.detail);
		assert_true(value == good[i].value);
	}
}

static void what_is_no_64_bit_integer(void **state)
{
	static const char *const bad[][2] = {
		{"0.5", "0.5 is not an integer"},
		{"1e-1", "1e-1 is not an integer"},
		{"9007199254740992.5", "9007199254740992.5 is not an integer"},
		{"1e-99999999999999999999", "1e-99999999999999999999 is not an integer"},
		{"1.00000000000000000000000001", "1.00000000000000000000000001 is not an integer"},
		{"9223372036854775808", "9223372036854775808 does not fit into 64 bits"},
		{"-9223372036854775809", "-9223372036854775809 does not fit into 64 bits"},
		{"1e19", "1e19 does not fit into 64 bits"},
		{"18446744073709551617", "18446744073709551617 does not fit into 64 bits"},
		{"1e400", "1e400 does not fit into 64 bits"},
		{"-1e999999999999999999", "-1e999999999999999999 does not fit into 64 bits"},
		{"1e9999999999999999999999", "1e9999999999999999999999 does not fit into 64 bits"},
		{"\"7\"", "a number is expected here, this is: string"},
		{"null", "a number is expected here, this is: null"},
		{"[7]", "a number is expected here, this is: array"},
		{"true", "a number is expected here, this is: boolean"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct hx_error err;
		int64_t value = -77;

		assert_int_equal(json_int64(checked(bad[i][0]), &err, &value), HX_VALIDATION_ERROR);
		assert_string_equal(err.detail, bad[i][1]);
		assert_int_equal(value, -77);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_spelling_per_value),
		cmocka_unit_test(huge_exponents_stay_exact),
		cmocka_unit_test(a_failed_buffer_is_survived),
		cmocka_unit_test(comparison_is_exact),
		cmocka_unit_test(integers),
		cmocka_unit_test(what_is_no_64_bit_integer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
