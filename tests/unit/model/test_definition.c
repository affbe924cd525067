/* Definitions of all kinds: which parser reads a text, and what must hold between them. */
#include "definition.h"

#include "model/definition.h"

#define RUN_STEPS                                                                                                      \
	"'actions': { 'x': { 'kind': 'noop' } }, 'steps': [ { 'name': 's', 'type': 'task', 'action': 'x' } ] }"
#define BATCH_REST "'actions': { 'x': { 'kind': 'noop' } }, 'item_action': 'x' }"
#define ENTITY_REST "'status_types': ['a', 'b', 'c'], 'initial_status': 'a', 'steps': [\n"

static const struct definition *read_as(const char *file, const char *text)
{
	const struct definition *d = NULL;

	definition_parse(file, slice_str(json_text(text)), &arena, &findings, &d);
	print_findings();
	assert_int_equal(d == NULL, findings.errors > 0);
	return d;
}

static const struct definition *read_alone(const char *text)
{
	findings_init(&findings, &arena);
	return read_as("d.json", text);
}

static const struct definition *entity_named(const char *file, const char *name)
{
	return read_as(file, text_printf(&arena,
					 "{ 'workflow': '%s', 'kind': 'entity', 'status_types': ['a'],"
					 " 'initial_status': 'a', 'steps': [] }",
					 name));
}

static const struct definition *run_named(const char *file, const char *name)
{
	return read_as(file, text_printf(&arena, "{ 'workflow': '%s', 'kind': 'run', %s", name, RUN_STEPS));
}

static const struct definition *batch_named(const char *file, const char *name)
{
	return read_as(file, text_printf(&arena, "{ 'workflow': '%s', 'kind': 'batch', %s", name, BATCH_REST));
}

static size_t errors_of(const struct definition *a, const struct definition *b, const struct config *config)
{
	const struct definition *const list[] = {a, b};

	findings_init(&findings, &arena);
	definition_set_check(list, 2, config, &findings);
	print_findings();
	return findings.errors;
}

static void its_kind_says_who_reads_it(void **state)
{
	const struct definition *d;

	(void)state;
	d = read_alone("{ 'workflow': 'r', 'kind': 'run', 'meta': { 'module': 'm' }, " RUN_STEPS);
	assert_non_null(d);
	assert_non_null(d->run);
	assert_null(d->entity);
	assert_null(d->batch);
	assert_string_equal(d->kind, "run");
	assert_string_equal(d->name, "r");
	assert_string_equal(d->module, "m");
	assert_string_equal(d->file, "d.json");
	assert_int_equal(d->steps_n, 1);
	assert_true(d->text.n > 80);
	d = read_alone("{ 'k\\u0069nd': 'r\\u0075n', 'workflow': 'r', " RUN_STEPS); /* JSON, however it is spelt */
	assert_non_null(d);
	assert_non_null(d->run);
	d = read_alone("{ 'workflow': 'e', 'kind': 'entity', " ENTITY_REST
		       "{ 'step_id': 1, 'step_key': 'go', 'status': 'a', 'successful_state': 'b' },"
		       "{ 'step_id': 2, 'step_key': 'on', 'status': 'b', 'successful_state': 'c' } ] }");
	assert_non_null(d);
	assert_non_null(d->entity);
	assert_null(d->run);
	assert_null(d->batch);
	assert_string_equal(d->kind, "entity");
	assert_int_equal(d->steps_n, 2);
	d = read_alone("{ 'workflow': 'b', 'kind': 'batch', 'meta': { 'module': 'm' }, " BATCH_REST);
	assert_non_null(d);
	assert_non_null(d->batch);
	assert_null(d->entity);
	assert_null(d->run);
	assert_string_equal(d->kind, "batch");
	assert_string_equal(d->name, "b");
	assert_string_equal(d->module, "m");
	assert_string_equal(d->file, "d.json");
	assert_int_equal(d->steps_n, 0);
	assert_int_equal(d->actions_n, 1);
	assert_ptr_equal(d->actions, d->batch->actions);
	assert_true(slice_eq(d->text, d->batch->text));
	d = read_alone("{ 'kind': 'b\\u0061tch', 'workflow': 'b', " BATCH_REST);
	assert_non_null(d);
	assert_non_null(d->batch);
}

