/* Definitions of kind run: what they must have, and what belongs to which type of step. The ways through the steps: test_run_jumps.c. */
#include "unit/model/run_text.h"

#include "base/clock.h"

static const char contract_example[] =
	"{ 'workflow': 'order', 'kind': 'run',\n"
	"  'actions': { 'reserve': { 'kind': 'worker', 'queue': 'stock', 'effect': 'keyed', 'max_in_flight': 8 },\n"
	"               'release_stock': { 'kind': 'worker', 'queue': 'stock', 'effect': 'keyed' } },\n"
	"  'steps': [ { 'name': 'reserve',  'type': 'task', 'action': 'reserve', 'input': '{sku: .input.sku}', "
	"'save_as': 'reservation',\n"
	"               'retry': { 'max_attempts': 5, 'initial': '1s', 'factor': 2, 'max': '5m', 'jitter': true }, "
	"'timeout': '30s',\n"
	"               'compensate': 'release_stock' },\n"
	"             { 'name': 'check',    'type': 'condition', 'when': '.input.total > 1000', 'then': 'approve', "
	"'else': 'paid' },\n"
	"             { 'name': 'approve',  'type': 'approval', 'timeout': '24h', 'on_timeout': 'fail' },\n"
	"             { 'name': 'paid',     'type': 'external_event', 'event': 'payment', 'timeout': '1h' },\n"
	"             { 'name': 'cooldown', 'type': 'wait', 'for': '10m' } ],\n"
	"  'output': '{reservation: .state.reservation}' }";

static void the_contracts_example(void **state)
{
	const struct run_definition *d = clean(contract_example);
	const struct run_step *s = d->steps;

	(void)state;
	assert_string_equal(d->name, "order");
	assert_string_equal(d->module, "order");
	assert_string_equal(d->file, "r.json");
	assert_true(slice_is(d->text, json_text(contract_example)));
	assert_int_equal(d->actions_n, 2);
	assert_int_equal(d->steps_n, 5);
	assert_int_equal(d->lease_ms, 0);
	assert_non_null(d->output);
	assert_string_equal(s[0].name, "reserve");
	assert_int_equal(s[0].type, RUN_TASK);
	assert_int_equal(s[0].line, 4);
	assert_string_equal(s[0].action->name, "reserve");
	assert_string_equal(s[0].action->workflow, "order");
	assert_string_equal(s[0].compensate->name, "release_stock");
	assert_non_null(s[0].input);
	assert_string_equal(s[0].save_as, "reservation");
	assert_int_equal(s[0].retry.max_attempts, 5);
	assert_int_equal(s[0].retry.initial_ms, 1000);
	assert_int_equal(s[0].retry.factor_thousandths, 2000);
	assert_int_equal(s[0].retry.max_ms, 300000);
	assert_true(s[0].retry.jitter);
	assert_int_equal(s[0].timeout_ms, 30000);
	assert_int_equal(s[0].on_unknown, UNKNOWN_RETRY);
	assert_int_equal(s[1].type, RUN_CONDITION);
	assert_non_null(s[1].when);
	assert_int_equal(s[1].then_position, 2);
	assert_int_equal(s[1].else_position, 3);
	assert_int_equal(s[2].type, RUN_APPROVAL);
	assert_int_equal(s[2].timeout_ms, 86400000);
	assert_false(s[2].goes_on_timed_out);
	assert_int_equal(s[3].type, RUN_EXTERNAL_EVENT);
	assert_string_equal(s[3].event, "payment");
	assert_int_equal(s[4].type, RUN_WAIT);
	assert_int_equal(s[4].for_ms, 600000);
	assert_int_equal(s[4].position, 4);
	for (size_t i = 0; i < d->steps_n; i++)
		assert_ptr_equal(run_definition_step(d, slice_str(s[i].name)), &s[i]);
	assert_null(run_definition_step(d, slice_str("")));
	assert_null(run_definition_step(d, slice_str("check2")));
}

