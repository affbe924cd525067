/* The task of record.h: its units on SQLite in memory with a clock that stands still, bad answers made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "db/driver.h"
#include "db/migrate.h"
#include "gate/record.h"

#define START_MS 1000000
#define LEASE_MS 100
#define TTL_MS 1000
#define TURN_MS 60

static struct fake_clock fake;
static struct db *db;
static struct arena arena;
static struct unit unit;
static struct unit_result result;
static char told[256]; /* the response of the last reply */

static int set_up(void **state)
{
	struct db_options options = {.url = "sqlite::memory:", .clock = &fake.clock};
	struct migrate_status before;
	struct hx_error err = {0};

	(void)state;
	fake_clock_init(&fake, (struct wall_time){START_MS});
	arena_init(&arena, 1u << 20);
	if (db_open(&options, &db, &err) || migrate_run(db, &before, &err))
		fail_msg("%s", err.detail);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	db_close(db);
	arena_release(&arena);
	return 0;
}

/* ---- asking ---- */

static struct gate_ask ask_of(enum gate_op op, int key, int token)
{
	struct gate_ask ask = {.op = op,
			       .claim = {.lease_ms = LEASE_MS, .ttl_ms = TTL_MS},
			       .response = slice_str("answer"),
			       .key_text = slice_str("K"),
			       .endpoint = slice_str("POST /payments"),
			       .budget = 10,
			       .turn_ms = TURN_MS};

	ask.claim.key[0] = (unsigned char)key;
	ask.claim.token[0] = (unsigned char)token;
	return ask;
}

static void keep_response(struct gate_write *write)
{
	snprintf(told, sizeof told, "%.*s", SLICE_ARGS(write->reply.response));
}

static void run_unit(void)
{
	struct hx_error err = {0};

	arena_reset(&arena);
	if (db_run_unit(db, &unit, &result, &arena, &err))
		fail_msg("%s", err.detail);
}

/* Runs the task to its end on the real store. */
static struct gate_reply run(const struct gate_ask *gate_ask)
{
	struct gate_write write;
	struct ask ask = {.unit = &unit};

	gate_write_init(&write, gate_ask);
	write.answered = keep_response;
	assert_true(task_take(&write.task, write.task.turn, &(struct answer){.kind = ANSWER_START, .id = 1}));
	for (write.task.kind->ask(&write.task, &ask); ask.kind == ASK_COMMIT; write.task.kind->ask(&write.task, &ask)) {
		run_unit();
		assert_true(task_take(&write.task, write.task.turn,
				      &(struct answer){.kind = ANSWER_COMMIT, .result = &result}));
	}
	assert_int_equal(ask.kind, ASK_DONE);
	assert_int_equal(ask.code, HX_OK);
	return write.reply;
}

static struct gate_reply act(enum gate_op op, int key, int token)
{
	struct gate_ask ask = ask_of(op, key, token);

	return run(&ask);
}

static struct gate_reply acquire_held(int key, int token)
{
	struct gate_ask ask = ask_of(GATE_ACQUIRE, key, token);

	ask.claim.hold = 1;
	return run(&ask);
}

static enum gate_verdict acquire_other(int key, int token)
{
	struct gate_ask ask = ask_of(GATE_ACQUIRE, key, token);

	ask.claim.fingerprint[0] = 1;
	return run(&ask).verdict;
}

static int64_t number_of(const struct db_stmt *stmt)
{
	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	run_unit();
	return db_cell(&result.rows[0], 0, 0)->i;
}

/* A number out of the table, by a statement that stays where it is: a connection knows it by its address. */
#define number(text)                                                                                                   \
	({                                                                                                             \
		static const struct db_stmt stmt = {.name = "test_number", .sql = text, .in = "", .out = "i"};         \
		number_of(&stmt);                                                                                      \
	})

static int64_t rows(void)
{
	return number("SELECT count(*) FROM hx_gate_record");
}

#define assert_verdict(reply, wanted) assert_int_equal((reply).verdict, wanted)

/* ---- acquire ---- */

static void one_acquires_and_the_others_wait(void **state)
{
	struct gate_reply reply = act(GATE_ACQUIRE, 1, 1);

	(void)state;
	assert_verdict(reply, GATE_ACQUIRED);
	assert_int_equal(reply.lease_left_ms, LEASE_MS);
	fake_clock_advance_ms(&fake, 30);
	reply = act(GATE_ACQUIRE, 1, 2);
	assert_verdict(reply, GATE_IN_FLIGHT);
	assert_int_equal(reply.lease_left_ms, LEASE_MS - 30);
	assert_int_equal(reply.created_ms, START_MS);
	assert_int_equal(acquire_other(1, 3), GATE_MISMATCHED);
	assert_verdict(act(GATE_ACQUIRE, 2, 2), GATE_ACQUIRED);
	assert_int_equal(rows(), 2);
}

