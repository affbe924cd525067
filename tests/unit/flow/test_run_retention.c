/* What retention lets go, and what it leaves alone: by age, by status, and by what somebody else did a moment before. */
#include "unit/flow/world.h"

#include <stdio.h>

#include "flow/run.h"
#include "support/must_hold.h"
#include "support/subjects.h"

#define AGE_MS 1000
#define RUN 50

static void sql(struct world *w, const char *text)
{
	struct hx_error err;

	if (w->db->driver->script(w->db, text, &err))
		fail_msg("%s", err.detail);
}

/* A run in this status that ended at START_MS, with two steps, an event, a note and a history of two rows. */
static void make_run(struct world *w, int64_t id, const char *status)
{
	struct stamp stamp = world_begin(w);
	char text[2000];

	subject_create(&w->unit, &stamp, id, run_kind(), RUN_PENDING);
	assert_int_equal(world_run(w), UNIT_WON);
	stamp = world_begin(w);
	subject_transition(&w->unit, &stamp, &(struct move){id, RUN_PENDING, status}, 1);
	assert_int_equal(world_run(w), UNIT_WON);
	snprintf(
		text, sizeof text,
		"INSERT INTO hx_run (subject, workspace, workflow, definition_version, run_key, requester, trace, input,"
		" output, error, created_at, completed_at) VALUES (%lld, 'w', 'order', 3, 'key-%lld', 'ann', 'trace',"
		" '{\"a\":1}', '2', '{}', 1, %s);"
		"INSERT INTO hx_run_step (run, position, status, attempt, output, started_at, completed_at) VALUES"
		" (%lld, 0, 'COMPLETED', 1, '1', 1, 1), (%lld, 1, 'COMPLETED', 1, '1', 1, 1);"
		"INSERT INTO hx_note (subject, seq, reason) VALUES (%lld, 2, 'because');"
		"INSERT INTO hx_run_event (run, id, name, data, at) VALUES (%lld, 'e', 'event paid', '{}', 1)",
		(long long)id, (long long)id, run_is_terminal(status) ? "1000000" : "NULL", (long long)id,
		(long long)id, (long long)id, (long long)id);
	sql(w, text);
}

/* What there is of a run. */
struct left {
	int64_t history, steps, events /* and notes */, expired, version;
	bool has_texts, has_key, has_head;
};

static struct left look(struct world *w, int64_t id)
{
	static const struct db_stmt stmt = {
		.name = "test_left",
		.sql = "SELECT (SELECT count(*) FROM hx_history WHERE subject = ?1), (SELECT count(*) FROM hx_run_step WHERE run = ?1),"
		       " (SELECT count(*) FROM hx_run_event WHERE run = ?1) + (SELECT count(*) FROM hx_note WHERE subject = ?1),"
		       " r.expired, s.version,"
		       " r.input = '{\"a\":1}' AND r.output = '2' AND r.error = '{}' AND r.trace = 'trace' AND"
		       " r.requester = 'ann', r.input = '{}' AND r.output IS NULL AND r.error IS NULL AND r.trace IS NULL"
		       " AND r.requester = '', r.run_key = 'key-' || ?1 AND r.workflow = 'order', length(s.head) = 32"
		       " FROM hx_run r JOIN hx_subject s ON s.id = r.subject WHERE r.subject = ?1",
		.in = "i",
		.out = "iiiiiiiii",
	};
	struct left left;

	(void)world_begin(w);
	UNIT_ADD(&w->unit, UNIT_ANY, &stmt, db_int(id));
	assert_int_equal(world_run(w), UNIT_WON);
	left = (struct left){world_int(w, 0, 0), world_int(w, 0, 1), world_int(w, 0, 2), world_int(w, 0, 3),
			     world_int(w, 0, 4), world_int(w, 0, 5), world_int(w, 0, 7), world_int(w, 0, 8)};
	assert_int_not_equal(world_int(w, 0, 5), world_int(w, 0, 6)); /* all of them, or none */
	return left;
}

static enum unit_verdict expire(struct world *w, int64_t id, int64_t age_ms)
{
	(void)world_begin(w);
	run_expire(&w->unit, id, age_ms);
	assert_true(unit_is_plain(&w->unit));
	return world_run(w);
}

