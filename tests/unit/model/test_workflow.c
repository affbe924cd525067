/* A whole definition: what it must have, its limits, and text that is none. */
#include "definition.h"

#include <time.h>

#ifdef HX_DEBUG
#define HAS_SANITIZER 1
#else
#define HAS_SANITIZER 0
#endif

static const char contract_example[] =
	"{ 'workflow': 'billing', 'kind': 'entity', 'meta': { 'module': 'billing' },\n"
	"  'status_types': ['draft', 'approved', 'closing', 'closed'], 'initial_status': 'draft',\n"
	"  'actions': { 'CloseBilling': { 'kind': 'http', 'url': 'http://127.0.0.1:9000/close', 'effect': 'claimed', 'timeout': '30s' },\n"
	"               'MailInvoices': { 'kind': 'http', 'url': 'http://127.0.0.1:9000/mail',  'effect': 'keyed' } },\n"
	"  'steps': [ { 'step_id': 10, 'step_key': 'approve', 'status': 'draft', 'successful_state': 'approved' },\n"
	"             { 'step_id': 20, 'step_key': 'close', 'status': 'approved',\n"
	"               'claim_state': { 'admin': ['closing', 'approved'] },\n"
	"               'successful_state': { 'admin': 'closed' },\n"
	"               'action': { 'admin': 'CloseBilling' },\n"
	"               'success_after_effect': { 'admin': ['MailInvoices'] },\n"
	"               'entry_lock': '5s' } ] }";

static void the_contracts_example(void **state)
{
	const struct workflow *w = parse_clean(contract_example);

	(void)state;
	assert_string_equal(w->name, "billing");
	assert_string_equal(w->module, "billing");
	assert_string_equal(w->file, "w.json");
	assert_true(slice_is(w->text, json_text(contract_example)));
	assert_null(w->table.table);
	assert_int_equal(w->statuses_n, 4);
	assert_string_equal(w->statuses[2], "closing");
	assert_string_equal(w->initial_status, "draft");
	assert_int_equal(w->actions_n, 2);
	assert_int_equal(w->steps_n, 2);
	assert_int_equal(w->steps[1].step_id, 20);
	assert_string_equal(w->steps[1].step_key, "close");
	assert_string_equal(w->steps[1].status, "approved");
	assert_int_equal(w->steps[1].line, 6);
}

/* The step object of seed 000, as it stands there. */
static void the_seeds_step(void **state)
{
	const struct workflow *w = parse_clean(
		"{ 'workflow': 'billing', 'kind': 'entity', 'status_types': ['approved', 'closing', 'closed'],\n"
		"'initial_status': 'approved',\n"
		"'actions': { 'CloseBillingActionUseCase': { 'kind': 'native', 'function': 'close_billing' } }, 'steps': [\n"
		"{\n"
		"'step_id': 20,\n"
		"'step_key': 'close',\n"
		"'status': 'approved',\n"
		"'successful_claim_state': { 'admin': ['closing', 'approved'] },\n"
		"'successful_state': { 'admin': 'closed' },\n"
		"'action': { 'admin': 'CloseBillingActionUseCase' }\n"
		"}\n"
		"] }");
	const struct step *step = workflow_step(w, slice_str("close"), slice_str("approved"), slice_str("default"));

	(void)state;
	assert_non_null(step);
	assert_string_equal(workflow_view(w, step, slice_str("admin"))->claim_into, "closing");
	assert_string_equal(workflow_view(w, step, slice_str("admin"))->revert_to, "approved");
	assert_true(workflow_view(w, step, slice_str("admin"))->allowed);
	assert_false(workflow_view(w, step, slice_str("system"))->allowed);
	assert_string_equal(w->module, "billing");
}

