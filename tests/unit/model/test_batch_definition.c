/* Definitions of kind batch: what they must have, what each field may be, and what must hold between them. */
#include "definition.h"

#include "model/batch_definition.h"
#include "model/definition.h"

/* As it stands in the contract, with the actions that it leaves out. */
static const char contract_example[] =
	"{ 'workflow': 'render', 'kind': 'batch', 'actions': {\n"
	"    'render_one': { 'kind': 'http', 'url': 'http://h/render', 'effect': 'keyed', 'void': 'void_one' },\n"
	"    'void_one': { 'kind': 'http', 'url': 'http://h/void', 'effect': 'idempotent' },\n"
	"    'delete_artifact': { 'kind': 'http', 'url': 'http://h/delete', 'effect': 'idempotent' },\n"
	"    'tell_owner': { 'kind': 'http', 'url': 'http://h/tell', 'effect': 'keyed' } },\n"
	"  'item_action': 'render_one', 'cleanup_action': 'delete_artifact', 'done_after_effect': ['tell_owner'], "
	"'concurrency': 4, 'cancel_check_every': 1 }";

/* From a clean sheet. */
static const struct batch_definition *parse_batch(const char *text)
{
	const struct batch_definition *d = NULL;

	findings_init(&findings, &arena);
	batch_definition_parse("b.json", slice_str(json_text(text)), &arena, &findings, &d);
	print_findings();
	assert_false(arena.failed);
	assert_true((d != NULL) == (findings.errors == 0));
	return d;
}

static const struct batch_definition *parsed(const char *text)
{
	const struct batch_definition *d = parse_batch(text);

	if (!d)
		fail_msg("%s\nfor\n%s", printed.p, text);
	return d;
}

static const struct batch_definition *clean(const char *text)
{
	const struct batch_definition *d = parsed(text);

	if (findings.warnings)
		fail_msg("%s\nfor\n%s", printed.p, text);
	return d;
}

static void assert_batch_errors(const char *text, size_t errors)
{
	assert_null(parse_batch(text));
	if (findings.errors != errors)
		fail_msg("%zu errors, not %zu:\n%s\nfor\n%s", findings.errors, errors, printed.p, text);
}

/* With an action of each kind; the fields stand in line 8. */
static const char *with_fields(const char *fields)
{
	return text_printf(
		&arena,
		"{ 'workflow': 'w', 'kind': 'batch', 'actions': {\n"
		"'Claimed': { 'kind': 'http', 'url': 'http://h', 'probe': 'Safe' },\n"
		"'Keyed': { 'kind': 'http', 'url': 'http://h', 'effect': 'keyed' },\n"
		"'Safe': { 'kind': 'exec', 'argv': ['x'], 'effect': 'idempotent' }, 'Noop': { 'kind': 'noop' },\n"
		"'Asked': { 'kind': 'native', 'function': 'f', 'probe': 'Safe' },\n"
		"'Worker': { 'kind': 'worker', 'queue': 'q', 'effect': 'keyed' },\n"
		"'Sql': { 'kind': 'sql', 'statements': [ { 'name': 's', 'sql': 'SELECT 1' } ] } },\n"
		"%s }",
		fields);
}

static const struct batch_definition *batch(const char *fields)
{
	return clean(with_fields(fields));
}

static void refused(const char *fields, const char *said)
{
	assert_batch_errors(with_fields(fields), 1);
	assert_int_equal(findings.warnings, 0);
	assert_said("b.json:8: error: workflow w: ", said, NULL);
}

static void warned(const char *fields, const char *said)
{
	(void)parsed(with_fields(fields));
	assert_int_equal(findings.warnings, 1);
	assert_said("b.json:8: warning: workflow w: ", said, NULL);
}

static void the_contracts_example(void **state)
{
	const struct batch_definition *d = clean(contract_example);

	(void)state;
	assert_string_equal(d->name, "render");
	assert_string_equal(d->module, "render");
	assert_string_equal(d->file, "b.json");
	assert_true(slice_is(d->text, json_text(contract_example)));
	assert_int_equal(d->actions_n, 4);
	assert_string_equal(d->item_action->name, "render_one");
	assert_string_equal(d->item_action->workflow, "render");
	assert_string_equal(d->item_action->void_action->name, "void_one");
	assert_string_equal(d->cleanup_action->name, "delete_artifact");
	for (size_t i = 0; i < d->actions_n; i++)
		assert_int_equal(d->actions[i].gone_is_done, &d->actions[i] == d->cleanup_action);
	assert_int_equal(d->after_effects_n, 1);
	assert_string_equal(d->after_effects[0]->name, "tell_owner");
	assert_int_equal(d->concurrency, 4);
	assert_int_equal(d->cancel_check_every, 1);
	assert_int_equal(d->on_unknown, UNKNOWN_RETRY);
}

