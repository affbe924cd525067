/* See runner.h. */
#include "engine/runner.h"

#include <pthread.h>

#include "flow/single.h"

static enum hx_code run_direct(struct runner *runner, struct unit *unit, struct unit_result *ret_result,
			       struct arena *arena, struct hx_error *err)
{
	return db_run_unit(((struct direct_runner *)runner)->db, unit, ret_result, arena, err);
}

void direct_runner_init(struct direct_runner *runner, struct db *db)
{
	*runner = (struct direct_runner){{run_direct, db->driver == &db_postgres}, db};
}

/* Somebody waits for this seat. */
struct waiting {
	struct seat seat;
	struct single single;
	struct unit *unit;
	struct unit_result *result;
	struct arena *arena;
	pthread_mutex_t mutex;
	pthread_cond_t ended;
	bool is_done;
	enum hx_code code;
};

static void build(const struct single *single, struct unit *unit)
{
	const struct waiting *w = single->context;

	*unit = *w->unit;
}

/* Rows belong to the lane's batch: they are copied before it is forgotten. */
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

static enum hx_code answered(struct single *single, const struct unit_result *result)
{
	struct waiting *w = single->context;

	*w->result = *result;
	for (unsigned i = 0; i < w->unit->lines_n; i++)
		copy_rows(&w->result->rows[i], w->arena);
	return w->arena->failed ? HX_TOO_LARGE : HX_OK;
}

static void done(struct seat *seat, enum hx_code code)
{
	struct waiting *w = (struct waiting *)seat;

	pthread_mutex_lock(&w->mutex);
	w->is_done = true;
	w->code = code;
	pthread_cond_signal(&w->ended);
	pthread_mutex_unlock(&w->mutex);
}

static enum hx_code run_in_lane(struct runner *runner, struct unit *unit, struct unit_result *ret_result,
				struct arena *arena, struct hx_error *err)
{
	struct waiting w = {.unit = unit, .result = ret_result, .arena = arena};
	enum hx_code code;

	single_init(&w.single, &w, build, answered);
	w.seat = (struct seat){.task = &w.single.task, .done = done};
	pthread_mutex_init(&w.mutex, NULL);
	pthread_cond_init(&w.ended, NULL);
	code = lane_submit(((struct lane_runner *)runner)->lane, &w.seat);
	if (!code) {
		pthread_mutex_lock(&w.mutex);
		while (!w.is_done)
			pthread_cond_wait(&w.ended, &w.mutex);
		pthread_mutex_unlock(&w.mutex);
		code = w.code;
	}
	pthread_cond_destroy(&w.ended);
	pthread_mutex_destroy(&w.mutex);
	return code ? error_set(err, code, "%s", hx_code_text(code)) : HX_OK;
}

void lane_runner_init(struct lane_runner *runner, struct lane *lane, bool postgres)
{
	*runner = (struct lane_runner){{run_in_lane, postgres}, lane};
}