static void a_kind_that_is_none_is_told(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"{ 'workflow': 'x', 'steps': [] }", "\"kind\" is missing"},
		{"{ 'workflow': 'x', 'kind': 'rnu', 'steps': [] }", "rnu"},
		{"{ 'workflow': 'x', 'kind': 7, 'steps': [] }", "kind"},
		{"{ 'workflow': 'x', 'kind': 'bacth' }", "did you mean \"batch\"?"},
		{"{ 'workflow': 'x', 'kind': 'batch' }",
		 "d.json:1: error: workflow x: missing field: \"item_action\" is missing"},
		{"['run']", "a definition"},
		{"{ 'kind': 'run', ", "json"},
		{"", "json"},
		{"{ 'workflow': 'x', 'kind': 'run', 'kind': 'entity', " RUN_STEPS, "kind"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_null(read_alone(cases[i].text));
		assert_said(cases[i].says, NULL);
	}
}

static void refuses_without_room(const char *text)
{
	bool refused = false, accepted = false;

	for (size_t room = 64; room < 16384; room += 64) {
		const struct definition *d = NULL;
		struct findings found;
		struct arena small, notes;

		arena_init(&small, room);
		arena_init(&notes, 1u << 20);
		findings_init(&found, &notes);
		definition_parse("d.json", slice_str(text), &small, &found, &d);
		assert_int_equal(d == NULL, found.errors > 0);
		refused |= !d;
		accepted |= d != NULL;
		arena_release(&notes);
		arena_release(&small);
	}
	assert_true(refused && accepted);
}

static void a_full_arena_is_an_error(void **state)
{
	(void)state;
	refuses_without_room(json_text("{ 'workflow': 'r', 'kind': 'run', " RUN_STEPS));
	refuses_without_room(json_text("{ 'workflow': 'b', 'kind': 'batch', " BATCH_REST));
	refuses_without_room(json_text("{ 'workflow': 'e', 'kind': 'entity', " ENTITY_REST " ] }"));
}

static void names_are_unique_over_all_kinds(void **state)
{
	const struct definition *a = entity_named("a.json", "w"), *b = run_named("b.json", "v"),
				*c = run_named("c.json", "w"), *d = entity_named("d.json", "v"),
				*e = batch_named("e.json", "w");

	(void)state;
	assert_int_equal(errors_of(a, b, NULL), 0);
	assert_int_equal(errors_of(c, b, NULL), 0);
	assert_int_equal(errors_of(a, c, NULL), 1);
	assert_said("c.json:1: error: workflow w: duplicate: workflow w is also defined in a.json", NULL);
	assert_int_equal(errors_of(b, d, NULL), 1);
	assert_said("d.json:1: error: workflow v: duplicate: workflow v is also defined in b.json", NULL);
	assert_int_equal(errors_of(b, e, NULL), 0);
	assert_int_equal(errors_of(a, e, NULL), 1);
	assert_said("e.json:1: error: workflow w: duplicate: workflow w is also defined in a.json", NULL);
	assert_int_equal(errors_of(c, e, NULL), 1);
	assert_int_equal(errors_of(a, a, NULL), 1);
	assert_int_equal(errors_of(b, b, NULL), 1);
	definition_set_check(NULL, 0, /* config= */ NULL, &findings);
}

/* The rules of entities hold with a run between them, and neither a run nor a batch has a claim that wants a janitor. */
static void entities_keep_their_rules(void **state)
{
	const struct definition *run = run_named("r.json", "r"), *other = batch_named("s.json", "s");
	const struct definition *claims = read_as("e.json", "{ 'workflow': 'e', 'kind': 'entity', " ENTITY_REST
							    "{ 'step_id': 1, 'step_key': 'go', 'status': 'a',\n"
							    "'claim_state': ['b', 'a'], 'successful_state': 'c' } ] }");
	struct config config;

	(void)state;
	config_init(&config);
	assert_int_equal(errors_of(run, claims, NULL), 0);
	assert_int_equal(errors_of(run, claims, &config), 1);
	assert_said("e.json:3: error: workflow e, step go", "coverage", NULL);
	assert_int_equal(errors_of(run, other, &config), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(its_kind_says_who_reads_it), model_test(a_kind_that_is_none_is_told),
		model_test(a_full_arena_is_an_error),   model_test(names_are_unique_over_all_kinds),
		model_test(entities_keep_their_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
