/* Steps and the views that requesters have of them. */
#include "definition.h"

/* A workflow with one step over statuses a, b, c and actions of each effect. The step's fields are in line 9. */
static const char *with_step(const char *fields)
{
	return text_printf(
		&arena,
		"{ 'workflow': 'w', 'kind': 'entity',\n"
		"  'status_types': ['a', 'b', 'c'], 'initial_status': 'a', 'actions': {\n"
		"'Claimed': { 'kind': 'http', 'url': 'http://h', 'probe': 'Ask' }, 'Ask': { 'kind': 'http', 'url': 'http://h' },\n"
		"'Keyed': { 'kind': 'http', 'url': 'http://h', 'effect': 'keyed' },\n"
		"'Safe': { 'kind': 'http', 'url': 'http://h', 'effect': 'idempotent' },\n"
		"'Sql': { 'kind': 'sql', 'statements': [ { 'name': 's', 'sql': 'SELECT 1' } ] },\n"
		"'Noop': { 'kind': 'noop' }, 'N2': { 'kind': 'noop' }, 'N3': { 'kind': 'noop' }, 'N4': { 'kind': 'noop' } },\n"
		"  'steps': [ { 'step_id': 1, 'step_key': 'go', 'status': 'a',\n%s } ] }",
		fields);
}

static const struct workflow *parsed(const char *fields)
{
	const struct workflow *w = parse(with_step(fields));

	if (!w)
		fail_msg("%s", printed.p);
	return w;
}

static const struct step_view *view(const struct workflow *w, const char *requester)
{
	return workflow_view(w, &w->steps[0], slice_str(requester));
}

static void refused(const char *fields, const char *said)
{
	assert_errors(with_step(fields), 1);
	assert_said("w.json:9: error: workflow w, step go", said, NULL);
}

static void flat_values_are_for_all(void **state)
{
	const struct workflow *w = parsed(
		"'successful_state': 'b', 'action': 'Claimed', 'validation': 'Safe', "
		"'claim_state': ['c', 'a'], 'success_after_effect': ['Noop', 'Keyed'], "
		"'entry_lock': '5s', 'lease': '20s', 'on_unknown': 'hold', 'on_5xx': 'unknown'");
	const struct step_view *v = view(w, "whoever");

	(void)state;
	assert_int_equal(w->requesters_n, 0);
	assert_true(v->allowed);
	assert_string_equal(v->successful_state, "b");
	assert_string_equal(v->claim_into, "c");
	assert_string_equal(v->revert_to, "a");
	assert_string_equal(v->action->name, "Claimed");
	assert_string_equal(v->validation->name, "Safe");
	assert_int_equal(v->after_effects_n, 2);
	assert_string_equal(v->after_effects[1]->name, "Keyed");
	assert_int_equal(v->entry_lock_ms, 5000);
	assert_int_equal(v->lease_ms, 20000);
	assert_int_equal(v->on_unknown, UNKNOWN_HOLD);
	assert_true(v->unknown_on_5xx);
}

static void short_leases(void **state)
{
	(void)state;
	(void)parsed("'successful_state': 'b', 'lease': {'cron': '999ms', 'default': '1s'}");
	assert_said("warning: workflow w, step go, requester cron: duration: ",
		    "lease is 999ms, shorter than a second: a busy machine loses it", NULL);
	(void)parsed("'successful_state': 'b', 'lease': '1s'");
	assert_not_said("shorter");
}

static void maps_by_requester(void **state)
{
	const struct workflow *w = parsed(
		"'successful_state': {'admin': 'b', 'default': 'c'}, 'action': {'admin': 'Noop', "
		"'cron': 'Keyed', 'default': 'N2'}, 'lease': {'cron': '1s'}, 'on_5xx': {'zoe': 'unknown'}");

	(void)state;
	assert_int_equal(w->requesters_n, 3);
	assert_string_equal(w->requesters[0], "admin");
	assert_string_equal(w->requesters[1], "cron");
	assert_string_equal(w->requesters[2], "zoe");
	assert_string_equal(view(w, "admin")->successful_state, "b");
	assert_string_equal(view(w, "admin")->action->name, "Noop");
	assert_int_equal(view(w, "admin")->lease_ms, 0);
	assert_string_equal(view(w, "cron")->successful_state, "c");
	assert_string_equal(view(w, "cron")->action->name, "Keyed");
	assert_int_equal(view(w, "cron")->lease_ms, 1000);
	assert_string_equal(view(w, "zoe")->action->name, "N2");
	assert_true(view(w, "zoe")->unknown_on_5xx);
	assert_ptr_equal(view(w, "default"), &w->steps[0].views[3]);
	assert_ptr_equal(view(w, "nobody"), &w->steps[0].views[3]);
	assert_ptr_equal(view(w, ""), &w->steps[0].views[3]);
	assert_false(view(w, "nobody")->unknown_on_5xx);
}

