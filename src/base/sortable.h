/*
 * Values of JSON as texts whose byte order is the order of the values, for columns that are compared and indexed.
 *
 *   false, true   b0, b1
 *   0             n1
 *   above 0       n2 EEEEEEEEEE DIGITS      the value is 0.DIGITS × 10^e, and E is e + 5,000,000,000 with ten digits
 *   below 0       n0 (9999999999 − E) DIGITS ~      each digit d as 9 − d; ~ is above every digit, so −0.55 is before −0.5
 *   string        s and its text
 *
 * Numbers are exact, and all spellings of one value are one text (1, 1.0, 10e-1), so equal is equal bytes. The first letter is
 * the type: texts that differ in it are unequal, and their order means nothing. UTF-8 in byte order is the order of the code points.
 *
 * What cannot be kept has no text: null, arrays, objects, a string of more than SORTABLE_CHARS_MAX characters or with U+0000
 * (which PostgreSQL does not have), a number of more than SORTABLE_DIGITS_MAX digits or beyond 10^±5,000,000,000.
 */
#pragma once

#include <stdint.h>

#include "base/json.h"
#include "base/strbuf.h"

#define SORTABLE_CHARS_MAX 255
#define SORTABLE_DIGITS_MAX 100
#define SORTABLE_BYTES_MAX (1 + 4 * SORTABLE_CHARS_MAX) /* the longest text */

enum sortable_type { SORTABLE_BOOL = 'b', SORTABLE_NUMBER = 'n', SORTABLE_STRING = 's' };

/* Appends the text of a checked value. False: it cannot be kept, nothing is appended; or there was no memory, which sb says. */
bool sortable_of(struct json value, struct strbuf *sb);
/* The same of a text that is no JSON, and of an integer. */
bool sortable_string(struct slice text, struct strbuf *sb);
#define SORTABLE_INT_BYTES 32
struct slice sortable_int64(int64_t value, char buffer[SORTABLE_INT_BYTES]);

/*
 * Appends the value as JSON: the number in one spelling, plain digits while |e| ≤ 21, else 1.25e30. False, and nothing is appended:
 * sortable_of() makes no such text.
 */
bool sortable_json(struct slice sortable, struct strbuf *sb);