static void defaults(void **state)
{
	const struct batch_definition *d = batch("'item_action': 'Keyed'");

	(void)state;
	assert_string_equal(d->module, "w");
	assert_null(d->cleanup_action);
	assert_null(d->item_action->void_action);
	assert_int_equal(d->after_effects_n, 0);
	assert_int_equal(d->concurrency, 4);
	assert_int_equal(d->cancel_check_every, 1);
	assert_int_equal(d->retry.max_attempts, 3);
	assert_int_equal(d->retry.initial_ms, 1000);
	assert_int_equal(d->retry.factor_thousandths, 2000);
	assert_int_equal(d->retry.max_ms, 300000);
	assert_true(d->retry.jitter);
	assert_int_equal(d->timeout_ms, 0);
	assert_int_equal(d->lease_ms, 0);
	assert_false(d->unknown_on_5xx);
}

static void every_field(void **state)
{
	const struct batch_definition *d = batch(
		"'meta': { 'module': 'shop' }, 'item_action': 'Claimed', 'cleanup_action': 'Safe', "
		"'done_after_effect': ['Keyed', 'Safe', 'Claimed', 'Noop'], 'concurrency': 64, "
		"'cancel_check_every': 1000000, 'timeout': '90s', 'lease': '2m', 'on_unknown': 'probe', "
		"'on_5xx': 'unknown', 'retry': { 'max_attempts': 7, 'initial': '250ms', 'factor': 1.5, 'max': '1h', "
		"'jitter': false }");

	(void)state;
	assert_string_equal(d->module, "shop");
	assert_string_equal(d->item_action->name, "Claimed");
	assert_string_equal(d->cleanup_action->name, "Safe");
	assert_int_equal(d->after_effects_n, 4);
	assert_string_equal(d->after_effects[1]->name, "Safe");
	assert_string_equal(d->after_effects[3]->name, "Noop");
	assert_int_equal(d->concurrency, 64);
	assert_int_equal(d->cancel_check_every, 1000000);
	assert_int_equal(d->timeout_ms, 90000);
	assert_int_equal(d->lease_ms, 120000);
	assert_int_equal(d->on_unknown, UNKNOWN_PROBE);
	assert_true(d->unknown_on_5xx);
	assert_int_equal(d->retry.max_attempts, 7);
	assert_int_equal(d->retry.initial_ms, 250);
	assert_int_equal(d->retry.factor_thousandths, 1500);
	assert_int_equal(d->retry.max_ms, 3600000);
	assert_false(d->retry.jitter);
}

static void what_must_be_there(void **state)
{
	(void)state;
	assert_batch_errors("{}", 3);
	assert_said("b.json:1: error: missing field: \"workflow\" is missing", NULL);
	assert_said("\"kind\" is missing", NULL);
	assert_said("\"item_action\" is missing", NULL);
	assert_batch_errors("[]", 1);
	assert_batch_errors("", 1);
	assert_batch_errors("{ 'workflow': 'a b', 'kind': 'batch', 'item_action': 'x' }", 2);
	assert_said("name: workflow is \"a b\"", NULL);
	assert_said("reference: item_action: there is no action \"x\"", NULL);
	assert_not_said("did you mean");
}

static void other_kinds_are_not_batches(void **state)
{
	(void)state;
	assert_batch_errors("{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'] }", 1);
	assert_said("kind: this is a definition of kind entity, not batch", NULL);
	assert_batch_errors("{ 'workflow': 'w',\n'kind': 'run' }", 1);
	assert_said("b.json:2: error: workflow w: kind: this is a definition of kind run, not batch", NULL);
	assert_batch_errors("{ 'workflow': 'w', 'kind': 'bacth' }", 1);
	assert_said("did you mean \"batch\"?", NULL);
}

