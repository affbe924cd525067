/*
 * The scanner against RFC 8259: a corpus of what is JSON and what is not, each text in a heap block of its exact
 * size, so that the address sanitizer sees every byte that is read after its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"

#define T(s)                                                                                                           \
	{                                                                                                              \
		s, sizeof s - 1                                                                                        \
	}
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static enum hx_code check(struct slice text, struct hx_error *err)
{
	char *exact = malloc(text.n ? text.n : 1);
	struct json value = {{NULL, 0}};
	enum hx_code code;

	assert_non_null(exact);
	if (text.n)
		memcpy(exact, text.p, text.n);
	code = json_check(slice_of(exact, text.n), err, &value);
	assert_true((code == HX_OK) == (value.raw.p != NULL));
	free(exact);
	return code;
}

static void assert_refused(const char *text, const char *detail)
{
	struct hx_error err;

	assert_int_equal(check(slice_str(text), &err), HX_VALIDATION_ERROR);
	assert_int_equal(err.code, HX_VALIDATION_ERROR);
	assert_string_equal(err.detail, detail);
}

static void what_is_json(void **state)
{
	/* clang-format off */
	static const struct slice good[] = {
		/* bare values */
		T("null"), T("true"), T("false"), T("0"), T("-0"), T("\"\""), T("[]"), T("{}"),
		/* white space, all four kinds of it and only around tokens */
		T(" \t\r\n1\n\r\t "), T("[ ]"), T("{\n}"), T(" [ 1 , 2 ] "), T("{ \"a\" : 1 , \"b\" : { } }"),
		T("[\r\n1\r\n]"),
		/* numbers are grammar, not range */
		T("1e400"), T("-1E+400"), T("1e-400"), T("9007199254740993"), T("0.0"), T("-0.0e-0"),
		T("1e0000000001"), T("123456789012345678901234567890.123456789"),
		T("1e999999999999999999999999999999"), T("[0,-1,2.5e3]"),
		/* strings */
		T("\"a\""), T("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), T("\"\\u0000\""), T("\"\\u00e9\\uABCD\\uabcd\""),
		T("\"\\ud83d\\ude00\""), T("\"\\uDBFF\\uDFFF\""), T("\"\\uD800\\uDC00x\""),
		T("\"\\ud7ff\\ue000\\uffff\""), T("\"\x7f\""), T("\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""),
		T("\"\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80\""), T("\"\xef\xbb\xbf\""), T("\"\xef\xbf\xbf\""),
		T("\"\xe2\x80\xa8\""), T("\"/\""), T("\"eight by8 bytes and more of them\""), T("\"1234567\\n\""),
		T("\"12345678\\n\""),
		/* names may be anything, also double: that is json_check_unique()'s to refuse */
		T("{\"\":0}"), T("{\"a\":1,\"a\":2}"), T("{\"\\u0061\":1,\"a\":2}"), T("{\"\\u0000\":[{}]}"),
		T("[[[]],{\"a\":[{\"b\":[]}]},[]]"), T("[true,false,null]"),
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		struct hx_error err;

		if (check(good[i], &err) != HX_OK)
			fail_msg("%.*s: %s", SLICE_ARGS(good[i]), err.detail);
	}
}

