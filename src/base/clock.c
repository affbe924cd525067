/* The machine's clocks, the fake clock, and the RFC 3339 text of a wall time. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

#include "base/excerpt.h"

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
	static struct clock system = {.wall = system_wall, .mono = system_mono};

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
	*fake = (struct fake_clock){.clock = {.wall = fake_wall, .mono = fake_mono}, .wall = start};
}

void fake_clock_advance_ms(struct fake_clock *fake, int64_t ms)
{
	fake->wall = wall_add_ms(fake->wall, ms);
	fake->mono = mono_add_ms(fake->mono, ms);
}

static void put_digits(char *to, size_t n, int number)
{
	for (; n > 0; n--, number /= 10)
		to[n - 1] = (char)('0' + number % 10);
}

/* By hand: a run is told with a dozen of them, and printf was a tenth of its work. */
void wall_time_format(struct wall_time t, char text[WALL_TIME_TEXT_BYTES])
{
	int64_t ms = t.ms < WALL_MS_MIN ? WALL_MS_MIN : t.ms > WALL_MS_MAX ? WALL_MS_MAX : t.ms;
	int64_t fraction = ((ms % 1000) + 1000) % 1000;
	time_t seconds = (time_t)((ms - fraction) / 1000);
	/* Most times are written within the second of the one before. */
	static _Thread_local time_t last = -1;
	static _Thread_local char last_text[WALL_TIME_TEXT_BYTES] = "1969-12-31T23:59:59.000Z";
	struct tm tm;

	if (seconds != last) {
		last = seconds;
		gmtime_r(&seconds, &tm);
		put_digits(last_text, 4, tm.tm_year + 1900);
		put_digits(last_text + 5, 2, tm.tm_mon + 1);
		put_digits(last_text + 8, 2, tm.tm_mday);
		put_digits(last_text + 11, 2, tm.tm_hour);
		put_digits(last_text + 14, 2, tm.tm_min);
		put_digits(last_text + 17, 2, tm.tm_sec);
	}
	memcpy(text, last_text, WALL_TIME_TEXT_BYTES);
	put_digits(text + 20, 3, (int)fraction);
}

/* From `at` exactly so many digits; -1 where they are not there. */
static int digits(struct slice text, size_t at, size_t n)
{
	int value = 0;

	if (text.n < at + n)
		return -1;
	for (size_t i = at; i < at + n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return -1;
		value = value * 10 + (text.p[i] - '0');
	}
	return value;
}

static bool is_at(struct slice text, size_t at, char c)
{
	return text.n > at && text.p[at] == c;
}

/* ".5" is 500; *at moves after it. -1: there is a point and not 1 to 9 digits after it. */
static int parse_fraction(struct slice text, size_t *at)
{
	int ms = 0;
	size_t n = 0;

	if (!is_at(text, *at, '.'))
		return 0;
	for (++*at; digits(text, *at, 1) >= 0; ++*at, n++)
		if (n < 3)
			ms = ms * 10 + digits(text, *at, 1);
	for (size_t i = n; i < 3; i++)
		ms *= 10;
	return n >= 1 && n <= 9 ? ms : -1;
}

/* What the text is ahead of UTC; false unless the text ends with it. */
static bool parse_offset(struct slice text, size_t at, int64_t *ret_ms)
{
	int hours = digits(text, at + 1, 2), minutes = digits(text, at + 4, 2);
	bool behind = is_at(text, at, '-');

	*ret_ms = 0;
	if (is_at(text, at, 'Z'))
		return text.n == at + 1;
	if ((!behind && !is_at(text, at, '+')) || !is_at(text, at + 3, ':') || text.n != at + 6)
		return false;
	if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
		return false;
	*ret_ms = (hours * 60 + minutes) * INT64_C(60000) * (behind ? -1 : 1);
	return true;
}

static bool parse_date_time(struct slice text, struct tm *ret)
{
	struct tm tm = {.tm_year = digits(text, 0, 4) - 1900,
			.tm_mon = digits(text, 5, 2) - 1,
			.tm_mday = digits(text, 8, 2),
			.tm_hour = digits(text, 11, 2),
			.tm_min = digits(text, 14, 2),
			.tm_sec = digits(text, 17, 2)};

	*ret = tm;
	return tm.tm_year >= -1900 && tm.tm_mon >= 0 && tm.tm_mday >= 1 && tm.tm_hour >= 0 && tm.tm_hour <= 23 &&
	       tm.tm_min >= 0 && tm.tm_min <= 59 && tm.tm_sec >= 0 && tm.tm_sec <= 59 && is_at(text, 4, '-') &&
	       is_at(text, 7, '-') && is_at(text, 10, 'T') && is_at(text, 13, ':') && is_at(text, 16, ':');
}

static bool parse_wall(struct slice text, struct wall_time *ret)
{
	int64_t offset_ms;
	size_t at = 19;
	struct tm tm;

	if (!parse_date_time(text, &tm))
		return false;

	int mon = tm.tm_mon, day = tm.tm_mday;
	int64_t seconds = timegm(&tm);
	int fraction = parse_fraction(text, &at);

	/* timegm() makes a 1st of March out of a 30th of February. */
	if (tm.tm_mon != mon || tm.tm_mday != day || fraction < 0 || !parse_offset(text, at, &offset_ms))
		return false;

	int64_t ms = seconds * 1000 + fraction - offset_ms;

	ret->ms = ms;
	return ms >= WALL_MS_MIN && ms <= WALL_MS_MAX;
}

enum hx_code wall_time_parse(const char *field, struct slice text, struct hx_error *err, struct wall_time *ret)
{
	struct wall_time parsed;

	if (!parse_wall(text, &parsed))
		return error_set(err, HX_VALIDATION_ERROR, "%s: \"%s\" is not a time like \"2026-11-15T05:39:00.000Z\"",
				 field, excerpt_of(text).text);
	*ret = parsed;
	return HX_OK;
}