static void names_of_actions(void **state)
{
	(void)state;
	refused("'item_action': 'Keied'",
		"reference: item_action: there is no action \"Keied\"; did you mean \"Keyed\"?");
	refused("'item_action': 'Keyed', 'cleanup_action': 'Nop'",
		"reference: cleanup_action: there is no action \"Nop\"; did you mean \"Noop\"?");
	refused("'item_action': 'Keyed', 'done_after_effect': ['Mail']",
		"reference: done_after_effect: there is no action \"Mail\"");
	refused("'item_action': { 'kind': 'noop' }", "type: item_action must be a string, not an object");
	refused("'item_action': 'Keyed', 'cleanup_action': null", "cleanup_action must be a string, not null");
	refused("'item_action': 'Keyed', 'done_after_effect': 'Keyed'",
		"done_after_effect must be an array, not \"Keyed\"");
	/* An action with a fault is blamed itself, and not whoever names it. */
	assert_batch_errors("{ 'workflow': 'w', 'kind': 'batch', 'actions': {\n'a': { 'kind': 'htp' } },\n"
			    "'item_action': 'a' }",
			    1);
	assert_said("b.json:2: error: workflow w: value: action a: kind is \"htp\", which is not known", NULL);
}

static void what_the_engine_does_not_call(void **state)
{
	static const struct {
		const char *field, *before, *behind;
	} uses[] = {{"item_action", "'item_action': '", "'"},
		    {"cleanup_action", "'item_action': 'Keyed', 'cleanup_action': '", "'"},
		    {"done_after_effect", "'item_action': 'Keyed', 'done_after_effect': ['Noop', '", "']"}};
	static const char *const kinds[][2] = {{"Sql", "sql"}, {"Worker", "worker"}};

	(void)state;
	for (size_t u = 0; u < 3; u++)
		for (size_t k = 0; k < 2; k++)
			refused(text_printf(&arena, "%s%s%s", uses[u].before, kinds[k][0], uses[u].behind),
				text_printf(&arena,
					    "value: %s: %s is of kind %s; in this version it is carried out by the "
					    "engine itself, so it must be of kind http, exec, native or noop",
					    uses[u].field, kinds[k][0], kinds[k][1]));
	(void)batch("'item_action': 'Noop', 'cleanup_action': 'Safe', 'done_after_effect': ['Noop']");
	(void)batch("'item_action': 'Asked', 'on_unknown': 'retry'");
}

static void after_effects(void **state)
{
	(void)state;
	assert_int_equal(batch("'item_action': 'Keyed', 'done_after_effect': []")->after_effects_n, 0);
	refused("'item_action': 'Keyed', 'done_after_effect': ['Keyed', 'Noop', 'Keyed']",
		"duplicate: done_after_effect names Keyed twice");
	refused("'item_action': 'Keyed', 'done_after_effect': ['Keyed', 'Noop', 'Safe', 'Claimed', 'Asked']",
		"limit: done_after_effect has 5 entries; it must have 0 to 4");
	refused("'item_action': 'Keyed', 'done_after_effect': [7]", "done_after_effect must be a string, not 7");
}

static void numbers_have_bounds(void **state)
{
	(void)state;
	assert_int_equal(batch("'item_action': 'Keyed', 'concurrency': 1")->concurrency, 1);
	refused("'item_action': 'Keyed', 'concurrency': 0",
		"value: concurrency is 0; it must be a whole number from 1 to 64");
	refused("'item_action': 'Keyed', 'concurrency': 65", "concurrency is 65");
	refused("'item_action': 'Keyed', 'concurrency': 2.5", "concurrency is 2.5");
	refused("'item_action': 'Keyed', 'concurrency': '4'", "concurrency must be a whole number, not \"4\"");
	refused("'item_action': 'Keyed', 'cancel_check_every': 0",
		"cancel_check_every is 0; it must be a whole number from 1 to 1000000");
	refused("'item_action': 'Keyed', 'cancel_check_every': 1000001", "cancel_check_every is 1000001");
	refused("'item_action': 'Keyed', 'cancel_check_every': -1", "cancel_check_every is -1");
	refused("'item_action': 'Keyed', 'timeout': '0s'", "duration: timeout: \"0s\"");
	refused("'item_action': 'Keyed', 'timeout': 30", "timeout must be a duration");
	refused("'item_action': 'Keyed', 'lease': '1.5s'", "duration: lease: \"1.5s\"");
	refused("'item_action': 'Keyed', 'retry': { 'max_attempts': 0 }", "retry: max_attempts is 0");
	refused("'item_action': 'Keyed', 'retry': { 'initial': '10m' }", "retry: initial is 10m, which is more than");
	refused("'item_action': 'Keyed', 'retry': { 'attempts': 3 }", "did you mean \"max_attempts\"?");
	refused("'item_action': 'Keyed', 'retry': 3", "retry must be an object, not 3");
	refused("'item_action': 'Keyed', 'on_5xx': 'unknwon'", "did you mean \"unknown\"?");
	warned("'item_action': 'Noop', 'timeout': '1s'", "timeout: action Noop is of kind noop, which has no timeout");
}

