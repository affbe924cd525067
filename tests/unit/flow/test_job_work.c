/* Jobs of workers over SQLite: push, claim, settle, lapse. On all stores: test_job_claim. */
#include "job_desk.h"

#include "support/must_hold.h"

/* ---- push ---- */

static void a_payload_keeps_its_bytes(void **state)
{
	const char *payloads[] = {"{\"a\":9007199254740993.10,  \"b\":\"\\u0000\\\\ \\\"\\n\xc3\xa9\"}", "null", "\"\"",
				  "[1,2]"};
	struct job_push_item items[4] = {0};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		items[i] = (struct job_push_item){.queue = slice_str("q"), .payload = slice_str(payloads[i])};
	assert_int_equal(push(items, 4), HX_OK);
	assert_int_equal(desk_claim(&w, "q", 10, LEASE), 4);
	for (size_t i = 0; i < 4; i++) {
		char key[ID_TEXT_BYTES];

		assert_true(slice_is(w.jobs[i].payload, payloads[i]));
		id_format("job", items[i].subject, key);
		assert_true(slice_is(w.jobs[i].key, key));
		assert_int_equal(w.jobs[i].subject, items[i].subject);
	}
}

static void a_thousand_jobs_are_pushed_in_one_unit(void **state)
{
	static struct job_push_item items[JOB_PUSH_MAX];

	(void)state;
	for (size_t i = 0; i < JOB_PUSH_MAX; i++)
		items[i] = (struct job_push_item){.queue = slice_str("bulk"), .payload = slice_str("{}")};
	assert_int_equal(push(items, JOB_PUSH_MAX), HX_OK);
	for (size_t i = 0; i < JOB_PUSH_MAX; i++) {
		assert_true(items[i].created);
		assert_true(i == 0 || items[i].subject > items[i - 1].subject);
	}
	desk_audit(&w, items[0].subject);
	desk_audit(&w, items[JOB_PUSH_MAX - 1].subject);
	for (size_t n = 0; n < JOB_PUSH_MAX; n += JOB_CLAIM_MAX)
		assert_int_equal(desk_claim(&w, "bulk", JOB_CLAIM_MAX, LEASE), JOB_CLAIM_MAX);
	assert_int_equal(desk_claim(&w, "bulk", JOB_CLAIM_MAX, LEASE), 0);
	desk_audit(&w, items[500].subject);
}

static void a_key_is_one_job_in_its_queue(void **state)
{
	struct job_push_item items[4] = {
		{.queue = slice_str("q"), .payload = slice_str("1"), .key = slice_str("k")},
		{.queue = slice_str("q"), .payload = slice_str("2"), .key = slice_str("k")},
		{.queue = slice_str("other"), .payload = slice_str("3"), .key = slice_str("k")},
		{.queue = slice_str("q"), .payload = slice_str("4")},
	};
	struct job_push_item again = items[1], elsewhere = items[0];
	struct job_push p;
	int64_t first;

	(void)state;
	assert_int_equal(push(items, 4), HX_OK);
	first = items[0].subject;
	assert_true(items[0].created && !items[1].created && items[2].created && items[3].created);
	assert_int_equal(items[1].subject, first);
	assert_int_equal(push(&again, 1), HX_OK);
	assert_false(again.created);
	assert_int_equal(again.subject, first);
	job_push_init(&p, slice_str("another"), &elsewhere, 1, &w.arena);
	assert_int_equal(desk_drive(&w, &p.task), HX_OK);
	assert_true(elsewhere.created);
	assert_int_equal(desk_claim(&w, "q", 10, LEASE), 2);
	assert_true(slice_is(w.jobs[0].payload, "1") && slice_is(w.jobs[1].payload, "4"));
}

static void the_queue_of_the_engine_is_closed(void **state)
{
	struct job_push_item items[2] = {{.queue = slice_str("q"), .payload = slice_str("1")},
					 {.queue = slice_str(JOB_QUEUE_AFTER_EFFECTS), .payload = slice_str("1")}};

	(void)state;
	assert_int_equal(push(items, 2), HX_VALIDATION_ERROR);
	assert_int_equal(desk_claim(&w, "q", 10, LEASE), 0);
}

