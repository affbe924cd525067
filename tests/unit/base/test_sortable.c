/* Texts that sort as what they stand for: the order of numbers and strings, one text for one value, and back. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/sortable.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define ROOM 8000

static struct json checked(const char *text)
{
	struct hx_error err;
	struct json value = {{NULL, 0}};

	if (json_check(slice_str(text), &err, &value) != HX_OK)
		fail_msg("%s: %s", text, err.detail);
	return value;
}

static void texts_and_back(void **state)
{
	/* clang-format off */
	static const char *const cases[][3] = {
		{"false", "b0", "false"}, {"true", "b1", "true"},
		{"0", "n1", "0"}, {"-0.0e7", "n1", "0"},
		{"1", "n250000000011", "1"}, {"10e-1", "n250000000011", "1"}, {"120", "n2500000000312", "120"},
		{"0.5", "n250000000005", "0.5"}, {"0.0120e+07", "n2500000000612", "120000"},
		{"-0.5", "n049999999994~", "-0.5"}, {"-0.55", "n0499999999944~", "-0.55"},
		{"-12", "n0499999999787~", "-12"}, {"12.25", "n250000000021225", "12.25"},
		{"1e20", "n250000000211", "100000000000000000000"}, {"1e21", "n250000000221", "1e21"},
		{"-1.25e30", "n04999999968874~", "-1.25e30"}, {"1e-22", "n249999999791", "0.0000000000000000000001"},
		{"1.5e-30", "n2499999997115", "1.5e-30"}, {"1e4999999998", "n299999999991", "1e4999999998"},
		{"1e-5000000001", "n200000000001", "1e-5000000001"},
		{"\"\"", "s", "\"\""}, {"\"c-1\"", "sc-1", "\"c-1\""}, {"\"\\u00e4\\n\"", "s\xc3\xa4\n", "\"\xc3\xa4\\n\""},
		{"\"b1\"", "sb1", "\"b1\""},
	};
	/* clang-format on */
	LOCAL_STRBUF(text, ROOM);
	LOCAL_STRBUF(back, ROOM);

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		strbuf_reset(&text);
		strbuf_reset(&back);
		assert_true(sortable_of(checked(cases[i][0]), &text));
		assert_string_equal(text.p, cases[i][1]);
		assert_true(sortable_json(strbuf_slice(&text), &back));
		assert_string_equal(back.p, cases[i][2]);
	}
}

/* A JSON string of n times this, in quotes. */
static void add_string(const char *piece, size_t n, struct strbuf *sb)
{
	strbuf_reset(sb);
	strbuf_add_char(sb, '"');
	for (size_t i = 0; i < n; i++)
		strbuf_add_str(sb, piece);
	strbuf_add_char(sb, '"');
}

static void what_cannot_be_kept(void **state)
{
	static const char *const none[] = {
		"null", "[1]", "{}", "\"a\\u0000b\"", "1e4999999999", "1e-5000000002", "1e99999999999999999999"};
	LOCAL_STRBUF(text, ROOM);

	(void)state;
	strbuf_add_str(&text, "before");
	for (size_t i = 0; i < COUNT(none); i++) {
		assert_false(sortable_of(checked(none[i]), &text));
		assert_string_equal(text.p, "before");
	}
}

static void bounds(void **state)
{
	static const char *const pieces[] = {"a", "\xc3\xa4", "\xf0\x9f\x98\x80", "\\ud83d\\ude00", "\\n"};
	LOCAL_STRBUF(json, ROOM);
	LOCAL_STRBUF(text, ROOM);

	(void)state;
	for (size_t i = 0; i < COUNT(pieces); i++) {
		strbuf_reset(&text);
		add_string(pieces[i], SORTABLE_CHARS_MAX, &json);
		assert_true(sortable_of(checked(json.p), &text));
		assert_true(text.n <= SORTABLE_BYTES_MAX);
		strbuf_reset(&text);
		add_string(pieces[i], SORTABLE_CHARS_MAX + 1, &json);
		assert_false(sortable_of(checked(json.p), &text));
		assert_int_equal(text.n, 0);
	}
	for (size_t more = 0; more < 2; more++) {
		strbuf_reset(&json);
		for (size_t i = 0; i < SORTABLE_DIGITS_MAX + more; i++)
			strbuf_add_char(&json, '7');
		assert_int_equal(sortable_of(checked(json.p), &text), more == 0);
	}
}

