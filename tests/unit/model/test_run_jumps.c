/* Where a run goes from each of its steps, and what it can see there: in its definition. See test_run_definition.c. */
#include "unit/model/run_text.h"

#define APPROVAL(name) "{ 'name': '" name "', 'type': 'approval' },\n"
#define LAST(name) "{ 'name': '" name "', 'type': 'approval' }"
#define CONDITION(name, jumps) "{ 'name': '" name "', 'type': 'condition', 'when': 'true'" jumps " },\n"

static void jumps(void **state)
{
	const struct run_definition *d = clean(
		with_steps(CONDITION("c", ", 'then': 'end'") CONDITION("d", ", 'else': 'b'") APPROVAL("a") LAST("b")));

	(void)state;
	assert_int_equal(d->steps[0].then_position, 4);
	assert_int_equal(d->steps[0].else_position, 1);
	assert_int_equal(d->steps[1].then_position, 2);
	assert_int_equal(d->steps[1].else_position, 3);
	assert_run_errors(with_steps(APPROVAL("a") CONDITION("c", ", 'then': 'a'") LAST("b")), 1);
	assert_said("r.json:7: error: workflow w, step c: jump: then: \"a\" is not after this step", NULL);
	assert_run_errors(with_steps(APPROVAL("a") CONDITION("c", ", 'else': 'c'") LAST("b")), 1);
	assert_said("step c: jump: else: \"c\" is not after this step", NULL);
	assert_run_errors(with_steps(CONDITION("c", ", 'then': 'finish', 'else': 7") LAST("finnish")), 2);
	assert_said("step c: reference: then: there is no step \"finish\"; did you mean \"finnish\"?", NULL);
	assert_said("step c: type: else must be a string, not 7", NULL);
	assert_int_equal(findings.warnings, 0);
	/* A condition at the end leads to the end. */
	d = parsed(with_steps(APPROVAL("a") "{ 'name': 'c', 'type': 'condition', 'when': 'true' }"));
	assert_int_equal(d->steps[1].then_position, 2);
	assert_int_equal(findings.warnings, 1);
	assert_said("r.json:7: warning: workflow w, step c: jump: then and else lead to the same place", NULL);
}

static void what_nothing_reaches(void **state)
{
	(void)state;
	(void)parsed(with_steps(CONDITION("c", ", 'then': 'b', 'else': 'd'") APPROVAL("a") APPROVAL("b") LAST("d")));
	assert_int_equal(findings.warnings, 1);
	assert_said("r.json:7: warning: workflow w, step a: unreached: nothing reaches this step", NULL);
	/* After what is not reached: only by a jump from there. */
	(void)parsed(with_steps(CONDITION("c", ", 'then': 'e', 'else': 'f'") CONDITION("d", ", 'then': 'e'")
					APPROVAL("x") APPROVAL("e") LAST("f")));
	assert_int_equal(findings.warnings, 2);
	assert_said("step d: unreached", NULL);
	assert_said("step x: unreached", NULL);
	/* A jump that could not be read is one fault, not several. */
	assert_run_errors(
		with_steps(CONDITION("c", ", 'then': 'bee', 'else': 'd'") APPROVAL("a") APPROVAL("b") LAST("d")), 1);
	assert_int_equal(findings.warnings, 0);
	assert_run_errors(with_steps("{ 'name': 'c', 'type': 'kondition', 'when': 'true', 'then': 'end' },\n" CONDITION(
				  "d", ", 'then': 'end', 'else': 'b'") APPROVAL("a") LAST("b")),
			  1);
	assert_int_equal(findings.warnings, 0);
}

/* A task called `name` that saves as `saved`, in a line of its own, with an input. */
static const char *task(const char *name, const char *saved, const char *input)
{
	return text_printf(&arena,
			   "{ 'name': '%s', 'type': 'task', 'action': 'Keyed', 'save_as': '%s', 'input': '%s' }", name,
			   saved, input);
}

static void what_a_step_can_see(void **state)
{
	(void)state;
	clean(with_steps(text_printf(&arena, "%s,\n%s,\n%s", task("a", "x", ".input"), task("b", "x", ".state.x"),
				     task("c", "y", "[.state.x, .steps.a.n, .steps.b]"))));
	(void)parsed(with_steps(text_printf(&arena, "%s,\n%s", task("a", "x", ".state.x"), task("b", "y", ".input"))));
	assert_int_equal(findings.warnings, 1);
	assert_said(
		"r.json:6: warning: workflow w, step a: reference: input: column 1: step a, which saves x, is not done",
		NULL);
	(void)parsed(with_steps(text_printf(&arena, "%s,\n%s", task("a", "x", "{i: .steps.b.c, j: .steps.a}"),
					    task("b", "yes", "[.state.yess, .steps.bb]"))));
	assert_int_equal(findings.warnings, 4);
	assert_said("step a: reference: input: column 5: step b is not done by then", NULL);
	assert_said("step a: reference: input: column 20: step a is not done by then", NULL);
	assert_said("r.json:7:",
		    "step b: reference: input: column 2: no step has save_as \"yess\"; did you mean \"yes\"?", NULL);
	assert_said("step b: reference: input: column 15: there is no step \"bb\"; did you mean \"b\"?", NULL);
	/* Not done because it is jumped over: the saved value of b is always null, and so is b. */
	(void)parsed(
		with_steps(text_printf(&arena, CONDITION("c", ", 'then': 'd', 'else': 'end'") "%s,\n%s",
				       task("b", "x", ".input"), task("d", "y", "[.state.x, .steps.b, .steps.c]"))));
	assert_int_equal(findings.warnings, 3);
	assert_said("step b: unreached", NULL);
	assert_said("step d: reference: input: column 2: no step has save_as \"x\"", NULL);
	assert_said("step d: reference: input: column 12: step b is not done by then", NULL);
}

static void what_when_until_and_the_output_can_see(void **state)
{
	(void)state;
	(void)parsed("{ 'workflow': 'w', 'kind': 'run',\n'output': '[.state.gone, .state.e, .steps.s]',\n'steps': [\n"
		     "{ 'name': 'c', 'type': 'condition', 'when': '.steps.s', 'then': 'end' },\n"
		     "{ 'name': 'u', 'type': 'wait', 'until': '.state.e' },\n"
		     "{ 'name': 's', 'type': 'external_event', 'event': 'e', 'save_as': 'e' } ] }");
	assert_int_equal(findings.warnings, 3);
	assert_said("r.json:2: warning: workflow w: reference: output: column 2: no step has save_as \"gone\"", NULL);
	assert_said("r.json:4: warning: workflow w, step c: reference: when: column 1: step s is not done", NULL);
	assert_said("r.json:5: warning: workflow w, step u: reference: until: column 1: step s, which saves e,", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(jumps),
		model_test(what_nothing_reaches),
		model_test(what_a_step_can_see),
		model_test(what_when_until_and_the_output_can_see),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
