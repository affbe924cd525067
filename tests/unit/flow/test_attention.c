/* attention.c: what its texts rest on. What is listed is seen in tests/http/test_why.c, for every kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "db/driver.h"
#include "db/migrate.h"
#include "flow/attention.h"
#include "flow/run.h"

static void the_kind_of_runs_is_that_of_the_index(void **state)
{
	(void)state;
	assert_true(strtoll(ATTENTION_RUNS, NULL, 10) == run_kind());
}

static void there_is_a_kind_for_each_place(void **state)
{
	size_t n = 0;

	(void)state;
	while (attention_kinds[n])
		n++;
	assert_int_equal(n, ATTENTION_KINDS);
}

/* How the store would carry out the only line of this unit. */
static void explain(struct db *db, const struct unit *asked, struct strbuf *out)
{
	static char sql[1 << 14];
	static struct db_stmt stmt = {.name = "explain", .sql = sql, .out = "iiit"};
	struct db_value args[8] = {0};
	struct unit_result result;
	struct unit unit;
	struct arena arena;
	struct hx_error err;

	snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", asked->lines[0].stmt->sql);
	stmt.in = asked->lines[0].stmt->in;
	arena_init(&arena, 1u << 20);
	unit_init(&unit, 0);
	for (size_t i = 0; stmt.in[i]; i++)
		args[i] = stmt.in[i] == 'i' ? db_int(1) : db_str("");
	unit_add(&unit, UNIT_ANY, &stmt, strlen(stmt.in), args);
	if (db_run_unit(db, &unit, &result, &arena, &err))
		fail_msg("%s", err.detail);
	for (size_t i = 0; i < result.rows[0].n; i++) {
		strbuf_add_slice(out, db_cell(&result.rows[0], i, 3)->s);
		strbuf_add_char(out, '\n');
	}
	arena_release(&arena);
}

/* Whoever asks, and however much there is that waits for nobody: it is found by indexes of what waits. */
static void nothing_else_is_looked_at(void **state)
{
	static const char *const found[] = {
		"INDEX hx_subject_claimed", "INDEX hx_run_attention",   "INDEX hx_subject_paused",
		"INDEX hx_job_attention",   "INDEX hx_batch_attention", "INDEX hx_gate_record_held",
	};
	struct db_options options = {.url = "sqlite::memory:", .clock = clock_system()};
	struct attention_filter filter = {.limit = 1};
	struct migrate_status before;
	struct hx_error err;
	struct strbuf plan;
	struct db *db;

	(void)state;
	if (db_open(&options, &db, &err) || migrate_run(db, &before, &err))
		fail_msg("%s", err.detail);
	strbuf_init(&plan, 1u << 16);
	for (int counts = 0; counts < 3; counts++) {
		struct unit unit;

		unit_init(&unit, 0);
		filter.by_money = counts == 2;
		if (counts == 1)
			attention_count(&unit, 1, 1);
		else
			attention_list(&unit, &filter);
		strbuf_reset(&plan);
		explain(db, &unit, &plan);
		for (size_t i = 0; i < sizeof found / sizeof *found; i++)
			if (!strstr(plan.p, found[i]))
				fail_msg("no %s in\n%s", found[i], plan.p);
	}
	strbuf_release(&plan);
	db_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kind_of_runs_is_that_of_the_index),
		cmocka_unit_test(there_is_a_kind_for_each_place),
		cmocka_unit_test(nothing_else_is_looked_at),
	};

	return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
