/*
 * How PostgreSQL reads many runs in one execution when it has made its plan while there was nothing: by their keys all the same. It keeps
 * that plan until somebody analyzes the tables; one that looks at every row is as good as any until then, and slower with each run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/function.h"
#include "flow/run.h"
#include "support/store.h"

static struct {
	struct store *store;
	struct db *db;
	struct arena arena;
} world;

static int set_up(void **state)
{
	(void)state;
	world.store = store_new(STORE_POSTGRES);
	world.db = store_open_migrated(world.store);
	arena_init(&world.arena, 64u << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	db_close(world.db);
	store_free(world.store);
	arena_release(&world.arena);
	return 0;
}

/* Its set form, asked for its plan. Its arrays are nothing that the planner could look into, as those of a prepared statement are. */
static const struct db_stmt *explained(const struct db_stmt *stmt)
{
	static int counter;
	struct db_stmt *wrapped = arena_zalloc(&world.arena, sizeof *wrapped);
	char *name = arena_alloc(&world.arena, 40);
	struct strbuf form, text;

	strbuf_init(&form, 65536);
	strbuf_init(&text, 65536);
	stmt_expand(stmt, STMT_POSTGRES_SET, &form);
	strbuf_add_char(&form, '\0');
	assert_false(form.failed);
	strbuf_add_str(&text, "EXPLAIN (COSTS OFF) ");
	for (const char *p = form.p; *p; p++) {
		if (*p == '$') {
			strbuf_add_str(&text, "random()::text");
			p += strspn(p + 1, "0123456789");
		} else {
			strbuf_add_char(&text, *p);
		}
	}
	strbuf_add_char(&text, '\0');
	strbuf_release(&form);
	snprintf(name, 40, "explain_%d", ++counter);
	*wrapped = (struct db_stmt){.name = name, .sql = arena_keep(&world.arena, &text).p, .in = "", .out = "t"};
	return wrapped;
}

static bool line_has(const struct db_rows *rows, size_t row, const char *words)
{
	struct slice line = db_cell(rows, row, 0)->s;

	return row < rows->n && memmem(line.p, line.n, words, strlen(words));
}

/* An index, and nothing said of which part of it; or what is asked for is looked for in all that was found. */
static bool reads_all(const struct db_rows *rows, size_t row)
{
	bool scans = line_has(rows, row, "Index Scan") || line_has(rows, row, "Index Only Scan") ||
		     line_has(rows, row, "Seq Scan");

	return (scans && !(row + 1 < rows->n && line_has(rows, row + 1, "Index Cond"))) ||
	       (line_has(rows, row, "Join Filter") && line_has(rows, row, "u.p"));
}

static void check_plan(const struct db_stmt *stmt)
{
	struct unit unit, *units[] = {&unit};
	struct unit_result result;
	struct hx_error err = {0};

	unit_init(&unit, /* op= */ 0);
	unit_add(&unit, UNIT_ANY, explained(stmt), 0, NULL);
	assert_int_equal(world.db->driver->begin(world.db, &err), HX_OK);
	if (world.db->driver->execute(world.db, units, 1, &result, &world.arena, &err) != HX_OK)
		fail_msg("%s: %s", stmt->name, err.detail);
	assert_int_equal(world.db->driver->commit(world.db, &err), HX_OK);
	assert_true(result.rows[0].n > 0);
	for (size_t i = 0; i < result.rows[0].n; i++) {
		if (!reads_all(&result.rows[0], i))
			continue;
		for (size_t k = 0; k < result.rows[0].n; k++)
			printf("# %.*s\n", SLICE_ARGS(db_cell(&result.rows[0], k, 0)->s));
		fail_msg("%s reads all rows of a table", stmt->name);
	}
}

/* Returns how many of its lines have a set form. */
static size_t check_lines(const struct unit *unit)
{
	size_t n = 0;

	for (unsigned i = 0; i < unit->lines_n; i++) {
		if (!stmt_has_set_form(unit->lines[i].stmt))
			continue;
		check_plan(unit->lines[i].stmt);
		n++;
	}
	return n;
}

static void runs_are_shown_by_their_keys(void **state)
{
	LOCAL_UNIT(unit);

	(void)state;
	run_read_shown(&unit, slice_str("default"), 1);
	assert_true(check_lines(&unit) >= 3);
}

static void functions_are_read_by_their_keys(void **state)
{
	struct function_named named = {0}, lean = {.lean = true};
	LOCAL_UNIT(unit);
	LOCAL_UNIT(lean_unit);

	(void)state;
	function_read(&unit, slice_str("default"), 1, &named, /* ended_after= */ 0);
	assert_true(check_lines(&unit) >= 4);
	function_read(&lean_unit, slice_str("default"), 1, &lean, /* ended_after= */ 0);
	assert_int_equal(check_lines(&lean_unit), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(runs_are_shown_by_their_keys, set_up, tear_down),
		cmocka_unit_test_setup_teardown(functions_are_read_by_their_keys, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
