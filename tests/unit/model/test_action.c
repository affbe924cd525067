/* Actions as definitions declare them. */
#include "definition.h"

#include "model/action_parse.h"

/* A workflow whose only use is to have these actions. They begin in line 2. */
static const char *with_actions(const char *actions)
{
	return text_printf(
		&arena,
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', 'steps': [], "
		"'actions': {\n%s } }",
		actions);
}

static const struct action *action(const char *body)
{
	return &parse_clean(with_actions(text_printf(&arena, "'A': %s", body)))->actions[0];
}

/* One error, which says this. */
static void refused(const char *body, const char *said)
{
	assert_errors(with_actions(text_printf(&arena, "'A': %s", body)), 1);
	assert_said("w.json:2: error: workflow w: ", "action A: ", said, NULL);
}

static void http(void **state)
{
	const struct action *a = action(
		"{ 'kind': 'http', 'url': 'https://h:8/x', 'timeout': '5s', 'effect': 'keyed', "
		"'max_in_flight': 8, 'headers': { 'Authorization': 'Bearer ${env:T}', 'X-B': '' } }");

	(void)state;
	assert_string_equal(a->name, "A");
	assert_string_equal(a->workflow, "w");
	assert_int_equal(a->kind, ACTION_HTTP);
	assert_int_equal(a->effect, EFFECT_KEYED);
	assert_int_equal(a->timeout_ms, 5000);
	assert_int_equal(a->max_in_flight, 8);
	assert_string_equal(a->url, "https://h:8/x");
	assert_int_equal(a->request.headers_n, 2);
	assert_string_equal(a->request.headers[0].name, "Authorization");
	assert_string_equal(a->request.headers[0].value, "Bearer ${env:T}");
	assert_string_equal(a->request.headers[1].value, "");
	assert_int_equal(a->line, 2);
}

static void exec(void **state)
{
	const struct action *a = action("{ 'kind': 'exec', 'argv': ['/bin/echo', '', 'a b'] }");

	(void)state;
	assert_int_equal(a->kind, ACTION_EXEC);
	assert_string_equal(a->argv[0], "/bin/echo");
	assert_string_equal(a->argv[1], "");
	assert_string_equal(a->argv[2], "a b");
	assert_null(a->argv[3]);
	refused("{ 'kind': 'exec' }", "\"argv\" is missing");
	refused("{ 'kind': 'exec', 'argv': [] }", "argv has 0 entries");
	refused("{ 'kind': 'exec', 'argv': [''] }", "argv");
	refused("{ 'kind': 'exec', 'argv': ['a\\u0000b'] }", "NUL");
	refused("{ 'kind': 'exec', 'argv': 'echo hi' }", "argv must be an array, not \"echo hi\"");
	refused("{ 'kind': 'exec', 'argv': ['x', 7] }", "must be a string, not 7");
}

static void sql(void **state)
{
	const struct action *a = action(
		"{ 'kind': 'sql', 'statements': [\n"
		"{ 'name': 'pay', 'sql': 'INSERT INTO p VALUES (:id, :input.amount)' },\n"
		"{ 'name': 'mark', 'sql': 'UPDATE i SET x = 1 WHERE id = :id', 'must': true } ] }");

	(void)state;
	assert_int_equal(a->effect, EFFECT_TRANSACTIONAL);
	assert_int_equal(a->statements_n, 2);
	assert_string_equal(a->statements[0].name, "pay");
	assert_string_equal(a->statements[0].sql, "INSERT INTO p VALUES (?1, ?2)");
	assert_string_equal(a->statements[0].params[1], "input.amount");
	assert_false(a->statements[0].must);
	assert_true(a->statements[1].must);
	refused("{ 'kind': 'sql' }", "\"statements\" is missing");
	refused("{ 'kind': 'sql', 'statements': [] }", "statements has 0 entries; it must have 1 to 6");
	refused("{ 'kind': 'sql', 'statements': [ { 'name': 'a', 'sql': 'COMMIT' } ] }",
		"sql: action A: statement a: ");
	refused("{ 'kind': 'sql', 'statements': [ { 'sql': 'SELECT 1' } ] }", "\"name\" is missing");
	refused("{ 'kind': 'sql', 'statements': [ { 'name': 'a' } ] }", "\"sql\" is missing");
	refused("{ 'kind': 'sql', 'statements': [ { 'name': 'a', 'sql': 'SELECT 1', 'mst': true } ] }",
		"\"mst\"; did you mean \"must\"?");
	refused("{ 'kind': 'sql', 'statements': [ { 'name': 'a', 'sql': 'SELECT 1', 'must': 1 } ] }",
		"must must be true or false");
	refused("{ 'kind': 'sql', 'statements': [ { 'name': 'a', 'sql': 'SELECT 1' }, { 'name': 'a', 'sql': 'SELECT 2' } ] }",
		"two statements are called a");
}

