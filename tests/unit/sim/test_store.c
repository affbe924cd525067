/* The store of a world: what is put off, taken back and done again is always what SQLite would have said at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow/subject.h"
#include "sim/invariant.h"
#include "sim/sim.h"

#define SUBJECTS 2
#define STEPS 4000

static const struct sim_scenario scenario = {
	.name = "a store", .subjects_n = SUBJECTS, .kind = 7, .initial = "even", .nodes_n = 1};

static struct sim *open_world(void)
{
	struct sim *sim = malloc(sizeof *sim);
	struct hx_error err;

	assert_non_null(sim);
	assert_int_equal(sim_open(sim, &scenario, &err), HX_OK);
	return sim;
}

static void close_world(struct sim *sim)
{
	sim_close(sim);
	free(sim);
}

static int64_t version_of(struct sim *sim, int64_t subject)
{
	struct sim_row row;

	assert_true(sim_read_row(sim, subject, &row));
	return row.version;
}

/* From the version that it believes in to the next one. */
static enum unit_verdict move_on(struct sim *sim, int64_t subject, int64_t version)
{
	struct move move = {subject, version % 2 ? "even" : "odd", version % 2 ? "odd" : "even"};
	struct stamp stamp = {.op = 100 + version, .at = sim->clock.wall, .node = "a"};
	struct unit unit;

	unit_init(&unit, stamp.op);
	subject_transition(&unit, &stamp, &move, version);
	return sim_run_unit(sim, &unit).verdict;
}

/* What SQLite itself would say, in place of what is remembered. */
static void forget(struct sim *sim)
{
	reads_release(&sim->reads);
	reads_init(&sim->reads, 16384);
}

static void what_is_taken_back_is_gone(void **state)
{
	struct sim *sim = open_world();
	uint64_t store = sim->state.store;

	(void)state;
	for (int again = 0; again < 3; again++) {
		sim_savepoint(sim);
		assert_int_equal(move_on(sim, 1, 1), UNIT_WON);
		assert_int_equal(version_of(sim, 1), 2);
		assert_int_equal(move_on(sim, 1, 1), UNIT_LOST);
		sim_roll_back(sim);
		sim->state.store = store;
		assert_int_equal(version_of(sim, 1), 1);
	}
	assert_string_equal(sim->violation, "");
	close_world(sim);
}

static void what_is_known_is_put_off_until_it_is_needed(void **state)
{
	struct sim *sim = open_world();
	uint64_t store = sim->state.store;
	size_t done;

	(void)state;
	sim_savepoint(sim);
	(void)move_on(sim, 1, 1);
	sim_roll_back(sim);
	sim->state.store = store;
	sim_savepoint(sim);
	(void)move_on(sim, 2, 1); /* SQLite leaves the other one for it */
	done = sim->store.done_n;
	sim_roll_back(sim);
	sim->state.store = store;

	sim_savepoint(sim);
	assert_int_equal(move_on(sim, 1, 1), UNIT_WON);
	assert_int_equal(sim->store.done_n, done);
	assert_int_not_equal(sim->store.done[done - 1], sim->state.store); /* it has not happened yet */
	assert_int_equal(version_of(sim, 2), 1);
	assert_int_equal(sim->store.done[done - 1], sim->state.store);
	assert_int_equal(version_of(sim, 1), 2);
	assert_string_equal(sim->violation, "");
	close_world(sim);
}

/* Two units after one savepoint, of which the second is another one then. */
static void what_stands_before_it_without_a_savepoint_is_run_again(void **state)
{
	struct sim *sim = open_world();
	uint64_t store = sim->state.store;

	(void)state;
	sim_savepoint(sim);
	(void)move_on(sim, 1, 1);
	(void)move_on(sim, 2, 1);
	sim_roll_back(sim);
	sim->state.store = store;

	sim_savepoint(sim);
	(void)move_on(sim, 1, 1);
	(void)move_on(sim, 1, 2);
	forget(sim);
	assert_int_equal(version_of(sim, 1), 3);
	assert_int_equal(version_of(sim, 2), 1);
	assert_string_equal(sim->violation, "");
	close_world(sim);
}

/* What was written in the wrong belief that it is known does not go unseen. */
static void what_is_remembered_wrongly_is_a_violation(void **state)
{
	struct sim *sim = open_world();
	struct unit_result wrong = {.verdict = UNIT_WON, .line = -1};
	struct move move = {1, "even", "odd"};
	struct stamp stamp = {.op = 100, .at = sim->clock.wall, .node = "a"};
	struct unit unit;

	(void)state;
	unit_init(&unit, stamp.op);
	subject_transition(&unit, &stamp, &move, /* version= */ 9);
	reads_keep(&sim->reads, reads_key(&unit, sim->state.store, sim->clock.wall.ms), &unit, &wrong);
	sim_savepoint(sim);
	assert_int_equal(sim_run_unit(sim, &unit).verdict, UNIT_WON);
	assert_string_equal(sim->violation, "");
	(void)version_of(sim, 1);
	assert_string_equal(sim->violation, "the simulator remembers of a unit what is not so");
	close_world(sim);
}

/* ---- at random, beside what must be ---- */

struct known {
	int64_t version[SUBJECTS + 1];
	uint64_t store;
};

static void take_step(struct sim *sim, struct known *known, unsigned *depth, unsigned choice)
{
	int64_t subject = 1 + choice / 8 % SUBJECTS;
	bool stale = choice / 32 % 4 == 0;

	if (choice % 8 < 2 && *depth < 9) {
		sim_savepoint(sim);
		known[*depth + 1] = known[*depth];
		(*depth)++;
	} else if (choice % 8 < 4 && *depth > 0) {
		sim_roll_back(sim);
		(*depth)--;
		sim->state.store = known[*depth].store;
	} else if (choice % 8 < 7 && *depth > 0) {
		assert_int_equal(move_on(sim, subject, known[*depth].version[subject] - stale),
				 stale ? UNIT_LOST : UNIT_WON);
		known[*depth].version[subject] += !stale;
		known[*depth].store = sim->state.store;
	} else if (choice / 128 % 4 == 0) {
		forget(sim);
	}
	assert_int_equal(version_of(sim, subject), known[*depth].version[subject]);
}

static void at_random_it_is_always_what_it_must_be(void **state)
{
	struct sim *sim = open_world();
	struct known known[10] = {{.version = {0, 1, 1}, .store = sim->state.store}};
	unsigned depth = 0, random = 20261115;

	(void)state;
	for (int i = 0; i < STEPS; i++) {
		random = random * 1664525 + 1013904223;
		arena_reset(&sim->arena);
		reads_let_go(&sim->reads);
		take_step(sim, known, &depth, random >> 12);
	}
	assert_string_equal(sim->violation, "");
	close_world(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_taken_back_is_gone),
		cmocka_unit_test(what_is_known_is_put_off_until_it_is_needed),
		cmocka_unit_test(what_stands_before_it_without_a_savepoint_is_run_again),
		cmocka_unit_test(what_is_remembered_wrongly_is_a_violation),
		cmocka_unit_test(at_random_it_is_always_what_it_must_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
