/* Slots of a limit, unit by unit: who gets one, who stands in line, who is woken. What schedules do to them: sim/test_limits.c. */
#include "unit/flow/guards.h"

#include "flow/slot.h"
#include "support/must_hold.h"

static const struct slot slot = {.name = -5, .max = 2, .key = {"\"c\"", 3}};
static const struct slot other = {.name = -6, .max = 2, .key = {"\"d\"", 3}};

/* Runs that nobody holds, each due in a minute. */
static void make_runs(struct world *w, int n)
{
	char sql[400];

	for (int i = 1; i <= n; i++) {
		world_create(w, i, "PENDING");
		snprintf(
			sql, sizeof sql,
			"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, due_at,"
			" created_at) VALUES (%d, 'default', 'ship', 1, 'me', '{}', %d, 1)",
			i, START_MS);
		guards_script(w, sql);
	}
}

static bool takes(struct world *w, const struct slot *of, int64_t run)
{
	struct stamp stamp = world_begin(w);
	enum unit_verdict verdict;

	slot_lock(&w->unit, of);
	slot_take(&w->unit, of, run, stamp.at.ms);
	verdict = world_run(w);
	assert_int_equal(slot_full(&w->unit, &w->result), verdict == UNIT_LOST ? of->name : 0);
	return verdict == UNIT_WON;
}

static void lets_go(struct world *w, const struct slot *of, int64_t run)
{
	(void)world_begin(w);
	slot_lock(&w->unit, of);
	slot_release(&w->unit, of, run);
	assert_int_equal(world_run(w), UNIT_WON);
}

static enum unit_verdict waits(struct world *w, const struct slot *of, int64_t run, int64_t version,
			       int64_t times_out_at)
{
	struct stamp stamp = world_begin(w);

	slot_wait(&w->unit, of, run, version, times_out_at, stamp.at.ms);
	return world_run(w);
}

static int64_t due_of(struct world *w, const struct db_stmt *stmt, int64_t subject)
{
	unit_init(&w->unit, 0);
	UNIT_ADD(&w->unit, UNIT_ANY, stmt, db_int(subject));
	assert_int_equal(world_run(w), UNIT_WON);
	return world_int(w, 0, 0) - w->clock.wall.ms;
}

static int64_t due_in(struct world *w, int64_t run)
{
	DB_STMT(stmt, "test_slot_due", "i", "i", "SELECT due_at FROM hx_run WHERE subject = ?1");

	return due_of(w, &stmt, run);
}

static int64_t job_due_in(struct world *w, int64_t job)
{
	DB_STMT(stmt, "test_slot_job_due", "i", "i", "SELECT due_at FROM hx_job WHERE subject = ?1");

	return due_of(w, &stmt, job);
}

static void as_many_as_there_are(void **state)
{
	struct world *w = *state;

	make_runs(w, 3);
	assert_true(takes(w, &slot, 1));
	assert_true(takes(w, &slot, 2));
	assert_false(takes(w, &slot, 3));
	assert_true(takes(w, &slot, 2)); /* it has one, and goes on with it */
	assert_true(takes(w, &other, 3));
	lets_go(w, &slot, 1);
	assert_true(takes(w, &slot, 3));
}

static void a_lower_number_takes_nothing_away(void **state)
{
	struct world *w = *state;
	struct slot lower = slot;

	make_runs(w, 3);
	lower.max = 1;
	assert_true(takes(w, &slot, 1));
	assert_true(takes(w, &slot, 2));
	assert_true(takes(w, &lower, 1));
	lets_go(w, &lower, 1);
	assert_false(takes(w, &lower, 3));
	lets_go(w, &lower, 2);
	assert_true(takes(w, &lower, 3));
}

static void the_oldest_in_line_is_woken(void **state)
{
	struct world *w = *state;

	make_runs(w, 5);
	assert_true(takes(w, &slot, 1));
	assert_true(takes(w, &slot, 2));
	for (int64_t run = 5; run >= 3; run--)
		assert_int_equal(waits(w, &slot, run, 1, 0), UNIT_WON);
	assert_int_equal(due_in(w, 3), SLOT_LOOK_FIRST_MS);
	lets_go(w, &slot, 1);
	assert_int_equal(due_in(w, 3), 0);
	assert_int_equal(due_in(w, 4), SLOT_LOOK_FIRST_MS);
	lets_go(w, &slot, 2); /* two are free, and the first one has not come yet */
	assert_int_equal(due_in(w, 4), 0);
	assert_int_equal(due_in(w, 5), SLOT_LOOK_FIRST_MS);
}