/* As it stands in the contract, with an action that is only named. */
static void an_action_must_be_declared(void **state)
{
	(void)state;
	refused("'type': 'task', 'action': 'Keied'",
		"reference: action: there is no action \"Keied\"; did you mean \"Keyed\"?");
	refused("'type': 'task', 'action': 'Keyed', 'compensate': 'Undo'", "compensate: there is no action \"Undo\"");
	refused("'type': 'task', 'action': ['Keyed']", "action must be a string, not an array");
	assert_run_errors("{ 'workflow': 'w', 'kind': 'run', 'steps': [\n"
			  "{ 'name': 's', 'type': 'task', 'action': 'a' } ] }",
			  1);
	assert_said("r.json:2: error: workflow w, step s: reference: action: there is no action \"a\"", NULL);
	assert_run_errors("{ 'workflow': 'w', 'kind': 'run', 'actions': { 'a': { 'kind': 'htp' } }, 'steps': [\n"
			  "{ 'name': 's', 'type': 'task', 'action': 'a' } ] }",
			  1);
	assert_said("action a: kind is \"htp\", which is not known", NULL);
}

static void what_must_be_there(void **state)
{
	(void)state;
	assert_run_errors("{}", 3);
	assert_said("r.json:1: error: missing field: \"workflow\" is missing", NULL);
	assert_said("\"kind\" is missing", NULL);
	assert_said("\"steps\" is missing", NULL);
	assert_run_errors("{ 'workflow': 'w', 'kind': 'run', 'steps': [] }", 1);
	assert_said("limit: steps has 0 entries; it must have 1 to 1000", NULL);
	assert_run_errors("{ 'workflow': 'w', 'kind': 'run', 'steps': {} }", 1);
	assert_run_errors("[]", 1);
	assert_run_errors("", 1);
	assert_run_errors(with_steps("7, {}"), 3);
	assert_said("r.json:6: error: workflow w, step #1: type: a step must be an object, not 7", NULL);
	assert_said("step #2: missing field: \"name\" is missing", NULL);
	assert_said("step #2: missing field: \"type\" is missing", NULL);
	refused("'type': 'task'", "missing field: \"action\" is missing");
	refused("'type': 'wait'", "missing field: a wait needs \"for\" or \"until\"");
	refused("'type': 'external_event'", "missing field: \"event\" is missing");
	refused("'type': 'condition', 'then': 'end'", "missing field: \"when\" is missing");
	refused("'type': 'tsk', 'action': 'Keyed'", "type is \"tsk\", which is not known; did you mean \"task\"?");
}

static void other_kinds_are_not_runs(void **state)
{
	(void)state;
	assert_run_errors("{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'] }", 1);
	assert_said("kind: this is a definition of kind entity, not run", NULL);
	assert_run_errors("{ 'workflow': 'w',\n'kind': 'batch' }", 1);
	assert_said("r.json:2: error: workflow w: kind: this is a definition of kind batch, not run", NULL);
	assert_run_errors("{ 'workflow': 'w', 'kind': 'runs' }", 1);
	assert_said("did you mean \"run\"?", NULL);
}

static void unknown_fields(void **state)
{
	(void)state;
	assert_run_errors("{ 'workflow': 'w', 'kind': 'run', 'meta': { 'modul': 'm' },\n'outputs': '.input', "
			  "'steps': [ { 'name': 's', 'type': 'approval' } ] }",
			  2);
	assert_said("r.json:1: error: workflow w: unknown field: meta: \"modul\"; did you mean \"module\"?", NULL);
	assert_said("r.json:2: error: workflow w: unknown field: \"outputs\"; did you mean \"output\"?", NULL);
	refused("'type': 'task', 'action': 'Keyed', 'retries': {}", "\"retries\"; did you mean \"retry\"?");
	refused("'type': 'task', 'action': 'Keyed', 'retry': { 'attempts': 3 }",
		"retry: \"attempts\"; did you mean \"max_attempts\"?");
}