static void what_must_be_there(void **state)
{
	(void)state;
	assert_errors("{}", 5);
	assert_said("w.json:1: error: missing field: \"workflow\" is missing", NULL);
	assert_said("\"kind\" is missing", NULL);
	assert_said("\"status_types\" is missing", NULL);
	assert_said("\"initial_status\" is missing", NULL);
	assert_said("\"steps\" is missing", NULL);
	assert_errors("[]", 1);
	assert_said("a definition must be an object, not an array", NULL);
	assert_errors("{ 'workflow': 'w', 'kind': 'entity', 'status_types': 'a', 'initial_status': 7, 'steps': {} }",
		      3);
	assert_errors("{ 'workflow': 'w', 'kind': 'entity', 'status_types': [], 'initial_status': 'a', 'steps': [] }",
		      1);
	assert_said("status_types has 0 entries; it must have 1 to 1000", NULL);
}

static void unknown_fields_at_the_top(void **state)
{
	(void)state;
	assert_errors(
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', 'steps': [],\n"
		"  'statuses': 1,\n  'initialStatus': 2 }",
		2);
	assert_said("w.json:2: error: workflow w: unknown field: \"statuses\"; did you mean \"", NULL);
	assert_said("w.json:3: error: workflow w: unknown field: \"initialStatus\"; did you mean \"initial_status\"?",
		    NULL);
}

static void names_are_names(void **state)
{
	char long_name[WORKFLOW_NAME_MAX + 2];
	const char *form =
		"{ 'workflow': '%s', 'kind': 'entity', 'status_types': ['%s'], 'initial_status': '%s', 'steps': [] }";
	static const char *const bad[] = {"", "a b", "a|b", "a\\nb", "a/b", "\\u0000", "a\\u0000b", "\xc3\xa9", "a:b"};

	(void)state;
	memset(long_name, 'x', sizeof long_name);
	long_name[WORKFLOW_NAME_MAX] = '\0';
	parse_clean(text_printf(&arena, form, long_name, "Az0_.-", "Az0_.-"));
	long_name[WORKFLOW_NAME_MAX] = 'x';
	long_name[WORKFLOW_NAME_MAX + 1] = '\0';
	assert_errors(text_printf(&arena, form, long_name, "a", "a"), 1);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_errors(text_printf(&arena, form, bad[i], "a", "a"), 1);
		assert_said("name: workflow is", NULL);
		assert_null(parse(text_printf(&arena, form, "w", bad[i], bad[i])));
		assert_said("name: a status is", NULL);
	}
	assert_errors(
		"{ 'workflow': 7, 'kind': 'entity', 'status_types': ['a', 7], 'initial_status': 'a', 'steps': [] }", 2);
}

static void statuses_stand_once(void **state)
{
	(void)state;
	assert_errors(
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a', 'b', 'a'], 'initial_status': 'a', 'steps': [\n"
		"{ 'step_id': 1, 'step_key': 'x', 'status': 'a', 'successful_state': 'b' } ] }",
		1);
	assert_said("w.json:1: error: workflow w: duplicate: status_types: \"a\" stands twice", NULL);
	assert_errors(
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'b', 'steps': [] }", 1);
	assert_said("initial_status \"b\" is not in status_types; there is \"a\"", NULL);
}

static void other_kinds_are_not_entities(void **state)
{
	(void)state;
	assert_errors("{ 'workflow': 'order', 'kind': 'run', 'steps': [ { 'name': 'reserve', 'type': 'task' } ] }", 1);
	assert_said("w.json:1: error: workflow order: kind: this is a definition of kind run, not entity", NULL);
	assert_errors("{ 'workflow': 'render', 'kind': 'batch', 'item_action': 'x' }", 1);
	assert_said("w.json:1: error: workflow render: kind: this is a definition of kind batch, not entity", NULL);
	assert_errors("{ 'workflow': 'x', 'kind': 'entiti' }", 1);
	assert_said("kind is \"entiti\", which is not known; did you mean \"entity\"?", NULL);
	assert_errors("{ 'workflow': 'x', 'kind': null }", 1);
}

static void malformed_json_has_its_place(void **state)
{
	(void)state;
	assert_errors("{ 'workflow': 'w',\n  'kind' 'entity' }", 1);
	assert_said("w.json:2: error: json: column 10: ", NULL);
	assert_errors("", 1);
	assert_said("w.json:1: error: json: column 1: ", NULL);
	assert_errors("{} {}", 1);
	assert_errors("{ 'workflow': 'w', 'kind': 'entity',\n 'kind': 'entity' }", 1);
	assert_said("w.json:2: error: json: ", "kind", NULL);
	assert_errors("\xff", 1);
}