static void the_lease_ends_to_the_millisecond(void **state)
{
	struct gate_reply reply;

	(void)state;
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_ACQUIRED);
	fake_clock_advance_ms(&fake, LEASE_MS - 1);
	assert_verdict(act(GATE_ACQUIRE, 1, 2), GATE_IN_FLIGHT);
	fake_clock_advance_ms(&fake, 1);
	assert_int_equal(acquire_other(1, 2), GATE_MISMATCHED);
	reply = act(GATE_ACQUIRE, 1, 2);
	assert_verdict(reply, GATE_ACQUIRED);
	assert_int_equal(number("SELECT created_at FROM hx_gate_record"), START_MS); /* it is still the same record */
	assert_int_equal(number("SELECT takeovers FROM hx_gate_record"), 1);
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_IN_FLIGHT); /* the first is late, and one of the others now */
}

/* Its answer was lost, so it asks again: it holds the record, from now on. */
static void the_holder_may_ask_again(void **state)
{
	(void)state;
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_ACQUIRED);
	fake_clock_advance_ms(&fake, LEASE_MS - 1);
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_ACQUIRED);
	fake_clock_advance_ms(&fake, LEASE_MS - 1);
	assert_verdict(act(GATE_ACQUIRE, 1, 2), GATE_IN_FLIGHT);
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_ACQUIRED);
	assert_int_equal(number("SELECT takeovers FROM hx_gate_record"), 0);
	assert_verdict(act(GATE_COMPLETE, 1, 1), GATE_DONE);
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_COMPLETED);
	assert_string_equal(told, "answer");
}

static void a_record_that_is_held_waits_for_a_person(void **state)
{
	(void)state;
	assert_verdict(acquire_held(1, 1), GATE_ACQUIRED);
	assert_verdict(acquire_held(1, 2), GATE_IN_FLIGHT);
	fake_clock_advance_ms(&fake, LEASE_MS);
	assert_verdict(acquire_held(1, 2), GATE_HELD);
	assert_verdict(act(GATE_ACQUIRE, 1, 2), GATE_HELD); /* what counts is how it was acquired */
	assert_int_equal(acquire_other(1, 2), GATE_MISMATCHED);
	fake_clock_advance_ms(&fake, 1000 * TTL_MS);
	assert_verdict(act(GATE_ACQUIRE, 1, 2), GATE_HELD);
	assert_int_equal(act(GATE_SWEEP, 0, 0).removed, 0);
	assert_verdict(acquire_held(1, 1), GATE_ACQUIRED); /* its own holder, once more */
	assert_verdict(act(GATE_COMPLETE, 1, 1), GATE_DONE);
	fake_clock_advance_ms(&fake, TTL_MS);
	assert_int_equal(act(GATE_SWEEP, 0, 0).removed, 1); /* a completed one ends as all do */
}

/* ---- complete ---- */

static void a_completed_record_is_replayed_until_it_expires(void **state)
{
	struct gate_reply reply;

	(void)state;
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_ACQUIRED);
	fake_clock_advance_ms(&fake, 10);
	assert_verdict(act(GATE_COMPLETE, 1, 1), GATE_DONE);
	fake_clock_advance_ms(&fake, TTL_MS - 1);
	reply = act(GATE_ACQUIRE, 1, 2);
	assert_verdict(reply, GATE_COMPLETED);
	assert_string_equal(told, "answer");
	assert_int_equal(reply.created_ms, START_MS);
	assert_int_equal(acquire_other(1, 2), GATE_MISMATCHED);
	fake_clock_advance_ms(&fake, 1);
	assert_int_equal(acquire_other(1, 2), GATE_ACQUIRED); /* it counts as absent */
	assert_int_equal(number("SELECT created_at FROM hx_gate_record"), START_MS + 10 + TTL_MS);
	assert_int_equal(number("SELECT takeovers FROM hx_gate_record"), 0);
	assert_int_equal(number("SELECT count(*) FROM hx_gate_record WHERE response IS NOT NULL"), 0);
}

