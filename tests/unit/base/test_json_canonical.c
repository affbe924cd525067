/* The canonical form: equal for what says the same, different for what does not, and bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json_canonical.h"
#include "base/json_members.h"

static void canonical(struct slice text, struct strbuf *ret_form)
{
	struct json value = {{NULL, 0}};
	struct hx_error err;
	struct arena scratch;

	arena_init(&scratch, 256u << 20);
	if (json_check(text, &err, &value) != HX_OK || json_canonical(value, &scratch, &err, ret_form) != HX_OK)
		fail_msg("%.100s: %s", text.p, err.detail);
	arena_release(&scratch);
}

static void assert_form(const char *text, const char *expected)
{
	struct strbuf once, twice;

	strbuf_init(&once, 1 << 20);
	strbuf_init(&twice, 1 << 20);
	canonical(slice_str(text), &once);
	assert_string_equal(once.p, expected);
	canonical(strbuf_slice(&once), &twice);
	assert_string_equal(twice.p, expected);
	strbuf_release(&once);
	strbuf_release(&twice);
}

static void forms(void **state)
{
	(void)state;
	assert_form(" null ", "null");
	assert_form("[ true , false ]", "[true,false]");
	assert_form("{ }", "{}");
	assert_form("[ ]", "[]");
	assert_form("[{ },[ ],{}]", "[{},[],{}]");
	assert_form("{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}");
	assert_form("{\"b\":{\"z\":1.50,\"y\":[{\"n\":0,\"m\":-0}]},\"a\":\"x\"}",
		    "{\"a\":\"x\",\"b\":{\"y\":[{\"m\":0,\"n\":0}],\"z\":15e-1}}");
	assert_form("[{\"b\":1,\"a\":{\"d\":1,\"c\":{}}},{\"f\":[{\"h\":1,\"g\":2}],\"e\":0},{\"j\":1,\"i\":2}]",
		    "[{\"a\":{\"c\":{},\"d\":1},\"b\":1},{\"e\":0,\"f\":[{\"g\":2,\"h\":1}]},{\"i\":2,\"j\":1}]");
	assert_form("\"\\u0041\\/\\u00e9\\ud83d\\ude00\\u000a\\u001F\\u0022\\u005c\\u007f\"",
		    "\"A/\xc3\xa9\xf0\x9f\x98\x80\\n\\u001f\\\"\\\\\x7f\"");
	/* By code points, a prefix first; UTF-16 order would put the surrogate pair before U+FFFF. */
	assert_form("{\"\xf0\x90\x80\x80\":1,\"\\uffff\":2,\"aa\":3,\"a\":4,\"B\":5,\"\":6,\"\\u0000\":7}",
		    "{\"\":6,\"\\u0000\":7,\"B\":5,\"a\":4,\"aa\":3,\"\xef\xbf\xbf\":2,\"\xf0\x90\x80\x80\":1}");
}