static void fields_of_other_kinds(void **state)
{
	static const char *const of_entity_steps[] = {"step_id",          "step_key",
						      "status",           "claim_state",
						      "validation",       "successful_claim_state",
						      "successful_state", "success_after_effect"};

	(void)state;
	assert_run_errors("{ 'workflow': 'w', 'kind': 'run', 'meta': { 'table': 't', 'columns': {} },\n"
			  "'status_types': ['a'],\n'initial_status': 'a',\n'item_action': 'a',\n"
			  "'steps': [ { 'name': 's', 'type': 'approval' } ] }",
			  5);
	assert_said(
		"r.json:2: error: workflow w: unknown field: \"status_types\" belongs to definitions of kind entity",
		NULL);
	assert_said("\"initial_status\" belongs to definitions of kind entity", NULL);
	assert_said("\"item_action\" belongs to definitions of kind batch", NULL);
	assert_said("meta: \"table\" belongs to definitions of kind entity", NULL);
	for (size_t i = 0; i < sizeof of_entity_steps / sizeof of_entity_steps[0]; i++)
		refused(text_printf(&arena, "'type': 'approval', '%s': 'a'", of_entity_steps[i]),
			text_printf(&arena, "\"%s\" belongs to definitions of kind entity", of_entity_steps[i]));
}

/* The table of run_definition.h, turned round: each field in each type of step. */
static void fields_belong_to_types(void **state)
{
	static const char *const types[] = {"'type': 'task', 'action': 'Keyed'", "'type': 'wait', 'until': '.input.at'",
					    "'type': 'external_event', 'event': 'e'", "'type': 'approval'",
					    "'type': 'condition', 'when': 'true', 'else': 'end'"};
	static const struct {
		const char *field, *value, *owners;
		const char *types; /* in the order of types[]: x where it belongs, = where it is there already */
	} cases[] = {
		{"action", "'Keyed'", "task", "=    "},
		{"compensate", "'Keyed'", "task", "x    "},
		{"input", "'.input'", "task", "x    "},
		{"retry", "{}", "task", "x    "},
		{"lease", "'5s'", "task", "x    "},
		{"on_unknown", "'hold'", "task", "x    "},
		{"on_5xx", "'unknown'", "task", "x    "},
		{"save_as", "'a'", "task, external_event, approval", "x xx "},
		{"timeout", "'5s'", "task, wait, external_event, approval", "xxxx "},
		{"for", "'5s'", "wait", " =   "},
		{"event", "'e'", "external_event", "  =  "},
		{"entry_lock", "'5s'", "approval", "   x "},
		{"when", "'true'", "condition", "    ="},
		{"then", "'end'", "condition", "    ="},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		for (size_t t = 0; t < 5; t++) {
			const char *fields = text_printf(&arena, "%s, '%s': %s", types[t], cases[i].field,
							 cases[i].value);

			if (cases[i].types[t] == 'x')
				(void)step(fields);
			else if (cases[i].types[t] == ' ')
				refused(fields,
					text_printf(&arena,
						    "unknown field: \"%s\" does not belong to a step of type %s, "
						    "only to %s",
						    cases[i].field, run_step_type_name((enum run_step_type)t),
						    cases[i].owners));
		}
	}
}

static void names_of_steps(void **state)
{
	(void)state;
	assert_run_errors(with_steps("{ 'name': 'a b', 'type': 'approval' }"), 1);
	assert_said("step #1: name: name is \"a b\"", NULL);
	assert_run_errors(with_steps("{ 'name': 'end', 'type': 'approval' }"), 1);
	assert_said("step end: name: no step can be called \"end\"", NULL);
	assert_run_errors(with_steps("{ 'name': 'a', 'type': 'approval' },\n{ 'name': 'b', 'type': 'approval' },\n"
				     "{ 'name': 'a', 'type': 'wait', 'for': '1s' },\n"
				     "{ 'name': 'a', 'type': 'approval' }"),
			  2);
	assert_said("r.json:8: error: workflow w, step a: duplicate: the step in line 6 is called \"a\" too", NULL);
	assert_said("r.json:9: error: workflow w, step a: duplicate: the step in line 8 is called \"a\" too", NULL);
}

