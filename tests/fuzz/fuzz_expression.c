/*
 * Any line as an expression, and what follows it as the input of a run. Beside not crashing:
 *
 *   - a refusal names its column on one clean line;
 *   - a value is JSON that the scanner accepts, the same each time, and with any smaller ceiling the same or an error;
 *   - it means the same inside of other expressions: [E], {a: (E)} | .a, (E) // (E), (E) == (E), (E) | not;
 *   - of two elements of the input exactly one of <, == and > holds, the other way round the other one, and == is
 *     what the canonical form says.
 */
#include <stdint.h>

#include "base/hash.h"
#include "base/json_canonical.h"
#include "base/json_members.h"
#include "base/json_walk.h"
#include "base/utf8.h"
#include "model/expression.h"

#define AMPLE_BYTES (512u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct expression_env env;

static void assert_detail(enum hx_code code, const struct hx_error *err)
{
	struct slice text = slice_str(err->detail);

	ASSERT(code == HX_VALIDATION_ERROR || code == HX_TOO_LARGE);
	ASSERT(err->code == code && text.n > 0 && utf8_valid_bytes(text) == text.n);
	ASSERT(code == HX_TOO_LARGE || memcmp(err->detail, "column ", 7) == 0);
	for (size_t i = 0; i < text.n; i++)
		ASSERT((unsigned char)text.p[i] >= 0x20 && text.p[i] != 0x7f);
}

static enum hx_code parse(struct slice text, struct arena *a, const struct expression **ret)
{
	struct hx_error err = {0};
	enum hx_code code = expression_parse(text, a, &err, ret);

	ASSERT((code == HX_OK) == (*ret != NULL));
	if (code != HX_OK)
		assert_detail(code, &err);
	return code;
}

static enum hx_code evaluate(const struct expression *expression, size_t room, struct strbuf *ret_text)
{
	struct hx_error err = {0};
	struct arena scratch;
	struct json value;
	enum hx_code code;

	strbuf_reset(ret_text);
	arena_init(&scratch, room);
	code = expression_eval(expression, &env, &scratch, &err, ret_text);
	ASSERT(scratch.used_bytes == 0 && !scratch.failed);
	arena_release(&scratch);
	if (code != HX_OK)
		assert_detail(code, &err);
	if (code == HX_OK)
		ASSERT(json_check(strbuf_slice(ret_text), NULL, &value) == HX_OK && value.raw.n == ret_text->n);
	else
		ASSERT(ret_text->n == 0);
	return code;
}

/* The value of `format` with the text in its places. It may be too long or too deep for that: then there is none. */
static bool around(const char *format, struct slice text, struct strbuf *ret_text)
{
	const struct expression *expression = NULL;
	struct strbuf wrapped;
	struct arena a;
	bool is_there = false;

	arena_init(&a, AMPLE_BYTES);
	strbuf_init(&wrapped, 4 * EXPRESSION_BYTES_MAX);
	for (; *format; format++) {
		if (*format == 'E')
			strbuf_add_slice(&wrapped, text);
		else
			strbuf_add_char(&wrapped, *format);
	}
	if (parse(strbuf_slice(&wrapped), &a, &expression) == HX_OK) {
		enum hx_code code = evaluate(expression, AMPLE_BYTES, ret_text);

		ASSERT(code == HX_OK || code == HX_TOO_LARGE);
		is_there = code == HX_OK;
	}
	strbuf_release(&wrapped);
	arena_release(&a);
	return is_there;
}

static void try_inside_others(struct slice text, struct slice value, bool truth)
{
	struct strbuf other;

	strbuf_init(&other, AMPLE_BYTES);
	if (around("[E]", text, &other))
		ASSERT(other.n == value.n + 2 && memcmp(other.p + 1, value.p, value.n) == 0);
	if (around("{a: (E)} | .a", text, &other))
		ASSERT(slice_eq(strbuf_slice(&other), value));
	if (around("(E) // (E)", text, &other))
		ASSERT(slice_eq(strbuf_slice(&other), value));
	if (around("(E) == (E)", text, &other))
		ASSERT(slice_is(strbuf_slice(&other), "true"));
	if (around("(E) | not", text, &other))
		ASSERT(slice_is(strbuf_slice(&other), truth ? "false" : "true"));
	strbuf_release(&other);
}

