/*
 * Waiting in tests: for a named condition, with a deadline, and never for a time.
 *
 *	AWAIT(10000, node_has_reverted(node));
 *
 * fails the running test with the text of the condition when it does not come true in time.
 */
#ifndef HX_TESTS_SUPPORT_AWAIT_H
#define HX_TESTS_SUPPORT_AWAIT_H

#include <stdint.h>
#include <time.h>

#include "base/clock.h"

#define AWAIT_POLL_NS 2000000
#ifdef HX_DEBUG
#define AWAIT_PATIENCE 4 /* with sanitizers all takes longer */
#else
#define AWAIT_PATIENCE 1
#endif

static inline int64_t await_now_ms(void)
{
	return clock_mono(clock_system()).ns / 1000000;
}

static inline void await_pause(void)
{
	nanosleep(&(struct timespec){.tv_nsec = AWAIT_POLL_NS}, NULL);
}

#define AWAIT(deadline_ms, condition)                                                                                  \
	do {                                                                                                           \
		int64_t await_until_ms = await_now_ms() + AWAIT_PATIENCE * (int64_t)(deadline_ms);                     \
                                                                                                                       \
		while (!(condition)) {                                                                                 \
			if (await_now_ms() > await_until_ms)                                                           \
				fail_msg("waited %d ms for: %s", (int)(deadline_ms), #condition);                      \
			await_pause();                                                                                 \
		}                                                                                                      \
	} while (0)

#endif
