/*
 * The believed clock: wall time that goes with the monotonic clock, whatever is done to the machine's.
 *
 * Wall time is for people and rows, monotonic time is for waiting. But rows say when something ends (a lease, the record of an
 * idempotency key, what retention keeps), and where the store is this machine's, so is its clock: one that jumps ahead by a
 * day, for a moment, would free every key, delete what is to be kept for months and take claims from those who live. So a jump
 * is not believed before it has lasted:
 *
 *               ┌───────── it is back where it was ──────────┐
 *               ▼                                            │
 *   FOLLOWING ─── differs by more than STEADY_STEP_MS ──▶ DOUBTING ─┐ differs again: the wait begins anew
 *               ▲                                            │   ▲──┘
 *               └── it has stayed so for STEADY_CONFIRM_MS ──┘
 *
 *  C1  While it doubts, believed time goes on by the monotonic clock.
 *  C2  Believed time leaves that course by more than a step only when the new one has been seen for STEADY_CONFIRM_MS and no
 *      look in between has shown another. Ahead or back is the same.
 *  C3  A process believes the clock that it starts with: a restart is how a person says that it is right.
 *
 * Each edge is a line in the log; `doubt` and the count are for metrics and /readyz.
 *
 * Known limit: a machine that was suspended looks like one whose clock has jumped ahead, and expiry goes on
 * STEADY_CONFIRM_MS after it has woken.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"

struct log;

#define STEADY_STEP_MS 1500 /* less than that is followed at once: a leap second, a small correction */
#define STEADY_CONFIRM_MS 300000
#define STEADY_HEARD_MS_MAX 1000

struct steady_clock {
	struct clock clock; /* first. Thread-safe, as its source has to be */
	struct clock *source;
	struct log *log;           /* may be NULL */
	_Atomic int64_t offset_ms; /* believed time less monotonic time */
	_Atomic bool doubting;
	struct clock_doubt doubt;
	pthread_mutex_t mutex; /* over what follows, and over leaving the course */
	int64_t doubted_ms;    /* by how much the source differs */
	bool heard;            /* of the store's clock, at least once; for the one who hears */
	struct mono_time since;
};

/* source NULL: it is the clock of the store's machine, of which is heard (steady_clock_hear); nobody reads the time from it then. */
void steady_clock_init(struct steady_clock *steady, struct clock *source, struct log *log);
/*
 * One reading of the store's clock, asked for and answered at these times of ours: whether it goes with our monotonic clock is judged
 * as above. One that has taken longer than STEADY_HEARD_MS_MAX says nothing: less than that is less than a step. By one thread.
 */
void steady_clock_hear(struct steady_clock *steady, int64_t wall_ms, struct mono_time asked, struct mono_time answered);
void steady_clock_release(struct steady_clock *steady);
