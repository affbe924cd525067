/* A real lane: actions and their leases, sleeping and waking. */
#include "lane_party.h"

/* ---- actions and leases ---- */

static void of_fifty_who_claim_one_acts(void **state)
{
	size_t ok = 0, turned_away = 0;

	party_start(kind_of(state), 100);
	make_subjects(1);
	port_set(&party.port, /* held= */ true, false);
	for (size_t i = 0; i < 50; i++) {
		caller_claim(&callers[i], &plan);
		submit(party.lane, &callers[i]);
	}
	AWAIT(count_done(callers, 50) == 49); /* while the action runs */
	port_set(&party.port, /* held= */ false, false);
	AWAIT(count_done(callers, 50) == 50);
	for (size_t i = 0; i < 50; i++) {
		ok += callers[i].code == HX_OK;
		turned_away += callers[i].code == HX_CLAIM_FAILED;
	}
	assert_int_equal(ok, 1);
	assert_int_equal(turned_away, 49);
	assert_int_equal(party.port.started_n, 1);
	assert_int_equal(party.port.fences[0], 1);
	assert_string_equal(ask_lane(party.lane, build_read, 1, 0).text, "done");
}

static void the_output_of_an_action_reaches_its_task(void **state)
{
	party_start(kind_of(state), 100);
	for (size_t i = 0; i < 30; i++) {
		caller_act(&callers[i], (struct lease){0});
		submit(party.lane, &callers[i]);
	}
	AWAIT(count_done(callers, 30) == 30);
	for (size_t i = 0; i < 30; i++) {
		assert_int_equal(callers[i].actor.outcome, ACT_OK);
		assert_string_equal(callers[i].actor.output, "{\"done\":true}");
	}
}

static void a_failed_action_gives_the_claim_back(void **state)
{
	party_start(kind_of(state), 100);
	make_subjects(1);
	party.port.outcome = ACT_FAILED;
	caller_claim(&callers[0], &plan);
	submit(party.lane, &callers[0]);
	AWAIT(callers[0].done);
	assert_int_equal(callers[0].code, HX_ACTION_FAILED);
	assert_string_equal(ask_lane(party.lane, build_read, 1, 0).text, "open");
}

/* The lane's own read of the row is a round trip each, so this turns until the beat is through. */
static void await_until_of(int64_t subject, int64_t wanted_ms)
{
	struct mono_time deadline = mono_add_ms(clock_mono(clock_system()), AWAIT_MS);

	while (until_of(subject) != wanted_ms)
		if (clock_mono(clock_system()).ns > deadline.ns)
			fail_msg("the lease was not renewed");
}

static void a_lease_is_renewed_for_as_long_as_its_action_takes(void **state)
{
	party_start(kind_of(state), 100);
	begin_slow_action();
	for (int i = 0; i < 20; i++) {
		party_pass_ms(LEASE_MS / 3);
		await_until_of(1, party.clock.wall_ms + LEASE_MS);
	}
	lane_answer(party.port.tickets[0], ACT_OK, slice_of(NULL, 0));
	AWAIT(callers[0].done);
	assert_int_equal(callers[0].code, HX_OK);
	assert_int_equal(version_of(1), 3); /* created, claimed, finished: beats leave no trace */
	assert_int_equal(party_stats().claims_lost, 0);
}

static void assert_claim_was_lost(void)
{
	AWAIT(callers[0].done);
	assert_int_equal(callers[0].code, HX_OUTCOME_UNKNOWN);
	assert_int_equal(callers[0].claim.outcome, ACT_CLAIM_LOST);
	assert_int_equal(party.port.aborted_n, 1);
	assert_int_equal(party.port.aborted[0], party.port.tickets[0].number);
	AWAIT(party_stats().claims_lost == 1);
	lane_answer(party.port.tickets[0], ACT_OK, slice_str("too late"));
	AWAIT(party_stats().answers_dropped == 1);
}

static void a_claim_that_was_taken_away_aborts_its_action(void **state)
{
	party_start(kind_of(state), 100);
	begin_slow_action();
	assert_int_equal(ask_lane(party.lane, build_release, 1, /* fence= */ 1).verdict, UNIT_WON);
	party_pass_ms(LEASE_MS / 3);
	assert_claim_was_lost();
	assert_string_equal(ask_lane(party.lane, build_read, 1, 0).text, "open"); /* the late answer changed nothing */
}

