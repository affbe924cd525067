/*
 * The units of whole batches (flow/batch.h), the same on every store: each test runs on a SQLite file and on PostgreSQL. How they
 * are held, let go for want of time or money, ended, read, and expire. How they are loaded: test_batch_loading.c.
 */
#include "contract/batches.h"
#include "flow/batch_retention.h"
#include "flow/due_watch.h"

static void batches_are_found_and_listed(void **state_)
{
	struct batch_filter filter = {.limit = 10, .before = INT64_MAX};
	int64_t ids[3];
	struct batch_hold hold;

	(void)state_;
	(void)open_account(100);
	ids[0] = make_of(COSTS(1), true);
	ids[1] = make_of(COSTS(1), false);
	ids[2] = make_of(COSTS(1), true);
	filter.workspace = slice_str(world.workspace);
	(void)begin();
	batch_list(&world.unit, &filter);
	ask();
	assert_int_equal(world.result.rows[0].n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(db_cell(&world.result.rows[0], i, BATCH_SUBJECT)->i, ids[2 - i]);
	filter.status = slice_str(BATCH_QUEUED);
	filter.workflow = slice_str("render");
	filter.before = ids[2];
	(void)begin();
	batch_list(&world.unit, &filter);
	ask();
	assert_int_equal(world.result.rows[0].n, 1);
	filter.workflow = slice_str("other");
	(void)begin();
	batch_list(&world.unit, &filter);
	ask();
	assert_int_equal(world.result.rows[0].n, 0);
	(void)begin();
	batch_read(&world.unit, slice_str("elsewhere"), ids[0]);
	ask();
	assert_int_equal(world.result.rows[0].n, 0);
	(void)begin();
	UNIT_ADD(&world.unit, UNIT_ANY, batch_due_source.found, db_int(10), db_str("[]"));
	unit_add(&world.unit, UNIT_ANY, batch_due_source.next, 0, NULL);
	ask();
	assert_int_equal(world.result.rows[0].n, 2);
	assert_true(db_cell(&world.result.rows[1], 0, 0)->i <= now_ms());
	hold = hold_of(ids[0], BATCH_RUNNING, LEASE_MS);
	assert_int_equal(let_go(&hold, BATCH_RUNNING, LEASE_MS, NULL), UNIT_WON);
	hold = hold_of(ids[2], BATCH_RUNNING, LEASE_MS);
	(void)begin();
	UNIT_ADD(&world.unit, UNIT_ANY, batch_due_source.found, db_int(10), db_str("[]"));
	unit_add(&world.unit, UNIT_ANY, batch_due_source.next, 0, NULL);
	ask();
	assert_int_equal(world.result.rows[0].n, 0);
	assert_int_equal(db_cell(&world.result.rows[1], 0, 0)->i, look(ids[0]).due_at);
}

/* Every unit that writes a row of a batch holds the batch and its account: whoever brings money writes it under the latter. */
static void every_unit_holds_the_batch_and_its_account(void **state_)
{
	struct batch_hold hold;
	struct batch_row row;
	struct stamp stamp;
	struct unit *u = &world.unit;
	struct batch_spec spec;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(1));
	row = look(hold.subject);
	spec = spec_of(NULL);
	spec.subject = hold.subject;
#define HOLDS(unit_)                                                                                                   \
	do {                                                                                                           \
		stamp = begin();                                                                                       \
		unit_;                                                                                                 \
		assert_int_equal(u->subjects[0], hold.subject);                                                        \
		assert_int_equal(u->subjects[1], world.account);                                                       \
	} while (0)
	HOLDS(batch_create(u, &stamp, &spec, 1));
	HOLDS(batch_create_whole(u, &stamp, &spec, slice_str("[]"), 0, true));
	HOLDS(batch_load_slice(u, &hold, 0, slice_str("[]")));
	HOLDS(batch_load_end(u, &stamp, &hold, 0, true));
	HOLDS(batch_load_more(u, &stamp, &row, 1));
	HOLDS(batch_load_lost(u, &stamp, &row));
	HOLDS(batch_start(u, &stamp, &row));
	HOLDS(batch_seize(u, &stamp, &row, BATCH_RUNNING, 1));
	HOLDS(batch_begin_teardown(u, &stamp, &hold));
	HOLDS(batch_let_go(u, &stamp, &hold, BATCH_RUNNING, 0, false, slice_of(NULL, 0)));
	HOLDS(batch_stop_short(u, &stamp, &hold));
	HOLDS(batch_end(u, &stamp, &hold, BATCH_COMPLETED, &row, &(int64_t){7}, &(struct slice){"k", 1},
			slice_str("{}")));
	HOLDS(batch_request_cancel(u, &stamp, &row));
	HOLDS(item_start(u, &stamp, &hold));
	HOLDS(item_look_up_start(u, &hold, 1));
	HOLDS(item_end(u, &stamp, &hold, &(struct item_end){.status = ITEM_FAILED, .returns = true}));
	HOLDS(item_settle(u, &stamp, &hold, 0, 1, slice_str("1")));
	HOLDS(item_late(u, &stamp, &hold, &(struct item_end){.output = slice_str("1")}, 0, slice_str(""),
			slice_str("")));
	HOLDS(item_accept(u, &stamp, &hold, 0));
	HOLDS(item_resolve(u, &stamp, &hold, 0, false, slice_of(NULL, 0)));
	HOLDS(item_flip(u, &stamp, &hold, 0, 1));
	HOLDS(item_read_left(u, &hold, 0, 1));
#undef HOLDS
}

