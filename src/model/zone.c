/* See zone.h. */
#include "model/zone.h"

#include <stdbool.h>

#define DAY INT64_C(86400)
#define REACH (2 * DAY) /* no local time is further from UTC */
#define HEAD_BYTES 44

const struct zone zone_utc = {.has_rule = true};

/* ---- the calendar ---- */

/* Years begin with March here, so that the leap day is the last; 400 of them are an era. */
static int64_t civil_days(int64_t year, int month, int day)
{
	int64_t y = month <= 2 ? year - 1 : year, era = floor_div(y, 400), of_era = y - era * 400;
	int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

struct civil civil_of(int64_t days)
{
	int64_t z = days + 719468, era = floor_div(z, 146097), of_era = z - era * 146097;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100), m = (5 * of_year + 2) / 153;
	int month = (int)(m < 10 ? m + 3 : m - 9);

	return (struct civil){year + era * 400 + (month <= 2), month, (int)(of_year - (153 * m + 2) / 5 + 1)};
}

static bool is_leap(int64_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int civil_month_days(int64_t year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return days[month - 1] + (month == 2 && is_leap(year));
}

int civil_weekday(int64_t days)
{
	return (int)(days + 4 - 7 * floor_div(days + 4, 7));
}

/* ---- the rule at the end of a file ---- */

struct text {
	const char *p, *end;
	bool bad;
};

static bool zone_take(struct text *t, char c)
{
	bool is = t->p < t->end && *t->p == c;

	t->p += is;
	return is;
}

static int64_t zone_take_number(struct text *t, int64_t max)
{
	int64_t n = 0;
	const char *begin = t->p;

	for (; t->p < t->end && *t->p >= '0' && *t->p <= '9' && n <= max; t->p++)
		n = n * 10 + (*t->p - '0');
	t->bad |= t->p == begin || n > max;
	return n;
}

/* CET, or <+03>. */
static void zone_take_name(struct text *t)
{
	bool quoted = zone_take(t, '<');
	const char *begin = t->p;

	while (t->p < t->end && (quoted ? *t->p != '>' : (*t->p | 32) >= 'a' && (*t->p | 32) <= 'z'))
		t->p++;
	t->bad |= t->p == begin || (quoted && !zone_take(t, '>'));
}

/* [+-]hh[:mm[:ss]] */
static int64_t take_time(struct text *t)
{
	bool minus = zone_take(t, '-');
	int64_t seconds;

	if (!minus)
		(void)zone_take(t, '+');
	seconds = 3600 * zone_take_number(t, 167);
	if (zone_take(t, ':'))
		seconds += 60 * zone_take_number(t, 59);
	if (zone_take(t, ':'))
		seconds += zone_take_number(t, 59);
	return minus ? -seconds : seconds;
}

static struct zone_day take_day(struct text *t)
{
	struct zone_day day = {.seconds = 7200};

	t->bad |= !zone_take(t, ',');
	if (zone_take(t, 'M')) {
		day.month = (int)zone_take_number(t, 12);
		t->bad |= !zone_take(t, '.');
		day.week = (int)zone_take_number(t, 5);
		t->bad |= !zone_take(t, '.');
		day.weekday = (int)zone_take_number(t, 6);
		t->bad |= !day.month || !day.week;
	} else {
		day.leap_free = zone_take(t, 'J');
		day.day = (int)zone_take_number(t, 365);
	}
	if (zone_take(t, '/'))
		day.seconds = take_time(t);
	return day;
}

/* An empty one is good: nobody knows what comes after the last change. */
static bool parse_rule(struct slice rule, struct zone *zone)
{
	struct text t = {rule.p, rule.p + rule.n, false};

	if (rule.n == 0)
		return true;
	zone_take_name(&t);
	zone->rule_offset = -take_time(&t);
	zone->has_rule = true;
	if (t.p < t.end) {
		zone_take_name(&t);
		zone->summer_offset = t.p < t.end && *t.p != ',' ? -take_time(&t) : zone->rule_offset + 3600;
		zone->summer_begins = take_day(&t);
		zone->summer_ends = take_day(&t);
		zone->has_summer = true;
	}
	return !t.bad && t.p == t.end;
}

/* Its midnight, as a day since 1970. */
static int64_t day_in(const struct zone_day *day, int64_t year)
{
	int64_t first, at;
	int last;

	if (!day->month)
		return civil_days(year, 1, 1) +
		       (day->leap_free ? day->day - 1 + (is_leap(year) && day->day > 59) : day->day);
	first = civil_days(year, day->month, 1);
	last = civil_month_days(year, day->month);
	at = (day->weekday - civil_weekday(first) + 7) % 7 + 7 * (day->week - 1);
	return first + (at < last ? at : at - 7);
}

/* The first change by the rule that is after this moment. */
static struct zone_change next_by_rule(const struct zone *zone, int64_t after)
{
	struct zone_change best = {ZONE_NO_TIME, 0};
	int64_t year = civil_of(floor_div(after, DAY)).year;

	for (int64_t y = year - 1; zone->has_summer && y <= year + 1; y++) {
		struct zone_change both[2] = {
			{day_in(&zone->summer_begins, y) * DAY + zone->summer_begins.seconds - zone->rule_offset,
			 zone->summer_offset},
			{day_in(&zone->summer_ends, y) * DAY + zone->summer_ends.seconds - zone->summer_offset,
			 zone->rule_offset},
		};

		for (int i = 0; i < 2; i++)
			if (both[i].at > after && both[i].at < best.at)
				best = both[i];
	}
	return best;
}

/* ---- the file ---- */

static int64_t big_endian(const char *p, int bytes)
{
	uint64_t n = (signed char)p[0] < 0 ? UINT64_MAX : 0;

	for (int i = 0; i < bytes; i++)
		n = n << 8 | (unsigned char)p[i];
	return (int64_t)n;
}

/* What follows a head, in the order of the file. */
struct counts {
	int64_t is_utc, is_std, leaps, times, types, chars;
	bool good;
};

static struct counts read_counts(struct slice bytes, size_t at)
{
	struct counts c = {0};
	int64_t *const fields[] = {&c.is_utc, &c.is_std, &c.leaps, &c.times, &c.types, &c.chars};

	if (bytes.n < at + HEAD_BYTES || memcmp(bytes.p + at, "TZif", 4) != 0 || bytes.p[at + 4] < '2')
		return c;
	c.good = true;
	for (int i = 0; i < 6; i++) {
		*fields[i] = big_endian(bytes.p + at + 20 + 4 * i, 4);
		c.good = c.good && *fields[i] >= 0 && *fields[i] <= ZONE_BYTES_MAX;
	}
	return c;
}

static size_t body_bytes(const struct counts *c, int64_t time_bytes)
{
	return (size_t)(c->times * (time_bytes + 1) + c->types * 6 + c->chars + c->leaps * (time_bytes + 4) +
			c->is_std + c->is_utc);
}

static bool read_changes(struct slice body, const struct counts *c, struct arena *arena, struct zone *ret_zone)
{
	const char *types = body.p + c->times * 9;
	struct zone_change *changes = arena_alloc(arena, ((size_t)c->times + 1) * sizeof *changes);

	if (!changes || c->types < 1)
		return false;
	ret_zone->first_offset = big_endian(types, 4);
	ret_zone->changes = changes;
	for (int64_t i = 0; i < c->times; i++) {
		int64_t type = (unsigned char)body.p[c->times * 8 + i];

		if (type >= c->types)
			return false;
		changes[i] = (struct zone_change){big_endian(body.p + 8 * i, 8), big_endian(types + 6 * type, 4)};
		if (i && changes[i].at <= changes[i - 1].at)
			return false;
	}
	ret_zone->changes_n = (size_t)c->times;
	return true;
}

/* The second head is that of the body with times of 64 bits; after it the rule stands between two line ends. */
enum hx_code zone_parse(struct slice bytes, struct arena *arena, struct hx_error *err, struct zone *ret_zone)
{
	struct counts old = read_counts(bytes, 0), c = {0};
	size_t at = old.good ? HEAD_BYTES + body_bytes(&old, 4) : 0, body;
	struct zone zone = {0};
	struct slice rule;

	if (old.good)
		c = read_counts(bytes, at);
	body = body_bytes(&c, 8);
	at += HEAD_BYTES;
	if (!c.good || bytes.n < at + body + 2 || bytes.p[at + body] != '\n' || bytes.p[bytes.n - 1] != '\n')
		return error_set(err, HX_VALIDATION_ERROR, "it is not a TZif file of version 2 or later");
	if (c.leaps)
		return error_set(err, HX_VALIDATION_ERROR, "it counts leap seconds, which UTC here does not");
	rule = slice_of(bytes.p + at + body + 1, bytes.n - at - body - 2);
	if (!read_changes(slice_of(bytes.p + at, body), &c, arena, &zone) || !parse_rule(rule, &zone))
		return error_set(err, HX_VALIDATION_ERROR, "its transitions, or the rule at its end, are not valid");
	*ret_zone = zone;
	return HX_OK;
}

bool zone_name_is_good(struct slice name)
{
	bool begins = true; /* a part */

	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool word = ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9');

		if (!word && (begins || (c != '/' && c != '_' && c != '+' && c != '-')))
			return false;
		begins = c == '/';
	}
	return name.n && name.n <= ZONE_NAME_MAX && !begins;
}