/* The same from outside: another process (here: another connection) takes the claim over. */
static void a_claim_taken_away_behind_the_lanes_back_is_noticed(void **state)
{
	struct unit_result result;
	struct hx_error err;
	struct arena arena;
	struct unit unit;
	struct db *other;

	(void)state;
	party_start(STORE_SQLITE_FILE, 100);
	begin_slow_action();
	other = store_open_url(party.store->url, &party.clock.clock);
	arena_init(&arena, 1u << 20);
	unit_init(&unit, 77);
	subject_release(&unit, &(struct stamp){77, {START_MS}, "there"}, &(struct move){1, "busy", "open"}, 1,
			/* answered= */ true);
	assert_int_equal(db_run_unit(other, &unit, &result, &arena, &err), HX_OK);
	assert_int_equal(result.verdict, UNIT_WON);
	unit_init(&unit, 78);
	subject_claim(&unit, &(struct stamp){78, {START_MS}, "there"}, &(struct move){1, "open", "busy"}, 3, LEASE_MS);
	assert_int_equal(db_run_unit(other, &unit, &result, &arena, &err), HX_OK);
	assert_int_equal(result.verdict, UNIT_WON);
	arena_release(&arena);
	db_close(other);
	party_pass_ms(LEASE_MS / 3);
	assert_claim_was_lost();
	assert_int_equal(ask_lane(party.lane, build_read, 1, 0).ints[2], 2); /* the new holder's, untouched */
	assert_string_equal(ask_lane(party.lane, build_read, 1, 0).text, "busy");
}

static void a_lease_that_nobody_could_renew_is_not_trusted_to_its_end(void **state)
{
	party_start(kind_of(state), 100);
	begin_slow_action();
	party_pass_ms(LEASE_MS - LEASE_MS / 10); /* in one leap: the process was stopped for so long */
	assert_claim_was_lost();
	assert_string_equal(ask_lane(party.lane, build_read, 1, 0).text, "busy"); /* C4: time and the janitor end it */
}

static void an_action_is_not_begun_under_a_lease_that_has_lapsed(void **state)
{
	struct lease lease = {.subject = 1, .fence = 1, .lease_ms = LEASE_MS};
	int64_t trusted_ms = LEASE_MS - LEASE_MS / 10;

	party_start(kind_of(state), 100);
	port_set(&party.port, /* held= */ true, false);
	lease.since = mono_add_ms(clock_mono(&party.clock.clock), -trusted_ms);
	caller_act(&callers[0], lease);
	submit(party.lane, &callers[0]);
	AWAIT(callers[0].done);
	assert_int_equal(callers[0].actor.outcome, ACT_CLAIM_LOST);
	assert_int_equal(party.port.started_n, 0);

	lease.since = mono_add_ms(lease.since, 1);
	caller_act(&callers[0], lease);
	submit(party.lane, &callers[0]);
	AWAIT(party.port.started_n == 1);
	lane_answer(party.port.tickets[0], ACT_OK, slice_of(NULL, 0));
	AWAIT(callers[0].done);
}

static void a_second_answer_is_dropped_and_counted(void **state)
{
	party_start(kind_of(state), 100);
	port_set(&party.port, /* held= */ true, false);
	caller_act(&callers[0], (struct lease){0});
	submit(party.lane, &callers[0]);
	AWAIT(party.port.started_n == 1);
	lane_answer(party.port.tickets[0], ACT_INVALID, slice_str("first"));
	lane_answer(party.port.tickets[0], ACT_OK, slice_str("second"));
	AWAIT(callers[0].done);
	assert_int_equal(callers[0].actor.outcome, ACT_INVALID);
	assert_string_equal(callers[0].actor.output, "first");
	AWAIT(party_stats().answers_dropped == 1);
}

/* A task that acts again has a new ticket: the answer to its first action must not end the second. */
static void a_late_answer_does_not_end_the_next_action(void **state)
{
	party_start(kind_of(state), 100);
	port_set(&party.port, /* held= */ true, false);
	for (size_t i = 0; i < 2; i++) {
		caller_act(&callers[0], (struct lease){0});
		submit(party.lane, &callers[0]);
		AWAIT(party.port.started_n == i + 1);
		if (i == 0) {
			lane_answer(party.port.tickets[0], ACT_OK, slice_of(NULL, 0));
			AWAIT(callers[0].done);
		}
	}
	lane_answer(party.port.tickets[0], ACT_FAILED, slice_str("late"));
	AWAIT(party_stats().answers_dropped == 1);
	settle();
	assert_false(is_done(&callers[0]));
	lane_answer(party.port.tickets[1], ACT_OK, slice_str("in time"));
	AWAIT(callers[0].done);
	assert_string_equal(callers[0].actor.output, "in time");
}

