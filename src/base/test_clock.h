/*
 * The machine's clock, moved ahead: for tests that do not want to wait for two days. Wall time alone is moved, and only ahead; what is
 * measured and waited for goes on as ever, so that whoever moves it has to wake those that sleep until a time (lanes_wake()).
 *
 * Never of a store that outlives the process: what is in a row would be in the future afterwards.
 */
#pragma once

#include "base/clock.h"

struct test_clock {
	struct clock clock; /* first. Thread-safe */
	struct clock *source;
	_Atomic int64_t ahead_ms;
	bool stands; /* still, but for skips */
	struct wall_time began;
};

void test_clock_init(struct test_clock *test, struct clock *source);
/* From here on wall time moves by skips alone: what a busy machine is late with is no later for that. Before anybody else reads it. */
void test_clock_stand(struct test_clock *test);
/* By 0 or more. */
void test_clock_skip_ms(struct test_clock *test, int64_t ms);
