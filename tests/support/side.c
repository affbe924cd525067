/* See side.h. A mailbox of one step between the test's thread and the side's own. */
#include "support/side.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "support/ledger.h"

#define ARENA_BYTES_MAX (16u << 20)
#define DEADLINE_MS 60000
#define LOOK_AFTER_NS 300000 /* how long a step may take before it is asked whether it is blocked */

struct side {
	pthread_t thread;
	struct db *db;
	char name[32];
	char is_blocked[80]; /* what the watcher asks; empty until it has */
	struct arena arena;
	struct strbuf outcome;

	/* Of the thread, while a step is on its way. */
	struct side_plan plan;
	struct unit piece, batch[2]; /* batch: the driver takes units that are not const */
	struct unit_result result;
	unsigned step;
	bool begun;
	bool failed;

	pthread_mutex_t mutex; /* guards all below */
	pthread_cond_t changed;
	bool posted, quit;
	enum side_state state;
};

/* ---- the side's thread ---- */

static void failed(struct side *side, enum hx_code code, const struct hx_error *err)
{
	side->failed = true;
	strbuf_addf(&side->outcome, "failed: %s, %s\n", hx_code_name(code), err->detail);
}

static void end(struct side *side)
{
	struct hx_error err = {0};
	enum hx_code code = HX_OK;

	/* Alone in its transaction, a unit that lost late is undone with it; the driver would use a savepoint. */
	if (!side->plan.commits || (!side->plan.whole && side->result.verdict != UNIT_WON)) {
		side->db->driver->rollback(side->db);
	} else if (!side->failed) {
		code = side->db->driver->commit(side->db, &err);
		if (code)
			failed(side, code, &err);
	}
	if (side->failed)
		return;
	if (!side->plan.commits) {
		strbuf_add_str(&side->outcome, "rolled back\n");
		return;
	}
	strbuf_addf(&side->outcome, "%s, line %d\n", unit_verdict_name(side->result.verdict), side->result.line);
	ledger_write_rows(side->plan.unit, &side->result, &side->outcome);
}

static enum hx_code execute_whole(struct side *side, struct hx_error *err)
{
	struct unit *units[2] = {&side->batch[0], &side->batch[1]};
	struct unit_result results[2];
	enum hx_code code;

	side->batch[0] = *side->plan.unit;
	if (side->plan.twin)
		side->batch[1] = *side->plan.twin;
	code = side->db->driver->execute(side->db, units, side->plan.twin ? 2 : 1, results, &side->arena, err);
	if (!code)
		side->result = results[0];
	return code;
}

/* Units of the gate name no rows that could be locked. */
static bool locks(const struct unit *unit)
{
	return unit->subjects_n && unit->subjects[0] >= 0;
}

/* Step 0 is a unit without lines, which only locks; step n is line n-1 alone. */
static enum hx_code execute_piece(struct side *side, struct hx_error *err)
{
	struct unit *unit = &side->piece;
	struct unit_result result;
	enum hx_code code;

	*unit = *side->plan.unit;
	if (side->step == 0) {
		unit->lines_n = 0;
	} else {
		unit->lines[0] = side->plan.unit->lines[side->step - 1];
		unit->lines_n = 1;
		unit->subjects_n = 0;
		unit->apart = 0;
	}
	code = side->db->driver->execute(side->db, &unit, 1, &result, &side->arena, err);
	if (code || side->step == 0)
		return code;
	side->result.rows[side->step - 1] = result.rows[0];
	side->result.verdict = result.verdict;
	side->result.line = result.verdict == UNIT_WON ? -1 : (int)side->step - 1;
	return HX_OK;
}

/* All lines that are left, as the driver runs a unit that is alone. */
static enum hx_code execute_rest(struct side *side, struct hx_error *err)
{
	const struct unit *whole = side->plan.unit;
	unsigned first = side->step - 1;
	struct unit *unit = &side->piece;
	struct unit_result result;
	enum hx_code code;

