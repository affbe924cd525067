/*
 * Numbers of JSON by their exact value, never through a double.
 *
 * json_number_of() takes a number apart without converting it:
 *
 *      -0.0120e+07   is   - 12 × 10^(7 - 3)      negative, digits "12", exponent "7", shift -3
 *
 * The digits have no zeros in front or at the end and the exponent has none in front, so two spellings of one
 * value come apart into the same sign, the same digits and the same sum of exponent and shift. The exponent is
 * kept as text: `1e999999999999999999999` is a number like any other, and nothing here grows with its value.
 */
#pragma once

#include <stdint.h>

#include "base/json.h"
#include "base/strbuf.h"

struct json_number {
	bool negative;          /* never set for zero: -0 is 0 */
	struct slice digits;    /* from the first digit to the last that is not 0; the point may stand between them */
	size_t digit_count;     /* without that point; 0 for zero */
	bool exponent_negative; /* means nothing while the exponent is empty */
	struct slice exponent;  /* its digits without leading zeros; empty for 0 */
	int64_t shift;          /* how far the point is after the last of the digits */
};

/* Needs a checked number. Borrows its text. */
struct json_number json_number_of(struct json number);

/* As strcmp: below, equal to or above zero. Exact for all values. */
int json_number_compare(const struct json_number *a, const struct json_number *b);

/*
 * The one spelling that all ways of writing this value share, itself JSON: "0", or the digits, and after them
 * the exponent unless it is 0. 1, 1.0 and 10e-1 give "1", 100 gives "1e2", -0.5 gives "-5e-1". It is shorter
 * than the original plus 24 bytes.
 */
void json_number_append(const struct json_number *number, struct strbuf *sb);

/*
 * The value as an integer if it is exactly one: 7, 7.0 and 70e-1 are 7. Otherwise HX_VALIDATION_ERROR, the detail
 * naming the value; also if `value` is not a number at all.
 */
enum hx_code json_int64(struct json value, struct hx_error *err, int64_t *ret_value) HX_MUST_CHECK;
