/* JSON Pointer: the examples of RFC 6901, what is no pointer, indices, names in every spelling, and names twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json_pointer.h"
#include "base/strbuf.h"

static struct json checked(struct slice text)
{
	struct hx_error err;
	struct json value = {{NULL, 0}};

	if (json_check(text, &err, &value) != HX_OK)
		fail_msg("%.*s: %s", SLICE_ARGS(text), err.detail);
	return value;
}

/* expected NULL: absent. */
static void assert_selects(const char *document, const char *pointer, const char *expected)
{
	struct json untouched = {slice_str("untouched")}, value = untouched;
	enum json_selection selection = json_pointer_select(checked(slice_str(document)), slice_str(pointer), &value);

	if (selection != (expected ? JSON_SELECTED : JSON_ABSENT) ||
	    !slice_is(value.raw, expected ? expected : "untouched"))
		fail_msg("\"%s\" in %s: %d, %.*s", pointer, document, selection, SLICE_ARGS(value.raw));
}

static void assert_ambiguous(const char *document, const char *pointer)
{
	struct json value = {slice_str("untouched")};

	if (json_pointer_select(checked(slice_str(document)), slice_str(pointer), &value) != JSON_AMBIGUOUS)
		fail_msg("\"%s\" in %s selects %.*s", pointer, document, SLICE_ARGS(value.raw));
	assert_true(slice_is(value.raw, "untouched"));
}

static void the_examples_of_the_rfc(void **state)
{
	static const char document[] = "{\"foo\": [\"bar\", \"baz\"], \"\": 0, \"a/b\": 1, \"c%d\": 2, \"e^f\": 3, "
				       "\"g|h\": 4, \"i\\\\j\": 5, \"k\\\"l\": 6, \" \": 7, \"m~n\": 8}";

	(void)state;
	assert_selects(document, "", document);
	assert_selects(document, "/foo", "[\"bar\", \"baz\"]");
	assert_selects(document, "/foo/0", "\"bar\"");
	assert_selects(document, "/", "0");
	assert_selects(document, "/a~1b", "1");
	assert_selects(document, "/c%d", "2");
	assert_selects(document, "/e^f", "3");
	assert_selects(document, "/g|h", "4");
	assert_selects(document, "/i\\j", "5");
	assert_selects(document, "/k\"l", "6");
	assert_selects(document, "/ ", "7");
	assert_selects(document, "/m~0n", "8");
}

static void names_are_compared_decoded(void **state)
{
	(void)state;
	assert_selects("{\"\\u0061\\u002fb\": 1}", "/a~1b", "1");
	assert_selects("{\"~1\": 1, \"/\": 2}", "/~01", "1"); /* ~0 is undone last: it makes no ~1 */
	assert_selects("{\"~1\": 1, \"/\": 2}", "/~1", "2");
	assert_selects("{\"\\ud83d\\ude00\": 1}", "/\xf0\x9f\x98\x80", "1");
	assert_selects("{\"h\xc3\xa9\": 1}", "/h\xc3\xa9", "1");
	assert_selects("{\"he\xcc\x81\": 1}", "/h\xc3\xa9", NULL); /* another spelling is another name */
	assert_selects("{\"a\": 1}", "/A", NULL);
	assert_selects("{\"a\": 1}", "/\\u0061", NULL);
	assert_selects("{\"ab\": 1}", "/a", NULL);
	assert_selects("{\"a\": 1}", "/ab", NULL);
	assert_selects("{\"a\\u0000\": 1}", "/a", NULL);
	assert_selects("{\"a\": {\"\": {\"\": 3}}}", "/a//", "3");
	assert_selects("{\"a\": null}", "/a", "null"); /* not the same as nothing */
	assert_selects("{}", "/a", NULL);
	assert_selects("{}", "/", NULL);
}

static void indices(void **state)
{
	static const char document[] =
		"[ 0 , [1, 2], {\"0\": \"zero\", \"-\": \"minus\", \"00\": 3}, 3,4,5,6,7,8,9,10 ]";

	(void)state;
	assert_selects(document, "/0", "0");
	assert_selects(document, "/1/1", "2");
	assert_selects(document, "/10", "10");
	assert_selects(document, "/11", NULL);
	assert_selects(document, "/1/2", NULL);
	assert_selects(document, "/2/0", "\"zero\""); /* in an object these are names */
	assert_selects(document, "/2/-", "\"minus\"");
	assert_selects(document, "/2/00", "3");
	for (const char *const *p = (const char *const[]){"/-", "/00", "/01", "/+1", "/-1", "/1.0", "/1e0", "/ 1",
							  "/1 ", "/0x1", "/", "/a", "/\xd9\xa1", NULL};
	     *p; p++)
		assert_selects(document, *p, NULL);
	/* Past every width: none of these wraps around to an element. */
	assert_selects(document, "/4294967296", NULL);
	assert_selects(document, "/18446744073709551616", NULL);
	assert_selects(document, "/18446744073709551617", NULL);
	assert_selects(document, "/100000000000000000000000000000000000000000", NULL);
	assert_selects("[]", "/0", NULL);
}

