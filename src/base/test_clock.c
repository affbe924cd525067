/* See test_clock.h. */
#include "base/test_clock.h"

static struct wall_time test_wall(struct clock *c)
{
	struct test_clock *test = (struct test_clock *)c;

	return wall_add_ms(test->stands ? test->began : clock_wall(test->source), atomic_load(&test->ahead_ms));
}

static struct mono_time test_mono(struct clock *c)
{
	return clock_mono(((struct test_clock *)c)->source);
}

void test_clock_init(struct test_clock *test, struct clock *source)
{
	*test = (struct test_clock){.clock = {.wall = test_wall, .mono = test_mono}, .source = source};
}

void test_clock_stand(struct test_clock *test)
{
	test->began = clock_wall(test->source);
	test->stands = true;
}

void test_clock_skip_ms(struct test_clock *test, int64_t ms)
{
	ASSERT(ms >= 0);
	atomic_fetch_add(&test->ahead_ms, ms);
}
