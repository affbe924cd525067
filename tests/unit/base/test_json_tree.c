/* The tree: shape, positions, lookup, duplicates, and its two ceilings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json_tree.h"
#include "base/strbuf.h"

static struct arena arena;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 64 << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static const struct json_node *parsed(const char *text)
{
	const struct json_node *root = NULL;
	struct hx_error err;

	if (json_tree_parse(slice_str(text), 1000, &arena, &err, &root) != HX_OK)
		fail_msg("%s: %s", text, err.detail);
	return root;
}

static void assert_at(struct json_position at, size_t line, size_t column)
{
	assert_int_equal(at.line, line);
	assert_int_equal(at.column, column);
}

static void scalars(void **state)
{
	const struct json_node *node = parsed("  \"h\\u00e9\\u0000!\" ");

	(void)state;
	assert_int_equal(node->type, JSON_STRING);
	assert_true(slice_is(node->value.raw, "\"h\\u00e9\\u0000!\""));
	assert_true(slice_eq(node->string, slice_of("h\xc3\xa9\0!", 5)));
	assert_int_equal(node->string.p[5], '\0');
	assert_null(node->name.p);
	assert_null(node->first);
	assert_null(node->next);
	assert_at(node->at, 1, 3);
	node = parsed("1e400");
	assert_int_equal(node->type, JSON_NUMBER);
	assert_true(slice_is(node->value.raw, "1e400"));
	assert_null(node->string.p);
	assert_int_equal(parsed("null")->type, JSON_NULL);
	assert_int_equal(parsed("false")->type, JSON_BOOL);
	assert_true(slice_is(parsed("\"\"")->string, ""));
	assert_non_null(parsed("\"\"")->string.p);
}

static const char definition[] = "{ \"workflow\": \"billing\",\n"
				 "  \"h\xc3\xa9\": 1, \"steps\": [\n"
				 "\t{ \"step_id\": 10, \"claim_state\": { \"admin\": [\"closing\", \"approved\"] } },\n"
				 "    { },\r\n"
				 "    []\n"
				 "  ] }";

static void shape_and_positions(void **state)
{
	const struct json_node *root = parsed(definition);
	const struct json_node *steps = json_node_member(root, "steps");
	const struct json_node *node;

	(void)state;
	assert_int_equal(root->count, 3);
	assert_true(slice_is(root->first->name, "workflow"));
	assert_at(root->first->name_at, 1, 3);
	assert_at(root->first->at, 1, 15);
	assert_at(json_node_member(root, "h\xc3\xa9")->at, 2, 9);
	assert_at(steps->name_at, 2, 12);
	assert_at(steps->at, 2, 21);
	assert_int_equal(steps->count, 3);
	node = json_node_member(json_node_member(steps->first, "claim_state"), "admin");
	assert_int_equal(node->count, 2);
	assert_at(node->first->at, 3, 46);
	assert_at(node->first->next->at, 3, 57);
	assert_true(slice_is(node->first->next->string, "approved"));
	assert_true(slice_is(node->value.raw, "[\"closing\", \"approved\"]"));
	assert_null(node->first->next->next);
	node = steps->first->next;
	assert_at(node->at, 4, 5);
	assert_true(slice_is(node->value.raw, "{ }"));
	assert_int_equal(node->count, 0);
	assert_at(node->next->at, 5, 5);
	assert_int_equal(node->next->type, JSON_ARRAY);
	assert_true(slice_is(root->value.raw, definition));
}

static void children_are_walked_in_the_order_of_the_text(void **state)
{
	static const char *const names[] = {"z", "a", "m"};
	size_t n = 0;

	(void)state;
	json_node_for_each(child, parsed("{\"z\":1,\"a\":2,\"m\":3}")) assert_true(slice_is(child->name, names[n++]));
	assert_int_equal(n, 3);
	json_node_for_each(child, parsed("\"no children\"")) fail();
}

static void lookup(void **state)
{
	const struct json_node *root = parsed("{\"b\":1,\"\\u0061\":2,\"\":3,\"ab\":4,\"n\\u0000\":5}");

	(void)state;
	assert_true(slice_is(json_node_member(root, "a")->value.raw, "2"));
	assert_true(slice_is(json_node_member(root, "b")->value.raw, "1"));
	assert_true(slice_is(json_node_member(root, "ab")->value.raw, "4"));
	assert_true(slice_is(json_node_member(root, "")->value.raw, "3"));
	assert_true(slice_is(json_node_member_slice(root, slice_of("n\0", 2))->value.raw, "5"));
	assert_null(json_node_member(root, "n"));
	assert_null(json_node_member(root, "c"));
	assert_null(json_node_member(root, "\\u0061"));
	assert_null(json_node_member(parsed("{}"), "a"));
	assert_null(json_node_member(parsed("[\"a\"]"), "a"));
	assert_null(json_node_member(NULL, "a"));
}

static void the_text_may_go_away(void **state)
{
	char *text = malloc(sizeof definition);
	const struct json_node *root = NULL;

	(void)state;
	assert_non_null(text);
	memcpy(text, definition, sizeof definition);
	assert_int_equal(json_tree_parse(slice_str(text), 100, &arena, NULL, &root), HX_OK);
	free(text);
	assert_true(slice_is(root->value.raw, definition));
	assert_true(slice_is(json_node_member(root, "workflow")->string, "billing"));
}

static void assert_refused(const char *text, const char *detail)
{
	const struct json_node *root = NULL;
	struct hx_error err = {0};

	assert_int_equal(json_tree_parse(slice_str(text), 1000, &arena, &err, &root), HX_VALIDATION_ERROR);
	assert_string_equal(err.detail, detail);
	assert_null(root);
}

static void faults_are_refused_with_their_place(void **state)
{
	(void)state;
	assert_refused("", "1:1: the text is empty");
	assert_refused("{\n\"a\":1,\n}", "3:1: the name of a member is expected here, in double quotes");
	assert_refused("{\"a\":1,\n \"a\":2}", "2:2: the member \"a\" is there already, at 1:2");
	assert_refused("{\"x\":[{\"a\":1,\n \"b\":0, \"\\u0061\":2}]}",
		       "2:9: the member \"a\" is there already, at 1:8");
	assert_refused("{\"o\":{\"k\":1},\"l\":1,\"o\":2}", "1:20: the member \"o\" is there already, at 1:2");
}

static void integers_with_their_place(void **state)
{
	const struct json_node *root = parsed("{\"a\": 10e-1,\n \"b\": 1.5,\n \"c\": \"x\"}");
	struct hx_error err;
	int64_t value = 0;

	(void)state;
	assert_int_equal(json_node_int64(json_node_member(root, "a"), &err, &value), HX_OK);
	assert_int_equal(value, 1);
	assert_int_equal(json_node_int64(json_node_member(root, "b"), &err, &value), HX_VALIDATION_ERROR);
	assert_string_equal(err.detail, "2:7: 1.5 is not an integer");
	assert_int_equal(json_node_int64(json_node_member(root, "c"), &err, &value), HX_VALIDATION_ERROR);
	assert_string_equal(err.detail, "3:7: a number is expected here, this is: string");
}

static void nodes_at_the_limit_and_one_past(void **state)
{
	const struct json_node *root = NULL;
	struct slice text = slice_str("[1,\n{\"a\":[]},\n\"x\"]"); /* five values */
	struct hx_error err;

	(void)state;
	assert_int_equal(json_tree_parse(text, 5, &arena, &err, &root), HX_OK);
	root = NULL;
	for (size_t max = 0; max < 5; max++) {
		assert_int_equal(json_tree_parse(text, max, &arena, &err, &root), HX_TOO_LARGE);
		assert_null(root);
	}
	assert_string_equal(err.detail, "3:1: there are too many values in this text");
}

