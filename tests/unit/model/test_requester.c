/* Values by requester. */
#include "definition.h"

#include "model/requester.h"

static const struct json_node *tree(const char *text)
{
	const struct json_node *root = NULL;
	struct hx_error err;

	if (json_tree_parse(slice_str(json_text(text)), 1000, &arena, &err, &root) != HX_OK)
		fail_msg("%s", err.detail);
	return root;
}

/* What holds for the requester, as it is written; NULL: nothing. */
static const char *value(const char *field, const char *requester)
{
	const struct json_node *node = requester_value(field ? tree(field) : NULL, slice_str(requester));

	return node ? arena_copy(&arena, node->value.raw).p : NULL;
}

static void one_value_for_all(void **state)
{
	(void)state;
	assert_string_equal(value("'x'", "admin"), "\"x\"");
	assert_string_equal(value("['x', 'y']", NULL), "[\"x\", \"y\"]");
	assert_string_equal(value("null", NULL), "null");
	assert_null(value(NULL, "admin"));
	assert_false(requester_is_named(tree("'admin'"), slice_str("admin")));
	assert_false(requester_is_named(NULL, slice_str("admin")));
}

static void a_map(void **state)
{
	static const char map[] = "{'admin': 1, 'default': 2}";

	(void)state;
	assert_string_equal(value(map, "admin"), "1");
	assert_string_equal(value(map, "clerk"), "2");
	assert_string_equal(value(map, "default"), "2");
	assert_string_equal(value(map, NULL), "2");
	assert_null(value("{'admin': 1}", "clerk"));
	assert_null(value("{'admin': 1}", NULL));
	assert_null(value("{}", "admin"));
	assert_string_equal(value("{'admin': null}", "admin"), "null");
	assert_true(requester_is_named(tree(map), slice_str("admin")));
	assert_false(requester_is_named(tree(map), slice_str("clerk")));
	assert_false(requester_is_named(tree(map), slice_of(NULL, 0)));
}

static void names_are_collected_in_order(void **state)
{
	struct reader r = {.findings = &findings, .arena = &arena, .place.file = "x"};
	struct requesters set = {0};

	(void)state;
	requesters_add(&set, &r, tree("{'m': 1, 'z': 1, 'default': 1}"));
	requesters_add(&set, &r, tree("{'a': 1, 'z': 1, 'n': 1}"));
	requesters_add(&set, &r, tree("['not', 'a', 'map']"));
	requesters_add(&set, &r, NULL);
	assert_int_equal(set.n, 4);
	assert_true(slice_is(set.names[0], "a"));
	assert_true(slice_is(set.names[1], "m"));
	assert_true(slice_is(set.names[2], "n"));
	assert_true(slice_is(set.names[3], "z"));
	assert_int_equal(findings.errors, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(one_value_for_all),
		model_test(a_map),
		model_test(names_are_collected_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