/* clang-format off */
static const struct slice not_json[] = {
	/* nothing, or too much */
	T(""), T(" "), T("\n\t"), T("1 2"), T("{} {}"), T("[]]"), T("{}}"), T("null,"), T("1,"), T("\"a\"b"),
	T("[] x"), T("true false"), T("truefalse"), T("\0"), T("1\0"), T("null\0null"),
	/* byte order marks */
	T("\xef\xbb\xbf{}"), T("\xef\xbb\xbf"), T("\xfe\xff\0{\0}"), T("\xff\xfe{\0}\0"), T("{\xef\xbb\xbf}"),
	/* white space that JSON does not know */
	T("\f1"), T("\v1"), T("\xc2\xa0" "1"), T("\xe2\x80\xa8[]"), T("1\x1a"),
	/* words */
	T("nul"), T("nulll"), T("Null"), T("NULL"), T("tru"), T("True"), T("fals"), T("falsey"),
	T("undefined"), T("NaN"), T("Infinity"), T("-Infinity"), T("-"), T("+"), T("'a'"), T("a"), T("nan"),
	T("inf"),
	/* numbers */
	T("01"), T("00"), T("-01"), T("+1"), T("1."), T(".1"), T("-.1"), T("1.e1"), T("1e"), T("1e+"),
	T("1e-"), T("1E"), T("1.2.3"), T("1e1.5"), T("1e1e1"), T("--1"), T("- 1"), T("1 .5"), T("0x10"),
	T("1_000"), T("1a"), T("-a"), T("1e+-1"), T("\xd9\xa1"), T("0b1"), T("1d"), T("1f"), T("-0x1"),
	T("012e1"), T("1/2"),
	/* strings */
	T("\""), T("\"a"), T("\"\\"), T("\"\\\""), T("\"\\x41\""), T("\"\\a\""), T("\"\\'\""), T("\"\\0\""),
	T("\"\\U0041\""), T("\"\\u\""), T("\"\\u1\""), T("\"\\u12\""), T("\"\\u123\""), T("\"\\u123g\""),
	T("\"\\u 123\""), T("\"\\u+123\""), T("\"\n\""), T("\"\t\""), T("\"\0\""), T("\"a\0b\""),
	T("\"\x1f\""), T("\"12345678\x01\""), T("\"1234567\x1f 9\""),
	/* surrogates without their other half */
	T("\"\\ud800\""), T("\"\\udbff\""), T("\"\\udc00\""), T("\"\\udfff\""), T("\"\\ud800x\""),
	T("\"\\ud800\\n\""), T("\"\\ud800\\ud800\""), T("\"\\udc00\\ud800\""), T("\"\\ud800\\u0041\""),
	T("\"\\ud83d\\ude0\""), T("\"\\ud83d\\u\""), T("\"\\ud83d\\\\ude00\""), T("\"\\ud83d ude00\""),
	T("{\"\\ud800\":1}"), T("\"\\udc00\\udc00\""), T("\"\\ud800\\ue000\""), T("\"\\ud83d\\xde00\""),
	/* UTF-8 */
	T("\"\x80\""), T("\"\xc0\x80\""), T("\"\xc1\x81\""), T("\"\xe0\x80\xaf\""), T("\"\xe0\x9f\xbf\""),
	T("\"\xf0\x80\x80\xaf\""), T("\"\xf0\x8f\xbf\xbf\""), T("\"\xed\xa0\x80\""), T("\"\xed\xb0\x80\""),
	T("\"\xed\xa0\xbd\xed\xb8\x80\""), T("\"\xf4\x90\x80\x80\""), T("\"\xf5\x80\x80\x80\""),
	T("\"\xf8\x88\x80\x80\x80\""), T("\"\xff\""), T("\"\xc3\""), T("\"\xe2\x82\""), T("\"\xf0\x9f\x98\""),
	T("\"\xc3(\""), T("{\"\xff\":1}"), T("\"12345678\xff\""), T("\"\xc3\xa9\xc3\""),
	/* arrays and objects */
	T("["), T("]"), T("{"), T("}"), T("[1"), T("[1,"), T("[1,]"), T("[,1]"), T("[,]"), T("[1,,2]"),
	T("[1 2]"), T("[1:2]"), T("[}"), T("{]"), T("[1}"), T("{\"a\":1]"), T("[\"a\":1]"), T("{\"a\"}"),
	T("{\"a\":}"), T("{\"a\":1,}"), T("{,}"), T("{\"a\" 1}"), T("{\"a\"::1}"), T("{\"a\":1 \"b\":2}"),
	T("{\"a\":1,,\"b\":2}"), T("{a:1}"), T("{1:1}"), T("{'a':1}"), T("{null:1}"), T("{\"a\",\"b\"}"),
	T("{[]:1}"), T("[1;2]"), T("{\"a\"=1}"), T("{\"a\":1;}"), T("[[]"), T("[{]}"), T("{:1}"),
	/* comments */
	T("// x\n1"), T("/* x */1"), T("[1,/**/2]"), T("# x\n1"), T("1 // x"),
};
/* clang-format on */

static void what_is_not_json(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(not_json); i++) {
		struct hx_error err;

		if (check(not_json[i], &err) != HX_VALIDATION_ERROR)
			fail_msg("accepted: %.*s", SLICE_ARGS(not_json[i]));
		assert_true(err.detail[0] >= '1' && err.detail[0] <= '9');
	}
	assert_int_equal(json_check(slice_of(NULL, 0), NULL, &(struct json){{NULL, 0}}), HX_VALIDATION_ERROR);
}

