/* Keys: one key in both spellings of a header, nothing else accepted; and out of a body. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gate/key.h"

#define MAX 255

static struct arena arena;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 1u << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static void assert_key(struct slice value, struct slice expected)
{
	struct hx_error err = {0};
	struct slice key = {NULL, 0};

	if (gate_key_from_header(&value, 1, MAX, &arena, &err, &key) != HX_OK)
		fail_msg("%.*s: %s", SLICE_ARGS(value), err.detail);
	if (!slice_eq(key, expected))
		fail_msg("%.*s is read as %.*s", SLICE_ARGS(value), SLICE_ARGS(key));
}

static void assert_refused(const struct slice values[], size_t n, enum hx_code code)
{
	struct hx_error err = {0};
	struct slice key = slice_str("untouched");
	enum hx_code got = gate_key_from_header(values, n, MAX, &arena, &err, &key);

	if (got != code)
		fail_msg("%.*s: %s", n ? (int)values[0].n : 0, n ? values[0].p : "", hx_code_name(got));
	assert_int_equal(err.code, code);
	assert_true(strlen(err.detail) > 0);
	assert_true(slice_is(key, "untouched"));
	assert_int_equal(gate_key_from_header(values, n, MAX, &arena, /* err= */ NULL, &key), code);
}

static void both_spellings_are_one_key(void **state)
{
	static const struct {
		const char *value, *key;
	} good[] = {
		{"abc", "abc"},
		{"\"abc\"", "abc"},
		{"8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"},
		{"\"8e03978e-40d5-43dd-bc93-6894a57f9324\"", "8e03978e-40d5-43dd-bc93-6894a57f9324"},
		{"x", "x"},
		{"\"x\"", "x"},
		{"\" \"", " "},
		{"\" a b \"", " a b "},
		{"\"a,b\"", "a,b"},
		{"\"a;b=1\"", "a;b=1"},
		{"a;b=1", "a;b=1"},
		{"a\\b", "a\\b"},
		{"\"a\\\\b\"", "a\\b"},
		{"\"\\\"\"", "\""},
		{"\"\\\\\\\"\\\\\"", "\\\"\\"},
		{"\"a\\\"b \\\\c\"", "a\"b \\c"},
		{"?1", "?1"},
		{":aGk=:", ":aGk=:"},
		{"42", "42"},
		{"#42", "#42"},
		{"'a'", "'a'"},
		{"!~", "!~"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_key(slice_str(good[i].value), slice_str(good[i].key));
}

static const char *const no_keys[] = {
	/* empty */
	"",
	"\"\"",
	/* two lines that a proxy joined */
	"a,b",
	"a, b",
	"abc,abc",
	"\"a\",\"a\"",
	"\"a\", \"b\"",
	"a,",
	",a",
	",",
	/* parameters, and whatever else stands after the quote */
	"\"k\";a=1",
	"\"k\";a",
	"\"k\";",
	"\"k\" ",
	"\"k\"k",
	"\"k\"\"",
	"\"\"k",
	"\"\"\"",
	/* white space where no quotes are around it */
	" ",
	"a b",
	" a",
	"a ",
	"a\tb",
	" \"a\"",
	/* control */
	"a\x01",
	"\x7f",
	"a\rb",
	"a\nb",
	"\"\t\"",
	"\"a\rb\"",
	"\"a\nb\"",
	"\"a\x1f\"",
	"\"a\x7f\"",
	/* non-ASCII */
	"h\xc3\xa9",
	"\"h\xc3\xa9\"",
	"\x80",
	"\"\xff\"",
	"a\xc2\xa0",
	/* badly escaped */
	"\"a\\b\"",
	"\"\\n\"",
	"\"\\u0061\"",
	"\"\\\"",
	"\"a\\",
	"\"\\\\\\\"",
	/* a quote that is not closed, or in the middle */
	"\"",
	"\"a",
	"a\"",
	"a\"b",
	"a\"b\"",
	"'a\"",
};

static void what_is_no_key(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof no_keys / sizeof *no_keys; i++)
		assert_refused((struct slice[]){slice_str(no_keys[i])}, 1, HX_KEY_INVALID);
	assert_refused((struct slice[]){slice_of("a\0b", 3)}, 1, HX_KEY_INVALID);
	assert_refused((struct slice[]){slice_of("\"a\0b\"", 5)}, 1, HX_KEY_INVALID);
	assert_refused((struct slice[]){slice_of(NULL, 0)}, 1, HX_KEY_INVALID);
}

static void every_single_byte(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		char bare[] = {'k', (char)c, 'k'}, quoted[] = {'"', 'k', (char)c, 'k', '"'};
		struct slice value = slice_of(bare, sizeof bare);

		if (c > 0x20 && c < 0x7f && c != '"' && c != ',')
			assert_key(value, value);
		else
			assert_refused(&value, 1, HX_KEY_INVALID);
		value = slice_of(quoted, sizeof quoted);
		if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
			assert_key(value, slice_of(bare, sizeof bare));
		else
			assert_refused(&value, 1, HX_KEY_INVALID);
	}
}

