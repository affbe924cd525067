/*
 * Calls that are heard out: their lease is lost, or not trusted any more, and what they did is told all the same. By a real
 * lane, a pulse lane that is held still, and the warden; the clock is moved by hand. That other calls are aborted then is
 * shown in test_lane.c and test_warden.c, and beside these here.
 */
#include "unit/task/party.h"

#define TRUSTED_MS (LEASE_MS - LEASE_MS / 10)

static struct caller caller, other, holder;
static struct warden *warden;
static struct lane *pulse;

static void build_claim(struct unit *unit, const struct probe *p)
{
	subject_claim(unit, &p->stamp, &(struct move){p->subject, "open", "busy"}, p->number, LEASE_MS);
}

static struct lease lease_from_now(void)
{
	return (struct lease){/* subject= */ 1, /* fence= */ 1, LEASE_MS, clock_mono(&party.clock.clock)};
}

/* The lane once more, with what the test has put into its options. */
static void start_again(void)
{
	struct hx_error err;

	lane_free(party.lane);
	party.options.db.exclusive = false;
	if (lane_new(&party.options, &party.lane, &err))
		fail_msg("%s", err.detail);
}

static void start_with_warden(void)
{
	struct hx_error err;

	party_start(STORE_SQLITE_FILE, /* seats_max= */ 100);
	if (warden_new(&party.clock.clock, &warden, &err))
		fail_msg("%s", err.detail);
	party.options.warden = warden;
	start_again();
}

/* Subject 1 is claimed, and its action is under way. */
static void begin(void)
{
	port_set(&party.port, /* held= */ true, false);
	assert_int_equal(ask_lane(party.lane, build_create, 1, 0).verdict, UNIT_WON);
	assert_int_equal(ask_lane(party.lane, build_claim, 1, /* version= */ 1).verdict, UNIT_WON);
	caller_act_heard_out(&caller, lease_from_now());
	submit(party.lane, &caller);
	AWAIT(party.port.started_n == 1);
}

static int64_t until_of(struct lane *lane)
{
	return ask_lane(lane, build_read, 1, 0).ints[3];
}

static void await_until(struct lane *lane, int64_t wanted_ms)
{
	struct mono_time deadline = mono_add_ms(clock_mono(clock_system()), AWAIT_MS);

	while (until_of(lane) != wanted_ms)
		if (clock_mono(clock_system()).ns > deadline.ns)
			fail_msg("the lease was not renewed");
}

static void assert_heard(enum act_outcome outcome, bool overrun)
{
	AWAIT(caller.done);
	assert_int_equal(caller.code, HX_OK);
	assert_int_equal(caller.actor.outcome, outcome);
	assert_int_equal(caller.actor.overrun, overrun);
}

/* What the action says when the lease is long over. */
static void answer_late(enum act_outcome outcome)
{
	assert_false(is_done(&caller));
	lane_answer(party.port.tickets[0], outcome, slice_str("what it did"));
	assert_heard(outcome, /* overrun= */ true);
	assert_string_equal(caller.actor.output, "what it did");
	assert_int_equal(party.port.aborted_n, 0);
	AWAIT(party_stats().claims_lost == 1);
}

static void while_its_lease_is_kept_nothing_is_different(void **state)
{
	(void)state;
	party_start(STORE_SQLITE_MEMORY, 100);
	begin();
	for (int i = 0; i < 5; i++) {
		party_pass_ms(LEASE_MS / 3);
		await_until(party.lane, party.clock.wall_ms + LEASE_MS);
	}
	lane_answer(party.port.tickets[0], ACT_OK, slice_of(NULL, 0));
	assert_heard(ACT_OK, /* overrun= */ false);
	assert_int_equal(party_stats().claims_lost, 0);
}

static void without_a_lease_nothing_can_overrun(void **state)
{
	(void)state;
	party_start(STORE_SQLITE_MEMORY, 100);
	port_set(&party.port, /* held= */ true, false);
	caller_act_heard_out(&caller, (struct lease){0});
	submit(party.lane, &caller);
	AWAIT(party.port.started_n == 1);
	party_pass_ms(INT64_C(1000) * LEASE_MS);
	lane_answer(party.port.tickets[0], ACT_OK, slice_of(NULL, 0));
	assert_heard(ACT_OK, /* overrun= */ false);
}

static void it_is_heard_after_a_lost_beat_and_there_are_no_more_beats(void **state)
{
	uint64_t lost;

	(void)state;
	party_start(STORE_SQLITE_MEMORY, 100);
	begin();
	assert_int_equal(ask_lane(party.lane, build_release, 1, /* fence= */ 1).verdict, UNIT_WON);
	party_pass_ms(LEASE_MS / 3);
	AWAIT(party_stats().claims_lost == 1);
	lost = party_stats().group.lost;
	for (int i = 0; i < 10; i++) {
		party_pass_ms(LEASE_MS / 3);
		(void)until_of(party.lane);
	}
	assert_int_equal(party_stats().group.lost, lost);
	answer_late(ACT_OK);
}

