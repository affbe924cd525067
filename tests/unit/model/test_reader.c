/* Reading fields: what each reader accepts, what it says otherwise, and that it then leaves its output alone. */
#include "definition.h"

#include "model/reader.h"

static struct reader r;

static const struct json_node *member(const char *value)
{
	const struct json_node *root = NULL;
	struct hx_error err;

	r = (struct reader){.findings = &findings, .arena = &arena, .place = {.file = "f", .workflow = "w"}};
	findings_init(&findings, &arena);
	if (json_tree_parse(slice_str(json_text(text_printf(&arena, "{\n'x': %s }", value))), 1000, &arena, &err,
			    &root) != HX_OK)
		fail_msg("%s", err.detail);
	return json_node_member(root, "x");
}

static void said(const char *expected)
{
	print_findings();
	assert_string_equal(printed.p, text_printf(&arena, "f:2: error: workflow w: %s\n", expected));
}

static void strings_and_texts(void **state)
{
	const char *text = "untouched";

	(void)state;
	assert_true(reader_text(&r, member("'h\xc3\xa9'"), "x", 3, &text));
	assert_string_equal(text, "h\xc3\xa9");
	assert_false(reader_text(&r, member("'four'"), "x", 3, &text));
	said("value: x is \"four\"; it must have 1 to 3 bytes and no control characters");
	assert_false(reader_text(&r, member("''"), "x", 3, &text));
	assert_false(reader_text(&r, member("'a\\u0000'"), "x", 3, &text));
	assert_false(reader_text(&r, member("'\\n'"), "x", 3, &text));
	said("value: x is \"\\n\"; it must have 1 to 3 bytes and no control characters");
	assert_false(reader_text(&r, member("[1]"), "x", 3, &text));
	said("type: x must be a string, not an array");
	assert_false(reader_string(&r, NULL, "x"));
	assert_string_equal(text, "h\xc3\xa9");
}

static void numbers_and_truths(void **state)
{
	int64_t n = 77;
	bool b = true;

	(void)state;
	assert_true(reader_int(&r, member("5"), "x", 5, 9, &n));
	assert_int_equal(n, 5);
	assert_true(reader_int(&r, member("90e-1"), "x", 5, 9, &n));
	assert_int_equal(n, 9);
	assert_false(reader_int(&r, member("10"), "x", 5, 9, &n));
	said("value: x is 10; it must be a whole number from 5 to 9");
	assert_false(reader_int(&r, member("5.5"), "x", 5, 9, &n));
	assert_false(reader_int(&r, member("99999999999999999999"), "x", 5, 9, &n));
	assert_false(reader_int(&r, member("'5'"), "x", 5, 9, &n));
	said("type: x must be a whole number, not \"5\"");
	assert_false(reader_int(&r, NULL, "x", 5, 9, &n));
	assert_int_equal(n, 9);
	assert_true(reader_bool(&r, member("false"), "x", &b));
	assert_false(b);
	assert_false(reader_bool(&r, member("0"), "x", &b));
	said("type: x must be true or false, not 0");
}

static void choices_and_durations(void **state)
{
	static const char *const names[] = {"one", "two", NULL};
	int choice = 7;
	int64_t ms = 7;

	(void)state;
	assert_true(reader_choice(&r, member("'two'"), "x", names, &choice));
	assert_int_equal(choice, 1);
	assert_false(reader_choice(&r, member("'tow'"), "x", names, &choice));
	said("value: x is \"tow\", which is not known; did you mean \"two\"?");
	assert_true(reader_duration(&r, member("'2m'"), "x", &ms));
	assert_int_equal(ms, 120000);
	assert_false(reader_duration(&r, member("'2'"), "x", &ms));
	said("duration: x: \"2\" is not a duration; write it like 250ms, 5s, 2m, 24h or 7d");
	assert_int_equal(ms, 120000);
}

static void a_silent_reader_says_nothing(void **state)
{
	static const char *const names[] = {"one", NULL};
	const struct json_node *node = member("'tow'");
	int choice = 7;

	(void)state;
	r.findings = NULL;
	assert_false(reader_choice(&r, node, "x", names, &choice));
	assert_false(reader_object(&r, node, "x"));
	assert_int_equal(findings.errors, 0);
}

static void names(void **state)
{
	(void)state;
	assert_true(name_is_valid(slice_str("A-z_0.9")));
	assert_false(name_is_valid(slice_str("")));
	assert_false(name_is_valid(slice_str("a|b")));
	assert_false(name_is_valid(slice_of("a\0", 2)));
	assert_false(name_is_valid(slice_str("\xc3\xa9")));
}

static void places_within(void **state)
{
	const struct json_node *node = member("7");

	(void)state;
	r.where = "action A";
	assert_false(reader_object(&r, node, "headers"));
	said("type: action A: headers must be an object, not 7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(strings_and_texts),
		model_test(numbers_and_truths),
		model_test(choices_and_durations),
		model_test(a_silent_reader_says_nothing),
		model_test(names),
		model_test(places_within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