static size_t scan(struct world *w, int64_t limit)
{
	(void)world_begin(w);
	run_scan_expired(&w->unit, AGE_MS, limit);
	assert_int_equal(world_run(w), UNIT_WON);
	return w->result.rows[0].n;
}

static void assert_whole(struct world *w, int64_t id)
{
	struct left left = look(w, id);

	assert_int_equal(left.expired, 0);
	assert_int_equal(left.history, 2);
	assert_int_equal(left.steps, 2);
	assert_int_equal(left.events, 2);
	assert_int_equal(left.version, 2);
	assert_true(left.has_texts && left.has_key && left.has_head);
}

static void what_is_left_is_key_and_head(void **state)
{
	static const char *const ends[] = {RUN_COMPLETED, RUN_FAILED, RUN_CANCELLED};
	struct world *w = *state;

	for (int64_t i = 0; i < 3; i++)
		make_run(w, RUN + i, ends[i]);
	make_run(w, RUN + 9, RUN_COMPLETED);
	fake_clock_advance_ms(&w->clock, AGE_MS);
	for (int64_t i = 0; i < 3; i++) {
		assert_int_equal(expire(w, RUN + i, AGE_MS), UNIT_WON);

		struct left left = look(w, RUN + i);

		assert_int_equal(left.expired, 1);
		assert_int_equal(left.history, 0);
		assert_int_equal(left.steps, 0);
		assert_int_equal(left.events, 0);
		assert_false(left.has_texts);
		assert_true(left.has_key && left.has_head);
	}
	assert_whole(w, RUN + 9);
}

static void a_run_goes_at_its_age_and_not_before(void **state)
{
	struct world *w = *state;

	make_run(w, RUN, RUN_COMPLETED);
	fake_clock_advance_ms(&w->clock, AGE_MS - 1);
	assert_int_equal(scan(w, 10), 0);
	assert_int_equal(expire(w, RUN, AGE_MS), UNIT_LOST);
	assert_whole(w, RUN);
	fake_clock_advance_ms(&w->clock, 1);
	assert_int_equal(scan(w, 10), 1);
	assert_int_equal(world_int(w, 0, 0), RUN);
	assert_int_equal(expire(w, RUN, AGE_MS), UNIT_WON);
	assert_int_equal(scan(w, 10), 0);
	assert_int_equal(expire(w, RUN, AGE_MS), UNIT_LOST); /* another node was first */
}

static void a_run_that_has_not_ended_stays(void **state)
{
	static const char *const others[] = {RUN_RUNNING, RUN_WAITING, RUN_PAUSED, RUN_CANCELLING};
	struct world *w = *state;

	for (int64_t i = 0; i < 4; i++)
		make_run(w, RUN + i, others[i]);
	fake_clock_advance_ms(&w->clock, 100 * AGE_MS);
	assert_int_equal(scan(w, 10), 0);
	for (int64_t i = 0; i < 4; i++) {
		assert_int_equal(expire(w, RUN + i, AGE_MS), UNIT_LOST);
		assert_whole(w, RUN + i);
	}
}

/* The row says that it has ended, the subject does not: the status decides. */
static void the_status_decides(void **state)
{
	struct world *w = *state;

	make_run(w, RUN, RUN_RUNNING);
	sql(w, "UPDATE hx_run SET completed_at = 1");
	fake_clock_advance_ms(&w->clock, 100 * AGE_MS);
	assert_int_equal(scan(w, 10), 1);
	assert_int_equal(expire(w, RUN, AGE_MS), UNIT_LOST);
	assert_whole(w, RUN);
}

/* Whoever read the run before, to retry it, decides on a version that is gone. */
static void what_was_read_before_is_outdated(void **state)
{
	struct world *w = *state;
	struct stamp stamp;

	make_run(w, RUN, RUN_FAILED);
	fake_clock_advance_ms(&w->clock, AGE_MS);
	assert_int_equal(expire(w, RUN, AGE_MS), UNIT_WON);
	stamp = world_begin(w);
	subject_transition(&w->unit, &stamp, &(struct move){RUN, RUN_FAILED, RUN_PENDING}, 2);
	assert_int_equal(world_run(w), UNIT_LOST);
}

