/*
 * The units of items (flow/batch_item.h), the same on every store: each test runs on a SQLite file and on PostgreSQL. Which item is
 * begun, what that costs, how it ends, who decides on it, and what is given back.
 */
#include "contract/batches.h"
#include "flow/page.h"
#include "support/must_hold.h"

/* ---- start ---- */

static void a_start_charges_in_its_unit(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(10);
	hold = running(COSTS(3, 0, 7, 1));
	assert_int_equal(started(&hold, 1), 0);
	assert_true(slice_is(db_cell(&world.result.rows[1], 0, START_INPUT)->s, "{\"n\":0}"));
	assert_int_equal(db_cell(&world.result.rows[1], 0, START_FAILURES)->i, 0);
	assert_int_equal(db_cell(&world.result.rows[1], 0, START_DOUBT)->i, 0);
	assert_string_equal(see(hold.subject, 0), "RUNNING, charged 3 of 3, attempt 1/0, fence 1");
	assert_int_equal(started(&hold, 1), 1); /* one that costs nothing leaves no entry */
	assert_int_equal(started(&hold, 1), 2);
	assert_string_equal(entries(hold.subject), "-3 0/charge/1, -7 2/charge/1");
	assert_int_equal(balance(), 0);
	assert_string_equal(counts(hold.subject), "3 of 4 begun, +0 -0 ?0 a0 c0, charged 10 refunded 0 late 0");
	assert_int_equal(look(hold.subject).running, 3);
	/* Too little: refused, and nothing has changed (run() looks). */
	assert_int_equal(start(&hold), UNIT_REFUSED);
	assert_string_equal(world.unit.lines[world.result.line].stmt->name, "item_charge");
	assert_int_equal(credit(1, "c"), UNIT_WON);
	assert_int_equal(started(&hold, 1), 3);
	assert_int_equal(start(&hold), UNIT_LOST); /* there is no more */
	assert_string_equal(world.unit.lines[world.result.line].stmt->name, "item_start");
}

static void a_start_renews_the_lease_and_is_guarded(void **state_)
{
	struct batch_hold hold, stale;

	(void)state_;
	(void)open_account(10);
	hold = running(COSTS(1, 1, 1));
	lapse(&hold);
	assert_int_equal(started(&hold, 1), 0); /* nobody has taken it */
	assert_string_equal(state(hold.subject), "RUNNING v2 f1, owned");
	stale = hold;
	hold = taken_over(&hold);
	assert_int_equal(start(&stale), UNIT_LOST);
	assert_string_equal(world.unit.lines[world.result.line].stmt->name, "batch_keep");
	flag(hold.subject);
	assert_int_equal(start(&hold), UNIT_LOST);
	assert_string_equal(world.unit.lines[world.result.line].stmt->name, "item_start");
	begin_teardown(&hold);
	assert_int_equal(start(&hold), UNIT_LOST);
	assert_string_equal(world.unit.lines[world.result.line].stmt->name, "batch_keep");
	assert_int_equal(balance(), 9);
}

/* Whose holder was lost; a retry that is due, the longest due first; the next. */
static void items_are_chosen_in_order(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(1000);
	hold = running(COSTS(1, 2, 3, 4, 5, 6));
	for (int64_t n = 0; n < 5; n++)
		assert_int_equal(started(&hold, 1), n);
	assert_int_equal(rest(&hold, 0, 1, -1000), UNIT_WON);
	assert_int_equal(rest(&hold, 1, 1, -2000), UNIT_WON);
	assert_int_equal(rest(&hold, 2, 1, LEASE_MS), UNIT_WON);
	hold = taken_over(&hold); /* 3 and 4 run under the old fence */
	assert_int_equal(started(&hold, 2), 3);
	assert_int_equal(db_cell(&world.result.rows[1], 0, START_DOUBT)->i, 1);
	assert_int_equal(started(&hold, 2), 4);
	assert_int_equal(started(&hold, 2), 1);
	assert_int_equal(db_cell(&world.result.rows[1], 0, START_FAILURES)->i, 1);
	assert_int_equal(started(&hold, 2), 0);
	assert_int_equal(started(&hold, 1), 5);
	assert_int_equal(start(&hold), UNIT_LOST); /* 2 rests */
	assert_string_equal(see(hold.subject, 3), "RUNNING, charged 4 of 4, attempt 2/0, fence 2, doubt");
	assert_string_equal(see(hold.subject, 1), "RUNNING, charged 2 of 2, attempt 2/1, fence 2: no luck");
	assert_string_equal(see(hold.subject, 2), "PENDING, charged 0 of 3, attempt 1/1, fence 1, rests: no luck");
}

