/* Jobs of workers over SQLite: those of runs, withdrawn; redrive, lists, retention. */
#include "flow/due_watch.h"
#include "job_desk.h"

#include "support/must_hold.h"

/* ---- runs ---- */

static const struct db_stmt stmt_run = {
	.name = "test_run",
	.sql = "INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, awaits, job, created_at)"
	       " VALUES (7, 'default', 'order', 1, 'me', '{}', 'job', ?1, 1)",
	.in = "i",
	.out = "",
};

static const struct db_stmt stmt_run_due = {
	.name = "test_run_due",
	.sql = "SELECT due_at IS NOT NULL FROM hx_run",
	.in = "",
	.out = "i",
};

static bool run_is_due(void)
{
	(void)desk_begin(&w);
	unit_add(&w.unit, UNIT_ANY, &stmt_run_due, 0, NULL);
	(void)desk_run(&w);
	return db_cell(&w.result.rows[0], 0, 0)->i != 0;
}

static int64_t job_of_run(void)
{
	int64_t id = desk_push_bounded(&w, "q", 0);

	(void)desk_begin(&w);
	UNIT_ADD(&w.unit, UNIT_ANY, &stmt_run, db_int(id));
	assert_int_equal(desk_run(&w), UNIT_WON);
	assert_int_equal(desk_claim(&w, "q", 1, LEASE), 1);
	return id;
}

static void the_end_of_a_job_makes_its_run_due(void **state)
{
	int64_t id = job_of_run();

	(void)state;
	assert_int_equal(desk_settle(&w, JOB_FAIL, id, 1), HX_OK);
	assert_false(run_is_due()); /* it goes on by itself */
	fake_clock_advance_ms(&fake, MINUTE);
	assert_int_equal(desk_claim(&w, "q", 1, LEASE), 1);
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, id, 2), HX_OK);
	assert_true(run_is_due());
}

static const struct db_stmt stmt_cancelling = {
	.name = "test_run_cancelling",
	.sql = "INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head)"
	       " VALUES (7, 1, 'CANCELLING', 2, 1, 1, 1, x'00')",
	.in = "",
	.out = "",
};

/* A run that is being cancelled takes its job away before it is begun once more: it has to hear that nobody has it. */
static void a_job_given_back_makes_a_cancelled_run_due(void **state)
{
	int64_t id = job_of_run();

	(void)state;
	(void)desk_begin(&w);
	unit_add(&w.unit, UNIT_ANY, &stmt_cancelling, 0, NULL);
	assert_int_equal(desk_run(&w), UNIT_WON);
	assert_int_equal(desk_settle(&w, JOB_FAIL, id, 1), HX_OK);
	assert_true(run_is_due());
}

static void a_parked_job_makes_its_run_due(void **state)
{
	int64_t id = job_of_run();

	(void)state;
	assert_int_equal(fail_for_good(id, 1, slice_str("no")), HX_OK);
	assert_true(run_is_due());
}

static void a_lapsed_and_parked_job_makes_its_run_due(void **state)
{
	int64_t id = job_of_run();

	(void)state;
	fake_clock_advance_ms(&fake, LEASE);
	assert_int_equal(lapse(id, 1), HX_OK);
	assert_true(run_is_due());
}

static enum unit_verdict withdraw(int64_t id, int64_t version, const char *status)
{
	struct stamp stamp = desk_begin(&w);

	job_withdraw(&w.unit, &stamp, id, version, status, "not wanted any more");
	return desk_run(&w);
}

static void a_job_that_is_taken_away_leaves_no_slot(void **state)
{
	static const struct slot slot = {.name = -5, .max = 1, .key = {"1", 1}, .of = SLOT_OF_JOB};
	static const struct db_stmt left = {
		.name = "test_slots_left", .sql = "SELECT count(*) FROM hx_slot", .in = "", .out = "i"};
	int64_t id = desk_push_bounded(&w, "q", 0);
	struct stamp stamp = desk_begin(&w);

	(void)state;
	slot_lock(&w.unit, &slot);
	slot_take(&w.unit, &slot, id, stamp.at.ms);
	assert_int_equal(desk_run(&w), UNIT_WON);
	assert_int_equal(withdraw(id, 1, JOB_AVAILABLE), UNIT_WON);
	(void)desk_begin(&w);
	unit_add(&w.unit, UNIT_ANY, &left, 0, NULL);
	(void)desk_run(&w);
	MUST_HOLD(db_cell(&w.result.rows[0], 0, 0)->i == 0, "a slot is left");
}