static void the_oldest_come_first(void **state)
{
	struct world *w = *state;

	for (int64_t i = 0; i < 5; i++)
		make_run(w, RUN + i, RUN_COMPLETED);
	sql(w, "UPDATE hx_run SET completed_at = completed_at - subject");
	fake_clock_advance_ms(&w->clock, 100 * AGE_MS);
	assert_int_equal(scan(w, 3), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(world_int(w, i, 0), RUN + 4 - (int64_t)i);
}

static size_t scan_kept(struct world *w)
{
	(void)world_begin(w);
	run_scan_kept(&w->unit, AGE_MS, 10);
	assert_int_equal(world_run(w), UNIT_WON);
	return w->result.rows[0].n;
}

static enum unit_verdict expire_kept(struct world *w, int64_t id)
{
	(void)world_begin(w);
	run_expire_kept(&w->unit, id, AGE_MS);
	return world_run(w);
}

/* Its own time counts, be it shorter or longer than that of the configuration; then that of its children has come. */
static void a_run_with_its_own_time_goes_by_that(void **state)
{
	struct world *w = *state;

	make_run(w, RUN, RUN_COMPLETED);
	make_run(w, RUN + 1, RUN_COMPLETED);
	make_run(w, RUN + 2, RUN_COMPLETED);
	sql(w, "UPDATE hx_run SET keep_until = completed_at + 5000 WHERE subject = 50");
	sql(w, "UPDATE hx_run SET parent = 50, child = 'done' WHERE subject = 51");
	fake_clock_advance_ms(&w->clock, 4999);
	assert_int_equal(scan(w, 10), 1); /* the third: neither it nor its child */
	assert_int_equal(world_int(w, 0, 0), RUN + 2);
	assert_int_equal(scan_kept(w), 0);
	MUST_HOLD(expire_kept(w, RUN) == UNIT_LOST, "a run goes before its time");
	assert_int_equal(expire_kept(w, RUN + 2), UNIT_LOST); /* it has none of its own */
	fake_clock_advance_ms(&w->clock, 1);
	assert_int_equal(scan_kept(w), 1);
	assert_int_equal(expire_kept(w, RUN), UNIT_WON);
	assert_int_equal(look(w, RUN).expired, 1);
	MUST_HOLD(scan_kept(w) == 1, "the children of a run that is gone stay");
	assert_int_equal(world_int(w, 0, 0), RUN + 1);
	assert_int_equal(expire_kept(w, RUN + 1), UNIT_WON);
	assert_int_equal(scan_kept(w), 0);
	assert_whole(w, RUN + 2);
}

/* What it has started goes after it, however long ago that has ended. */
static void a_tree_stays_whole(void **state)
{
	struct world *w = *state;

	make_run(w, RUN, RUN_PENDING);
	make_run(w, RUN + 1, RUN_COMPLETED);
	make_run(w, RUN + 2, RUN_COMPLETED);
	sql(w, "UPDATE hx_run SET parent = subject - 1, child = 'done' WHERE subject > 50");
	fake_clock_advance_ms(&w->clock, AGE_MS);
	MUST_HOLD(scan(w, 10) == 0 && expire(w, RUN + 1, AGE_MS) == UNIT_LOST &&
			  expire(w, RUN + 2, AGE_MS) == UNIT_LOST,
		  "a child goes before the run that has started it");
	sql(w,
	    "UPDATE hx_subject SET status = 'COMPLETED' WHERE id = 50; UPDATE hx_run SET completed_at = 1000000 WHERE subject = 50");
	for (int64_t id = RUN; id <= RUN + 2; id++) {
		assert_int_equal(scan(w, 10), 1);
		assert_int_equal(world_int(w, 0, 0), id);
		assert_int_equal(expire(w, id, AGE_MS), UNIT_WON);
	}
	assert_int_equal(scan(w, 10), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_left_is_key_and_head, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(a_run_goes_at_its_age_and_not_before, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(a_run_that_has_not_ended_stays, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(the_status_decides, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(what_was_read_before_is_outdated, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(the_oldest_come_first, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(a_run_with_its_own_time_goes_by_that, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(a_tree_stays_whole, world_set_up, world_tear_down),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
