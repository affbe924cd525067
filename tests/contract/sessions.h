/*
 * What the tests of driver.h's contract have in common: verdicts and rows of a session, and every test on every store.
 */
#ifndef HX_TESTS_CONTRACT_SESSIONS_H
#define HX_TESTS_CONTRACT_SESSIONS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/item.h"

#define ABSENT (-77)

static inline void assert_verdict(const struct session *s, size_t unit, enum unit_verdict verdict, int line)
{
	if (s->result[unit].verdict != verdict || s->result[unit].line != line)
		fail_msg("unit %zu is %s at line %d, not %s at line %d", unit,
			 unit_verdict_name(s->result[unit].verdict), s->result[unit].line, unit_verdict_name(verdict),
			 line);
}

static inline const struct db_value *cell(const struct session *s, size_t unit, unsigned line, size_t row,
					  size_t column)
{
	assert_true(row < s->result[unit].rows[line].n);
	return db_cell(&s->result[unit].rows[line], row, column);
}

static inline void add_put(struct unit *unit, enum unit_rule rule, int64_t id, int64_t n)
{
	UNIT_ADD(unit, rule, &item_put, db_int(id), db_int(n), db_str(""), db_null());
}

static inline void add_move(struct unit *unit, enum unit_rule rule, int64_t id, int64_t from, int64_t to)
{
	UNIT_ADD(unit, rule, &item_move, db_int(id), db_int(to), db_int(from));
}

/* ---- every test on every store ---- */

#define TEST(test)                                                                                                     \
	{                                                                                                              \
		.name = #test, .test_func = test, .teardown_func = session_tear_down                                   \
	}

static inline int run_on_every_store(struct CMUnitTest *tests, size_t tests_n)
{
	static const struct {
		const char *name;
		CMFixtureFunction set_up;
	} stores[] = {{"sqlite file", session_set_up_file},
		      {"sqlite memory", session_set_up_memory},
		      {"postgres", session_set_up_postgres}};
	int failed = 0;

	for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
		for (size_t t = 0; t < tests_n; t++)
			tests[t].setup_func = stores[i].set_up;
		failed += _cmocka_run_group_tests(stores[i].name, tests, tests_n, NULL, NULL);
	}
	return failed;
}

#endif
