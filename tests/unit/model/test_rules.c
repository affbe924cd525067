/*
 * The eight rules, each with definitions that keep it and that break it, flat and per requester, for a named one and
 * for anyone else.
 */
#include "definition.h"

/* Step "close" from "approved" with these fields. The step begins in line 5, the fields in line 6. */
static const char *close_step(const char *fields)
{
	return billing(text_printf(&arena, "{ 'step_id': 2, 'step_key': 'close', 'status': 'approved',\n%s }", fields));
}

/* A finding of this rule with all that a message has to name. */
static void assert_rule(const char *rule, const char *requester, const char *line)
{
	assert_said(text_printf(&arena, "w.json:%s: error: workflow billing, step close, requester %s: %s: ", line,
				requester, rule),
		    NULL);
}

/* Refused once, by this rule alone. */
static void refused(const char *fields, const char *rule, const char *requester)
{
	assert_errors(close_step(fields), 1);
	assert_rule(rule, requester, "6");
}

static void a_claim_is_kept(void **state)
{
	const struct workflow *w;
	const struct step_view *view;

	(void)state;
	w = parse_clean(
		close_step("'claim_state': ['closing', 'approved'], 'successful_state': 'closed', 'action': 'Close'"));
	view = &w->steps[1].views[0];
	assert_int_equal(w->requesters_n, 0);
	assert_string_equal(view->claim_into, "closing");
	assert_string_equal(view->revert_to, "approved");
	assert_int_equal(view->claim_line, 6);
	assert_string_equal(workflow_revert_of(w, slice_str("closing")), "approved");
	assert_true(workflow_is_claim_status(w, slice_str("closing")));
	assert_false(workflow_is_claim_status(w, slice_str("approved")));
	assert_false(workflow_is_claim_status(w, slice_str("nowhere")));
}

static void a_claim_by_requester_is_kept(void **state)
{
	const struct workflow *w;

	(void)state;
	w = parse_clean(close_step(
		"'claim_state': {'admin': ['closing', 'approved']}, 'successful_state': {'admin': 'closed'}, "
		"'action': {'admin': 'Close'}"));
	assert_int_equal(w->requesters_n, 1);
	assert_string_equal(w->requesters[0], "admin");
	assert_string_equal(w->steps[1].views[0].claim_into, "closing");
	assert_null(w->steps[1].views[1].claim_into);
	assert_false(w->steps[1].views[1].allowed);
}

static void rule_1_two_non_empty_strings(void **state)
{
	static const char *const bad[] = {"'closing'",
					  "[]",
					  "['closing']",
					  "['closing', 'approved', 'closed']",
					  "7",
					  "true",
					  "['closing', 7]",
					  "[null, 'approved']",
					  "['', 'approved']",
					  "['closing', '']",
					  "[['closing'], 'approved']",
					  "false"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		refused(text_printf(&arena, "'claim_state': %s, 'successful_state': 'closed'", bad[i]), "rule 1",
			"anyone else");
		refused(text_printf(&arena, "'claim_state': {'admin': %s}, 'successful_state': 'closed'", bad[i]),
			"rule 1", "admin");
		refused(text_printf(&arena, "'claim_state': {'default': %s}, 'successful_state': {'admin': 'closed'}",
				    bad[i]),
			"rule 1", "admin, anyone else");
	}
	refused("'claim_state': {'admin': {'closing': 'approved'}}, 'successful_state': 'closed'", "rule 1", "admin");
}

static void rule_2_known_statuses(void **state)
{
	(void)state;
	refused("'claim_state': ['clsing', 'approved'], 'successful_state': 'closed'", "rule 2", "anyone else");
	assert_said("rule 2: claim_into \"clsing\" is not in status_types", NULL);
	refused("'claim_state': {'admin': ['closing', 'aproved']}, 'successful_state': {'admin': 'closed'}", "rule 2",
		"admin");
	assert_said("rule 2: revert_to \"aproved\" is not in status_types", NULL);
	assert_errors(close_step("'claim_state': ['a', 'b'], 'successful_state': 'closed'"), 2);
}

static void rule_3_they_differ(void **state)
{
	(void)state;
	refused("'claim_state': ['closing', 'closing'], 'successful_state': 'closed'", "rule 3", "anyone else");
	refused("'claim_state': {'admin': ['closing', 'closing'], 'default': null}, 'successful_state': 'closed'",
		"rule 3", "admin");
	refused("'claim_state': {'admin': null, 'default': ['closing', 'closing']}, 'successful_state': 'closed'",
		"rule 3", "anyone else");
}