/* A definition with so many statuses, actions and steps, each step with its own. */
static const char *large(size_t statuses, size_t actions, size_t steps)
{
	struct strbuf sb;

	strbuf_init(&sb, 64u << 20);
	strbuf_add_str(&sb, "{ 'workflow': 'w', 'kind': 'entity', 'initial_status': 's0', 'actions': {");
	for (size_t i = 0; i < actions; i++)
		strbuf_addf(&sb, "%s\n'a%zu': { 'kind': 'noop' }", i ? "," : "", i);
	strbuf_add_str(&sb, "\n}, 'status_types': [");
	for (size_t i = 0; i < statuses; i++)
		strbuf_addf(&sb, "%s's%zu'", i ? "," : "", i);
	strbuf_add_str(&sb, "],\n'steps': [");
	for (size_t i = 0; i < steps; i++)
		strbuf_addf(&sb,
			    "%s\n{ 'step_id': %zu, 'step_key': 'k%zu', 'status': 's%zu', 'successful_state': 's%zu' }",
			    i ? "," : "", i, i, i % statuses, (i + 1) % statuses);
	strbuf_add_str(&sb, " ] }");
	assert_false(sb.failed);

	const char *text = arena_copy(&arena, strbuf_slice(&sb)).p;

	strbuf_release(&sb);
	return text;
}

static void limits_hold(void **state)
{
	(void)state;
	parse_clean(large(WORKFLOW_STATUSES_MAX, WORKFLOW_ACTIONS_MAX, WORKFLOW_STEPS_MAX));
	assert_errors(large(WORKFLOW_STATUSES_MAX + 1, 1, 1), 1);
	assert_said("w.json:3: error: limit: status_types has 1001 entries; at most 1000", NULL);
	assert_errors(large(2, WORKFLOW_ACTIONS_MAX + 1, 1), 1);
	assert_said("limit: actions has 201 entries; at most 200", NULL);
	assert_errors(large(2, 1, WORKFLOW_STEPS_MAX + 1), 1);
	assert_said("limit: steps has 1001 entries; at most 1000", NULL);
	assert_errors(large(1001, 201, 1001), 3);
}