/* The commit's answer is lost: what is there says whether it landed. */
static void an_unknown_push_is_looked_for(void **state)
{
	struct job_push_item items[2] = {{.queue = slice_str("q"), .payload = slice_str("1")},
					 {.queue = slice_str("q"), .payload = slice_str("2"), .key = slice_str("k")}};
	struct unit_result unknown = {.verdict = UNIT_UNKNOWN};
	struct answer answer = {.kind = ANSWER_START, .now = fake.wall, .id = 1, .ids = &w.ids, .node = "here"};

	(void)state;
	for (int landed = 0; landed < 2; landed++) {
		struct job_push p;
		struct ask ask = {.unit = &w.unit};

		job_push_init(&p, DEFAULT, items, 2, &w.arena);
		answer.kind = ANSWER_START;
		p.task.kind->take(&p.task, &answer);
		p.task.kind->ask(&p.task, &ask);
		if (landed)
			assert_int_equal(desk_run(&w), UNIT_WON);
		answer.kind = ANSWER_COMMIT;
		answer.result = &unknown;
		p.task.kind->take(&p.task, &answer);
		p.task.kind->ask(&p.task, &ask);
		assert_int_equal(ask.kind, ASK_COMMIT);
		assert_int_equal(desk_run(&w), UNIT_WON);
		answer.result = &w.result;
		p.task.kind->take(&p.task, &answer);
		p.task.kind->ask(&p.task, &ask);
		assert_int_equal(ask.kind, ASK_DONE);
		assert_int_equal(ask.code, landed ? HX_OK : HX_OUTCOME_UNKNOWN);
	}
	assert_true(items[0].created && items[1].created);
}

/* ---- claim ---- */