/* ---- holders ---- */

static void a_batch_is_seized_by_one(void **state_)
{
	struct batch_hold hold, next;
	struct batch_row row;
	struct stamp stamp;
	int64_t batch;

	(void)state_;
	(void)open_account(100);
	batch = make_of(COSTS(1), /* queued= */ true);
	row = look(batch);
	hold = hold_of(batch, BATCH_RUNNING, LEASE_MS);
	assert_string_equal(state(batch), "RUNNING v2 f1, owned");
	assert_true(look(batch).started_at > 0);
	stamp = begin(); /* by its version */
	batch_seize(&world.unit, &stamp, &row, BATCH_RUNNING, LEASE_MS);
	assert_lost_at("subject_seize");
	row = look(batch); /* by its owner */
	stamp = begin();
	batch_seize(&world.unit, &stamp, &row, BATCH_RUNNING, LEASE_MS);
	assert_lost_at("subject_seize");
	lapse(&hold);
	assert_string_equal(state(batch), "RUNNING v2 f1, owned past");
	next = hold_of(batch, BATCH_RUNNING, LEASE_MS);
	assert_int_equal(next.fence, 2);
	flag(batch);
	lapse(&next);
	assert_int_equal(seize(batch, BATCH_RUNNING, LEASE_MS, &hold), UNIT_LOST); /* by its flag */
	assert_string_equal(world.unit.lines[world.result.line].stmt->name, "batch_seized");
	next = hold_of(batch, BATCH_CANCELLING, LEASE_MS);
	assert_string_equal(state(batch), "CANCELLING v4 f3, owned, flagged");
}

static void a_pending_batch_is_seized_into_teardown(void **state_)
{
	struct batch_hold hold;
	int64_t batch;

	(void)state_;
	(void)open_account(100);
	batch = make_of(COSTS(1), /* queued= */ false);
	hold = hold_of(batch, BATCH_CANCELLING, LEASE_MS);
	assert_string_equal(state(batch), "CANCELLING v2 f1, owned, flagged");
	assert_int_equal(start(&hold), UNIT_LOST);
	assert_string_equal(world.unit.lines[world.result.line].stmt->name, "batch_keep");
}

static void a_cancel_is_requested_once(void **state_)
{
	struct batch_hold hold;
	struct batch_row row;
	struct stamp stamp;
	int64_t batch;

	(void)state_;
	(void)open_account(100);
	batch = make_of(COSTS(1), /* queued= */ true);
	row = look(batch);
	stamp = begin();
	batch_request_cancel(&world.unit, &stamp, &row); /* QUEUED: seized, not flagged */
	assert_lost_at("batch_request_cancel");
	hold = hold_of(batch, BATCH_RUNNING, LEASE_MS);
	row = look(batch);
	flag(batch);
	assert_true(wakes(batch) && wakes(BATCH_TOPIC));
	assert_string_equal(state(batch), "RUNNING v2 f1, owned, flagged"); /* its holder has it: not due */
	stamp = begin();
	batch_request_cancel(&world.unit, &stamp, &row);
	assert_lost_at("batch_request_cancel");
	begin_teardown(&hold);
	assert_string_equal(state(batch), "CANCELLING v3 f1, owned, flagged");
	stamp = begin();
	batch_request_cancel(&world.unit, &stamp, &row);
	assert_lost_at("batch_request_cancel");
	/* One that nobody holds is due at once. */
	hold = running(COSTS(1));
	assert_int_equal(let_go(&hold, BATCH_RUNNING, LEASE_MS, NULL), UNIT_WON);
	assert_string_equal(state(hold.subject), "RUNNING v3 f1, rests");
	flag(hold.subject);
	assert_string_equal(state(hold.subject), "RUNNING v3 f1, flagged, due");
}

