/*
 * See json_number.h for the form. Exponents come in two sizes. Up to EXPONENT_DIGITS_SMALL digits they are added
 * and compared as int64. Above, the exponent is at least 10^18, while the shift is bounded by the length of the
 * text: the sum keeps the exponent's sign, and adding is a carry or borrow through its decimal digits.
 */
#include "base/json_number.h"

#include <inttypes.h>

#include "base/excerpt.h"

#define EXPONENT_DIGITS_SMALL 18
#define EXPONENT_DIFF_LIMIT 100000000000000000 /* 10^17: no shift or digit count comes near */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The sign and digits after the 'e', if there is one at p. */
static void take_exponent(const char *p, const char *end, struct json_number *number)
{
	if (p < end)
		p++;
	if (p < end && (*p == '+' || *p == '-'))
		number->exponent_negative = *p++ == '-';
	while (p < end && *p == '0')
		p++;
	number->exponent = slice_of(p, (size_t)(end - p));
}

struct json_number json_number_of(struct json value)
{
	const char *end = value.raw.p + value.raw.n;
	const char *p = value.raw.p;
	const char *point = NULL, *first = NULL, *last = NULL;
	struct json_number number = {0};

	ASSERT(json_type(value) == JSON_NUMBER);
	if (*p == '-')
		p++;
	for (; p < end && (is_digit(*p) || *p == '.'); p++) {
		if (*p == '.') {
			point = p;
		} else if (*p != '0') {
			first = first ? first : p;
			last = p;
		}
	}
	if (!first)
		return number;
	point = point ? point : p;
	number.negative = value.raw.p[0] == '-';
	number.digits = slice_of(first, (size_t)(last - first) + 1);
	number.digit_count = number.digits.n - (first < point && point < last);
	number.shift = last < point ? point - last - 1 : point - last;
	take_exponent(p, end, &number);
	return number;
}

/* The exponent as an integer; only for the small ones. */
static int64_t small_exponent(const struct json_number *number)
{
	int64_t value = 0;

	ASSERT(number->exponent.n <= EXPONENT_DIGITS_SMALL);
	for (size_t i = 0; i < number->exponent.n; i++)
		value = value * 10 + (number->exponent.p[i] - '0');
	return number->exponent_negative ? -value : value;
}

/* The signed digit of the exponent that counts 10^place. */
static int exponent_digit(const struct json_number *number, size_t place)
{
	if (place >= number->exponent.n)
		return 0;

	int digit = number->exponent.p[number->exponent.n - 1 - place] - '0';

	return number->exponent_negative ? -digit : digit;
}

/* a's exponent less b's, from the highest place down. Once it is past the limit no further digit can bring it back. */
static int64_t exponent_diff(const struct json_number *a, const struct json_number *b)
{
	size_t place = a->exponent.n > b->exponent.n ? a->exponent.n : b->exponent.n;
	int64_t diff = 0;

	while (place-- > 0) {
		diff = diff * 10 + exponent_digit(a, place) - exponent_digit(b, place);
		if (diff > EXPONENT_DIFF_LIMIT || diff < -EXPONENT_DIFF_LIMIT)
			break;
	}
	return diff;
}

/* Both as fractions 0.DIGITS: compares digit by digit, over the points. */
static int compare_digits(struct slice a, struct slice b)
{
	size_t i = 0, j = 0;

	for (;; i++, j++) {
		if (i < a.n && a.p[i] == '.')
			i++;
		if (j < b.n && b.p[j] == '.')
			j++;
		if (i == a.n || j == b.n)
			return (i < a.n) - (j < b.n);
		if (a.p[i] != b.p[j])
			return a.p[i] < b.p[j] ? -1 : 1;
	}
}

static int sign(const struct json_number *number)
{
	return number->digit_count == 0 ? 0 : number->negative ? -1 : 1;
}

int json_number_compare(const struct json_number *a, const struct json_number *b)
{
	if (sign(a) != sign(b) || sign(a) == 0)
		return sign(a) - sign(b);

	/* 0.DIGITS × 10^magnitude: the greater magnitude is the greater number, as the first digit is not 0. */
	int64_t magnitude = exponent_diff(a, b) + (a->shift + (int64_t)a->digit_count) -
			    (b->shift + (int64_t)b->digit_count);
	int order = magnitude ? (magnitude > 0 ? 1 : -1) : compare_digits(a->digits, b->digits);

	return a->negative ? -order : order;
}