static void statements_at_the_limit(void **state)
{
	struct strbuf sb;

	(void)state;
	for (int n = ACTION_STATEMENTS_MAX; n <= ACTION_STATEMENTS_MAX + 1; n++) {
		strbuf_init(&sb, 10000);
		for (int i = 0; i < n; i++)
			strbuf_addf(&sb, "%s{ 'name': 's%d', 'sql': 'SELECT 1' }", i ? ", " : "", i);
		if (n == ACTION_STATEMENTS_MAX)
			action(text_printf(&arena, "{ 'kind': 'sql', 'statements': [%s] }", sb.p));
		else
			refused(text_printf(&arena, "{ 'kind': 'sql', 'statements': [%s] }", sb.p), "limit");
		strbuf_release(&sb);
	}
}

static void native_worker_noop(void **state)
{
	(void)state;
	assert_string_equal(action("{ 'kind': 'native', 'function': 'close_it' }")->function, "close_it");
	assert_string_equal(action("{ 'kind': 'worker', 'queue': 'stock' }")->queue, "stock");
	assert_int_equal(action("{ 'kind': 'noop' }")->kind, ACTION_NOOP);
	refused("{ 'kind': 'native' }", "\"function\" is missing");
	refused("{ 'kind': 'worker', 'queue': 'a|b' }", "name");
	refused("{ 'kind': 'noop', 'timeout': '1s' }", "\"timeout\" does not belong to an action of kind noop");
}

static void default_effects(void **state)
{
	(void)state;
	assert_int_equal(action("{ 'kind': 'http', 'url': 'http://h' }")->effect, EFFECT_CLAIMED);
	assert_int_equal(action("{ 'kind': 'exec', 'argv': ['x'] }")->effect, EFFECT_CLAIMED);
	assert_int_equal(action("{ 'kind': 'native', 'function': 'f' }")->effect, EFFECT_CLAIMED);
	assert_int_equal(action("{ 'kind': 'worker', 'queue': 'q' }")->effect, EFFECT_CLAIMED);
	assert_int_equal(action("{ 'kind': 'noop' }")->effect, EFFECT_IDEMPOTENT);
	assert_int_equal(action("{ 'kind': 'noop', 'effect': 'claimed' }")->effect, EFFECT_CLAIMED);
	assert_int_equal(action("{ 'kind': 'http', 'url': 'http://h' }")->timeout_ms, ACTION_TIMEOUT_MS_DEFAULT);
	assert_string_equal(action_effect_name(EFFECT_CLAIMED), "claimed");
	assert_string_equal(action_kind_name(ACTION_NOOP), "noop");
}

/* A kind is asked by who carries it out, never by its name: each has one answer, and nothing is left to a default. */
static void carried_out_by_somebody(void **state)
{
	static const struct {
		const char *name;
		enum action_by by;
		bool inside, outside, for_workers, has_timeout;
	} kinds[] = {
		{"http", BY_PORT, false, true, false, true},    {"exec", BY_PORT, false, true, false, true},
		{"sql", BY_UNIT, true, false, false, true},     {"native", BY_PORT, false, true, false, true},
		{"worker", BY_WORKER, false, true, true, true}, {"noop", BY_NOBODY, false, false, false, false},
	};

	(void)state;
	assert_int_equal(sizeof kinds / sizeof *kinds, ACTION_KINDS_N);
	for (size_t i = 0; i < ACTION_KINDS_N; i++) {
		const struct action a = {.kind = (enum action_kind)i};

		assert_string_equal(action_kind_name(a.kind), kinds[i].name);
		assert_int_equal(action_kind_by(a.kind), kinds[i].by);
		assert_int_equal(action_is_inside(&a), kinds[i].inside);
		assert_int_equal(action_is_outside(&a), kinds[i].outside);
		assert_int_equal(action_is_for_workers(&a), kinds[i].for_workers);
		assert_int_equal(action_has_timeout(&a), kinds[i].has_timeout);
	}
}

static void transactional_is_sql(void **state)
{
	(void)state;
	refused("{ 'kind': 'http', 'url': 'http://h', 'effect': 'transactional' }",
		"effect transactional does not go with kind http");
	refused("{ 'kind': 'sql', 'effect': 'claimed', 'statements': [ { 'name': 'a', 'sql': 'SELECT 1' } ] }",
		"effect claimed does not go with kind sql");
	action("{ 'kind': 'sql', 'effect': 'transactional', 'statements': [ { 'name': 'a', 'sql': 'SELECT 1' } ] }");
	refused("{ 'kind': 'http', 'url': 'http://h', 'effect': 'key' }",
		"effect is \"key\", which is not known; did you mean \"keyed\"?");
}

static void fields_of_another_kind(void **state)
{
	(void)state;
	refused("{ 'kind': 'http', 'url': 'http://h', 'argv': ['x'] }",
		"\"argv\" does not belong to an action of kind http");
	refused("{ 'kind': 'noop', 'url': 'http://h' }", "\"url\" does not belong to an action of kind noop");
	refused("{ 'kind': 'http', 'ulr': 'x', 'url': 'http://h' }",
		"unknown field: action A: \"ulr\"; did you mean \"url\"?");
	refused("{ 'kind': 'htpp', 'url': 'http://h' }",
		"kind is \"htpp\", which is not known; did you mean \"http\"?");
	refused("{ 'url': 'http://h' }", "\"kind\" is missing");
	refused("7", "an action must be an object, not 7");
}

