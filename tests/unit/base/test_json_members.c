/* The index of members: its order, and names that stand twice, however they are spelled and wherever they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json_members.h"
#include "base/strbuf.h"

#define SCRATCH_BYTES (256u << 20)

static struct json checked(struct slice text)
{
	struct hx_error err;
	struct json value = {{NULL, 0}};

	if (json_check(text, &err, &value) != HX_OK)
		fail_msg("%.100s: %s", text.p, err.detail);
	return value;
}

static enum hx_code check_unique(struct slice text, struct hx_error *err)
{
	struct arena scratch;
	enum hx_code code;

	arena_init(&scratch, SCRATCH_BYTES);
	code = json_check_unique(checked(text), &scratch, err);
	arena_release(&scratch);
	return code;
}

static void records_stand_in_the_order_of_the_text(void **state)
{
	static const char text[] = "{\"a\": {\"x\": 1, \"y\": 2}, \"b\": [{\"z\": 3}, {}, {\"a\":4}]}";
	static const char *const names[] = {"a", "x", "y", "b", "z", "a"};
	struct json document = checked(slice_str(text));
	struct json_members members;
	struct arena a;

	(void)state;
	arena_init(&a, 4096);
	assert_int_equal(json_members_index(document, &a, NULL, &members), HX_OK);
	assert_int_equal(members.count, 6);
	for (size_t i = 0; i < 6; i++)
		assert_true(slice_is(members.all[i].link.name, names[i]));

	struct json_member *m = members.all;

	assert_ptr_equal(m[0].link.next, &m[3]);
	assert_null(m[3].link.next);
	assert_ptr_equal(m[1].link.next, &m[2]);
	assert_null(m[4].link.next);
	assert_ptr_equal(m[0].object_end, text + sizeof text - 1);
	assert_ptr_equal(m[0].object_after, &m[6]);
	assert_ptr_equal(m[1].object_after, &m[3]);
	assert_ptr_equal(m[1].object_end, strstr(text, ", \"b\""));
	assert_ptr_equal(m[4].object_after, &m[5]);
	assert_true(!m[2].object_end && !m[3].object_end && m[5].object_end);
	assert_ptr_equal(json_member_value(&m[3], text + sizeof text), strchr(text, '['));
	arena_release(&a);
}

static void documents_without_duplicates(void **state)
{
	/* clang-format off */
	static const char *const texts[] = {
		"1", "\"a\"", "[]", "{}", "[{},{}]", "{\"a\":1}", "{\"a\":1,\"b\":2,\"A\":3,\"\":4}",
		"[{\"a\":1},{\"a\":1}]", "{\"a\":{\"a\":{\"a\":1}}}", "{\"a\":[{\"a\":1},{\"a\":2}],\"b\":{\"a\":3}}",
		"{\"\\u0000\":1,\"\":2,\"\\u0000\\u0000\":3}", "{\"a\":\"b\",\"b\":\"a\"}",
		"{\"\\\\u0061\":1,\"a\":2}", "[\"a\",\"a\",\":\",{\":\":\":\"}]", "{\"e\\u0301\":1,\"\\u00e9\":2}",
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct hx_error err;

		if (check_unique(slice_str(texts[i]), &err) != HX_OK)
			fail_msg("%s: %s", texts[i], err.detail);
	}
}