static void a_batch_is_let_go_until_it_is_due(void **state_)
{
	struct batch_hold hold, stale;
	struct batch_row row;
	struct stamp stamp;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(1, 2, 3));
	stale = hold;
	stale.fence--;
	assert_int_equal(let_go(&stale, BATCH_RUNNING, 5, NULL), UNIT_LOST);
	assert_int_equal(let_go(&hold, BATCH_CANCELLING, 5, NULL), UNIT_LOST);
	/* When the first of its resting items is. */
	assert_int_equal(started(&hold, 1), 0);
	assert_int_equal(rest(&hold, 0, 1, 2 * LEASE_MS), UNIT_WON);
	assert_int_equal(started(&hold, 1), 1);
	assert_int_equal(rest(&hold, 1, 1, LEASE_MS), UNIT_WON);
	row = look(hold.subject);
	assert_int_equal(let_go(&hold, BATCH_RUNNING, 0, NULL), UNIT_WON);
	assert_true(wakes(BATCH_TOPIC));
	assert_int_equal(look(hold.subject).due_at, row.retry_at);
	assert_string_equal(state(hold.subject), "RUNNING v3 f1, rests");
	assert_int_equal(let_go(&hold, BATCH_RUNNING, 0, NULL), UNIT_LOST); /* nobody's any more */
	assert_int_equal(start(&hold), UNIT_LOST);
	/* At the time that was named, whatever rests. */
	hold = hold_of(hold.subject, BATCH_RUNNING, LEASE_MS);
	assert_int_equal(let_go(&hold, BATCH_RUNNING, LEASE_MS / 2, NULL), UNIT_WON);
	row = look(hold.subject);
	assert_true(row.due_at < row.retry_at && row.due_at > row.now);
	/* Nothing rests, and no time was named: soon. */
	hold = running(COSTS(1));
	stamp = (struct stamp){.at = {now_ms()}};
	assert_int_equal(let_go(&hold, BATCH_RUNNING, 0, NULL), UNIT_WON);
	row = look(hold.subject);
	assert_true(row.due_at >= stamp.at.ms + 1000 && row.due_at <= now_ms() + 1000);
	/* A flag that came makes a RUNNING one due at once, and does not hasten a teardown in its backoff. */
	hold = running(COSTS(1));
	flag(hold.subject);
	assert_int_equal(let_go(&hold, BATCH_RUNNING, LEASE_MS, NULL), UNIT_WON);
	assert_string_equal(state(hold.subject), "RUNNING v3 f1, flagged, due");
	hold = hold_of(hold.subject, BATCH_CANCELLING, LEASE_MS);
	assert_int_equal(let_go(&hold, BATCH_CANCELLING, LEASE_MS, "no delete"), UNIT_WON);
	assert_string_equal(state(hold.subject), "CANCELLING v5 f2, flagged, rests");
	row = look(hold.subject);
	assert_int_equal(row.cleanups, 1);
	assert_true(slice_is(row.error, "no delete"));
}

/* ---- out of credit ---- */