static void who_may_fire(void **state)
{
	const struct workflow *w = parsed(
		"'successful_state': {'admin': 'b', 'clerk': 'b'}, 'action': {'admin': 'Noop', 'x': 'Noop'}");

	(void)state;
	assert_true(view(w, "admin")->allowed);
	assert_false(view(w, "clerk")->allowed); /* others have an action, and clerk has none */
	assert_false(view(w, "x")->allowed);     /* no successful_state */
	assert_false(view(w, "anyone")->allowed);
	w = parsed("'successful_state': 'b', 'action': {'admin': 'Noop', 'default': 'N2'}");
	assert_true(view(w, "anyone")->allowed);
	w = parsed("'successful_state': 'b', 'action': {}");
	assert_true(view(w, "anyone")->allowed);
	assert_null(view(w, "anyone")->action);
	w = parsed("'successful_state': {}");
	assert_false(view(w, "anyone")->allowed);
}

static void no_claim(void **state)
{
	static const char *const none[] = {"", "'claim_state': {},", "'claim_state': null,",
					   "'claim_state': {'admin': null},", "'successful_claim_state': {},"};

	(void)state;
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
		assert_null(
			view(parsed(text_printf(&arena, "%s 'successful_state': 'b'", none[i])), "admin")->claim_into);
}

static void the_claim_has_two_names(void **state)
{
	const struct workflow *w = parsed("'successful_claim_state': {'admin': ['c', 'a']}, 'successful_state': 'b'");

	(void)state;
	assert_string_equal(view(w, "admin")->claim_into, "c");
	refused("'successful_claim_state': ['c', 'a'], 'claim_state': ['c', 'a'], 'successful_state': 'b'",
		"duplicate: claim_state and successful_claim_state are one field");
	refused("'successful_claim_state': {}, 'claim_state': null, 'successful_state': 'b'", "one field");
}

static void on_unknown_by_default(void **state)
{
	static const struct {
		const char *action;
		enum on_unknown unclaimed;
	} cases[] = {{"Keyed", UNKNOWN_RETRY},
		     {"Safe", UNKNOWN_RETRY},
		     {"Noop", UNKNOWN_RETRY},
		     {"Claimed", UNKNOWN_HOLD},
		     {"Sql", UNKNOWN_HOLD}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct workflow *w = parsed(text_printf(&arena,
							      "'successful_state': 'b', 'action': '%s', "
							      "'claim_state': {'admin': ['c', 'a'], 'default': null}",
							      cases[i].action));

		assert_int_equal(view(w, "admin")->on_unknown, UNKNOWN_REVERT);
		assert_int_equal(view(w, "anyone")->on_unknown, cases[i].unclaimed);
	}
	assert_int_equal(view(parsed("'successful_state': 'b'"), "x")->on_unknown, UNKNOWN_RETRY);
	assert_int_equal(
		view(parsed("'successful_state': 'b', 'validation': 'Claimed', 'claim_state': null"), "x")->on_unknown,
		UNKNOWN_HOLD);
}

static void on_unknown_as_written(void **state)
{
	const struct workflow *w = parsed("'successful_state': 'b', 'action': 'Claimed', 'claim_state': ['c', 'a'], "
					  "'on_unknown': {'a': 'revert', 'b': 'retry', 'c': 'probe', 'd': 'hold'}");

	(void)state;
	assert_int_equal(view(w, "a")->on_unknown, UNKNOWN_REVERT);
	assert_int_equal(view(w, "b")->on_unknown, UNKNOWN_RETRY);
	assert_int_equal(view(w, "c")->on_unknown, UNKNOWN_PROBE);
	assert_int_equal(view(w, "d")->on_unknown, UNKNOWN_HOLD);
	assert_int_equal(view(w, "e")->on_unknown, UNKNOWN_REVERT);
	refused("'successful_state': 'b', 'on_unknown': 'rever'",
		"on_unknown is \"rever\", which is not known; did you mean \"revert\"?");
	refused("'successful_state': 'b', 'on_unknown': true", "on_unknown must be a string, not true");
	refused("'successful_state': 'b', 'on_5xx': 'released'", "; there are \"failed\", \"unknown\"");
}