/* Of this thread's work: what others do beside it does not count. */
static double seconds_worked(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double seconds_of(const char *text)
{
	struct slice slice = slice_str(json_text(text));
	const struct workflow *w = NULL;
	double start = seconds_worked();

	findings_init(&findings, &arena);
	workflow_parse("w.json", slice, &arena, &findings, &w);

	double seconds = seconds_worked() - start;

	print_findings();
	assert_null(w);
	return seconds;
}

static void a_million_statuses_are_answered_quickly(void **state)
{
	double seconds = seconds_of(large(1000000, 1, 1));

	(void)state;
	assert_said("limit: status_types has 1000000 entries; at most 1000", NULL);
	printf("# a definition with 1000000 statuses is refused after %.3f s\n", seconds);
	assert_true(seconds < (HAS_SANITIZER ? 10 : 1));
}

/* Everything at its limit, every view wrong in several ways. */
static void the_worst_definition_is_answered_quickly(void **state)
{
	struct strbuf sb;

	(void)state;
	strbuf_init(&sb, 64u << 20);
	strbuf_add_str(&sb, "{ 'workflow': 'w', 'kind': 'entity', 'initial_status': 's0', 'status_types': [");
	for (int i = 0; i < WORKFLOW_STATUSES_MAX; i++)
		strbuf_addf(&sb, "%s's%d'", i ? "," : "", i);
	strbuf_add_str(&sb, "], 'steps': [");
	for (int i = 0; i < WORKFLOW_STEPS_MAX; i++) {
		strbuf_addf(
			&sb,
			"%s{ 'step_id': 1, 'step_key': 'k', 'status': 's0', 'successful_state': 'nowhere', 'claim_state': {",
			i ? ",\n" : "\n");
		for (int r = 0; r < 62; r++)
			strbuf_addf(&sb, "%s'r%d': ['s%d', 's%d']", r ? "," : "", r, r, i % 7);
		strbuf_add_str(&sb, "} }");
	}
	strbuf_add_str(&sb, "] }");

	double seconds = seconds_of(sb.p);

	strbuf_release(&sb);
	assert_said("there is more than can be shown here", NULL);
	printf("# a definition with %zu errors is refused after %.3f s\n", findings.errors, seconds);
	assert_true(seconds < (HAS_SANITIZER ? 30 : 10));
}

/* Names that are long and alike, and none of them right. */
static void many_wrong_names_are_answered_quickly(void **state)
{
	char alike[61];
	struct strbuf sb;

	(void)state;
	memset(alike, 'x', sizeof alike);
	alike[60] = '\0';
	strbuf_init(&sb, 64u << 20);
	strbuf_add_str(
		&sb, "{ 'workflow': 'w', 'kind': 'entity', 'initial_status': 's', 'status_types': ['s'], 'actions': {");
	for (int i = 0; i < WORKFLOW_ACTIONS_MAX; i++)
		strbuf_addf(&sb, "%s'%s%d': { 'kind': 'noop' }", i ? "," : "", alike, i);
	strbuf_add_str(&sb, "}, 'steps': [");
	for (int i = 0; i < WORKFLOW_STEPS_MAX; i++) {
		strbuf_addf(&sb,
			    "%s{ 'step_id': %d, 'step_key': 'k%d', 'status': 's', 'successful_state': 's', 'action': {",
			    i ? ",\n" : "\n", i, i);
		for (int r = 0; r < 64; r++)
			strbuf_addf(&sb, "%s'r%d': '%dy%s'", r ? "," : "", r, r, alike);
		strbuf_addf(&sb, "}, '%s': 1, 'y%s': 1 }", alike, alike);
	}
	strbuf_add_str(&sb, "] }");

	double seconds = seconds_of(sb.p);

	strbuf_release(&sb);
	assert_said("there is more than can be shown here", NULL);
	printf("# a definition with %zu errors is refused after %.3f s\n", findings.errors, seconds);
	assert_true(seconds < (HAS_SANITIZER ? 30 : 10));
}

static void text_and_values_are_limited(void **state)
{
	size_t n = WORKFLOW_TEXT_BYTES_MAX + 1;
	char *text = malloc(n);
	const struct workflow *w = NULL;

	(void)state;
	assert_non_null(text);
	memset(text, ' ', n);
	memcpy(text, "[]", 2);
	workflow_parse("w.json", slice_of(text, n), &arena, &findings, &w);
	print_findings();
	assert_said("w.json: error: limit: the definition has 16777217 bytes; at most 16777216", NULL);
	memset(text, ',', n);
	for (size_t i = 0; i < 600000; i++)
		text[2 * i + 1] = '1';
	text[0] = '[';
	text[2 * 600000] = ']';
	findings_init(&findings, &arena);
	workflow_parse("w.json", slice_of(text, 2 * 600000 + 1), &arena, &findings, &w);
	print_findings();
	assert_said("w.json:1: error: limit: ", "too many values", NULL);
	free(text);
}

static void too_little_memory_is_an_error(void **state)
{
	struct slice text = slice_str(json_text(contract_example));
	const struct workflow *w = NULL;
	size_t room = 0;

	(void)state;
	for (; room < 100000 && !w; room += 16) {
		struct arena small;
		struct findings f;

		arena_init(&small, room);
		findings_init(&f, &arena);
		workflow_parse("w.json", text, &small, &f, &w);
		assert_true((w != NULL) == (f.errors == 0));
		arena_release(&small);
	}
	assert_non_null(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(the_contracts_example),
		model_test(the_seeds_step),
		model_test(what_must_be_there),
		model_test(unknown_fields_at_the_top),
		model_test(names_are_names),
		model_test(statuses_stand_once),
		model_test(other_kinds_are_not_entities),
		model_test(malformed_json_has_its_place),
		model_test(limits_hold),
		model_test(a_million_statuses_are_answered_quickly),
		model_test(the_worst_definition_is_answered_quickly),
		model_test(many_wrong_names_are_answered_quickly),
		model_test(text_and_values_are_limited),
		model_test(too_little_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