static void unknown_outcomes(void **state)
{
	(void)state;
	assert_int_equal(batch("'item_action': 'Keyed'")->on_unknown, UNKNOWN_RETRY);
	assert_int_equal(batch("'item_action': 'Safe'")->on_unknown, UNKNOWN_RETRY);
	assert_int_equal(batch("'item_action': 'Noop'")->on_unknown, UNKNOWN_RETRY);
	assert_int_equal(batch("'item_action': 'Claimed'")->on_unknown, UNKNOWN_HOLD);
	assert_int_equal(batch("'item_action': 'Claimed', 'on_unknown': 'retry'")->on_unknown, UNKNOWN_RETRY);
	assert_int_equal(batch("'item_action': 'Claimed', 'on_unknown': 'probe'")->on_unknown, UNKNOWN_PROBE);
	assert_int_equal(batch("'item_action': 'Keyed', 'on_unknown': 'hold'")->on_unknown, UNKNOWN_HOLD);
	refused("'item_action': 'Keyed', 'on_unknown': 'probe'",
		"on_unknown: probe needs a probe, and action Keyed declares none");
	refused("'item_action': 'Keyed', 'on_unknown': 'revert'",
		"on_unknown: revert is for the claims of entities; an item of a batch has retry, probe or hold");
	refused("'item_action': 'Keyed', 'on_unknown': 'holt'", "did you mean \"hold\"?");
	refused("'item_action': 'Keyed', 'on_unknown': 7", "on_unknown must be a string, not 7");
}

#define IDEMPOTENT(name) "'" name "': { 'kind': 'http', 'url': 'http://h', 'effect': 'idempotent' }"

/* To whoever cleans up a 404 is a success, and to nobody else. B cleans up. */
static void shared_cleanup(const char *field_of_item_action, const char *field, const char *said)
{
	assert_batch_errors(text_printf(&arena,
					"{ 'workflow': 'w', 'kind': 'batch', 'item_action': 'A', 'actions': {\n"
					"'A': { 'kind': 'http', 'url': 'http://h', %s }, " IDEMPOTENT(
						"B") " },\n"
						     "%s'cleanup_action': 'B' }",
					field_of_item_action, field),
			    1);
	assert_int_equal(findings.warnings, 0);
	assert_said("b.json:3: error: workflow w: value: ", said, NULL);
}

static void cleaning_up(void **state)
{
	(void)state;
	refused("'item_action': 'Keyed', 'cleanup_action': 'Keyed'",
		"value: cleanup_action: Keyed is the item_action, so that cleaning up would carry out the item again");
	shared_cleanup("'void': 'B'", "", "cleanup_action: B is also a void, where 404 and 410 do not count as done");
	shared_cleanup("'probe': 'B'", "", "cleanup_action: B is also a probe, where");
	shared_cleanup("'effect': 'keyed'", "'done_after_effect': ['B'], ", "B is also a done_after_effect, where");
	(void)batch("'item_action': 'Keyed', 'cleanup_action': 'Safe', 'done_after_effect': ['Safe']"); /* no http */
	warned("'item_action': 'Keyed', 'cleanup_action': 'Claimed'",
	       "effect: cleanup_action: Claimed is called again whenever nobody knows whether it was done");
}

static void short_leases(void **state)
{
	(void)state;
	warned("'item_action': 'Keyed', 'lease': '999ms'", "duration: lease is 999ms, shorter than a second");
	(void)clean(with_fields("'item_action': 'Keyed', 'lease': '1s'"));
}

