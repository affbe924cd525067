/*
 * Time as two distinct types with an interface that tests and the simulator replace.
 *
 * Wall time is what people read and what rows store; it may jump. Monotonic time measures; it means nothing
 * outside of the process; whoever waits, waits by it. Mixing them is a compile error. Engine logic never calls these: it is handed `now`.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

struct wall_time {
	int64_t ms; /* since 1970-01-01 UTC */
};

struct mono_time {
	int64_t ns; /* since some moment of this boot */
};

/* What a clock that does not believe the machine's has to say about it (steady_clock.h). */
struct clock_doubt {
	_Atomic int64_t by_ms; /* how much the machine's is ahead now, or behind; 0: it is believed */
	_Atomic uint64_t jumps;
};

struct clock {
	struct wall_time (*wall)(struct clock *);
	struct mono_time (*mono)(struct clock *);
	const struct clock_doubt *doubt; /* NULL: none is possible */
};

/* The machine's clocks. Thread-safe. */
struct clock *clock_system(void);

/* A clock that stands still until it is moved. Both times move together. */
struct fake_clock {
	struct clock clock;
	struct wall_time wall;
	struct mono_time mono;
};

void fake_clock_init(struct fake_clock *fake, struct wall_time start);
void fake_clock_advance_ms(struct fake_clock *fake, int64_t ms);

static inline struct wall_time clock_wall(struct clock *c)
{
	return c->wall(c);
}

/* 0: there is no doubt. */
static inline int64_t clock_doubted_ms(const struct clock *c)
{
	return c->doubt ? atomic_load(&c->doubt->by_ms) : 0;
}

static inline uint64_t clock_jumps(const struct clock *c)
{
	return c->doubt ? atomic_load(&c->doubt->jumps) : 0;
}

static inline struct mono_time clock_mono(struct clock *c)
{
	return c->mono(c);
}

/* Both sums saturate: a deadline too far away to be written down is simply the farthest one. */
static inline struct wall_time wall_add_ms(struct wall_time t, int64_t ms)
{
	if (__builtin_add_overflow(t.ms, ms, &t.ms))
		t.ms = ms < 0 ? INT64_MIN : INT64_MAX;
	return t;
}

static inline struct mono_time mono_add_ms(struct mono_time t, int64_t ms)
{
	int64_t ns;

	if (__builtin_mul_overflow(ms, 1000000, &ns) || __builtin_add_overflow(t.ns, ns, &t.ns))
		t.ns = ms < 0 ? INT64_MIN : INT64_MAX;
	return t;
}

/* RFC 3339 UTC with milliseconds, "2026-11-15T05:39:00.000Z". Years 0 to 9999; outside of that it saturates. */
#define WALL_TIME_TEXT_BYTES 25
void wall_time_format(struct wall_time t, char text[WALL_TIME_TEXT_BYTES]);
/*
 * Any time of RFC 3339 in capitals, "2026-11-15T05:39:00Z", "2026-11-15T06:39:00.5+01:00", in the years 0 to 9999 of
 * UTC. The fraction has 1 to 9 digits, of which the milliseconds are kept. A day, hour or second that does not exist
 * is refused and not carried over, the leap second 60 too. HX_VALIDATION_ERROR, the detail naming the field and the
 * value (made printable and cut if need be).
 */
enum hx_code wall_time_parse(const char *field, struct slice text, struct hx_error *err,
			     struct wall_time *ret) HX_MUST_CHECK;
