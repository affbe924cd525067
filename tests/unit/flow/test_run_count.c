/* Counts of runs are what a look at all of them would say, folded or not. */
#include "unit/flow/driven_run.h"

#include "flow/run_count.h"
#include "support/must_hold.h"

#define STEPS "'steps':[{'name':'a','type':'task','action':'do'},{'name':'b','type':'wait','for':'1s'}]"

static void start(struct world *w, int64_t subject)
{
	struct stamp stamp = world_begin(w);
	struct run_spec spec = {
		.subject = subject,
		.workspace = slice_str("default"),
		.requester = slice_str("me"),
		.machine = fixture.machine,
		.input = slice_str("{}"),
	};

	run_create(&w->unit, &stamp, &spec);
	assert_int_equal(world_run(w), UNIT_WON);
}

static void fold(struct world *w)
{
	(void)world_begin(w);
	run_count_fold(&w->unit, 1, 0);
	assert_int_equal(world_run(w), UNIT_WON);
}

static bool has_changes(struct world *w)
{
	(void)world_begin(w);
	run_count_scan(&w->unit, 0, 0);
	assert_int_equal(world_run(w), UNIT_WON);
	return w->result.rows[0].n > 0;
}

static bool counts(struct world *w, const char *status, int64_t wanted)
{
	size_t k = 0;

	while (strcmp(run_statuses[k], status) != 0)
		k++;
	(void)world_begin(w);
	run_count_list(&w->unit, slice_str("default"), slice_str(""), slice_str(""), 10);
	assert_int_equal(world_run(w), UNIT_WON);
	return (w->result.rows[0].n ? db_cell(&w->result.rows[0], 0, 1 + k)->i : 0) == wanted;
}

static void what_is_counted_is_so(void **state)
{
	struct world *w = *state;

	assert_int_equal(RUN_COUNT_STATUSES, 8);
	assert_null(run_statuses[RUN_COUNT_STATUSES]);
	define(STEPS);
	assert_false(has_changes(w));
	start(w, RUN);
	start(w, RUN + 1);
	assert_true(counts(w, RUN_PENDING, 2));
	assert_int_equal(drive(w, ok), HX_OK);
	assert_true(has_changes(w));
	MUST_HOLD(counts(w, RUN_PENDING, 1) && counts(w, RUN_RUNNING, 0) && counts(w, RUN_WAITING, 1),
		  "a run is counted where it was before");
	for (int i = 0; i < 3; i++) {
		fold(w);
		MUST_HOLD(!has_changes(w), "a change is not folded");
		MUST_HOLD(counts(w, RUN_PENDING, 1) && counts(w, RUN_RUNNING, 0) && counts(w, RUN_WAITING, 1),
			  "a change counts again with every fold");
	}
	w->clock.wall.ms += 2000;
	assert_int_equal(drive(w, ok), HX_OK);
	assert_true(counts(w, RUN_PENDING, 1) && counts(w, RUN_WAITING, 0) && counts(w, RUN_COMPLETED, 1));
}

static void what_expires_is_counted_no_more(void **state)
{
	struct world *w = *state;

	define(STEPS);
	start(w, RUN);
	assert_int_equal(drive(w, ok), HX_OK);
	w->clock.wall.ms += 2000;
	assert_int_equal(drive(w, ok), HX_OK);
	w->clock.wall.ms += 100000;
	(void)world_begin(w);
	run_expire(&w->unit, RUN, 1000);
	assert_int_equal(world_run(w), UNIT_WON);
	MUST_HOLD(counts(w, RUN_COMPLETED, 0), "runs are counted that retention has taken");
	fold(w);
	assert_true(counts(w, RUN_COMPLETED, 0));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_counted_is_so),
		TEST(what_expires_is_counted_no_more),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests_name("run_count", tests, NULL, forget);
}
