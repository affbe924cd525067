/*
 * Guards, one by one: a unit as its builder writes it, on rows that are as it believes, where it is won; and on rows that differ
 * in one thing, where it must be lost, or must leave alone what is not its own. Each case has the name of the mutant whose line
 * it is about (tests/mutants/list), and runs alone by that name.
 */
#ifndef HX_TESTS_UNIT_FLOW_GUARDS_H
#define HX_TESTS_UNIT_FLOW_GUARDS_H

#include "unit/flow/world.h"

#include <stdio.h>

#define GUARDS_MAX 64

struct guard {
	const char *name;
	const char *rows;  /* SQL: as the unit believes */
	const char *wrong; /* SQL: one thing is different */
	void (*build)(struct unit *unit, const struct stamp *stamp);
	const char *broken; /* SQL that finds a row if it was written all the same; NULL: the unit is not lost */
};
#define GUARD_FINDS "its first line finds something" /* in place of SQL: a unit that reads */

static inline void guards_script(struct world *w, const char *sql)
{
	struct hx_error err;

	if (w->db->driver->script(w->db, sql, &err) != HX_OK)
		fail_msg("%s: %s", sql, err.detail);
}

static inline bool guards_finds(struct world *w, const char *sql)
{
	static struct db_stmt stmts[GUARDS_MAX]; /* the driver keeps them by their address */
	static unsigned used;
	struct db_stmt *stmt = &stmts[used++];

	assert_true(used <= GUARDS_MAX);
	*stmt = (struct db_stmt){.name = "test_guard_broken", .sql = sql, .in = "", .out = "i"};
	unit_init(&w->unit, /* op= */ 0);
	unit_add(&w->unit, UNIT_ANY, stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	return w->result.rows[0].n > 0;
}

/* In a store of its own, after `sql`. *ret_broken: it shows that a guard is not there. */
static inline enum unit_verdict guards_run(const struct guard *guard, const char *sql, bool *ret_broken)
{
	enum unit_verdict verdict;
	struct stamp stamp;
	struct world *w;
	void *world;

	assert_int_equal(world_set_up(&world), 0);
	w = world;
	guards_script(w, guard->rows);
	guards_script(w, sql);
	stamp = world_begin(w);
	guard->build(&w->unit, &stamp);
	verdict = world_run(w);
	if (!guard->broken)
		*ret_broken = verdict != UNIT_LOST;
	else if (strcmp(guard->broken, GUARD_FINDS) == 0)
		*ret_broken = w->result.rows[0].n > 0;
	else
		*ret_broken = guards_finds(w, guard->broken);
	world_tear_down(&world);
	return verdict;
}

static inline void guards_try(void **state)
{
	const struct guard *guard = *state;
	enum unit_verdict verdict;
	bool broken;

	assert_int_equal(guards_run(guard, "SELECT 1", &broken), UNIT_WON);
	verdict = guards_run(guard, guard->wrong, &broken);
	if (broken)
		fail_msg("counterexample in one unit, after %s\n  broken: it is %s%s%s", guard->wrong,
			 unit_verdict_name(verdict), guard->broken ? ", and " : "", guard->broken ? guard->broken : "");
}

static inline int guards_main(const struct guard *guards, size_t n, int argc, char **argv)
{
	struct CMUnitTest tests[GUARDS_MAX];

	assert_true(n <= GUARDS_MAX);
	for (size_t i = 0; i < n; i++)
		tests[i] = (struct CMUnitTest){guards[i].name, guards_try, NULL, NULL, (void *)&guards[i]};
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return _cmocka_run_group_tests("guards", tests, n, NULL, NULL);
}

#endif
