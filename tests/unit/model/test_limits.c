/* `limits` of a definition, and the key that an input has under them. */
#include "unit/model/run_text.h"

#include "model/limits.h"

static const struct run_definition *with_limits(const char *limits)
{
	return parse_run(text_printf(&arena,
				     "{ 'workflow': 'w', 'kind': 'run', 'limits': %s, 'steps': [\n"
				     "{ 'name': 'a', 'type': 'wait', 'for': '1s' } ] }",
				     limits));
}

static void limits_refused(const char *limits, const char *words)
{
	assert_null(with_limits(limits));
	assert_int_equal(findings.errors, 1);
	if (!strstr(printed.p, words))
		fail_msg("%s\nis not said of\n%s\nbut\n%s", words, limits, printed.p);
}

static void what_they_have(void **state)
{
	const struct run_definition *d = with_limits("{ 'concurrency': { 'by': '.input.customer', 'max': 2 } }");

	(void)state;
	assert_non_null(d);
	assert_int_equal(d->limits.concurrency.max, 2);
	assert_non_null(d->limits.concurrency.by);
	d = with_limits("{ 'concurrency': { 'max': 10000 } }");
	assert_null(d->limits.concurrency.by);
	assert_int_equal(d->limits.concurrency.max, 10000);
	assert_false(d->limits.singleton.set);
	d = with_limits("{ 'singleton': {} }");
	assert_true(d->limits.singleton.set);
	assert_null(d->limits.singleton.by);
	assert_non_null(with_limits("{ 'singleton': { 'by': '.input.c' } }")->limits.singleton.by);
	d = with_limits("{ 'rate': { 'by': '.input.c', 'max': 10, 'per': '1s' } }");
	assert_int_equal(d->limits.rate.max, 10);
	assert_int_equal(d->limits.rate.per_ms, 1000);
	assert_int_equal(d->limits.concurrency.max, 0);
	d = with_limits("{ 'debounce': { 'by': '.input.c', 'for': '5s', 'at_most': '1m' } }");
	assert_int_equal(d->limits.debounce.for_ms, 5000);
	assert_int_equal(d->limits.debounce.at_most_ms, 60000);
	assert_int_equal(with_limits("{ 'debounce': { 'for': '5s' } }")->limits.debounce.at_most_ms, 0);
	assert_non_null(
		with_limits("{ 'debounce': { 'for': '5s', 'by': '.input.c' }, 'singleton': { 'by': '.input.c' } }"));
	assert_int_equal(clean(with_steps("{ 'name': 'a', 'type': 'wait', 'for': '1s' }"))->limits.concurrency.max, 0);
}

static void what_is_refused(void **state)
{
	(void)state;
	limits_refused("{ 'concurrency': { 'by': '.input.customer' } }", "max");
	limits_refused("{ 'concurrency': { 'max': 0 } }", "max");
	limits_refused("{ 'concurrency': { 'max': 10001 } }", "max");
	limits_refused("{ 'concurrency': { 'max': 1.5 } }", "max");
	limits_refused("{ 'concurrency': { 'max': 1, 'by': '.state.x' } }", "state");
	limits_refused("{ 'concurrency': { 'max': 1, 'key': '.input.x' } }", "key");
	limits_refused("{ 'concurency': { 'max': 1 } }", "did you mean \"concurrency\"");
	limits_refused("{ 'rate': { 'max': 1 } }", "per");
	limits_refused("{ 'rate': { 'per': '1s' } }", "max");
	limits_refused("{ 'rate': { 'max': 1, 'per': '0s' } }", "per");
	limits_refused("{ 'singleton': { 'by': '.state.x' } }", "state");
	limits_refused("{ 'singleton': { 'max': 1 } }", "max");
	limits_refused("{ 'singleton': true }", "singleton");
	limits_refused("{ 'debounce': { 'at_most': '1m' } }", "for");
	limits_refused("{ 'debounce': { 'for': '0s' } }", "for");
	limits_refused("{ 'debounce': { 'for': 5 } }", "for");
	limits_refused("{ 'debounce': { 'for': '1m', 'at_most': '5s' } }", "\"at_most\" is shorter than \"for\"");
	limits_refused("{ 'debounce': { 'for': '1m', 'by': '.steps.a' } }", "steps");
	limits_refused("{ 'debounce': { 'for': '1m', 'most': '5m' } }", "most");
	limits_refused("{ 'debounce': { 'for': '1s' }, 'singleton': { 'by': '.input.c' } }", "have the same \"by\"");
	limits_refused("[]", "limits");
}

/* ---- of actions ---- */

static const struct run_definition *of_action(const char *kind, const char *limits)
{
	return parse_run(
		text_printf(&arena,
			    "{ 'workflow': 'w', 'kind': 'run', 'actions': { 'x': { 'kind': %s, 'limits': %s },\n"
			    "'y': { 'kind': 'http', 'url': 'http://h/', 'probe': 'x' } }, 'steps': [\n"
			    "{ 'name': 'a', 'type': 'task', 'action': 'y' } ] }",
			    kind, limits));
}

#define HTTP "'http', 'url': 'http://h/'"

static void refused_of_action(const struct run_definition *d, const char *words)
{
	assert_null(d);
	if (!strstr(printed.p, words))
		fail_msg("%s\nis not said, but\n%s", words, printed.p);
}