static void a_completion_happens_once(void **state)
{
	struct gate_ask again = ask_of(GATE_COMPLETE, 1, 1);

	(void)state;
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_ACQUIRED);
	assert_verdict(act(GATE_COMPLETE, 1, 1), GATE_DONE);
	fake_clock_advance_ms(&fake, 10);
	again.response = slice_str("another");
	assert_verdict(run(&again), GATE_DONE);
	assert_verdict(act(GATE_ACQUIRE, 1, 2), GATE_COMPLETED);
	assert_string_equal(told, "answer");
	assert_int_equal(number("SELECT expires_at FROM hx_gate_record"), START_MS + TTL_MS);
}

static void a_late_holder_changes_nothing(void **state)
{
	(void)state;
	assert_verdict(act(GATE_COMPLETE, 1, 1), GATE_STALE); /* there is none at all */
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_ACQUIRED);
	fake_clock_advance_ms(&fake, LEASE_MS);
	assert_verdict(act(GATE_ACQUIRE, 1, 2), GATE_ACQUIRED);
	assert_verdict(act(GATE_COMPLETE, 1, 1), GATE_STALE);
	assert_verdict(act(GATE_REMOVE, 1, 1), GATE_STALE);
	assert_verdict(act(GATE_ACQUIRE, 1, 3), GATE_IN_FLIGHT);
	assert_verdict(act(GATE_COMPLETE, 1, 2), GATE_DONE);
	assert_verdict(act(GATE_REMOVE, 1, 1), GATE_STALE);
	assert_verdict(act(GATE_ACQUIRE, 1, 3), GATE_COMPLETED);
}

/* Past its lease, but nobody came: the work counts. Past its end it does not. */
static void late_is_not_too_late(void **state)
{
	(void)state;
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_ACQUIRED);
	assert_verdict(act(GATE_ACQUIRE, 2, 1), GATE_ACQUIRED);
	fake_clock_advance_ms(&fake, LEASE_MS + TTL_MS - 1);
	assert_verdict(act(GATE_COMPLETE, 1, 1), GATE_DONE);
	fake_clock_advance_ms(&fake, 1);
	assert_verdict(act(GATE_COMPLETE, 2, 1), GATE_STALE);
	assert_verdict(act(GATE_REMOVE, 2, 2), GATE_DONE); /* another's, but expired */
}

/* However short the ttl, while somebody may be at work the key is taken. */
static void nobody_comes_in_within_the_lease(void **state)
{
	struct gate_ask ask = ask_of(GATE_ACQUIRE, 1, 1);

	(void)state;
	ask.claim.ttl_ms = 1;
	assert_verdict(run(&ask), GATE_ACQUIRED);
	fake_clock_advance_ms(&fake, LEASE_MS - 1);
	assert_verdict(act(GATE_ACQUIRE, 1, 2), GATE_IN_FLIGHT);
}

/* ---- remove ---- */

static void its_holder_removes_a_record(void **state)
{
	(void)state;
	assert_verdict(act(GATE_REMOVE, 1, 1), GATE_DONE); /* there is none */
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_ACQUIRED);
	assert_verdict(act(GATE_REMOVE, 1, 1), GATE_DONE);
	assert_verdict(act(GATE_REMOVE, 1, 1), GATE_DONE); /* repeated */
	assert_int_equal(rows(), 0);
}

static void what_is_completed_is_not_removed(void **state)
{
	(void)state;
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_ACQUIRED);
	assert_verdict(act(GATE_COMPLETE, 1, 1), GATE_DONE);
	assert_verdict(act(GATE_REMOVE, 1, 1), GATE_STALE);
	assert_verdict(act(GATE_ACQUIRE, 1, 2), GATE_COMPLETED);
}

/* The holder before may have executed: the record stays, for the next one to come. */
static void what_was_taken_over_only_loses_its_lease(void **state)
{
	struct gate_reply reply;

	(void)state;
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_ACQUIRED);
	fake_clock_advance_ms(&fake, LEASE_MS);
	assert_verdict(act(GATE_ACQUIRE, 1, 2), GATE_ACQUIRED);
	assert_verdict(act(GATE_REMOVE, 1, 2), GATE_DONE);
	assert_int_equal(rows(), 1);
	assert_int_equal(acquire_other(1, 3), GATE_MISMATCHED);
	reply = act(GATE_ACQUIRE, 1, 3);
	assert_verdict(reply, GATE_ACQUIRED);
	assert_int_equal(number("SELECT created_at FROM hx_gate_record"), START_MS);
	assert_verdict(act(GATE_REMOVE, 1, 2), GATE_STALE);
	assert_verdict(act(GATE_ACQUIRE, 1, 4), GATE_IN_FLIGHT);
}

