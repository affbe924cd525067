/* What is decided about a slot, row by row: schedule_plan(), schedule_leave(). Those that a mutant is about say so with MUST_HOLD. */
#include "unit/flow/schedule_text.h"

#include <stdio.h>

#include "support/must_hold.h"

#define SUBJECT 77

/* Its slots are 100 s, 110 s, 120 s …; the next one is at 100 s. */
static struct schedule_row row_of(const char *text, int64_t now)
{
	return (struct schedule_row){.subject = SUBJECT,
				     .revision = 1,
				     .slot_at = 100 * SECOND,
				     .due_at = 100 * SECOND,
				     .now = now,
				     .name = slice_str("s"),
				     .spec = spec_of(text)};
}

static void nothing_is_due(void **state)
{
	struct schedule_row row = row_of(EVERY(""), 99 * SECOND);
	struct schedule_move move = schedule_plan(&row);

	(void)state;
	assert_int_equal(move.what, SCHEDULE_RESTS);
	assert_int_equal(move.slot_at, 100 * SECOND);
	assert_int_equal(move.due_at, 100 * SECOND);
}

static void a_slot_starts_and_the_next_is_due(void **state)
{
	struct schedule_row row = row_of(EVERY(""), 100 * SECOND);
	struct schedule_move move = schedule_plan(&row);

	(void)state;
	assert_int_equal(move.what, SCHEDULE_STARTS);
	assert_int_equal(move.slot_s, 100);
	assert_int_equal(move.slot_at, 110 * SECOND);
	assert_int_equal(move.due_at, 110 * SECOND);
	assert_false(move.from_waiting);
}

static void the_last_slot_is_followed_by_none(void **state)
{
	struct schedule_row row = row_of(EVERY(",\"to\":\"1970-01-01T00:01:40Z\""), 100 * SECOND);
	struct schedule_move move = schedule_plan(&row);

	(void)state;
	assert_int_equal(move.what, SCHEDULE_STARTS);
	assert_int_equal(move.slot_at, 0);
	assert_int_equal(move.due_at, 0);
}

static void jitter_is_of_the_slot(void **state)
{
	struct schedule_row row = row_of(EVERY(",\"jitter\":\"5s\""), 100 * SECOND);
	int64_t late = schedule_due(&row, 100 * SECOND) - 100 * SECOND, other = 0;

	(void)state;
	assert_in_range(late, 0, 4999);
	for (int64_t slot = 110; slot < 300; slot += 10)
		other += schedule_due(&row, slot * SECOND) - slot * SECOND != late;
	assert_true(other > 10);
	row.now = 100 * SECOND + late;
	assert_int_equal(schedule_plan(&row).slot_s, 100);
	if (late) {
		row.now--;
		assert_int_equal(schedule_plan(&row).what, SCHEDULE_RESTS);
	}
}

/* overlap, while something is open. */
static void overlap(void **state)
{
	struct schedule_row row = row_of(EVERY(""), 100 * SECOND);
	struct schedule_move move;

	(void)state;
	row.open = 1;
	MUST_HOLD(schedule_plan(&row).what == SCHEDULE_SKIPS, "a slot starts beside the one before it");
	row.spec.overlap = OVERLAP_ALLOW;
	assert_int_equal(schedule_plan(&row).what, SCHEDULE_STARTS);
	row.spec.overlap = OVERLAP_QUEUE;
	move = schedule_plan(&row);
	assert_int_equal(move.what, SCHEDULE_WAITS_FOR);
	assert_int_equal(move.due_at, row.now + SCHEDULE_OPEN_LOOK_MS);
	assert_false(move.replaces || move.cancels);
	row.queued = row.waiting = SCHEDULE_QUEUE_MAX;
	row.first = 10 * SECOND;
	assert_int_equal(schedule_plan(&row).what, SCHEDULE_SKIPS);
	row.spec.overlap = OVERLAP_CANCEL;
	row.queued = row.waiting = 1;
	move = schedule_plan(&row);
	assert_int_equal(move.what, SCHEDULE_WAITS_FOR);
	assert_true(move.replaces && move.cancels);
}

static void what_waits_goes_first(void **state)
{
	struct schedule_row row = row_of(EVERY(",\"overlap\":\"queue\""), 100 * SECOND);
	struct schedule_move move;

	(void)state;
	row.first = 80 * SECOND;
	row.queued = row.waiting = 2;
	move = schedule_plan(&row);
	assert_int_equal(move.what, SCHEDULE_STARTS);
	assert_int_equal(move.slot_s, 80);
	assert_true(move.from_waiting);
	assert_int_equal(move.slot_at, 100 * SECOND); /* which is still to come */
	row.open = 1;
	move = schedule_plan(&row);
	assert_int_equal(move.what, SCHEDULE_WAITS_FOR);
	assert_int_equal(move.slot_s, 100);
}

