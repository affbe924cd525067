/*
 * For tests of expressions: what they read, and what they give, break with, or are refused for.
 */
#ifndef HX_TESTS_UNIT_MODEL_EXPRESSED_H
#define HX_TESTS_UNIT_MODEL_EXPRESSED_H

#include "definition.h"

#include "model/expression.h"

static const char *const input_text =
	"{'sku': 'A-1', 'total': 1000.50, 'n': 3, 'odd name': 1, 'no': false, 'yes': true, 'nil': null,"
	" 'items': [10, {'q': 2}, 'é😀', [], null], 'big': 9007199254740993, 'deep': {'a': {'b': [[7]]}},"
	" 'esc': '\\u0041\\n', 's': 'b', 'neg': -0.50}";
static const char *const state_text = "{'reservation': {'id': 'r1'}, 'empty': {}, 'list': []}";
static const char *const steps_text = "{'reserve': {'status': 'COMPLETED', 'output': [1]}}";

static struct expression_env env;
static struct strbuf out;
static struct hx_error err;

static inline struct json checked(const char *text)
{
	struct json json;

	if (json_check(slice_str(text), &err, &json) != HX_OK)
		fail_msg("%s: %s", text, err.detail);
	return json;
}

static inline int set_up_env(void **state)
{
	(void)set_up(state);
	strbuf_init(&out, 16u << 20);
	env = (struct expression_env){.input = checked(json_text(input_text)),
				      .state = checked(json_text(state_text)),
				      .steps = checked(json_text(steps_text))};
	return 0;
}

static inline int tear_down_env(void **state)
{
	strbuf_release(&out);
	return tear_down(state);
}

static inline const struct expression *parsed(const char *text)
{
	const struct expression *expression = NULL;

	if (expression_parse(slice_str(text), &arena, &err, &expression) != HX_OK)
		fail_msg("%s: %s", text, err.detail);
	return expression;
}

static inline enum hx_code evaluate(const char *text)
{
	struct arena scratch;
	enum hx_code code;

	strbuf_reset(&out);
	arena_init(&scratch, 64u << 20);
	code = expression_eval(parsed(text), &env, &scratch, &err, &out);
	assert_int_equal(scratch.used_bytes, 0);
	arena_release(&scratch);
	return code;
}

/* Expressions and values are written with single quotes. */
static inline void gives(const char *text, const char *expected)
{
	char *expression = json_text(text);

	if (evaluate(expression) != HX_OK)
		fail_msg("%s: %s", expression, err.detail);
	assert_string_equal(out.p, json_text(expected));
	(void)checked(out.p);
}

static inline void breaks(const char *text, const char *detail)
{
	char *expression = json_text(text);

	assert_int_equal(evaluate(expression), HX_VALIDATION_ERROR);
	assert_int_equal(out.n, 0);
	assert_string_equal(err.detail, json_text(detail));
}

static inline void refused(const char *text, const char *begin)
{
	const struct expression *expression = NULL;
	char *quoted = json_text(text);

	if (expression_parse(slice_str(quoted), &arena, &err, &expression) != HX_VALIDATION_ERROR)
		fail_msg("%s is accepted", quoted);
	assert_null(expression);
	if (strncmp(err.detail, begin, strlen(begin)) != 0)
		fail_msg("%s: %s", quoted, err.detail);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_env, tear_down_env)

#endif
