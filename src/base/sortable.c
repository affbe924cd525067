/* See sortable.h for the form. */
#include "base/sortable.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/digits.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/utf8.h"

#define EXPONENT_BIAS INT64_C(5000000000)
#define EXPONENT_MOST INT64_C(9999999999)
#define EXPONENT_CHARS 10
#define HEAD_BYTES (2 + EXPONENT_CHARS)
#define NUMBER_BYTES (HEAD_BYTES + SORTABLE_DIGITS_MAX + 2)
#define PLAIN_EXPONENT 21
/* The longest spelling of a character is a pair of escapes, \ud83d\ude00. */
#define RAW_BYTES_MAX (2 + 12 * SORTABLE_CHARS_MAX)

/* ---- numbers ---- */

/* E of the number that is not 0, or false where ten digits do not hold it. */
static bool biased_exponent(const struct json_number *number, int64_t *ret_e)
{
	uint64_t exponent = 0;
	int64_t e;

	if (number->exponent.n > EXPONENT_CHARS ||
	    (number->exponent.n && !digits_number(number->exponent, INT64_MAX, &exponent)))
		return false;
	e = number->exponent_negative ? -(int64_t)exponent : (int64_t)exponent;
	e += number->shift + (int64_t)number->digit_count + EXPONENT_BIAS;
	*ret_e = e;
	return e >= 0 && e <= EXPONENT_MOST;
}

/* The text of the number; n 0: it has none. */
static struct slice number_text(struct json value, char buffer[NUMBER_BYTES])
{
	struct json_number number = json_number_of(value);
	int64_t e;
	size_t n;

	if (number.digit_count == 0) {
		memcpy(buffer, "n1", 2);
		return slice_of(buffer, 2);
	}
	if (number.digit_count > SORTABLE_DIGITS_MAX || !biased_exponent(&number, &e))
		return slice_of(buffer, 0);
	n = (size_t)snprintf(buffer, NUMBER_BYTES, "n%c%010" PRId64, number.negative ? '0' : '2',
			     number.negative ? EXPONENT_MOST - e : e);
	for (size_t i = 0; i < number.digits.n; i++)
		if (number.digits.p[i] != '.')
			buffer[n++] = number.negative ? (char)('0' + '9' - number.digits.p[i]) : number.digits.p[i];
	if (number.negative)
		buffer[n++] = '~';
	return slice_of(buffer, n);
}

static bool number_of(struct json value, struct strbuf *sb)
{
	char buffer[NUMBER_BYTES];
	struct slice text = number_text(value, buffer);

	strbuf_add_slice(sb, text);
	return text.n && !sb->failed;
}

struct slice sortable_int64(int64_t value, char buffer[SORTABLE_INT_BYTES])
{
	char digits[24], text[NUMBER_BYTES];
	int n = snprintf(digits, sizeof digits, "%" PRId64, value);
	struct slice sortable = number_text(json_trust(slice_of(digits, (size_t)n)), text);

	ASSERT(sortable.n && sortable.n <= SORTABLE_INT_BYTES);
	memcpy(buffer, sortable.p, sortable.n);
	return slice_of(buffer, sortable.n);
}

/* ---- all ---- */

static bool string_fits(struct slice text)
{
	size_t characters = 0;

	for (size_t i = 0; i < text.n; i++)
		characters += !utf8_continues((unsigned char)text.p[i]);
	return characters <= SORTABLE_CHARS_MAX && !(text.n && memchr(text.p, '\0', text.n));
}

bool sortable_string(struct slice text, struct strbuf *sb)
{
	if (!string_fits(text) || !strbuf_reserve(sb, text.n + 1))
		return false;
	strbuf_add_char(sb, SORTABLE_STRING);
	strbuf_add_slice(sb, text);
	return true;
}

bool sortable_of(struct json value, struct strbuf *sb)
{
	char text[RAW_BYTES_MAX];

	switch (json_type(value)) {
	case JSON_BOOL:
		strbuf_add_str(sb, json_bool(value) ? "b1" : "b0");
		return !sb->failed;
	case JSON_NUMBER:
		return number_of(value, sb);
	case JSON_STRING:
		return value.raw.n <= RAW_BYTES_MAX &&
		       sortable_string(json_string_view_in(value, text, sizeof text), sb);
	case JSON_NULL:
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	}
	return false;
}

/* ---- and back ---- */

static void zeros(int64_t n, struct strbuf *sb)
{
	while (n-- > 0)
		strbuf_add_char(sb, '0');
}

/* 0.DIGITS × 10^e */
static void write_number(struct slice digits, int64_t e, struct strbuf *sb)
{
	size_t whole = e <= 0 ? 0 : (uint64_t)e < digits.n ? (size_t)e : digits.n;

	if (e < -PLAIN_EXPONENT || e > PLAIN_EXPONENT) {
		strbuf_add_char(sb, digits.p[0]);
		if (digits.n > 1)
			strbuf_addf(sb, ".%.*s", SLICE_ARGS(slice_from(digits, 1)));
		strbuf_addf(sb, "e%" PRId64, e - 1);
		return;
	}
	strbuf_add(sb, digits.p, whole);
	zeros(whole ? e - (int64_t)whole : 1, sb);
	if (whole == digits.n)
		return;
	strbuf_add_char(sb, '.');
	zeros(-e, sb);
	strbuf_add_slice(sb, slice_from(digits, whole));
}

/* Takes the digits, turned round where the number is negative; false unless they are as number_text() writes them. */
static bool take_digits(struct slice text, bool negative, char digits[SORTABLE_DIGITS_MAX], size_t *ret_n)
{
	size_t n = text.n - negative;

	if (text.n <= negative || n > SORTABLE_DIGITS_MAX || (negative && text.p[n] != '~'))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
		digits[i] = negative ? (char)('0' + '9' - text.p[i]) : text.p[i];
	}
	*ret_n = n;
	return digits[0] != '0' && digits[n - 1] != '0';
}

static bool number_json(struct slice text, struct strbuf *sb)
{
	bool negative = text.n > 1 && text.p[1] == '0';
	char digits[SORTABLE_DIGITS_MAX];
	uint64_t e;
	size_t n;

	if (slice_is(text, "n1")) {
		strbuf_add_char(sb, '0');
		return true;
	}
	if (text.n <= HEAD_BYTES || (text.p[1] != '2' && !negative) ||
	    !digits_number(slice_of(text.p + 2, EXPONENT_CHARS), EXPONENT_MOST, &e) ||
	    !take_digits(slice_from(text, HEAD_BYTES), negative, digits, &n))
		return false;
	if (negative)
		strbuf_add_char(sb, '-');
	write_number(slice_of(digits, n), (negative ? EXPONENT_MOST - (int64_t)e : (int64_t)e) - EXPONENT_BIAS, sb);
	return true;
}

bool sortable_json(struct slice sortable, struct strbuf *sb)
{
	switch (sortable.n ? sortable.p[0] : '\0') {
	case SORTABLE_BOOL:
		if (!slice_is(sortable, "b0") && !slice_is(sortable, "b1"))
			return false;
		strbuf_add_str(sb, sortable.p[1] == '1' ? "true" : "false");
		return true;
	case SORTABLE_NUMBER:
		return number_json(sortable, sb);
	case SORTABLE_STRING:
		if (utf8_valid_bytes(sortable) != sortable.n || !string_fits(slice_from(sortable, 1)))
			return false;
		json_quote(slice_from(sortable, 1), sb);
		return true;
	default:
		return false;
	}
}