static void several_queues_are_claimed_by_priority(void **state)
{
	struct job_claim_request rq = {.workspace = DEFAULT,
				       .owner = slice_str("me"),
				       .queues_n = 3,
				       .queues = {slice_str("b"), slice_str("a"), slice_str("b")},
				       .max = 10,
				       .lease_ms = LEASE};
	int64_t wanted[4];
	struct job_claim claim;

	(void)state;
	wanted[2] = desk_push(&w, "a", 0, 0);
	fake_clock_advance_ms(&fake, 1);
	wanted[3] = desk_push(&w, "b", 0, 0);
	wanted[0] = desk_push(&w, "b", 7, 0);
	wanted[1] = desk_push(&w, "a", 3, 0);
	(void)desk_push(&w, "c", 1000, 0);
	job_claim_init(&claim, &rq, &w.arena);
	assert_int_equal(desk_drive(&w, &claim.task), HX_OK);
	assert_int_equal(claim.n, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(claim.jobs[i].subject, wanted[i]);
}

static void one_claim_hands_out_a_bounded_number_of_bytes(void **state)
{
	static char big[JOB_PAYLOAD_BYTES_MAX];
	struct job_push_item items[20] = {0};

	(void)state;
	memset(big, ' ', sizeof big);
	big[0] = '1';
	for (size_t i = 0; i < 20; i++)
		items[i] = (struct job_push_item){.queue = slice_str("q"), .payload = slice_of(big, sizeof big)};
	assert_int_equal(push(items, 20), HX_OK);
	assert_int_equal(desk_claim(&w, "q", 20, LEASE), JOB_CLAIM_BYTES_MAX / JOB_PAYLOAD_BYTES_MAX);
	assert_int_equal(desk_claim(&w, "q", 20, LEASE), 4);
	for (size_t i = 0; i < 20; i++)
		desk_audit(&w, items[i].subject);
}

/* Where a claim that finds nothing sleeps to. */
static int64_t sleeps_for(const char *queue, int64_t wait_ms)
{
	struct job_claim_request rq = {.workspace = DEFAULT,
				       .owner = slice_str("me"),
				       .queues_n = 1,
				       .queues = {slice_str(queue)},
				       .max = 1,
				       .lease_ms = LEASE,
				       .wait_ms = wait_ms};
	struct job_claim claim;

	job_claim_init(&claim, &rq, &w.arena);
	assert_int_equal(claim.task.topic, job_topic(DEFAULT));
	assert_int_equal(desk_drive(&w, &claim.task), HX_BUSY);
	return (w.sleeps_until.ns - fake.mono.ns) / 1000000;
}

static void a_claim_waits_for_the_next_due_moment(void **state)
{
	(void)state;
	assert_int_equal(sleeps_for("q", 500), 500);
	assert_int_equal(sleeps_for("q", MINUTE), JOB_WORK_POLL_MS);
	(void)desk_push(&w, "q", -5, fake.wall.ms + 700);
	(void)desk_push(&w, "q", 5, fake.wall.ms + 900);
	assert_int_equal(sleeps_for("q", MINUTE), 700);
	assert_int_equal(sleeps_for("q", 100), 100);
	fake_clock_advance_ms(&fake, 700);
	assert_int_equal(desk_claim(&w, "q", 10, LEASE), 1);
	assert_int_equal(sleeps_for("q", MINUTE), 200);
}

/* One of those who wait for this queue, and nobody else. */
static void assert_wakes_workers(void)
{
	for (unsigned i = 0; i < w.unit.wakes_n; i++)
		assert_true(w.unit.wakes[i] != JOB_TOPIC && w.unit.wakes[i] != job_topic(DEFAULT));
	assert_int_equal(w.unit.offers_n, 1);
	assert_int_equal(w.unit.offers[0].stand, job_stand(DEFAULT, slice_str("q")));
	assert_int_equal(w.unit.offers[0].n, 1);
}

static void jobs_of_many_queues_wake_the_workers_of_their_workspace(void **state)
{
	struct job_push_item items[JOB_QUEUES_MAX] = {0};
	char names[JOB_QUEUES_MAX][8];

	(void)state;
	for (size_t i = 0; i < JOB_QUEUES_MAX; i++) {
		snprintf(names[i], sizeof names[i], "q%zu", i);
		items[i] = (struct job_push_item){.queue = slice_str(names[i]), .payload = slice_str("1")};
	}
	assert_int_equal(push(items, JOB_QUEUES_MAX), HX_OK);
	assert_int_equal(w.unit.offers_n, UNIT_OFFERS_MAX);
	assert_int_equal(w.unit.wakes_n, 1);
	assert_int_equal(w.unit.wakes[0], job_topic(DEFAULT));
}

/* What it has of a queue was offered at the stand of that queue, and a queue that is named twice is one stand. */
static void a_claim_knows_what_it_took_of_which_queue(void **state)
{
	struct job_claim_request rq = {.workspace = DEFAULT,
				       .owner = slice_str("me"),
				       .queues_n = 3,
				       .queues = {slice_str("b"), slice_str("a"), slice_str("b")},
				       .max = 10,
				       .lease_ms = LEASE};
	struct lane_place places[JOB_QUEUES_MAX];
	struct job_claim claim;

	(void)state;
	(void)desk_push(&w, "b", 0, 0);
	(void)desk_push(&w, "b", 0, 0);
	assert_int_equal(job_claim_places(&rq, places), 2);
	job_claim_init(&claim, &rq, &w.arena);
	assert_int_equal(desk_drive(&w, &claim.task), HX_OK);
	assert_int_equal(job_claim_took(&claim, &places[0]), 2);
	assert_int_equal(job_claim_took(&claim, &places[1]), 0);
}

/* Whatever makes a job due, or makes room for one, wakes one of those who wait for jobs of its queue. */
static void a_job_wakes_a_worker_of_its_queue(void **state)
{
	int64_t id = desk_push_bounded(&w, "q", 1);

	(void)state;
	assert_int_not_equal(job_topic(DEFAULT), job_topic(slice_str("other")));
	assert_true(job_topic(DEFAULT) < 0 && job_topic(slice_str("")) < 0);
	assert_int_not_equal(job_stand(DEFAULT, slice_str("q")), job_stand(slice_str("other"), slice_str("q")));
	assert_int_not_equal(job_stand(DEFAULT, slice_str("q")), job_stand(DEFAULT, slice_str("r")));
	assert_int_equal(desk_claim(&w, "q", 1, LEASE), 1);
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, id, 1), HX_OK);
	assert_wakes_workers();
	id = desk_push(&w, "q", 0, 0);
	assert_wakes_workers();
	assert_int_equal(desk_claim(&w, "q", 1, LEASE), 1);
	assert_int_equal(desk_settle(&w, JOB_FAIL, id, 1), HX_OK);
	assert_wakes_workers();
	fake_clock_advance_ms(&fake, MINUTE);
	assert_int_equal(desk_claim(&w, "q", 1, LEASE), 1);
	fake_clock_advance_ms(&fake, LEASE);
	assert_int_equal(lapse(id, 2), HX_OK);
	assert_wakes_workers();
}

static bool yes(const void *context)
{
	return *(const bool *)context;
}

