/* The machine's clocks, the fake clock, and the RFC 3339 text of a wall time. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

#define WALL_MS_MIN (-62167219200000LL) /* 0000-01-01T00:00:00.000Z */
#define WALL_MS_MAX 253402300799999LL   /* 9999-12-31T23:59:59.999Z */

static struct wall_time system_wall(struct clock *c)
{
	struct timespec ts;

	(void)c;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (struct wall_time){(int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000};
}

static struct mono_time system_mono(struct clock *c)
{
	struct timespec ts;

	(void)c;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (struct mono_time){(int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec};
}

struct clock *clock_system(void)
{
	static struct clock system = {system_wall, system_mono};

	return &system;
}

static struct wall_time fake_wall(struct clock *c)
{
	return ((struct fake_clock *)c)->wall;
}

static struct mono_time fake_mono(struct clock *c)
{
	return ((struct fake_clock *)c)->mono;
}

void fake_clock_init(struct fake_clock *fake, struct wall_time start)
{
	*fake = (struct fake_clock){.clock = {fake_wall, fake_mono}, .wall = start};
}

void fake_clock_advance_ms(struct fake_clock *fake, int64_t ms)
{
	fake->wall = wall_add_ms(fake->wall, ms);
	fake->mono = mono_add_ms(fake->mono, ms);
}

void wall_time_format(struct wall_time t, char text[WALL_TIME_TEXT_BYTES])
{
	int64_t ms = t.ms < WALL_MS_MIN ? WALL_MS_MIN : t.ms > WALL_MS_MAX ? WALL_MS_MAX : t.ms;
	int64_t fraction = ((ms % 1000) + 1000) % 1000;
	time_t seconds = (time_t)((ms - fraction) / 1000);
	struct tm tm;
	char buf[64];

	gmtime_r(&seconds, &tm);
	snprintf(buf, sizeof buf, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
		 tm.tm_hour, tm.tm_min, tm.tm_sec, (int)fraction);
	snprintf(text, WALL_TIME_TEXT_BYTES, "%.24s", buf);
}