static void duplicates_are_named_with_both_places(void **state)
{
	static const char *const cases[][2] = {
		{"{\"a\":1,\"a\":1}", "1:8: the member \"a\" is there already, at 1:2"},
		{"{\"a\":1,\"\\u0061\":2}", "1:8: the member \"a\" is there already, at 1:2"},
		{"{\"\\u0061\":1,\"b\":3,\"a\":2}", "1:19: the member \"a\" is there already, at 1:2"},
		{"{\"\":1,\"\":2}", "1:7: the member \"\" is there already, at 1:2"},
		{"[0,{\"x\":{\"k\":[],\n\"b\":{},\n \"k\":{}}}]", "3:2: the member \"k\" is there already, at 1:10"},
		{"{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}",
		 "1:19: the member \"\xf0\x9f\x98\x80\" is there already, at 1:2"},
		{"{\"z\\n\":1,\"\\u007a\\u000A\":2}", "1:10: the member \"z\\n\" is there already, at 1:2"},
		{"{\"/\":{\"a\":{\"b\":1}},\"\\/\":2}", "1:20: the member \"/\" is there already, at 1:2"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hx_error err = {0};

		assert_int_equal(check_unique(slice_str(cases[i][0]), &err), HX_VALIDATION_ERROR);
		assert_string_equal(err.detail, cases[i][1]);
	}
}

/* 100,000 members in one object, in several orders: neither time nor memory may run away. */
static void a_hundred_thousand_members(void **state)
{
	struct strbuf sb;
	struct hx_error err;

	(void)state;
	strbuf_init(&sb, 64 << 20);
	for (int pattern = 0; pattern < 3; pattern++) {
		strbuf_reset(&sb);
		for (int i = 0; i < 100000; i++) {
			int value = pattern == 0 ? i : pattern == 1 ? 99999 - i : i * 7919 % 100000;

			strbuf_addf(&sb, "%s\"the same beginning \\u002d %09d\":%d", i ? "," : "{", value, i);
		}
		strbuf_add_char(&sb, '}');
		assert_int_equal(check_unique(strbuf_slice(&sb), &err), HX_OK);
		sb.p[--sb.n] = '\0';
		strbuf_addf(&sb, ",\"the same beginning - %09d\":0}", 77);
		assert_false(sb.failed);
		assert_int_equal(check_unique(strbuf_slice(&sb), &err), HX_VALIDATION_ERROR);
		assert_non_null(strstr(err.detail, "the same beginning - 000000077"));
	}
	strbuf_release(&sb);
}

/* Deep nesting around a large object must not read it once per level. */
static void deep_and_wide(void **state)
{
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 64 << 20);
	for (int i = 0; i < JSON_DEPTH_MAX - 1; i++)
		strbuf_add_str(&sb, "{\"a\":");
	for (int i = 0; i < 100000; i++)
		strbuf_addf(&sb, "%s\"%d\":[]", i ? "," : "{", i);
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		strbuf_add_str(&sb, "}");
	/* The deepest values are arrays, one level too deep: */
	assert_int_equal(json_check(strbuf_slice(&sb), NULL, &(struct json){{NULL, 0}}), HX_VALIDATION_ERROR);
	for (char *p = strstr(sb.p, "[]"); p; p = strstr(p, "[]"))
		memcpy(p, "10", 2);
	assert_int_equal(check_unique(strbuf_slice(&sb), NULL), HX_OK);
	strbuf_release(&sb);
}

static void scratch_at_the_limit_and_one_past(void **state)
{
	struct json document = checked(slice_str("{\"a\":{\"b\":1},\"c\":[{\"d\":2}]}"));
	struct hx_error err;
	struct arena scratch;

	(void)state;
	arena_init(&scratch, 4 * sizeof(struct json_member));
	assert_int_equal(json_check_unique(document, &scratch, &err), HX_OK);
	arena_release(&scratch);
	arena_init(&scratch, 4 * sizeof(struct json_member) - 1);
	assert_int_equal(json_check_unique(document, &scratch, &err), HX_TOO_LARGE);
	assert_int_equal(err.code, HX_TOO_LARGE);
	arena_release(&scratch);
	/* An escaped name needs room for its decoded form too. */
	document = checked(slice_str("{\"\\u0061\":1}"));
	arena_init(&scratch, sizeof(struct json_member));
	assert_int_equal(json_check_unique(document, &scratch, &err), HX_TOO_LARGE);
	arena_release(&scratch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_stand_in_the_order_of_the_text),
		cmocka_unit_test(documents_without_duplicates),
		cmocka_unit_test(duplicates_are_named_with_both_places),
		cmocka_unit_test(a_hundred_thousand_members),
		cmocka_unit_test(deep_and_wide),
		cmocka_unit_test(scratch_at_the_limit_and_one_past),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