/* What is in doubt is paid for, and not paid for again. */
static void what_is_in_doubt_is_not_debited_twice(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(5);
	hold = running(COSTS(5));
	assert_int_equal(started(&hold, 1), 0);
	hold = taken_over(&hold);
	assert_int_equal(started(&hold, 2), 0);
	assert_string_equal(see(hold.subject, 0), "RUNNING, charged 5 of 5, attempt 2/0, fence 2, doubt");
	assert_int_equal(doubt(&hold, 0, 2, -1), UNIT_WON);
	assert_string_equal(see(hold.subject, 0),
			    "PENDING, charged 5 of 5, attempt 2/1, fence 2, doubt, due: no answer");
	assert_int_equal(started(&hold, 3), 0);
	assert_string_equal(entries(hold.subject), "-5 0/charge/1");
	assert_int_equal(succeed(&hold, 0, 3), UNIT_WON);
	assert_int_equal(end_batch(&hold, BATCH_COMPLETED), UNIT_WON);
}

static void a_start_is_looked_up_by_fence_and_op(void **state_)
{
	struct batch_hold hold, next;
	int64_t op;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(5, 6));
	assert_int_equal(started(&hold, 1), 0);
	assert_int_equal(started(&hold, 1), 1);
	op = world.unit.op;
	(void)begin();
	item_look_up_start(&world.unit, &hold, op);
	must_win();
	assert_int_equal(world.unit.subjects_n, 2);
	assert_int_equal(world.result.rows[0].n, 1);
	assert_int_equal(db_cell(&world.result.rows[0], 0, START_N)->i, 1);
	assert_int_equal(db_cell(&world.result.rows[0], 0, START_ATTEMPT)->i, 1);
	(void)begin();
	item_look_up_start(&world.unit, &hold, op + 100000);
	must_win();
	assert_int_equal(world.result.rows[0].n, 0);
	next = taken_over(&hold);
	assert_int_equal(started(&next, 2), 0);
	assert_int_equal(started(&next, 2), 1); /* another's by now */
	(void)begin();
	item_look_up_start(&world.unit, &hold, op);
	must_win();
	assert_int_equal(world.result.rows[0].n, 0);
}

/* ---- end ---- */

static void an_item_ends_once_in_each_way(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(1, 2, 3, 4, 0));
	for (int64_t n = 0; n < 5; n++)
		assert_int_equal(started(&hold, 1), n);
	assert_int_equal(succeed(&hold, 0, 1), UNIT_WON);
	assert_string_equal(see(hold.subject, 0), "SUCCEEDED, charged 1 of 1, attempt 1/0, fence 1 = \"art\"");
	assert_int_equal(rest(&hold, 1, 1, LEASE_MS), UNIT_WON);
	assert_string_equal(see(hold.subject, 1), "PENDING, charged 0 of 2, attempt 1/1, fence 1, rests: no luck");
	assert_int_equal(fail_item(&hold, 2, 1), UNIT_WON);
	assert_string_equal(see(hold.subject, 2), "FAILED, charged 0 of 3, attempt 1/1, fence 1: refused");
	assert_int_equal(leave_unknown(&hold, 3, 1), UNIT_WON);
	assert_string_equal(see(hold.subject, 3), "UNKNOWN, charged 4 of 4, attempt 1/1, fence 1, doubt");
	assert_int_equal(fail_item(&hold, 4, 1), UNIT_WON); /* nothing to return, no entry */
	assert_string_equal(entries(hold.subject),
			    "-1 0/charge/1, -2 1/charge/1, -3 2/charge/1, -4 3/charge/1, +2 1/return/1, +3 2/return/1");
	assert_string_equal(counts(hold.subject), "5 of 5 begun, +1 -2 ?1 a0 c0, charged 5 refunded 0 late 0");
	for (int64_t n = 0; n < 5; n++) { /* the status */
		assert_int_equal(succeed(&hold, n, 1), UNIT_LOST);
		assert_int_equal(rest(&hold, n, 1, 1), UNIT_LOST);
		assert_int_equal(fail_item(&hold, n, 1), UNIT_LOST);
		assert_int_equal(leave_unknown(&hold, n, 1), UNIT_LOST);
	}
}

