/*
 * A time zone of the system's tzdata: how far its clocks are from UTC at any moment, out of the bytes of a TZif file (RFC 8536).
 * Pure: whoever has the bytes gives them; the TZ of the process plays no part.
 *
 *   moments of the file ──────────────────▶│ the last one: from here on the rule at the end of the file, year by year
 *   offset 0 │ offset 1 │ offset 2 │ …       CET-1CEST,M3.5.0,M10.5.0/3
 *
 * Times are whole seconds since 1970: of UTC, or *local*, which is what the clocks of the zone show, counted as if it were UTC.
 * A local time may come never (a gap: clocks go forward) or twice (doubled: they go back). One that never comes stands for the
 * end of its gap, one that comes twice for the first time; so the moments of rising local times never fall.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

#define ZONE_BYTES_MAX (256u << 10) /* of a file */
#define ZONE_NAME_MAX 64
#define ZONE_NO_TIME INT64_MAX

struct zone_change {
	int64_t at; /* from this moment of UTC on */
	int64_t offset;
};

/* When clocks change, in any year: month 1 to 12 and its week (5: the last) and weekday; or month 0 and a day of the year. */
struct zone_day {
	int month, week, weekday;
	int day; /* month 0: from 0 on; `leap_free`: from 1 on, and February has 28 days */
	bool leap_free;
	int64_t seconds; /* after its midnight; may be negative, or more than a day */
};

struct zone {
	size_t changes_n;
	const struct zone_change *changes; /* rising */
	int64_t first_offset;              /* before the first change */
	bool has_rule, has_summer;
	int64_t rule_offset, summer_offset;
	struct zone_day summer_begins, summer_ends;
};

/* "Europe/Berlin": parts of letters, digits, _ + -, with / between them. It cannot lead out of a folder. */
bool zone_name_is_good(struct slice name);
/* HX_VALIDATION_ERROR, with words: this is no TZif file of version 2 or later, or one that counts leap seconds. */
enum hx_code zone_parse(struct slice bytes, struct arena *arena, struct hx_error *err,
			struct zone *ret_zone) HX_MUST_CHECK;
extern const struct zone zone_utc;

int64_t zone_offset(const struct zone *zone, int64_t utc);
/* The moment of a local time. */
int64_t zone_moment(const struct zone *zone, int64_t local);

/* ---- the calendar ---- */

struct civil {
	int64_t year;
	int month, day; /* from 1 on */
};
/* Of days since 1970-01-01. */
struct civil civil_of(int64_t days);
int civil_month_days(int64_t year, int month);
/* 0: Sunday. */
int civil_weekday(int64_t days);
/* Rounded down. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}
