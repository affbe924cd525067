/* See store.h. */
#include "sim/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sim/sim.h"

#define UNITS_BYTES_MAX (64u << 20)
#define SAVEPOINT 0 /* in the place of a number */

struct store_step {
	struct unit *unit; /* NULL: a savepoint */
	struct wall_time at;
	enum unit_verdict verdict;
	uint64_t number;          /* of the content after it; of a savepoint 0 */
	struct arena_mark before; /* of store->units */
};

DB_STMT(stmt_savepoint, "sim_savepoint", "", "", "SAVEPOINT step");
DB_STMT(stmt_undo, "sim_undo", "", "", "ROLLBACK TO step");
DB_STMT(stmt_release, "sim_release", "", "", "RELEASE step");

void sim_store_init(struct sim_store *store)
{
	*store = (struct sim_store){0};
	arena_init(&store->units, UNITS_BYTES_MAX);
}

void sim_store_release(struct sim_store *store)
{
	arena_release(&store->units);
	free(store->steps);
	free(store->done);
	*store = (struct sim_store){0};
}

/* ---- SQLite ---- */

/* Was it refused because of a statement of the user's? What it had done by then is undone. */
static bool is_refused(struct sim *sim, const struct unit *unit, struct hx_error *err)
{
	bool foreign = false;
	struct hx_error undone;

	for (unsigned i = 0; i < unit->lines_n; i++)
		foreign |= unit->lines[i].stmt->foreign;
	return sim->scenario->user && foreign && err->code == HX_DATA_ERROR &&
	       !sim->db->driver->script(sim->db, "ROLLBACK TO hx_unit; RELEASE hx_unit", &undone);
}

static struct unit_result store_execute(struct sim *sim, struct unit *unit)
{
	struct unit_result result = {.verdict = UNIT_FAILED};
	struct hx_error err;

	if (sim->db->driver->execute(sim->db, &unit, 1, &result, &sim->arena, &err)) {
		if (!is_refused(sim, unit, &err))
			sim_violate(sim, "I7: the store refused a unit: %s", err.detail);
		result = (struct unit_result){.verdict = UNIT_FAILED, .error = err};
	}
	return result;
}

static void execute_alone(struct sim *sim, const struct db_stmt *stmt)
{
	LOCAL_UNIT(unit);

	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	(void)store_execute(sim, &unit); /* what fails is a violation */
}

/* How much of what SQLite has done the walk sees. */
static size_t same_n(const struct sim_store *store)
{
	size_t n = 0;

	while (n < store->done_n && n < store->n && store->done[n] == store->steps[n].number)
		n++;
	return n;
}

/*
 * Undoes in SQLite what the walk has taken back. Where that follows on something without a savepoint between, what is before it
 * goes, too, and runs once more.
 */
static void go_back(struct sim *sim)
{
	struct sim_store *store = &sim->store;
	size_t same = same_n(store), to = same;

	if (same == store->done_n)
		return;
	while (store->done[to] != SAVEPOINT)
		to--;
	for (; store->done_n > to + 1; store->done_n--)
		if (store->done[store->done_n - 1] == SAVEPOINT)
			execute_alone(sim, &stmt_release);
	execute_alone(sim, &stmt_undo);
	if (to < same)
		return;
	execute_alone(sim, &stmt_release);
	store->done_n = to;
}

static void do_step(struct sim *sim, struct store_step *step)
{
	sim->store.done[sim->store.done_n++] = step->number;
	if (!step->unit) {
		execute_alone(sim, &stmt_savepoint);
		return;
	}
	sim->clock.wall = step->at;
	if (store_execute(sim, step->unit).verdict != step->verdict)
		sim_violate(sim, "the simulator remembers of a unit what is not so");
}

/* Now it has to be done. */
static void catch_up(struct sim *sim)
{
	struct sim_store *store = &sim->store;
	struct wall_time now = sim->clock.wall;

	go_back(sim);
	while (store->done_n < store->n)
		do_step(sim, &store->steps[store->done_n]);
	sim->clock.wall = now;
}