static void of_actions(void **state)
{
	const struct run_definition *d = parsed(
		"{ 'workflow': 'w', 'kind': 'run', 'actions': { 'x': { 'kind': 'http', 'url': 'http://h/', 'limits': {\n"
		"'concurrency': { 'by': '.input.c', 'max': 2 }, 'rate': { 'max': 3, 'per': '1m' } } } }, 'steps': [\n"
		"{ 'name': 'a', 'type': 'task', 'action': 'x' } ] }");

	(void)state;
	assert_int_equal(d->actions[0].limits.concurrency.max, 2);
	assert_non_null(d->actions[0].limits.concurrency.by);
	assert_int_equal(d->actions[0].limits.rate.max, 3);
	assert_int_equal(d->actions[0].limits.rate.per_ms, 60000);
	assert_true(limits_are_set(&d->actions[0].limits));
}

static void refused_of_actions(void **state)
{
	(void)state;
	refused_of_action(of_action(HTTP, "{ 'singleton': {} }"), "\"singleton\" is about starts of runs");
	refused_of_action(of_action(HTTP, "{ 'debounce': { 'for': '1s' } }"), "\"debounce\" is about starts of runs");
	refused_of_action(of_action(HTTP, "{ 'rat': { 'max': 1, 'per': '1s' } }"), "did you mean \"rate\"");
	refused_of_action(of_action(HTTP, "{ 'concurrency': { 'max': 1 } }"),
			  "who asks what became of a call is not counted");
	refused_of_action(of_action("'noop'", "{}"), "\"limits\" does not belong to an action of kind noop");
}

/* ---- of entities ---- */

/* limits: of the action "x"; step: what its step says besides. */
static const struct workflow *of_entity(const char *limits, const char *step)
{
	return parse(text_printf(
		&arena,
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a', 'b', 'c'], 'initial_status': 'a',\n"
		"'actions': { 'x': { 'kind': 'http', 'url': 'http://h/', 'effect': 'keyed', 'limits': %s } },\n"
		"'steps': [{ 'step_id': 1, 'step_key': 's', 'status': 'a', 'successful_state': 'c'%s }] }",
		limits, step));
}

static void refused_of_entity(const char *limits, const char *step, const char *words)
{
	assert_null(of_entity(limits, step));
	if (!strstr(printed.p, words))
		fail_msg("%s\nis not said, but\n%s", words, printed.p);
}

#define SLOTS "{ 'concurrency': { 'max': 2 } }"
#define TIMES "{ 'rate': { 'max': 2, 'per': '1s' } }"
#define CLAIMS ", 'claim_state': ['b', 'a']"

static void of_entities(void **state)
{
	(void)state;
	assert_non_null(of_entity(SLOTS, CLAIMS ", 'action': 'x'"));
	assert_non_null(of_entity(SLOTS, CLAIMS ", 'action': 'x', 'on_unknown': 'retry'"));
	assert_non_null(of_entity(TIMES, CLAIMS ", 'action': 'x'"));
	assert_non_null(of_entity(TIMES, ", 'success_after_effect': ['x']"));
	refused_of_entity(SLOTS, ", 'action': 'x'", "x has limits, which are counted with a claim, and there is none");
	refused_of_entity(TIMES, ", 'claim_state': null, 'action': 'x'", "counted with a claim");
	refused_of_entity(TIMES, CLAIMS ", 'action': 'x', 'on_unknown': 'retry'", "which nobody counts");
	refused_of_entity(SLOTS, CLAIMS ", 'validation': 'x'", "a validation is not counted");
}

/* A part does the work of the run around it. */
static void parts_have_them(void **state)
{
	const struct run_definition *d = parsed(
		"{ 'workflow': 'w', 'kind': 'run', 'limits': { 'concurrency': { 'max': 3 } }, 'steps': [\n"
		"{ 'name': 'r', 'type': 'repeat', 'until': 'true', 'steps': [\n"
		"{ 'name': 'a', 'type': 'wait', 'for': '1s' } ] } ] }");

	(void)state;
	assert_int_equal(d->steps[0].parts[0].definition->limits.concurrency.max, 3);
}

static void assert_key(const char *by, const char *input, const char *key)
{
	const struct run_definition *d = with_limits(
		text_printf(&arena, "{ 'concurrency': { 'max': 1, 'by': '%s' } }", by));
	struct slice made = limit_key(d->limits.concurrency.by, json_trust(slice_str(input)), &arena);

	if (!slice_is(made, key))
		fail_msg("%s of %s is %.*s", by, input, SLICE_ARGS(made));
}

static void keys(void **state)
{
	(void)state;
	assert_key(".input.c", "{\"c\":\"c-1\"}", "\"c-1\"");
	assert_key(".input.c", "{}", "null");
	assert_key(".input.c", "{\"c\":1.0}", "1");
	assert_key(".input.c", "{\"c\":1e0}", "1");
	assert_key(".input.c.d", "{\"c\":\"a string has no members\"}", "null");
	assert_key("{c: .input.c}", "{\"c\":[1, 2]}", "{\"c\":[1,2]}");
	assert_true(slice_is(limit_key(/* by= */ NULL, json_trust(slice_str("{}")), &arena), "null"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(what_they_have), model_test(what_is_refused),
		model_test(of_actions),     model_test(refused_of_actions),
		model_test(of_entities),    model_test(parts_have_them),
		model_test(keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
