/* Steps among each other: duplicates, and statuses that nothing reaches. */
#include "definition.h"

static const char *with_steps(const char *steps)
{
	return text_printf(&arena,
			   "{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a', 'b', 'c',\n 'd'],\n"
			   "  'initial_status': 'a', 'steps': [\n%s %s }",
			   steps, strstr(steps, "'actions'") ? "}" : "]");
}

static void a_step_id_is_unique(void **state)
{
	(void)state;
	assert_errors(with_steps("{ 'step_id': 7, 'step_key': 'x', 'status': 'a', 'successful_state': 'b' },\n"
				 "{ 'step_id': 8, 'step_key': 'y', 'status': 'a', 'successful_state': 'c' },\n"
				 "{ 'step_id': 7.0, 'step_key': 'z', 'status': 'a', 'successful_state': 'd' }"),
		      1);
	assert_said("w.json:6: error: workflow w, step z: duplicate: step_id 7 is also that of the step in line 4",
		    NULL);
	/* Two that have none are not two that have the same. */
	assert_errors(with_steps("{ 'step_key': 'x', 'status': 'a', 'successful_state': 'b' },\n"
				 "{ 'step_key': 'y', 'status': 'a', 'successful_state': 'c' }"),
		      2);
	assert_not_said("duplicate");
}

static void a_key_and_status_are_unique(void **state)
{
	(void)state;
	assert_errors(with_steps("{ 'step_id': 1, 'step_key': 'x', 'status': 'a', 'successful_state': 'b' },\n"
				 "{ 'step_id': 2, 'step_key': 'x', 'status': 'b', 'successful_state': 'c' },\n"
				 "{ 'step_id': 3, 'step_key': 'x', 'status': 'a', 'successful_state': 'd' },\n"
				 "{ 'step_id': 4, 'step_key': 'x', 'status': 'a', 'successful_state': 'd' }"),
		      2);
	assert_said(
		"w.json:6: error: workflow w, step x: duplicate: step_key \"x\" from status \"a\" is also that of the step in line 4",
		NULL);
	assert_said("w.json:7: ", "line 6", NULL);
	parse_clean(with_steps("{ 'step_id': 1, 'step_key': 'x', 'status': 'a', 'successful_state': 'b' },\n"
			       "{ 'step_id': 2, 'step_key': 'x', 'status': 'b', 'successful_state': 'c' },\n"
			       "{ 'step_id': 3, 'step_key': 'y', 'status': 'a', 'successful_state': 'd' }"));
}

static void warned(const char *steps, const char *status, const char *line)
{
	assert_non_null(parse(with_steps(steps)));
	assert_int_equal(findings.errors, 0);
	assert_int_equal(findings.warnings, 1);
	assert_said(text_printf(&arena, "w.json:%s: warning: workflow w: unreached: nothing reaches status \"%s\"",
				line, status),
		    NULL);
}

static void statuses_that_nothing_reaches_are_warnings(void **state)
{
	(void)state;
	warned("{ 'step_id': 1, 'step_key': 'x', 'status': 'a', 'successful_state': {'p': 'b', 'q': 'c'} }", "d", "2");
	/* Leaving it is not reaching it, nor is coming back to it. */
	warned("{ 'step_id': 1, 'step_key': 'x', 'status': 'a', 'successful_state': 'b' },\n"
	       "{ 'step_id': 2, 'step_key': 'x', 'status': 'd', 'successful_state': 'd', 'claim_state': ['c', 'd'] }",
	       "d", "2");
	/* Who may not fire a step reaches nothing by it. */
	warned("{ 'step_id': 1, 'step_key': 'x', 'status': 'a', 'successful_state': {'p': 'b', 'q': 'c', 'r': 'd'},\n"
	       "  'action': {'p': 'N', 'r': 'N'} } ],\n"
	       "  'actions': { 'N': { 'kind': 'noop' } ",
	       "c", "1");
}

static void claims_reach_too(void **state)
{
	(void)state;
	parse_clean(with_steps(
		"{ 'step_id': 1, 'step_key': 'x', 'status': 'a', 'successful_state': 'b', 'claim_state': ['c', 'd'] }"));
	/* Terminal statuses are no finding at all. */
	parse_clean("{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', 'steps': [] }");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(a_step_id_is_unique),
		model_test(a_key_and_status_are_unique),
		model_test(statuses_that_nothing_reaches_are_warnings),
		model_test(claims_reach_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
