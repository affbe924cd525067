/* Structs of programs that were compiled with another version of the header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/sized.h"

struct older {
	size_t size;
	int64_t a;
};
struct ours {
	size_t size;
	int64_t a, b;
};
struct newer {
	size_t size;
	int64_t a, b, c;
};

static struct hx_error err;

static enum hx_code read_it(const void *given, struct ours *own)
{
	memset(own, 0xff, sizeof *own);
	return SIZED_READ(given, own, "ours", &err);
}

static void an_older_one_has_zeros(void **state)
{
	struct older given = {sizeof given, 7};
	struct ours own;

	(void)state;
	assert_int_equal(read_it(&given, &own), HX_OK);
	assert_int_equal(own.a, 7);
	assert_int_equal(own.b, 0);
	assert_int_equal(own.size, sizeof own);
}

static void a_newer_one_may_not_say_more(void **state)
{
	struct newer given = {sizeof given, 7, 8, 0};
	struct ours own;

	(void)state;
	assert_int_equal(read_it(&given, &own), HX_OK);
	assert_int_equal(own.b, 8);
	given.c = INT64_C(1) << 56; /* whatever byte it is */
	assert_int_equal(read_it(&given, &own), HX_VALIDATION_ERROR);
	assert_non_null(strstr(err.detail, "does not know"));
}

static void a_size_must_be_set(void **state)
{
	struct ours given = {0, 7, 8}, own;

	(void)state;
	assert_int_equal(read_it(&given, &own), HX_VALIDATION_ERROR);
	assert_non_null(strstr(err.detail, "HX_SIZE(ours)"));
	given.size = sizeof given.size - 1;
	assert_int_equal(read_it(&given, &own), HX_VALIDATION_ERROR);
	given.size = (size_t)(uintptr_t) "sqlite:shop.db"; /* as of version 0.1, which had none */
	assert_int_equal(read_it(&given, &own), HX_VALIDATION_ERROR);
	assert_int_equal(read_it(NULL, &own), HX_VALIDATION_ERROR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_older_one_has_zeros),
		cmocka_unit_test(a_newer_one_may_not_say_more),
		cmocka_unit_test(a_size_must_be_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