/* ---- sleeping and waking ---- */

static void a_sleeper_wakes_at_its_time(void **state)
{
	party_start(kind_of(state), 100);
	caller_sleep(&callers[0], START_MS + 1000, /* topic= */ 0);
	caller_sleep(&callers[1], START_MS - 1, /* topic= */ 0);
	submit(party.lane, &callers[0]);
	submit(party.lane, &callers[1]);
	AWAIT(callers[1].done); /* its time had passed already */
	party_pass_ms(999);
	settle();
	assert_false(is_done(&callers[0]));
	party_pass_ms(1);
	AWAIT(callers[0].done);
}

/* By a day: whoever waits for a minute waits for a minute. */
static void a_sleeper_wakes_at_its_time_though_the_wall_clock_was_set_back(void **state)
{
	party_start(kind_of(state), 100);
	caller_sleep(&callers[0], START_MS + 1000, /* topic= */ 0);
	submit(party.lane, &callers[0]);
	settle();
	party.clock.wall_ms -= 86400000;
	party_pass_ms(999);
	settle();
	assert_false(is_done(&callers[0]));
	party_pass_ms(1);
	AWAIT(callers[0].done);
}

static void a_sleeper_sleeps_on_though_the_wall_clock_was_set_ahead(void **state)
{
	party_start(kind_of(state), 100);
	caller_sleep(&callers[0], START_MS + 1000, /* topic= */ 0);
	submit(party.lane, &callers[0]);
	settle();
	party.clock.wall_ms += 86400000;
	party_pass_ms(999);
	settle();
	assert_false(is_done(&callers[0]));
	party_pass_ms(1);
	AWAIT(callers[0].done);
}

static void by_the_machines_own_clock_too(void **state)
{
	struct lane_options options;
	struct hx_error err;

	party_start(kind_of(state), 100);
	lane_free(party.lane);
	options = party.options;
	options.clock = options.db.clock = clock_system();
	assert_int_equal(lane_new(&options, &party.lane, &err), HX_OK);
	caller_sleep(&callers[0], 0, /* topic= */ 0);
	callers[0].sleeper.until = mono_add_ms(clock_mono(clock_system()), 20);
	submit(party.lane, &callers[0]);
	AWAIT(callers[0].done);
	assert_true(clock_mono(clock_system()).ns >= callers[0].sleeper.until.ns);
}

static void a_watch_is_woken_by_the_change_itself(void **state)
{
	party_start(kind_of(state), 100);
	make_subjects(2);
	for (size_t i = 0; i < 10; i++) {
		caller_watch(&callers[i], 1, "done", START_MS + FAR_AWAY_MS);
		submit(party.lane, &callers[i]);
	}
	caller_watch(&callers[10], 2, "done", START_MS + FAR_AWAY_MS);
	submit(party.lane, &callers[10]);
	settle();
	for (size_t i = 0; i < 11; i++)
		assert_false(is_done(&callers[i]));
	caller_claim(&callers[11], &plan);
	submit(party.lane, &callers[11]);
	AWAIT(count_done(callers, 10) == 10);
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(callers[i].code, HX_OK);
	AWAIT(callers[11].done);
	settle();
	assert_false(is_done(&callers[10])); /* another subject's watch sleeps on */
	party_pass_ms(FAR_AWAY_MS);
	AWAIT(callers[10].done);
	assert_int_equal(callers[10].code, HX_WRONG_STATUS);
}

/* The read and the change are in one group, the read first: the wake comes before the task has gone to sleep. */
static void a_wake_between_the_read_and_the_sleep_is_not_lost(void **state)
{
	party_start(kind_of(state), 100);
	make_subjects(1);
	hold_lane(party.lane, &holder);
	caller_watch(&callers[0], 1, "paid", START_MS + FAR_AWAY_MS);
	submit(party.lane, &callers[0]);
	transition_init(&callers[1].transition, &(struct move){1, "open", "paid"}, 1);
	caller_sit(&callers[1], &callers[1].transition.task);
	submit(party.lane, &callers[1]);
	let_lane_go();
	AWAIT(callers[0].done);
	assert_int_equal(callers[0].code, HX_OK);
	assert_int_equal(callers[0].watch.version, 2);
}

static void a_unit_that_lost_wakes_nobody(void **state)
{
	party_start(kind_of(state), 100);
	make_subjects(1);
	caller_sleep(&callers[0], START_MS + FAR_AWAY_MS, /* topic= */ 1);
	submit(party.lane, &callers[0]);
	caller_move(&callers[1], 1, /* version= */ 9);
	submit(party.lane, &callers[1]);
	AWAIT(callers[1].done);
	settle();
	assert_false(is_done(&callers[0]));
	caller_move(&callers[1], 1, /* version= */ 1);
	submit(party.lane, &callers[1]);
	AWAIT(callers[0].done);
}