	*unit = *whole;
	unit->lines_n = whole->lines_n - first;
	memcpy(unit->lines, &whole->lines[first], unit->lines_n * sizeof *unit->lines);
	unit->subjects_n = 0;
	unit->apart = 0;
	unit->together = NULL;
	side->step = whole->lines_n;
	code = side->db->driver->execute(side->db, &unit, 1, &result, &side->arena, err);
	if (code)
		return code;
	memcpy(&side->result.rows[first], result.rows, unit->lines_n * sizeof *result.rows);
	side->result.verdict = result.verdict;
	side->result.line = result.verdict == UNIT_WON ? -1 : (int)first + result.line;
	return HX_OK;
}

/* Goes on to where there is something to do. True: that is the end. */
static bool is_at_end(struct side *side)
{
	unsigned last = side->plan.whole ? 1 : side->plan.unit->lines_n + 1;

	while (!side->plan.whole && side->step > 0 && side->step < last &&
	       stmt_is_empty(side->plan.unit->lines[side->step - 1].stmt, STMT_POSTGRES_ROW))
		side->step++;
	return side->failed || side->result.verdict != UNIT_WON || side->step == last;
}

/* Takes one step, or all lines that are left as one; true when it was the last. */
static bool take_step(struct side *side, bool rest)
{
	struct hx_error err = {0};
	enum hx_code code = HX_OK;

	if (is_at_end(side)) {
		end(side);
		return true;
	}
	if (!side->begun)
		code = side->db->driver->begin(side->db, &err);
	side->begun = true;
	if (!code)
		code = side->plan.whole ? execute_whole(side, &err)
		       : rest           ? execute_rest(side, &err)
					: execute_piece(side, &err);
	if (code)
		failed(side, code, &err);
	side->step++;
	return false;
}

static void *run(void *context)
{
	struct side *side = context;

	pthread_mutex_lock(&side->mutex);
	while (!side->quit) {
		bool ended;

		if (!side->posted) {
			pthread_cond_wait(&side->changed, &side->mutex);
			continue;
		}
		pthread_mutex_unlock(&side->mutex);
		ended = take_step(side, /* rest= */ false);
		pthread_mutex_lock(&side->mutex);
		side->posted = false;
		side->state = ended ? SIDE_ENDED : SIDE_READY;
		pthread_cond_broadcast(&side->changed);
	}
	pthread_mutex_unlock(&side->mutex);
	return NULL;
}

/* ---- the test's thread ---- */

struct side *side_new(const struct store *store, const char *name)
{
	struct side *side = calloc(1, sizeof *side);

	assert_non_null(side);
	snprintf(side->name, sizeof side->name, "%s", name);
	side->db = store_open_hasty(store, name);
	arena_init(&side->arena, ARENA_BYTES_MAX);
	strbuf_init(&side->outcome, 65536);
	side->state = SIDE_ENDED;
	pthread_mutex_init(&side->mutex, NULL);
	pthread_cond_init(&side->changed, NULL);
	assert_int_equal(pthread_create(&side->thread, NULL, run, side), 0);
	return side;
}

void side_free(struct side *side)
{
	if (!side)
		return;
	pthread_mutex_lock(&side->mutex);
	side->quit = true;
	pthread_cond_broadcast(&side->changed);
	pthread_mutex_unlock(&side->mutex);
	pthread_join(side->thread, NULL);
	db_close(side->db);
	arena_release(&side->arena);
	strbuf_release(&side->outcome);
	pthread_cond_destroy(&side->changed);
	pthread_mutex_destroy(&side->mutex);
	free(side);
}

void side_start(struct side *side, const struct side_plan *plan)
{
	pthread_mutex_lock(&side->mutex);
	ASSERT(side->state == SIDE_ENDED && !side->posted);
	side->state = SIDE_READY;
	side->plan = *plan;
	side->step = plan->whole || locks(plan->unit) ? 0 : 1;
	side->begun = false;
	side->failed = false;
	memset(&side->result, 0, sizeof side->result);
	side->result.line = -1;
	arena_reset(&side->arena);
	strbuf_reset(&side->outcome);
	pthread_mutex_unlock(&side->mutex);
}

