/*
 * A batch over a real store, one node alone: its tenures turn by turn, what is called with which key, what the rows and the
 * books say after each of them. Races and crashes are explored in tests/sim/test_batch.c, the units one by one in
 * tests/contract/test_batch_units.c.
 */
#include "batch_turns.h"
#include "support/must_hold.h"

static void test_completes(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete','done_after_effect':['tell'],'concurrency':2");
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "render /0 #1; render /1 #1; render /2 #1; ");
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
	assert_non_null(strstr(tell(w, &stmt_jobs),
			       "\"from\":\"RUNNING\",\"to\":\"COMPLETED\",\"version\":3,\"output\":"
			       "{\"total\":3,\"succeeded\":3,\"failed\":0,\"unknown\":0,"
			       "\"accepted\":0,\"cancelled\":0,\"charged\":213,\"refunded\":0}"));
	assert_non_null(strstr(fixture.body, "\"step\":\"item\",\"requester\":\"me\",\"input\":null,"
					     "\"data\":{},\"item\":{\"n\":2,\"input\":null,\"output\":null}"));
	cancel(w, HX_ALREADY_COMPLETED, false, false);
}

static void test_failures_are_returned_and_retried(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','concurrency':1,'retry':{'max_attempts':2,'initial':'1s','jitter':false}");
	fixture.script = "failed good ok";
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:0 1:FAILED:0 2:SUCCEEDED:3");
	assert_batch(w, BATCH_RUNNING, BALANCE - 3);
	assert_int_equal(read_batch(w).due_at, START_MS + 1000);
	assert_int_equal(hold(w), HX_OK); /* not due */
	assert_string_equal(fixture.calls, "render /0 #1; render /1 #1; render /2 #1; ");
	fake_clock_advance_ms(&w->clock, 1000);
	fixture.script = "failed";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:FAILED:0 1:FAILED:0 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 3);
}

