/* The task of entry_write.h: its units on SQLite in memory with a clock that stands still, its answers made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "db/driver.h"
#include "db/migrate.h"
#include "gate/entry_write.h"

#define START_MS 1000000
#define TTL_MS 500
#define GRACE_MS 60000

static struct fake_clock fake;
static struct db *db;
static struct arena arena;
static struct unit unit;
static struct unit_result result;

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

/* Names are in the order of n, as the sweep sees them. */
static struct entry_lock lock_of(int n, const char *token)
{
	struct entry_lock lock = {.ttl_ms = TTL_MS};

	snprintf(lock.name, sizeof lock.name, "%064d", n);
	snprintf(lock.token, sizeof lock.token, "%s", token);
	return lock;
}

/* Runs the task to its end on the real store. */
static enum hx_code run(int n, const char *token, enum entry_write_kind kind)
{
	struct entry_lock lock = lock_of(n, token);
	struct entry_write write;
	struct ask ask = {.unit = &unit};
	struct hx_error err = {0};

	entry_write_init(&write, &lock, kind);
	assert_true(task_take(&write.task, write.task.turn, &(struct answer){.kind = ANSWER_START, .id = 1}));
	write.task.kind->ask(&write.task, &ask);
	assert_int_equal(ask.kind, ASK_COMMIT);
	arena_reset(&arena);
	if (db_run_unit(db, &unit, &result, &arena, &err))
		fail_msg("%s", err.detail);
	assert_true(
		task_take(&write.task, write.task.turn, &(struct answer){.kind = ANSWER_COMMIT, .result = &result}));
	write.task.kind->ask(&write.task, &ask);
	assert_int_equal(ask.kind, ASK_DONE);
	return ask.code;
}

static int64_t rows(void)
{
	static const struct db_stmt count = {
		.name = "test_count", .sql = "SELECT count(*) FROM hx_entry_lock", .in = "", .out = "i"};
	struct hx_error err = {0};

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, &count, 0, NULL);
	arena_reset(&arena);
	if (db_run_unit(db, &unit, &result, &arena, &err))
		fail_msg("%s", err.detail);
	return db_cell(&result.rows[0], 0, 0)->i;
}

static void the_end_is_exact(void **state)
{
	(void)state;
	assert_int_equal(run(1, "a", ENTRY_TAKE), HX_OK);
	fake_clock_advance_ms(&fake, TTL_MS - 1);
	assert_int_equal(run(1, "b", ENTRY_TAKE), HX_ENTRY_LOCKED);
	fake_clock_advance_ms(&fake, 1);
	assert_int_equal(run(1, "b", ENTRY_TAKE), HX_OK);
	assert_int_equal(rows(), 1);
	assert_int_equal(run(1, "a", ENTRY_RELEASE), HX_OK); /* stale */
	assert_int_equal(rows(), 1);
	assert_int_equal(run(1, "c", ENTRY_TAKE), HX_ENTRY_LOCKED);
	assert_int_equal(run(1, "b", ENTRY_RELEASE), HX_OK);
	assert_int_equal(rows(), 0);
}

static void a_release_of_nothing_is_fine(void **state)
{
	(void)state;
	assert_int_equal(run(1, "a", ENTRY_RELEASE), HX_OK);
	assert_int_equal(run(1, "a", ENTRY_RELEASE_AND_SWEEP), HX_OK);
}

static void a_sweep_takes_only_what_is_long_over(void **state)
{
	(void)state;
	assert_int_equal(run(1, "dead", ENTRY_TAKE), HX_OK);
	assert_int_equal(run(9, "dead", ENTRY_TAKE), HX_OK);
	fake_clock_advance_ms(&fake, TTL_MS + GRACE_MS - 1);
	assert_int_equal(run(2, "alive", ENTRY_TAKE), HX_OK);
	assert_int_equal(run(5, "me", ENTRY_TAKE), HX_OK);
	assert_int_equal(run(5, "me", ENTRY_RELEASE_AND_SWEEP), HX_OK);
	assert_int_equal(rows(), 3);
	fake_clock_advance_ms(&fake, 1);
	assert_int_equal(run(5, "me", ENTRY_TAKE), HX_OK);
	assert_int_equal(run(5, "me", ENTRY_RELEASE), HX_OK);
	assert_int_equal(rows(), 3); /* a plain release sweeps nothing */
	assert_int_equal(run(5, "me", ENTRY_RELEASE_AND_SWEEP), HX_OK);
	assert_int_equal(rows(), 1);
	assert_int_equal(run(2, "x", ENTRY_TAKE), HX_ENTRY_LOCKED);
}

/* 128 on either side, and no more. */
static void a_sweep_has_a_budget(void **state)
{
	(void)state;
	for (int n = 0; n < 400; n++)
		assert_int_equal(run(n, "dead", ENTRY_TAKE), HX_OK);
	fake_clock_advance_ms(&fake, TTL_MS + GRACE_MS);
	assert_int_equal(run(200, "me", ENTRY_RELEASE_AND_SWEEP), HX_OK);
	assert_int_equal(rows(), 400 - 2 * 128);
	assert_int_equal(run(200, "me", ENTRY_RELEASE_AND_SWEEP), HX_OK);
	assert_int_equal(rows(), 1); /* 200 itself: its next taker takes it over */
}

static enum hx_code answered(enum entry_write_kind kind, enum unit_verdict verdict)
{
	struct entry_lock lock = lock_of(1, "a");
	struct entry_write write;
	struct ask ask = {.unit = &unit};

	entry_write_init(&write, &lock, kind);
	result = (struct unit_result){.verdict = verdict};
	(void)task_take(&write.task, 0, &(struct answer){.kind = ANSWER_START});
	(void)task_take(&write.task, 1, &(struct answer){.kind = ANSWER_COMMIT, .result = &result});
	write.task.kind->ask(&write.task, &ask);
	return ask.code;
}

static void every_verdict_has_its_code(void **state)
{
	(void)state;
	assert_int_equal(answered(ENTRY_TAKE, UNIT_WON), HX_OK);
	assert_int_equal(answered(ENTRY_TAKE, UNIT_LOST), HX_ENTRY_LOCKED);
	assert_int_equal(answered(ENTRY_TAKE, UNIT_FAILED), HX_STORE_UNAVAILABLE);
	assert_int_equal(answered(ENTRY_TAKE, UNIT_UNKNOWN), HX_OUTCOME_UNKNOWN);
	assert_int_equal(answered(ENTRY_RELEASE, UNIT_FAILED), HX_STORE_UNAVAILABLE);
}

/* Where no subject is, and the same for the same name only. */
static void units_of_one_name_do_not_share_a_batch(void **state)
{
	struct entry_lock a = lock_of(1, "a"), b = lock_of(1, "b"), c = lock_of(2, "a");

	(void)state;
	assert_true(entry_write_subject(&a) < 0 && entry_write_subject(&c) < 0);
	assert_true(entry_write_subject(&a) == entry_write_subject(&b));
	assert_true(entry_write_subject(&a) != entry_write_subject(&c));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_end_is_exact),
		TEST(a_release_of_nothing_is_fine),
		TEST(a_sweep_takes_only_what_is_long_over),
		TEST(a_sweep_has_a_budget),
		cmocka_unit_test(every_verdict_has_its_code),
		cmocka_unit_test(units_of_one_name_do_not_share_a_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