static void every_amount_of_memory(void **state)
{
	enum hx_code code = HX_TOO_LARGE;
	size_t room = 0;

	(void)state;
	for (; code != HX_OK && room < 1 << 16; room += 16) {
		const struct json_node *root = NULL;
		struct hx_error err;
		struct arena small;

		arena_init(&small, room);
		code = json_tree_parse(slice_str(definition), 100, &small, &err, &root);
		assert_true((code == HX_OK) == (root != NULL));
		assert_true(code == HX_OK || err.code == HX_TOO_LARGE);
		arena_release(&small);
	}
	assert_int_equal(code, HX_OK);
	assert_true(room > sizeof definition + 12 * sizeof(struct json_node));
}

static void large_objects_and_full_depth(void **state)
{
	const struct json_node *root = NULL;
	struct hx_error err;
	struct strbuf text;

	(void)state;
	strbuf_init(&text, 16 << 20);
	for (int i = 0; i < 50000; i++)
		strbuf_addf(&text, "%s\"key %d\":\n%d", i ? "," : "{", 50000 - i, i);
	strbuf_add_char(&text, '}');
	assert_int_equal(json_tree_parse(strbuf_slice(&text), 50001, &arena, &err, &root), HX_OK);
	for (int i = 0; i < 50000; i++) {
		char name[32];

		snprintf(name, sizeof name, "key %d", 50000 - i);

		const struct json_node *node = json_node_member(root, name);

		assert_non_null(node);
		assert_int_equal(node->at.line, i + 2);
	}
	strbuf_reset(&text);
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		strbuf_add_char(&text, '[');
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		strbuf_add_char(&text, ']');
	assert_int_equal(json_tree_parse(strbuf_slice(&text), JSON_DEPTH_MAX, &arena, &err, &root), HX_OK);
	for (int i = 1; i < JSON_DEPTH_MAX; i++)
		root = root->first;
	assert_at(root->at, 1, JSON_DEPTH_MAX);
	assert_int_equal(root->count, 0);
	strbuf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(scalars, set_up, tear_down),
		cmocka_unit_test_setup_teardown(shape_and_positions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(children_are_walked_in_the_order_of_the_text, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lookup, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_text_may_go_away, set_up, tear_down),
		cmocka_unit_test_setup_teardown(faults_are_refused_with_their_place, set_up, tear_down),
		cmocka_unit_test_setup_teardown(integers_with_their_place, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nodes_at_the_limit_and_one_past, set_up, tear_down),
		cmocka_unit_test_setup_teardown(every_amount_of_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(large_objects_and_full_depth, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
