/* W3C trace context: what is well-formed, what is passed on, what a call makes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/trace.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define GOOD "00-" TRACE "-" SPAN "-01"

static struct arena arena;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 1u << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static struct slice of(const char *parent, const char *state)
{
	return trace_of(slice_str(parent), slice_str(state), &arena);
}

static void assert_slice(struct slice s, const char *text)
{
	if (!slice_is(s, text))
		fail_msg("\"%.*s\", not \"%s\"", SLICE_ARGS(s), text);
}

static void what_is_well_formed(void **state)
{
	static const struct {
		const char *text, *taken;
	} cases[] = {
		{GOOD, GOOD},
		{"00-" TRACE "-" SPAN "-00", "00-" TRACE "-" SPAN "-00"},
		{"00-" TRACE "-" SPAN "-03", "00-" TRACE "-" SPAN "-03"},
		{"00-" TRACE "-" SPAN "-ff", "00-" TRACE "-" SPAN "-03"},
		/* A version to come may say more; we say what we understand of it. */
		{"01-" TRACE "-" SPAN "-01", GOOD},
		{"cc-" TRACE "-" SPAN "-01-what-comes-then", GOOD},
		{"fe-" TRACE "-" SPAN "-01-", GOOD},
		{"cc-" TRACE "-" SPAN "-01.what", ""},
		{"cc-" TRACE "-" SPAN "-011", ""},
		{"ff-" TRACE "-" SPAN "-01", ""},
		{"00-" TRACE "-" SPAN "-01-", ""},
		{"00-" TRACE "-" SPAN "-01-more", ""},
		{"00-00000000000000000000000000000000-" SPAN "-01", ""},
		{"00-" TRACE "-0000000000000000-01", ""},
		{"00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01", ""},
		{"00-" TRACE "-00F067AA0BA902B7-01", ""},
		{"0X-" TRACE "-" SPAN "-01", ""},
		{"00-" TRACE "-" SPAN "-0g", ""},
		{"00_" TRACE "-" SPAN "-01", ""},
		{"00-" TRACE "_" SPAN "-01", ""},
		{"00-" TRACE "-" SPAN "_01", ""},
		{"00-" TRACE "-" SPAN "-0", ""},
		{" " GOOD, ""},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_slice(of(cases[i].text, NULL), cases[i].taken);
	assert_int_equal(trace_of(slice_of(NULL, 0), slice_of(NULL, 0), &arena).n, 0);
}

static void the_state_comes_along(void **state)
{
	char text[TRACE_STATE_BYTES_MAX + 2];
	struct slice trace = of(GOOD, "congo=t61rcWkgMzE,rojo=\"\\");

	(void)state;
	assert_slice(trace_parent(trace), GOOD);
	assert_slice(trace_state(trace), "congo=t61rcWkgMzE,rojo=\"\\");
	assert_int_equal(trace_state(of(GOOD, NULL)).n, 0);
	assert_int_equal(trace_state(of(GOOD, "")).n, 0);
	assert_int_equal(trace_state(of(GOOD, "a=\x7f")).n, 0);
	assert_int_equal(trace_state(of(GOOD, "a=\xc3\xa9")).n, 0);
	assert_int_equal(of("nothing", "congo=t61rcWkgMzE").n, 0);
	memset(text, 'x', sizeof text);
	text[TRACE_STATE_BYTES_MAX] = '\0';
	assert_int_equal(trace_state(of(GOOD, text)).n, TRACE_STATE_BYTES_MAX);
	text[TRACE_STATE_BYTES_MAX] = 'x';
	text[TRACE_STATE_BYTES_MAX + 1] = '\0';
	assert_slice(of(GOOD, text), GOOD);
}

static void a_call_is_a_span_of_its_own(void **state)
{
	static const struct {
		const char *key;
		int64_t fence, attempt;
	} calls[] = {{"k", 1, 1}, {"k", 1, 2}, {"k", 2, 1}, {"k2", 1, 1}, {"", 0, 1}};
	char seen[5][TRACE_PARENT_BYTES + 5];

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		memcpy(seen[i], GOOD " a=b", sizeof seen[i]);
		trace_continue(seen[i], strlen(seen[i]), slice_str(calls[i].key), calls[i].fence, calls[i].attempt);
		assert_memory_equal(seen[i], "00-" TRACE "-", 36);
		assert_string_equal(seen[i] + 52, "-01 a=b");
		assert_memory_not_equal(seen[i] + 36, SPAN, 16);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(seen[i], seen[k]);
		/* What it has become is well-formed again. */
		assert_slice(of(seen[i], NULL), "");
		seen[i][TRACE_PARENT_BYTES] = '\0';
		assert_slice(of(seen[i], NULL), seen[i]);
	}
	trace_continue(seen[0], 0, slice_str("k"), 1, 1); /* none stays none */
}

static void members_and_back(void **state)
{
	static const char *const states[] = {"", "congo=t61rcWkgMzE", "quoted=\"\\"};
	struct strbuf text;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct slice trace = of(GOOD, states[i]);

		strbuf_init(&text, 4096);
		strbuf_add_char(&text, '{');
		trace_add_members(trace, &text);
		strbuf_add_str(&text, "\"a\":1}");
		assert_true(slice_eq(trace_of_members(json_trust(strbuf_slice(&text)), &arena), trace));
		strbuf_release(&text);
	}
	strbuf_init(&text, 4096);
	trace_add_members(slice_of(NULL, 0), &text);
	assert_int_equal(text.n, 0);
	strbuf_release(&text);
	assert_int_equal(trace_of_members(json_trust(slice_str("{\"traceparent\":1}")), &arena).n, 0);
	assert_int_equal(trace_of_members(json_trust(slice_str("{}")), &arena).n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_well_formed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_state_comes_along, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_call_is_a_span_of_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(members_and_back, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