static void more_wakes_than_the_inbox_holds_wake_everybody(void **state)
{
	static int64_t topics[2000];

	party_start(kind_of(state), 100);
	for (size_t i = 0; i < 2000; i++)
		topics[i] = 5000 + (int64_t)i;
	caller_sleep(&callers[0], START_MS + FAR_AWAY_MS, /* topic= */ 5001);
	caller_sleep(&callers[1], START_MS + FAR_AWAY_MS, /* topic= */ 6999);
	caller_sleep(&callers[2], START_MS + FAR_AWAY_MS, /* topic= */ 1);
	for (size_t i = 0; i < 3; i++)
		submit(party.lane, &callers[i]);
	settle();
	lane_wake(party.lane, topics, 2000);
	AWAIT(count_done(callers, 3) == 3); /* one wake too many costs a read */
}

static void build_many_wakes(struct unit *unit, const struct probe *p)
{
	subject_read(unit, 1);
	for (int i = 0; i < UNIT_WAKES_MAX; i++)
		unit_wake(unit, p->number * UNIT_WAKES_MAX + i);
}

/* One round of one lane can wake more topics than the inbox of another holds: none may be forgotten. */
static void what_is_woken_here_is_woken_in_every_lane_of_the_node(void **state)
{
	static struct caller sleepers[2];
	struct lane_options options;
	struct lane *other, *lanes[2];
	struct hx_error err;

	(void)state;
	party_start(STORE_SQLITE_MEMORY, CALLERS);
	options = party.options;
	assert_int_equal(lane_new(&options, &other, &err), HX_OK);
	lanes[0] = party.lane;
	lanes[1] = other;
	lane_set_peers(party.lane, lanes, 2);
	lane_set_peers(other, lanes, 2);
	for (int round = 0; round < 2; round++) { /* few wakes, then more than fit */
		size_t n = round ? GROUP_UNITS_MAX : 3;

		caller_sleep(&sleepers[0], START_MS + FAR_AWAY_MS, /* topic= */ UNIT_WAKES_MAX);
		caller_sleep(&sleepers[1], START_MS + FAR_AWAY_MS, /* topic= */ (int64_t)n * UNIT_WAKES_MAX - 1);
		submit(other, &sleepers[0]);
		submit(other, &sleepers[1]);
		(void)ask_lane(other, build_read, 1, 0);
		hold_lane(party.lane, &holder);
		for (size_t i = 0; i < n; i++) {
			caller_probe(&callers[i], build_many_wakes, 1, (int64_t)i);
			submit(party.lane, &callers[i]);
		}
		let_lane_go();
		AWAIT(count_done(sleepers, 2) == 2);
		AWAIT(count_done(callers, n) == n);
	}
	lane_stop(party.lane, 0);
	lane_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(of_fifty_who_claim_one_acts),
		ONE(the_output_of_an_action_reaches_its_task, in_memory),
		ONE(a_failed_action_gives_the_claim_back, in_memory),
		BOTH(a_lease_is_renewed_for_as_long_as_its_action_takes),
		BOTH(a_claim_that_was_taken_away_aborts_its_action),
		ONE(a_claim_taken_away_behind_the_lanes_back_is_noticed, in_file),
		ONE(a_lease_that_nobody_could_renew_is_not_trusted_to_its_end, in_memory),
		ONE(an_action_is_not_begun_under_a_lease_that_has_lapsed, in_memory),
		ONE(a_second_answer_is_dropped_and_counted, in_memory),
		ONE(a_late_answer_does_not_end_the_next_action, in_memory),
		ONE(a_sleeper_wakes_at_its_time, in_memory),
		ONE(a_sleeper_wakes_at_its_time_though_the_wall_clock_was_set_back, in_memory),
		ONE(a_sleeper_sleeps_on_though_the_wall_clock_was_set_ahead, in_memory),
		ONE(by_the_machines_own_clock_too, in_memory),
		BOTH(a_watch_is_woken_by_the_change_itself),
		BOTH(a_wake_between_the_read_and_the_sleep_is_not_lost),
		ONE(a_unit_that_lost_wakes_nobody, in_memory),
		ONE(more_wakes_than_the_inbox_holds_wake_everybody, in_memory),
		ONE(what_is_woken_here_is_woken_in_every_lane_of_the_node, in_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