static void test_unknown_outcomes(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','concurrency':1,'retry':{'max_attempts':2,'initial':'1s','jitter':false}");
	fixture.script = "unknown ok ok";
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:10? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	fake_clock_advance_ms(&w->clock, 1000);
	fixture.script = "failed"; /* of the second try: it says nothing about the first */
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:UNKNOWN:10? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

/* An item that the other side is still at: no attempt is used, it stays charged, and after ten minutes it is for a person. */
static void test_unsettled(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','concurrency':1,'retry':{'max_attempts':1,'initial':'1s','jitter':false}");
	fixture.script = "409 ok 409";
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:10? 1:SUCCEEDED:200 2:PENDING:3?");
	fake_clock_advance_ms(&w->clock, 1000);
	fixture.script = "409 ok";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:10? 1:SUCCEEDED:200 2:SUCCEEDED:3?");
	fake_clock_advance_ms(&w->clock, UNSETTLED_MS_MAX);
	fixture.script = "409";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:UNKNOWN:10? 1:SUCCEEDED:200 2:SUCCEEDED:3?");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

/* So long, at least. */
static void test_not_before(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','concurrency':1,'retry':{'max_attempts':2,'initial':'1s','jitter':false}");
	fixture.script = "429 ok ok";
	fixture.not_before_ms = 7000;
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	fake_clock_advance_ms(&w->clock, 6999);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:0 1:SUCCEEDED:200 2:SUCCEEDED:3");
	fake_clock_advance_ms(&w->clock, 1);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10 1:SUCCEEDED:200 2:SUCCEEDED:3");
	fixture.not_before_ms = 0;
}

static void test_hold_and_probe(void **state)
{
	struct world *w = *state;

	define("'item_action':'asked','on_unknown':'probe','concurrency':1");
	fixture.script = "unknown done unknown not ok";
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls,
			    "asked /0 #1; ask /0/probe/ask #1; asked /1 #1; ask /1/probe/ask #1; asked /2 #1; ");
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10? 1:PENDING:0 2:SUCCEEDED:3");
}

static void test_hold(void **state)
{
	struct world *w = *state;

	define("'item_action':'once','concurrency':1");
	fixture.script = "unknown ok ok";
	create_three(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:UNKNOWN:10? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

static void test_cancel_of_a_queued_one(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete'");
	create_three(w);
	cancel(w, HX_OK, /* seized= */ true, /* accepted= */ false);
	assert_string_equal(fixture.calls, ""); /* nothing was begun, so nothing is there to be cleaned up */
	assert_batch(w, BATCH_CANCELLED, BALANCE);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:0:cancelled 1:PENDING:0:cancelled 2:PENDING:0:cancelled");
	cancel(w, HX_OK, false, false);
	assert_int_equal(hold(w), HX_OK);
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

static void test_cancel_of_a_running_one(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete','concurrency':1,'done_after_effect':['tell']");
	create_three(w);
	fixture.meanwhile = flag;
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "render /0 #1; delete /0/cleanup/1 #1; ");
	assert_string_equal(tell(w, &stmt_items),
			    "0:SUCCEEDED:10:cancelled 1:PENDING:0:cancelled 2:PENDING:0:cancelled");
	assert_batch(w, BATCH_CANCELLED, BALANCE);
	assert_int_equal(read_batch(w).refunded, 10);
	assert_non_null(strstr(tell(w, &stmt_jobs), "\"to\":\"CANCELLED\""));
	assert_non_null(strstr(fixture.body, "\"item\":{\"n\":0,\"input\":\"a\",\"output\":{\"url\":\"x\"}}"));
}

static void test_cleanup_that_fails(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete','concurrency':1");
	create_three(w);
	fixture.script = "ok good";
	fixture.meanwhile = flag;
	assert_int_equal(hold(w), HX_OK);
	assert_batch(w, BATCH_CANCELLING, BALANCE); /* the money is back, and it is not over */
	assert_true(slice_is(read_batch(w).error, "HTTP 400"));
	fake_clock_advance_ms(&w->clock, 400);
	(void)hold(w); /* not due: the backoff is at least half a second */
	assert_batch(w, BATCH_CANCELLING, BALANCE);
	fake_clock_advance_ms(&w->clock, 600);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "render /0 #1; delete /0/cleanup/1 #1; delete /0/cleanup/2 #1; ");
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

static void test_takeover_voids_what_is_in_doubt(void **state)
{
	struct world *w = *state;

	define("'item_action':'voidable','cleanup_action':'delete','concurrency':1");
	create_three(w);
	fixture.script = "crash";
	assert_int_equal(hold(w), HX_STOPPING);
	assert_string_equal(tell(w, &stmt_items), "0:RUNNING:10 1:PENDING:0 2:PENDING:0");
	flag(w);
	fake_clock_advance_ms(&w->clock, 1000);
	fixture.script = "failed";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "voidable /0 #1; annul /0/void/2 #1; ");
	assert_non_null(strstr(fixture.body, "\"key\":\"batch_000000000002d/0\""));
	assert_batch(w, BATCH_CANCELLING, BALANCE - 10); /* no money before the key is void */
	fake_clock_advance_ms(&w->clock, 1000);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "voidable /0 #1; annul /0/void/2 #1; annul /0/void/3 #1; "
					   "delete /0/cleanup/3 #1; ");
	assert_string_equal(tell(w, &stmt_items), "0:UNKNOWN:10:cancelled 1:PENDING:0:cancelled 2:PENDING:0:cancelled");
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

static size_t count_of(const char *text, const char *word)
{
	size_t n = 0;

	for (const char *p = text; (p = strstr(p, word)); p++)
		n++;
	return n;
}

/* More in doubt than one lead keeps in memory: page by page, each voided once, before its money goes back. */
static void test_many_are_in_doubt(void **state)
{
	struct world *w = *state;
	char rows[400] = "[";

	define("'item_action':'voidable','on_unknown':'hold','concurrency':1");
	for (int i = 0; i < 20; i++)
		snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "%s[1,\"%d\"]", i ? "," : "", i);
	snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "]");
	create(w, rows, 20);
	fixture.script =
		"unknown unknown unknown unknown unknown unknown unknown unknown unknown unknown unknown unknown"
		" unknown unknown unknown unknown unknown unknown unknown crash";
	assert_int_equal(hold(w), HX_STOPPING);
	flag(w);
	fake_clock_advance_ms(&w->clock, 1000);
	fixture.calls[0] = '\0';
	assert_int_equal(hold(w), HX_OK);
	for (int i = 0; i < 20; i++) {
		char call[40];

		snprintf(call, sizeof call, "annul /%d/void/2 #1; ", i);
		assert_int_equal(count_of(fixture.calls, call), 1);
	}
	assert_int_equal(count_of(fixture.calls, "annul"), 20);
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

static void test_takeover_does_not_pay_twice(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','concurrency':1");
	create_three(w);
	fixture.script = "crash";
	assert_int_equal(hold(w), HX_STOPPING);
	fake_clock_advance_ms(&w->clock, 1000);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "render /0 #1; render /0 #2; render /1 #1; render /2 #1; ");
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

static void spend(struct world *w)
{
	sql(w,
	    "UPDATE hx_account SET balance = balance - 980, seq = seq + 1; INSERT INTO hx_ledger (account, seq, amount,"
	    " key, reason, balance, op, at) SELECT subject, seq, -980, 'x', 'credit', balance, 0, 0 FROM hx_account");
}

static void test_out_of_credit(void **state)
{
	struct world *w = *state;
	struct stamp stamp;

	define("'item_action':'render','concurrency':1");
	create_three(w);
	spend(w);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls, "render /0 #1; ");
	assert_batch(w, BATCH_OUT_OF_CREDIT, 10);
	assert_int_equal(read_batch(w).needs, 200);
	assert_int_equal(read_batch(w).due_at, 0);
	stamp = world_begin(w);
	account_add_credit(&w->unit, &stamp, ACCOUNT, 189, slice_str("little"));
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(read_batch(w).due_at, 0);
	stamp = world_begin(w);
	account_add_credit(&w->unit, &stamp, ACCOUNT, 4, slice_str("enough"));
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(read_batch(w).due_at, START_MS);
	assert_int_equal(hold(w), HX_OK);
	assert_batch(w, BATCH_COMPLETED, 0);
}