static void rule_4_not_the_own_status(void **state)
{
	const char *alone =
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a', 'b', 'c'], 'initial_status': 'a',\n"
		"  'steps': [ { 'step_id': 1, 'step_key': 'go', 'status': 'b', 'claim_state': %s,\n"
		"               'successful_state': 'c' } ] }";

	(void)state;
	assert_errors(text_printf(&arena, alone, "['b', 'a']"), 1);
	assert_said("w.json:2: error: workflow w, step go, requester anyone else: rule 4: ", NULL);
	assert_errors(text_printf(&arena, alone, "{'admin': ['b', 'a']}"), 1);
	assert_said("w.json:2: error: workflow w, step go, requester admin: rule 4: ", NULL);
	assert_errors(text_printf(&arena, alone, "{'default': ['b', 'a'], 'admin': {}}"), 2);
	assert_said("requester anyone else: rule 4: ", NULL);
	assert_said("requester admin: rule 1: ", NULL);
}

/* Step "go" in line 2 with this status and claim; "b" and "c" are reached by somebody else. */
static const char *go_step(const char *status, const char *claim)
{
	return text_printf(&arena,
			   "{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a', 'b', 'c', 'd', 'e'], "
			   "'initial_status': 'a',\n"
			   "'steps': [ { 'step_id': 1, 'step_key': 'go', 'status': %s, 'claim_state': %s, "
			   "'successful_state': 'd' },\n"
			   "{ 'step_id': 2, 'step_key': 'b', 'status': 'a', 'successful_state': 'b' },\n"
			   "{ 'step_id': 3, 'step_key': 'c', 'status': 'a', 'successful_state': 'c' } ] }",
			   status, claim);
}

static const struct step *step_of(const struct workflow *w, const char *status, const char *requester)
{
	return workflow_step(w, slice_str("go"), slice_str(status), slice_str(requester));
}

/* A status for each requester: the step is there where it starts for him, and nowhere else. */
static void a_status_by_requester_is_kept(void **state)
{
	const struct workflow *w = parse_clean(go_step("{'admin': 'b', 'clerk': 'c'}", "{'admin': ['e', 'b']}"));
	const struct step *admins = step_of(w, "b", "admin"), *clerks = step_of(w, "c", "clerk");

	(void)state;
	assert_int_equal(w->steps_n, 4);
	assert_non_null(admins);
	assert_non_null(clerks);
	assert_true(workflow_view(w, admins, slice_str("admin"))->allowed);
	assert_string_equal(workflow_view(w, admins, slice_str("admin"))->claim_into, "e");
	assert_true(workflow_view(w, clerks, slice_str("clerk"))->allowed);
	assert_null(workflow_view(w, clerks, slice_str("clerk"))->claim_into);
	assert_null(step_of(w, "c", "admin")); /* it starts for him, but not from here */
	assert_null(step_of(w, "b", "clerk"));
	assert_non_null(step_of(w, "b", "guest")); /* it starts nowhere for him: he may not fire it */
	assert_false(workflow_view(w, step_of(w, "b", "guest"), slice_str("guest"))->allowed);
}

static void rules_4_and_8_for_each_status_of_a_map(void **state)
{
	(void)state;
	assert_errors(go_step("{'admin': 'b', 'default': 'c'}", "{'admin': ['b', 'a']}"), 2);
	assert_said("w.json:2: error: workflow w, step go, requester admin: rule 4: ", NULL);
	assert_said("requester admin: rule 8: ", "is a successful_state of step b", NULL);
	/* What one of them claims into, another one starts from. */
	assert_errors(go_step("{'admin': 'b', 'clerk': 'e'}", "{'admin': ['e', 'b']}"), 1);
	assert_said("w.json:2: error: workflow w, step go, requester admin: rule 8: ", "is the status of step go",
		    NULL);
	assert_errors(go_step("{'admin': 'b', 'clerk': 'nowhere'}", "{}"), 1);
	assert_said("requester clerk: reference: status \"nowhere\"", NULL);
	assert_errors(go_step("{'admin': 'b'}", "{'clerk': ['e', 'b']}"), 1);
	assert_said("requester clerk: claim: ", "no status", NULL);
	assert_errors(go_step("{}", "null"), 1);
}