static void it_is_heard_after_its_lease_could_not_be_trusted(void **state)
{
	int64_t until;

	(void)state;
	party_start(STORE_SQLITE_MEMORY, 100);
	begin();
	until = until_of(party.lane);
	party_pass_ms(TRUSTED_MS); /* in one leap: the process was paused */
	AWAIT(party_stats().claims_lost == 1);
	party_pass_ms(INT64_C(10) * LEASE_MS);
	assert_int_equal(until_of(party.lane), until); /* nothing was renewed */
	answer_late(ACT_FAILED);
}

static void an_answer_that_overtakes_the_timer_is_an_overrun_too(void **state)
{
	(void)state;
	party_start(STORE_SQLITE_MEMORY, 100);
	begin();
	hold_lane(party.lane, &holder);
	party.clock.mono_ms += TRUSTED_MS;
	lane_answer(party.port.tickets[0], ACT_UNKNOWN, slice_of(NULL, 0));
	let_lane_go();
	assert_heard(ACT_UNKNOWN, /* overrun= */ true);
	AWAIT(party_stats().claims_lost == 1);
}

static void the_next_call_of_the_same_task_has_not_overrun(void **state)
{
	(void)state;
	party_start(STORE_SQLITE_MEMORY, 100);
	port_set(&party.port, /* held= */ true, false);
	caller_act_heard_out(&caller, lease_from_now());
	caller.actor.again = true;
	submit(party.lane, &caller);
	AWAIT(party.port.started_n == 1);
	party_pass_ms(TRUSTED_MS);
	AWAIT(party_stats().claims_lost == 1);
	lane_answer(party.port.tickets[0], ACT_OK, slice_of(NULL, 0));
	AWAIT(party.port.started_n == 2);
	lane_answer(party.port.tickets[1], ACT_FAILED, slice_of(NULL, 0));
	assert_heard(ACT_FAILED, /* overrun= */ false);
}

/* Somebody may have had the claim in between: a renewal does not bring it back. */
static void a_renewal_that_comes_through_late_changes_nothing(void **state)
{
	struct lane_options options;
	struct hx_error err;
	int64_t renewed;

	(void)state;
	party_start(STORE_SQLITE_FILE, 100);
	options = party.options;
	options.db.exclusive = false;
	lane_free(party.lane);
	if (lane_new(&options, &pulse, &err))
		fail_msg("%s", err.detail);
	party.lane = NULL;
	party.options.pulse = pulse;
	start_again();
	begin();
	hold_lane(pulse, &holder);
	party_pass_ms(LEASE_MS / 3);
	(void)until_of(party.lane); /* its beat is out */
	party_pass_ms(TRUSTED_MS - LEASE_MS / 3);
	AWAIT(party_stats().claims_lost == 1);
	let_lane_go();
	renewed = party.clock.wall_ms + LEASE_MS;
	await_until(pulse, renewed);
	party_pass_ms(LEASE_MS / 3);
	(void)until_of(party.lane);
	assert_int_equal(until_of(pulse), renewed); /* no beat follows it */
	answer_late(ACT_OK);
}

static void what_still_waits_for_its_turn_is_taken_back(void **state)
{
	(void)state;
	party_start(STORE_SQLITE_MEMORY, 100);
	party.port.queue = true;
	begin();
	party_pass_ms(TRUSTED_MS);
	assert_heard(ACT_CLAIM_LOST, /* overrun= */ false);
	assert_int_equal(party.port.withdrawn_n, 1);
	AWAIT(party_stats().claims_lost == 1);
}

static void nothing_is_begun_under_a_lease_that_has_lapsed(void **state)
{
	struct lease lease;

	(void)state;
	party_start(STORE_SQLITE_MEMORY, 100);
	lease = lease_from_now();
	lease.since = mono_add_ms(lease.since, -TRUSTED_MS);
	caller_act_heard_out(&caller, lease);
	submit(party.lane, &caller);
	assert_heard(ACT_CLAIM_LOST, /* overrun= */ false);
	assert_int_equal(party.port.started_n, 0);
}

/* ---- the warden ---- */