static void a_run_takes_its_job_back(void **state)
{
	int64_t id = desk_push_bounded(&w, "q", 1);

	(void)state;
	assert_int_equal(withdraw(id, 2, JOB_AVAILABLE), UNIT_LOST);
	assert_int_equal(withdraw(id, 1, JOB_RUNNING), UNIT_LOST);
	assert_int_equal(withdraw(id, 1, JOB_AVAILABLE), UNIT_WON);
	assert_string_equal(desk_see(&w, id), "PARKED attempt 0: not wanted any more");
	assert_int_equal(desk_claim(&w, "q", 1, LEASE), 0);
	id = desk_push_bounded(&w, "q", 1);
	assert_int_equal(desk_claim(&w, "q", 1, LEASE), 1);
	assert_int_equal(withdraw(id, 2, JOB_RUNNING), UNIT_WON);
	assert_string_equal(desk_see(&w, id), "PARKED attempt 1, doubt: not wanted any more");
	assert_int_equal(desk_settle(&w, JOB_HEARTBEAT, id, 1), HX_STALE_FENCE);
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, id, 1), HX_STALE_FENCE);
	desk_audit(&w, id);
	(void)desk_push_bounded(&w, "q", 1); /* there is room again */
	assert_int_equal(desk_claim(&w, "q", 1, LEASE), 1);
}

/* ---- redrive, lists, retention ---- */

static enum unit_verdict redrive(const char *workspace, int64_t id)
{
	struct stamp stamp = desk_begin(&w);

	job_redrive(&w.unit, &stamp, slice_str(workspace), id);
	return desk_run(&w);
}

static void a_redrive_tells_missing_from_not_parked(void **state)
{
	int64_t id = claimed(), of_run;

	(void)state;
	assert_int_equal(redrive("default", id), UNIT_LOST);
	assert_int_equal(redrive("default", id + 1), UNIT_REFUSED);
	assert_int_equal(redrive("another", id), UNIT_REFUSED);
	assert_int_equal(fail_for_good(id, 1, slice_str("no")), HX_OK);
	assert_int_equal(redrive("default", id), UNIT_WON);
	assert_string_equal(desk_see(&w, id), "AVAILABLE attempt 0, due");
	assert_int_equal(desk_claim(&w, "q", 1, LEASE), 1);
	assert_int_equal(w.jobs[0].fence, 2);
	desk_audit(&w, id);
	of_run = desk_push_bounded(&w, "q", 0);
	assert_int_equal(withdraw(of_run, 1, JOB_AVAILABLE), UNIT_WON);
	assert_int_equal(redrive("default", of_run), UNIT_LOST);
}

/* Whoever redrives it has looked at it: parked for something else since, it is to be looked at again. */
static void a_redrive_is_of_what_was_seen(void **state)
{
	int64_t id = claimed(), version;
	struct stamp stamp;

	(void)state;
	assert_int_equal(fail_for_good(id, 1, slice_str("no")), HX_OK);
	(void)desk_begin(&w);
	subject_read(&w.unit, id);
	assert_int_equal(desk_run(&w), UNIT_WON);
	version = db_cell(&w.result.rows[0], 0, 1)->i;
	stamp = desk_begin(&w);
	job_redrive_at(&w.unit, &stamp, DEFAULT, id, version - 1);
	MUST_HOLD(desk_run(&w) == UNIT_LOST,
		  "a job is redriven that has been done and parked again since it was looked at");
	stamp = desk_begin(&w);
	job_redrive_at(&w.unit, &stamp, DEFAULT, id, version);
	assert_int_equal(desk_run(&w), UNIT_WON);
}

