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

static int64_t ms_of(const char *text)
{
	struct wall_time t = {INT64_MIN};
	struct hx_error err;

	assert_int_equal(wall_time_parse("until", slice_str(text), &err, &t), HX_OK);
	return t.ms;
}

static void text_becomes_a_wall_time(void **state)
{
	static const int64_t round_trip[] = {0, -1, 951782400123, 1794721140000, 253402300799999, -62167219200000};

	(void)state;
	for (size_t i = 0; i < sizeof round_trip / sizeof round_trip[0]; i++)
		assert_int_equal(ms_of(text_of(round_trip[i])), round_trip[i]);
	assert_int_equal(ms_of("2026-11-15T05:39:00Z"), 1794721140000);
	assert_int_equal(ms_of("2026-11-15T05:39:00.5Z"), 1794721140500);
	assert_int_equal(ms_of("2026-11-15T05:39:00.07Z"), 1794721140070);
	assert_int_equal(ms_of("2026-11-15T05:39:00.123999999Z"), 1794721140123);
	assert_int_equal(ms_of("2026-11-15T06:39:00+01:00"), 1794721140000);
	assert_int_equal(ms_of("2026-11-14T23:54:00.000-05:45"), 1794721140000);
	assert_int_equal(ms_of("2026-11-15T05:39:00-00:00"), 1794721140000);
	assert_int_equal(ms_of("2000-02-29T00:00:00.123Z"), 951782400123);
}

static void what_is_no_time_is_refused(void **state)
{
	static const char *const bad[] = {"",
					  "2026",
					  "2026-11-15",
					  "2026-11-15T05:39Z",
					  "2026-11-15T05:39:00",
					  "2026-11-15 05:39:00Z",
					  "2026-11-15t05:39:00Z",
					  "2026-11-15T05:39:00z",
					  "2026-11-15T05:39:00ZZ",
					  " 2026-11-15T05:39:00Z",
					  "2026-11-15T05:39:00.Z",
					  "2026-11-15T05:39:00.1234567890Z",
					  "2026-11-15T05:39:00,5Z",
					  "2026-11-15T05:39:00+0100",
					  "2026-11-15T05:39:00+01",
					  "2026-11-15T05:39:00+24:00",
					  "2026-11-15T05:39:00+01:60",
					  "2026-11-15T05:39:00+01:000",
					  "2026-11-15T24:00:00Z",
					  "2026-11-15T05:60:00Z",
					  "2016-12-31T23:59:60Z",
					  "2026-00-15T05:39:00Z",
					  "2026-13-15T05:39:00Z",
					  "2026-11-00T05:39:00Z",
					  "2026-11-31T05:39:00Z",
					  "2026-02-29T05:39:00Z",
					  "1900-02-29T05:39:00Z",
					  "+026-11-15T05:39:00Z",
					  "2026-+1-15T05:39:00Z",
					  "12026-11-15T05:39:00Z",
					  "0000-01-01T00:00:00+00:01",
					  "9999-12-31T23:59:59-00:01"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct wall_time t = {7};
		struct hx_error err;

		if (wall_time_parse("until", slice_str(bad[i]), &err, &t) != HX_VALIDATION_ERROR)
			fail_msg("%s is taken for a time", bad[i]);
		assert_int_equal(t.ms, 7);
		assert_non_null(strstr(err.detail, "until: \""));
		assert_non_null(strstr(err.detail, bad[i]));
	}
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
		cmocka_unit_test(text_becomes_a_wall_time),
		cmocka_unit_test(what_is_no_time_is_refused),
		cmocka_unit_test(the_fake_clock_stands_still_until_it_is_moved),
		cmocka_unit_test(the_system_clock_does_not_run_backwards),
		cmocka_unit_test(sums_saturate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