static void entries_are_blamed_once_by_name(void **state)
{
	(void)state;
	refused("'successful_state': {'a': 'b', 'b': 'b', 'c': 'b'}, 'lease': '0s'",
		"step go: duration: lease: \"0s\"");
	refused("'successful_state': {'a': 'b', 'b': 'b'}, 'lease': {'b': '-1s'}",
		"step go, requester b: duration: lease: \"-1s\"");
	refused("'successful_state': {'a': 'b', 'default': 'd'}",
		"step go, requester default: reference: successful_state \"d\"");
	refused("'successful_state': 'b', 'entry_lock': 5", "entry_lock must be a duration");
	refused("'successful_state': 'b', 'lease': '300000d'", "too long");
	refused("'successful_state': 'b', 'lease': null", "lease must be a duration");
	refused("'successful_state': 'b', 'action': null", "action must be a string, not null");
	refused("'successful_state': 'b', 'action': {'a': {'b': 'Noop'}}",
		"requester a: type: action must be a string, not an object");
	refused("'successful_state': null", "successful_state must be a string, not null");
	assert_errors(with_step("'action': 'Noop'"), 1);
	assert_said("w.json:8: error: workflow w, step go: missing field: \"successful_state\" is missing", NULL);
}

static void after_effects(void **state)
{
	(void)state;
	assert_int_equal(
		view(parsed("'successful_state': 'b', 'success_after_effect': ['Noop', 'N2', 'N3', 'N4']"), "x")
			->after_effects_n,
		STEP_AFTER_EFFECTS_MAX);
	assert_int_equal(view(parsed("'successful_state': 'b', 'success_after_effect': []"), "x")->after_effects_n, 0);
	refused("'successful_state': 'b', 'success_after_effect': ['Noop', 'N2', 'N3', 'N4', 'Keyed']",
		"has 5 entries; it must have 0 to 4");
	refused("'successful_state': 'b', 'success_after_effect': 'Noop'", "must be an array, not \"Noop\"");
	refused("'successful_state': 'b', 'success_after_effect': ['Nop']",
		"there is no action \"Nop\"; did you mean \"Noop\"?");
	refused("'successful_state': 'b', 'success_after_effect': ['Noop', 'Noop']", "names Noop twice");
	refused("'successful_state': 'b', 'success_after_effect': ['Sql']", "comes after the commit");
	refused("'successful_state': 'b', 'validation': 'Sql'", "comes before the action");
}

static void identity(void **state)
{
	const char *form =
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', 'steps': [\n"
		"{ %s 'successful_state': 'a' } ] }";

	(void)state;
	assert_errors(text_printf(&arena, form, ""), 3);
	assert_said("w.json:2: error: workflow w, step #1: missing field: \"step_id\" is missing", NULL);
	assert_said("step #1: missing field: \"step_key\" is missing", NULL);
	assert_said("step #1: missing field: \"status\" is missing", NULL);
	assert_errors(text_printf(&arena, form, "'step_id': 1.5, 'step_key': 'a b', 'status': 'x',"), 3);
	assert_said("step #1: value: step_id is 1.5", NULL);
	assert_said("step #1: name: step_key is \"a b\"", NULL);
	assert_said("step #1: reference: status \"x\" is not in status_types; there is \"a\"", NULL);
	assert_errors(text_printf(&arena, form, "'step_id': {'x': 1}, 'step_key': {'x': 'a'}, 'status': ['a'],"), 3);
	assert_errors(
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', 'steps': [\n7, [] ] }",
		2);
	assert_said("step #2: type: a step must be an object, not an array", NULL);
}

static void requesters_at_the_limit(void **state)
{
	struct strbuf map;

	(void)state;
	strbuf_init(&map, 10000);
	for (int i = 0; i < WORKFLOW_REQUESTERS_MAX; i++)
		strbuf_addf(&map, "'r%d': 'b', ", i);
	assert_int_equal(parsed(text_printf(&arena, "'successful_state': {%s 'default': 'b'}", map.p))->requesters_n,
			 WORKFLOW_REQUESTERS_MAX);
	refused(text_printf(&arena, "'successful_state': {%s 'one': 'b', 'more': 'b'}", map.p),
		"limit: requester \"one\" is one too many: the maps of a workflow name at most 64");
	strbuf_release(&map);
	refused("'successful_state': {'a|b': 'b'}", "name: requester \"a|b\"");
	refused("'successful_state': {'': 'b'}", "name: requester \"\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(flat_values_are_for_all),
		model_test(short_leases),
		model_test(maps_by_requester),
		model_test(who_may_fire),
		model_test(no_claim),
		model_test(the_claim_has_two_names),
		model_test(on_unknown_by_default),
		model_test(on_unknown_as_written),
		model_test(entries_are_blamed_once_by_name),
		model_test(after_effects),
		model_test(identity),
		model_test(requesters_at_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