static void an_end_is_guarded_by_fence_attempt_and_decision(void **state_)
{
	struct batch_hold hold, old;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(5, 6, 7));
	for (int64_t n = 0; n < 3; n++)
		assert_int_equal(started(&hold, 1), n);
	assert_int_equal(fail_item(&hold, 0, 2), UNIT_LOST); /* the attempt */
	assert_int_equal(fail_item(&hold, 0, 0), UNIT_LOST);
	old = hold;
	hold = taken_over(&hold);
	/* Overtaken, and nobody else has begun it: what it knows still counts. */
	assert_int_equal(fail_item(&old, 2, 1), UNIT_WON);
	assert_int_equal(started(&hold, 2), 0);
	assert_int_equal(fail_item(&old, 0, 1), UNIT_LOST); /* attempt and fence */
	old.fence = hold.fence;
	assert_int_equal(fail_item(&old, 0, 1), UNIT_LOST); /* the attempt alone */
	old.fence = 1;
	assert_int_equal(fail_item(&old, 0, 2), UNIT_LOST); /* the fence alone */
	flag(hold.subject);
	assert_int_equal(succeed(&hold, 0, 2), UNIT_WON); /* the flag does not throw away what was done */
	begin_teardown(&hold);
	assert_int_equal(flip(&hold, 0, 3), UNIT_WON);
	assert_string_equal(see(hold.subject, 1), "UNKNOWN cancelled, charged 6 of 6, attempt 1/0, fence 1");
	assert_int_equal(fail_item(&old, 1, 1), UNIT_LOST); /* the decision */
	assert_int_equal(succeed(&old, 1, 1), UNIT_LOST);
	assert_int_equal(balance(), 100);
}

/* An item that was returned and is charged again: each turn has its own pair of entries. */
static void every_attempt_has_entries_of_its_own(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(7));
	for (int64_t attempt = 1; attempt <= 3; attempt++) {
		assert_int_equal(started(&hold, attempt), 0);
		assert_int_equal(rest(&hold, 0, attempt, -1), UNIT_WON);
	}
	assert_string_equal(entries(hold.subject), "-7 0/charge/1, +7 0/return/1, -7 0/charge/2, +7 0/return/2,"
						   " -7 0/charge/3, +7 0/return/3");
}

/* ---- settle and late ---- */

static void a_success_is_one_of_the_key(void **state_)
{
	struct batch_hold hold, old;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(1, 2, 3, 4, 5));
	for (int64_t n = 0; n < 5; n++)
		assert_int_equal(started(&hold, 1), n);
	old = hold;
	hold = taken_over(&hold);
	for (int64_t n = 0; n < 4; n++)
		assert_int_equal(started(&hold, 2), n);
	assert_int_equal(leave_unknown(&hold, 0, 2), UNIT_WON);
	assert_int_equal(doubt(&hold, 1, 2, LEASE_MS), UNIT_WON);
	assert_int_equal(fail_item(&hold, 3, 2), UNIT_WON);
	/* UNKNOWN, resting, RUNNING again: it was done after all. */
	for (int64_t n = 0; n < 3; n++)
		assert_int_equal(settle(&old, n, 1), UNIT_WON);
	assert_string_equal(see(hold.subject, 0),
			    "SUCCEEDED, charged 1 of 1, attempt 2/1, fence 2, doubt = \"settled\"");
	assert_string_equal(see(hold.subject, 1),
			    "SUCCEEDED, charged 2 of 2, attempt 2/1, fence 2, doubt = \"settled\"");
	assert_string_equal(see(hold.subject, 2),
			    "SUCCEEDED, charged 3 of 3, attempt 2/0, fence 2, doubt = \"settled\"");
	assert_int_equal(settle(&old, 2, 1), UNIT_LOST); /* it has succeeded */
	assert_int_equal(settle(&old, 3, 1), UNIT_LOST); /* given back */
	assert_int_equal(settle(&old, 4, 2), UNIT_LOST); /* a later attempt than there was */
	assert_string_equal(counts(hold.subject), "5 of 5 begun, +3 -1 ?0 a0 c0, charged 11 refunded 0 late 0");
	MUST_HOLD(late(&old, 2, 1) == UNIT_LOST, "what a good item has made, or one that may be, is deleted as late");
	/* FAILED and given back: late, with a job that deletes what it has made. */
	assert_int_equal(late(&old, 3, 1), UNIT_WON);
	assert_string_equal(see(hold.subject, 3),
			    "FAILED, charged 0 of 4, attempt 2/1, fence 2 late \"late\": refused");
	assert_int_equal(jobs_n(), 1);
	assert_int_equal(late(&old, 3, 1), UNIT_LOST); /* it is known */
	assert_int_equal(jobs_n(), 1);
	MUST_HOLD(late(&old, 4, 1) == UNIT_LOST, "what a good item has made, or one that may be, is deleted as late");
}

