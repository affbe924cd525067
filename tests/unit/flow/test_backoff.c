/* How long to rest: nobody's Retry-After shortens it, and what is unsettled comes to its end. */
#include "flow/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* In the words that tests/mutants/run looks for. */
static void rests(int64_t backoff, int64_t not_before, int64_t expected)
{
	int64_t rest = backoff_not_before(backoff, not_before);

	if (rest == expected)
		return;
	fprintf(stderr,
		"counterexample in one step: backoff %lld ms, not before %lld ms\n  broken: the rest is %lld ms\n",
		(long long)backoff, (long long)not_before, (long long)rest);
	fail();
}

static void test_not_before_is_a_floor(void **state)
{
	(void)state;
	rests(1000, 0, 1000);
	rests(1000, 999, 1000);
	rests(1000, 1001, 1001);
	rests(0, 0, 0);
}

#define SINCE 5000000
#define END (SINCE + UNSETTLED_MS_MAX)

static void test_unsettled_moments(void **state)
{
	(void)state;
	assert_int_equal(backoff_unsettled(SINCE, SINCE, 1000, 0), SINCE + 1000);
	assert_int_equal(backoff_unsettled(SINCE, SINCE, 1000, 500), SINCE + 1000);
	assert_int_equal(backoff_unsettled(SINCE, SINCE, 1000, 1500), SINCE + 1500);
	assert_int_equal(backoff_unsettled(SINCE, SINCE + 60000, 1000, 0), SINCE + 90000);
	/* the last one, at the end: a long backoff does not cut it off, a long Retry-After does */
	assert_int_equal(backoff_unsettled(SINCE, END - 1, 300000, 0), END);
	assert_int_equal(backoff_unsettled(SINCE, END - 1, 300000, 1), END);
	assert_int_equal(backoff_unsettled(SINCE, END - 1, 300000, 2), 0);
	assert_int_equal(backoff_unsettled(SINCE, SINCE, 1000, UNSETTLED_MS_MAX), END);
	assert_int_equal(backoff_unsettled(SINCE, SINCE, 1000, UNSETTLED_MS_MAX + 1), 0);
	assert_int_equal(backoff_unsettled(SINCE, END, 1000, 0), 0);
	assert_int_equal(backoff_unsettled(SINCE, END + 1, 1000, 0), 0);
}

/* However short the backoff: not thousands of calls. */
static void test_unsettled_asks_grow_rare(void **state)
{
	int64_t now = SINCE;
	int asks = 0;

	(void)state;
	for (int64_t next; (next = backoff_unsettled(SINCE, now, 10, 0)); now = next) {
		assert_true(next > now);
		asks++;
	}
	assert_int_equal(now, END);
	assert_in_range(asks, 10, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_before_is_a_floor),
		cmocka_unit_test(test_unsettled_moments),
		cmocka_unit_test(test_unsettled_asks_grow_rare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