static void details_say_what_and_where(void **state)
{
	(void)state;
	assert_refused("", "1:1: the text is empty");
	assert_refused("\n ", "2:2: the text ends where a value is expected");
	assert_refused("\xef\xbb\xbf{}", "1:1: a byte order mark is not part of JSON");
	assert_refused("{\n  \"a\": 1,\n  b: 2\n}", "3:3: the name of a member is expected here, in double quotes");
	assert_refused("{\"a\" 1}", "1:6: a colon is expected here, after the name of a member");
	assert_refused("[1 2]", "1:4: a comma or ] is expected here");
	assert_refused("{\"a\":1]", "1:7: a comma or } is expected here");
	assert_refused("[\n[\n1,\n", "4:1: the text ends where a value is expected");
	assert_refused("[[1]", "1:5: the text ends before a bracket is closed");
	assert_refused("{\"a\":1,", "1:8: the text ends inside of an object");
	assert_refused("[nope]", "1:2: a value is expected here");
	assert_refused("1 x", "1:3: nothing may follow the value");
	assert_refused("[\"a\nb\"]", "1:4: a control character in a string must be escaped");
	assert_refused("[\"abc", "1:6: the text ends inside of a string");
	assert_refused("\"\\q\"", "1:2: there is no such escape");
	assert_refused("\"ab\\u12x4\"", "1:4: \\u needs four hexadecimal digits");
	assert_refused("\"ab\\udc00\"", "1:4: a surrogate stands alone");
	assert_refused("\"ab\xff\"", "1:4: a string is not valid UTF-8");
	assert_refused("[007]", "1:2: a number may not begin with 0");
	assert_refused("[-]", "1:3: a number needs a digit here");
	assert_refused("[1.]", "1:4: a number needs a digit after its point");
	assert_refused("[1e+]", "1:5: a number needs a digit in its exponent");
	/* A column is a character, not a byte, and CR LF ends one line. */
	assert_refused("[\"\xc3\xa9\xf0\x9f\x98\x80\", x]", "1:8: a value is expected here");
	assert_refused("[1,\r\n  x]", "2:3: a value is expected here");
}

/* A value inside of n brackets, arrays and objects by turns. */
static enum hx_code check_nested(size_t n, struct hx_error *err)
{
	char *text = malloc(n * 8 + 8);
	size_t at = 0;
	enum hx_code code;

	assert_non_null(text);
	for (size_t i = 0; i < n; i++) {
		memcpy(text + at, i % 2 ? "{\"a\":" : "[", i % 2 ? 5 : 1);
		at += i % 2 ? 5 : 1;
	}
	text[at++] = '1';
	for (size_t i = n; i-- > 0;)
		text[at++] = i % 2 ? '}' : ']';
	code = check(slice_of(text, at), err);
	free(text);
	return code;
}

static void depth_at_the_limit_and_one_past(void **state)
{
	struct hx_error err;

	(void)state;
	for (size_t n = 0; n <= JSON_DEPTH_MAX; n++)
		assert_int_equal(check_nested(n, &err), HX_OK);
	assert_int_equal(check_nested(JSON_DEPTH_MAX + 1, &err), HX_VALIDATION_ERROR);
	assert_non_null(strstr(err.detail, "nested too deeply"));
	assert_int_equal(JSON_DEPTH_MAX, 64);
}

/* The stack must come back as it was: 64 deep, many times, with every kind of bracket after every other. */
static void depth_is_given_back(void **state)
{
	static char text[64 * 1024];
	struct hx_error err;
	size_t n = 0;

	(void)state;
	text[n++] = '[';
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 63; i++, n++)
			text[n] = '[';
		for (int i = 0; i < 63; i++, n++)
			text[n] = ']';
		memcpy(text + n, ",{\"a\":[{}]},", 12);
		n += 12;
	}
	text[n++] = '1';
	text[n++] = ']';
	assert_int_equal(check(slice_of(text, n), &err), HX_OK);
	text[n - 1] = '}';
	assert_int_equal(check(slice_of(text, n), &err), HX_VALIDATION_ERROR);
}

static void depth_bombs_are_refused_at_the_limit(void **state)
{
	static const char *const bombs[] = {"[", "{\"a\":", "[{\"a\":", "[[],"};
	const size_t size = 6 * 1000000;
	char *text = malloc(size);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < COUNT(bombs); i++) {
		size_t n = strlen(bombs[i]), at = 0;
		struct hx_error err;

		for (int k = 0; k < 1000000 && at + n <= size; k++, at += n)
			memcpy(text + at, bombs[i], n);
		assert_int_equal(check(slice_of(text, at), &err), HX_VALIDATION_ERROR);
		assert_non_null(strstr(err.detail, "nested too deeply"));
	}
	free(text);
}

static const char document[] =
	"{\"id\": \"run_01h9\", \"n\": [0, -1.5e+10, 1e400, 9007199254740993],\r\n"
	" \"\\u00e9\\ud83d\\ude00\": \"h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\",\n"
	"\t\"o\": {\"t\": true, \"f\": false, \"z\": null, \"e\": [[], {}, \"\", {\"a\": [1]}]}}";

