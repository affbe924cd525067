/*
 * A real lane with a real thread, on SQLite in memory and in a file: answers, batches, actions and their leases,
 * wakes, timers, back-pressure, and the stop. Time is moved by hand; whatever is waited for has a deadline.
 */
#include "unit/task/party.h"

#include <poll.h>

#define CALLERS 1200

static struct caller callers[CALLERS];
static struct caller holder;

static const struct claim_plan plan = {
	.subject = 1,
	.from = "open",
	.claim_into = "busy",
	.successful_state = "done",
	.revert_to = "open",
	.lease_ms = LEASE_MS,
	.action = "charge",
};

static enum store_kind kind_of(void **state)
{
	return *(enum store_kind *)*state;
}

/* Makes the subjects 1 to n, all in one go. */
static void make_subjects(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		caller_probe(&callers[i], build_create, (int64_t)i + 1, 0);
		submit(party.lane, &callers[i]);
	}
	AWAIT(count_done(callers, n) == n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(callers[i].code, HX_OK);
}

static int64_t version_of(int64_t subject)
{
	return ask_lane(party.lane, build_read, subject, 0).ints[1];
}

static int64_t until_of(int64_t subject)
{
	return ask_lane(party.lane, build_read, subject, 0).ints[3];
}

/* One round trip: whatever was in the lane before has been looked at. */
static void settle(void)
{
	(void)ask_lane(party.lane, build_read, 1, 0);
}

/* ---- transitions ---- */

struct walker {
	pthread_t thread;
	struct caller callers[16];
	int64_t first_subject;
	unsigned rounds, failed;
};

static void *walk(void *context)
{
	struct walker *w = context;
	struct mono_time deadline = mono_add_ms(clock_mono(clock_system()), AWAIT_MS);
	bool in_time = true;

	for (unsigned round = 0; round < w->rounds && in_time; round++) {
		for (int i = 0; i < 16; i++) { /* by turns it reads the version first, or knows it */
			caller_move(&w->callers[i], w->first_subject + i, round % 2 ? round + 1 : 0);
			w->failed += lane_submit(party.lane, &w->callers[i].seat) != HX_OK;
		}
		pthread_mutex_lock(&meeting);
		while (count_done(w->callers, 16) < 16 && in_time)
			in_time = await_news(deadline);
		pthread_mutex_unlock(&meeting);
		for (int i = 0; i < 16; i++)
			w->failed += w->callers[i].code != HX_OK || w->callers[i].transition.version != round + 2;
	}
	w->failed += !in_time;
	return NULL;
}