/* (step_key, status) is unique for each requester. */
static void one_step_for_each_requester(void **state)
{
	static const char *const two =
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a', 'b', 'c'], 'initial_status': 'a', 'steps': [\n"
		"{ 'step_id': 1, 'step_key': 'go', 'status': {'admin': 'a'}, 'successful_state': 'b' },\n"
		"{ 'step_id': 2, 'step_key': 'go', 'status': {'%s': 'a'}, 'successful_state': 'c' } ] }";
	const struct workflow *w = parse_clean(text_printf(&arena, two, "clerk"));

	(void)state;
	assert_int_equal(step_of(w, "a", "admin")->step_id, 1);
	assert_int_equal(step_of(w, "a", "clerk")->step_id, 2);
	assert_errors(text_printf(&arena, two, "admin"), 1);
	assert_said("w.json:3: error: workflow w, step go, requester admin: duplicate: ", "the step in line 2", NULL);
	assert_errors(text_printf(&arena, two, "default"), 1); /* who is admin, too */
}

static void rule_5_not_the_successful_state(void **state)
{
	(void)state;
	refused("'claim_state': ['closed', 'approved'], 'successful_state': 'closed'", "rule 5", "anyone else");
	refused("'claim_state': {'admin': ['closed', 'approved']}, 'successful_state': {'admin': 'closed'}", "rule 5",
		"admin");
	assert_errors(
		close_step("'claim_state': ['closed', 'approved'], 'successful_state': {'b': 'closed', 'a': 'closed'}"),
		2);
	assert_rule("rule 5", "a, b", "6");
	assert_rule("rule 8", "anyone else", "6");
	/* The successful_state of one is the claim of another: that is rule 8. */
	refused("'claim_state': {'admin': ['closed', 'approved']}, 'successful_state': {'admin': 'draft', 'clerk': 'closed'}",
		"rule 8", "admin");
	assert_said("successful_state of step close", NULL);
}

static void rule_6_one_revert(void **state)
{
	(void)state;
	refused("'claim_state': {'admin': ['closing', 'approved'], 'clerk': ['closing', 'draft']}, 'successful_state': 'closed'",
		"rule 6", "clerk");
	assert_said("\"closing\" reverts to \"draft\" here and to \"approved\" in step close, requester admin, line 6",
		    NULL);
	refused("'claim_state': {'default': ['closing', 'draft'], 'clerk': ['closing', 'approved']}, "
		"'successful_state': 'closed'",
		"rule 6", "anyone else");
	parse_clean(close_step("'claim_state': {'admin': ['closing', 'approved'], 'clerk': ['closing', 'approved']}, "
			       "'successful_state': 'closed'"));
}

static void rule_6_over_steps(void **state)
{
	const char *two = "{ 'workflow': 'billing', 'kind': 'entity', 'initial_status': 'sent',\n"
			  "  'status_types': ['sent', 'overdue', 'paying', 'paying_overdue', 'paid'], 'steps': [\n"
			  "{ 'step_id': 1, 'step_key': 'late', 'status': 'sent', 'successful_state': 'overdue' },\n"
			  "{ 'step_id': 2, 'step_key': 'pay', 'status': 'sent', 'successful_state': 'paid',\n"
			  "  'claim_state': ['paying', 'sent'] },\n"
			  "{ 'step_id': 3, 'step_key': 'pay', 'status': 'overdue', 'successful_state': 'paid',\n"
			  "  'claim_state': ['%s', 'overdue'] } ] }";

	(void)state;
	parse_clean(text_printf(&arena, two, "paying_overdue"));
	assert_errors(text_printf(&arena, two, "paying"), 1);
	assert_said("w.json:7: error: workflow billing, step pay, requester anyone else: rule 6: ",
		    "to \"sent\" in step pay", "line 5", NULL);
	assert_int_equal(findings.warnings, 1);
}