static void a_batch_stops_short_of_what_the_next_item_needs(void **state_)
{
	struct batch_hold hold, stale;
	struct batch_row row;

	(void)state_;
	(void)open_account(10);
	hold = running(COSTS(8, 5, 1));
	stale = hold;
	stale.fence--;
	assert_int_equal(started(&hold, 1), 0);
	assert_int_equal(start(&hold), UNIT_REFUSED);
	assert_int_equal(stop_short(&hold), UNIT_LOST); /* something runs */
	assert_int_equal(succeed(&hold, 0, 1), UNIT_WON);
	assert_int_equal(stop_short(&stale), UNIT_LOST);
	assert_int_equal(stop_short(&hold), UNIT_WON);
	assert_true(wakes(BATCH_TOPIC));
	assert_string_equal(state(hold.subject), "OUT_OF_CREDIT v3 f1");
	row = look(hold.subject);
	assert_int_equal(row.needs, 5);
	/* Too little still; then enough. */
	assert_int_equal(credit(2, "a"), UNIT_WON);
	assert_string_equal(state(hold.subject), "OUT_OF_CREDIT v3 f1");
	assert_int_equal(credit(1, "b"), UNIT_WON);
	assert_true(wakes(BATCH_TOPIC));
	assert_string_equal(state(hold.subject), "OUT_OF_CREDIT v3 f1, due");
	hold = hold_of(hold.subject, BATCH_RUNNING, LEASE_MS);
	assert_int_equal(look(hold.subject).needs, -1);
	assert_int_equal(stop_short(&hold), UNIT_LOST); /* the balance suffices */
	assert_int_equal(started(&hold, 1), 1);
	assert_int_equal(balance(), 0);
}

static void a_batch_that_is_flagged_does_not_stop_short(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(0);
	hold = running(COSTS(8));
	flag(hold.subject);
	assert_int_equal(stop_short(&hold), UNIT_LOST);
	/* And one that has stopped is due when its cancel is requested. */
	hold = running(COSTS(8));
	assert_int_equal(stop_short(&hold), UNIT_WON);
	flag(hold.subject);
	assert_string_equal(state(hold.subject), "OUT_OF_CREDIT v3 f1, flagged, due");
	hold = hold_of(hold.subject, BATCH_CANCELLING, LEASE_MS);
	assert_int_equal(flip(&hold, 0, 1), UNIT_WON);
	assert_int_equal(end_batch(&hold, BATCH_CANCELLED), UNIT_WON);
}

/* What is left rests, and is not due: time is what it needs, not money. */
static void a_batch_whose_items_rest_does_not_stop_short(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(8);
	hold = running(COSTS(8));
	assert_int_equal(started(&hold, 1), 0);
	assert_int_equal(rest(&hold, 0, 1, LEASE_MS), UNIT_WON);
	assert_int_equal(stop_short(&hold), UNIT_LOST);
}

/* Retries that are paid for wait for no money: they come first, and the batch stays due for them. */
static void what_is_paid_for_does_not_wait_for_money(void **state_)
{
	struct batch_hold hold;
	struct batch_row row;

	(void)state_;
	(void)open_account(20);
	hold = running(COSTS(10, 10, 10));
	assert_int_equal(started(&hold, 1), 0);
	assert_int_equal(started(&hold, 1), 1);
	assert_int_equal(doubt(&hold, 1, 1, LEASE_MS), UNIT_WON);
	assert_int_equal(doubt(&hold, 0, 1, 2 * LEASE_MS), UNIT_WON);
	row = look(hold.subject);
	assert_int_equal(stop_short(&hold), UNIT_WON);
	assert_int_equal(look(hold.subject).needs, 10);
	assert_int_equal(look(hold.subject).due_at, row.retry_at);
	/* One that was returned is due for longer than the one that is paid for: the latter is begun all the same. */
	(void)open_account(20);
	hold = running(COSTS(10, 10, 20));
	assert_int_equal(started(&hold, 1), 0);
	assert_int_equal(started(&hold, 1), 1);
	assert_int_equal(rest(&hold, 0, 1, -5000), UNIT_WON);
	assert_int_equal(doubt(&hold, 1, 1, -1000), UNIT_WON);
	{
		struct batch_hold other = running(COSTS(10)); /* takes what was returned */

		assert_int_equal(started(&other, 1), 0);
	}
	assert_int_equal(balance(), 0);
	assert_int_equal(started(&hold, 2), 1);
	assert_int_equal(succeed(&hold, 1, 2), UNIT_WON);
	assert_int_equal(start(&hold), UNIT_REFUSED);
	assert_int_equal(stop_short(&hold), UNIT_WON);
	assert_string_equal(state(hold.subject), "OUT_OF_CREDIT v3 f1"); /* due for nothing, until there is money */
}

