/* Limits of a queue over SQLite, claim by claim. What schedules do to them: sim/test_queue_limits.c. */
#include "job_desk.h"

#include "support/must_hold.h"

static const struct limits slot = {.concurrency = {.max = 1}};
static const struct limits both = {.concurrency = {.max = 1}, .rate = {.max = 1, .per_ms = 10000}};

static int64_t pushed(int64_t priority)
{
	struct job_push_item item = {.queue = slice_str("q"), .payload = slice_str("1"), .priority = priority};

	arena_reset(&w.arena);
	assert_int_equal(push(&item, 1), HX_OK);
	return item.subject;
}

/* 0: none. */
static int64_t got(void)
{
	return desk_claim(&w, "q", 1, LEASE) ? w.jobs[0].subject : 0;
}

static int64_t count(const struct db_stmt *stmt)
{
	(void)desk_begin(&w);
	unit_add(&w.unit, UNIT_ANY, stmt, 0, NULL);
	(void)desk_run(&w);
	return db_cell(&w.result.rows[0], 0, 0)->i;
}

static int64_t rows(void)
{
	static const struct db_stmt stmt = {
		.name = "test_slots", .sql = "SELECT count(*) FROM hx_slot", .in = "", .out = "i"};

	return count(&stmt);
}

static void who_waits_comes_by_priority_and_then_by_age(void **state)
{
	int64_t first = pushed(0), second = pushed(0), third = pushed(0), important;

	(void)state;
	w.limits = &slot;
	assert_int_equal(got(), first);
	assert_int_equal(got(), 0);
	important = pushed(7);
	assert_int_equal(got(), 0);
	assert_int_equal(rows(), 4);
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, first, 1), HX_OK);
	assert_int_equal(got(), important);
	assert_int_equal(got(), 0);
	assert_int_equal(desk_settle(&w, JOB_FAIL, important, 1), HX_OK);
	assert_int_equal(got(), second);
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, second, 1), HX_OK);
	assert_int_equal(got(), third);
}

/* A slot is free and one was woken for it; then another has its beginning, and it waits for its time: out of the line. */
static void one_waits_for_one_thing(void **state)
{
	int64_t first = pushed(0), second = pushed(0), third = pushed(5);

	(void)state;
	w.limits = &both;
	assert_int_equal(got(), third);
	assert_int_equal(got(), 0);
	assert_int_equal(rows(), 3);
	fake_clock_advance_ms(&fake, 10000);
	assert_int_equal(got(), 0); /* the first has its time, and no slot */
	assert_int_equal(rows(), 3);
	(void)pushed(9);
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, third, 1), HX_OK);
	assert_true(got() != first);
	assert_int_equal(got(), 0);
	MUST_HOLD(rows() == 3, "one that waits for its time is in the way of those that wait for a slot");
	(void)second;
}

/* Whoever takes the limit away lets all go on; what they had of it goes with them. */
static void a_limit_that_is_gone(void **state)
{
	int64_t first = pushed(0), second = pushed(0);

	(void)state;
	w.limits = &slot;
	assert_int_equal(got(), first);
	assert_int_equal(got(), 0);
	w.limits = NULL;
	fake_clock_advance_ms(&fake, SLOT_LOOK_FIRST_MS);
	assert_int_equal(got(), second);
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, first, 1), HX_OK);
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, second, 1), HX_OK);
	assert_int_equal(rows(), 0);
}

/* The same of one that counts by another key from now on: a claim has one row, and whoever ends it lets go of that. */
static void a_limit_of_another_key(void **state)
{
	int64_t first = pushed(0), second = pushed(0);
	struct limits by_payload = slot;
	const struct expression *by;
	struct arena arena;
	struct hx_error err;

	(void)state;
	arena_init(&arena, 1u << 20);
	assert_int_equal(expression_parse(slice_str(".payload"), &arena, &err, &by), HX_OK);
	by_payload.concurrency.by = by;
	w.limits = &slot;
	assert_int_equal(got(), first);
	assert_int_equal(got(), 0);
	w.limits = &by_payload;
	fake_clock_advance_ms(&fake, SLOT_LOOK_FIRST_MS);
	assert_int_equal(got(), second);
	assert_int_equal(rows(), 2);
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, first, 1), HX_OK);
	assert_int_equal(desk_settle(&w, JOB_COMPLETE, second, 1), HX_OK);
	assert_int_equal(rows(), 0); /* or a slot would be nobody's, for ever */
	arena_release(&arena);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(who_waits_comes_by_priority_and_then_by_age),
		TEST(one_waits_for_one_thing),
		TEST(a_limit_that_is_gone),
		TEST(a_limit_of_another_key),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests_name("job limit", tests, NULL, NULL);
}
