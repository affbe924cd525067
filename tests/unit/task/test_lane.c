/* A real lane: answers, groups, back-pressure, and the stop. Actions and wakes: test_lane_actions.c. */
#include <poll.h>

#include "base/bell.h"
#include "lane_party.h"

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
	assert_int_equal(stats.group.units, 64 + 64 * (10 + 20) + 64);
	assert_int_equal(stats.group.won, stats.group.units);
	assert_int_equal(stats.rounds, stats.group.groups);
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

/* ---- groups ---- */

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
		before = party_stats(); /* the holder's own group is done */
		for (size_t i = 0; i < loads[load].n; i++) {
			caller_move(&callers[i], 1, /* version= */ 1 + (int64_t)load);
			submit(party.lane, &callers[i]);
		}
		let_lane_go();
		AWAIT(count_done(callers, loads[load].n) == loads[load].n);
		AWAIT(party_stats().group.units - before.group.units == loads[load].n);
		assert_int_equal(party_stats().group.groups - before.group.groups, loads[load].batches);
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
	assert_true(after.group.units - before.group.units > after.group.groups - before.group.groups);
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
	assert_true(party_stats().group.bisected > 0);
}

/* Who sleeps at it, in a thread of his own, has all of a round to do when he wakes, and not the first caller's answer. */
static struct bell *door;
static unsigned heard_early;

static void ring_door(struct seat *seat, enum hx_code code)
{
	bell_ring(door);
	heard_early += poll(&(struct pollfd){.fd = bell_fd(door), .events = POLLIN}, 1, 0) == 1;
	caller_done(seat, code);
}

static void a_round_wakes_those_who_sleep_when_it_has_answered_all(void **state)
{
	door = bell_new();
	heard_early = 0;
	party_start(kind_of(state), 1000);
	make_subjects(1);
	hold_lane(party.lane, &holder);
	for (size_t i = 0; i < 100; i++) {
		caller_probe(&callers[i], build_read, 1, 0);
		callers[i].seat.done = ring_door;
		submit(party.lane, &callers[i]);
	}
	let_lane_go();
	assert_int_equal(poll(&(struct pollfd){.fd = bell_fd(door), .events = POLLIN}, 1, AWAIT_MS), 1);
	pthread_mutex_lock(&meeting);
	assert_int_equal(count_done(callers, 100), 100);
	pthread_mutex_unlock(&meeting);
	assert_int_equal(heard_early, 0);
	bell_free(door);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(every_transition_of_every_thread_is_answered),
		BOTH(of_many_who_saw_the_same_version_one_wins),
		BOTH(what_waits_together_is_committed_together),
		BOTH(under_load_batches_grow_by_themselves),
		BOTH(one_whose_data_is_refused_fails_alone),
		ONE(a_round_wakes_those_who_sleep_when_it_has_answered_all, in_memory),
		ONE(a_full_lane_says_so_and_takes_more_when_there_is_room, in_memory),
		ONE(a_full_lane_still_takes_the_nodes_own, in_memory),
		ONE(a_lane_that_ends_refuses_even_its_own, in_memory),
		ONE(who_is_done_may_submit_again_at_once, in_memory),
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