/* Also where all of the text is one line, as machines write it. */
static void names_of_steps_in_all_lists(void **state)
{
#define A "{ 'name': 'a', 'type': 'approval' }"
#define B "{ 'name': 'b', 'type': 'approval' }"
#define BOTH(x, y) "{ 'name': 'p', 'type': 'parallel', 'branches': { 'x': [ " x " ], 'y': [ " y " ] } }"
	static const char *const twice[] = {
		A ", " BOTH(A, B),
		BOTH(A, B) ", " A,
		BOTH(A, A),
		BOTH("{ 'name': 'p', 'type': 'approval' }", B),
		A ", { 'name': 'r', 'type': 'repeat', 'until': 'true', 'steps': [ " A " ] }",
		"{ 'name': 'r', 'type': 'repeat', 'until': 'true', 'steps': [ " BOTH(A, B) ", " A " ] }",
	};

	(void)state;
	for (size_t i = 0; i < sizeof twice / sizeof *twice; i++) {
		assert_run_errors(with_steps(twice[i]), 1);
		assert_said("duplicate: the step in line 6 is called", NULL);
	}
	assert_run_errors(with_steps(BOTH(A, B) ",\n{ 'name': 'c', 'type': 'approval' },\n" A), 1);
	assert_said("r.json:8: error: workflow w, step a: duplicate: the step in line 6 is called \"a\" too", NULL);
	clean(with_steps(BOTH(A, B)));
	refused("'type': 'parallel', 'branches': { 'x': [ " A " ], 'y': [] }", "limit: steps has 0 entries");
#undef A
#undef B
#undef BOTH
}

static void tasks_by_default(void **state)
{
	const struct run_step *s = step("'type': 'task', 'action': 'Keyed'");

	(void)state;
	assert_null(s->input);
	assert_null(s->compensate);
	assert_null(s->save_as);
	assert_int_equal(s->timeout_ms, 0);
	assert_int_equal(s->lease_ms, 0);
	assert_int_equal(s->retry.max_attempts, 3);
	assert_int_equal(s->retry.initial_ms, 1000);
	assert_int_equal(s->retry.factor_thousandths, 2000);
	assert_int_equal(s->retry.max_ms, 300000);
	assert_true(s->retry.jitter);
	assert_false(s->goes_on_timed_out);
	assert_false(s->unknown_on_5xx);
	s = step("'type': 'task', 'action': 'Keyed', 'lease': '20s', 'on_5xx': 'unknown', 'timeout': '2s', "
		 "'on_timeout': 'continue'");
	assert_int_equal(s->lease_ms, 20000);
	assert_int_equal(s->timeout_ms, 2000);
	assert_true(s->unknown_on_5xx);
	assert_true(s->goes_on_timed_out);
}

static void short_leases(void **state)
{
	(void)state;
	warned("'type': 'task', 'action': 'Keyed', 'lease': '999ms'", "lease is 999ms, shorter than a second");
	(void)clean(with_step("'type': 'task', 'action': 'Keyed', 'lease': '1s'"));
	(void)parsed("{ 'workflow': 'w', 'kind': 'run', 'lease': '1ms', 'actions': { 'A': { 'kind': 'noop' } },\n"
		     "  'steps': [ { 'name': 'a', 'type': 'task', 'action': 'A' } ] }");
	assert_said(
		"r.json:1: warning: workflow w: duration: lease is 1ms, shorter than a second: a busy machine loses it",
		NULL);
}

static void the_top_level(void **state)
{
	const struct run_definition *d = clean(
		"{ 'workflow': 'w', 'kind': 'run', 'meta': { 'module': 'shop' }, 'lease': '90s',\n"
		"'steps': [ { 'name': 's', 'type': 'approval' } ] }");

	(void)state;
	assert_string_equal(d->module, "shop");
	assert_int_equal(d->lease_ms, 90000);
	assert_null(d->output);
	assert_int_equal(d->actions_n, 0);
	assert_run_errors("{ 'workflow': 'w w', 'kind': 'run', 'lease': '0s', 'output': '.imput',\n"
			  "'steps': [ { 'name': 's', 'type': 'approval' } ] }",
			  3);
	assert_said("duration: lease: \"0s\"", NULL);
	assert_said("expression: output: column 1: there is no .imput; did you mean .input?", NULL);
}