static void others_tear_down(struct world *w)
{
	fake_clock_advance_ms(&w->clock, 1000);
	flag(w);
	assert_int_equal(hold(w), HX_OK);
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

static void test_late_success(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete','concurrency':1");
	create_three(w);
	fixture.meanwhile = others_tear_down;
	fixture.overrun = true;
	(void)hold(w);
	assert_string_equal(tell(w, &stmt_items),
			    "0:UNKNOWN:10:cancelled late 1:PENDING:0:cancelled 2:PENDING:0:cancelled");
	assert_non_null(strstr(tell(w, &stmt_jobs), "delete /0/cleanup/late/1 {"));
	MUST_HOLD(fixture.late_n == 1,
		  "a success that came too late is counted as one of the batch, and nobody is told");
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

static void others_hold(struct world *w)
{
	fake_clock_advance_ms(&w->clock, 1000);
	assert_int_equal(hold(w), HX_OK);
}

static void test_a_success_that_was_given_up(void **state)
{
	struct world *w = *state;

	define("'item_action':'once','concurrency':1");
	create_three(w);
	fixture.meanwhile = others_hold; /* who find it in doubt, leave it to a person, and do the others */
	fixture.overrun = true;
	(void)hold(w);
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

/* The lease was over before the call was sent: nobody has to wonder about it, and it is not paid for. */
static void test_a_call_that_was_never_begun(void **state)
{
	struct world *w = *state;

	define("'item_action':'once','concurrency':1");
	create_three(w);
	fixture.script = "lost";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:0 1:PENDING:0 2:PENDING:0");
	assert_batch(w, BATCH_RUNNING, BALANCE);
	fake_clock_advance_ms(&w->clock, 1000);
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10 1:SUCCEEDED:200 2:SUCCEEDED:3");
}

/* Others have asked, were told that it was not done, and gave it back; then it was. Who tries it next asks first. */
static void test_a_success_behind_a_probe(void **state)
{
	struct world *w = *state;

	define("'item_action':'asked','on_unknown':'probe','concurrency':1,'retry':{'initial':'10s','jitter':false}");
	create_three(w);
	fixture.script = "not ok ok ok";
	fixture.meanwhile = others_hold;
	fixture.overrun = true;
	(void)hold(w);
	assert_string_equal(tell(w, &stmt_items), "0:PENDING:0? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_string_equal(fixture.calls, "asked /0 #1; ask /0/probe/ask #2; asked /1 #1; asked /2 #1; ");
	fake_clock_advance_ms(&w->clock, 10000);
	fixture.script = "done";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(fixture.calls,
			    "asked /0 #1; ask /0/probe/ask #2; asked /1 #1; asked /2 #1; ask /0/probe/ask #3; ");
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10? 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

static void test_outputs_that_are_too_long(void **state)
{
	struct world *w = *state;

	memset(long_output, 'x', sizeof long_output - 1);
	long_output[0] = long_output[sizeof long_output - 2] = '"';
	define("'item_action':'render','cleanup_action':'delete','concurrency':1");
	create_three(w);
	fixture.script = "long ok ok";
	assert_int_equal(hold(w), HX_OK);
	assert_string_equal(tell(w, &stmt_items), "0:SUCCEEDED:10 1:SUCCEEDED:200 2:SUCCEEDED:3");
	assert_batch(w, BATCH_COMPLETED, BALANCE - 213);
}

static void late_comer(struct world *w)
{
	sql(w, "UPDATE hx_batch_item SET late = '\"late one\"', output = NULL, status = 'UNKNOWN' WHERE n = 0;"
	       " UPDATE hx_batch SET late = late + 1, succeeded = succeeded - 1, unknown = unknown + 1");
}

static void flag_once(struct world *w)
{
	flag(w);
	fixture.meanwhile = late_comer; /* while the first pass is at it */
}

/* A late success during the cleanup: there is another pass, and it is told what came late. */
static void test_late_during_the_cleanup(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete','concurrency':1");
	create_three(w);
	fixture.meanwhile = flag_once;
	assert_int_equal(hold(w), HX_OK);
	assert_batch(w, BATCH_CANCELLING, BALANCE);
	fake_clock_advance_ms(&w->clock, 1);
	assert_int_equal(hold(w), HX_OK);
	assert_batch(w, BATCH_CANCELLED, BALANCE);
	assert_string_equal(fixture.calls, "render /0 #1; delete /0/cleanup/1 #1; delete /0/cleanup/2 #1; ");
	assert_non_null(strstr(fixture.body, "\"output\":\"late one\""));
}

/* A loader is lost, and somebody cancels before anybody has noticed. */
static void test_cancel_of_a_lost_load(void **state)
{
	struct world *w = *state;
	struct batch_row row;
	struct stamp stamp;

	define("'item_action':'render'");
	create(w, "[[10,\"1\"]]", 1);
	sql(w, "UPDATE hx_subject SET status = 'PENDING' WHERE id = 77; UPDATE hx_batch SET due_at = NULL");
	row = read_batch(w);
	stamp = world_begin(w);
	batch_load_more(&w->unit, &stamp, &row, LEASE_MS);
	assert_int_equal(world_run(w), UNIT_WON);
	cancel(w, HX_WRONG_STATUS, false, false);
	fake_clock_advance_ms(&w->clock, LEASE_MS);
	cancel(w, HX_OK, /* seized= */ true, false);
	assert_batch(w, BATCH_CANCELLED, BALANCE);
}

/* Every unit in turn has its answer lost, after it has landed: nothing is done twice. */
static void test_lost_answers(void **state)
{
	struct world *w = *state;

	define("'item_action':'render','cleanup_action':'delete','concurrency':1,'done_after_effect':['tell']");
	create_three(w);
	fixture.fail_commits = 3;
	fixture.script = "ok failed ok";
	for (int i = 0; i < 30 && !batch_is_terminal(read_batch(w).status); i++) {
		fixture.fail_commits += i < 10 ? 2 : 0;
		(void)hold(w);
		if (i == 1)
			flag(w);
		fake_clock_advance_ms(&w->clock, 2000);
	}
	assert_batch(w, BATCH_CANCELLED, BALANCE);
	assert_null(strstr(fixture.calls, "/0 #2"));
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_set_up, world_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(completes),
		TEST(failures_are_returned_and_retried),
		TEST(unknown_outcomes),
		TEST(unsettled),
		TEST(not_before),
		TEST(hold_and_probe),
		TEST(hold),
		TEST(cancel_of_a_queued_one),
		TEST(cancel_of_a_running_one),
		TEST(cleanup_that_fails),
		TEST(takeover_voids_what_is_in_doubt),
		TEST(many_are_in_doubt),
		TEST(takeover_does_not_pay_twice),
		TEST(out_of_credit),
		TEST(late_success),
		TEST(a_success_that_was_given_up),
		TEST(a_call_that_was_never_begun),
		TEST(a_success_behind_a_probe),
		TEST(outputs_that_are_too_long),
		TEST(late_during_the_cleanup),
		TEST(cancel_of_a_lost_load),
		TEST(lost_answers),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
