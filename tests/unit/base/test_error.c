/* The closed list of errors: every code has its texts, and a detail is cut cleanly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/utf8.h"

static void every_code_has_its_maps(void **state)
{
	(void)state;
	for (int i = 0; i < HX_CODE_COUNT; i++) {
		enum hx_code code = (enum hx_code)i;

		assert_true(hx_code_name(code)[0] != '\0');
		assert_true(hx_code_text(code)[0] != '\0');
		assert_in_range(hx_code_http_status(code), 200, 599);
		assert_in_range(hx_code_exit(code), 0, 125);
		assert_true((hx_code_exit(code) == 0) == (code == HX_OK));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(hx_code_name(code), hx_code_name((enum hx_code)j));
	}
	assert_string_equal(hx_code_name(HX_CLAIM_FAILED), "CLAIM_FAILED");
	assert_int_equal(hx_code_http_status(HX_NOT_FOUND), 404);
	assert_string_equal(hx_version(), HX_VERSION);
}

static void a_number_out_of_range_is_internal(void **state)
{
	(void)state;
	assert_string_equal(hx_code_name(HX_CODE_COUNT), "INTERNAL");
	assert_string_equal(hx_code_name((enum hx_code) - 1), "INTERNAL");
	assert_string_equal(hx_code_text((enum hx_code)100000), hx_code_text(HX_INTERNAL));
	assert_int_equal(hx_code_http_status((enum hx_code) - 1), 500);
	assert_int_equal(hx_code_exit((enum hx_code) - 1), 70);
}

static void set_returns_its_code_and_takes_null(void **state)
{
	struct hx_error err;

	(void)state;
	assert_int_equal(error_set(&err, HX_BUSY, "%d waiting", 7), HX_BUSY);
	assert_int_equal(err.code, HX_BUSY);
	assert_string_equal(err.detail, "7 waiting");
	assert_int_equal(error_set(NULL, HX_BUSY, "%d waiting", 7), HX_BUSY);
}

static void a_detail_at_the_limit_stays_whole(void **state)
{
	struct hx_error err;
	const int room = sizeof err.detail - 1;

	(void)state;
	error_set(&err, HX_BUSY, "%0*d", room, 1);
	assert_int_equal(strlen(err.detail), room);
	assert_int_equal(err.detail[room - 1], '1');
	error_set(&err, HX_BUSY, "%0*d", room + 1, 1);
	assert_int_equal(strlen(err.detail), room);
	assert_int_equal(err.detail[room - 1], '0');
}

/* A cut inside of a character would make the problem+json around it invalid. */
static void a_cut_falls_between_characters(void **state)
{
	struct hx_error err;

	(void)state;
	for (int pad = 0; pad < 8; pad++) {
		char text[400] = {0};

		memset(text, 'x', (size_t)pad);
		for (size_t i = (size_t)pad; i + 4 < sizeof text; i += 4)
			memcpy(text + i, "\xf0\x9f\x98\x80", 4);
		error_set(&err, HX_BUSY, "%s", text);
		assert_int_equal(utf8_valid_bytes(slice_str(err.detail)), strlen(err.detail));
		assert_true(strlen(err.detail) > sizeof err.detail - 5);
	}
}

static void an_error_may_be_wrapped_in_itself(void **state)
{
	struct hx_error err;

	(void)state;
	error_set(&err, HX_DATA_ERROR, "3:4: a colon");
	error_set(&err, err.code, "%s:%s", "billing.json", err.detail);
	assert_string_equal(err.detail, "billing.json:3:4: a colon");
	assert_int_equal(err.code, HX_DATA_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_its_maps),
		cmocka_unit_test(a_number_out_of_range_is_internal),
		cmocka_unit_test(set_returns_its_code_and_takes_null),
		cmocka_unit_test(a_detail_at_the_limit_stays_whole),
		cmocka_unit_test(a_cut_falls_between_characters),
		cmocka_unit_test(an_error_may_be_wrapped_in_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
