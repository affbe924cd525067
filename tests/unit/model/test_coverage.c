/* Declared claims against the janitors that cover them. */
#include "definition.h"

static const char flow[] =
	"{ 'workflow': 'billing', 'kind': 'entity', 'meta': { 'module': 'money' }, 'initial_status': 'a',\n"
	"  'status_types': ['a', 'ca', 'b', 'cb', 'c'], 'steps': [\n"
	"{ 'step_id': 1, 'step_key': 'one', 'status': 'a', 'successful_state': 'b',\n"
	"  'claim_state': {'amy': ['ca', 'a'], 'bob': ['ca', 'a']} },\n"
	"{ 'step_id': 2, 'step_key': 'uno', 'status': 'a', 'successful_state': 'b', 'claim_state': ['ca', 'a'] },\n"
	"{ 'step_id': 3, 'step_key': 'two', 'status': 'b', 'successful_state': 'c', 'claim_state': {'default': ['cb', 'b']} } ] }";

static size_t uncovered(const char *definition, const char *configuration)
{
	const struct workflow *w = parse_clean(definition);
	struct config config;

	config_parse("c.json", slice_str(json_text(configuration)), &arena, &findings, &config);
	assert_int_equal(findings.errors, 0);
	coverage_check(&w, 1, &config, &findings);
	print_findings();
	return findings.errors;
}

static void each_claim_needs_a_janitor_of_its_module(void **state)
{
	(void)state;
	assert_int_equal(uncovered(flow, "{}"), 2);
	assert_said(
		"w.json:4: error: workflow billing, step one, requester amy, bob: coverage: no janitor covers the claim \"ca\": "
		"module money is not in the configuration",
		NULL);
	assert_said("w.json:6: error: workflow billing, step two, requester amy, bob, anyone else: coverage: ",
		    "\"cb\"", NULL);
	assert_int_equal(uncovered(flow, "{ 'modules': { 'billing': { 'janitor': {} } } }"), 2);
	assert_said("module money is not in the configuration; add \"modules\": {\"money\": {\"janitor\": {}}} to the",
		    NULL);
	assert_int_equal(uncovered(flow, "{ 'modules': { 'mony': { 'janitor': {} }, 'monet': {} } }"), 2);
	assert_said("module money is not in the configuration; did you mean \"mony\"?", NULL);
	assert_int_equal(uncovered(flow, "{ 'modules': { 'money': {} } }"), 2);
	assert_said("module money declares no janitor", NULL);
}

static void covered(void **state)
{
	(void)state;
	assert_int_equal(uncovered(flow, "{ 'modules': { 'money': { 'janitor': {} } } }"), 0);
	assert_int_equal(uncovered(flow, "{ 'modules': { 'money': { 'janitor': { 'external': true } } } }"), 0);
	assert_int_equal(
		uncovered(
			"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', 'steps': [\n"
			"{ 'step_id': 1, 'step_key': 'x', 'status': 'a', 'successful_state': 'a', 'claim_state': null } ] }",
			"{}"),
		0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(each_claim_needs_a_janitor_of_its_module),
		model_test(covered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