static void scalars_have_no_children(void **state)
{
	(void)state;
	for (const char *const *p = (const char *const[]){"null", "true", "12", "\"ab\"", "\"[1]\"", NULL}; *p; p++) {
		assert_selects(*p, "", *p);
		assert_selects(*p, "/", NULL);
		assert_selects(*p, "/0", NULL);
		assert_selects(*p, "/length", NULL);
	}
	assert_selects("{\"a\": 1}", "/a/b", NULL);
	assert_selects(" {\"a\":\t[ {\"b\" : 1 } ] } ", "/a/0/b", "1");
}

static void a_name_that_is_there_twice_is_nobodys(void **state)
{
	(void)state;
	assert_ambiguous("{\"a\": 1, \"a\": 1}", "/a"); /* equal ones too */
	assert_ambiguous("{\"a\": 1, \"b\": 0, \"\\u0061\": 2}", "/a");
	assert_ambiguous("{\"a\": {\"b\": 1}, \"a\": {\"c\": 1}}", "/a/b"); /* although only one has the rest */
	assert_ambiguous("{\"a\": {\"b\": 1, \"b\": 2}}", "/a/b");
	assert_ambiguous("[{\"\": 1, \"\": 2}]", "/0/");
	assert_ambiguous("{\"a\": {}, \"a\": {}}", "/a/b");
	/* Twice beside the way, or below its end, is no matter of the pointer's. */
	assert_selects("{\"x\": 1, \"a\": 2, \"x\": 3}", "/a", "2");
	assert_selects("{\"a\": {\"x\": 1, \"x\": 2}}", "/a", "{\"x\": 1, \"x\": 2}");
	assert_selects("{\"a\": {\"x\": 1}, \"x\": 2}", "/x", "2");
	assert_selects("{\"a\": 1, \"a\": 2}", "", "{\"a\": 1, \"a\": 2}");
}

static void what_is_no_pointer(void **state)
{
	static const char *const texts[] = {"a",     "a/b",           "#/a",    "#",     " /a",  "~0",  "/~",
					    "/~2",   "/a~",           "/a~/b",  "/~01~", "/~~0", "/~b", "/a~",
					    "/\xff", "/\xed\xa0\x80", "/\xc3/x"};
	struct hx_error err;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		err = (struct hx_error){0};
		if (json_pointer_check(slice_str(texts[i]), &err) != HX_VALIDATION_ERROR)
			fail_msg("\"%s\" is accepted", texts[i]);
		assert_int_equal(err.code, HX_VALIDATION_ERROR);
		assert_true(strlen(err.detail) > 0);
	}
	for (const char *const *p = (const char *const[]){"", "/", "//", "/~0", "/~1", "/~01", "/a b/\xc3\xa9", NULL};
	     *p; p++)
		assert_int_equal(json_pointer_check(slice_str(*p), &err), HX_OK);
	assert_int_equal(json_pointer_check(slice_of(NULL, 0), &err), HX_OK);
}

static void the_longest_name(void **state)
{
	char pointer[JSON_POINTER_BYTES_MAX + 1], document[JSON_POINTER_BYTES_MAX + 16];
	struct hx_error err;
	struct json value;

	(void)state;
	memset(pointer, 'n', sizeof pointer);
	pointer[0] = '/';
	snprintf(document, sizeof document, "{\"%.*s\": 7}", JSON_POINTER_BYTES_MAX - 1, pointer + 1);
	assert_int_equal(json_pointer_check(slice_of(pointer, JSON_POINTER_BYTES_MAX), &err), HX_OK);
	assert_int_equal(
		json_pointer_select(checked(slice_str(document)), slice_of(pointer, JSON_POINTER_BYTES_MAX), &value),
		JSON_SELECTED);
	assert_true(slice_is(value.raw, "7"));
	assert_int_equal(json_pointer_check(slice_of(pointer, JSON_POINTER_BYTES_MAX + 1), &err), HX_VALIDATION_ERROR);
}

/* The deepest document, by the longest way; and one step more. */
static void the_deepest_way(void **state)
{
	struct strbuf document, pointer;
	struct json value;

	(void)state;
	strbuf_init(&document, 10000);
	strbuf_init(&pointer, 10000);
	for (int i = 0; i < JSON_DEPTH_MAX; i++) {
		strbuf_add_str(&document, i % 2 ? "[" : "{\"a\":");
		strbuf_add_str(&pointer, i % 2 ? "/0" : "/a");
	}
	strbuf_add_str(&document, "\"here\"");
	for (int i = JSON_DEPTH_MAX; i-- > 0;)
		strbuf_add_str(&document, i % 2 ? "]" : "}");
	assert_int_equal(json_pointer_select(checked(strbuf_slice(&document)), strbuf_slice(&pointer), &value),
			 JSON_SELECTED);
	assert_true(slice_is(value.raw, "\"here\""));
	strbuf_add_str(&pointer, "/0");
	assert_int_equal(json_pointer_select(checked(strbuf_slice(&document)), strbuf_slice(&pointer), &value),
			 JSON_ABSENT);
	strbuf_release(&pointer);
	strbuf_release(&document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_examples_of_the_rfc),
		cmocka_unit_test(names_are_compared_decoded),
		cmocka_unit_test(indices),
		cmocka_unit_test(scalars_have_no_children),
		cmocka_unit_test(a_name_that_is_there_twice_is_nobodys),
		cmocka_unit_test(what_is_no_pointer),
		cmocka_unit_test(the_longest_name),
		cmocka_unit_test(the_deepest_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