static void values_are_checked(void **state)
{
	(void)state;
	refused("{ 'kind': 'http', 'url': 'ftp://h' }", "url \"ftp://h\" must begin with http");
	refused("{ 'kind': 'http', 'url': 7 }", "url must be a string, not 7");
	refused("{ 'kind': 'http', 'url': 'http://h', 'timeout': '1.5s' }", "timeout: \"1.5s\" is not a duration");
	refused("{ 'kind': 'http', 'url': 'http://h', 'timeout': 30 }", "timeout must be a duration like \"250ms\"");
	refused("{ 'kind': 'http', 'url': 'http://h', 'max_in_flight': 0 }",
		"max_in_flight is 0; it must be a whole number from 1");
	refused("{ 'kind': 'http', 'url': 'http://h', 'max_in_flight': 1.5 }", "max_in_flight is 1.5");
	refused("{ 'kind': 'http', 'url': 'http://h', 'max_in_flight': 'many' }",
		"max_in_flight must be a whole number");
	refused("{ 'kind': 'http', 'url': 'http://h', 'headers': { 'Idempotency-Key': 'x' } }",
		"written by the engine");
	refused("{ 'kind': 'http', 'url': 'http://h', 'headers': { 'X': 'a\\r\\nY: b' } }", "control characters");
	refused("{ 'kind': 'http', 'url': 'http://h', 'headers': { 'X': 'a', 'x': 'b' } }", "x stands twice");
	refused("{ 'kind': 'http', 'url': 'http://h', 'headers': { 'X': 1 } }", "X must be a string, not 1");
	refused("{ 'kind': 'http', 'url': 'http://h', 'headers': [] }", "headers must be an object, not an array");
}

static void probes(void **state)
{
	const struct workflow *w;

	(void)state;
	w = parse_clean(with_actions("'A': { 'kind': 'http', 'url': 'http://h', 'probe': 'Z' }, "
				     "'Z': { 'kind': 'http', 'url': 'http://h/ask' }"));
	assert_ptr_equal(w->actions[0].probe, &w->actions[1]);
	assert_null(w->actions[1].probe);
	refused("{ 'kind': 'http', 'url': 'http://h', 'probe': 'A' }", "an action that asks itself would act again");
	refused("{ 'kind': 'http', 'url': 'http://h', 'probe': 'B' }", "there is no action \"B\"; there is \"A\"");
	refused("{ 'kind': 'http', 'url': 'http://h', 'probe': { 'kind': 'noop' } }",
		"probe must be a string, not an object");
	refused("{ 'kind': 'noop', 'probe': 'A' }", "\"probe\" does not belong to an action of kind noop");
	assert_errors(with_actions("'A': { 'kind': 'http', 'url': 'http://h', 'probe': 'B' }, 'B': { 'kind': 'noop' }"),
		      1);
	assert_said("probe: B is of kind noop, which answers no question", NULL);
}

static void names(void **state)
{
	(void)state;
	assert_errors(with_actions("'a|b': { 'kind': 'noop' }, '': { 'kind': 'noop' }, 'c d': { 'kind': 'noop' }"), 3);
	assert_said("action \"a|b\": a name has 1 to 64 bytes", NULL);
	assert_errors(
		"{ 'workflow': 'w', 'kind': 'entity', 'status_types': ['a'], 'initial_status': 'a', 'steps': [],\n"
		"'actions': [] }",
		1);
	assert_said("w.json:2: ", "actions must be an object, not an array", NULL);
}

static void found_by_name(void **state)
{
	const struct workflow *w = parse_clean(
		with_actions("'m': { 'kind': 'noop' }, 'z': { 'kind': 'noop' }, 'a': { 'kind': 'noop' }"));
	struct action_list list = {w->actions_n, (struct action *)w->actions}; /* nobody writes there */
	struct reader r = {.findings = &findings};

	(void)state;
	assert_string_equal(action_named(&list, slice_str("a"))->name, "a");
	assert_string_equal(action_named(&list, slice_str("m"))->name, "m");
	assert_string_equal(action_named(&list, slice_str("z"))->name, "z");
	assert_null(action_named(&list, slice_str("mm")));
	assert_string_equal(action_suggest(&r, &list, slice_str("zz")).text, "; did you mean \"z\"?");
	list.n = 0;
	assert_null(action_named(&list, slice_str("a")));
	assert_string_equal(action_suggest(&r, &list, slice_str("a")).text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		model_test(http),
		model_test(exec),
		model_test(sql),
		model_test(statements_at_the_limit),
		model_test(native_worker_noop),
		model_test(default_effects),
		model_test(carried_out_by_somebody),
		model_test(transactional_is_sql),
		model_test(fields_of_another_kind),
		model_test(values_are_checked),
		model_test(probes),
		model_test(names),
		model_test(found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
