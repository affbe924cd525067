/*
 * What the tests of this folder share: a store in memory whose clock stands still, and answers made up by hand
 * for tasks that have no store at all.
 */
#ifndef HX_TESTS_UNIT_FLOW_WORLD_H
#define HX_TESTS_UNIT_FLOW_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "db/driver.h"
#include "db/migrate.h"
#include "support/subjects.h"
#include "task/task.h"

#define KIND 3
#define START_MS 1000000
#define LEASE_MS 500
#define EFFORT 6

/* ---- a store ---- */

struct world {
	struct fake_clock clock;
	struct db *db;
	struct arena arena;
	struct unit unit;
	struct unit_result result;
	int64_t last_op;
};

static inline int world_set_up(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct migrate_status before;
	struct hx_error err;

	fake_clock_init(&w->clock, (struct wall_time){START_MS});
	arena_init(&w->arena, 64u << 20);
	struct db_options options = {.url = "sqlite::memory:", .clock = &w->clock.clock};

	assert_int_equal(db_open(&options, &w->db, &err), HX_OK);
	assert_int_equal(migrate_run(w->db, &before, &err), HX_OK);
	*state = w;
	return 0;
}

static inline int world_tear_down(void **state)
{
	struct world *w = *state;

	db_close(w->db);
	arena_release(&w->arena);
	free(w);
	return 0;
}

/* A stamp with a fresh op; the unit is begun with it. */
static inline struct stamp world_begin(struct world *w)
{
	struct stamp stamp = {++w->last_op, w->clock.wall, "here"};

	unit_init(&w->unit, stamp.op);
	return stamp;
}

/* Runs w->unit; rows stay until the next call. */
static inline enum unit_verdict world_run(struct world *w)
{
	struct hx_error err = {0};

	arena_reset(&w->arena);
	if (db_run_unit(w->db, &w->unit, &w->result, &w->arena, &err) != HX_OK)
		fail_msg("%s", err.detail);
	return w->result.verdict;
}

static inline int64_t world_int(const struct world *w, size_t row, size_t column)
{
	const struct db_value *cell = db_cell(&w->result.rows[0], row, column);

	assert_int_equal(cell->type, DB_INT);
	return cell->i;
}

static inline void world_create(struct world *w, int64_t subject, const char *status)
{
	struct stamp stamp = world_begin(w);

	subject_create(&w->unit, &stamp, subject, KIND, status);
	assert_int_equal(world_run(w), UNIT_WON);
}

/* Claims `subject` from "open" at the given version; returns the fence. */
static inline int64_t world_claim(struct world *w, int64_t subject, int64_t version)
{
	struct stamp stamp = world_begin(w);
	struct move move = {subject, "open", "busy"};

	subject_claim(&w->unit, &stamp, &move, version, LEASE_MS);
	assert_int_equal(world_run(w), UNIT_WON);
	return world_int(w, 0, 1);
}

/* ---- answers by hand ---- */

#define HAND_CELLS_MAX 256

struct hand {
	struct task *task;
	struct unit unit;
	struct ask ask;
	struct answer answer; /* its now, mono and id move with every answer */
	struct unit_result result;
	struct db_value cells[HAND_CELLS_MAX];
};

static inline void hand_init(struct hand *h, struct task *task)
{
	*h = (struct hand){.task = task, .answer = {.now = {START_MS}, .mono = {77}, .id = 100, .node = "here"}};
}

static inline void assert_same_line(const struct unit_line *a, const struct unit_line *b)
{
	assert_ptr_equal(a->stmt, b->stmt);
	assert_int_equal(a->rule, b->rule);
	assert_int_equal(a->params_n, b->params_n);
	for (unsigned i = 0; i < a->params_n; i++) {
		assert_int_equal(a->params[i].type, b->params[i].type);
		if (a->params[i].type == DB_INT)
			assert_int_equal(a->params[i].i, b->params[i].i);
		else
			assert_true(slice_eq(a->params[i].s, b->params[i].s));
	}
}

static inline void assert_same_unit(const struct unit *a, const struct unit *b)
{
	assert_int_equal(a->op, b->op);
	assert_int_equal(a->lines_n, b->lines_n);
	for (unsigned i = 0; i < a->lines_n; i++)
		assert_same_line(&a->lines[i], &b->lines[i]);
}