static void rule_7_a_claimed_effect_needs_a_claim(void **state)
{
	(void)state;
	refused("'successful_state': 'closed', 'action': 'Close'", "rule 7", "anyone else");
	refused("'claim_state': {}, 'successful_state': 'closed', 'action': 'Close'", "rule 7", "anyone else");
	refused("'claim_state': {'admin': ['closing', 'approved']}, 'successful_state': 'closed', 'action': 'Close'",
		"rule 7", "anyone else");
	refused("'claim_state': {'admin': ['closing', 'approved']}, 'successful_state': {'admin': 'closed', 'cron': 'closed'}, "
		"'action': {'admin': 'Close', 'cron': 'Close'}",
		"rule 7", "cron");
	refused("'successful_state': {'default': 'closed', 'admin': 'draft'}, 'validation': 'Close'", "rule 7",
		"admin, anyone else");
}

static void rule_7_unless_it_is_null(void **state)
{
	(void)state;
	parse(close_step("'claim_state': null, 'successful_state': 'closed', 'action': 'Close'"));
	assert_int_equal(findings.errors, 0);
	parse_clean(close_step("'claim_state': {'admin': ['closing', 'approved'], 'cron': null}, "
			       "'successful_state': {'admin': 'closed', 'cron': 'closed'}, 'action': 'Close'"));
	parse_clean(close_step("'claim_state': {'admin': ['closing', 'approved'], 'default': null}, "
			       "'successful_state': 'closed', 'action': 'Close'"));
}

static void rule_7_only_for_those_who_may_fire(void **state)
{
	(void)state;
	/* Anyone else sees the action too, but has no successful_state. */
	parse_clean(close_step(
		"'claim_state': {'admin': ['closing', 'approved']}, 'successful_state': {'admin': 'closed'}, "
		"'action': 'Close'"));
	/* After-effects run after the commit, under the lease of their job. */
	parse(close_step("'successful_state': 'closed', 'success_after_effect': ['Close']"));
	assert_int_equal(findings.errors, 0);
	parse(close_step("'successful_state': 'closed', 'action': 'Mail'"));
	assert_int_equal(findings.errors, 0);
}

static void rule_8_not_where_it_begins(void **state)
{
	(void)state;
	assert_errors(close_step("'claim_state': ['draft', 'approved'], 'successful_state': 'closed'"), 2);
	assert_said("w.json:6: ",
		    "step close, requester anyone else: rule 8: claim_into \"draft\" is the initial_status", NULL);
	assert_said("w.json:6: ", "rule 8: claim_into \"draft\" is the status of step approve, line 4", NULL);
}

static void rule_8_not_a_status_or_a_target(void **state)
{
	const char *form =
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a', 'b', 'c', 'd', 'e'],\n"
		"  'initial_status': 'a', 'steps': [\n"
		"{ 'step_id': 1, 'step_key': 'one', 'status': 'a', 'successful_state': 'b' },\n"
		"{ 'step_id': 2, 'step_key': 'two', 'status': 'b', 'successful_state': {'x': 'c', 'y': 'd'} },\n"
		"{ 'step_id': 3, 'step_key': 'three', 'status': 'c', 'successful_state': 'd',\n"
		"  'claim_state': %s } ] }";

	(void)state;
	parse_clean(text_printf(&arena, form, "['e', 'c']"));
	assert_errors(text_printf(&arena, form, "['b', 'c']"), 2);
	assert_said(
		"w.json:6: error: workflow w, step three, requester x, y, anyone else: rule 8: claim_into \"b\" is the "
		"status of step two, line 4",
		NULL);
	assert_said("rule 8: claim_into \"b\" is a successful_state of step one, line 3", NULL);
	assert_errors(text_printf(&arena, form, "{'x': ['a', 'c']}"), 2);
	assert_said("requester x: rule 8: claim_into \"a\" is the initial_status", NULL);
	assert_said("requester x: rule 8: claim_into \"a\" is the status of step one", NULL);
	assert_errors(text_printf(&arena, form, "{'default': ['d', 'c']}"), 2);
	assert_said("requester x, y, anyone else: rule 5: ", NULL);
	assert_said("requester x, y, anyone else: rule 8: claim_into \"d\" is a successful_state of step two", NULL);
}

static void a_claim_for_who_may_not_fire(void **state)
{
	(void)state;
	refused("'claim_state': {'admin': ['closing', 'approved'], 'clerk': ['closing', 'approved']}, "
		"'successful_state': {'admin': 'closed'}",
		"claim", "clerk");
	/* Not written for them by name. */
	parse_clean(close_step("'claim_state': ['closing', 'approved'], 'successful_state': {'admin': 'closed'}"));
	parse_clean(close_step(
		"'claim_state': {'default': ['closing', 'approved']}, 'successful_state': {'admin': 'closed'}"));
	parse_clean(close_step("'claim_state': {'admin': ['closing', 'approved'], 'clerk': null}, "
			       "'successful_state': {'admin': 'closed'}"));
}