static struct unit_result ask_store(struct sim *sim, struct unit *unit)
{
	catch_up(sim);
	return store_execute(sim, unit);
}

/* ---- what the walk sees ---- */

static struct store_step *add_step(struct sim_store *store)
{
	if (store->n == store->room) {
		store->room = store->room ? 2 * store->room : 64;
		store->steps = realloc(store->steps, store->room * sizeof *store->steps);
		store->done = realloc(store->done, store->room * sizeof *store->done);
		ASSERT(store->steps && store->done);
	}
	store->steps[store->n] = (struct store_step){.number = SAVEPOINT, .before = arena_mark(&store->units)};
	return &store->steps[store->n++];
}

/* With all that its parameters point to. */
static struct unit *copy_unit(struct arena *arena, const struct unit *unit)
{
	size_t size = offsetof(struct unit, lines) + unit->lines_n * sizeof *unit->lines;
	struct unit *copy = arena_alloc(arena, size);

	ASSERT(copy);
	memcpy(copy, unit, size);
	for (unsigned i = 0; i < copy->lines_n; i++)
		for (unsigned p = 0; p < copy->lines[i].params_n; p++) {
			struct db_value *v = &copy->lines[i].params[p];

			if (v->type == DB_TEXT || v->type == DB_BLOB)
				v->s = arena_copy(arena, v->s);
		}
	ASSERT(!arena->failed);
	return copy;
}

/* Outside of all savepoints nothing is ever taken back, and it need not be known. */
static void note_step(struct sim *sim, const struct unit *unit, enum unit_verdict verdict, uint64_t number,
		      bool is_done)
{
	struct sim_store *store = &sim->store;
	struct store_step *step;

	if (store->n == 0)
		return;
	step = add_step(store);
	step->unit = copy_unit(&store->units, unit);
	step->at = sim->clock.wall;
	step->verdict = verdict;
	step->number = number;
	if (is_done)
		store->done[store->done_n++] = number;
}

void sim_savepoint(struct sim *sim)
{
	(void)add_step(&sim->store);
}

void sim_roll_back(struct sim *sim)
{
	struct sim_store *store = &sim->store;
	const struct store_step *step;

	do {
		ASSERT(store->n > 0);
		step = &store->steps[--store->n];
		arena_rewind(&store->units, step->before);
	} while (step->unit);
}

/* ---- for everybody ---- */

static struct unit_result ask_again(struct sim *sim, struct unit *unit, const struct unit_result *remembered)
{
	struct unit_result result = ask_store(sim, unit);

	if (!reads_same(unit, remembered, &result))
		sim_violate(sim, "the simulator remembers of the store what is not so");
	return result;
}

struct unit_result sim_run_unit(struct sim *sim, struct unit *unit)
{
	uint64_t key = reads_key(unit, sim->state.store, sim->clock.wall.ms);
	bool writes = !reads_only(unit), known, is_done;
	struct unit_result result;

	known = reads_find(&sim->reads, key, &result);
	is_done = !known || reads_is_due(&sim->reads) || (writes && sim->store.n == 0);
	if (is_done)
		result = known ? ask_again(sim, unit, &result) : ask_store(sim, unit);
	if (!known && result.verdict != UNIT_FAILED)
		reads_keep(&sim->reads, key, unit, &result);
	if (!writes || result.verdict == UNIT_FAILED)
		return result;
	/* Also where the unit has lost: whether it has left something behind is for the invariants to see. */
	sim->state.store = key;
	note_step(sim, unit, result.verdict, key, is_done);
	return result;
}

void sim_script(struct sim *sim, const char *sql)
{
	struct hx_error err;

	ASSERT(sim->store.n == 0);
	catch_up(sim);
	sim->state.store = hash_bytes(sim->state.store, sql, strlen(sql));
	if (sim->db->driver->script(sim->db, sql, &err))
		sim_violate(sim, "I7: %s: %s", sql, err.detail);
}