/* ---- for people ---- */

static void acquire_as(int key, const char *text)
{
	struct gate_ask ask = ask_of(GATE_ACQUIRE, key, key);

	ask.key_text = slice_str(text);
	assert_verdict(run(&ask), GATE_ACQUIRED);
}

static struct gate_reply look(const char *text, int64_t after, int64_t budget)
{
	struct gate_ask ask = ask_of(GATE_LOOK, 0, 0);

	ask.key_text = slice_str(text);
	ask.after = after;
	ask.budget = budget;
	return run(&ask);
}

static void a_look_goes_through_in_slices(void **state)
{
	struct gate_reply reply;
	size_t found = 0;
	int looks = 0;

	(void)state;
	for (int i = 1; i <= 10; i++)
		acquire_as(i, i % 2 ? "odd" : "even");
	reply = look("odd", 0, 3);
	assert_int_equal(reply.sights_n, 2);
	assert_int_equal(reply.next, 3);
	for (int64_t next = 0; looks == 0 || next; looks++) {
		reply = look("odd", next, 5);
		found += reply.sights_n;
		next = reply.next;
	}
	assert_int_equal(found, 5);
	reply = look("odd", 0, 100);
	assert_int_equal(reply.sights_n, GATE_SIGHTS_MAX); /* it stops there, and goes on after the last of them */
	reply = look("odd", reply.next, 100);
	assert_int_equal(reply.sights_n, 2);
	assert_int_equal(reply.next, 0);
	assert_int_equal(look("od", 0, 100).sights_n, 0);
}

static void a_look_tells_the_state(void **state)
{
	char long_path[2 * GATE_ENDPOINT_BYTES_MAX];
	struct gate_ask ask = ask_of(GATE_ACQUIRE, 3, 3);
	struct gate_reply reply;

	(void)state;
	memset(long_path, 'x', sizeof long_path);
	acquire_as(1, "K");
	assert_verdict(act(GATE_COMPLETE, 1, 1), GATE_DONE);
	assert_verdict(acquire_held(2, 2), GATE_ACQUIRED);
	fake_clock_advance_ms(&fake, LEASE_MS);
	ask.endpoint = slice_of(long_path, sizeof long_path);
	assert_verdict(run(&ask), GATE_ACQUIRED);
	reply = look("K", 0, 100);
	assert_int_equal(reply.sights_n, 3);
	assert_int_equal(reply.sights[0].state, GATE_COMPLETED);
	assert_int_equal(reply.sights[0].response_bytes, 6);
	assert_int_equal(reply.sights[0].key[0], 1);
	assert_int_equal(reply.sights[0].token[0], 1);
	assert_string_equal(reply.sights[0].endpoint, "POST /payments");
	assert_int_equal(reply.sights[0].created_ms, START_MS);
	assert_int_equal(reply.sights[1].state, GATE_HELD);
	assert_int_equal(reply.sights[1].lease_left_ms, 0);
	assert_int_equal(reply.sights[2].state, GATE_IN_FLIGHT);
	assert_int_equal(reply.sights[2].lease_left_ms, LEASE_MS);
	assert_int_equal(strlen(reply.sights[2].endpoint), GATE_ENDPOINT_BYTES_MAX);

	reply = look("", 0, 100); /* those who seem to be lost */
	assert_int_equal(reply.sights_n, 1);
	assert_int_equal(reply.sights[0].key[0], 2);
	fake_clock_advance_ms(&fake, TTL_MS);
	assert_int_equal(look("K", 0, 100).sights_n, 2); /* the first has expired */
}

static void what_was_seen_can_be_forgotten(void **state)
{
	struct gate_reply reply;

	(void)state;
	assert_verdict(act(GATE_FORGET, 1, 1), GATE_ABSENT);
	assert_verdict(acquire_held(1, 1), GATE_ACQUIRED);
	fake_clock_advance_ms(&fake, LEASE_MS - 1);
	reply = act(GATE_FORGET, 1, 1);
	assert_verdict(reply, GATE_IN_FLIGHT); /* somebody is at work */
	assert_int_equal(reply.lease_left_ms, 1);
	fake_clock_advance_ms(&fake, 1);
	assert_verdict(act(GATE_FORGET, 1, 2), GATE_STALE); /* it is not the one that was seen */
	assert_verdict(act(GATE_FORGET, 1, 1), GATE_DONE);
	assert_int_equal(rows(), 0);
}