static void every_transition_of_every_thread_is_answered(void **state)
{
	static struct walker walkers[4];
	struct lane_stats stats;

	party_start(kind_of(state), 1000);
	make_subjects(64);
	for (int i = 0; i < 4; i++) {
		walkers[i] = (struct walker){.first_subject = 1 + 16 * i, .rounds = 20};
		assert_int_equal(pthread_create(&walkers[i].thread, NULL, walk, &walkers[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(walkers[i].thread, NULL);
		assert_int_equal(walkers[i].failed, 0);
	}
	for (int64_t subject = 1; subject <= 64; subject++)
		assert_int_equal(version_of(subject), 21);
	lane_stop(party.lane, 0);
	stats = party_stats(); /* of the last round too */
	assert_int_equal(stats.batch.units, 64 + 64 * (10 + 20) + 64);
	assert_int_equal(stats.batch.won, stats.batch.units);
	assert_int_equal(stats.rounds, stats.batch.batches);
}

static void of_many_who_saw_the_same_version_one_wins(void **state)
{
	party_start(kind_of(state), 1000);
	make_subjects(1);
	for (int64_t version = 1; version <= 10; version++) {
		size_t won = 0, lost = 0;

		for (size_t i = 0; i < 40; i++) {
			caller_move(&callers[i], 1, version);
			submit(party.lane, &callers[i]);
		}
		AWAIT(count_done(callers, 40) == 40);
		for (size_t i = 0; i < 40; i++) {
			won += callers[i].code == HX_OK;
			lost += callers[i].code == HX_CONCURRENCY_ERROR;
		}
		assert_int_equal(won, 1);
		assert_int_equal(lost, 39);
		assert_int_equal(version_of(1), version + 1);
	}
}

/* ---- batches ---- */

static void what_waits_together_is_committed_together(void **state)
{
	static const struct {
		size_t n, batches;
	} loads[] = {{1, 1}, {2, 1}, {200, 1}, {512, 1}, {513, 2}, {1100, 3}}; /* 1,024 are looked at in a round */

	party_start(kind_of(state), CALLERS);
	make_subjects(1);
	for (size_t load = 0; load < sizeof loads / sizeof *loads; load++) {
		struct lane_stats before;

		hold_lane(party.lane, &holder);
		before = party_stats(); /* the holder's own batch is behind us */
		for (size_t i = 0; i < loads[load].n; i++) {
			caller_move(&callers[i], 1, /* version= */ 1 + (int64_t)load);
			submit(party.lane, &callers[i]);
		}
		let_lane_go();
		AWAIT(count_done(callers, loads[load].n) == loads[load].n);
		AWAIT(party_stats().batch.units - before.batch.units == loads[load].n);
		assert_int_equal(party_stats().batch.batches - before.batch.batches, loads[load].batches);
		assert_int_equal(callers[0].code, HX_OK); /* in order: the first one wins */
		for (size_t i = 1; i < loads[load].n; i++)
			assert_int_equal(callers[i].code, HX_CONCURRENCY_ERROR);
	}
}

static void under_load_batches_grow_by_themselves(void **state)
{
	static struct walker walkers[4];
	struct lane_stats before, after;

	party_start(kind_of(state), 1000);
	make_subjects(64);
	before = party_stats();
	for (int i = 0; i < 4; i++) {
		walkers[i] = (struct walker){.first_subject = 1 + 16 * i, .rounds = 20};
		assert_int_equal(pthread_create(&walkers[i].thread, NULL, walk, &walkers[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(walkers[i].thread, NULL);
	lane_stop(party.lane, 0);
	after = party_stats();
	assert_true(after.batch.units - before.batch.units > after.batch.batches - before.batch.batches);
}

static void build_odd_one(struct unit *unit, const struct probe *p)
{
	static const struct db_stmt stmt = {
		.name = "test_odd_one",
		.sql = "INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head)"
		       " VALUES (?1, ?2, 'odd', 1, 1, 1, 1, x'00')",
		.in = "ii",
		.out = "",
	};

	unit_touch(unit, p->subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt, db_int(p->subject), db_null()); /* kind may not be NULL */
}

static void one_whose_data_is_refused_fails_alone(void **state)
{
	party_start(kind_of(state), 1000);
	hold_lane(party.lane, &holder);
	for (size_t i = 0; i < 100; i++) {
		caller_probe(&callers[i], i == 37 ? build_odd_one : build_create, (int64_t)i + 1, 0);
		submit(party.lane, &callers[i]);
	}
	let_lane_go();
	AWAIT(count_done(callers, 100) == 100);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(callers[i].probe.verdict, i == 37 ? UNIT_FAILED : UNIT_WON);
	assert_int_equal(callers[37].probe.error, HX_DATA_ERROR);
	assert_true(party_stats().batch.bisected > 0);
}

/* ---- back-pressure ---- */

static void a_full_lane_says_so_and_takes_more_when_there_is_room(void **state)
{
	enum { SEATS = 4 };

	party_start(kind_of(state), SEATS);
	for (int i = 0; i < SEATS; i++) {
		caller_sleep(&callers[i], START_MS + FAR_AWAY_MS, /* topic= */ 100 + i);
		submit(party.lane, &callers[i]);
	}
	caller_sleep(&callers[SEATS], START_MS + FAR_AWAY_MS, /* topic= */ 100 + SEATS);
	for (int round = 0; round < 20; round++) {
		struct caller *waiting = &callers[(SEATS + round) % (SEATS + 1)];
		struct caller *oldest = &callers[round % (SEATS + 1)];

		assert_int_equal(lane_submit(party.lane, &waiting->seat), HX_BUSY);
		lane_wake(party.lane, (const int64_t[]){oldest->sleeper.task.topic}, 1);
		AWAIT(oldest->done);
		assert_int_equal(oldest->code, HX_OK);
		/* who was told may come at once: its seat was free before it heard */
		assert_int_equal(lane_submit(party.lane, &waiting->seat), HX_OK);
		caller_sleep(oldest, START_MS + FAR_AWAY_MS, oldest->sleeper.task.topic);
	}
}

static void a_full_lane_still_takes_the_nodes_own(void **state)
{
	enum { SEATS = 4, OWN = 20 };

	party_start(kind_of(state), SEATS);
	for (int i = 0; i < SEATS; i++) {
		caller_sleep(&callers[i], START_MS + FAR_AWAY_MS, /* topic= */ 100 + i);
		submit(party.lane, &callers[i]);
	}
	for (int i = 0; i < OWN; i++) {
		caller_probe(&callers[SEATS + i], build_read, 1, 0);
		assert_int_equal(lane_submit_own(party.lane, &callers[SEATS + i].seat), HX_OK);
	}
	AWAIT(count_done(callers + SEATS, OWN) == OWN);
	for (int i = 0; i < OWN; i++)
		assert_int_equal(callers[SEATS + i].code, HX_OK);
	/* They took nobody's seat, and their leaving has made none. */
	caller_probe(&holder, build_read, 1, 0);
	assert_int_equal(lane_submit(party.lane, &holder.seat), HX_BUSY);
	lane_wake(party.lane, (const int64_t[]){100}, 1);
	AWAIT(callers[0].done);
	submit(party.lane, &holder);
	AWAIT(holder.done);
	assert_int_equal(holder.code, HX_OK);
}

static void a_lane_that_ends_refuses_even_its_own(void **state)
{
	party_start(kind_of(state), 4);
	lane_stop(party.lane, /* drain_ms= */ 0);
	caller_probe(&callers[0], build_read, 1, 0);
	assert_int_equal(lane_submit_own(party.lane, &callers[0].seat), HX_STOPPING);
}

static unsigned again_n;

static void again(struct seat *seat, enum hx_code code)
{
	struct caller *c = (struct caller *)seat;

	if (code == HX_OK && ++again_n < 50) {
		pthread_mutex_lock(&meeting);
		caller_probe(c, build_read, 1, 0);
		pthread_mutex_unlock(&meeting);
		c->seat.done = again;
		code = lane_submit(party.lane, seat);
		if (code == HX_OK)
			return;
	}
	caller_done(seat, code);
}

static void who_is_done_may_submit_again_at_once(void **state)
{
	party_start(kind_of(state), /* seats_max= */ 1);
	again_n = 0;
	caller_probe(&callers[0], build_read, 1, 0);
	callers[0].seat.done = again;
	submit(party.lane, &callers[0]);
	AWAIT(callers[0].done);
	assert_int_equal(callers[0].code, HX_OK);
	assert_int_equal(again_n, 50);
}

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

/* The claim is under way, its action started and held. */
static void begin_slow_action(void)
{
	make_subjects(1);
	port_set(&party.port, /* held= */ true, false);
	caller_claim(&callers[0], &plan);
	submit(party.lane, &callers[0]);
	AWAIT(party.port.started_n == 1);
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

/* The read and the change are in one batch, the read first: the wake comes before the task has gone to sleep. */
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
		size_t n = round ? BATCH_UNITS_MAX : 3;

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

/* ---- the end ---- */

struct stopper {
	pthread_t thread;
	int64_t drain_ms;
	bool stopped;
};

static void *stop_lane(void *context)
{
	struct stopper *s = context;

	lane_stop(party.lane, s->drain_ms);
	pthread_mutex_lock(&meeting);
	s->stopped = true;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&meeting);
	return NULL;
}

/* Begins a stop in a thread of its own; it has begun when a sleeper has been ended by it. */
static void begin_stop(struct stopper *s, int64_t drain_ms)
{
	static struct caller sleeper;

	caller_sleep(&sleeper, START_MS + FAR_AWAY_MS, /* topic= */ 0);
	submit(party.lane, &sleeper);
	*s = (struct stopper){.drain_ms = drain_ms};
	assert_int_equal(pthread_create(&s->thread, NULL, stop_lane, s), 0);
	AWAIT(sleeper.done);
	assert_int_equal(sleeper.code, HX_STOPPING);
}

static void end_stop(struct stopper *s)
{
	AWAIT(s->stopped);
	pthread_join(s->thread, NULL);
}

static void a_stop_ends_sleepers_at_once(void **state)
{
	party_start(kind_of(state), 100);
	for (size_t i = 0; i < 70; i++) { /* more than the heap's first size */
		caller_sleep(&callers[i], START_MS + FAR_AWAY_MS + (int64_t)i % 7, /* topic= */ i % 2 ? 9 : 0);
		submit(party.lane, &callers[i]);
	}
	lane_stop(party.lane, /* drain_ms= */ FAR_AWAY_MS);
	assert_int_equal(count_done(callers, 70), 70);
	for (size_t i = 0; i < 70; i++)
		assert_int_equal(callers[i].code, HX_STOPPING);
	assert_int_equal(lane_submit(party.lane, &callers[0].seat), HX_STOPPING);
	lane_stop(party.lane, 0); /* a second stop is none */
}

static void what_was_accepted_before_a_stop_is_still_committed(void **state)
{
	struct stopper stopper;

	party_start(kind_of(state), 100);
	make_subjects(20);
	hold_lane(party.lane, &holder);
	for (size_t i = 0; i < 20; i++) {
		caller_move(&callers[i], (int64_t)i + 1, /* version= */ 0); /* a read and a write */
		submit(party.lane, &callers[i]);
	}
	stopper = (struct stopper){.drain_ms = FAR_AWAY_MS};
	assert_int_equal(pthread_create(&stopper.thread, NULL, stop_lane, &stopper), 0);
	let_lane_go();
	end_stop(&stopper);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(callers[i].code, HX_OK);
}

/* Reads `until` of subject 1 past the lane, which takes no reads any more. */
static int64_t until_in_file(void)
{
	struct unit_result result;
	struct hx_error err;
	struct arena arena;
	struct unit unit;
	struct db *db = store_open_url(party.store->url, &party.clock.clock);
	int64_t until;

	arena_init(&arena, 1u << 20);
	unit_init(&unit, 0);
	subject_read(&unit, 1);
	assert_int_equal(db_run_unit(db, &unit, &result, &arena, &err), HX_OK);
	until = db_cell(&result.rows[0], 0, 3)->i;
	arena_release(&arena);
	db_close(db);
	return until;
}

static void an_action_may_finish_within_the_drain_and_keeps_its_lease(void **state)
{
	struct mono_time deadline;
	struct stopper stopper;

	(void)state;
	party_start(STORE_SQLITE_FILE, 100);
	begin_slow_action();
	begin_stop(&stopper, /* drain_ms= */ 10000);
	for (int i = 0; i < 5; i++) {
		party_pass_ms(LEASE_MS / 3);
		deadline = mono_add_ms(clock_mono(clock_system()), AWAIT_MS);
		while (until_in_file() != party.clock.wall_ms + LEASE_MS)
			if (clock_mono(clock_system()).ns > deadline.ns)
				fail_msg("the lease was not renewed while the lane drained");
	}
	assert_false(is_done(&callers[0]));
	lane_answer(party.port.tickets[0], ACT_OK, slice_of(NULL, 0));
	end_stop(&stopper);
	assert_int_equal(callers[0].code, HX_OK);
	assert_int_equal(party.port.aborted_n, 0);
}

static void an_action_that_outlasts_the_drain_is_left_as_by_a_crash(void **state)
{
	struct stopper stopper;

	party_start(kind_of(state), 100);
	begin_slow_action();
	begin_stop(&stopper, /* drain_ms= */ 100);
	party_pass_ms(99);
	assert_false(is_done(&callers[0]));
	party_pass_ms(1);
	end_stop(&stopper);
	assert_int_equal(callers[0].code, HX_STOPPING);
	assert_int_equal(party.port.aborted_n, 1);
	lane_answer(party.port.tickets[0], ACT_OK, slice_str("nobody is there")); /* harmless, and freed */
}

/* Until the lane refuses: each try has a seat of its own, since the ones before may have been taken. */
static void await_refusal(void)
{
	for (size_t i = 1; i < 90; i++) {
		caller_probe(&callers[i], build_read, 1, 0);
		if (lane_submit(party.lane, &callers[i].seat) == HX_STOPPING)
			return;
		(void)poll(NULL, 0, /* timeout_ms= */ 20);
	}
	fail_msg("the lane does not stop");
}

static void no_action_is_begun_when_the_time_to_drain_is_over(void **state)
{
	struct stopper stopper;

	party_start(kind_of(state), 100);
	make_subjects(1);
	hold_lane(party.lane, &holder);
	caller_claim(&callers[0], &plan);
	submit(party.lane, &callers[0]);
	stopper = (struct stopper){.drain_ms = 0};
	assert_int_equal(pthread_create(&stopper.thread, NULL, stop_lane, &stopper), 0);
	await_refusal();
	let_lane_go();
	end_stop(&stopper);
	assert_int_equal(callers[0].code, HX_STOPPING);
	assert_int_equal(party.port.started_n, 0);
	assert_int_equal(party.port.aborted_n, 0);
}

static void a_lane_that_cannot_start_says_why(void **state)
{
	struct lane_options options;
	struct lane *second = NULL;
	struct hx_error err;
	struct db *db;

	(void)state;
	party_start(STORE_SQLITE_FILE, 100);
	options = party.options;
	assert_int_equal(lane_new(&options, &second, &err), HX_BUSY);
	options.db.url = "sqlite:/no/such/folder/store.db";
	assert_int_equal(lane_new(&options, &second, &err), HX_STORE_UNAVAILABLE);
	lane_stop(party.lane, 0);
	lane_free(party.lane);
	party.lane = NULL;
	db = store_open(party.store);
	assert_int_equal(db->driver->script(db, "INSERT INTO hx_schema_version VALUES (9999, 'future')", &err), HX_OK);
	db_close(db);
	assert_int_equal(lane_new(&party.options, &second, &err), HX_SCHEMA_MISMATCH);
	assert_null(second);
	lane_free(NULL);
	lane_stop(NULL, 0);
}

static void a_lane_takes_over_a_connection_when_it_starts(void **state)
{
	struct lane_options options;
	struct hx_error err;

	party_start(kind_of(state), 100);
	lane_free(party.lane);
	party.lane = NULL;
	options = party.options;
	options.opened = store_open_url(party.store->url, &party.clock.clock);
	assert_int_equal(lane_new(&options, &party.lane, &err), HX_OK); /* and brings its schema up to date */
	make_subjects(1);
	lane_free(party.lane);
	party.lane = NULL;

	options.opened = store_open_migrated(party.store);
	assert_int_equal(options.opened->driver->script(options.opened,
							"INSERT INTO hx_schema_version VALUES (9999, 'future')", &err),
			 HX_OK);
	assert_int_equal(lane_new(&options, &party.lane, &err), HX_SCHEMA_MISMATCH);
	assert_null(party.lane);
	db_close(options.opened); /* still ours */
}

static int tear_down(void **state)
{
	(void)state;
	party_end();
	return 0;
}

static enum store_kind in_memory = STORE_SQLITE_MEMORY, in_file = STORE_SQLITE_FILE;

#define ONE(test, kind)                                                                                                \
	{                                                                                                              \
#test, test, NULL, tear_down, &(kind)                                                                  \
	}
#define BOTH(test)                                                                                                     \
	{#test "_in_memory", test, NULL, tear_down, &in_memory},                                                       \
	{                                                                                                              \
#test "_in_a_file", test, NULL, tear_down, &in_file                                                    \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(every_transition_of_every_thread_is_answered),
		BOTH(of_many_who_saw_the_same_version_one_wins),
		BOTH(what_waits_together_is_committed_together),
		BOTH(under_load_batches_grow_by_themselves),
		BOTH(one_whose_data_is_refused_fails_alone),
		ONE(a_full_lane_says_so_and_takes_more_when_there_is_room, in_memory),
		ONE(a_full_lane_still_takes_the_nodes_own, in_memory),
		ONE(a_lane_that_ends_refuses_even_its_own, in_memory),
		ONE(who_is_done_may_submit_again_at_once, in_memory),
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
		ONE(a_stop_ends_sleepers_at_once, in_memory),
		BOTH(what_was_accepted_before_a_stop_is_still_committed),
		ONE(an_action_may_finish_within_the_drain_and_keeps_its_lease, in_file),
		ONE(an_action_that_outlasts_the_drain_is_left_as_by_a_crash, in_memory),
		ONE(no_action_is_begun_when_the_time_to_drain_is_over, in_memory),
		ONE(a_lane_that_cannot_start_says_why, in_file),
		BOTH(a_lane_takes_over_a_connection_when_it_starts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