/* They are of the whole, and not of its parts. */
static void failures(void **state)
{
	const struct run_definition *d = clean(
		"{ 'workflow': 'w', 'kind': 'run', 'timeout': '90s', 'on_failure': 'compensate', 'failure_after_effect': ['N'],\n"
		"'actions': { 'N': { 'kind': 'noop' } },\n"
		"'steps': [ { 'name': 's', 'type': 'repeat', 'until': '.input.x', 'steps': [ { 'name': 't', 'type': 'approval' } ] } ] }");
	const struct run_definition *part = d->steps[0].parts[0].definition;

	(void)state;
	assert_true(d->compensates && !part->compensates);
	assert_int_equal(d->timeout_ms, 90000);
	assert_int_equal(part->timeout_ms, 0);
	assert_int_equal(d->failure_effects_n, 1);
	assert_int_equal(part->failure_effects_n, 0);
	assert_run_errors(
		"{ 'workflow': 'w', 'kind': 'run', 'on_failure': 'compensates', 'timeout': 5, 'failure_after_effect': ['S', 'M'],\n"
		"'actions': { 'S': { 'kind': 'sql', 'statements': [ { 'name': 's', 'sql': 'SELECT 1' } ] } },\n"
		"'steps': [ { 'name': 's', 'type': 'approval' } ] }",
		4);
	assert_said("did you mean \"compensate\"?", NULL);
	assert_said("failure_after_effect: S is of kind sql", NULL);
}

static void retries(void **state)
{
	const struct run_retry
		*r = &step("'type': 'task', 'action': 'Keyed', 'retry': { 'max_attempts': 1000, 'initial': '250ms', "
			   "'factor': 1.125, 'max': '250ms', 'jitter': false }")
			      ->retry;
	static const struct {
		const char *written;
		int64_t thousandths;
	} good[] = {{"1", 1000},      {"1.0", 1000},     {"15e-1", 1500},    {"1.0010", 1001},
		    {"1e3", 1000000}, {"1000", 1000000}, {"2.000000", 2000}, {"0.01e2", 1000}};
	static const char *const bad[] = {"0",
					  "0.999",
					  "-2",
					  "1.0001",
					  "1000.001",
					  "1001",
					  "1e999999999999999999999",
					  "1e-999999999999999999999",
					  "'2'",
					  "null",
					  "[2]"};

	(void)state;
	assert_int_equal(r->max_attempts, 1000);
	assert_int_equal(r->initial_ms, 250);
	assert_int_equal(r->max_ms, 250);
	assert_int_equal(r->factor_thousandths, 1125);
	assert_false(r->jitter);
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_int_equal(
			step(text_printf(&arena, "'type': 'task', 'action': 'Keyed', 'retry': { 'factor': %s }",
					 good[i].written))
				->retry.factor_thousandths,
			good[i].thousandths);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		refused(text_printf(&arena, "'type': 'task', 'action': 'Keyed', 'retry': { 'factor': %s }", bad[i]),
			"value: retry: factor is");
}

static void retries_have_bounds(void **state)
{
#define RETRY(fields) "'type': 'task', 'action': 'Keyed', 'retry': " fields
	(void)state;
	refused(RETRY("{ 'max_attempts': 0 }"), "retry: max_attempts is 0; it must be a whole number from 1 to 1000");
	refused(RETRY("{ 'max_attempts': 1001 }"), "from 1 to 1000");
	refused(RETRY("{ 'initial': '0s' }"), "duration: retry: initial: \"0s\"");
	refused(RETRY("{ 'initial': '10m' }"),
		"value: retry: initial is 10m, which is more than max, 5m where it is not written");
	refused(RETRY("{ 'initial': '2s', 'max': '1s' }"), "initial is 2s, which is more than max, 1s");
	refused(RETRY("{ 'max': '500ms' }"), "initial is 1s, which is more than max, 500ms");
	refused(RETRY("{ 'initial': '10m', 'max': 7 }"), "max must be a duration");
	refused(RETRY("{ 'jitter': 1 }"), "jitter must be true or false");
	refused(RETRY("3"), "retry must be an object, not 3");
#undef RETRY
}