static void unknown_fields(void **state)
{
	static const struct {
		const char *field, *kinds;
	} others[] = {{"status_types", "entity"}, {"step_key", "entity"},         {"success_after_effect", "entity"},
		      {"output", "run"},          {"compensate", "run"},          {"on_timeout", "run"},
		      {"steps", "entity or run"}, {"entry_lock", "entity or run"}};

	(void)state;
	refused("'item_action': 'Keyed', 'concurency': 4",
		"unknown field: \"concurency\"; did you mean \"concurrency\"?");
	refused("'item_action': 'Keyed', 'done_after_effects': []", "did you mean \"done_after_effect\"?");
	refused("'item_action': 'Keyed', 'meta': { 'modul': 'm' }", "meta: \"modul\"; did you mean \"module\"?");
	refused("'item_action': 'Keyed', 'meta': { 'table': 't' }",
		"meta: \"table\" belongs to definitions of kind entity");
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		refused(text_printf(&arena, "'item_action': 'Keyed', '%s': []", others[i].field),
			text_printf(
				&arena,
				"unknown field: \"%s\" belongs to definitions of kind %s, and this is one of kind batch",
				others[i].field, others[i].kinds));
	/* A field of batches, but not of these. */
	refused("'item_action': 'Keyed', 'void': 'Noop'", "unknown field: \"void\"");
}

/* ---- void ---- */

/* The item's action is A, in line 2, with these fields; B and what else is there stand in line 3. */
static const char *with_void(const char *fields, const char *others)
{
	return text_printf(&arena,
			   "{ 'workflow': 'w', 'kind': 'batch', 'item_action': 'A', 'actions': {\n"
			   "'A': { %s },\n%s } }",
			   fields, others);
}

static void void_refused(const char *fields, const char *others, const char *said)
{
	assert_batch_errors(with_void(fields, others), 1);
	assert_int_equal(findings.warnings, 0);
	assert_said("b.json:2: error: workflow w: ", "action A: ", said, NULL);
}

static void voids(void **state)
{
	static const char *const kinds[] = {"'kind': 'http', 'url': 'http://h'", "'kind': 'exec', 'argv': ['x']",
					    "'kind': 'native', 'function': 'f'"};
	const struct batch_definition *d;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		d = clean(with_void(text_printf(&arena, "%s, 'void': 'B'", kinds[i]), IDEMPOTENT("B")));
		assert_string_equal(d->item_action->void_action->name, "B");
		assert_null(d->item_action->void_action->void_action);
	}
	d = clean(with_void("'kind': 'http', 'url': 'http://h', 'void': 'B'", "'B': { 'kind': 'noop' }"));
	assert_int_equal(d->item_action->void_action->kind, ACTION_NOOP);
	/* One may void and be asked. */
	d = clean(with_void("'kind': 'http', 'url': 'http://h', 'void': 'B', 'probe': 'B'", IDEMPOTENT("B")));
	assert_ptr_equal(d->item_action->void_action, d->item_action->probe);
}

static void voids_that_cannot_be(void **state)
{
#define HTTP "'kind': 'http', 'url': 'http://h', "
	(void)state;
	void_refused(HTTP "'void': 'A'", IDEMPOTENT("B"), "void: an action that voids itself would act again");
	void_refused(HTTP "'void': 'Bee'", IDEMPOTENT("Be"), "void: there is no action \"Bee\"; did you mean \"Be\"?");
	void_refused(HTTP "'void': { 'kind': 'noop' }", IDEMPOTENT("B"), "void must be a string, not an object");
	void_refused(HTTP "'void': 'B'", "'B': { 'kind': 'worker', 'queue': 'q' }",
		     "void: B is of kind worker; in this version it is carried out by the engine itself");
	void_refused(HTTP "'void': 'B'", "'B': { 'kind': 'sql', 'statements': [ { 'name': 's', 'sql': 'SELECT 1' } ] }",
		     "void: B is of kind sql");
	void_refused("'kind': 'noop', 'void': 'B'", IDEMPOTENT("B"),
		     "unknown field: action A: \"void\" does not belong to an action of kind noop");
	void_refused(HTTP "'viod': 'B'", IDEMPOTENT("B"), "\"viod\"; did you mean \"void\"?");
	(void)parsed(with_void(HTTP "'void': 'B'", "'B': { 'kind': 'http', 'url': 'http://h' }"));
	assert_int_equal(findings.warnings, 1);
	assert_said("b.json:2: warning: workflow w: effect: action A: void: B is called again whenever", NULL);
	(void)parsed(with_void("'kind': 'noop'", "'B': { " HTTP "'void': 'A' }"));
	assert_int_equal(findings.warnings, 1);
	assert_said("b.json:3: warning: workflow w: void: action B: its void is never called", "item_action is A",
		    NULL);
#undef HTTP
}

