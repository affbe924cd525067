/* What retention lets go, and what it leaves alone: by age, by status, and by what somebody else did a moment before. */
#include "unit/flow/world.h"

#include <stdio.h>

#include "flow/run.h"

#define AGE_MS 1000
#define RUN 50

static void sql(struct world *w, const char *text)
{
	struct hx_error err;

	if (w->db->driver->script(w->db, text, &err))
		fail_msg("%s", err.detail);
}

/* A run in this status that ended at START_MS, with two steps, an event and a history of two rows. */
static void make_run(struct world *w, int64_t id, const char *status)
{
	struct stamp stamp = world_begin(w);
	char text[2000];

	subject_create(&w->unit, &stamp, id, run_kind(), RUN_PENDING);
	assert_int_equal(world_run(w), UNIT_WON);
	stamp = world_begin(w);
	subject_transition(&w->unit, &stamp, &(struct move){id, RUN_PENDING, status}, 1);
	assert_int_equal(world_run(w), UNIT_WON);
	snprintf(text, sizeof text,
		 "INSERT INTO run (subject, workspace, workflow, definition_version, run_key, requester, trace, input,"
		 " output, error, created_at, completed_at) VALUES (%lld, 'w', 'order', 3, 'key-%lld', 'ann', 'trace',"
		 " '{\"a\":1}', '2', '{}', 1, %s);"
		 "INSERT INTO run_step (run, position, status, attempt, output, started_at, completed_at) VALUES"
		 " (%lld, 0, 'COMPLETED', 1, '1', 1, 1), (%lld, 1, 'COMPLETED', 1, '1', 1, 1);"
		 "INSERT INTO run_event (run, id, name, data, at) VALUES (%lld, 'e', 'event paid', '{}', 1)",
		 (long long)id, (long long)id, run_is_terminal(status) ? "1000000" : "NULL", (long long)id,
		 (long long)id, (long long)id);
	sql(w, text);
}

static int64_t number(struct world *w, const char *text, int64_t id)
{
	struct db_stmt stmt = {.name = "test_number", .sql = text, .in = "i", .out = "i"};
	struct hx_error err;
	struct unit_result result;
	struct arena arena;
	struct unit unit;
	struct db *db;
	int64_t value;

	/* A connection knows statements by their address, and this one is gone in a moment. */
	(void)w;
	(void)db;
	arena_init(&arena, 1u << 20);
	unit_init(&unit, 0);
	UNIT_ADD(&unit, UNIT_ANY, &stmt, db_int(id));
	assert_int_equal(db_run_unit(w->db, &unit, &result, &arena, &err), HX_OK);
	value = result.rows[0].n ? db_cell(&result.rows[0], 0, 0)->i : -1;
	arena_release(&arena);
	return value;
}
