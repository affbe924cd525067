/* Rules between workflows. */
#include "definition.h"

/* A workflow of this name on this table, whose step `go` claims as given, from s into d. */
static const struct workflow *on_table(const char *file, const char *name, const char *table, const char *claim)
{
	const struct workflow *w = parse_as(
		file,
		text_printf(
			&arena,
			"{ 'workflow': '%s', 'kind': 'entity', 'status_types': ['s', 't', 'u', 'd'], 'initial_status': 's',\n"
			"  %s 'steps': [\n"
			"{ 'step_id': 1, 'step_key': 'go', 'status': 's', 'successful_state': 'd',\n"
			"  'claim_state': %s } ] }",
			name, table, claim));

	assert_non_null(w);
	return w;
}

#define ON(table) "'meta': { 'table': '" table "' },"

static size_t errors_of(const struct workflow *a, const struct workflow *b, const struct workflow *c)
{
	const struct workflow *const list[] = {a, b, c};

	findings_init(&findings, &arena);
	workflows_check(list, c ? 3 : 2, &findings);
	print_findings();
	return findings.errors;
}

static void rule_6_on_one_table(void **state)
{
	const struct workflow *a = on_table("a.json", "a", ON("invoices"), "{'admin': ['t', 's']}"),
			      *b = on_table("b.json", "b", ON("Invoices"), "['t', 'u']"),
			      *c = on_table("c.json", "c", ON("others"), "['t', 'u']"),
			      *d = on_table("d.json", "d", ON("invoices"), "['t', 's']"),
			      *e = on_table("e.json", "e", "", "['t', 'u']");

	(void)state;
	assert_int_equal(errors_of(a, b, NULL), 1);
	assert_said(
		"a.json:4: error: workflow a, step go, requester admin: rule 6: claim_into \"t\" reverts to \"s\" here and "
		"to \"u\" in workflow b, step go (b.json:3), on the same table invoices",
		NULL);
	assert_int_equal(errors_of(b, a, NULL), 1);
	assert_said("b.json:4: error: workflow b, step go, requester anyone else: rule 6: ", NULL);
	assert_int_equal(errors_of(a, c, d), 0);
	assert_int_equal(errors_of(a, e, NULL), 0); /* what the engine keeps is kept per workflow */
	assert_int_equal(errors_of(e, on_table("f.json", "f", "", "['t', 's']"), NULL), 0);
}

static void rule_8_on_one_table(void **state)
{
	const struct workflow *claims_t = on_table("a.json", "a", ON("invoices"), "['t', 's']");
	const struct workflow *from_t = parse_as(
		"b.json", "{ 'workflow': 'b', 'kind': 'entity', 'meta': { 'table': 'invoices' },\n"
			  "'status_types': ['s', 't', 'd'], 'initial_status': 's', 'steps': [\n"
			  "{ 'step_id': 1, 'step_key': 'x', 'status': 't', 'successful_state': 'd' } ] }");
	const struct workflow *to_t = parse_as(
		"c.json", "{ 'workflow': 'c', 'kind': 'entity', 'meta': { 'table': 'invoices' },\n"
			  "'status_types': ['s', 't'], 'initial_status': 's', 'steps': [\n"
			  "{ 'step_id': 1, 'step_key': 'x', 'status': 's', 'successful_state': 't' } ] }");
	const struct workflow *at_t = parse_as("d.json",
					       "{ 'workflow': 'd', 'kind': 'entity', 'meta': { 'table': 'invoices' },\n"
					       "'status_types': ['t'], 'initial_status': 't', 'steps': [] }");

	(void)state;
	assert_int_equal(errors_of(claims_t, from_t, NULL), 1);
	assert_said(
		"a.json:4: error: workflow a, step go, requester anyone else: rule 8: claim_into \"t\" is a status of "
		"workflow b, step x (b.json:3), on the same table invoices",
		NULL);
	assert_int_equal(errors_of(to_t, claims_t, NULL), 1);
	assert_said("a.json:4: ", "rule 8: claim_into \"t\" is a successful_state of workflow c", NULL);
	assert_int_equal(errors_of(at_t, claims_t, NULL), 1);
	assert_said("a.json:4: ", "rule 8: claim_into \"t\" is the initial_status of workflow d", NULL);
	assert_int_equal(errors_of(to_t, from_t, at_t), 0); /* nobody claims */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(rule_6_on_one_table),
		model_test(rule_8_on_one_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
