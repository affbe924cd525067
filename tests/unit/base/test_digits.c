/* Decimal numbers at their limits, bytes in hex, and the types that are JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/digits.h"
#include "base/media_type.h"

static void a_number_is_digits_up_to_its_limit(void **state)
{
	static const char *const wrong[] = {"", "-1", "+1", " 1", "1 ", "1.0", "0x1", "256", "18446744073709551616"};
	uint64_t number = 7;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(digits_number(slice_str(wrong[i]), 255, &number));
	assert_true(digits_number(slice_str("255"), 255, &number));
	assert_int_equal(number, 255);
	assert_true(digits_number(slice_str("000255"), 255, &number));
	assert_true(digits_number(slice_str("18446744073709551615"), UINT64_MAX, &number));
	assert_true(number == UINT64_MAX);
	assert_false(digits_number(slice_str("18446744073709551616"), UINT64_MAX, &number));
	assert_false(digits_number(slice_str("99999999999999999999"), UINT64_MAX, &number));
}

static void bytes_come_back_out_of_hex(void **state)
{
	unsigned char bytes[2];
	char text[5];

	(void)state;
	hex_write("\x0f\xa0", 2, text);
	assert_string_equal(text, "0fa0");
	assert_true(hex_read(slice_str("0FA0"), 2, bytes));
	assert_memory_equal(bytes, "\x0f\xa0", 2);
	assert_false(hex_read(slice_str("0fa"), 2, bytes));
	assert_false(hex_read(slice_str("0fa00f"), 2, bytes));
	assert_false(hex_read(slice_str("0fg0"), 2, bytes));
}

static void types_of_json(void **state)
{
	static const char *const json[] = {"application/json", "Text/JSON ; charset=utf-8", "application/problem+json",
					   "a/B+Json;x"};
	static const char *const not_json[] = {"",     "application/jsonl",  "text/plain", "+json",
					       "json", "text/plain;a/b+json"};

	(void)state;
	for (size_t i = 0; i < sizeof json / sizeof *json; i++)
		assert_true(media_type_is_json(slice_str(json[i])));
	for (size_t i = 0; i < sizeof not_json / sizeof *not_json; i++)
		assert_false(media_type_is_json(slice_str(not_json[i])));
	assert_false(media_type_is_json(slice_of(NULL, 0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_is_digits_up_to_its_limit),
		cmocka_unit_test(bytes_come_back_out_of_hex),
		cmocka_unit_test(types_of_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
