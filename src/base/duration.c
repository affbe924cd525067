/* See duration.h. */
#include "base/duration.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/excerpt.h"

static const struct unit {
	const char *name;
	int64_t ms;
} units[] = {
	{"d", 24 * 60 * 60 * 1000}, {"h", 60 * 60 * 1000}, {"m", 60 * 1000}, {"s", 1000}, {"ms", 1},
};

#define UNIT_COUNT (sizeof units / sizeof units[0])

static const struct unit *unit_named(struct slice name)
{
	for (size_t i = 0; i < UNIT_COUNT; i++)
		if (slice_is(name, units[i].name))
			return &units[i];
	return NULL;
}

static size_t leading_digits(struct slice text)
{
	size_t n = 0;

	while (n < text.n && text.p[n] >= '0' && text.p[n] <= '9')
		n++;
	return n;
}

static enum hx_code duration_refuse(const char *field, struct slice text, const char *why, struct hx_error *err)
{
	return error_set(err, HX_VALIDATION_ERROR, "%s: \"%s\" %s", field, excerpt_of(text).text, why);
}

enum hx_code duration_parse(const char *field, struct slice text, struct hx_error *err, int64_t *ret_ms)
{
	size_t digits = leading_digits(text);
	const struct unit *unit = NULL;
	int64_t ms = 0;

	if (digits > 0)
		unit = unit_named(slice_of(text.p + digits, text.n - digits));
	if (!unit)
		return duration_refuse(field, text, "is not a duration; write it like 250ms, 5s, 2m, 24h or 7d", err);
	if (digits == 1 && text.p[0] == '0')
		return duration_refuse(field, text, "is no time at all; a duration must be longer than zero", err);
	if (text.p[0] == '0')
		return duration_refuse(field, text, "begins with 0; write the number without leading zeros", err);
	for (size_t i = 0; i < digits; i++) {
		ms = ms * 10 + (text.p[i] - '0');
		if (ms > DURATION_MS_MAX / unit->ms)
			return duration_refuse(field, text, "is too long; at most 100000d", err);
	}
	*ret_ms = ms * unit->ms;
	return HX_OK;
}

void duration_format(int64_t ms, char ret_text[DURATION_TEXT_BYTES])
{
	const struct unit *unit = &units[UNIT_COUNT - 1];

	for (size_t i = 0; ms != 0 && i < UNIT_COUNT; i++) {
		if (ms % units[i].ms == 0) {
			unit = &units[i];
			break;
		}
	}
	snprintf(ret_text, DURATION_TEXT_BYTES, "%" PRId64 "%s", ms / unit->ms, unit->name);
}
