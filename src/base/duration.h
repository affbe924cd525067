/*
 * Durations as people write them: a whole number and one unit, "250ms" "5s" "2m" "24h" "7d".
 *
 * One spelling, no guessing: what is zero, negative, signed, fractional, without a unit, with leading zeros, with
 * spaces or in capitals is refused, because a lease of nothing or a timeout read wrongly unprotects a step. So is
 * what exceeds DURATION_MS_MAX: up to there its nanoseconds fit beside any uptime, and its milliseconds beside
 * any wall time, so a deadline made of it cannot overflow.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

#define DURATION_MS_MAX (INT64_C(100000) * 24 * 60 * 60 * 1000) /* 100000d, 273 years */
#define DURATION_TEXT_BYTES 24

/*
 * *ret_ms is from 1 to DURATION_MS_MAX. HX_VALIDATION_ERROR otherwise, the detail naming the field and the value
 * (made printable and cut if need be).
 */
enum hx_code duration_parse(const char *field, struct slice text, struct hx_error *err, int64_t *ret_ms) HX_MUST_CHECK;

/* The shortest text of a number of milliseconds, in the largest unit that divides it: 90000 gives "90s". Any
 * number has one; only 1 to DURATION_MS_MAX can be parsed again. */
void duration_format(int64_t ms, char ret_text[DURATION_TEXT_BYTES]);
/* The same where it is said: duration_text(90000).text lives as long as the expression that it stands in. */
struct duration_text {
	char text[DURATION_TEXT_BYTES];
};
static inline struct duration_text duration_text(int64_t ms)
{
	struct duration_text t = {0};

	duration_format(ms, t.text);
	return t;
}
