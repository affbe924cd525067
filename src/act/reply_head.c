/* See reply_head.h. The values come without white space around them (wire/wire.h). */
#include "act/reply_head.h"

#include <stdio.h>
#include <strings.h>
#include <time.h>

/* Digits and nothing else. What is too large for the type is too large for the ceiling, too. */
static bool read_seconds(struct slice value, int64_t *ret_s)
{
	int64_t s = 0;

	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] < '0' || value.p[i] > '9')
			return false;
		s = s > RETRY_AFTER_MS_MAX ? s : s * 10 + (value.p[i] - '0');
	}
	*ret_s = s;
	return value.n > 0;
}

static int month_of(const char *name)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (int i = 0; i < 12; i++)
		if (strncasecmp(months + 3 * i, name, 3) == 0)
			return i;
	return -1;
}

/* Two digits of a year are the one that is nearest: RFC 9110 has it so, and what is 50 years off is in no Retry-After. */
static int year_of(int year)
{
	return year >= 100 ? year : year + (year < 70 ? 2000 : 1900);
}

/*
 * The three forms of RFC 9110:
 *   Sun, 06 Nov 1994 08:49:37 GMT      Sunday, 06-Nov-94 08:49:37 GMT      Sun Nov  6 08:49:37 1994
 */
static bool read_date(struct slice value, int64_t *ret_s)
{
	struct tm tm = {0};
	char text[48] = "", month[4] = "", zone[4] = "GMT";

	if (value.n == 0 || value.n >= sizeof text)
		return false;
	memcpy(text, value.p, value.n);
	if (sscanf(text, "%*[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d %3s", &tm.tm_mday, month, &tm.tm_year, &tm.tm_hour,
		   &tm.tm_min, &tm.tm_sec, zone) != 7 &&
	    sscanf(text, "%*[A-Za-z], %2d-%3[A-Za-z]-%4d %2d:%2d:%2d %3s", &tm.tm_mday, month, &tm.tm_year, &tm.tm_hour,
		   &tm.tm_min, &tm.tm_sec, zone) != 7 &&
	    sscanf(text, "%*3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d", month, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
		   &tm.tm_sec, &tm.tm_year) != 6)
		return false;
	tm.tm_mon = month_of(month);
	tm.tm_year = year_of(tm.tm_year) - 1900;
	if (tm.tm_mon < 0 || strcasecmp(zone, "GMT") != 0)
		return false;
	*ret_s = timegm(&tm);
	return true;
}

bool reply_retry_after(struct slice value, struct slice date, int64_t now_s, int64_t *ret_ms)
{
	int64_t s, from;

	if (!read_seconds(value, &s)) {
		if (!read_date(value, &s))
			return false;
		s -= read_date(date, &from) ? from : now_s;
	}
	s = s < 0 ? 0 : s;
	*ret_ms = s < RETRY_AFTER_MS_MAX / 1000 ? s * 1000 : RETRY_AFTER_MS_MAX;
	return true;
}
