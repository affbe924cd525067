/*
 * The warden by itself, and beside a lane that is held still: what is under way is aborted when its lease is over, once, and
 * the lane hears of it when it goes on, also when it would have believed in the lease for longer.
 */
#include "unit/task/party.h"

#include "task/warden.h"

/* ---- by itself ---- */

struct watched {
	struct warded warded;
	unsigned aborted; /* under `meeting` */
};

static void note_abort(struct warded *warded)
{
	pthread_mutex_lock(&meeting);
	((struct watched *)warded)->aborted++;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
}

static struct hand_clock by_hand;
static struct warden *warden;

static int set_up(void **state)
{
	struct hx_error err;

	(void)state;
	by_hand.clock = (struct clock){.wall = hand_clock_wall, .mono = hand_clock_mono};
	by_hand.mono_ms = 1000;
	return warden_new(&by_hand.clock, &warden, &err);
}

static int tear_down(void **state)
{
	(void)state;
	warden_free(warden);
	warden = NULL;
	return 0;
}

static struct mono_time at_ms(int64_t ms)
{
	return (struct mono_time){ms * 1000000};
}

static void whose_time_is_over_is_aborted_once(void **state)
{
	struct watched a = {0}, b = {0}, c = {0};

	(void)state;
	warden_watch(warden, &a.warded, at_ms(1100), note_abort);
	warden_watch(warden, &b.warded, at_ms(1200), note_abort);
	warden_watch(warden, &c.warded, at_ms(1300), note_abort);
	by_hand.mono_ms = 1100;
	AWAIT(a.aborted == 1);
	assert_int_equal(b.aborted, 0);
	by_hand.mono_ms = 1250;
	AWAIT(b.aborted == 1);
	by_hand.mono_ms = 1300;
	AWAIT(c.aborted == 1);
	assert_int_equal(a.aborted, 1); /* it was looked at again in between */
	warden_forget(warden, &b.warded);
	warden_forget(warden, &b.warded);
	warden_forget(warden, &a.warded);
	warden_forget(warden, &c.warded);
}

static void who_was_renewed_or_forgotten_goes_on(void **state)
{
	struct watched a = {0}, b = {0}, last = {0};

	(void)state;
	warden_watch(warden, &a.warded, at_ms(1100), note_abort);
	warden_watch(warden, &b.warded, at_ms(1100), note_abort);
	warden_watch(warden, &last.warded, at_ms(1200), note_abort);
	warden_move(warden, &a.warded, at_ms(2000));
	warden_forget(warden, &b.warded);
	by_hand.mono_ms = 1200;
	AWAIT(last.aborted == 1);
	assert_int_equal(a.aborted, 0);
	assert_int_equal(b.aborted, 0);
	by_hand.mono_ms = 2000;
	AWAIT(a.aborted == 1);
	warden_forget(warden, &a.warded);
	warden_forget(warden, &last.warded);
}

/* ---- beside a lane ---- */

static void start_party(void)
{
	struct hx_error err;

	party_start(STORE_SQLITE_FILE, /* seats_max= */ 100);
	/* The lane again, now with a warden. */
	lane_free(party.lane);
	if (warden_new(&party.clock.clock, &warden, &err))
		fail_msg("%s", err.detail);
	party.options.warden = warden;
	if (lane_new(&party.options, &party.lane, &err))
		fail_msg("%s", err.detail);
	port_set(&party.port, /* held= */ true, false);
}

static int end_party(void **state)
{
	(void)state;
	party_end();
	warden_free(warden);
	warden = NULL;
	return 0;
}

static void begin_act(struct caller *c)
{
	caller_act(c, (struct lease){1, 7, LEASE_MS, {party.clock.mono_ms * 1000000}});
	submit(party.lane, c);
	AWAIT(party.port.started_n == 1);
}

static void a_lane_that_is_held_up_does_not_keep_an_action_alive(void **state)
{
	static struct caller actor, holder;

	(void)state;
	start_party();
	begin_act(&actor);
	hold_lane(party.lane, &holder);
	party.clock.mono_ms += LEASE_MS / 2;
	assert_int_equal(party.port.aborted_n, 0);
	party.clock.mono_ms += LEASE_MS / 2;
	AWAIT(party.port.aborted_n >= 1);
	assert_false(is_done(&actor)); /* the lane has yet to hear of it */
	let_lane_go();
	AWAIT(actor.done);
	assert_int_equal(actor.actor.outcome, ACT_CLAIM_LOST);
	AWAIT(party_stats().claims_lost == 1);
}

/* An action that was answered in time is left alone, whatever the clock says then. */
static void an_action_that_has_ended_is_not_aborted(void **state)
{
	static struct caller actor, holder;

	(void)state;
	start_party();
	begin_act(&actor);
	port_set(&party.port, /* held= */ false, false);
	AWAIT(actor.done);
	assert_int_equal(actor.actor.outcome, ACT_OK);
	hold_lane(party.lane, &holder);
	party.clock.mono_ms += INT64_C(10) * LEASE_MS;
	let_lane_go();
	assert_int_equal(ask_lane(party.lane, build_read, 1, 0).verdict, UNIT_WON);
	assert_int_equal(party.port.aborted_n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whose_time_is_over_is_aborted_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_was_renewed_or_forgotten_goes_on, set_up, tear_down),
		cmocka_unit_test_teardown(a_lane_that_is_held_up_does_not_keep_an_action_alive, end_party),
		cmocka_unit_test_teardown(an_action_that_has_ended_is_not_aborted, end_party),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
