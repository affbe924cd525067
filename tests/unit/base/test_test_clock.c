/* The clock of tests: it goes with its source, ahead of it by what was skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/test_clock.h"

static void test_wall_time_alone_is_moved(void **state)
{
	struct fake_clock fake;
	struct test_clock test;

	(void)state;
	fake_clock_init(&fake, (struct wall_time){1000});
	test_clock_init(&test, &fake.clock);
	assert_int_equal(clock_wall(&test.clock).ms, 1000);
	test_clock_skip_ms(&test, 500);
	test_clock_skip_ms(&test, 0);
	assert_int_equal(clock_wall(&test.clock).ms, 1500);
	fake_clock_advance_ms(&fake, 7);
	assert_int_equal(clock_wall(&test.clock).ms, 1507);
	assert_int_equal(clock_mono(&test.clock).ns, clock_mono(&fake.clock).ns);
	assert_int_equal(clock_doubted_ms(&test.clock), 0);
}

static void test_it_stands_still_but_for_skips(void **state)
{
	struct fake_clock fake;
	struct test_clock test;

	(void)state;
	fake_clock_init(&fake, (struct wall_time){1000});
	test_clock_init(&test, &fake.clock);
	test_clock_skip_ms(&test, 1);
	test_clock_stand(&test);
	fake_clock_advance_ms(&fake, 7);
	assert_int_equal(clock_wall(&test.clock).ms, 1001);
	test_clock_skip_ms(&test, 500);
	assert_int_equal(clock_wall(&test.clock).ms, 1501);
	assert_int_equal(clock_mono(&test.clock).ns, clock_mono(&fake.clock).ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wall_time_alone_is_moved),
		cmocka_unit_test(test_it_stands_still_but_for_skips),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
