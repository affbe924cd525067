/* Headers of http actions. */
#include "definition.h"

#include "model/header.h"

static enum hx_code check(const char *name, const char *value)
{
	struct hx_error err;

	return header_check(slice_str(name), slice_str(value), &err);
}

static void accepted(void **state)
{
	(void)state;
	assert_int_equal(check("Authorization", "Bearer ${env:TOKEN}"), HX_OK);
	assert_int_equal(check("X-Tenant", ""), HX_OK);
	assert_int_equal(check("x-a", "${file:/run/secrets/token} and ${env:A_1}\t!"), HX_OK);
	assert_int_equal(check("X-Price", "$5 {x} \xe2\x82\xac $"), HX_OK);
	assert_int_equal(check("Host", "inner"), HX_OK);
}

static void names_are_tokens(void **state)
{
	(void)state;
	assert_int_equal(check("", "x"), HX_VALIDATION_ERROR);
	assert_int_equal(check("X Y", "x"), HX_VALIDATION_ERROR);
	assert_int_equal(check("X:", "x"), HX_VALIDATION_ERROR);
	assert_int_equal(check("X\r\nY", "x"), HX_VALIDATION_ERROR);
	assert_int_equal(check("\xc3\xa9", "x"), HX_VALIDATION_ERROR);
	assert_int_equal(header_check(slice_of("X\0", 2), slice_str("x"), NULL), HX_VALIDATION_ERROR);
}

static void the_engines_own_are_not_for_users(void **state)
{
	static const char *const ours[] = {"Idempotency-Key", "idempotency-key",    "HAPAX-Fence",
					   "hapax-anything",  "Content-Length",     "transfer-encoding",
					   "Traceparent",     "proxy-authorization"};

	(void)state;
	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
		assert_int_equal(check(ours[i], "x"), HX_VALIDATION_ERROR);
	assert_int_equal(check("Hapax", "x"), HX_OK);
	assert_int_equal(check("Content-Lengths", "x"), HX_OK);
}

static void values_hold_no_control_characters(void **state)
{
	(void)state;
	assert_int_equal(check("X", "a\r\nY: b"), HX_VALIDATION_ERROR);
	assert_int_equal(check("X", "a\nb"), HX_VALIDATION_ERROR);
	assert_int_equal(check("X", "a\x7f"), HX_VALIDATION_ERROR);
	assert_int_equal(header_check(slice_str("X"), slice_of("a\0b", 3), NULL), HX_VALIDATION_ERROR);
}

static void placeholders_are_one_of_two(void **state)
{
	static const char *const bad[] = {"${}",      "${env:}", "${env:1A}", "${env:A B}",     "${file:}",
					  "${TOKEN}", "${env:A", "${Env:A}",  "a ${env:A} ${x}"};
	struct hx_error err;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(check("X", bad[i]), HX_VALIDATION_ERROR);
	assert_int_equal(header_check(slice_str("X"), slice_str("secret ${x}"), &err), HX_VALIDATION_ERROR);
	assert_null(strstr(err.detail, "secret")); /* a value may be one */
}

static void the_length_is_limited(void **state)
{
	char value[HEADER_BYTES_MAX + 1];

	(void)state;
	memset(value, 'a', sizeof value);
	assert_int_equal(header_check(slice_str("X"), slice_of(value, HEADER_BYTES_MAX), NULL), HX_OK);
	assert_int_equal(header_check(slice_str("X"), slice_of(value, HEADER_BYTES_MAX + 1), NULL),
			 HX_VALIDATION_ERROR);
}

static void a_secret_in_the_clear_is_seen(void **state)
{
	static const char *const secret[] = {"Authorization", "X-API-Key", "x-auth-token", "Cookie", "Client-Secret"};

	(void)state;
	for (size_t i = 0; i < sizeof secret / sizeof *secret; i++) {
		assert_true(header_has_literal_secret(slice_str(secret[i]), slice_str("Bearer abc")));
		assert_false(header_has_literal_secret(slice_str(secret[i]), slice_str("Bearer ${env:T}")));
		assert_false(header_has_literal_secret(slice_str(secret[i]), slice_str("")));
	}
	assert_false(header_has_literal_secret(slice_str("Accept"), slice_str("text/plain")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(accepted),
		model_test(names_are_tokens),
		model_test(the_engines_own_are_not_for_users),
		model_test(values_hold_no_control_characters),
		model_test(placeholders_are_one_of_two),
		model_test(the_length_is_limited),
		model_test(a_secret_in_the_clear_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