/* ---- the sweep ---- */

static void a_sweep_takes_what_has_expired_within_its_budget(void **state)
{
	struct gate_ask sweep = ask_of(GATE_SWEEP, 0, 0);

	(void)state;
	for (int i = 1; i <= 5; i++)
		assert_verdict(act(GATE_ACQUIRE, i, i), GATE_ACQUIRED);
	fake_clock_advance_ms(&fake, LEASE_MS);
	assert_verdict(act(GATE_COMPLETE, 1, 1), GATE_DONE);
	fake_clock_advance_ms(&fake, TTL_MS - 1);
	assert_verdict(act(GATE_COMPLETE, 2, 2), GATE_DONE); /* late: it stays longer than the sweep was told */
	fake_clock_advance_ms(&fake, 1);
	sweep.budget = 3;
	assert_int_equal(run(&sweep).removed, 3); /* 1, 3 and 4; 2 was put off */
	assert_verdict(act(GATE_ACQUIRE, 2, 9), GATE_COMPLETED);
	assert_int_equal(run(&sweep).removed, 0); /* its turn is not over */
	fake_clock_advance_ms(&fake, TURN_MS);
	assert_int_equal(run(&sweep).removed, 1);
	assert_int_equal(rows(), 1);
	fake_clock_advance_ms(&fake, TTL_MS);
	assert_int_equal(run(&sweep).removed, 1);
}

/* ---- along with other work ---- */

static enum unit_verdict complete_at_birth(int key, int token, const char *response)
{
	struct gate_ask ask = ask_of(GATE_COMPLETE, key, token);

	unit_init(&unit, 1);
	gate_add_completed(&unit, &ask.claim, slice_str(response));
	run_unit();
	return result.verdict;
}

static void a_record_can_be_completed_from_birth(void **state)
{
	(void)state;
	assert_int_equal(complete_at_birth(1, 1, "first"), UNIT_WON);
	assert_int_equal(complete_at_birth(1, 2, "second"), UNIT_LOST);
	assert_verdict(act(GATE_ACQUIRE, 1, 2), GATE_COMPLETED);
	assert_string_equal(told, "first");
	fake_clock_advance_ms(&fake, TTL_MS);
	assert_int_equal(complete_at_birth(1, 2, "second"), UNIT_WON); /* expired */
	assert_verdict(act(GATE_ACQUIRE, 2, 1), GATE_ACQUIRED);
	assert_int_equal(complete_at_birth(2, 2, "second"), UNIT_LOST); /* in flight */
	fake_clock_advance_ms(&fake, LEASE_MS);
	assert_int_equal(complete_at_birth(2, 2, "second"), UNIT_WON); /* taken over */
	assert_verdict(act(GATE_COMPLETE, 2, 1), GATE_STALE);
}

static size_t complete_along(int key, int token, int fingerprint)
{
	struct gate_ask ask = ask_of(GATE_COMPLETE, key, token);

	ask.claim.fingerprint[0] = (unsigned char)fingerprint;
	unit_init(&unit, 1);
	gate_add_completion(&unit, &ask);
	run_unit();
	assert_int_equal(result.verdict, UNIT_WON); /* it decides nothing */
	return result.rows[0].n;
}

static void the_work_itself_proves_who_did_it(void **state)
{
	(void)state;
	assert_int_equal(complete_along(1, 1, 0), 0); /* there is none */
	assert_verdict(act(GATE_ACQUIRE, 1, 1), GATE_ACQUIRED);
	fake_clock_advance_ms(&fake, LEASE_MS);
	assert_verdict(act(GATE_ACQUIRE, 1, 2), GATE_ACQUIRED);
	assert_int_equal(complete_along(1, 1, 7), 0); /* it was for something else */
	assert_int_equal(complete_along(1, 1, 0), 1); /* the first was late, but it was the first who did it */
	assert_verdict(act(GATE_COMPLETE, 1, 2), GATE_STALE);
	assert_int_equal(complete_along(1, 1, 0), 0);
	assert_verdict(act(GATE_ACQUIRE, 1, 3), GATE_COMPLETED);
	assert_string_equal(told, "answer");
}

/* ---- a record that version 0.1 kept under another key ---- */

static struct gate_ask ask_after_upgrade(int key, int token, const unsigned char old[HX_GATE_KEY_BYTES])
{
	struct gate_ask ask = ask_of(GATE_ACQUIRE, key, token);

