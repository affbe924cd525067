/* Who is to be called when: a binary heap of deadlines, with removal from the middle. Owned by one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/error.h"

/* Embedded in what is to be called. A zeroed timer is not set. */
struct timer {
	struct mono_time due;
	size_t place; /* in the heap, from 1; 0: not set */
};

struct timers {
	struct timer **heap; /* heap[1..n] */
	size_t n;
	size_t capacity;
};

void timers_release(struct timers *timers);
/* Sets a timer, or moves one that is set. HX_NO_MEMORY leaves it as it was. */
enum hx_code timer_set(struct timers *timers, struct timer *timer, struct mono_time due) HX_MUST_CHECK;
/* Does nothing when it is not set. */
void timer_cancel(struct timers *timers, struct timer *timer);
/* The earliest timer, or NULL. */
struct timer *timers_first(const struct timers *timers);
/* Takes out the earliest timer that is due at `now`, or returns NULL. */
struct timer *timers_take_due(struct timers *timers, struct mono_time now);