/* Of an action: a run may stand before the job of an after-effect, and after it. Whoever lets go wakes both kinds. */
static void runs_and_jobs_stand_in_one_line(void **state)
{
	static const struct slot call = {
		.name = -8, .max = 1, .key = {"null", 4}, .action = {"mail", 4}, .of = SLOT_OF_CALL};
	struct slot_waiter job = {.subject = 9, .version = 1};
	struct world *w = *state;
	struct stamp stamp;

	make_runs(w, 2);
	world_create(w, 9, "AVAILABLE");
	guards_script(
		w,
		"INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload, due_at, repeatable)"
		" VALUES (9, 'default', 'after-effects', 'ship', 'mail', 'k', '{}', 1, 1)");
	assert_true(takes(w, &call, 1));
	stamp = world_begin(w);
	slot_wait_jobs(&w->unit, &call, &job, 1, stamp.at.ms);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_false(takes(w, &call, 2));
	lets_go(w, &call, 1);
	MUST_HOLD(job_due_in(w, 9) == 0, "a job in line is not told that a call has ended");
	assert_true(takes(w, &call, 9));
	assert_false(takes(w, &call, 2));
	assert_int_equal(waits(w, &call, 2, 1, 0), UNIT_WON);
	lets_go(w, &call, 9);
	assert_int_equal(due_in(w, 2), 0);
}

/* Should whoever lets go pass it over, because its row is written just then. */
static void the_first_in_line_looks_soon(void **state)
{
	struct world *w = *state;

	make_runs(w, 5);
	assert_true(takes(w, &slot, 1));
	assert_true(takes(w, &slot, 2));
	for (int64_t run = 3; run <= 5; run++)
		assert_int_equal(waits(w, &slot, run, 1, 0), UNIT_WON);
	MUST_HOLD(due_in(w, 3) == SLOT_LOOK_FIRST_MS, "the first in line looks a minute later");
	assert_int_equal(due_in(w, 4), SLOT_LOOK_MS);
	lets_go(w, &slot, 1);
	MUST_HOLD(due_in(w, 4) == SLOT_LOOK_FIRST_MS, "the next in line looks a minute later");
	assert_int_equal(due_in(w, 5), SLOT_LOOK_MS);
}

/* Of a line of very many no more than a thousand are counted. */
static void who_stands_far_back_comes_after_the_one_before(void **state)
{
	static const struct rate rate = {.name = -7, .max = 2, .per_ms = 10000, .key = {"\"c\"", 3}};
	struct world *w = *state;
	struct stamp stamp;
	char sql[400];

	make_runs(w, 2 * RATE_PLACES_MAX);
	for (int64_t run = 1; run <= 2; run++) {
		(void)world_begin(w);
		rate_take(&w->unit, &rate, run, 0);
		assert_int_equal(world_run(w), UNIT_WON);
	}
	for (int64_t run = 3; run <= 2 * RATE_PLACES_MAX; run++) {
		stamp = world_begin(w);
		rate_wait(&w->unit, &rate, run, 1, 0, stamp.at.ms);
		assert_int_equal(world_run(w), UNIT_WON);
	}
	assert_int_equal(due_in(w, 3), 10000);
	assert_int_equal(due_in(w, RATE_PLACES_MAX + 2), 10000 * (RATE_PLACES_MAX / 2));
	assert_int_equal(due_in(w, RATE_PLACES_MAX + 3), 10000 * (RATE_PLACES_MAX / 2) + 5000);
	assert_int_equal(due_in(w, 2 * RATE_PLACES_MAX), 10000 * (RATE_PLACES_MAX / 2) + 5000 * (RATE_PLACES_MAX - 2));
	snprintf(sql, sizeof sql, "UPDATE hx_run SET due_at = NULL WHERE subject = %d", RATE_PLACES_MAX + 10);
	guards_script(w, sql);
	stamp = world_begin(w);
	rate_wait(&w->unit, &rate, RATE_PLACES_MAX + 11, 1, 0, stamp.at.ms);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(due_in(w, RATE_PLACES_MAX + 11), 1000); /* nobody knows: it looks again */
}

