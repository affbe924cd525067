/* Expressions: the limits of text, depth, work, memory and output. */
#include "expressed.h"

static char *repeated(const char *open, const char *inside, const char *close, size_t times)
{
	struct strbuf sb;
	char *text;

	strbuf_init(&sb, 1u << 20);
	for (size_t i = 0; i < times; i++)
		strbuf_add_str(&sb, open);
	strbuf_add_str(&sb, inside);
	for (size_t i = 0; i < times; i++)
		strbuf_add_str(&sb, close);
	text = (char *)arena_copy(&arena, strbuf_slice(&sb)).p;
	strbuf_release(&sb);
	return text;
}

static void text_has_a_limit(void **state)
{
	const struct expression *expression = NULL;

	(void)state;
	gives(repeated(" ", ".input.n", "", EXPRESSION_BYTES_MAX - 8), "3");
	assert_int_equal(expression_parse(slice_str(repeated(" ", ".input.n", "", EXPRESSION_BYTES_MAX - 7)), &arena,
					  &err, &expression),
			 HX_TOO_LARGE);
	assert_null(expression);
}

static void brackets_have_a_limit(void **state)
{
	static const char *const pairs[][2] = {{"(", ")"}, {"[", "]"}, {"{a:", "}"}, {"has(", ")"}, {"{(", "):1}"}};

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		(void)parsed(repeated(pairs[i][0], "\"a\"", pairs[i][1], i == 4 ? 32 : 64));
		refused(repeated(pairs[i][0], "'a'", pairs[i][1], i == 4 ? 33 : 65), "column ");
		assert_non_null(strstr(err.detail, "more than 64 brackets are open"));
	}
	gives(repeated("[", "", "]", 64), repeated("[", "", "]", 64));
}

/* Chains are not nested, so they may be as long as the text. */
static void chains_have_none(void **state)
{
	(void)state;
	gives(repeated(".x", "", "", 2048), "null");
	gives(repeated("false or ", "1 == 1", "", 450), "true");
	gives(repeated("true and ", "1 == 2", "", 450), "false");
	gives(repeated("null//", "7", "", 680), "7");
	gives(repeated(".|", "7", "", 2000), "7");
}

static void values_have_a_depth(void **state)
{
	(void)state;
	env.input = checked(repeated("[", "", "]", 63));
	gives("[.input] | length", "1");
	env.input = checked(repeated("[", "", "]", 64));
	gives(".input | length", "1");
	assert_int_equal(evaluate("[.input]"), HX_TOO_LARGE);
	assert_int_equal(evaluate("."), HX_TOO_LARGE);
	assert_int_equal(evaluate(repeated("{a:.}|", ".", "", 600)), HX_TOO_LARGE);
	assert_int_equal(evaluate("[.input] // 1"), HX_TOO_LARGE);
	assert_non_null(strstr(err.detail, "64 brackets"));
}

/* Doubling: 2^600 values in 4 KiB of text. */
static void work_and_memory_have_limits(void **state)
{
	char *doubling = repeated("[.,.]|", ".", "", 60);
	struct arena scratch;

	(void)state;
	arena_init(&scratch, SIZE_MAX / 2);
	assert_int_equal(expression_eval(parsed(doubling), &env, &scratch, &err, &out), HX_TOO_LARGE);
	assert_non_null(strstr(err.detail, "too much to do"));
	assert_int_equal(scratch.used_bytes, 0);
	arena_release(&scratch);
	arena_init(&scratch, 100000);
	assert_int_equal(expression_eval(parsed(doubling), &env, &scratch, &err, &out), HX_TOO_LARGE);
	assert_non_null(strstr(err.detail, "bytes of memory"));
	/* It is as it was found, and good for the next. */
	assert_int_equal(expression_eval(parsed("[.input.n]"), &env, &scratch, &err, &out), HX_OK);
	assert_string_equal(out.p, "[3]");
	arena_release(&scratch);
}

static void a_long_input_spends_work(void **state)
{
	struct strbuf text, paths;

	(void)state;
	strbuf_init(&text, 64u << 20);
	strbuf_add_str(&text, "{\"a\":\"");
	while (text.n < 16u << 20)
		strbuf_add_str(&text, "0123456789abcdef0123456789abcdef0123456789abcdef");
	strbuf_add_str(&text, "\",\"b\":1}");
	strbuf_init(&paths, EXPRESSION_BYTES_MAX);
	for (int i = 0; i < 14; i++)
		strbuf_add_str(&paths, ".input.b == 2 or ");
	strbuf_add_str(&paths, "true");
	env.input = checked(text.p);
	gives(paths.p, "true");
	for (int i = 0; i < 14; i++)
		strbuf_add_str(&paths, " and .input.b == 1");
	assert_int_equal(evaluate(paths.p), HX_TOO_LARGE);
	assert_non_null(strstr(err.detail, "too much to do"));
	strbuf_release(&paths);
	strbuf_release(&text);
}

/* Sorting costs more than its bytes, and is refused before it begins. */
static void members_to_sort_spend_more(void **state)
{
	struct strbuf text;

	(void)state;
	strbuf_init(&text, 64u << 20);
	for (int i = 0; i < 400000; i++)
		strbuf_addf(&text, "%s\"%d\":0", i ? "," : "{", i);
	strbuf_add_str(&text, "}");
	env.input = checked(text.p);
	gives(".input == .input", "true"); /* the same bytes */
	gives(".input | length", "400000");
	assert_int_equal(evaluate(".input == {a: 1}"), HX_TOO_LARGE);
	assert_non_null(strstr(err.detail, "too much to do"));
	strbuf_release(&text);
}

static void output_has_a_ceiling(void **state)
{
	const struct expression *expression = parsed("[.input.n, 12345]");
	struct arena scratch;
	struct strbuf small;

	(void)state;
	arena_init(&scratch, 1u << 20);
	strbuf_init(&small, 8);
	assert_int_equal(expression_eval(expression, &env, &scratch, &err, &small), HX_TOO_LARGE);
	assert_int_equal(small.n, 0);
	strbuf_release(&small);
	strbuf_init(&small, 9);
	assert_int_equal(expression_eval(expression, &env, &scratch, &err, &small), HX_OK);
	assert_string_equal(small.p, "[3,12345]");
	strbuf_release(&small);
	arena_release(&scratch);
}

static void with_any_smaller_arena_there_is_an_error(void **state)
{
	static const char text[] = "{a: .input.\"x\\n\", (.input.s): [1, has(\"b\")], c} | .a == 1 // length";
	const struct expression *expression = NULL;
	enum hx_code code = HX_TOO_LARGE;
	struct arena small;
	size_t room = 0;

	(void)state;
	for (; code != HX_OK; room += 16) {
		arena_init(&small, room);
		code = expression_parse(slice_str(text), &small, &err, &expression);
		assert_true(code == HX_OK || (code == HX_TOO_LARGE && !expression));
		arena_release(&small);
	}
	assert_true(room > 1000 && room < 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(text_has_a_limit),
					   TEST(brackets_have_a_limit),
					   TEST(chains_have_none),
					   TEST(values_have_a_depth),
					   TEST(work_and_memory_have_limits),
					   TEST(a_long_input_spends_work),
					   TEST(members_to_sort_spend_more),
					   TEST(output_has_a_ceiling),
					   TEST(with_any_smaller_arena_there_is_an_error)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