static void none_and_more_than_one(void **state)
{
	const struct slice twice[] = {slice_str("a"), slice_str("a")};
	const struct slice split[] = {slice_str("\"a"), slice_str("b\"")};
	const struct slice empties[] = {slice_str(""), slice_str("")};
	const struct slice three[] = {slice_str("a"), slice_str(""), slice_str("b")};

	(void)state;
	assert_refused(NULL, 0, HX_KEY_REQUIRED);
	assert_refused(twice, 2, HX_KEY_INVALID);
	assert_refused(split, 2, HX_KEY_INVALID);
	assert_refused(empties, 2, HX_KEY_INVALID);
	assert_refused(three, 3, HX_KEY_INVALID);
}

/* max counts what the key means, not how it is written. */
static void the_longest_key(void **state)
{
	char bare[MAX + 2], quoted[2 * MAX + 8];

	(void)state;
	memset(bare, 'k', sizeof bare);
	assert_key(slice_of(bare, MAX), slice_of(bare, MAX));
	assert_refused((struct slice[]){slice_of(bare, MAX + 1)}, 1, HX_KEY_INVALID);

	memset(quoted, 'k', sizeof quoted);
	quoted[0] = quoted[MAX + 1] = '"';
	assert_key(slice_of(quoted, MAX + 2), slice_of(bare, MAX));
	quoted[MAX + 1] = 'k';
	quoted[MAX + 2] = '"';
	assert_refused((struct slice[]){slice_of(quoted, MAX + 3)}, 1, HX_KEY_INVALID);

	memset(bare, '\\', sizeof bare);
	memset(quoted, '\\', sizeof quoted);
	quoted[0] = quoted[2 * MAX + 1] = '"';
	assert_key(slice_of(quoted, 2 * MAX + 2), slice_of(bare, MAX));
	quoted[2 * MAX + 1] = '\\';
	quoted[2 * MAX + 3] = '"';
	assert_refused((struct slice[]){slice_of(quoted, 2 * MAX + 4)}, 1, HX_KEY_INVALID);
}

static void a_policy_has_a_maximum_of_its_own(void **state)
{
	struct slice value = slice_str("\"a\\\"b\""), key;

	(void)state;
	assert_int_equal(gate_key_from_header(&value, 1, 3, &arena, NULL, &key), HX_OK);
	assert_true(slice_is(key, "a\"b"));
	assert_int_equal(gate_key_from_header(&value, 1, 2, &arena, NULL, &key), HX_KEY_INVALID);
}

/* A key without escapes needs no memory; with them, no memory is an error, never another key. */
static void memory(void **state)
{
	struct slice plain = slice_str("\"a b\""), escaped = slice_str("\"a\\\\b\""), key;
	struct hx_error err = {0};
	struct arena none;

	(void)state;
	arena_init(&none, 0);
	assert_int_equal(gate_key_from_header(&plain, 1, MAX, &none, &err, &key), HX_OK);
	assert_true(slice_is(key, "a b"));
	assert_int_equal(gate_key_from_header(&escaped, 1, MAX, &none, &err, &key), HX_TOO_LARGE);
	arena_release(&none);
}

/* ---- out of a body ---- */

static void assert_json_key(const char *body, const char *pointer, const char *expected)
{
	struct hx_error err = {0};
	struct slice key = {NULL, 0};

	if (gate_key_from_json(slice_str(body), slice_str(pointer), MAX, &arena, &err, &key) != HX_OK)
		fail_msg("%s in %s: %s", pointer, body, err.detail);
	if (!slice_is(key, expected))
		fail_msg("%s in %s is read as %.*s", pointer, body, SLICE_ARGS(key));
}

