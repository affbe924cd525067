/* Reading in place: elements, members, lookup by decoded name, and staying inside of text that is not JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json_walk.h"

static struct json checked(const char *text)
{
	struct hx_error err;
	struct json value = {{NULL, 0}};

	if (json_check(slice_str(text), &err, &value) != HX_OK)
		fail_msg("%s: %s", text, err.detail);
	return value;
}

static void elements_in_order(void **state)
{
	static const char *const expected[] = {"1",    "\"a,]\\\"\"", "[2,[3]]", "{\"b\" : \"}\"}",
					       "null", "-1e5",        "[]",      "{}"};
	struct json array = checked("[ 1 ,\"a,]\\\"\",[2,[3]]\n, {\"b\" : \"}\"} ,null,-1e5,[], {} ]");
	struct json_iter it = json_iter_of(array);
	struct json value;
	size_t n = 0;

	(void)state;
	for (; json_iter_element(&it, &value); n++)
		assert_true(slice_is(value.raw, expected[n]));
	assert_int_equal(n, 8);
	assert_false(json_iter_element(&it, &value)); /* the end stays the end */
	assert_true(slice_is(value.raw, "{}"));
}

static void members_in_order(void **state)
{
	static const char *const expected[][2] = {
		{"\"a\"", "1"}, {"\"}\"", "[{\"x\":\"]\"}]"}, {"\"\\\"\\\\\"", "{\"a\":{}}"}, {"\"a\"", "true"}};
	struct json object = checked("{\"a\":1 , \"}\" :[{\"x\":\"]\"}],\t\"\\\"\\\\\":{\"a\":{}}, \"a\" : true\n}");
	struct json_iter it = json_iter_of(object);
	struct json name, value;
	size_t n = 0;

	(void)state;
	for (; json_iter_member(&it, &name, &value); n++) {
		assert_true(slice_is(name.raw, expected[n][0]));
		assert_true(slice_is(value.raw, expected[n][1]));
	}
	assert_int_equal(n, 4);
	assert_false(json_iter_member(&it, &name, &value));
}

static void empty_and_scalar_values_have_no_children(void **state)
{
	static const char *const texts[] = {"[]", "[ \n]", "{}", "{ }", "null", "\"[1]\"", "12"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct json_iter it = json_iter_of(checked(texts[i]));
		struct json name, value;

		assert_false(json_iter_member(&it, &name, &value));
		assert_false(json_iter_element(&it, &value));
	}
}

static void elements_and_members_are_counted(void **state)
{
	(void)state;
	assert_int_equal(json_count(checked("[1,[2,3],{\"a\":4}]")), 3);
	assert_int_equal(json_count(checked("{\"a\":[1,2],\"a\":{}}")), 2);
	assert_int_equal(json_count(checked("[]")), 0);
	assert_int_equal(json_count(checked("{ }")), 0);
	assert_int_equal(json_count(checked("\"[1]\"")), 0);
}

static void members_are_found_by_decoded_name(void **state)
{
	struct json object = checked(
		"{\"a\":1,\"\\u0062\":2,\"\":3,\"h\xc3\xa9\":4,\"\\ud83d\\ude00\":5,\"n\\u0000l\":6,"
		"\"deep\":{\"inner\":7},\"a\":8}");
	struct json value;

	(void)state;
	assert_true(json_find(object, slice_str("a"), &value) && slice_is(value.raw, "1")); /* the first of two */
	assert_true(json_find(object, slice_str("b"), &value) && slice_is(value.raw, "2"));
	assert_true(json_find(object, slice_str(""), &value) && slice_is(value.raw, "3"));
	assert_true(json_find(object, slice_str("h\xc3\xa9"), &value) && slice_is(value.raw, "4"));
	assert_true(json_find(object, slice_str("\xf0\x9f\x98\x80"), &value) && slice_is(value.raw, "5"));
	assert_true(json_find(object, slice_of("n\0l", 3), &value) && slice_is(value.raw, "6"));
	assert_true(json_find(object, slice_str("deep"), &value) && slice_is(value.raw, "{\"inner\":7}"));
	assert_false(json_find(object, slice_str("n"), &value));
	assert_false(json_find(object, slice_str("inner"), &value));
	assert_false(json_find(object, slice_str("\\u0062"), &value));
	assert_true(slice_is(value.raw, "{\"inner\":7}")); /* untouched by a failure */
	assert_false(json_find(checked("[\"a\",1]"), slice_str("a"), &value));
	assert_false(json_find(checked("\"a\""), slice_str("a"), &value));
}

