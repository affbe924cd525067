/* Definitions of kind function: what they may have, and what belongs to other kinds. */
#include "definition.h"

#include "model/definition.h"

static const struct run_definition *parse_function(const char *text)
{
	const struct run_definition *d = NULL;

	findings_init(&findings, &arena);
	function_definition_parse("f.json", slice_str(json_text(text)), &arena, &findings, &d);
	print_findings();
	assert_true((d != NULL) == (findings.errors == 0));
	return d;
}

#define FUNCTION(more) "{ 'workflow': 'f', 'kind': 'function'" more " }"

static void test_it_may_say_nothing(void **state)
{
	const struct run_definition *d = parse_function(FUNCTION(""));

	(void)state;
	assert_non_null(d);
	assert_true(d->is_function && d->is_defined && !d->compensates);
	assert_int_equal(d->timeout_ms + d->lease_ms + (int64_t)d->steps_n + (int64_t)d->attributes.n, 0);
	assert_string_equal(d->retry_json,
			    "{\"maxAttempts\":3,\"initialMs\":1000,\"factor\":2.000,\"maxMs\":300000,\"jitter\":true}");
}

static void test_all_that_it_may_say(void **state)
{
	const struct run_definition *d = parse_function(FUNCTION(
		", 'meta': { 'module': 'm' }, 'retry': { 'max_attempts': 5, 'initial': '2s', 'factor': 1.25, 'max': '1m', 'jitter': false },"
		" 'timeout': '2h', 'on_failure': 'compensate', 'lease': '30s', 'attributes': { 'customer': '.input.customer' }"));

	(void)state;
	assert_non_null(d);
	assert_string_equal(d->module, "m");
	assert_true(d->compensates);
	assert_int_equal(d->timeout_ms, 7200000);
	assert_int_equal(d->lease_ms, 30000);
	assert_int_equal(d->attributes.n, 1);
	assert_string_equal(d->retry_json,
			    "{\"maxAttempts\":5,\"initialMs\":2000,\"factor\":1.250,\"maxMs\":60000,\"jitter\":false}");
}

static void test_what_it_has_not(void **state)
{
	static const struct {
		const char *text, *said;
	} cases[] = {
		{FUNCTION(", 'steps': []"), "\"steps\" belongs to definitions of kind entity or run"},
		{FUNCTION(", 'actions': {}"), "\"actions\" belongs to definitions of kind entity or run or batch"},
		{FUNCTION(", 'timout': '1h'"), "did you mean \"timeout\"?"},
		{FUNCTION(", 'attributes': { 'x': '.state.x' }"), "attributes"},
		{FUNCTION(", 'attributes': { 'status': '.input.x' }"), "is a field or a word of searches already"},
		{FUNCTION(", 'on_failure': 'retry'"), "on_failure"},
		{FUNCTION(", 'timeout': 5"), "timeout"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_null(parse_function(cases[i].text));
		if (!strstr(printed.p, cases[i].said))
			fail_msg("%s\nis not in\n%s", cases[i].said, printed.p);
	}
}

static void test_it_is_a_definition_like_others(void **state)
{
	const struct definition *d = NULL;

	(void)state;
	definition_parse("f.json", slice_str(json_text(FUNCTION(""))), &arena, &findings, &d);
	assert_non_null(d);
	assert_string_equal(d->kind, "function");
	assert_non_null(d->function);
	assert_true(!d->run && !d->batch && !d->entity);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_it_may_say_nothing), TEST(test_all_that_it_may_say),
					   TEST(test_what_it_has_not), TEST(test_it_is_a_definition_like_others)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