static void on_unknown_needs_what_it_uses(void **state)
{
	(void)state;
	refused("'claim_state': null, 'successful_state': 'closed', 'action': 'Close', 'on_unknown': 'revert'",
		"on_unknown", "anyone else");
	refused("'claim_state': {'admin': ['closing', 'approved'], 'cron': null}, 'on_unknown': 'revert', "
		"'successful_state': {'admin': 'closed', 'cron': 'closed'}, 'action': 'Close'",
		"on_unknown", "cron");
	refused("'claim_state': ['closing', 'approved'], 'successful_state': 'closed', 'action': 'Close', "
		"'on_unknown': 'probe'",
		"on_unknown", "anyone else");
	assert_said("action Close declares none", NULL);
	refused("'claim_state': ['closing', 'approved'], 'successful_state': 'closed', 'on_unknown': {'a': 'probe'}",
		"on_unknown", "a");
	parse_clean(
		close_step("'claim_state': ['closing', 'approved'], 'successful_state': 'closed', 'action': 'Close', "
			   "'on_unknown': 'hold'"));
	parse(close_step("'claim_state': null, 'successful_state': 'closed', 'action': 'Close', 'on_unknown': 'hold'"));
	assert_int_equal(findings.errors, 0);
}

static void all_findings_are_reported(void **state)
{
	(void)state;
	assert_errors(close_step("'claim_state': {'a': ['closing', 'closing'], 'b': ['x', 'approved'], 'c': 7, "
				 "'d': ['approved', 'draft']},\n"
				 "'successful_state': {'a': 'closing', 'b': 'nowhere', 'c': 'closed', 'd': 'closed'},\n"
				 "'acton': 'Close', 'action': 'Clsoe', 'entry_lock': '0s', 'lease': 5"),
		      11);
	assert_rule("rule 3", "a", "6");
	assert_rule("rule 5", "a", "6");
	assert_rule("rule 2", "b", "6");
	assert_rule("rule 1", "c", "6");
	assert_rule("rule 4", "d", "6");
	assert_rule("rule 8", "d", "6");
	assert_rule("reference", "b", "7");
	assert_said("w.json:8: error: workflow billing, step close: unknown field: \"acton\"; did you mean \"action\"?",
		    NULL);
	assert_said("w.json:8: error: workflow billing, step close: reference: ", "\"Clsoe\"; did you mean \"Close\"?",
		    NULL);
	assert_said("w.json:8: error: workflow billing, step close: duration: entry_lock: \"0s\"", NULL);
	assert_said("w.json:8: error: workflow billing, step close: type: lease must be a duration", NULL);
}

static void many_requesters_are_cut(void **state)
{
	(void)state;
	refused("'claim_state': 7, 'successful_state': {'a': 'closed', 'b': 'closed', 'c': 'closed', 'd': 'closed', "
		"'e': 'closed', 'f': 'closed', 'g': 'closed', 'h': 'closed', 'i': 'closed'}",
		"rule 1", "a, b, c, d, e, f, g, h and 2 more");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(a_claim_is_kept),
		model_test(a_claim_by_requester_is_kept),
		model_test(rule_1_two_non_empty_strings),
		model_test(rule_2_known_statuses),
		model_test(rule_3_they_differ),
		model_test(rule_4_not_the_own_status),
		model_test(a_status_by_requester_is_kept),
		model_test(rules_4_and_8_for_each_status_of_a_map),
		model_test(one_step_for_each_requester),
		model_test(rule_5_not_the_successful_state),
		model_test(rule_6_one_revert),
		model_test(rule_6_over_steps),
		model_test(rule_7_a_claimed_effect_needs_a_claim),
		model_test(rule_7_unless_it_is_null),
		model_test(rule_7_only_for_those_who_may_fire),
		model_test(rule_8_not_where_it_begins),
		model_test(rule_8_not_a_status_or_a_target),
		model_test(a_claim_for_who_may_not_fire),
		model_test(on_unknown_needs_what_it_uses),
		model_test(all_findings_are_reported),
		model_test(many_requesters_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