static void a_limit_that_is_gone_wakes_all(void **state)
{
	struct world *w = *state;
	struct slot gone = slot;

	make_runs(w, 4);
	gone.max = 0;
	assert_true(takes(w, &slot, 1));
	assert_true(takes(w, &slot, 2));
	assert_int_equal(waits(w, &slot, 3, 1, 0), UNIT_WON);
	assert_int_equal(waits(w, &slot, 4, 1, 0), UNIT_WON);
	lets_go(w, &gone, 1);
	assert_int_equal(due_in(w, 3), 0);
	assert_int_equal(due_in(w, 4), 0);
}

/* Each of very many that wait lets go in its turn: it looks at some of those that are left, and not at all of them. */
static void so_many_are_woken_at_once(void **state)
{
	enum { RUNS = SLOT_WAKES_MAX + 4 };
	struct world *w = *state;
	struct slot gone = slot;

	make_runs(w, RUNS);
	gone.max = 0;
	assert_true(takes(w, &slot, 1));
	assert_true(takes(w, &slot, 2));
	for (int i = 3; i <= RUNS; i++)
		assert_int_equal(waits(w, &slot, i, 1, 0), UNIT_WON);
	lets_go(w, &gone, 1);
	assert_int_equal(due_in(w, 3), 0);
	assert_int_equal(due_in(w, RUNS - 2), 0);
	assert_true(due_in(w, RUNS) > 0);
	lets_go(w, &gone, 3);
	assert_int_equal(due_in(w, RUNS - 1), 0);
	assert_int_equal(due_in(w, RUNS), SLOT_LOOK_FIRST_MS);
}

static void a_slot_that_is_free_by_then(void **state)
{
	struct world *w = *state;

	make_runs(w, 2);
	assert_true(takes(w, &slot, 1));
	assert_int_equal(waits(w, &slot, 2, 1, 0), UNIT_WON);
	assert_int_equal(due_in(w, 2), 0);
}

static void in_line_no_longer_than_its_time(void **state)
{
	struct world *w = *state;

	make_runs(w, 3);
	assert_true(takes(w, &slot, 1));
	assert_true(takes(w, &slot, 2));
	assert_int_equal(waits(w, &slot, 3, 1, START_MS + 700), UNIT_WON);
	assert_int_equal(due_in(w, 3), 700);
	assert_int_equal(waits(w, &slot, 3, /* version= */ 2, 0), UNIT_LOST);
}

static void who_was_woken_goes_first(void **state)
{
	struct world *w = *state;

	make_runs(w, 4);
	assert_true(takes(w, &slot, 1));
	assert_true(takes(w, &slot, 2));
	assert_int_equal(waits(w, &slot, 3, 1, 0), UNIT_WON);
	lets_go(w, &slot, 1);
	assert_false(takes(w, &slot, 4)); /* it is for the third */
	fake_clock_advance_ms(&w->clock, SLOT_HEAD_START_MS);
	MUST_HOLD(takes(w, &slot, 4), "one that nobody carries out holds up the others for ever");
}

static bool begins_again(struct world *w, const struct rate *rate, int64_t run, int64_t nth)
{
	enum unit_verdict verdict;

	(void)world_begin(w);
	rate_take(&w->unit, rate, run, nth);
	verdict = world_run(w);
	assert_int_equal(slot_full(&w->unit, &w->result), verdict == UNIT_LOST ? rate->name : 0);
	return verdict == UNIT_WON;
}

static bool begins(struct world *w, const struct rate *rate, int64_t run)
{
	return begins_again(w, rate, run, 0);
}

static enum unit_verdict waits_for_its_time(struct world *w, const struct rate *rate, int64_t run, int64_t version)
{
	struct stamp stamp = world_begin(w);

	rate_wait(&w->unit, rate, run, version, /* times_out_at= */ 0, stamp.at.ms);
	return world_run(w);
}

static void so_many_in_a_time(void **state)
{
	static const struct rate rate = {.name = -7, .max = 2, .per_ms = 1000, .key = {"\"c\"", 3}};
	static const struct rate other_rate = {.name = -8, .max = 1, .per_ms = 1000, .key = {"\"d\"", 3}};
	struct world *w = *state;

	make_runs(w, 7);
	assert_true(begins(w, &rate, 1));
	fake_clock_advance_ms(&w->clock, 300);
	assert_true(begins(w, &rate, 2));
	assert_true(begins(w, &rate, 2)); /* counted once */
	assert_true(begins(w, &other_rate, 7));
	for (int64_t run = 3; run <= 6; run++) {
		assert_false(begins(w, &rate, run));
		assert_int_equal(waits_for_its_time(w, &rate, run, 1), UNIT_WON);
	}
	assert_int_equal(due_in(w, 3), 700); /* two at a time, as the first two have begun */
	assert_int_equal(due_in(w, 4), 1000);
	assert_int_equal(due_in(w, 5), 1700);
	assert_int_equal(due_in(w, 6), 2000);
	assert_int_equal(waits_for_its_time(w, &rate, 6, /* version= */ 2), UNIT_LOST);
	fake_clock_advance_ms(&w->clock, 699);
	assert_false(begins(w, &rate, 3));
	fake_clock_advance_ms(&w->clock, 1);
	assert_false(begins(w, &rate, 5)); /* it is the time of the third */
	assert_true(begins(w, &rate, 3));
	assert_false(begins(w, &rate, 4));
	fake_clock_advance_ms(&w->clock, 300);
	assert_true(begins(w, &rate, 4));
}