/* Each line: spellings of one value; values of different lines differ. */
static const char *const families[][5] = {
	{"1", "1.0", "1e0", "10e-1", "0.1E+1"},
	{"0", "-0", "0.0", "-0e5", "0e99999999999999999999"},
	{"9007199254740993", "9007199254740993.0", "900719925474099300e-2", "9.007199254740993e15",
	 " 9007199254740993 "},
	{"9007199254740992", "9007199254740992.0", "9007199254740992e0", "90071992547409920e-1",
	 "9.007199254740992e+15"},
	{"1e400", "10e399", "0.1e401", "1E400", "1.0e+400"},
	{"1e401", "10e400", "1e+401", "1.0e401", "100e399"},
	{"1e999999999999", "10e999999999998", "1E999999999999", "0.1e1000000000000", "1.0e999999999999"},
	{"null", " null", "null ", "\nnull", "\tnull\r\n"},
	{"\"1\"", "\"\\u0031\"", " \"1\"", "\"1\" ", "\"\\u0031\" "},
	{"\"/\"", "\"\\/\"", "\"\\u002f\"", "\"\\u002F\"", " \"/\""},
	{"[1,2]", "[1.0,2]", " [ 1 , 2 ] ", "[1,20e-1]", "[1e0,2e0]"},
	{"[2,1]", "[2,1 ]", "[ 2,1]", "[2.0,1]", "[2,1.0]"},
	{"[[1],2]", "[[1.0],2]", "[ [1] ,2]", "[[1],2.0]", "[[1],2]"},
	{"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", "{\"\\u0061\":1,\"b\":2}", "{\"b\":2.0,\"\\u0061\":1e0}",
	 "{ \"b\":2 ,\"a\":1}"},
	{"{\"a\":1}", "{\"a\":1.0}", "{\"\\u0061\":1}", "{ \"a\" : 1 }", "{\"a\":10e-1}"},
	{"{\"a\":1,\"a\":1}", "{\"a\":1,\"\\u0061\":1}", "{\"\\u0061\":1.0,\"a\":1}", "{ \"a\":1,\"a\":1}",
	 "{\"a\":1,\"a\":1e0}"},
	{"{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}", "{\"\\u0061\":1,\"a\":2}", "{\"a\":1, \"a\":2}",
	 "{\"a\":1.0,\"a\":2}"},
	{"{\"a\":2,\"a\":1}", "{\"a\":2,\"\\u0061\":1}", "{\"\\u0061\":2,\"a\":1}", "{\"a\":2, \"a\":1}",
	 "{\"a\":2.0,\"a\":1}"},
	{"{\"a\":2}", "{\"a\":2.0}", "{\"\\u0061\":2}", "{ \"a\" : 2 }", "{\"a\":20e-1}"},
	{"{\"a\":null}", "{\"a\": null}", "{\"\\u0061\":null}", "{ \"a\":null}", "{\"a\":null }"},
	{"{}", "{ }", " {}", "{\n}", "{} "},
	{"[]", "[ ]", " []", "[\n]", "[] "},
	{"\"\"", " \"\"", "\"\" ", "\n\"\"", "\"\"\n"},
	{"\"\\u00e9\"", "\"\xc3\xa9\"", "\"\\u00E9\"", " \"\xc3\xa9\"", "\"\xc3\xa9\" "},
	{"\"e\\u0301\"", "\"e\xcc\x81\"", "\"\\u0065\\u0301\"", "\"\\u0065\xcc\x81\"", " \"e\xcc\x81\""},
	{"{\"b\":[{\"d\":1,\"c\":2}],\"a\":{\"f\":3,\"e\":4}}", "{\"a\":{\"e\":4,\"f\":3},\"b\":[{\"c\":2,\"d\":1}]}",
	 "{\"a\":{\"f\":3,\"e\":4},\"b\":[{\"d\":1,\"c\":2}]}", "{\"b\":[{\"c\":2,\"d\":1}],\"a\":{\"f\":3,\"e\":4}}",
	 "{\"b\":[{\"c\":2,\"d\":1.0}],\"a\":{\"e\":4,\"f\":3}}"},
	{"false", " false", "false ", "\nfalse", "false\n"},
};

static void equal_within_a_family_and_different_between_them(void **state)
{
	enum { FAMILIES = sizeof families / sizeof families[0] };
	struct strbuf forms_of[FAMILIES];

	(void)state;
	for (size_t i = 0; i < FAMILIES; i++) {
		strbuf_init(&forms_of[i], 1000);
		canonical(slice_str(families[i][0]), &forms_of[i]);
		for (size_t j = 1; j < 5; j++) {
			struct strbuf form;

			strbuf_init(&form, 1000);
			canonical(slice_str(families[i][j]), &form);
			assert_string_equal(form.p, forms_of[i].p);
			strbuf_release(&form);
		}
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(forms_of[i].p, forms_of[j].p);
	}
	for (size_t i = 0; i < FAMILIES; i++)
		strbuf_release(&forms_of[i]);
}

static void an_exponent_costs_its_digits_and_no_more(void **state)
{
	static char text[100002] = "1e";
	struct strbuf form;

	(void)state;
	memset(text + 2, '9', sizeof text - 3);
	strbuf_init(&form, sizeof text + 10);
	canonical(slice_str(text), &form);
	assert_string_equal(form.p, text);
	strbuf_release(&form);
	strbuf_init(&form, 20);
	canonical(slice_str("1e999999999999"), &form);
	assert_int_equal(form.n, 14);
	strbuf_release(&form);
}

