/* See runner.h. */
#include "engine/runner.h"

#include "base/latch.h"
#include "task/states.h"

static enum hx_code run_direct(struct runner *runner, struct unit *unit, struct unit_result *ret_result,
			       struct arena *arena, struct hx_error *err)
{
	return db_run_unit(((struct direct_runner *)runner)->db, unit, ret_result, arena, err);
}

void direct_runner_init(struct direct_runner *runner, struct db *db)
{
	*runner = (struct direct_runner){{run_direct, db->driver == &db_postgres}, db};
}

/*
 * Somebody waits for this one. It keeps the store's words about a unit that failed: the trials of sql actions
 * (definitions.c) are about them. The task asks for its unit, and is done with whatever the answer is.
 */
struct asked {
	struct task task;
	struct seat seat;
	const struct unit *unit;
	struct unit_result *result;
	struct arena *arena;
	struct hx_error error;
	struct latch latch;
};

enum { ASKED_NEW, ASKED_SENT, ASKED_DONE };

/* Rows belong to the lane's group: they are copied before it is forgotten. */
static void copy_rows(struct db_rows *rows, struct arena *arena)
{
	size_t n = rows->n * rows->columns;
	struct db_value *cells = arena_alloc(arena, n * sizeof *cells);

	for (size_t i = 0; cells && i < n; i++) {
		cells[i] = rows->cells[i];
		if (cells[i].type == DB_TEXT || cells[i].type == DB_BLOB)
			cells[i].s = arena_copy(arena, cells[i].s);
	}
	rows->cells = cells;
}

static void take_asked(struct asked *a, const struct answer *answer)
{
	if (answer->result->verdict == UNIT_UNKNOWN) {
		(void)error_set(&a->error, HX_OUTCOME_UNKNOWN, "%s", hx_code_text(HX_OUTCOME_UNKNOWN));
	} else if (answer->result->verdict == UNIT_FAILED) {
		a->error = answer->result->error;
	} else {
		*a->result = *answer->result;
		for (unsigned i = 0; i < a->unit->lines_n; i++)
			copy_rows(&a->result->rows[i], a->arena);
		if (a->arena->failed)
			(void)arena_error(a->arena, &a->error);
	}
	task_end(&a->task, a->error.code);
}

TASK_UNIT(build_asked, struct asked, a, *unit = *a->unit);

static const TASK_STATES(struct asked) asked_states[] = {
	[ASKED_NEW] = {"new", .then = ASKED_SENT},
	[ASKED_SENT] = {"sent", take_asked, build_asked},
	[ASKED_DONE] = {"done"},
};

TASK_KIND(asked_kind, "asked", struct asked, asked_states);

static void asked_done(struct seat *seat, enum hx_code code)
{
	struct asked *a = (struct asked *)((char *)seat - offsetof(struct asked, seat));

	latch_open_with(&a->latch, code);
}

static enum hx_code ask_lane(struct runner *runner, struct unit *unit, struct unit_result *ret_result,
			     struct arena *arena, struct hx_error *err)
{
	struct asked a = {.unit = unit, .result = ret_result, .arena = arena};
	enum hx_code code;

	task_init(&a.task, &asked_kind, /* topic= */ 0);
	a.seat = (struct seat){.task = &a.task, .done = asked_done};
	latch_init(&a.latch);
	code = lane_submit(((struct lane_runner *)runner)->lane, &a.seat);
	if (!code)
		code = latch_wait(&a.latch);
	latch_release(&a.latch);
	if (!code)
		return HX_OK;
	return error_set(err, code, "%s", code == a.error.code ? a.error.detail : hx_code_text(code));
}

void lane_runner_init(struct lane_runner *runner, struct lane *lane, bool postgres)
{
	*runner = (struct lane_runner){{ask_lane, postgres}, lane};
}