static void booleans(void **state)
{
	(void)state;
	assert_true(json_bool(checked(" true ")));
	assert_false(json_bool(checked("false")));
}

/* Walks everything that can be reached, whatever it is. */
static size_t walk(struct json value, int depth)
{
	struct json_iter elements = json_iter_of(value), members = elements;
	struct json name, inner;
	size_t n = 1;

	if (depth > 5)
		return n;
	while (json_iter_element(&elements, &inner))
		n += walk(inner, depth + 1);
	while (json_iter_member(&members, &name, &inner))
		n += walk(inner, depth + 1);
	(void)json_find(value, slice_str("ab"), &inner); /* only that it stays inside */
	return n;
}

/* Text that nobody checked: every cut and every changed byte, in exact blocks, so that ASan sees a step outside. */
static void unchecked_text_is_not_left(void **state)
{
	static const char text[] = "{\"a\\u0062\":[1,\"\\\"\",{\"x\":null}],\"\\\\\":{\"y\":[[]]},\"z\":-1.5e3}";
	const size_t n = sizeof text - 1;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		for (int byte = -1; byte < 256; byte++) {
			size_t length = byte < 0 ? i + 1 : n;
			char *exact = malloc(length);

			assert_non_null(exact);
			memcpy(exact, text, length);
			if (byte >= 0)
				exact[i] = (char)byte;
			assert_true(walk(json_trust(slice_of(exact, length)), 0) >= 1);
			free(exact);
		}
	}
}

static void steps_over_values(void **state)
{
	static const char *const values[] = {"1",    "\"\\\\\"", "\"a\\\"]\"", "[1,[\"]\"]]", "{\"}\":[{}]}",
					     "null", "true"};

	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		char text[64];
		size_t n = strlen(values[i]);

		memcpy(text, values[i], n);
		memcpy(text + n, " ,]}", 4);
		for (size_t rest = 0; rest <= 4; rest++)
			assert_ptr_equal(json_value_end(text, text + n + rest), text + n);
	}
	assert_ptr_equal(json_value_end(values[0], values[0]), values[0]);
}

/* Quotes, backslashes and bytes that look like them but for one bit, at every place of every length. */
static void strings_end_at_their_quote(void **state)
{
	(void)state;
	for (size_t n = 0; n < 40; n++) {
		char *exact = malloc(n + 2);

		assert_non_null(exact);
		for (size_t at = 0; at < n; at++) {
			memset(exact, 'x', n + 2);
			exact[0] = exact[n + 1] = '"';
			for (const char *c = "x\x23\xa2\xdc]\x01\xff"; *c; c++) {
				exact[1 + at] = *c;
				assert_ptr_equal(json_string_end(exact, exact + n + 2), exact + n + 2);
			}
			exact[1 + at] = '"';
			assert_ptr_equal(json_string_end(exact, exact + n + 2), exact + at + 2);
			exact[1 + at] = '\\'; /* after the last x it hides the closing quote */
			assert_ptr_equal(json_string_end(exact, exact + n + 2), exact + n + 2);
			if (at > 0) {
				exact[at] = '\\';
				assert_ptr_equal(json_string_end(exact, exact + n + 2), exact + n + 2);
				exact[1 + at] = '"';
				assert_ptr_equal(json_string_end(exact, exact + n + 2), exact + n + 2);
			}
		}
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_in_order),
		cmocka_unit_test(members_in_order),
		cmocka_unit_test(empty_and_scalar_values_have_no_children),
		cmocka_unit_test(elements_and_members_are_counted),
		cmocka_unit_test(members_are_found_by_decoded_name),
		cmocka_unit_test(booleans),
		cmocka_unit_test(unchecked_text_is_not_left),
		cmocka_unit_test(steps_over_values),
		cmocka_unit_test(strings_end_at_their_quote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