static void lists_show_what_the_api_tells(void **state)
{
	struct job_push_item item = {
		.queue = slice_str("x"), .payload = slice_str("5"), .key = slice_str("k"), .priority = -7};
	const struct db_rows *rows = &w.result.rows[0];

	(void)state;
	assert_int_equal(push(&item, 1), HX_OK);
	(void)desk_push(&w, "y", 0, 0);
	assert_int_equal(desk_claim(&w, "x", 1, LEASE), 1);
	(void)desk_begin(&w);
	job_list(&w.unit, DEFAULT, slice_str(""), slice_str("x"), 0, 10);
	assert_int_equal(desk_run(&w), UNIT_WON);
	assert_int_equal(rows->n, 1);
	assert_int_equal(rows->columns, JOB_COLUMNS);
	assert_int_equal(db_cell(rows, 0, JOB_PRIORITY)->i, -7);
	assert_true(slice_is(db_cell(rows, 0, JOB_USER_KEY)->s, "k"));
	assert_true(slice_is(db_cell(rows, 0, JOB_OWNER)->s, "me"));
	assert_int_equal(db_cell(rows, 0, JOB_UNTIL)->i, fake.wall.ms + LEASE);
	assert_int_equal(db_cell(rows, 0, JOB_FENCE)->i, 1);
	assert_int_equal(db_cell(rows, 0, JOB_RUN)->type, DB_NULL);
	(void)desk_begin(&w);
	job_list(&w.unit, DEFAULT, slice_str(JOB_AVAILABLE), slice_str(""), 0, 10);
	assert_int_equal(desk_run(&w), UNIT_WON);
	assert_int_equal(rows->n, 1);
	(void)desk_begin(&w);
	job_read_in(&w.unit, slice_str("another"), item.subject);
	assert_int_equal(desk_run(&w), UNIT_WON);
	assert_int_equal(rows->n, 0);
}

static void only_after_effects_are_the_engines(void **state)
{
	struct job_spec spec = {.subject = 99,
				.workspace = DEFAULT,
				.queue = JOB_QUEUE_AFTER_EFFECTS,
				.workflow = "billing",
				.action = "mail",
				.effect_key = slice_str("k"),
				.payload = slice_str("{}")};
	const struct db_rows *rows = &w.result.rows[0];
	struct stamp stamp;

	(void)state;
	(void)desk_push(&w, "q", 0, 1000);
	(void)desk_begin(&w);
	UNIT_ADD(&w.unit, UNIT_ANY, job_due_source.next, db_text(slice_str("[]")));
	assert_int_equal(desk_run(&w), UNIT_WON);
	assert_int_equal(db_cell(rows, 0, 0)->type, DB_NULL);
	stamp = desk_begin(&w);
	job_insert(&w.unit, &stamp, &spec);
	assert_int_equal(desk_run(&w), UNIT_WON);
	(void)desk_begin(&w);
	UNIT_ADD(&w.unit, UNIT_ANY, job_due_source.found, db_int(10), db_text(slice_str("[]")), db_str("[]"));
	assert_int_equal(desk_run(&w), UNIT_WON);
	assert_int_equal(rows->n, 1);
	assert_int_equal(db_cell(rows, 0, 0)->i, 99);
	assert_int_equal(desk_claim(&w, JOB_QUEUE_AFTER_EFFECTS, 10, LEASE), 0);
	/* Nor does it end one that a node delivers, whatever it calls itself. */
	stamp = desk_begin(&w);
	subject_claim(&w.unit, &stamp, &(struct move){99, JOB_AVAILABLE, JOB_RUNNING}, /* version= */ 1, LEASE);
	assert_int_equal(desk_run(&w), UNIT_WON);
	w.name = stamp.node;
	for (enum job_settle_kind kind = JOB_HEARTBEAT; kind <= JOB_FAIL; kind++)
		MUST_HOLD(desk_settle(&w, kind, 99, 1) == HX_STALE_FENCE, "a worker settles what a node delivers");
	w.name = "me";
	/* The janitor does, and leaves the rest to whoever takes it. */
	fake_clock_advance_ms(&fake, LEASE);
	assert_int_equal(lapse(99, 1), HX_OK);
	assert_string_equal(desk_see(&w, 99), "AVAILABLE attempt 0, due, doubt: its worker was lost");
}