static void what_was_done_after_the_refund_is_recorded_once(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(1, 2, 3));
	assert_int_equal(started(&hold, 1), 0);
	assert_int_equal(started(&hold, 1), 1);
	assert_int_equal(succeed(&hold, 1, 1), UNIT_WON);
	flag(hold.subject);
	begin_teardown(&hold);
	assert_int_equal(flip(&hold, 0, 3), UNIT_WON);
	assert_int_equal(succeed(&hold, 0, 1), UNIT_LOST);
	assert_int_equal(settle(&hold, 0, 1), UNIT_LOST);
	assert_int_equal(late(&hold, 0, 1), UNIT_WON);
	assert_string_equal(see(hold.subject, 0),
			    "UNKNOWN cancelled, charged 1 of 1, attempt 1/0, fence 1 late \"late\"");
	assert_int_equal(late(&hold, 0, 1), UNIT_LOST);
	MUST_HOLD(late(&hold, 1, 1) == UNIT_LOST, "a success that had landed, and was lost to nobody, is told as late");
	assert_int_equal(jobs_n(), 1);
	assert_int_equal(balance(), 100);
}

/* ---- decisions ---- */

static void an_item_is_accepted_once_it_succeeded(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(1, 2, 3, 4));
	assert_int_equal(started(&hold, 1), 0);
	assert_int_equal(accept(&hold, 0), UNIT_LOST);
	assert_int_equal(accept(&hold, 1), UNIT_LOST);
	assert_int_equal(accept(&hold, 99), UNIT_LOST);
	assert_int_equal(succeed(&hold, 0, 1), UNIT_WON);
	assert_int_equal(accept(&hold, 0), UNIT_WON);
	assert_int_equal(accept(&hold, 0), UNIT_LOST);
	assert_int_equal(started(&hold, 1), 1);
	assert_int_equal(succeed(&hold, 1, 1), UNIT_WON);
	flag(hold.subject);
	assert_int_equal(accept(&hold, 1), UNIT_LOST); /* the cancel came first */
	begin_teardown(&hold);
	assert_int_equal(flip(&hold, 0, 4), UNIT_WON);
	assert_int_equal(accept(&hold, 1), UNIT_LOST);
	assert_string_equal(see(hold.subject, 0), "SUCCEEDED accepted, charged 1 of 1, attempt 1/0, fence 1 = \"art\"");
	assert_string_equal(counts(hold.subject), "2 of 4 begun, +2 -0 ?0 a1 c3, charged 3 refunded 2 late 0");
	assert_int_equal(balance(), 99);
}

static void a_person_resolves_what_is_unknown(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(5, 6, 7));
	for (int64_t n = 0; n < 3; n++) {
		assert_int_equal(started(&hold, 1), n);
		assert_int_equal(resolve(&hold, n, true), UNIT_LOST);
		assert_int_equal(leave_unknown(&hold, n, 1), UNIT_WON);
	}
	assert_int_equal(resolve(&hold, 0, true), UNIT_WON);
	assert_string_equal(see(hold.subject, 0), "SUCCEEDED, charged 5 of 5, attempt 1/1, fence 1, doubt = \"seen\"");
	assert_int_equal(resolve(&hold, 1, false), UNIT_WON);
	assert_string_equal(see(hold.subject, 1), "FAILED, charged 0 of 6, attempt 1/1, fence 1, doubt");
	assert_int_equal(resolve(&hold, 0, false), UNIT_LOST);
	assert_int_equal(resolve(&hold, 1, false), UNIT_LOST);
	assert_string_equal(entries(hold.subject), "-5 0/charge/1, -6 1/charge/1, -7 2/charge/1, +6 1/return/1");
	flag(hold.subject);
	assert_int_equal(resolve(&hold, 2, false), UNIT_LOST); /* the cancel came first */
	begin_teardown(&hold);
	assert_int_equal(flip(&hold, 0, 3), UNIT_WON);
	assert_int_equal(resolve(&hold, 2, false), UNIT_LOST); /* it is refunded: not once more */
	assert_int_equal(resolve(&hold, 2, true), UNIT_LOST);
	assert_string_equal(counts(hold.subject), "3 of 3 begun, +1 -1 ?1 a0 c3, charged 12 refunded 12 late 0");
	assert_int_equal(balance(), 100);
}