/*
 * Does its connection wait for a lock? Asked by its number, which stays: to look through pg_stat_activity each time took longer
 * than most of the steps.
 */
static bool is_blocked(struct side *side, PGconn *watcher)
{
	char sql[120], cell[32];

	if (!side->is_blocked[0]) {
		snprintf(sql, sizeof sql, "SELECT pid FROM pg_stat_activity WHERE application_name = '%s'", side->name);
		raw_run(watcher, sql, cell, sizeof cell);
		snprintf(side->is_blocked, sizeof side->is_blocked, "SELECT cardinality(pg_blocking_pids(%s)) > 0",
			 cell);
	}
	raw_run(watcher, side->is_blocked, cell, sizeof cell);
	return cell[0] == 't';
}

/* Waits for the step on its way, until it is done or `is blocked` can be said. */
static enum side_state await(struct side *side, PGconn *watcher, bool until_done)
{
	struct mono_time deadline = mono_add_ms(clock_mono(clock_system()), DEADLINE_MS);

	for (;;) {
		struct timespec until;
		enum side_state state;
		bool posted;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LOOK_AFTER_NS;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_mutex_lock(&side->mutex);
		while (side->posted && pthread_cond_timedwait(&side->changed, &side->mutex, &until) != ETIMEDOUT)
			;
		posted = side->posted;
		state = side->state;
		pthread_mutex_unlock(&side->mutex);
		if (!posted)
			return state;
		if (!until_done && is_blocked(side, watcher))
			break;
		if (clock_mono(clock_system()).ns >= deadline.ns)
			fail_msg("%s: its step neither ends nor waits for a lock", side->name);
	}
	pthread_mutex_lock(&side->mutex);
	if (side->posted)
		side->state = SIDE_BLOCKED;
	enum side_state state = side->state;

	pthread_mutex_unlock(&side->mutex);
	return state;
}

/* Without its thread: two changes of threads less. */
enum side_state side_step_free(struct side *side, bool rest)
{
	enum side_state state;
	bool ended;

	pthread_mutex_lock(&side->mutex);
	ASSERT(side->state == SIDE_READY && !side->posted);
	pthread_mutex_unlock(&side->mutex);
	ended = take_step(side, rest && !side->plan.whole && side->step > 0);
	pthread_mutex_lock(&side->mutex);
	state = side->state = ended ? SIDE_ENDED : SIDE_READY;
	pthread_mutex_unlock(&side->mutex);
	return state;
}

enum side_state side_step(struct side *side, PGconn *watcher)
{
	pthread_mutex_lock(&side->mutex);
	ASSERT(side->state == SIDE_READY && !side->posted);
	side->posted = true;
	pthread_cond_broadcast(&side->changed);
	pthread_mutex_unlock(&side->mutex);
	return await(side, watcher, /* until_done= */ false);
}

enum side_state side_await(struct side *side, PGconn *watcher)
{
	return await(side, watcher, /* until_done= */ true);
}

enum side_state side_state(struct side *side)
{
	enum side_state state;

	pthread_mutex_lock(&side->mutex);
	state = side->state;
	pthread_mutex_unlock(&side->mutex);
	return state;
}

bool side_is_idle(struct side *side)
{
	bool idle;

	pthread_mutex_lock(&side->mutex);
	idle = side->state == SIDE_ENDED || (side->state == SIDE_READY && !side->begun);
	pthread_mutex_unlock(&side->mutex);
	return idle;
}

bool side_is_at_lock(struct side *side)
{
	bool at_lock;

	pthread_mutex_lock(&side->mutex);
	at_lock = side->state == SIDE_READY && !side->plan.whole && !side->begun && side->step == 0;
	pthread_mutex_unlock(&side->mutex);
	return at_lock;
}

bool side_ends_next(struct side *side)
{
	bool at_end;

	pthread_mutex_lock(&side->mutex);
	at_end = side->state == SIDE_READY && !side->posted && is_at_end(side);
	pthread_mutex_unlock(&side->mutex);
	return at_end;
}

const char *side_outcome(const struct side *side)
{
	return side->outcome.p;
}
