/*
 * The store of a world, asked as seldom as can be.
 *
 * The walk comes to the same store again and again: most edges write nothing, those that do are taken back, and the same
 * commit follows after others have gone on or not. So each content of the store has a number (sim_state.store), which
 * follows from the content before, the unit and the clock; what a unit met in a content of that number is remembered (reads.h)
 * and told from there. Then nothing has happened in SQLite yet. What the walk sees is a list of steps, savepoints and units; what
 * SQLite has done is another:
 *
 *      the walk sees     savepoint, unit 1, savepoint, unit 2
 *      SQLite has done   savepoint, unit 1, savepoint, unit 3, savepoint, unit 4
 *
 * Only when something is asked that is not remembered is the second made the same as the first: what is too much is undone,
 * what is missing is run, at the time of its own, and must meet what it is remembered to meet. What is taken back before that
 * has cost nothing, and what is done again after that is there already.
 */
#pragma once

#include "base/arena.h"
#include "db/unit.h"

struct sim;
struct store_step;

struct sim_store {
	struct store_step *steps; /* what the walk sees, from its first savepoint on */
	size_t n, room;
	uint64_t *done; /* what SQLite has done: the numbers of these */
	size_t done_n;
	struct arena units; /* of the steps */
};

void sim_store_init(struct sim_store *store);
void sim_store_release(struct sim_store *store);

/*
 * Runs a unit in the store as it stands. Rows live until the next edge. A refusal of its data is a violation (I7), unless a statement of
 * the user's is in it, who may have a constraint: then it has failed, as the engine would be told.
 */
struct unit_result sim_run_unit(struct sim *sim, struct unit *unit);
/* Outside of all savepoints. */
void sim_script(struct sim *sim, const char *sql);
/* They nest. To roll back is to release, too; the number of the content is the caller's to take back, with the state. */
void sim_savepoint(struct sim *sim);
void sim_roll_back(struct sim *sim);