/* Also when the batch has completed. */
static void an_unknown_item_outlives_its_batch(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(100);
	hold = running(COSTS(5));
	assert_int_equal(started(&hold, 1), 0);
	assert_int_equal(leave_unknown(&hold, 0, 1), UNIT_WON);
	assert_int_equal(end_batch(&hold, BATCH_COMPLETED), UNIT_WON);
	assert_int_equal(resolve(&hold, 0, false), UNIT_WON);
	assert_int_equal(balance(), 100);
	assert_string_equal(counts(hold.subject), "1 of 1 begun, +0 -1 ?0 a0 c0, charged 0 refunded 0 late 0");
}

/* ---- teardown ---- */

static const char *doubtful(int64_t batch, int64_t from, int64_t to, int64_t limit)
{
	(void)begin();
	item_read_doubtful(&world.unit, batch, from, to, limit);
	must_win();
	return numbers(0);
}

static void teardown_refunds_exactly_what_is_charged(void **state_)
{
	struct batch_hold hold, stale;

	(void)state_;
	(void)open_account(5000);
	hold = torn();
	assert_int_equal(balance(), 5000 - 1 - 2 - 4 - 8 - 64 - 128 - 256);
	assert_string_equal(doubtful(hold.subject, 0, 11, 100), "2 3 6 7 8");
	assert_string_equal(doubtful(hold.subject, 3, 7, 100), "3 6");
	assert_string_equal(doubtful(hold.subject, 0, 11, 2), "2 3");
	assert_int_equal(flip(&hold, 1, 4), UNIT_LOST);  /* not the cursor */
	assert_int_equal(flip(&hold, 0, 12), UNIT_LOST); /* beyond the total */
	stale = hold;
	stale.fence--;
	assert_int_equal(flip(&stale, 0, 4), UNIT_LOST);
	lapse(&hold);
	assert_int_equal(flip(&hold, 0, 4), UNIT_WON); /* renews */
	assert_string_equal(state(hold.subject), "CANCELLING v4 f2, owned, flagged");
	assert_int_equal(balance(), 5000 - 1 - 64 - 128 - 256);
	assert_string_equal(counts(hold.subject), "9 of 11 begun, +3 -1 ?1 a1 c3, charged 463 refunded 14 late 0");
	assert_int_equal(flip(&hold, 0, 4), UNIT_LOST); /* sent twice */
	assert_int_equal(flip(&hold, 4, 8), UNIT_WON);
	assert_string_equal(doubtful(hold.subject, 0, 11, 100), "8");
	assert_int_equal(flip(&hold, 8, 11), UNIT_WON);
	assert_int_equal(balance(), 5000 - 1);
	assert_string_equal(counts(hold.subject), "9 of 11 begun, +3 -1 ?3 a1 c10, charged 463 refunded 462 late 0");
	assert_string_equal(see(hold.subject, 0), "SUCCEEDED accepted, charged 1 of 1, attempt 1/0, fence 1 = \"art\"");
	assert_string_equal(see(hold.subject, 4), "FAILED cancelled, charged 0 of 16, attempt 1/1, fence 1: refused");
	assert_string_equal(see(hold.subject, 7), "UNKNOWN cancelled, charged 128 of 128, attempt 2/0, fence 2, doubt");
	assert_string_equal(see(hold.subject, 8), "UNKNOWN cancelled, charged 256 of 256, attempt 1/0, fence 1");
	assert_string_equal(see(hold.subject, 10), "PENDING cancelled, charged 0 of 1024, attempt 0/0, fence 0");
	assert_non_null(strstr(entries(hold.subject), "+14 1/refund/2, +192 4/refund/2, +256 8/refund/1"));
	/* All cancelled ones that were ever begun, each time. */
	(void)begin();
	item_read_left(&world.unit, &stale, 0, 11);
	assert_lost_at("batch_keep");
	lapse(&hold);
	for (int i = 0; i < 2; i++) {
		(void)begin();
		item_read_left(&world.unit, &hold, 0, 11);
		must_win();
		assert_string_equal(numbers(1), "1 2 3 4 5 6 7 8");
	}
	assert_string_equal(state(hold.subject), "CANCELLING v4 f2, owned, flagged");
	(void)begin();
	item_read_left(&world.unit, &hold, 2, 4);
	must_win();
	assert_string_equal(numbers(1), "2 3");
}