static void every_beginning_of_a_document_is_refused(void **state)
{
	struct hx_error err;

	(void)state;
	assert_int_equal(check(slice_of(document, sizeof document - 1), &err), HX_OK);
	for (size_t n = 0; n < sizeof document - 1; n++)
		assert_int_equal(check(slice_of(document, n), &err), HX_VALIDATION_ERROR);
}

/* Whatever a byte becomes, the scanner answers and stays inside; not everything may pass, and not nothing. */
static void every_changed_byte_is_survived(void **state)
{
	char text[sizeof document];
	size_t accepted = 0;

	(void)state;
	for (size_t i = 0; i < sizeof document - 1; i++) {
		for (int byte = 0; byte < 256; byte++) {
			memcpy(text, document, sizeof text);
			text[i] = (char)byte;
			accepted += check(slice_of(text, sizeof document - 1), NULL) == HX_OK;
		}
	}
	/* Letters and digits may change into others; brackets, quotes and lead bytes may not. */
	assert_in_range(accepted, sizeof document, 128 * sizeof document);
}

static void the_value_is_given_without_the_space_around_it(void **state)
{
	static const char text[] = " \n{\"a\": 1} \t";
	struct json value;

	(void)state;
	assert_int_equal(json_check(slice_str(text), NULL, &value), HX_OK);
	assert_ptr_equal(value.raw.p, text + 2);
	assert_int_equal(value.raw.n, 8);
	assert_int_equal(json_check(slice_str("-0"), NULL, &value), HX_OK);
	assert_true(slice_is(value.raw, "-0"));
}

static void long_strings_and_every_alignment(void **state)
{
	char text[300];

	(void)state;
	for (size_t n = 0; n < 70; n++) {
		for (size_t at = 0; at < n; at++) {
			struct hx_error err;

			memset(text, 'x', sizeof text);
			text[0] = text[n + 1] = '"';
			assert_int_equal(check(slice_of(text, n + 2), &err), HX_OK);
			for (const char *c = "\"\\\n\x80\xff"; *c; c++) {
				text[1 + at] = *c;
				/* An x may not be escaped, and a quote inside leaves something behind the value. */
				assert_int_equal(check(slice_of(text, n + 2), &err), HX_VALIDATION_ERROR);
			}
			text[1 + at] = 0x7f;
			assert_int_equal(check(slice_of(text, n + 2), &err), HX_OK);
		}
	}
}

static void types(void **state)
{
	static const struct {
		const char *text;
		enum json_type type;
		const char *name;
	} cases[] = {
		{"null", JSON_NULL, "null"},   {"true", JSON_BOOL, "boolean"}, {"false", JSON_BOOL, "boolean"},
		{"-1", JSON_NUMBER, "number"}, {"0", JSON_NUMBER, "number"},   {"\"\"", JSON_STRING, "string"},
		{"[]", JSON_ARRAY, "array"},   {"{}", JSON_OBJECT, "object"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(json_type(json_trust(slice_str(cases[i].text))), cases[i].type);
		assert_string_equal(json_type_name(cases[i].type), cases[i].name);
	}
}

static void positions(void **state)
{
	struct slice text = slice_str("a\xc3\xa9z\n\n\xffx");
	static const size_t expected[][3] = {{0, 1, 1}, {1, 1, 2}, {3, 1, 3}, {4, 1, 4},
					     {5, 2, 1}, {6, 3, 1}, {7, 3, 2}, {8, 3, 3}};

	(void)state;
	for (size_t i = 0; i < COUNT(expected); i++) {
		struct json_position at = json_locate(text, expected[i][0]);

		assert_int_equal(at.line, expected[i][1]);
		assert_int_equal(at.column, expected[i][2]);
	}
	assert_int_equal(json_locate(slice_of(NULL, 0), 0).line, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_json),
		cmocka_unit_test(what_is_not_json),
		cmocka_unit_test(details_say_what_and_where),
		cmocka_unit_test(depth_at_the_limit_and_one_past),
		cmocka_unit_test(depth_is_given_back),
		cmocka_unit_test(depth_bombs_are_refused_at_the_limit),
		cmocka_unit_test(every_beginning_of_a_document_is_refused),
		cmocka_unit_test(every_changed_byte_is_survived),
		cmocka_unit_test(the_value_is_given_without_the_space_around_it),
		cmocka_unit_test(long_strings_and_every_alignment),
		cmocka_unit_test(types),
		cmocka_unit_test(positions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