static size_t scan_expired(int64_t age_ms)
{
	(void)desk_begin(&w);
	job_scan_expired(&w.unit, age_ms, 10);
	assert_int_equal(desk_run(&w), UNIT_WON);
	return w.result.rows[0].n;
}

static enum unit_verdict expire(int64_t id, int64_t age_ms)
{
	(void)desk_begin(&w);
	job_expire(&w.unit, id, age_ms);
	return desk_run(&w);
}

static const struct db_stmt stmt_left = {
	.name = "test_left",
	.sql = "SELECT (SELECT count(*) FROM hx_job WHERE subject = ?1) + (SELECT count(*) FROM hx_subject WHERE id = ?1)"
	       " + (SELECT count(*) FROM hx_history WHERE subject = ?1)",
	.in = "i",
	.out = "i",
};

static void retention_lets_completed_jobs_go(void **state)
{
	int64_t done, parked;

	(void)state;
	parked = claimed();
	assert_int_equal(fail_for_good(parked, 1, slice_str("no")), HX_OK);
	done = claimed();
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, done, 1), HX_OK);
	fake_clock_advance_ms(&fake, MINUTE - 1);
	assert_int_equal(scan_expired(MINUTE), 0);
	assert_int_equal(expire(done, MINUTE), UNIT_LOST);
	fake_clock_advance_ms(&fake, 1);
	assert_int_equal(scan_expired(MINUTE), 1);
	assert_int_equal(expire(parked, MINUTE), UNIT_LOST);
	assert_int_equal(expire(done, MINUTE), UNIT_WON);
	assert_int_equal(expire(done, MINUTE), UNIT_LOST);
	(void)desk_begin(&w);
	UNIT_ADD(&w.unit, UNIT_ANY, &stmt_left, db_int(done));
	assert_int_equal(desk_run(&w), UNIT_WON);
	assert_int_equal(db_cell(&w.result.rows[0], 0, 0)->i, 0);
}

/* The output of a step's job is all that its run has of it, until it takes it. */
static void retention_keeps_what_a_run_still_needs(void **state)
{
	int64_t id = job_of_run();

	(void)state;
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, id, 1), HX_OK);
	fake_clock_advance_ms(&fake, MINUTE);
	assert_int_equal(scan_expired(MINUTE), 0);
	assert_int_equal(expire(id, MINUTE), UNIT_LOST);
}

static void a_backoff_grows_to_its_maximum(void **state)
{
	struct run_retry retry = {.initial_ms = 1000, .max_ms = 5000, .factor_thousandths = 2500};

	(void)state;
	assert_int_equal(backoff_ms(&retry, 1, 0), 1000);
	assert_int_equal(backoff_ms(&retry, 2, 0), 2500);
	assert_int_equal(backoff_ms(&retry, 3, 0), 5000);
	assert_int_equal(backoff_ms(&retry, 1000, 0), 5000);
	retry.jitter = true;
	for (int64_t drawn = 0; drawn < 1000; drawn++) {
		int64_t ms = backoff_ms(&retry, 2, drawn);

		assert_true(ms >= 1250 && ms <= 2500);
	}
	retry = (struct run_retry){.initial_ms = INT64_MAX / 2, .max_ms = INT64_MAX, .factor_thousandths = 1000000};
	assert_int_equal(backoff_ms(&retry, 5, 0), INT64_MAX);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(the_end_of_a_job_makes_its_run_due),
		TEST(a_job_given_back_makes_a_cancelled_run_due),
		TEST(a_parked_job_makes_its_run_due),
		TEST(a_lapsed_and_parked_job_makes_its_run_due),
		TEST(a_run_takes_its_job_back),
		TEST(a_job_that_is_taken_away_leaves_no_slot),
		TEST(a_redrive_tells_missing_from_not_parked),
		TEST(a_redrive_is_of_what_was_seen),
		TEST(lists_show_what_the_api_tells),
		TEST(only_after_effects_are_the_engines),
		TEST(retention_lets_completed_jobs_go),
		TEST(retention_keeps_what_a_run_still_needs),
		TEST(a_backoff_grows_to_its_maximum),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests_name("job kept", tests, NULL, NULL);
}