static void a_claim_wakes_claims_and_ends(void **state)
{
	bool gone = false;
	struct job_claim_request rq = {.workspace = DEFAULT,
				       .owner = slice_str("me"),
				       .queues_n = 1,
				       .queues = {slice_str("q")},
				       .max = 1,
				       .lease_ms = LEASE,
				       .wait_ms = 1000,
				       .gave_up = yes,
				       .gave_up_context = &gone};
	struct answer woke = {.kind = ANSWER_WOKE, .ids = &w.ids, .node = "here", .id = 77};
	struct ask ask = {.unit = &w.unit};
	struct job_claim claim;
	struct arena own; /* it lives while others push */
	int64_t id;

	(void)state;
	arena_init(&own, 1u << 20);
	job_claim_init(&claim, &rq, &own);
	assert_int_equal(desk_drive(&w, &claim.task), HX_BUSY);
	id = desk_push(&w, "q", 0, 0);
	woke.now = fake.wall;
	assert_true(task_take(&claim.task, claim.task.turn, &woke));
	claim.task.kind->ask(&claim.task, &ask);
	assert_int_equal(desk_run(&w), UNIT_WON);
	assert_int_equal(w.result.rows[0].n, 1);
	assert_int_equal(db_cell(&w.result.rows[0], 0, 0)->i, id);
	/* Its client has gone: the second one claims nothing. */
	job_claim_init(&claim, &rq, &own);
	assert_int_equal(desk_drive(&w, &claim.task), HX_BUSY);
	gone = true;
	assert_true(task_take(&claim.task, claim.task.turn, &woke));
	claim.task.kind->ask(&claim.task, &ask);
	assert_int_equal(ask.kind, ASK_DONE);
	assert_int_equal(claim.n, 0);
	arena_release(&own);
}

static void a_claim_in_doubt_comes_back_by_its_time(void **state)
{
	struct job_claim_request rq = {.workspace = DEFAULT,
				       .owner = slice_str("me"),
				       .queues_n = 1,
				       .queues = {slice_str("q")},
				       .max = 1,
				       .lease_ms = LEASE};
	struct job_claim claim;
	struct hand h;

	(void)state;
	job_claim_init(&claim, &rq, &w.arena);
	hand_init(&h, &claim.task);
	assert_int_equal(hand_start(&h), ASK_COMMIT);
	(void)hand_verdict(&h, UNIT_UNKNOWN);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
}

/* A bounded queue that is full is waited for; it is no reason to look all the time. */
static void a_full_queue_does_not_keep_claims_busy(void **state)
{
	int64_t id;

	(void)state;
	(void)desk_push_bounded(&w, "q", 1);
	(void)desk_push_bounded(&w, "q", 1);
	assert_int_equal(desk_claim(&w, "q", 10, LEASE), 1);
	id = w.jobs[0].subject;
	assert_int_equal(sleeps_for("q", MINUTE), JOB_WORK_POLL_MS);
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, id, 1), HX_OK);
	assert_int_equal(desk_claim(&w, "q", 10, LEASE), 1);
}

/* ---- settle ---- */

static void a_complete_job_has_its_output(void **state)
{
	int64_t id = claimed();

	(void)state;
	assert_string_equal(desk_see(&w, id), "RUNNING attempt 1");
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, id, 1), HX_OK);
	assert_string_equal(w.status, JOB_COMPLETED);
	assert_string_equal(desk_see(&w, id), "COMPLETED attempt 1 = {\"ok\":true}");
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, id, 1), HX_STALE_FENCE);
	desk_audit(&w, id);
}

static void a_failed_job_rests_longer_each_time_and_is_parked(void **state)
{
	int64_t id = claimed(), rest_ms = 0;

	(void)state;
	for (int attempt = 1; attempt < 8; attempt++) {
		int64_t due;

		assert_int_equal(desk_settle(&w, JOB_FAIL, id, attempt), HX_OK);
		assert_string_equal(w.status, JOB_RETRYING);
		(void)desk_see(&w, id);
		due = db_cell(&w.result.rows[0], 0, JOB_DUE_AT)->i - fake.wall.ms;
		assert_true(due >= 500 << (attempt - 1) && due <= 1000 << (attempt - 1));
		assert_true(due >= rest_ms / 2);
		rest_ms = due;
		assert_int_equal(desk_claim(&w, "q", 1, LEASE), 0);
		fake_clock_advance_ms(&fake, due);
		assert_int_equal(desk_claim(&w, "q", 1, LEASE), 1);
		assert_int_equal(w.jobs[0].attempt, attempt + 1);
		assert_int_equal(w.jobs[0].fence, attempt + 1);
	}
	assert_int_equal(desk_settle(&w, JOB_FAIL, id, 8), HX_OK);
	assert_string_equal(w.status, JOB_PARKED);
	assert_string_equal(desk_see(&w, id), "PARKED attempt 8: no luck");
	desk_audit(&w, id);
}