static void the_buffer_bounds_it(void **state)
{
	struct json value = {{NULL, 0}};
	struct hx_error err;
	struct arena scratch;
	struct strbuf form;

	(void)state;
	arena_init(&scratch, 1 << 20);
	assert_int_equal(json_check(slice_str("{\"b\":[1,2],\"a\":\"\\u0041\"}"), &err, &value), HX_OK);
	strbuf_init(&form, 19); /* {"a":"A","b":[1,2]} */
	assert_int_equal(json_canonical(value, &scratch, &err, &form), HX_OK);
	strbuf_release(&form);
	for (size_t room = 0; room < 19; room++) {
		strbuf_init(&form, room);
		assert_int_equal(json_canonical(value, &scratch, &err, &form), HX_TOO_LARGE);
		assert_int_equal(err.code, HX_TOO_LARGE);
		strbuf_release(&form);
	}
	arena_release(&scratch);
}

static void the_scratch_bounds_it(void **state)
{
	struct json value = {{NULL, 0}};
	struct hx_error err;
	enum hx_code code = HX_TOO_LARGE;
	size_t room = 0;

	(void)state;
	assert_int_equal(json_check(slice_str("{\"b\":[1,2],\"\\u0061\":\"\\u0041\"}"), &err, &value), HX_OK);
	for (; code == HX_TOO_LARGE && room < 4096; room++) {
		struct arena scratch;
		struct strbuf form;

		arena_init(&scratch, room);
		strbuf_init(&form, 100);
		code = json_canonical(value, &scratch, &err, &form);
		assert_true(code == HX_OK || err.code == HX_TOO_LARGE);
		if (code == HX_OK)
			assert_string_equal(form.p, "{\"a\":\"A\",\"b\":[1,2]}");
		strbuf_release(&form);
		arena_release(&scratch);
	}
	assert_int_equal(code, HX_OK);
	assert_int_equal(room - 1, 2 * sizeof(struct json_member) + 32);
}

/* {"b":{"b":…},"a":0} as deep as it goes around a wide object: linear, not once per level. */
static void deep_wide_and_in_the_wrong_order(void **state)
{
	struct strbuf text, form, again;

	(void)state;
	strbuf_init(&text, 64 << 20);
	strbuf_init(&form, 64 << 20);
	strbuf_init(&again, 64 << 20);
	for (int i = 0; i < JSON_DEPTH_MAX - 1; i++)
		strbuf_add_str(&text, "{\"b\":");
	for (int i = 0; i < 100000; i++)
		strbuf_addf(&text, "%s\"%06d\":%d", i ? "," : "{", 100000 - i, i);
	strbuf_add_char(&text, '}');
	for (int i = 0; i < JSON_DEPTH_MAX - 1; i++)
		strbuf_add_str(&text, ",\"a\":0}");
	canonical(strbuf_slice(&text), &form);
	assert_true(strncmp(form.p, "{\"a\":0,\"b\":{\"a\":0,", 18) == 0);
	canonical(strbuf_slice(&form), &again);
	assert_true(slice_eq(strbuf_slice(&form), strbuf_slice(&again)));
	strbuf_release(&text);
	strbuf_release(&form);
	strbuf_release(&again);
}

static void it_appends(void **state)
{
	struct strbuf form;

	(void)state;
	strbuf_init(&form, 100);
	strbuf_add_str(&form, "POST /x ");
	canonical(slice_str("[1.0]"), &form);
	assert_string_equal(form.p, "POST /x [1]");
	strbuf_release(&form);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),
		cmocka_unit_test(equal_within_a_family_and_different_between_them),
		cmocka_unit_test(an_exponent_costs_its_digits_and_no_more),
		cmocka_unit_test(the_buffer_bounds_it),
		cmocka_unit_test(the_scratch_bounds_it),
		cmocka_unit_test(deep_wide_and_in_the_wrong_order),
		cmocka_unit_test(it_appends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
