/*
 * The rows of a scenario that has statements of its own for them. Included after these: stmt_moment (the next moment at which one of them
 * is due), stmt_tell (all of them in words), and hash_all(); OWN_ROWS_LOCKED, where some are locked that no subject stands for. A unit that
 * has lost leaves nothing behind in what is hashed.
 */
#ifndef HX_TESTS_SIM_OWN_ROWS_H
#define HX_TESTS_SIM_OWN_ROWS_H

#include "sim/sim.h"

static inline struct unit_result ask_store(struct sim *sim, const struct db_stmt *stmt, size_t n,
					   const struct db_value *params)
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, stmt, (unsigned)n, params);
	return sim_run_unit(sim, &unit);
}

static int64_t next_moment(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_moment, 0, NULL);
	const struct db_value *cell = db_cell(&result.rows[0], 0, 0);

	return cell->type == DB_NULL ? INT64_MAX : cell->i;
}

static bool rows_changed;
static uint64_t tables_before;

static void before_unit(struct sim *sim, const struct unit *unit)
{
	(void)unit;
	tables_before = hash_all(sim, 1);
}

static void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	(void)unit;
	rows_changed |= verdict == UNIT_WON;
	if (verdict != UNIT_WON && hash_all(sim, 1) != tables_before)
		sim_violate(sim, "I4: a unit that was %s left something of a run", unit_verdict_name(verdict));
}

static void tell(struct sim *sim, struct strbuf *words)
{
	struct unit_result result = ask_store(sim, &stmt_tell, 0, NULL);

	strbuf_add_str(words, ", ");
	strbuf_add_slice(words, db_cell(&result.rows[0], 0, 0)->s);
}

#ifndef OWN_ROWS_LOCKED
#define OWN_ROWS_LOCKED NULL
#endif

static const struct sim_rows own_rows = {next_moment, hash_all, before_unit, after_unit, tell, OWN_ROWS_LOCKED};

#endif