/* Whoever gives money back wakes those that wait for it: a return, a refund, a person's "not done". */
static void money_that_comes_back_wakes_who_waits_for_it(void **state_)
{
	struct batch_hold hold, waiting, patient;

	(void)state_;
	(void)open_account(30);
	hold = running(COSTS(10, 10, 10));
	for (int64_t n = 0; n < 3; n++)
		assert_int_equal(started(&hold, 1), n);
	waiting = running(COSTS(10));
	patient = running(COSTS(100));
	assert_int_equal(stop_short(&waiting), UNIT_WON);
	assert_int_equal(stop_short(&patient), UNIT_WON);
	assert_int_equal(rest(&hold, 0, 1, LEASE_MS), UNIT_WON);
	assert_true(wakes(BATCH_TOPIC));
	assert_string_equal(state(waiting.subject), "OUT_OF_CREDIT v3 f1, due");
	assert_string_equal(state(patient.subject), "OUT_OF_CREDIT v3 f1");
	waiting = hold_of(waiting.subject, BATCH_RUNNING, LEASE_MS);
	assert_int_equal(started(&waiting, 1), 0);
	assert_int_equal(leave_unknown(&waiting, 0, 1), UNIT_WON);
	waiting = running(COSTS(10));
	assert_int_equal(stop_short(&waiting), UNIT_WON);
	assert_int_equal(leave_unknown(&hold, 1, 1), UNIT_WON);
	assert_string_equal(state(waiting.subject), "OUT_OF_CREDIT v3 f1");
	assert_int_equal(resolve(&hold, 1, false), UNIT_WON);
	assert_string_equal(state(waiting.subject), "OUT_OF_CREDIT v3 f1, due");
	waiting = hold_of(waiting.subject, BATCH_RUNNING, LEASE_MS);
	assert_int_equal(started(&waiting, 1), 0);
	waiting = running(COSTS(10));
	assert_int_equal(stop_short(&waiting), UNIT_WON);
	flag(hold.subject);
	begin_teardown(&hold);
	assert_int_equal(flip(&hold, 0, 3), UNIT_WON);
	assert_string_equal(state(waiting.subject), "OUT_OF_CREDIT v3 f1, due");
	assert_string_equal(state(patient.subject), "OUT_OF_CREDIT v3 f1");
}

/* Only those of its own account. */
static void money_wakes_nobody_elsewhere(void **state_)
{
	struct batch_hold elsewhere;

	(void)state_;
	(void)open_account(0);
	elsewhere = running(COSTS(1));
	assert_int_equal(stop_short(&elsewhere), UNIT_WON);
	(void)open_account(0);
	assert_int_equal(credit(100, "c"), UNIT_WON);
	assert_string_equal(state(elsewhere.subject), "OUT_OF_CREDIT v3 f1");
}

/* ---- ends of batches ---- */

static void a_batch_completes_when_nothing_is_left(void **state_)
{
	struct batch_hold hold, stale;
	struct batch_row row;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(1, 2, 3));
	stale = hold;
	stale.fence--;
	assert_int_equal(started(&hold, 1), 0);
	assert_int_equal(succeed(&hold, 0, 1), UNIT_WON);
	assert_int_equal(end_batch(&hold, BATCH_COMPLETED), UNIT_LOST); /* items were never begun */
	assert_int_equal(started(&hold, 1), 1);
	assert_int_equal(started(&hold, 1), 2);
	assert_int_equal(fail_item(&hold, 2, 1), UNIT_WON);
	assert_int_equal(end_batch(&hold, BATCH_COMPLETED), UNIT_LOST); /* one runs */
	assert_int_equal(rest(&hold, 1, 1, -1), UNIT_WON);
	assert_int_equal(end_batch(&hold, BATCH_COMPLETED), UNIT_LOST); /* one rests */
	assert_int_equal(started(&hold, 2), 1);
	assert_int_equal(leave_unknown(&hold, 1, 2), UNIT_WON);
	row = look(hold.subject);
	assert_int_equal(accept(&hold, 0), UNIT_WON);
	assert_int_equal(end_believing(&hold, BATCH_COMPLETED, &row), UNIT_LOST); /* other totals */
	assert_int_equal(end_batch(&stale, BATCH_COMPLETED), UNIT_LOST);
	assert_int_equal(end_batch(&hold, BATCH_CANCELLED), UNIT_LOST);
	assert_int_equal(jobs_n(), 0);
	assert_int_equal(end_batch(&hold, BATCH_COMPLETED), UNIT_WON);
	assert_true(wakes(subject_end_topic(hold.subject)));
	assert_string_equal(state(hold.subject), "COMPLETED v3 f1");
	assert_int_equal(jobs_n(), 1);
	assert_int_equal(end_batch(&hold, BATCH_COMPLETED), UNIT_LOST);
	row = look(hold.subject);
	{
		struct stamp stamp = begin();

		batch_request_cancel(&world.unit, &stamp, &row);
		assert_lost_at("batch_request_cancel");
	}
}