static void assert_json_refused(struct slice body, const char *pointer, enum hx_code code)
{
	struct hx_error err = {0};
	struct slice key = slice_str("untouched");

	if (gate_key_from_json(body, slice_str(pointer), MAX, &arena, &err, &key) != code)
		fail_msg("%s in %.*s: %s, %.*s", pointer, SLICE_ARGS(body), err.detail, SLICE_ARGS(key));
	assert_int_equal(err.code, code);
	assert_true(strlen(err.detail) > 0);
	assert_true(slice_is(key, "untouched"));
	assert_int_equal(gate_key_from_json(body, slice_str(pointer), MAX, &arena, /* err= */ NULL, &key), code);
}

static void strings_of_a_body(void **state)
{
	(void)state;
	assert_json_key("{\"id\":\"evt_1\"}", "/id", "evt_1");
	assert_json_key("{\"id\":\"\\u0065vt_1\"}", "/id", "evt_1");
	assert_json_key("[{\"a/b\":[0,\"x\"]}]", "/0/a~1b/1", "x");
	assert_json_key("\"whole\"", "", "whole");
	assert_json_key("{\"id\":\"a, \\\"b\\\" \"}", "/id", "a, \"b\" ");
	assert_json_key("{\"id\":\"h\xc3\xa9\"}", "/id", "h\xc3\xa9");
	assert_json_key("{\"id\":\"42\"}", "/id", "42");
	assert_json_key("{\"x\":1,\"x\":2,\"id\":\"k\"}", "/id", "k"); /* twice, but not on the way */
}

static void numbers_by_their_exact_value(void **state)
{
	(void)state;
	assert_json_key("{\"id\":42}", "/id", "#42");
	assert_json_key("{\"id\":42.0}", "/id", "#42");
	assert_json_key("{\"id\":420e-1}", "/id", "#42");
	assert_json_key("{\"id\":1000}", "/id", "#1000");
	assert_json_key("{\"id\":1e3}", "/id", "#1000");
	assert_json_key("{\"id\":0}", "/id", "#0");
	assert_json_key("{\"id\":-0.0}", "/id", "#0");
	assert_json_key("{\"id\":-7}", "/id", "#-7");
	assert_json_key("{\"id\":0.50}", "/id", "#5e-1");
	assert_json_key("{\"id\":9007199254740993}", "/id", "#9007199254740993");
	assert_json_key("{\"id\":9007199254740992}", "/id", "#9007199254740992");
	assert_json_key("{\"id\":9223372036854775808}", "/id", "#9223372036854775808");
	assert_json_key("{\"id\":9223372036854775809.0}", "/id", "#9223372036854775809");
	assert_json_key("{\"id\":1e400}", "/id", "#1e400");
	assert_json_key("{\"id\":10e399}", "/id", "#1e400");
	assert_json_key("{\"id\":1e99999999999999999999999}", "/id", "#1e99999999999999999999999");
}

/* No string is a number: whatever is in front of a number, a string that begins like that has more of it. */
static void strings_never_equal_numbers(void **state)
{
	(void)state;
	assert_json_key("42", "", "#42");
	assert_json_key("\"42\"", "", "42");
	assert_json_key("\"#42\"", "", "##42");
	assert_json_key("\"##42\"", "", "###42");
	assert_json_key("\"\\u002342\"", "", "##42");
	assert_json_key("\"#\"", "", "##");
}

static void bodies_without_a_key(void **state)
{
	static const char *const bodies[] = {"", "{\"id\":null}", "{}", "[]", "{\"other\":\"evt\"}", "null", "\"id\""};
	/* Somebody else may find a key in these. */
	static const char *const no_json[] = {"not json", "{\"id\":\"a\"",    "{\"id\":\"\\ud800\"}",
					      "id=evt",   "{\"id\":\"a\"}{}", "{\"id\":\"a\",}",
					      " "};

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		assert_json_refused(slice_str(bodies[i]), "/id", HX_KEY_REQUIRED);
	for (size_t i = 0; i < sizeof no_json / sizeof *no_json; i++)
		assert_json_refused(slice_str(no_json[i]), "/id", HX_KEY_INVALID);
	assert_json_refused(slice_of(NULL, 0), "/id", HX_KEY_REQUIRED);
	assert_json_refused(slice_str("null"), "", HX_KEY_REQUIRED);
	assert_json_refused(slice_str("{\"id\":\"a\"}"), "/id/b", HX_KEY_REQUIRED);
}