/* Gives an answer, then asks; asking twice must give the same. */
static inline enum ask_kind hand_give(struct hand *h, enum answer_kind kind)
{
	struct unit again;
	struct ask second = {.unit = &again};

	h->answer.kind = kind;
	h->answer.id++;
	h->answer.now.ms++;
	h->answer.mono.ns++;
	assert_true(task_take(h->task, h->task->turn, &h->answer));
	h->ask = (struct ask){.unit = &h->unit};
	h->task->kind->ask(h->task, &h->ask);
	h->task->kind->ask(h->task, &second);
	assert_int_equal(h->ask.kind, second.kind);
	if (h->ask.kind == ASK_COMMIT)
		assert_same_unit(&h->unit, &again);
	return h->ask.kind;
}

/* Of one that asks to sleep: what the wall clock shows when it is woken, if nobody sets it meanwhile. */
static inline int64_t hand_wakes_ms(const struct hand *h)
{
	return h->answer.now.ms + (h->ask.until.ns - h->answer.mono.ns) / 1000000;
}

/* Until it wakes; the next answer comes after that. */
static inline void hand_sleep_out(struct hand *h)
{
	h->answer.now.ms = hand_wakes_ms(h);
	h->answer.mono = h->ask.until;
}

static inline enum ask_kind hand_start(struct hand *h)
{
	return hand_give(h, ANSWER_START);
}

static inline enum ask_kind hand_verdict(struct hand *h, enum unit_verdict verdict)
{
	h->result.verdict = verdict;
	h->result.rows[0] = (struct db_rows){.cells = h->cells};
	h->answer.result = &h->result;
	return hand_give(h, ANSWER_COMMIT);
}

/* The unit was won with these rows of its first line. */
static inline enum ask_kind hand_rows(struct hand *h, size_t n, size_t columns, const struct db_value *cells)
{
	assert_true(n * columns <= HAND_CELLS_MAX);
	if (n)
		memcpy(h->cells, cells, n * columns * sizeof *cells);
	h->result = (struct unit_result){.verdict = UNIT_WON, .line = -1};
	h->result.rows[0] = (struct db_rows){n, columns, h->cells};
	h->answer.result = &h->result;
	return hand_give(h, ANSWER_COMMIT);
}

static inline enum ask_kind hand_no_rows(struct hand *h, size_t columns)
{
	return hand_rows(h, 0, columns, NULL);
}

static inline enum ask_kind hand_failed(struct hand *h, enum hx_code code)
{
	h->result.error.code = code;
	return hand_verdict(h, UNIT_FAILED);
}

static inline enum ask_kind hand_acted(struct hand *h, enum act_outcome outcome)
{
	h->answer.outcome = outcome;
	return hand_give(h, ANSWER_ACT);
}

/* What a subject_read and what a change of status answer with. */
static inline enum ask_kind hand_subject(struct hand *h, const char *status, int64_t version, int64_t fence)
{
	return hand_rows(
		h, 1, 5,
		(const struct db_value[]){db_str(status), db_int(version), db_int(fence), db_null(), db_int(EFFORT)});
}

static inline enum ask_kind hand_changed(struct hand *h, int64_t version, int64_t fence)
{
	return hand_rows(h, 1, 3, (const struct db_value[]){db_int(version), db_int(fence), db_int(EFFORT)});
}

static inline const char *hand_stmt(const struct hand *h)
{
	assert_int_equal(h->ask.kind, ASK_COMMIT);
	assert_true(h->unit.lines_n > 0);
	return h->unit.lines[0].stmt->name;
}

static inline const char *hand_where(const struct hand *h)
{
	return h->task->kind->where(h->task);
}

static inline void hand_assert_done(const struct hand *h, enum hx_code code)
{
	assert_int_equal(h->ask.kind, ASK_DONE);
	assert_string_equal(hx_code_name(h->ask.code), hx_code_name(code));
	assert_string_equal(hand_where(h), "done");
}

/* ---- a task over the store ---- */

/* Runs a task that only commits to its end and returns what it was done with. */
static inline enum hx_code world_drive(struct world *w, struct task *task)
{
	struct ask ask = {.unit = &w->unit};
	struct answer answer = {.kind = ANSWER_START, .node = "here"};

	for (;;) {
		answer.now = w->clock.wall;
		answer.mono = w->clock.mono;
		answer.id = ++w->last_op;
		assert_true(task_take(task, task->turn, &answer));
		task->kind->ask(task, &ask);
		if (ask.kind == ASK_DONE)
			return ask.code;
		assert_int_equal(ask.kind, ASK_COMMIT);
		(void)world_run(w); /* whatever the verdict: the task hears it */
		answer.kind = ANSWER_COMMIT;
		answer.result = &w->result;
	}
}

#endif