static void what_is_not_retryable_is_parked_at_once(void **state)
{
	static char words[2 * JOB_ERROR_BYTES_MAX];
	int64_t id = claimed();
	const struct db_value *error;

	(void)state;
	for (size_t i = 0; i < sizeof words; i++)
		words[i] = i % 2 ? '\xa9' : '\xc3'; /* é, cut between two of them */
	words[0] = 'x';
	words[1] = 'y';
	memmove(words + 1, words + 2, sizeof words - 2);
	assert_int_equal(fail_for_good(id, 1, slice_of(words, sizeof words - 1)), HX_OK);
	(void)desk_see(&w, id);
	error = db_cell(&w.result.rows[0], 0, JOB_ERROR);
	assert_int_equal(error->s.n, JOB_ERROR_BYTES_MAX - 1);
	id = claimed();
	assert_int_equal(fail_for_good(id, 1, slice_of(NULL, 0)), HX_OK);
	assert_string_equal(desk_see(&w, id), "PARKED attempt 1: "); /* a parked job always has words, if only none */
}

static void others_do_not_settle_it(void **state)
{
	int64_t id = claimed();
	enum job_settle_kind kinds[] = {JOB_HEARTBEAT, JOB_COMPLETE, JOB_FAIL};
	struct job_settle_request rq = {
		.subject = id, .fence = 1, .owner = slice_str("me"), .workspace = slice_str("another")};
	struct job_settle settle;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		rq.kind = kinds[i];
		w.name = "thief";
		MUST_HOLD(desk_settle(&w, kinds[i], id, 1) == HX_STALE_FENCE, "another worker settles the job");
		w.name = "me";
		assert_int_equal(desk_settle(&w, kinds[i], id, 2), HX_STALE_FENCE);
		assert_int_equal(desk_settle(&w, kinds[i], id, 0), HX_STALE_FENCE);
		assert_int_equal(desk_settle(&w, kinds[i], id + 1, 1), HX_NOT_FOUND);
		job_settle_init(&settle, &rq, &w.arena);
		MUST_HOLD(desk_drive(&w, &settle.task) == HX_NOT_FOUND, "another workspace settles the job");
	}
	assert_string_equal(desk_see(&w, id), "RUNNING attempt 1");
	desk_audit(&w, id);
}

static void a_heartbeat_moves_the_end_and_nothing_else(void **state)
{
	int64_t id = claimed(), version;

	(void)state;
	(void)desk_see(&w, id);
	version = db_cell(&w.result.rows[0], 0, JOB_VERSION)->i;
	fake_clock_advance_ms(&fake, LEASE - 1);
	assert_int_equal(desk_settle(&w, JOB_HEARTBEAT, id, 1), HX_OK);
	assert_int_equal(w.until_ms, fake.wall.ms + 60000);
	(void)desk_see(&w, id);
	assert_int_equal(db_cell(&w.result.rows[0], 0, JOB_VERSION)->i, version);
	assert_int_equal(db_cell(&w.result.rows[0], 0, JOB_UNTIL)->i, fake.wall.ms + 60000);
	desk_audit(&w, id);
}

static void an_unknown_settling_is_looked_up(void **state)
{
	struct job_settle_request rq = {.kind = JOB_COMPLETE, .subject = 9, .fence = 3, .owner = slice_str("me")};
	const struct db_value row[] = {db_str("RUNNING"), db_int(3), db_str("me"), db_str("x"), db_str("q"),
				       db_int(1),         db_null(), db_int(1),    db_int(8),   db_int(1000),
				       db_int(1000),      db_int(2), db_int(0),    db_int(0)};

	(void)state;
	for (int way = 0; way < 4; way++) {
		bool landed = way % 2, plain = way / 2;
		struct job_settle settle;
		struct hand h;

		job_settle_init(&settle, &rq, &w.arena);
		hand_init(&h, &settle.task);
		(void)hand_start(&h);
		assert_string_equal(hand_stmt(&h), "job_complete");
		if (!plain) {
			(void)hand_verdict(&h, UNIT_LOST);
			assert_string_equal(hand_stmt(&h), "job_settle_read");
			(void)hand_rows(&h, 1, 14, row);
			assert_string_equal(hand_stmt(&h), "subject_finish");
		}
		(void)hand_verdict(&h, UNIT_UNKNOWN);
		assert_string_equal(hand_stmt(&h), "subject_look_up");
		if (landed)
			(void)hand_rows(&h, 1, 2, (const struct db_value[]){db_int(3), db_int(3)});
		else
			(void)hand_no_rows(&h, 2);
		hand_assert_done(&h, landed ? HX_OK : HX_STORE_UNAVAILABLE);
	}
}

