/* Clocks: the fake one moves only when told, sums saturate, and times have one text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"

static const char *text_of(int64_t ms)
{
	static char text[WALL_TIME_TEXT_BYTES];

	memset(text, 'x', sizeof text);
	wall_time_format((struct wall_time){ms}, text);
	return text;
}

static void wall_times_as_text(void **state)
{
	(void)state;
	assert_string_equal(text_of(0), "1970-01-01T00:00:00.000Z");
	assert_string_equal(text_of(-1), "1969-12-31T23:59:59.999Z");
	assert_string_equal(text_of(-1000), "1969-12-31T23:59:59.000Z");
	assert_string_equal(text_of(951782400123), "2000-02-29T00:00:00.123Z");
	assert_string_equal(text_of(1794721140000), "2026-11-15T05:39:00.000Z");
}

static void text_saturates_outside_of_four_digit_years(void **state)
{
	(void)state;
	assert_string_equal(text_of(253402300799999), "9999-12-31T23:59:59.999Z");
	assert_string_equal(text_of(253402300800000), "9999-12-31T23:59:59.999Z");
	assert_string_equal(text_of(INT64_MAX), "9999-12-31T23:59:59.999Z");
	assert_string_equal(text_of(-62167219200000), "0000-01-01T00:00:00.000Z");
	assert_string_equal(text_of(-62167219200001), "0000-01-01T00:00:00.000Z");
	assert_string_equal(text_of(INT64_MIN), "0000-01-01T00:00:00.000Z");
}

static void the_fake_clock_stands_still_until_it_is_moved(void **state)
{
	struct fake_clock fake;
	struct clock *c = &fake.clock;

	(void)state;
	fake_clock_init(&fake, (struct wall_time){5000});
	assert_int_equal(clock_wall(c).ms, 5000);
	assert_int_equal(clock_mono(c).ns, 0);
	assert_int_equal(clock_wall(c).ms, 5000);
	fake_clock_advance_ms(&fake, 250);
	assert_int_equal(clock_wall(c).ms, 5250);
	assert_int_equal(clock_mono(c).ns, 250000000);
	fake.wall.ms = 1; /* somebody set the wall clock back */
	assert_int_equal(clock_wall(c).ms, 1);
	assert_int_equal(clock_mono(c).ns, 250000000);
}

static void the_system_clock_does_not_run_backwards(void **state)
{
	struct clock *c = clock_system();
	struct mono_time before = clock_mono(c);

	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct mono_time now = clock_mono(c);

		assert_true(now.ns >= before.ns);
		before = now;
	}
	assert_true(clock_wall(c).ms > INT64_C(1700000000000)); /* 2023: in milliseconds, not in seconds */
}

static void sums_saturate(void **state)
{
	(void)state;
	assert_int_equal(mono_add_ms((struct mono_time){7}, 3).ns, 3000007);
	assert_int_equal(mono_add_ms((struct mono_time){7}, -3).ns, -2999993);
	assert_true(mono_add_ms((struct mono_time){7}, INT64_MAX).ns == INT64_MAX);
	assert_true(mono_add_ms((struct mono_time){0}, INT64_MAX / 1000000).ns == INT64_MAX / 1000000 * 1000000);
	assert_true(mono_add_ms((struct mono_time){0}, INT64_MAX / 1000000 + 1).ns == INT64_MAX);
	assert_true(mono_add_ms((struct mono_time){INT64_MAX}, 1).ns == INT64_MAX);
	assert_true(mono_add_ms((struct mono_time){-7}, INT64_MIN).ns == INT64_MIN);
	assert_int_equal(wall_add_ms((struct wall_time){7}, 3).ms, 10);
	assert_true(wall_add_ms((struct wall_time){INT64_MAX - 3}, 3).ms == INT64_MAX);
	assert_true(wall_add_ms((struct wall_time){INT64_MAX - 3}, 4).ms == INT64_MAX);
	assert_true(wall_add_ms((struct wall_time){INT64_MIN + 3}, -4).ms == INT64_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wall_times_as_text),
		cmocka_unit_test(text_saturates_outside_of_four_digit_years),
		cmocka_unit_test(the_fake_clock_stands_still_until_it_is_moved),
		cmocka_unit_test(the_system_clock_does_not_run_backwards),
		cmocka_unit_test(sums_saturate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