#define FORMS                                                                                                          \
	"'actions': {\n'A': { 'kind': 'http', 'url': 'http://h', 'effect': 'keyed', '%s': 'B' }, 'B': { 'kind': 'noop' } }"

/* Where there are no items, nothing would be voided; and it is not suggested either. */
static void void_belongs_to_batches(void **state)
{
	static const char *const kinds[] = {
		"'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', 'steps': []",
		"'kind': 'run', 'steps': [ { 'name': 's', 'type': 'approval' } ]"};
	static const char *const names[] = {"entity", "run"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct definition *d = NULL;

		for (size_t misspelt = 0; misspelt < 2; misspelt++) {
			findings_init(&findings, &arena);
			definition_parse("d.json",
					 slice_str(json_text(text_printf(&arena, "{ 'workflow': 'w', %s, " FORMS " }",
									 kinds[i], misspelt ? "viod" : "void"))),
					 &arena, &findings, &d);
			print_findings();
			assert_null(d);
			assert_int_equal(findings.errors, 1);
			if (misspelt)
				assert_not_said("did you mean \"void\"");
			else
				assert_said("d.json:2: error: workflow w: unknown field: action A: \"void\" belongs to "
					    "definitions of kind batch, and this is one of kind ",
					    names[i], NULL);
		}
	}
}

/* All at once, each with its line, in the order of the text. */
static void all_findings_are_given(void **state)
{
	const char *text = "{ 'workflow': 'w', 'kind': 'batch',\n"
			   "'concurrency': 0,\n"
			   "'retry': { 'factor': 0.5 },\n"
			   "'item_action': 'a',\n"
			   "'cleanup_action': 'c',\n"
			   "'steps': [],\n"
			   "'actions': { 'b': { 'kind': 'worker', 'queue': 'q' },\n"
			   "'c': { 'kind': 'exec', 'argv': ['x'], 'void': 'b' } },\n"
			   "'on_unknown': 'revert' }";
	size_t line = 0;

	(void)state;
	assert_batch_errors(text, 6);
	assert_int_equal(findings.warnings, 1);
	for (const struct finding *f = findings.first; f; f = f->next) {
		assert_in_range(f->line, line, 9);
		assert_string_equal(f->file, "b.json");
		assert_string_equal(f->workflow, "w");
		line = f->line;
	}
	assert_said("b.json:2: error: workflow w: value: concurrency is 0", NULL);
	assert_said("b.json:3: error: workflow w: value: retry: factor is 0.5", NULL);
	assert_said("b.json:4: error: workflow w: reference: item_action: there is no action \"a\"", NULL);
	assert_said("b.json:5: warning: workflow w: effect: cleanup_action: c", NULL);
	assert_said("b.json:6: error: workflow w: unknown field: \"steps\" belongs to", NULL);
	assert_said("b.json:8: error: workflow w: value: action c: void: b is of kind worker", NULL);
	assert_said("b.json:9: error: workflow w: on_unknown: revert is for the claims", NULL);
}

/* With any smaller ceiling there is an error and no definition, never half of one. */
static void too_little_memory(void **state)
{
	char *text = json_text(contract_example);
	size_t most = 64 * strlen(text);
	size_t refusals = 0;

	(void)state;
	for (size_t room = 0; room < most; room += 97) {
		const struct batch_definition *d = NULL;
		struct findings found;
		struct arena small;

		arena_init(&small, room);
		findings_init(&found, &small);
		batch_definition_parse("b.json", slice_str(text), &small, &found, &d);
		assert_true((d != NULL) == (found.errors == 0));
		refusals += d == NULL;
		if (d)
			assert_string_equal(d->item_action->void_action->name, "void_one");
		arena_release(&small);
	}
	assert_in_range(refusals, 1, most / 97 - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(the_contracts_example),
		model_test(defaults),
		model_test(every_field),
		model_test(what_must_be_there),
		model_test(other_kinds_are_not_batches),
		model_test(names_of_actions),
		model_test(what_the_engine_does_not_call),
		model_test(after_effects),
		model_test(numbers_have_bounds),
		model_test(unknown_outcomes),
		model_test(cleaning_up),
		model_test(short_leases),
		model_test(unknown_fields),
		model_test(voids),
		model_test(voids_that_cannot_be),
		model_test(void_belongs_to_batches),
		model_test(all_findings_are_given),
		model_test(too_little_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