	ask.old_key = slice_of(old, HX_GATE_KEY_BYTES);
	return ask;
}

static void what_an_older_program_kept_is_in_the_way_while_it_lives(void **state)
{
	static const unsigned char done[HX_GATE_KEY_BYTES] = {1}, open[HX_GATE_KEY_BYTES] = {2};
	struct gate_ask repeats = ask_after_upgrade(11, 5, done), waits = ask_after_upgrade(12, 6, open),
			other = repeats;

	(void)state;
	other.claim.fingerprint[0] = 1;
	act(GATE_ACQUIRE, 1, 1);
	act(GATE_COMPLETE, 1, 1);
	act(GATE_ACQUIRE, 2, 2);
	assert_verdict(run(&repeats), GATE_COMPLETED);
	assert_string_equal(told, "answer");
	assert_verdict(run(&other), GATE_MISMATCHED);
	assert_verdict(run(&waits), GATE_IN_FLIGHT);
	assert_int_equal(number("SELECT count(*) FROM hx_gate_record"), 2);

	fake_clock_advance_ms(&fake, LEASE_MS);
	assert_verdict(run(&waits), GATE_ACQUIRED);
	assert_verdict(run(&repeats), GATE_COMPLETED);
	fake_clock_advance_ms(&fake, TTL_MS - LEASE_MS);
	assert_verdict(run(&repeats), GATE_ACQUIRED);
}

/* ---- answers that are none ---- */

static void what_is_not_answered_is_repeated_and_then_given_up(void **state)
{
	static const enum unit_verdict bad[] = {UNIT_FAILED, UNIT_UNKNOWN};
	static const unsigned char old[HX_GATE_KEY_BYTES] = {9};
	struct gate_ask asks[] = {ask_of(GATE_ACQUIRE, 1, 1), ask_after_upgrade(1, 1, old)};

	(void)state;
	for (int b = 0; b < 4; b++) {
		struct gate_write write;
		struct ask ask = {.unit = &unit};
		int asked = 0;

		gate_write_init(&write, &asks[b / 2]);
		write.task.kind->take(&write.task, &(struct answer){.kind = ANSWER_START, .id = 1});
		for (write.task.kind->ask(&write.task, &ask); ask.kind == ASK_COMMIT; asked++) {
			struct unit_result none = {.verdict = bad[b % 2]};

			assert_int_equal(unit.op, asked + 1);
			write.task.kind->take(
				&write.task, &(struct answer){.kind = ANSWER_COMMIT, .result = &none, .id = asked + 2});
			write.task.kind->ask(&write.task, &ask);
		}
		assert_int_equal(asked, 1 + GATE_REPEATS_MAX);
		assert_verdict(write.reply, GATE_UNAVAILABLE);
	}
}

/* Times that no calendar has are as good as for ever, and no error of the store's. */
static void the_longest_times_fit(void **state)
{
	struct gate_ask ask = ask_of(GATE_ACQUIRE, 1, 1);

	(void)state;
	ask.claim.lease_ms = ask.claim.ttl_ms = INT64_MAX;
	assert_verdict(run(&ask), GATE_ACQUIRED);
	ask.op = GATE_COMPLETE;
	assert_verdict(run(&ask), GATE_DONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_acquires_and_the_others_wait),
		TEST(the_lease_ends_to_the_millisecond),
		TEST(the_holder_may_ask_again),
		TEST(a_record_that_is_held_waits_for_a_person),
		TEST(a_completed_record_is_replayed_until_it_expires),
		TEST(a_completion_happens_once),
		TEST(a_late_holder_changes_nothing),
		TEST(late_is_not_too_late),
		TEST(nobody_comes_in_within_the_lease),
		TEST(its_holder_removes_a_record),
		TEST(what_is_completed_is_not_removed),
		TEST(what_was_taken_over_only_loses_its_lease),
		TEST(a_look_goes_through_in_slices),
		TEST(a_look_tells_the_state),
		TEST(what_was_seen_can_be_forgotten),
		TEST(a_sweep_takes_what_has_expired_within_its_budget),
		TEST(a_record_can_be_completed_from_birth),
		TEST(the_work_itself_proves_who_did_it),
		TEST(what_an_older_program_kept_is_in_the_way_while_it_lives),
		TEST(what_is_not_answered_is_repeated_and_then_given_up),
		TEST(the_longest_times_fit),
	};

	return cmocka_run_group_tests_name("gate record", tests, NULL, NULL);
}