static void nothing_else_is_read_back(void **state)
{
	static const char *const others[] = {"",
					     "b",
					     "b2",
					     "b10",
					     "n",
					     "n3",
					     "n11",
					     "n25000000001",
					     "n250000000010",
					     "n2500000000110",
					     "n25000000001x",
					     "n049999999994",
					     "n04999999999~",
					     "n050000000019~",
					     "n350000000011",
					     "s\xff",
					     "x"};
	LOCAL_STRBUF(back, ROOM);

	(void)state;
	for (size_t i = 0; i < COUNT(others); i++) {
		if (sortable_json(slice_str(others[i]), &back))
			fail_msg("%s is %s", others[i], back.p);
		assert_int_equal(back.n, 0);
	}
	assert_false(sortable_json(slice_of("sa\0b", 4), &back));
}

/* ---- order ---- */

static uint64_t drawn;

static uint64_t draw(uint64_t below)
{
	drawn = hash_bytes(drawn + 1, &drawn, sizeof drawn);
	return drawn % below;
}

/* Few digits and small exponents, so that neighbours and equal values in other spellings come often. */
static void draw_number(char text[64])
{
	int n = snprintf(text, 64, "%s%" PRIu64, draw(2) ? "-" : "", draw(draw(3) ? 12 : 1000000));

	if (draw(2))
		n += snprintf(text + n, 64 - (size_t)n, ".%0*" PRIu64, (int)draw(4) + 1, draw(10));
	if (draw(2))
		snprintf(text + n, 64 - (size_t)n, "e%d", (int)draw(7) - 3);
}

static int sign(int order)
{
	return (order > 0) - (order < 0);
}

static void numbers_sort(void **state)
{
	LOCAL_STRBUF(one, ROOM);
	LOCAL_STRBUF(other, ROOM);

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char a[64], b[64];

		draw_number(a);
		draw_number(b);
		strbuf_reset(&one);
		strbuf_reset(&other);
		assert_true(sortable_of(checked(a), &one) && sortable_of(checked(b), &other));

		struct json_number left = json_number_of(checked(a)), right = json_number_of(checked(b));
		int order = sign(slice_compare(strbuf_slice(&one), strbuf_slice(&other)));

		if (order != sign(json_number_compare(&left, &right)))
			fail_msg("%s (%s) and %s (%s)", a, one.p, b, other.p);

		/* What is read back is the same value. */
		strbuf_reset(&other);
		assert_true(sortable_json(strbuf_slice(&one), &other));
		right = json_number_of(checked(other.p));
		assert_int_equal(json_number_compare(&left, &right), 0);
	}
}

static void integers(void **state)
{
	static const int64_t values[] = {INT64_MIN, -1000, -1, 0, 1, 10, 4711, INT64_MAX};
	char buffer[SORTABLE_INT_BYTES], digits[32];
	LOCAL_STRBUF(text, ROOM);

	(void)state;
	for (size_t i = 0; i < COUNT(values); i++) {
		snprintf(digits, sizeof digits, "%" PRId64, values[i]);
		strbuf_reset(&text);
		assert_true(sortable_of(checked(digits), &text));
		assert_true(slice_eq(sortable_int64(values[i], buffer), strbuf_slice(&text)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_and_back), cmocka_unit_test(what_cannot_be_kept),
		cmocka_unit_test(bounds),         cmocka_unit_test(nothing_else_is_read_back),
		cmocka_unit_test(numbers_sort),   cmocka_unit_test(integers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