/* ---- lapse ---- */

static void a_lost_worker_gives_its_job_back(void **state)
{
	int64_t id = claimed();

	(void)state;
	assert_int_equal(lapse(id, 1), HX_STALE_FENCE); /* its time is not over */
	fake_clock_advance_ms(&fake, LEASE);
	assert_int_equal(lapse(id, 1), HX_OK);
	assert_string_equal(desk_see(&w, id), "AVAILABLE attempt 1, due, doubt: its worker was lost");
	assert_int_equal(lapse(id, 1), HX_STALE_FENCE);
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, id, 1), HX_STALE_FENCE);
	assert_int_equal(desk_claim(&w, "q", 1, LEASE), 1);
	assert_int_equal(w.jobs[0].fence, 2);
	/* "This try failed" does not tell what the lost one did; "done" does. */
	assert_int_equal(fail_for_good(id, 2, slice_str("no")), HX_OK);
	assert_string_equal(desk_see(&w, id), "PARKED attempt 2, doubt: no");
	desk_audit(&w, id);
}

static void work_that_kills_its_workers_is_parked(void **state)
{
	int64_t id = claimed();

	(void)state;
	for (int attempt = 1; attempt <= 8; attempt++) {
		assert_int_equal(w.jobs[0].attempt, attempt);
		fake_clock_advance_ms(&fake, LEASE);
		assert_int_equal(lapse(id, attempt), HX_OK);
		assert_int_equal(desk_claim(&w, "q", 1, LEASE), attempt < 8);
	}
	assert_string_equal(desk_see(&w, id), "PARKED attempt 8, doubt: its workers were lost too often");
	desk_audit(&w, id);
}

static void what_must_not_be_repeated_is_parked_when_its_worker_is_lost(void **state)
{
	int64_t id = desk_push_bounded(&w, "q", 1);

	(void)state;
	assert_int_equal(desk_claim(&w, "q", 1, LEASE), 1);
	fake_clock_advance_ms(&fake, LEASE);
	assert_int_equal(lapse(id, 1), HX_OK);
	assert_string_equal(desk_see(&w, id),
			    "PARKED attempt 1, doubt: its worker was lost, and it may have been done");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_payload_keeps_its_bytes),
		TEST(a_thousand_jobs_are_pushed_in_one_unit),
		TEST(a_key_is_one_job_in_its_queue),
		TEST(the_queue_of_the_engine_is_closed),
		TEST(an_unknown_push_is_looked_for),
		TEST(several_queues_are_claimed_by_priority),
		TEST(one_claim_hands_out_a_bounded_number_of_bytes),
		TEST(a_claim_waits_for_the_next_due_moment),
		TEST(a_job_wakes_a_worker_of_its_queue),
		TEST(jobs_of_many_queues_wake_the_workers_of_their_workspace),
		TEST(a_claim_knows_what_it_took_of_which_queue),
		TEST(a_claim_wakes_claims_and_ends),
		TEST(a_claim_in_doubt_comes_back_by_its_time),
		TEST(a_full_queue_does_not_keep_claims_busy),
		TEST(a_complete_job_has_its_output),
		TEST(a_failed_job_rests_longer_each_time_and_is_parked),
		TEST(what_is_not_retryable_is_parked_at_once),
		TEST(others_do_not_settle_it),
		TEST(a_heartbeat_moves_the_end_and_nothing_else),
		TEST(an_unknown_settling_is_looked_up),
		TEST(a_lost_worker_gives_its_job_back),
		TEST(work_that_kills_its_workers_is_parked),
		TEST(what_must_not_be_repeated_is_parked_when_its_worker_is_lost),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests_name("job work", tests, NULL, NULL);
}