static void unknown_outcomes(void **state)
{
	static const struct {
		const char *action;
		enum on_unknown by_default;
	} cases[] = {{"Keyed", UNKNOWN_RETRY},
		     {"Safe", UNKNOWN_RETRY},
		     {"Noop", UNKNOWN_RETRY},
		     {"Claimed", UNKNOWN_HOLD},
		     {"Sql", UNKNOWN_HOLD}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(
			step(text_printf(&arena, "'type': 'task', 'action': '%s'", cases[i].action))->on_unknown,
			cases[i].by_default);
	assert_int_equal(step("'type': 'task', 'action': 'Claimed', 'on_unknown': 'retry'")->on_unknown, UNKNOWN_RETRY);
	assert_int_equal(step("'type': 'task', 'action': 'Claimed', 'on_unknown': 'probe'")->on_unknown, UNKNOWN_PROBE);
	assert_int_equal(step("'type': 'task', 'action': 'Keyed', 'on_unknown': 'hold'")->on_unknown, UNKNOWN_HOLD);
	refused("'type': 'task', 'action': 'Keyed', 'on_unknown': 'probe'",
		"on_unknown: probe needs a probe, and action Keyed declares none");
	refused("'type': 'task', 'action': 'Sql', 'on_unknown': 'probe'", "action Sql declares none");
	refused("'type': 'task', 'action': 'Claimed', 'on_unknown': 'revert'",
		"revert is for the claims of entities; a step of a run has retry, probe or hold");
	refused("'type': 'task', 'action': 'Claimed', 'on_unknown': 'holt'", "did you mean \"hold\"?");
	refused("'type': 'task', 'action': 'Claimed', 'on_5xx': 'fail'", "did you mean \"failed\"?");
}

static void timeouts(void **state)
{
	(void)state;
	refused("'type': 'task', 'action': 'Keyed', 'timeout': '-1s'", "duration: timeout: \"-1s\"");
	refused("'type': 'approval', 'timeout': '1h', 'on_timeout': 'skip'",
		"on_timeout is \"skip\", which is not known; there are \"fail\", \"continue\"");
	refused("'type': 'approval', 'on_timeout': 'continue'", "on_timeout: it needs a timeout");
	refused("'type': 'external_event', 'event': 'e', 'on_timeout': 'fail'", "on_timeout: it needs a timeout");
	refused("'type': 'wait', 'for': '1s', 'timeout': '1s'", "timeout: \"for\" says already how long it waits");
	assert_true(step("'type': 'wait', 'until': '.input.at', 'timeout': '7d', 'on_timeout': 'continue'")
			    ->goes_on_timed_out);
	(void)step("'type': 'task', 'action': 'Keyed', 'on_timeout': 'fail'");
	warned("'type': 'task', 'action': 'Claimed', 'on_timeout': 'continue'", "on_timeout: it never applies");
	(void)step("'type': 'task', 'action': 'Claimed', 'on_timeout': 'continue', 'on_unknown': 'probe'");
	warned("'type': 'task', 'action': 'Noop', 'timeout': '1s'",
	       "action Noop is of kind noop, which has no timeout");
	assert_int_equal(step("'type': 'task', 'action': 'Sql', 'timeout': '1s'")->timeout_ms, 1000);
}

static void events_and_approvals(void **state)
{
	(void)state;
	assert_string_equal(step("'type': 'external_event', 'event': 'payment', 'save_as': 'p'")->save_as, "p");
	assert_int_equal(step("'type': 'approval', 'entry_lock': '5s'")->entry_lock_ms, 5000);
	assert_int_equal(step("'type': 'approval'")->timeout_ms, 0);
	refused("'type': 'external_event', 'event': 'a/b'", "name: event is \"a/b\"");
	refused("'type': 'approval', 'save_as': 'a b'", "name: save_as is \"a b\"");
	refused("'type': 'approval', 'entry_lock': 5", "entry_lock must be a duration");
}

static struct slice value_of(const struct expression *e)
{
	struct expression_env env = {.input = json_trust(slice_str("{\"at\":1}")),
				     .state = json_trust(slice_str("{}")),
				     .steps = json_trust(slice_str("{}"))};
	struct hx_error err;

	strbuf_reset(&printed);
	assert_int_equal(expression_eval(e, &env, &arena, &err, &printed), HX_OK);
	return strbuf_slice(&printed);
}

static void waits(void **state)
{
	const struct run_step *s = step("'type': 'wait', 'until': '2026-11-15T05:39:00.000Z'");

	(void)state;
	assert_int_equal(s->for_ms, 0);
	assert_true(slice_is(value_of(s->until), "\"2026-11-15T05:39:00.000Z\""));
	s = step("'type': 'wait', 'until': '.input.at // \\'2026-11-15T05:39:00Z\\''");
	assert_true(slice_is(value_of(s->until), "1"));
	s = step("'type': 'wait', 'for': '7d'");
	assert_int_equal(s->for_ms, 604800000);
	assert_null(s->until);
	refused("'type': 'wait', 'for': '1s', 'until': '.input.at'", "a wait has \"for\" or \"until\", not both");
	refused("'type': 'wait', 'for': '0ms'", "duration: for: \"0ms\"");
	refused("'type': 'wait', 'for': '.input.for'", "duration: for: \".input.for\"");
	refused("'type': 'wait', 'until': '2026-02-30T00:00:00Z'", "time: until: \"2026-02-30T00:00:00Z\"");
	refused("'type': 'wait', 'until': '2026-11-15'", "time: until: \"2026-11-15\" is not a time like");
	refused("'type': 'wait', 'until': 'tomorrow'", "expression: until: column 1: there is no \"tomorrow\"");
	refused("'type': 'wait', 'until': 5", "until must be a string, not 5");
}

static void expressions(void **state)
{
	(void)state;
	refused("'type': 'condition', 'when': '.input.total > ', 'else': 'end'",
		"expression: when: column 16: it ends too early");
	refused("'type': 'condition', 'when': '.inptu.total', 'else': 'end'",
		"expression: when: column 1: there is no .inptu; did you mean .input?");
	refused("'type': 'condition', 'when': true, 'else': 'end'", "when must be a string, not true");
	refused("'type': 'task', 'action': 'Keyed', 'input': '{a: .b}'", "input: column 5: there is no .b");
	refused("'type': 'task', 'action': 'Keyed', 'input': {}", "input must be a string, not an object");
	refused("'type': 'task', 'action': 'Keyed', 'input': ''", "input: column 1: it ends too early");
}

/* So many steps, each of which looks at one that is not there. */
static const char *many_steps(int n)
{
	struct strbuf text;

	strbuf_init(&text, 1u << 20);
	for (int i = 0; i < n; i++)
		strbuf_addf(&text, "%s{ 'name': 'n%d', 'type': 'wait', 'until': '.state.x%d' }", i ? ",\n" : "", i, i);

	const char *copy = with_steps(text.p);

	strbuf_release(&text);
	return copy;
}

static void steps_at_the_limit(void **state)
{
	const struct run_definition *d = parsed(many_steps(WORKFLOW_STEPS_MAX));

	(void)state;
	assert_int_equal(findings.warnings, WORKFLOW_STEPS_MAX);
	for (size_t i = 0; i < d->steps_n; i++)
		assert_ptr_equal(run_definition_step(d, slice_str(d->steps[i].name)), &d->steps[i]);
	assert_run_errors(many_steps(WORKFLOW_STEPS_MAX + 1), 1);
	assert_said("limit: steps has 1001 entries; at most 1000", NULL);
}

/* With any smaller ceiling there is an error and no definition, never half of one. */
static void too_little_memory(void **state)
{
	char *text = json_text(contract_example);
	size_t most = 64 * strlen(text);
	size_t refusals = 0;

	(void)state;
	for (size_t room = 0; room < most; room += 97) {
		const struct run_definition *d = NULL;
		struct findings found;
		struct arena small;

		arena_init(&small, room);
		findings_init(&found, &small);
		run_definition_parse("r.json", slice_str(text), &small, &found, &d);
		assert_true((d != NULL) == (found.errors == 0));
		refusals += d == NULL;
		if (d)
			assert_int_equal(d->steps_n, 5);
		arena_release(&small);
	}
	assert_in_range(refusals, 1, most / 97 - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(the_contracts_example),
		model_test(an_action_must_be_declared),
		model_test(what_must_be_there),
		model_test(other_kinds_are_not_runs),
		model_test(unknown_fields),
		model_test(fields_of_other_kinds),
		model_test(fields_belong_to_types),
		model_test(names_of_steps),
		model_test(names_of_steps_in_all_lists),
		model_test(tasks_by_default),
		model_test(short_leases),
		model_test(the_top_level),
		model_test(failures),
		model_test(retries),
		model_test(retries_have_bounds),
		model_test(unknown_outcomes),
		model_test(timeouts),
		model_test(events_and_approvals),
		model_test(waits),
		model_test(expressions),
		model_test(steps_at_the_limit),
		model_test(too_little_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