static bool truth_of(struct slice value)
{
	return !slice_is(value, "null") && !slice_is(value, "false");
}

static void try_value(struct slice text, const struct expression *expression)
{
	size_t room = hash_bytes(5, text.p, text.n) % 2000;
	struct strbuf value, again;
	enum hx_code code;

	strbuf_init(&value, AMPLE_BYTES);
	strbuf_init(&again, AMPLE_BYTES);
	code = evaluate(expression, AMPLE_BYTES, &value);
	ASSERT(evaluate(expression, AMPLE_BYTES, &again) == code);
	ASSERT(slice_eq(strbuf_slice(&value), strbuf_slice(&again)));

	enum hx_code less = evaluate(expression, room, &again);

	ASSERT(less == HX_TOO_LARGE || (less == code && slice_eq(strbuf_slice(&value), strbuf_slice(&again))));
	if (code == HX_OK)
		try_inside_others(text, strbuf_slice(&value), truth_of(strbuf_slice(&value)));
	strbuf_release(&again);
	strbuf_release(&value);
}

static void try_expression(struct slice text)
{
	const struct expression *expression = NULL;
	struct hx_error err = {0};
	struct arena a;

	arena_init(&a, AMPLE_BYTES);
	if (parse(text, &a, &expression) == HX_OK) {
		enum hx_code code = expression_check_roots(expression, expression_run_roots, &err);

		if (code != HX_OK)
			assert_detail(code, &err);
		try_value(text, expression);
	}
	arena_release(&a);
	arena_init(&a, hash_bytes(3, text.p, text.n) % (200 * text.n + 100));
	expression = NULL;
	(void)parse(text, &a, &expression); /* an error, or the same */
	arena_release(&a);
}

static bool same_canonical(struct json a, struct json b)
{
	struct strbuf left, right;
	struct arena scratch;
	bool same;

	arena_init(&scratch, AMPLE_BYTES);
	strbuf_init(&left, AMPLE_BYTES);
	strbuf_init(&right, AMPLE_BYTES);
	ASSERT(json_canonical(a, &scratch, NULL, &left) == HX_OK && json_canonical(b, &scratch, NULL, &right) == HX_OK);
	same = slice_eq(strbuf_slice(&left), strbuf_slice(&right));
	strbuf_release(&right);
	strbuf_release(&left);
	arena_release(&scratch);
	return same;
}

static void try_order(struct json input, bool unique)
{
	static const char *const orders[][2] = {{"[true,false,false]", "[false,false,true]"},
						{"[false,true,false]", "[false,true,false]"},
						{"[false,false,true]", "[true,false,false]"}};
	struct json_iter it = json_iter_of(input);
	struct json a, b;
	struct strbuf one, other;

	if (json_type(input) != JSON_ARRAY || !json_iter_element(&it, &a) || !json_iter_element(&it, &b))
		return;
	strbuf_init(&one, 1000);
	strbuf_init(&other, 1000);
	if (around(".input | [.[0] < .[1], .[0] == .[1], .[0] > .[1]]", slice_str(""), &one) &&
	    around(".input | [.[1] < .[0], .[1] == .[0], .[1] > .[0]]", slice_str(""), &other)) {
		size_t i = 0;

		while (i < 3 && strcmp(one.p, orders[i][0]) != 0)
			i++;
		ASSERT(i < 3 && strcmp(other.p, orders[i][1]) == 0);
		if (unique)
			ASSERT((i == 1) == same_canonical(a, b));
	}
	strbuf_release(&other);
	strbuf_release(&one);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *line_end = size ? memchr(data, '\n', size) : NULL;
	size_t n = line_end ? (size_t)(line_end - (const char *)data) : size;
	struct slice rest = slice_of(data + n, size - n);
	struct json input;
	struct arena a;

	if (json_check(rest, NULL, &input) != HX_OK)
		input = json_trust(slice_str("{\"a\":[1,{\"b\":\"x\"}],\"n\":null}"));
	env = (struct expression_env){.input = input,
				      .state = json_trust(slice_str("{\"s\": [true, 1.50]}")),
				      .steps = json_trust(slice_str("{}"))};
	try_expression(slice_of(data, n));
	arena_init(&a, AMPLE_BYTES);
	try_order(input, json_check_unique(input, &a, NULL) == HX_OK);
	arena_release(&a);
	return 0;
}
