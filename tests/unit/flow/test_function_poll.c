/* Who polls for what: a bound for each workspace, and what nobody polls for any more is forgotten. */
#include "unit/flow/world.h"

#include <stdio.h>

#include "flow/function.h"
#include "support/must_hold.h"

static const struct db_stmt stmt_known = {
	.name = "test_known",
	.sql = "SELECT workspace || ' ' || count(*) FROM hx_function_poll GROUP BY workspace ORDER BY workspace",
	.in = "",
	.out = "t",
};

/* ?2 of them, polled for at that time. */
static const struct db_stmt stmt_fill = {
	.name = "test_fill",
	.sql = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?2)"
	       " INSERT INTO hx_function_poll (workspace, name, version, at) SELECT ?1, 'f' || n, '1', ?3 FROM c",
	.in = "tii",
	.out = "",
};

static void fill(struct world *w, const char *workspace, int64_t n, int64_t at)
{
	(void)world_begin(w);
	UNIT_ADD(&w->unit, UNIT_ANY, &stmt_fill, db_str(workspace), db_int(n), db_int(at));
	assert_int_equal(world_run(w), UNIT_WON);
}

static enum unit_verdict poll(struct world *w, const char *workspace, const char *rows)
{
	(void)world_begin(w);
	function_poll(&w->unit, slice_str(workspace), slice_str(rows));
	return world_run(w);
}

static void assert_known(struct world *w, const char *first, const char *second)
{
	(void)world_begin(w);
	unit_add(&w->unit, UNIT_ANY, &stmt_known, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, second ? 2 : 1);
	assert_true(slice_is(db_cell(&w->result.rows[0], 0, 0)->s, first));
	if (second)
		assert_true(slice_is(db_cell(&w->result.rows[0], 1, 0)->s, second));
}

static void a_workspace_has_a_bound(void **state)
{
	struct world *w = *state;

	fill(w, "a", FUNCTION_POLLS_MAX - 1, START_MS);
	assert_int_equal(poll(w, "a", "[[\"new\",\"1\"]]"), UNIT_WON);
	MUST_HOLD(poll(w, "a", "[[\"f1\",\"1\"],[\"new\",\"2\"]]") == UNIT_LOST, "a tenant writes names for ever");
	assert_int_equal(poll(w, "a", "[[\"f1\",\"1\"],[\"new\",\"1\"]]"), UNIT_WON); /* what is known goes on */
	assert_int_equal(poll(w, "b", "[[\"new\",\"2\"]]"), UNIT_WON);                /* and so do others */
	assert_known(w, "a 20000", "b 1");
}

static int64_t count_expired(struct world *w, int64_t age_ms, int64_t limit)
{
	(void)world_begin(w);
	function_poll_scan_expired(&w->unit, age_ms, limit);
	assert_int_equal(world_run(w), UNIT_WON);
	return (int64_t)w->result.rows[0].n;
}

static enum unit_verdict expire(struct world *w, int64_t age_ms)
{
	(void)world_begin(w);
	function_poll_expire(&w->unit, 1, age_ms);
	return world_run(w);
}

static void what_nobody_polls_for_is_forgotten(void **state)
{
	struct world *w = *state;

	fill(w, "a", 1500, START_MS - 5000);
	fill(w, "b", 3, START_MS - 4000);
	assert_int_equal(count_expired(w, 5001, 64), 0);
	assert_int_equal(expire(w, 5001), UNIT_LOST);
	assert_int_equal(count_expired(w, 5000, 0), 0); /* by a clock that is not believed */
	assert_int_equal(count_expired(w, 5000, 64), 1);
	assert_int_equal(expire(w, 5000), UNIT_WON);
	assert_known(w, "a 500", "b 3");
	w->clock.wall.ms += 70000;
	assert_int_equal(poll(w, "a", "[[\"f1500\",\"1\"]]"), UNIT_WON);
	assert_int_equal(expire(w, 74000), UNIT_WON);
	assert_known(w, "a 1", NULL);
	assert_int_equal(count_expired(w, 74000, 64), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_workspace_has_a_bound),
		TEST(what_nobody_polls_for_is_forgotten),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests_name("function_poll", tests, NULL, NULL);
}
