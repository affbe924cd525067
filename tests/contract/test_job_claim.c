/*
 * Claims of jobs, the same on every store: each test below runs on a SQLite file and on PostgreSQL. What several do at once:
 * test_job_claim_races.c.
 */
#include "contract/job_desks.h"

static void the_best_come_first(void **state)
{
	struct desk *a = &world.a;
	int64_t wanted[5];

	(void)state;
	wanted[2] = desk_push(a, "q", 0, 2000);
	wanted[3] = desk_push(a, "q", 0, 3000);
	wanted[4] = desk_push(a, "q", -1000, 1000);
	wanted[1] = desk_push(a, "q", 1, 5000);
	wanted[0] = desk_push(a, "q", 1000, 9000);
	assert_int_equal(desk_claim(a, "q", 3, LEASE_MS), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(a->jobs[i].subject, wanted[i]);
	assert_int_equal(desk_claim(a, "q", 10, LEASE_MS), 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(a->jobs[i].subject, wanted[3 + i]);
}

static void what_is_due_later_is_not_claimed(void **state)
{
	struct desk *a = &world.a;
	int64_t due;

	(void)state;
	(void)desk_push(a, "q", 1000, now_ms() + 3600000);
	due = desk_push(a, "q", 0, 0);
	(void)desk_push(a, "q", 0, now_ms() + 3600000);
	MUST_HOLD(desk_claim(a, "q", 10, LEASE_MS) == 1, "what is due later is claimed now");
	assert_int_equal(a->jobs[0].subject, due);
	assert_int_equal(desk_claim(a, "q", 10, LEASE_MS), 0);
}

/*
 * The rows that a claim has locked may be others than those that it found. A job that is due has such a subject in no schedule, so
 * this guard is the second one there.
 */
static void a_claim_looks_at_the_subject_itself(void **state)
{
	static const char *const others[] = {"UPDATE hx_subject SET status = 'PARKED'",
					     "UPDATE hx_subject SET status = 'AVAILABLE', owner = 'b', until = 1"};
	struct desk *a = &world.a;
	struct hx_error err;

	(void)state;
	(void)desk_push(a, "q", 0, 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(a->db->driver->script(a->db, others[i], &err), HX_OK);
		MUST_HOLD(desk_claim(a, "q", 1, LEASE_MS) == 0, "a job is claimed whose subject is not free");
	}
}

static void a_claim_says_what_it_gave(void **state)
{
	struct desk *a = &world.a;
	int64_t id = desk_push(a, "q", 0, 0), before = now_ms();

	(void)state;
	assert_int_equal(desk_claim(a, "another", 10, LEASE_MS), 0);
	assert_int_equal(desk_claim(a, "q", 10, LEASE_MS), 1);
	assert_int_equal(a->jobs[0].subject, id);
	assert_int_equal(a->jobs[0].attempt, 1);
	assert_int_equal(a->jobs[0].fence, 1);
	assert_true(slice_is(a->jobs[0].queue, "q"));
	assert_true(slice_is(a->jobs[0].payload, "{\"n\":1}"));
	/* Both stores are on this machine. */
	assert_true(a->jobs[0].until_ms >= before + LEASE_MS && a->jobs[0].until_ms <= now_ms() + LEASE_MS);
	assert_string_equal(desk_see(a, id), "RUNNING attempt 1");
	desk_audit(a, id);
}

static enum hx_code lapse(struct desk *w, int64_t id, int64_t fence)
{
	struct job_settle_request rq = {.kind = JOB_LAPSE, .subject = id, .fence = fence};
	struct job_settle settle;

	job_settle_init(&settle, &rq, &w->arena);
	return desk_drive(w, &settle.task);
}

static void a_stale_worker_changes_nothing(void **state)
{
	static const enum job_settle_kind kinds[] = {JOB_HEARTBEAT, JOB_COMPLETE, JOB_FAIL};
	struct desk *a = &world.a, *b = &world.b;
	int64_t id = desk_push(a, "q", 0, 0);

	(void)state;
	assert_int_equal(desk_claim(a, "q", 1, PAST_MS), 1);
	assert_int_equal(lapse(b, id, 1), HX_OK);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(desk_settle(a, kinds[i], id, 1), HX_STALE_FENCE);
	assert_string_equal(desk_see(a, id), "AVAILABLE attempt 1, due, doubt: its worker was lost");
	assert_int_equal(desk_claim(b, "q", 1, LEASE_MS), 1);
	assert_int_equal(b->jobs[0].fence, 2);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(desk_settle(a, kinds[i], id, 1), HX_STALE_FENCE);
		assert_int_equal(desk_settle(a, kinds[i], id, 2), HX_STALE_FENCE); /* the fence alone is not enough */
	}
	assert_int_equal(lapse(a, id, 1), HX_STALE_FENCE);
	assert_int_equal(lapse(a, id, 2), HX_STALE_FENCE); /* its time is not over */
	assert_string_equal(desk_see(a, id), "RUNNING attempt 2, doubt: its worker was lost");
	assert_int_equal(desk_settle(b, JOB_HEARTBEAT, id, 2), HX_OK);
	assert_int_equal(desk_settle(b, JOB_COMPLETE, id, 2), HX_OK);
	assert_string_equal(desk_see(a, id), "COMPLETED attempt 2 = {\"ok\":true}");
	desk_audit(a, id);
}

/* A worker that was started again under its old name: the fence is what tells it from itself. */
static void a_name_is_no_claim(void **state)
{
	static const enum job_settle_kind kinds[] = {JOB_HEARTBEAT, JOB_COMPLETE, JOB_FAIL};
	struct desk *a = &world.a;
	int64_t id = desk_push(a, "q", 0, 0);

	(void)state;
	assert_int_equal(desk_claim(a, "q", 1, PAST_MS), 1);
	assert_int_equal(lapse(a, id, 1), HX_OK);
	assert_int_equal(desk_claim(a, "q", 1, LEASE_MS), 1);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(desk_settle(a, kinds[i], id, 1), HX_STALE_FENCE);
	assert_string_equal(desk_see(a, id), "RUNNING attempt 2, doubt: its worker was lost");
	desk_audit(a, id);
}

/* The job of a step is settled in the unit that makes its run due; one in a bounded queue makes room. */
static void jobs_of_all_sorts_are_completed(void **state)
{
	struct desk *a = &world.a;
	int64_t ids[3] = {desk_push(a, "q", 0, 0), desk_push_bounded(a, "q", 0), desk_push_bounded(a, "q", 1)};

	(void)state;
	assert_int_equal(desk_claim(a, "q", 10, LEASE_MS), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(desk_settle(a, JOB_HEARTBEAT, ids[i], 1), HX_OK);
		assert_int_equal(desk_settle(a, JOB_COMPLETE, ids[i], 1), HX_OK);
		assert_string_equal(desk_see(a, ids[i]), "COMPLETED attempt 1 = {\"ok\":true}");
		desk_audit(a, ids[i]);
	}
}

/* A settling that has read its job, and has yet to write. */
struct late {
	struct job_settle_request rq;
	struct job_settle settle;
};

static void late_read(struct desk *d, struct late *late, enum job_settle_kind kind, int64_t id, int64_t fence)
{
	struct answer answer = {.kind = ANSWER_START,
				.now = {now_ms()},
				.node = "here",
				.id = id_next(&d->ids, (struct wall_time){now_ms()})};
	struct ask ask = {.unit = &d->unit};

	late->rq = (struct job_settle_request){.kind = kind,
					       .subject = id,
					       .fence = fence,
					       .owner = slice_str(d->name),
					       .lease_ms = LEASE_MS,
					       .output = slice_str("\"late\""),
					       .retryable = true};
	job_settle_init(&late->settle, &late->rq, &d->arena);
	late->settle.task.kind->take(&late->settle.task, &answer);
	late->settle.task.kind->ask(&late->settle.task, &ask);
	answer.kind = ANSWER_COMMIT;
	answer.result = &d->result;
	if (kind == JOB_HEARTBEAT || kind == JOB_COMPLETE) { /* what it tries at first was not that simple */
		d->result.verdict = UNIT_LOST;
		late->settle.task.kind->take(&late->settle.task, &answer);
		late->settle.task.kind->ask(&late->settle.task, &ask);
	}
	assert_int_equal(desk_run(d), UNIT_WON);
	late->settle.task.kind->take(&late->settle.task, &answer);
}

static enum unit_verdict late_write(struct desk *d, struct late *late)
{
	struct ask ask = {.unit = &d->unit};

	late->settle.task.kind->ask(&late->settle.task, &ask);
	assert_int_equal(ask.kind, ASK_COMMIT);
	return desk_run(d);
}

static const enum job_settle_kind all_kinds[] = {JOB_HEARTBEAT, JOB_COMPLETE, JOB_FAIL, JOB_LAPSE};

/* It read in time. Before it wrote, its time was over and the job another's. */
static void what_was_read_in_time_and_written_late_changes_nothing(void **state)
{
	struct desk *a = &world.a, *b = &world.b;

	(void)state;
	for (size_t k = 0; k < 4; k++) {
		int64_t id = desk_push(a, "q", 0, 0);
		struct late late;

		assert_int_equal(desk_claim(a, "q", 1, PAST_MS), 1);
		late_read(a, &late, all_kinds[k], id, 1);
		assert_int_equal(lapse(b, id, 1), HX_OK);
		assert_int_equal(late_write(a, &late), UNIT_LOST);
		assert_int_equal(desk_claim(b, "q", 1, PAST_MS), 1);
		assert_int_equal(late_write(a, &late), UNIT_LOST);
		assert_string_equal(desk_see(a, id), "RUNNING attempt 2, doubt: its worker was lost");
		assert_int_equal(desk_settle(b, JOB_COMPLETE, id, 2), HX_OK);
		desk_audit(a, id);
	}
}

/* The same claim, ended in between: of all that settle it one wins. */
static void a_claim_is_settled_once(void **state)
{
	struct desk *a = &world.a;

	(void)state;
	for (size_t k = 0; k < 4; k++) {
		int64_t id = desk_push(a, "q", 0, 0);
		struct late late;

		assert_int_equal(desk_claim(a, "q", 1, PAST_MS), 1);
		late_read(a, &late, all_kinds[k], id, 1);
		assert_int_equal(desk_settle(a, JOB_COMPLETE, id, 1), HX_OK);
		assert_int_equal(late_write(a, &late), UNIT_LOST);
		assert_string_equal(desk_see(a, id), "COMPLETED attempt 1 = {\"ok\":true}");
		desk_audit(a, id);
	}
}

static void keys_are_unique_in_their_queue(void **state)
{
	struct desk *a = &world.a, *b = &world.b;
	struct job_push_item items[] = {
		{.queue = slice_str("q"), .payload = slice_str("1"), .key = slice_str("k2")},
		{.queue = slice_str("q"), .payload = slice_str("2"), .key = slice_str("k1")},
		{.queue = slice_str("q"), .payload = slice_str("3"), .key = slice_str("k2")},
		{.queue = slice_str("other"), .payload = slice_str("4"), .key = slice_str("k1")},
		{.queue = slice_str("q"), .payload = slice_str("5")},
	};
	struct job_push_item again[] = {items[1], items[4], items[0]};
	struct job_push push;
	int64_t ids[2];

	(void)state;
	job_push_init(&push, slice_str("default"), items, 5, &a->arena);
	assert_int_equal(desk_drive(a, &push.task), HX_OK);
	assert_true(items[0].created && items[1].created && !items[2].created && items[3].created && items[4].created);
	assert_int_equal(items[2].subject, items[0].subject);
	ids[0] = items[0].subject;
	ids[1] = items[1].subject;
	job_push_init(&push, slice_str("default"), again, 3, &b->arena);
	assert_int_equal(desk_drive(b, &push.task), HX_OK);
	assert_true(!again[0].created && again[1].created && !again[2].created);
	assert_int_equal(again[0].subject, ids[1]);
	assert_int_equal(again[2].subject, ids[0]);
	assert_int_equal(desk_claim(a, "q", 10, LEASE_MS), 4);
	for (size_t i = 0; i < 4; i++)
		desk_audit(a, a->jobs[i].subject);
}

static void a_payload_keeps_its_bytes(void **state)
{
	static const char payload[] = "{\"a\": 1.10,\"b\":\"\\u0000\\ud83d\\ude00 \\\\u0000 \xf0\x9f\x98\x80\\/\"}";
	struct desk *a = &world.a;
	struct job_push_item item = {.queue = slice_str("q"), .payload = slice_str(payload)};
	struct job_push push;

	(void)state;
	job_push_init(&push, slice_str("default"), &item, 1, &a->arena);
	assert_int_equal(desk_drive(a, &push.task), HX_OK);
	assert_int_equal(desk_claim(a, "q", 1, LEASE_MS), 1);
	assert_true(slice_is(a->jobs[0].payload, payload));
}

static void a_thousand_are_pushed_at_once(void **state)
{
	static struct job_push_item items[JOB_PUSH_MAX];
	struct desk *a = &world.a;
	struct job_push push;

	(void)state;
	for (size_t i = 0; i < JOB_PUSH_MAX; i++)
		items[i] = (struct job_push_item){.queue = slice_str("q"), .payload = slice_str("{}")};
	job_push_init(&push, slice_str("default"), items, JOB_PUSH_MAX, &a->arena);
	assert_int_equal(desk_drive(a, &push.task), HX_OK);
	for (size_t i = 0; i < JOB_PUSH_MAX; i++)
		assert_true(items[i].created);
	assert_int_equal(desk_claim(a, "q", JOB_CLAIM_MAX, LEASE_MS), JOB_CLAIM_MAX);
	for (size_t i = 0; i < JOB_CLAIM_MAX; i++)
		assert_int_equal(a->jobs[i].subject, items[i].subject);
	desk_audit(a, items[0].subject);
	desk_audit(a, items[JOB_PUSH_MAX - 1].subject);
}

static void a_bound_is_kept(void **state)
{
	struct desk *a = &world.a, *b = &world.b;
	int64_t loose, first;

	(void)state;
	for (int i = 0; i < 10; i++)
		(void)desk_push_bounded(a, "q", BOUND);
	assert_int_equal(desk_claim(a, "q", 10, LEASE_MS), BOUND);
	first = a->jobs[0].subject;
	assert_int_equal(desk_claim(b, "q", 10, LEASE_MS), 0);
	loose = desk_push(b, "q", 0, 0); /* without a bound: claimed, and not counted */
	assert_int_equal(desk_claim(b, "q", 10, LEASE_MS), 1);
	assert_int_equal(b->jobs[0].subject, loose);
	assert_int_equal(desk_settle(a, JOB_COMPLETE, first, 1), HX_OK);
	assert_int_equal(desk_claim(b, "q", 10, LEASE_MS), 1);
	assert_int_equal(desk_settle(b, JOB_FAIL, b->jobs[0].subject, 1), HX_OK);
	assert_int_equal(desk_claim(b, "q", 10, LEASE_MS), 1);
	assert_int_equal(desk_claim(b, "q", 10, LEASE_MS), 0);
	/* Another workspace's queue of the same name is another queue; so is another queue. */
	for (int i = 0; i < 10; i++)
		(void)desk_push_bounded(a, "r", 1);
	assert_int_equal(desk_claim(b, "r", 10, LEASE_MS), 1);
}

/* Two versions of a definition with different bounds, and jobs without one, in one queue. */
static void a_job_goes_by_its_own_bound(void **state)
{
	struct desk *a = &world.a;
	int64_t narrow[3], wide[3], loose;

	(void)state;
	for (int i = 0; i < 3; i++)
		narrow[i] = desk_push_bounded(a, "q", 2);
	for (int i = 0; i < 3; i++)
		wide[i] = desk_push_bounded(a, "q", 3);
	loose = desk_push(a, "q", -3, 0);
	assert_int_equal(desk_claim(a, "q", 10, LEASE_MS), 3);
	for (size_t i = 0; i < 2; i++) /* one grade of bounded jobs in one claim */
		assert_true(a->jobs[i].subject == narrow[0] || a->jobs[i].subject == narrow[1]);
	assert_int_equal(a->jobs[2].subject, loose); /* has no bound, and counts in none */
	assert_int_equal(desk_claim(a, "q", 10, LEASE_MS), 1);
	assert_true(a->jobs[0].subject == wide[0] || a->jobs[0].subject == wide[1] || a->jobs[0].subject == wide[2]);
	assert_int_equal(desk_claim(a, "q", 10, LEASE_MS), 0);
}

static void a_claim_sleeps_until_something_may_be_there(void **state)
{
	struct desk *a = &world.a;
	int64_t due = now_ms() + 1500, slept;

	(void)state;
	assert_true(sleeps_for(a, "q") >= JOB_WORK_POLL_MS);
	(void)desk_push(a, "q", 0, due + 3600000);
	assert_true(sleeps_for(a, "q") >= JOB_WORK_POLL_MS);
	(void)desk_push(a, "q", -9, due);
	slept = sleeps_for(a, "q");
	assert_true(slept >= JOB_WORK_REST_MS && slept <= 1500 + JOB_WORK_REST_MS);
	/* A bound that is reached is not waited for by looking all the time. */
	for (int i = 0; i < 2; i++)
		(void)desk_push_bounded(a, "full", 1);
	assert_int_equal(desk_claim(a, "full", 10, LEASE_MS), 1);
	assert_true(sleeps_for(a, "full") >= JOB_WORK_POLL_MS);
}

static void retention_lets_completed_jobs_go(void **state)
{
	struct desk *a = &world.a;
	int64_t id = desk_push(a, "q", 0, 0);

	(void)state;
	assert_int_equal(desk_claim(a, "q", 1, LEASE_MS), 1);
	assert_int_equal(desk_settle(a, JOB_COMPLETE, id, 1), HX_OK);
	(void)desk_begin(a);
	job_scan_expired(&a->unit, 0, 10);
	assert_int_equal(desk_run(a), UNIT_WON);
	assert_int_equal(a->result.rows[0].n, 1);
	(void)desk_begin(a);
	job_expire(&a->unit, id, LEASE_MS);
	assert_int_equal(desk_run(a), UNIT_LOST);
	(void)desk_begin(a);
	job_expire(&a->unit, id, 0);
	assert_int_equal(desk_run(a), UNIT_WON);
	assert_string_equal(desk_see(a, id), "none");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		BOTH(the_best_come_first),
		BOTH(what_is_due_later_is_not_claimed),
		BOTH(a_claim_says_what_it_gave),
		BOTH(a_stale_worker_changes_nothing),
		BOTH(a_name_is_no_claim),
		BOTH(jobs_of_all_sorts_are_completed),
		BOTH(what_was_read_in_time_and_written_late_changes_nothing),
		BOTH(a_claim_is_settled_once),
		BOTH(keys_are_unique_in_their_queue),
		BOTH(a_payload_keeps_its_bytes),
		BOTH(a_thousand_are_pushed_at_once),
		BOTH(a_bound_is_kept),
		BOTH(a_job_goes_by_its_own_bound),
		BOTH(a_claim_sleeps_until_something_may_be_there),
		BOTH(retention_lets_completed_jobs_go),
		POSTGRES(a_claim_looks_at_the_subject_itself),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("job claim", tests, NULL, NULL);
}