/* ---- moments ---- */

/* How many changes there are up to this moment. */
static size_t changes_before(const struct zone *zone, int64_t utc)
{
	size_t low = 0, high = zone->changes_n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (zone->changes[middle].at <= utc)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool by_rule(const struct zone *zone, int64_t utc)
{
	return zone->has_rule && (!zone->changes_n || utc >= zone->changes[zone->changes_n - 1].at);
}

int64_t zone_offset(const struct zone *zone, int64_t utc)
{
	size_t n = changes_before(zone, utc);

	if (!by_rule(zone, utc))
		return n ? zone->changes[n - 1].offset : zone->first_offset;
	if (!zone->has_summer)
		return zone->rule_offset;
	/* After the next change it is the other one. */
	return next_by_rule(zone, utc).offset == zone->rule_offset ? zone->summer_offset : zone->rule_offset;
}

static struct zone_change next_change(const struct zone *zone, int64_t after)
{
	size_t n = changes_before(zone, after);

	if (n < zone->changes_n)
		return zone->changes[n];
	return zone->has_rule ? next_by_rule(zone, after) : (struct zone_change){ZONE_NO_TIME, 0};
}

/* Stretches between two changes, the earliest first: the first that shows this local time has its first moment; and a local time
 * that is after the end of one and before the beginning of the next is in the gap between them. */
int64_t zone_moment(const struct zone *zone, int64_t local)
{
	int64_t offset = zone_offset(zone, local - REACH);
	struct zone_change next = next_change(zone, local - REACH);

	while (next.at != ZONE_NO_TIME && local - offset >= next.at) {
		if (local - next.offset < next.at)
			return next.at;
		offset = next.offset;
		next = next_change(zone, next.at);
	}
	return local - offset;
}
