/* How long things took: the edges of the ranges, and sums. */
#include "base/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void a_bound_belongs_to_its_range(void **state)
{
	(void)state;
	for (size_t i = 0; i < HISTOGRAM_RANGES - 1; i++) {
		assert_int_equal(histogram_range(histogram_bounds_us[i]), i);
		assert_int_equal(histogram_range(histogram_bounds_us[i] + 1), i + 1);
	}
	assert_int_equal(histogram_range(0), 0);
	assert_int_equal(histogram_range(-1), 0);
	assert_int_equal(histogram_range(INT64_MAX), HISTOGRAM_RANGES - 1);
}

static void what_is_counted_adds_up(void **state)
{
	struct histogram one = {0}, sum = {0};

	(void)state;
	histogram_count(&one, 100);
	histogram_count(&one, 2600);
	histogram_count(&one, -5); /* a clock that went back: it happened, and took no time */
	assert_int_equal(one.counts[0], 2);
	assert_int_equal(one.counts[5], 1);
	assert_int_equal(one.took_us, 2700);
	histogram_add(&sum, &one);
	histogram_add(&sum, &one);
	assert_int_equal(sum.counts[0], 4);
	assert_int_equal(sum.counts[5], 2);
	assert_int_equal(sum.took_us, 5400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bound_belongs_to_its_range),
		cmocka_unit_test(what_is_counted_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