/* Adds or takes away by from the decimal number of n digits at p. Returns the carry after the highest digit. */
static uint64_t decimal_adjust(char *p, size_t n, uint64_t by, bool subtract)
{
	while (n-- > 0 && by > 0) {
		int digit = p[n] - '0' + (subtract ? -(int)(by % 10) : (int)(by % 10));

		by /= 10;
		if (digit < 0 || digit > 9) {
			digit += subtract ? 10 : -10;
			by++;
		}
		p[n] = (char)('0' + digit);
	}
	return by;
}

/* Appends e, the sign and |exponent + shift| for an exponent of more than EXPONENT_DIGITS_SMALL digits. */
static void append_large_exponent(const struct json_number *number, struct strbuf *sb)
{
	size_t n = number->exponent.n;
	bool subtract = (number->shift < 0) != number->exponent_negative;
	uint64_t by = number->shift < 0 ? -(uint64_t)number->shift : (uint64_t)number->shift;
	char *p;

	strbuf_add_str(sb, number->exponent_negative ? "e-" : "e");
	p = strbuf_reserve(sb, n + 1);
	if (!p)
		return;
	p[0] = '0';
	memcpy(p + 1, number->exponent.p, n);

	uint64_t carry = decimal_adjust(p + 1, n, by, subtract);

	ASSERT(carry <= 1 && !(carry && subtract));
	p[0] = (char)('0' + carry);

	size_t zeros = p[0] != '0' ? 0 : p[1] != '0' ? 1 : 2;

	memmove(p, p + zeros, n + 1 - zeros);
	p[n + 1 - zeros] = '\0';
	sb->n += n + 1 - zeros;
}

void json_number_append(const struct json_number *number, struct strbuf *sb)
{
	if (number->digit_count == 0) {
		strbuf_add_char(sb, '0');
		return;
	}
	if (number->negative)
		strbuf_add_char(sb, '-');

	const char *point = memchr(number->digits.p, '.', number->digits.n);
	size_t before = point ? (size_t)(point - number->digits.p) : number->digits.n;

	strbuf_add(sb, number->digits.p, before);
	if (point)
		strbuf_add(sb, point + 1, number->digits.n - before - 1);
	if (number->exponent.n > EXPONENT_DIGITS_SMALL) {
		append_large_exponent(number, sb);
		return;
	}

	int64_t exponent = small_exponent(number) + number->shift;

	if (exponent != 0)
		strbuf_addf(sb, "e%" PRId64, exponent);
}

/* |value| × 10^exponent, or false if that is above limit. */
static bool scale(const struct json_number *number, int64_t exponent, uint64_t limit, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (size_t i = 0; i < number->digits.n; i++) {
		char c = number->digits.p[i];

		if (c == '.')
			continue;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
			return false;
	}
	for (; exponent > 0; exponent--)
		if (__builtin_mul_overflow(value, 10, &value))
			return false;
	*ret_value = value;
	return value <= limit;
}

enum hx_code json_int64(struct json value, struct hx_error *err, int64_t *ret_value)
{
	if (json_type(value) != JSON_NUMBER)
		return error_set(err, HX_VALIDATION_ERROR, "a number is expected here, this is: %s",
				 json_type_name(json_type(value)));

	struct json_number number = json_number_of(value);
	bool small = number.exponent.n <= EXPONENT_DIGITS_SMALL;
	int64_t exponent = small ? small_exponent(&number) + number.shift : 0;
	uint64_t limit = number.negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
	uint64_t absolute;

	/* The last digit is not 0, so whatever is left after the point is not an integer. */
	if (small ? exponent < 0 : number.exponent_negative)
		return error_set(err, HX_VALIDATION_ERROR, "%s is not an integer", excerpt_of(value.raw).text);
	if (!small || !scale(&number, exponent, limit, &absolute))
		return error_set(err, HX_VALIDATION_ERROR, "%s does not fit into 64 bits", excerpt_of(value.raw).text);
	*ret_value = number.negative ? (int64_t)(0 - absolute) : (int64_t)absolute;
	return HX_OK;
}