static void a_flag_beats_completion(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(1));
	assert_int_equal(started(&hold, 1), 0);
	assert_int_equal(succeed(&hold, 0, 1), UNIT_WON);
	flag(hold.subject);
	assert_int_equal(end_batch(&hold, BATCH_COMPLETED), UNIT_LOST);
	assert_string_equal(world.unit.lines[world.result.line].stmt->name, "batch_completed");
}

static void a_batch_is_cancelled_last(void **state_)
{
	struct batch_hold hold, stale;
	struct batch_row row;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(1, 2, 3));
	assert_int_equal(started(&hold, 1), 0);
	assert_int_equal(started(&hold, 1), 1);
	assert_int_equal(succeed(&hold, 1, 1), UNIT_WON);
	flag(hold.subject);
	assert_int_equal(end_batch(&hold, BATCH_CANCELLED), UNIT_LOST); /* RUNNING */
	begin_teardown(&hold);
	assert_int_equal(end_batch(&hold, BATCH_CANCELLED), UNIT_LOST); /* not flipped */
	assert_int_equal(flip(&hold, 0, 2), UNIT_WON);
	assert_int_equal(end_batch(&hold, BATCH_CANCELLED), UNIT_LOST); /* not all of it */
	assert_int_equal(flip(&hold, 2, 3), UNIT_WON);
	assert_int_equal(end_batch(&hold, BATCH_COMPLETED), UNIT_LOST);
	row = look(hold.subject);
	assert_int_equal(late(&hold, 0, 1), UNIT_WON);
	assert_int_equal(end_believing(&hold, BATCH_CANCELLED, &row), UNIT_LOST); /* a late success came since */
	stale = hold;
	stale.fence--;
	assert_int_equal(end_batch(&stale, BATCH_CANCELLED), UNIT_LOST);
	assert_int_equal(let_go(&hold, BATCH_CANCELLING, 1, NULL), UNIT_WON);
	assert_int_equal(end_batch(&hold, BATCH_CANCELLED), UNIT_LOST); /* nobody's */
	hold = hold_of(hold.subject, BATCH_CANCELLING, LEASE_MS);
	row = look(hold.subject);
	assert_int_equal(end_batch(&hold, BATCH_CANCELLED), UNIT_WON);
	assert_string_equal(state(hold.subject), "CANCELLED v6 f2, flagged");
	assert_string_equal(counts(hold.subject), "2 of 3 begun, +1 -0 ?1 a0 c3, charged 3 refunded 3 late 1");
	assert_int_equal(jobs_n(), 2); /* the cleanup of what was late, and the after-effect */
	assert_int_equal(balance(), 100);
	for (int i = 0; i < 2; i++) { /* it never runs again, and is not torn down again */
		struct stamp stamp = begin();

		batch_seize(&world.unit, &stamp, &row, i ? BATCH_RUNNING : BATCH_CANCELLING, LEASE_MS);
		assert_lost_at("subject_seize");
	}
	/* What was late after the end is still recorded. */
	assert_int_equal(late(&hold, 0, 1), UNIT_LOST);
}

/* ---- retention ---- */

/* What is left of one: of all of them it is asked for with one statement. */
static const char *left_of(int64_t batch)
{
	static const struct db_stmt stmt = {
		.name = "test_left",
		.sql = "SELECT b.expired, b.requester, (SELECT count(*) FROM hx_history h WHERE h.subject = b.subject),"
		       " (SELECT count(*) FROM hx_batch_item i WHERE i.batch = b.subject), s.version"
		       " FROM hx_batch b JOIN hx_subject s ON s.id = b.subject WHERE b.subject = ?1",
		.in = "i",
		.out = "itiii"};
	static char text[200];
	const struct db_value *cells;

	(void)begin();
	UNIT_ADD(&world.unit, UNIT_ANY, &stmt, db_int(batch));
	ask();
	cells = world.result.rows[0].cells;
	snprintf(text, sizeof text, "expired %lld, '%.*s', history %lld, items %lld, v%lld", (long long)cells[0].i,
		 SLICE_ARGS(cells[1].s), (long long)cells[2].i, (long long)cells[3].i, (long long)cells[4].i);
	return text;
}