static void the_warden_ends_other_calls_only(void **state)
{
	(void)state;
	start_with_warden();
	begin();
	caller_act(&other, lease_from_now());
	submit(party.lane, &other);
	AWAIT(party.port.started_n == 2);
	hold_lane(party.lane, &holder);
	party.clock.mono_ms += LEASE_MS;
	AWAIT(party.port.aborted_n == 1); /* it looks at all of them in one go */
	assert_int_equal(party.port.aborted[0], party.port.tickets[1].number);
	let_lane_go();
	AWAIT(other.done);
	assert_int_equal(other.actor.outcome, ACT_CLAIM_LOST);
	assert_false(other.actor.overrun);
	AWAIT(party_stats().claims_lost == 2);
	assert_false(is_done(&caller));
	lane_answer(party.port.tickets[0], ACT_OK, slice_of(NULL, 0));
	assert_heard(ACT_OK, /* overrun= */ true);
	for (size_t i = 0; i < party.port.aborted_n; i++)
		assert_int_not_equal(party.port.aborted[i], party.port.tickets[0].number);
}

static void the_warden_takes_back_what_still_waits_for_its_turn(void **state)
{
	(void)state;
	start_with_warden();
	party.port.queue = true;
	begin();
	hold_lane(party.lane, &holder);
	party.clock.mono_ms += LEASE_MS;
	AWAIT(party.port.withdrawn_n == 1);
	assert_false(is_done(&caller));
	let_lane_go();
	assert_heard(ACT_CLAIM_LOST, /* overrun= */ false);
	AWAIT(party_stats().claims_lost == 1);
}

/* ---- the stop ---- */

struct stopper {
	pthread_t thread;
	int64_t drain_ms;
};

static void *stop_lane(void *context)
{
	lane_stop(party.lane, ((struct stopper *)context)->drain_ms);
	return NULL;
}

/* Over its time already. A sleeper that ends at once shows that the stop has begun. */
static void begin_stop(struct stopper *stopper)
{
	begin();
	party_pass_ms(TRUSTED_MS);
	AWAIT(party_stats().claims_lost == 1);
	caller_sleep(&other, FAR_AWAY_MS + START_MS, /* topic= */ 9);
	submit(party.lane, &other);
	(void)until_of(party.lane);
	assert_int_equal(pthread_create(&stopper->thread, NULL, stop_lane, stopper), 0);
	AWAIT(other.done);
	assert_int_equal(other.code, HX_STOPPING);
}

static void it_may_be_heard_within_the_drain(void **state)
{
	struct stopper stopper = {.drain_ms = 10000};

	(void)state;
	party_start(STORE_SQLITE_MEMORY, 100);
	begin_stop(&stopper);
	party_pass_ms(9999);
	assert_false(is_done(&caller));
	lane_answer(party.port.tickets[0], ACT_OK, slice_of(NULL, 0));
	pthread_join(stopper.thread, NULL);
	assert_heard(ACT_OK, /* overrun= */ true);
	assert_int_equal(party.port.aborted_n, 0);
}

static void what_outlasts_the_drain_is_left_as_by_a_crash(void **state)
{
	struct stopper stopper = {.drain_ms = 100};

	(void)state;
	party_start(STORE_SQLITE_MEMORY, 100);
	begin_stop(&stopper);
	party_pass_ms(100);
	pthread_join(stopper.thread, NULL);
	assert_true(is_done(&caller));
	assert_int_equal(caller.code, HX_STOPPING);
	assert_int_equal(party.port.aborted_n, 1);
	lane_answer(party.port.tickets[0], ACT_OK, slice_str("nobody is there")); /* harmless, and freed */
}

static int tear_down(void **state)
{
	(void)state;
	let_lane_go(); /* a test may have failed while it held one */
	lane_stop(party.lane, /* drain_ms= */ 0);
	lane_free(pulse);
	party_end();
	warden_free(warden);
	warden = NULL;
	pulse = NULL;
	return 0;
}

#define TEST(test) cmocka_unit_test_teardown(test, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(while_its_lease_is_kept_nothing_is_different),
		TEST(without_a_lease_nothing_can_overrun),
		TEST(it_is_heard_after_a_lost_beat_and_there_are_no_more_beats),
		TEST(it_is_heard_after_its_lease_could_not_be_trusted),
		TEST(an_answer_that_overtakes_the_timer_is_an_overrun_too),
		TEST(the_next_call_of_the_same_task_has_not_overrun),
		TEST(a_renewal_that_comes_through_late_changes_nothing),
		TEST(what_still_waits_for_its_turn_is_taken_back),
		TEST(nothing_is_begun_under_a_lease_that_has_lapsed),
		TEST(the_warden_ends_other_calls_only),
		TEST(the_warden_takes_back_what_still_waits_for_its_turn),
		TEST(it_may_be_heard_within_the_drain),
		TEST(what_outlasts_the_drain_is_left_as_by_a_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
