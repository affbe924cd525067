/* See cron.h. */
#include "model/cron.h"

#include <strings.h>

#include "base/excerpt.h"

#define DAY INT64_C(86400)
#define YEARS_MAX 40 /* a 29th of February that is a Monday comes within 40 years, over 2100, too */

enum { MINUTE, HOUR, MONTH_DAY, MONTH, WEEKDAY, CRON_FIELDS };

static const char *const month_names[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL",
					  "AUG", "SEP", "OCT", "NOV", "DEC", NULL};
static const char *const weekday_names[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", NULL};

static const struct cron_field {
	const char *name;
	int min, max;
	const char *const *names; /* from min on */
} cron_parts[CRON_FIELDS] = {
	[MINUTE] = {"minute", 0, 59, NULL},
	[HOUR] = {"hour", 0, 23, NULL},
	[MONTH_DAY] = {"day-of-month", 1, 31, NULL},
	[MONTH] = {"month", 1, 12, month_names},
	[WEEKDAY] = {"day-of-week", 0, 7, weekday_names},
};

/* ---- reading ---- */

/* One element of a field: "10-50/20". */
struct element {
	const struct cron_field *field;
	struct slice left;
	bool bad;
};

static bool next_is(const struct element *e, char c)
{
	return e->left.n && e->left.p[0] == c;
}

static bool cron_take(struct element *e, char c)
{
	if (!next_is(e, c))
		return false;
	e->left = slice_of(e->left.p + 1, e->left.n - 1);
	return true;
}

static int cron_take_number(struct element *e, int min, int max)
{
	int n = 0;
	size_t digits = 0;

	while (digits < e->left.n && digits < 4 && e->left.p[digits] >= '0' && e->left.p[digits] <= '9')
		n = n * 10 + (e->left.p[digits++] - '0');
	e->left = slice_of(e->left.p + digits, e->left.n - digits);
	e->bad |= !digits || n < min || n > max;
	return n;
}

/* A number or a name. */
static int cron_take_value(struct element *e)
{
	for (int i = 0; e->field->names && e->field->names[i] && e->left.n >= 3; i++)
		if (strncasecmp(e->left.p, e->field->names[i], 3) == 0) {
			e->left = slice_of(e->left.p + 3, e->left.n - 3);
			return e->field->min + i;
		}
	return cron_take_number(e, e->field->min, e->field->max);
}

/* 5L, 5#2: true when it is one. */
static bool take_nth(struct element *e, int weekday, struct cron *cron)
{
	uint8_t *nth = &cron->nth[weekday % 7];

	if (e->field != &cron_parts[WEEKDAY] || e->bad)
		return false;
	if (cron_take(e, 'L') || cron_take(e, 'l')) {
		*nth |= 1;
		return true;
	}
	if (!cron_take(e, '#'))
		return false;
	*nth |= (uint8_t)(1u << (cron_take_number(e, 1, 5) & 7));
	return true;
}

/* Its bits. */
static uint64_t read_element(struct element *e, struct cron *cron)
{
	int from = e->field->min, to = e->field->max, step = 1;
	uint64_t bits = 0;

	if (e->field == &cron_parts[MONTH_DAY] && (cron_take(e, 'L') || cron_take(e, 'l'))) {
		cron->last_day = true;
		return 0;
	}
	if (cron_take(e, '*')) {
		to -= e->field == &cron_parts[WEEKDAY]; /* 7 is 0 once more, and no step of its own */
	} else {
		from = cron_take_value(e);
		if (take_nth(e, from, cron))
			return 0;
		to = cron_take(e, '-') ? cron_take_value(e) : next_is(e, '/') ? to : from;
	}
	if (cron_take(e, '/'))
		step = cron_take_number(e, 1, 9999);
	e->bad |= from > to;
	for (int i = from; !e->bad && i <= to; i += step)
		bits |= UINT64_C(1) << i;
	return bits;
}

static bool read_field(struct slice text, const struct cron_field *field, struct cron *cron, uint64_t *ret_bits)
{
	struct slice left = text;
	bool more = true;

	for (*ret_bits = 0; more;) {
		const char *comma = memchr(left.p, ',', left.n);
		size_t n = comma ? (size_t)(comma - left.p) : left.n;
		struct element e = {field, slice_of(left.p, n), n == 0};

		*ret_bits |= e.bad ? 0 : read_element(&e, cron);
		if (e.bad || e.left.n)
			return false;
		more = comma != NULL;
		left = more ? slice_of(left.p + n + 1, left.n - n - 1) : left;
	}
	return true;
}

/* The words of a text, between blanks; how many there are, up to one more than fit. */
static size_t split(struct slice text, struct slice ret_words[CRON_FIELDS])
{
	size_t n = 0;

	for (size_t i = 0; i < text.n;) {
		size_t begin = i;

		while (i < text.n && text.p[i] != ' ' && text.p[i] != '\t')
			i++;
		if (i == begin) {
			i++;
			continue;
		}
		if (n == CRON_FIELDS)
			return n + 1;
		ret_words[n++] = slice_of(text.p + begin, i - begin);
	}
	return n;
}

enum hx_code cron_parse(struct slice text, struct hx_error *err, struct cron *ret_cron)
{
	struct cron cron = {0};
	struct slice words[CRON_FIELDS];
	uint64_t bits[CRON_FIELDS];

	if (text.n > CRON_TEXT_MAX || split(text, words) != CRON_FIELDS)
		return error_set(err, HX_VALIDATION_ERROR,
				 "cron: \"%s\" does not have five fields: minute hour day-of-month month day-of-week",
				 excerpt_of(text).text);
	for (int i = 0; i < CRON_FIELDS; i++)
		if (!read_field(words[i], &cron_parts[i], &cron, &bits[i]))
			return error_set(err, HX_VALIDATION_ERROR, "cron: \"%s\" is no %s of cron, %d to %d",
					 excerpt_of(words[i]).text, cron_parts[i].name, cron_parts[i].min,
					 cron_parts[i].max);
	cron.minutes = bits[MINUTE];
	cron.hours = (uint32_t)bits[HOUR];
	cron.days = (uint32_t)bits[MONTH_DAY];
	cron.months = (uint32_t)bits[MONTH];
	cron.weekdays = (uint32_t)((bits[WEEKDAY] | bits[WEEKDAY] >> 7) & 0x7f);
	cron.both = words[MONTH_DAY].p[0] == '*' || words[WEEKDAY].p[0] == '*';
	if (cron_next_local(&cron, 0) == ZONE_NO_TIME)
		return error_set(err, HX_VALIDATION_ERROR, "cron: \"%s\" never comes", excerpt_of(text).text);
	*ret_cron = cron;
	return HX_OK;
}

/* ---- finding ---- */

static bool is_weekday(const struct cron *cron, int64_t days, const struct civil *date)
{
	int weekday = civil_weekday(days);
	unsigned nth = (unsigned)(date->day - 1) / 7 + 1;
	bool last = date->day + 7 > civil_month_days(date->year, date->month);

	return (cron->weekdays >> weekday & 1) || (cron->nth[weekday] >> nth & 1) || (last && (cron->nth[weekday] & 1));
}

static bool is_day(const struct cron *cron, int64_t days, const struct civil *date)
{
	bool of_month = (cron->days >> date->day & 1) ||
			(cron->last_day && date->day == civil_month_days(date->year, date->month));
	bool of_week = is_weekday(cron, days, date);

	return cron->both ? of_month && of_week : of_month || of_week;
}

/* The first time of a day that is not before this one, in minutes; -1: none. */
static int64_t next_of_day(const struct cron *cron, int64_t minute)
{
	for (; minute < 1440; minute++) {
		if (!(cron->hours >> (minute / 60) & 1))
			minute += 59 - minute % 60;
		else if (cron->minutes >> (minute % 60) & 1)
			return minute;
	}
	return -1;
}

int64_t cron_next_local(const struct cron *cron, int64_t local)
{
	int64_t days = floor_div(local, DAY), minute = (local - days * DAY + 59) / 60;
	int64_t year_max = civil_of(days).year + YEARS_MAX;

	for (;; days++, minute = 0) {
		struct civil date = civil_of(days);
		int64_t found;

		if (date.year > year_max)
			return ZONE_NO_TIME;
		if (!(cron->months >> date.month & 1)) {
			days += civil_month_days(date.year, date.month) - date.day;
			continue;
		}
		found = is_day(cron, days, &date) ? next_of_day(cron, minute) : -1;
		if (found >= 0)
			return days * DAY + found * 60;
	}
}

/* Local times from that of `after` on: those before it have had their moment. Of these, some may have, where an hour is doubled. */
static int64_t next_by_cron(const struct timing *timing, int64_t after_s)
{
	int64_t local = after_s + zone_offset(timing->zone, after_s);

	for (;;) {
		int64_t found = cron_next_local(&timing->cron, local), moment;

		if (found == ZONE_NO_TIME)
			return found;
		moment = zone_moment(timing->zone, found);
		if (moment > after_s)
			return moment;
		local = found + 60;
	}
}

int64_t timing_next(const struct timing *timing, int64_t after_s)
{
	int64_t base = timing->from_s == INT64_MIN ? 0 : timing->from_s, next;

	if (timing->from_s != INT64_MIN && after_s < timing->from_s)
		after_s = timing->from_s - 1;
	if (timing->every_s)
		next = base + (floor_div(after_s - base, timing->every_s) + 1) * timing->every_s;
	else
		next = next_by_cron(timing, after_s);
	return next <= timing->to_s ? next : ZONE_NO_TIME;
}