/* How many of the lines that strip a subject went to PostgreSQL for many subjects at once. */
static int64_t stripped_in_sets(void)
{
	static const struct db_stmt stmt = {
		.name = "test_stripped",
		.sql = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'strip\\_%\\_set%'",
		.in = "",
		.out = "i"};

	(void)begin();
	unit_add(&world.unit, UNIT_ANY, &stmt, 0, NULL);
	ask();
	return db_cell(&world.result.rows[0], 0, 0)->i;
}

/* In one transaction, as retention does it; the one of them that is still at work loses, and keeps all it has. */
static void finished_batches_expire_together(void **state_)
{
	enum { AT_WORK = 1, NOT_ASKED = 3, N };
	struct unit *units[N];
	struct unit_result results[N];
	struct batch_hold hold[N];
	struct hx_error err = {0};

	(void)state_;
	for (int i = 0; i < N; i++) {
		int64_t account = open_account(100);

		hold[i] = running(COSTS(1, 2));
		for (int64_t n = 0; n < 2; n++) {
			assert_int_equal(started(&hold[i], 1), n);
			assert_int_equal(succeed(&hold[i], n, 1), UNIT_WON);
		}
		if (i != AT_WORK)
			assert_int_equal(end_batch(&hold[i], BATCH_COMPLETED), UNIT_WON);
		units[i] = arena_alloc(&world.arena, sizeof *units[i]);
		unit_init(units[i], world.next_id++);
		batch_expire(units[i], hold[i].subject, account, PAST_MS);
	}
	assert_int_equal(world.db->driver->begin(world.db, &err), HX_OK);
	if (world.db->driver->execute(world.db, units, NOT_ASKED, results, &world.arena, &err))
		fail_msg("%s", err.detail);
	assert_int_equal(world.db->driver->commit(world.db, &err), HX_OK);
	for (int i = 0; i < NOT_ASKED; i++)
		assert_int_equal(results[i].verdict, i == AT_WORK ? UNIT_LOST : UNIT_WON);
	assert_string_equal(left_of(hold[0].subject), "expired 2, '', history 0, items 0, v4");
	assert_string_equal(left_of(hold[AT_WORK].subject), "expired 0, 'ann', history 2, items 2, v2");
	assert_string_equal(left_of(hold[2].subject), "expired 2, '', history 0, items 0, v4");
	assert_string_equal(left_of(hold[NOT_ASKED].subject), "expired 0, 'ann', history 3, items 2, v3");
	if (world.db->driver == &db_postgres)
		assert_int_equal(stripped_in_sets(), 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_are_found_and_listed),
		cmocka_unit_test(every_unit_holds_the_batch_and_its_account),
		cmocka_unit_test(a_batch_is_seized_by_one),
		cmocka_unit_test(a_pending_batch_is_seized_into_teardown),
		cmocka_unit_test(a_cancel_is_requested_once),
		cmocka_unit_test(a_batch_is_let_go_until_it_is_due),
		cmocka_unit_test(a_batch_stops_short_of_what_the_next_item_needs),
		cmocka_unit_test(a_batch_that_is_flagged_does_not_stop_short),
		cmocka_unit_test(a_batch_whose_items_rest_does_not_stop_short),
		cmocka_unit_test(what_is_paid_for_does_not_wait_for_money),
		cmocka_unit_test(money_that_comes_back_wakes_who_waits_for_it),
		cmocka_unit_test(money_wakes_nobody_elsewhere),
		cmocka_unit_test(a_batch_completes_when_nothing_is_left),
		cmocka_unit_test(a_flag_beats_completion),
		cmocka_unit_test(a_batch_is_cancelled_last),
		cmocka_unit_test(finished_batches_expire_together),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("batch units, sqlite", tests, set_up_sqlite, tear_down) +
	       cmocka_run_group_tests_name("batch units, postgres", tests, set_up_postgres, tear_down);
}