static void passes(const char *text, int64_t now, int64_t passed, int64_t slot)
{
	struct schedule_row row = row_of(text, now);
	struct schedule_move move = schedule_plan(&row);

	if (move.passed != passed || (passed ? move.slot_at : move.slot_s * SECOND) != slot * SECOND)
		fail_msg("%s at %lld: %lld are let go, and it goes on with %lld", text, (long long)now,
			 (long long)move.passed, (long long)(passed ? move.slot_at : move.slot_s * SECOND));
}

static void catching_up(void **state)
{
	(void)state;
	/* On time: late by less than half of the way to the next. */
	passes(EVERY(",\"catchUp\":\"none\""), 104 * SECOND, 0, 100);
	passes(EVERY(",\"catchUp\":\"none\""), 105 * SECOND, 1, 110);
	passes(EVERY(",\"catchUp\":\"none\""), 153 * SECOND, 5, 150);
	passes(EVERY(",\"catchUp\":\"last\""), 153 * SECOND, 5, 150);
	passes(EVERY(",\"catchUp\":\"last\""), 157 * SECOND, 5, 150);
	passes(EVERY(",\"catchUp\":\"last\""), 107 * SECOND, 0, 100);
	passes(EVERY(",\"catchUp\":\"all\""), 100000 * SECOND, 0, 100);
	passes(EVERY(",\"catchUp\":\"20s\""), 153 * SECOND, 4, 140);
	passes(EVERY(",\"catchUp\":{\"all\":\"20s\"}"), 153 * SECOND, 4, 140);
	passes(EVERY(""), 24 * 3600 * SECOND + 100 * SECOND, 0, 100);
	passes(EVERY(""), 24 * 3600 * SECOND + 101 * SECOND, 1, 110);
	/* So many at once, and not more. */
	passes("{\"workflow\":\"quick\",\"every\":\"1s\",\"catchUp\":\"none\"}", 1000000 * SECOND, SCHEDULE_PASS_MAX,
	       100 + SCHEDULE_PASS_MAX);
}

/* The jitter is no part of how late it is. */
static void catching_up_counts_from_the_start(void **state)
{
	struct schedule_row row = row_of(
		"{\"workflow\":\"quick\",\"every\":\"1h\",\"jitter\":\"30m\",\"catchUp\":\"1m\"}", 0);

	(void)state;
	row.slot_at = 3600 * SECOND;
	while (schedule_due(&row, row.slot_at) < row.slot_at + 120 * SECOND)
		row.slot_at += 3600 * SECOND;
	row.now = schedule_due(&row, row.slot_at);
	assert_int_equal(schedule_plan(&row).what, SCHEDULE_STARTS);
	row.now += 60 * SECOND;
	assert_int_equal(schedule_plan(&row).what, SCHEDULE_STARTS);
	row.now++;
	assert_int_equal(schedule_plan(&row).passed, 1);
}

/* By its catchUp, and as many as may wait. */
static void leaves(const char *text, int64_t now, int64_t first, int64_t n, int64_t passed)
{
	struct schedule_row row = row_of(text, now);
	struct schedule_late late;

	schedule_leave(&row, &late);
	if (late.slots_n != n || late.passed != passed || (n && late.slots[0] != first * SECOND))
		fail_msg("%s at %lld: %lld wait, %lld are let go", text, (long long)now, (long long)late.slots_n,
			 (long long)late.passed);
}

static void slots_that_are_left(void **state)
{
	(void)state;
	leaves(EVERY(""), 99 * SECOND, 0, 0, 0);
	leaves(EVERY(""), 100 * SECOND, 100, 1, 0);
	leaves(EVERY(""), 121 * SECOND, 100, 1, 2); /* overlap skip: the first */
	leaves(EVERY(",\"overlap\":\"allow\""), 121 * SECOND, 100, 3, 0);
	leaves(EVERY(",\"overlap\":\"queue\""), 2099 * SECOND, 100, 100, 100);
	leaves(EVERY(",\"overlap\":\"queue\",\"catchUp\":\"none\""), 121 * SECOND, 120, 1, 2);
	leaves(EVERY(",\"overlap\":\"queue\",\"catchUp\":\"last\""), 127 * SECOND, 120, 1, 2);
	leaves(EVERY(",\"overlap\":\"queue\",\"catchUp\":\"10s\""), 125 * SECOND, 120, 1, 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_due),
		cmocka_unit_test(a_slot_starts_and_the_next_is_due),
		cmocka_unit_test(the_last_slot_is_followed_by_none),
		cmocka_unit_test(jitter_is_of_the_slot),
		cmocka_unit_test(overlap),
		cmocka_unit_test(what_waits_goes_first),
		cmocka_unit_test(catching_up),
		cmocka_unit_test(catching_up_counts_from_the_start),
		cmocka_unit_test(slots_that_are_left),
	};
	int failed;

	ONLY_THE_NAMED(argc, argv);
	arena_init(&arena, 64u << 20);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_release(&arena);
	return failed;
}
