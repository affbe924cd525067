/*
 * Runs that are read to be shown, several in one group, as those are whose callers wait: each has the steps of its own function and no
 * other's, in their order. On PostgreSQL that is one execution for all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/run.h"
#include "support/store.h"

#define RUNS 3
#define UNDONE_COLUMN 17 /* the last: when the step was undone */

#define ENTRY(run, i, about, label, done_at)                                                                                       \
	"INSERT INTO hx_entry (run, i, kind, about, name, n, label, seq, state, ended, attempt, detail, started_at, completed_at)" \
	" VALUES (" run ", " i ", 'step', '" about "', 'a', 0, '" label "', " i ", 'done', 1, 1, '{}', 1, " done_at                \
	");"

/* Run 1 has two steps, of which the second was undone; run 2 has none, and run 3 one of the same label, that was not. */
static const char entries[] = ENTRY("1", "1", "", "0:b", "11") ENTRY("1", "0", "", "0:a", "10")
	ENTRY("1", "2", "undo", "0:b", "12") ENTRY("3", "0", "", "0:b", "30");

static void each_has_its_own_steps(void **state)
{
	struct store *store = store_new(*(const enum store_kind *)*state);
	struct db *db = store_open_migrated(store);
	struct unit units[RUNS], *each[RUNS];
	struct unit_result results[RUNS];
	const struct db_rows *rows[RUNS];
	struct arena arena;
	struct hx_error err;

	arena_init(&arena, 1u << 20);
	assert_int_equal(db->driver->script(db, entries, &err), HX_OK);
	for (int i = 0; i < RUNS; i++) {
		unit_init(&units[i], /* op= */ 0);
		run_read_shown(&units[i], slice_str("default"), i + 1);
		each[i] = &units[i];
	}
	assert_int_equal(db->driver->begin(db, &err), HX_OK);
	if (db->driver->execute(db, each, RUNS, results, &arena, &err) != HX_OK)
		fail_msg("%s", err.detail);
	assert_int_equal(db->driver->commit(db, &err), HX_OK);
	for (int i = 0; i < RUNS; i++)
		rows[i] = &results[i].rows[RUN_LINE_ENTRIES];
	assert_true(rows[0]->n == 2 && rows[1]->n == 0 && rows[2]->n == 1);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(db_cell(rows[0], i, 0)->i, i);
	assert_int_equal(db_cell(rows[0], 0, UNDONE_COLUMN)->type, DB_NULL);
	assert_int_equal(db_cell(rows[0], 1, UNDONE_COLUMN)->i, 12);
	assert_int_equal(db_cell(rows[2], 0, UNDONE_COLUMN)->type, DB_NULL);
	arena_release(&arena);
	db_close(db);
	store_free(store);
}

int main(void)
{
	static enum store_kind sqlite = STORE_SQLITE_FILE, postgres = STORE_POSTGRES;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(each_has_its_own_steps, &sqlite),
		cmocka_unit_test_prestate(each_has_its_own_steps, &postgres),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