static void bodies_with_a_bad_key(void **state)
{
	static const char *const bodies[] = {
		"{\"id\":\"\"}",
		"{\"id\":true}",
		"{\"id\":false}",
		"{\"id\":[]}",
		"{\"id\":{\"id\":\"a\"}}",
		"{\"id\":\"a\",\"id\":\"a\"}",
		"{\"id\":\"a\",\"\\u0069d\":null}",
		"{\"id\":\"a\\u0000\"}",
		"{\"id\":\"a\\n\"}",
		"{\"id\":\"\\u007f\"}",
		"{\"id\":\"\\u001fa\"}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
		assert_json_refused(slice_str(bodies[i]), "/id", HX_KEY_INVALID);
	assert_json_refused(slice_str("{\"a\":{\"id\":\"1\"},\"a\":{}}"), "/a/id", HX_KEY_INVALID);
}

/* n times the character, as a JSON string. */
static struct slice repeated(const char *character, size_t n)
{
	static char text[16 * MAX];
	size_t at = 0;

	text[at++] = '"';
	while (n-- > 0) {
		memcpy(text + at, character, strlen(character));
		at += strlen(character);
	}
	text[at++] = '"';
	return slice_of(text, at);
}

static void the_longest_key_of_a_body(void **state)
{
	static const char *const characters[] = {"k",       "\\u0041",        "\xc3\xa9", "\xf0\x9f\x98\x80",
						 "\\u00e9", "\\ud83d\\ude00", "#",        "\\\\"};
	struct slice key;

	(void)state;
	for (size_t i = 0; i < sizeof characters / sizeof *characters; i++) {
		assert_int_equal(gate_key_from_json(repeated(characters[i], MAX), slice_str(""), MAX, &arena,
						    /* err= */ NULL, &key),
				 HX_OK);
		assert_true(key.n <= 4 * MAX + 1);
		assert_json_refused(repeated(characters[i], MAX + 1), "", HX_KEY_INVALID);
		assert_json_refused(repeated(characters[i], MAX + 20), "", HX_KEY_INVALID);
	}
}

/* The spelling counts, without the mark and without zeros that mean nothing. */
static void the_longest_number(void **state)
{
	char text[400];
	struct slice key;

	(void)state;
	memset(text, '7', sizeof text);
	assert_int_equal(gate_key_from_json(slice_of(text, MAX), slice_str(""), MAX, &arena, NULL, &key), HX_OK);
	assert_int_equal(key.n, MAX + 1);
	assert_json_refused(slice_of(text, MAX + 1), "", HX_KEY_INVALID);
	memset(text, '0', sizeof text);
	memcpy(text, "42.", 3);
	assert_int_equal(gate_key_from_json(slice_of(text, sizeof text), slice_str(""), MAX, &arena, NULL, &key),
			 HX_OK);
	assert_true(slice_is(key, "#42"));
}

/* A huge string is too long before it is anything else, and costs nothing. */
static void a_huge_string_needs_no_memory(void **state)
{
	const size_t n = 1u << 20;
	char *body = malloc(n);
	struct slice key;
	struct arena none;

	(void)state;
	assert_non_null(body);
	arena_init(&none, 0);
	for (size_t i = 0; i < n; i += 2)
		memcpy(body + i, "\\n", 2);
	body[0] = body[n - 1] = '"';
	body[1] = 'x';
	body[n - 2] = 'x';
	assert_int_equal(gate_key_from_json(slice_of(body, n), slice_str(""), MAX, &none, NULL, &key), HX_KEY_INVALID);
	assert_int_equal(gate_key_from_json(slice_str("\"\\u0041\""), slice_str(""), MAX, &none, NULL, &key),
			 HX_TOO_LARGE);
	arena_reset(&none);
	assert_int_equal(gate_key_from_json(slice_str("42"), slice_str(""), MAX, &none, NULL, &key), HX_TOO_LARGE);
	arena_reset(&none);
	assert_int_equal(gate_key_from_json(slice_str("\"#\""), slice_str(""), MAX, &none, NULL, &key), HX_TOO_LARGE);
	arena_release(&none);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_spellings_are_one_key, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_key, set_up, tear_down),
		cmocka_unit_test_setup_teardown(every_single_byte, set_up, tear_down),
		cmocka_unit_test_setup_teardown(none_and_more_than_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_longest_key, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_policy_has_a_maximum_of_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(strings_of_a_body, set_up, tear_down),
		cmocka_unit_test_setup_teardown(numbers_by_their_exact_value, set_up, tear_down),
		cmocka_unit_test_setup_teardown(strings_never_equal_numbers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bodies_without_a_key, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bodies_with_a_bad_key, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_longest_key_of_a_body, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_longest_number, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_huge_string_needs_no_memory, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
