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

		if (i != HX_INTERNAL && strcmp(hx_code_name(code), "INTERNAL") == 0)
			continue; /* it is nobody's */
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

/*
 * Programs that were compiled with an older header know codes by number. A new code takes the next number, and its line here;
 * no line is ever changed.
 */
static const char *const pinned[] = {
	[0] = "OK",
	[1] = "VALIDATION_ERROR",
	[2] = "BAD_REQUEST",
	[3] = "KEY_REQUIRED",
	[4] = "KEY_INVALID",
	[5] = "UNAUTHENTICATED",
	[6] = "FORBIDDEN",
	[7] = "REQUESTER_NOT_ALLOWED",
	[8] = "NOT_FOUND",
	[9] = "METHOD_NOT_ALLOWED",
	[10] = "REQUEST_TIMEOUT",
	[11] = "WRONG_STATUS",
	[12] = "CLAIM_FAILED",
	[13] = "ALREADY_EXISTS",
	[14] = "CONCURRENCY_ERROR",
	[15] = "ALREADY_COMPLETED",
	[16] = "STALE_FENCE",
	[17] = "ENTRY_LOCKED",
	[18] = "IN_FLIGHT",
	[19] = "RESPONSE_NOT_STORED",
	[20] = "RUN_EXPIRED",
	[21] = "TOO_LARGE",
	[22] = "URI_TOO_LONG",
	[23] = "UNSUPPORTED_ENCODING",
	[24] = "EXPECTATION_FAILED",
	[25] = "INVALID",
	[26] = "FINGERPRINT_MISMATCH",
	[27] = "DEFINITION_INVALID",
	[28] = "HEAD_TOO_LARGE",
	[29] = "NO_MEMORY",
	[30] = "INTERNAL",
	[31] = "DATA_ERROR",
	[32] = "PROMISE_BROKEN",
	[33] = "SCHEMA_MISMATCH",
	[34] = "CONFIG_ERROR",
	[35] = "NOT_IMPLEMENTED",
	[36] = "ACTION_FAILED",
	[37] = "BAD_GATEWAY",
	[38] = "UPSTREAM_UNREACHABLE",
	[39] = "STORE_UNAVAILABLE",
	[40] = "SERVER_UNAVAILABLE",
	[41] = "BUSY",
	[42] = "STOPPING",
	[43] = "OUTCOME_UNKNOWN",
	[44] = "UPSTREAM_TIMEOUT",
	[45] = "VERSION_NOT_SUPPORTED",
	[46] = "KEY_REUSED",
	[47] = "HELD",
	[48] = "CALLER_MISMATCH",
	[49] = "RECORD_DAMAGED",
	[50] = "IN_DOUBT",
	[51] = "KEY_RESERVED",
	[54] = "BAD_SIGNATURE",
	[55] = "BAD_QUERY",
	[56] = "NO_LONGER_MATCHES",
	[58] = "RESTARTED",
	[60] = "CANNOT_MIGRATE",
	[70] = "SEQ_CONFLICT",
	[71] = "CANCELLED",
	[72] = "NAME_TAKEN",
	[73] = "BAD_ENTRY",
	[74] = "STEP_OPEN",
	[75] = "NOTHING_TO_WAIT_FOR",
	[76] = "JOURNAL_FULL",
	[77] = "LIMITED",
};

static void a_number_stays_what_it_is(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
		assert_string_equal(hx_code_name((enum hx_code)i), pinned[i] ? pinned[i] : "INTERNAL");
	assert_int_equal(HX_CODE_COUNT, sizeof pinned / sizeof *pinned);
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
		cmocka_unit_test(a_number_stays_what_it_is),
		cmocka_unit_test(a_number_out_of_range_is_internal),
		cmocka_unit_test(set_returns_its_code_and_takes_null),
		cmocka_unit_test(a_detail_at_the_limit_stays_whole),
		cmocka_unit_test(a_cut_falls_between_characters),
		cmocka_unit_test(an_error_may_be_wrapped_in_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