/* Of an action every attempt counts, also that of the same run. */
static void each_attempt_counts(void **state)
{
	static const struct rate rate = {
		.name = -7, .max = 2, .per_ms = 1000, .key = {"\"c\"", 3}, .action = {"do", 2}};
	struct world *w = *state;

	make_runs(w, 2);
	assert_true(begins_again(w, &rate, 1, 11));
	assert_true(begins_again(w, &rate, 1, 12));
	assert_true(begins_again(w, &rate, 1, 12)); /* it is this one that was counted */
	assert_false(begins_again(w, &rate, 1, 13));
	assert_false(begins_again(w, &rate, 2, 14));
}

static int64_t ticks(struct world *w)
{
	static const struct db_stmt stmt = {
		.name = "test_ticks", .sql = "SELECT count(*) FROM hx_tick", .in = "", .out = "i"};

	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, &stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	return world_int(w, 0, 0);
}

static size_t sweeps(struct world *w, int64_t age_ms)
{
	size_t n;

	unit_init(&w->unit, 0);
	rate_scan_expired(&w->unit, age_ms, 10);
	assert_int_equal(world_run(w), UNIT_WON);
	n = w->result.rows[0].n;
	(void)world_begin(w);
	rate_expire(&w->unit, -7, age_ms);
	(void)world_run(w);
	return n;
}

/* A key that nobody uses again leaves nothing; one that is in use loses no tick that counts. */
static void what_counts_no_more_is_swept(void **state)
{
	static const struct rate rate = {.name = -7, .max = 2, .per_ms = 1000, .key = {"\"c\"", 3}};
	struct world *w = *state;

	make_runs(w, 3);
	assert_true(begins(w, &rate, 1));
	fake_clock_advance_ms(&w->clock, 500);
	assert_true(begins(w, &rate, 2));
	fake_clock_advance_ms(&w->clock, 499);
	assert_int_equal(sweeps(w, 0), 0);
	MUST_HOLD(ticks(w) == 2, "a tick that counts was swept");
	fake_clock_advance_ms(&w->clock, 1);
	assert_int_equal(sweeps(w, 0), 1);
	MUST_HOLD(ticks(w) == 1, "a tick that counts was swept");
	fake_clock_advance_ms(&w->clock, 500);
	assert_int_equal(sweeps(w, 1), 0);
	assert_int_equal(sweeps(w, 0), 1);
	assert_int_equal(ticks(w), 0);
}

/* "NAME ACTION", as it is read with a run. */
static void whose_slot_it_is(void **state)
{
	struct slice action;
	int64_t name;

	(void)state;
	assert_false(slot_of_action_read(slice_of(NULL, 0), &name, &action));
	assert_true(slot_of_action_read(slice_str("-9223372036854775807 charge.card"), &name, &action));
	assert_int_equal(name, -INT64_MAX);
	assert_true(slice_is(action, "charge.card"));
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(as_many_as_there_are),
		TEST(a_lower_number_takes_nothing_away),
		TEST(the_oldest_in_line_is_woken),
		TEST(runs_and_jobs_stand_in_one_line),
		TEST(the_first_in_line_looks_soon),
		TEST(a_limit_that_is_gone_wakes_all),
		TEST(so_many_are_woken_at_once),
		TEST(a_slot_that_is_free_by_then),
		TEST(in_line_no_longer_than_its_time),
		TEST(who_was_woken_goes_first),
		TEST(so_many_in_a_time),
		TEST(each_attempt_counts),
		TEST(what_counts_no_more_is_swept),
		cmocka_unit_test(whose_slot_it_is),
		TEST(who_stands_far_back_comes_after_the_one_before),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
