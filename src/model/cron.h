/*
 * When something is to happen, again and again: five fields of cron in a time zone, or every so many seconds. Pure.
 *
 *   minute hour day-of-month month day-of-week      0-59 0-23 1-31 1-12 0-7 (0 and 7: Sunday)
 *   5   1,15   9-17   10-50/20   a star, a star with a step; JAN to DEC, SUN to SAT, in any case
 *   L in day-of-month: the last one. 5L, FRIL in day-of-week: the last Friday; 5#2, FRI#2: the second Friday
 *
 * As in cron, a day is one of either field where both are restricted (neither begins with a star); else it has to be in both.
 *
 * A time that the clocks of the zone pass over stands for the end of the gap, one that comes twice for the first (zone.h). So two
 * times of the fields may be one moment, and a moment comes once.
 */
#pragma once

#include "model/zone.h"

struct cron {
	uint64_t minutes;
	uint32_t hours, days, months, weekdays;
	bool last_day;
	bool both;      /* a day has to be in both fields */
	uint8_t nth[7]; /* by weekday: bit n: its nth of a month; bit 0: its last */
};

#define CRON_TEXT_MAX 200

/* HX_VALIDATION_ERROR, with words that name the field; also for one that never comes (a 30th of February). */
enum hx_code cron_parse(struct slice text, struct hx_error *err, struct cron *ret_cron) HX_MUST_CHECK;
/* The first local time of the fields that is not before this one; ZONE_NO_TIME: there is none within 40 years. */
int64_t cron_next_local(const struct cron *cron, int64_t local);

/* The times of a schedule. */
struct timing {
	struct cron cron;
	const struct zone *zone;
	int64_t every_s; /* 0: by cron. Counted from `from`, or 1970 */
	int64_t from_s;  /* no earlier; INT64_MIN: always */
	int64_t to_s;    /* no later; INT64_MAX: always */
};
/* The first moment after this one, in seconds; ZONE_NO_TIME: none. */
int64_t timing_next(const struct timing *timing, int64_t after_s);