/* A slice in which nothing is charged: no entry, no change of the balance. */
static void a_slice_without_money_moves_none(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(50);
	hold = hold_of(make_of(COSTS(1, 2), /* queued= */ true), BATCH_CANCELLING, LEASE_MS);
	assert_int_equal(flip(&hold, 0, 2), UNIT_WON);
	assert_string_equal(entries(hold.subject), "");
	assert_string_equal(counts(hold.subject), "0 of 2 begun, +0 -0 ?0 a0 c2, charged 0 refunded 0 late 0");
	assert_int_equal(end_batch(&hold, BATCH_CANCELLED), UNIT_WON);
}

/* A person has credited up to the limit meanwhile: what is given back still fits. */
static void a_refund_does_not_meet_the_limit_of_credits(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(ACCOUNT_AMOUNT_MAX);
	hold = running(COSTS(5));
	assert_int_equal(started(&hold, 1), 0);
	assert_int_equal(credit(6, "over"), UNIT_REFUSED);
	assert_int_equal(credit(5, "full"), UNIT_WON);
	flag(hold.subject);
	begin_teardown(&hold);
	assert_int_equal(flip(&hold, 0, 1), UNIT_WON);
	assert_int_equal(balance(), ACCOUNT_BALANCE_MAX + 5);
}

static void items_are_listed_by_status_and_decision(void **state_)
{
	struct batch_hold hold;

	(void)state_;
	(void)open_account(5000);
	hold = torn();
	assert_string_equal(listed(hold.subject, "", "", -1, 100), "0 1 2 3 4 5 6 7 8 9 10");
	assert_string_equal(listed(hold.subject, "", "", 4, 3), "5 6 7");
	assert_string_equal(listed(hold.subject, "SUCCEEDED", "", -1, 100), "0 1 2");
	assert_string_equal(listed(hold.subject, "SUCCEEDED", "accepted", -1, 100), "0");
	assert_int_equal(flip(&hold, 0, 3), UNIT_WON);
	assert_string_equal(listed(hold.subject, "", "cancelled", -1, 100), "1 2");
}

/* A cursor may be any number: nothing is there, and no store reckons beyond its numbers. */
static void a_list_goes_on_from_any_number(void **state_)
{
	const int64_t far[] = {11,       1000000, INT64_MAX - LIST_SLICE - 2, INT64_MAX - LIST_SLICE, INT64_MAX - 1,
			       INT64_MAX};
	struct batch_hold hold;

	(void)state_;
	(void)open_account(5000);
	hold = torn();
	for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
		assert_string_equal(listed(hold.subject, "", "", far[i], 100), "");
		assert_int_equal(world.result.rows[1].n, 1);
		assert_int_equal(db_cell(&world.result.rows[1], 0, SLICE_N)->i, 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_charges_in_its_unit),
		cmocka_unit_test(a_start_renews_the_lease_and_is_guarded),
		cmocka_unit_test(items_are_chosen_in_order),
		cmocka_unit_test(what_is_in_doubt_is_not_debited_twice),
		cmocka_unit_test(a_start_is_looked_up_by_fence_and_op),
		cmocka_unit_test(an_item_ends_once_in_each_way),
		cmocka_unit_test(an_end_is_guarded_by_fence_attempt_and_decision),
		cmocka_unit_test(every_attempt_has_entries_of_its_own),
		cmocka_unit_test(a_success_is_one_of_the_key),
		cmocka_unit_test(what_was_done_after_the_refund_is_recorded_once),
		cmocka_unit_test(an_item_is_accepted_once_it_succeeded),
		cmocka_unit_test(a_person_resolves_what_is_unknown),
		cmocka_unit_test(an_unknown_item_outlives_its_batch),
		cmocka_unit_test(teardown_refunds_exactly_what_is_charged),
		cmocka_unit_test(a_slice_without_money_moves_none),
		cmocka_unit_test(a_refund_does_not_meet_the_limit_of_credits),
		cmocka_unit_test(items_are_listed_by_status_and_decision),
		cmocka_unit_test(a_list_goes_on_from_any_number),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("batch items, sqlite", tests, set_up_sqlite, tear_down) +
	       cmocka_run_group_tests_name("batch items, postgres", tests, set_up_postgres, tear_down);
}
