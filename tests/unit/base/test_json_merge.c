/* RFC 7396, by the examples of its appendix and by what it must not cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/json_merge.h"

static const struct {
	const char *target, *patch, *result;
} examples[] = {
	{"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
	{"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
	{"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
	{"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
	{"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
	{"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
	{"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
	{"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
	{"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
	{"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
	{"{\"a\":\"foo\"}", "null", "null"},
	{"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
	{"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
	{"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
	{"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
	/* Two spellings of one name; numbers as they are written. */
	{"{\"\\u0061\":1,\"n\":1.50}", "{\"a\":2}", "{\"a\":2,\"n\":1.50}"},
	{"{\"q\\\"\":1}", "{\"q\\\"\":{\"x\":1e400}}", "{\"q\\\"\":{\"x\":1e400}}"},
};

static struct arena arena;

static void the_examples_of_the_rfc(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
		struct strbuf out;
		struct hx_error err;

		arena_init(&arena, 1u << 20);
		strbuf_init(&out, 1000);
		assert_int_equal(json_merge_patch(slice_str(examples[i].target), slice_str(examples[i].patch), &arena,
						  &err, &out),
				 HX_OK);
		if (!slice_is(strbuf_slice(&out), examples[i].result))
			fail_msg("%s with %s: %.*s", examples[i].target, examples[i].patch,
				 SLICE_ARGS(strbuf_slice(&out)));
		strbuf_release(&out);
		arena_release(&arena);
	}
}

static void write_many(struct strbuf *text, char mark)
{
	strbuf_add_char(text, '{');
	for (int i = 0; i < 50000; i++)
		strbuf_addf(text, "%s\"%c%d\":%d", i ? "," : "", i % 2 ? 'x' : mark, i, i);
	strbuf_add_char(text, '}');
}

/* 50,000 members over 50,000: each name is looked up, not searched for, or this takes minutes. */
static void many_members(void **state)
{
	struct strbuf target, patch, out;
	struct hx_error err;

	(void)state;
	arena_init(&arena, 256u << 20);
	strbuf_init(&target, 2u << 20);
	strbuf_init(&patch, 2u << 20);
	strbuf_init(&out, 4u << 20);
	write_many(&target, 'a');
	write_many(&patch, 'b');
	assert_int_equal(json_merge_patch(strbuf_slice(&target), strbuf_slice(&patch), &arena, &err, &out), HX_OK);
	assert_false(out.failed);
	assert_true(out.n > target.n && out.n < target.n + patch.n);
	strbuf_release(&target);
	strbuf_release(&patch);
	strbuf_release(&out);
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_examples_of_the_rfc),
		cmocka_unit_test(many_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
