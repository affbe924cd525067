/* Sql actions: statements made ready, and what their parameters become, for entities and runs alike. */
#include "flow/sql_action.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/run.h"

static struct arena arena;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, 1u << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static const struct action_statement statements[] = {
	{.name = "first", .sql = "INSERT … ?1 ?2", .params_n = 2, .params = {"id", "input.a.b"}},
	{.name = "second", .sql = "DELETE …"},
	{.name = "third",
	 .sql = "UPDATE … ?1 … ?10",
	 .must = true,
	 .params_n = 10,
	 .params = {"workflow", "requester", "version", "key", "now", "input", "input.text", "input.big", "input.list",
		    "input.nothing"}},
};

static const struct action actions[] = {
	{.name = "call", .kind = ACTION_HTTP, .url = "http://h/"},
	{.name = "book", .kind = ACTION_SQL, .timeout_ms = 5000, .statements_n = 3, .statements = statements},
};

static struct sql_params params_with(const char *input)
{
	return (struct sql_params){
		.id = slice_str("run_1"),
		.workflow = slice_str("order"),
		.requester = slice_str("admin"),
		.key = slice_str("run_1/book/0"),
		.version = 7,
		.now = {1234},
		.input = json_trust(slice_str(input)),
	};
}

static void assert_text(const struct db_value *value, const char *text)
{
	assert_int_equal(value->type, DB_TEXT);
	assert_int_equal(value->s.n, strlen(text));
	assert_memory_equal(value->s.p, text, value->s.n);
}

static void assert_number(const struct db_value *value, int64_t number)
{
	assert_int_equal(value->type, DB_INT);
	assert_int_equal(value->i, number);
}

static void values_are_looked_up(void **state)
{
	static const char input[] = "{\"a\":{\"b\":-5},\"text\":\"\\u0041\\n\",\"big\":9007199254740993.5,"
				    "\"list\":[1, 2],\"nothing\":null}";
	struct sql_params params = params_with(input);
	const struct db_value *v = sql_action_values(&actions[1], &params, &arena);

	(void)state;
	assert_text(&v[0], "run_1");
	assert_number(&v[1], -5);
	assert_text(&v[2], "order");
	assert_text(&v[3], "admin");
	assert_number(&v[4], 7);
	assert_text(&v[5], "run_1/book/0");
	assert_number(&v[6], 1234);
	assert_text(&v[7], input);
	assert_text(&v[8], "A\n");
	assert_text(&v[9], "9007199254740993.5");
	assert_text(&v[10], "[1, 2]");
	assert_int_equal(v[11].type, DB_NULL);
}

/* What is not there is NULL, whatever the input of the step is. */
static void what_is_missing_is_null(void **state)
{
	static const char *const inputs[] = {"{}", "{\"a\":1}", "{\"a\":{\"c\":1}}", "[]", "null", "\"a\"", "5"};

	(void)state;
	for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
		struct sql_params params = params_with(inputs[i]);
		const struct db_value *v = sql_action_values(&actions[1], &params, &arena);

		assert_int_equal(v[1].type, DB_NULL);
		assert_int_equal(v[8].type, DB_NULL);
		assert_text(&v[7], inputs[i]);
	}
}

static void a_full_arena_guesses_nothing(void **state)
{
	struct sql_params params = params_with("{\"text\":\"\\u0041 long enough to need a copy of its own\"}");
	bool refused = false, done = false;

	(void)state;
	for (size_t room = 0; room < 2048 && !done; room += 16) {
		struct arena small;

		arena_init(&small, room);
		done = sql_action_values(&actions[1], &params, &small) != NULL;
		refused |= !done;
		assert_int_equal(done, !small.failed);
		arena_release(&small);
	}
	assert_true(refused && done);
}

static void statements_go_into_the_unit(void **state)
{
	const struct sql_action *sql = sql_actions_new(actions, 2, &arena);
	struct sql_params params = params_with("{}");
	const struct db_value *values = sql_action_values(&actions[1], &params, &arena);
	struct unit unit;

	(void)state;
	assert_int_equal(sql[0].n, 0);
	assert_int_equal(sql[1].n, 3);
	assert_string_equal(sql[1].stmts[0]->in, "ss");
	assert_string_equal(sql[1].stmts[1]->in, "");
	assert_string_equal(sql[1].stmts[2]->in, "ssssssssss");
	unit_init(&unit, /* op= */ 1);
	sql_action_add(&unit, &sql[0], &actions[0], NULL, /* timeout_ms= */ 0);
	assert_int_equal(unit.lines_n, 0);
	assert_int_equal(unit.limit_ms, 0);
	sql_action_add(&unit, &sql[1], &actions[1], values, /* timeout_ms= */ 0);
	assert_int_equal(unit.lines_n, 3);
	assert_int_equal(unit.limit_ms, actions[1].timeout_ms);
	unit_init(&unit, /* op= */ 1);
	sql_action_add(&unit, &sql[1], &actions[1], values, /* timeout_ms= */ 77); /* of the step */
	assert_int_equal(unit.limit_ms, 77);
	for (size_t i = 0; i < 3; i++) {
		assert_ptr_equal(unit.lines[i].stmt, sql[1].stmts[i]);
		assert_int_equal(unit.lines[i].rule, statements[i].must ? UNIT_MUST : UNIT_ANY);
	}
	assert_text(&unit.lines[0].params[0], "run_1");
	assert_text(&unit.lines[2].params[0], "order");
}

static void a_run_machine_has_them(void **state)
{
	const struct run_definition definition = {.name = "order", .actions_n = 2, .actions = actions};
	const struct run_machine *machine = run_machine_new(&definition, 4, &arena);
	struct arena small;

	(void)state;
	assert_ptr_equal(machine->definition, &definition);
	assert_int_equal(machine->version, 4);
	assert_int_equal(machine->sql[0].n, 0);
	assert_int_equal(machine->sql[1].n, 3);
	arena_init(&small, 64);
	assert_null(run_machine_new(&definition, 4, &small));
	arena_release(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		T(values_are_looked_up),        T(what_is_missing_is_null), T(a_full_arena_guesses_nothing),
		T(statements_go_into_the_unit), T(a_run_machine_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
