/* Strings: decoding of every escape, comparison without memory, and the one way to write a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/json_string.h"
#include "base/utf8.h"

static struct json checked(struct slice text)
{
	struct hx_error err;
	struct json value = {{NULL, 0}};

	if (json_check(text, &err, &value) != HX_OK)
		fail_msg("%.*s: %s", SLICE_ARGS(text), err.detail);
	return value;
}

/* All four readers must agree on what a string means. */
static void assert_means(const char *json, struct slice text)
{
	struct json string = checked(slice_str(json));
	struct arena a;

	arena_init(&a, 1 << 20);

	struct slice decoded = json_string_decode(string, &a);
	struct slice view = json_string_view(string, &a);

	assert_true(slice_eq(decoded, text));
	assert_int_equal(decoded.p[decoded.n], '\0');
	assert_true(slice_eq(view, text));
	assert_true((view.p == string.raw.p + 1) == !strchr(json, '\\'));
	assert_true(json_string_is(string, text));
	arena_release(&a);
}

static void decoding(void **state)
{
	(void)state;
	assert_means("\"\"", slice_str(""));
	assert_means("\"plain h\xc3\xa9\"", slice_str("plain h\xc3\xa9"));
	assert_means("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", slice_str("\"\\/\b\f\n\r\t"));
	assert_means("\"\\u0041\\u00e9\\u20AC\\uFFFF\"", slice_str("A\xc3\xa9\xe2\x82\xac\xef\xbf\xbf"));
	assert_means("\"\\ud83d\\ude00\\uDBFF\\uDFFF\\uD800\\uDC00\"",
		     slice_str("\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\xf0\x90\x80\x80"));
	assert_means("\"a\\u0000b\"", slice_of("a\0b", 3));
	assert_means("\"\\u0000\"", slice_of("\0", 1));
	assert_means("\"\\\\u0041\"", slice_str("\\u0041"));
	assert_means("\"x\\ny\\\\\"", slice_str("x\ny\\"));
	assert_means("\"\\uabcd\\uABCD\\uAbCd\"", slice_str("\xea\xaf\x8d\xea\xaf\x8d\xea\xaf\x8d"));
}

static void every_code_unit_that_is_a_character(void **state)
{
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	for (unsigned code = 0; code <= 0xffff; code++) {
		char json[16], bytes[4];

		if (code >= 0xd800 && code <= 0xdfff)
			continue;
		snprintf(json, sizeof json, code & 1 ? "\"\\u%04x\"" : "\"\\u%04X\"", code);

		unsigned n = utf8_encode(code, bytes);

		if (!slice_eq(json_string_decode(json_trust(slice_str(json)), &a), slice_of(bytes, n)))
			fail_msg("%s", json);
		arena_reset(&a);
	}
	arena_release(&a);
}

static void comparison_sees_every_difference(void **state)
{
	struct json string = checked(slice_str("\"a\\u0062c\""));

	(void)state;
	assert_true(json_string_is(string, slice_str("abc")));
	assert_false(json_string_is(string, slice_str("ab")));
	assert_false(json_string_is(string, slice_str("abcd")));
	assert_false(json_string_is(string, slice_str("abd")));
	assert_false(json_string_is(string, slice_str("a\\u0062c")));
	assert_false(json_string_is(string, slice_of(NULL, 0)));
	assert_true(json_string_is(checked(slice_str("\"\"")), slice_of(NULL, 0)));
	assert_false(json_string_is(checked(slice_str("\"\\ud83d\\ude00\"")), slice_str("\xf0\x9f\x98")));
	assert_false(json_string_is(checked(slice_str("\"\\u0000\"")), slice_str("")));
}

static void memory_that_is_not_there(void **state)
{
	struct json string = checked(slice_str("\"a longer text with an escape \\n in it\""));
	struct arena a;

	(void)state;
	arena_init(&a, 16);
	assert_null(json_string_decode(string, &a).p);
	assert_true(a.failed);
	arena_release(&a);
}

static void assert_quoted(struct slice text, const char *expected)
{
	struct strbuf sb;

	strbuf_init(&sb, 1000);
	json_quote(text, &sb);
	assert_string_equal(sb.p, expected);
	(void)checked(strbuf_slice(&sb)); /* it fails the test if it is not JSON */
	strbuf_release(&sb);
}

static void writing(void **state)
{
	(void)state;
	assert_quoted(slice_str(""), "\"\"");
	assert_quoted(slice_of(NULL, 0), "\"\"");
	assert_quoted(slice_str("a/b 'c' \x7f h\xc3\xa9 \xf0\x9f\x98\x80 \xe2\x80\xa8"),
		      "\"a/b 'c' \x7f h\xc3\xa9 \xf0\x9f\x98\x80 \xe2\x80\xa8\"");
	assert_quoted(slice_of("\"\\\b\f\n\r\t\0\x1f", 9), "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\"");
	assert_quoted(slice_str("a\xff\xc3(\xed\xa0\x80z\xe2\x82"),
		      "\"a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz"
		      "\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void every_byte_is_written_as_json_and_ascii_comes_back(void **state)
{
	struct strbuf sb;
	struct arena a;

	(void)state;
	strbuf_init(&sb, 1000);
	arena_init(&a, 1000);
	for (int byte = 0; byte < 256; byte++) {
		char text[3] = {'x', (char)byte, 'y'};

		strbuf_reset(&sb);
		arena_reset(&a);
		json_quote(slice_of(text, 3), &sb);

		struct slice back = json_string_decode(checked(strbuf_slice(&sb)), &a);

		assert_true(slice_eq(back, byte < 0x80 ? slice_of(text, 3) : slice_str("x\xef\xbf\xbdy")));
	}
	arena_release(&a);
	strbuf_release(&sb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decoding),
		cmocka_unit_test(every_code_unit_that_is_a_character),
		cmocka_unit_test(comparison_sees_every_difference),
		cmocka_unit_test(memory_that_is_not_there),
		cmocka_unit_test(writing),
		cmocka_unit_test(every_byte_is_written_as_json_and_ascii_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
