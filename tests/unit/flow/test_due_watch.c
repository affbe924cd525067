/* Looking for what is due, by hand: found, not found, the next one's time, clocks that disagree, a store that is away. */
#include "unit/flow/world.h"

#include "flow/due_watch.h"

#define POLL_MS 2000
#define TOPIC 99

static const struct db_stmt stmt_scan = {.name = "test_scan", .sql = "SELECT 1 WHERE ?1 > 0", .in = "i", .out = "i"};
static const struct db_stmt stmt_next = {.name = "test_next", .sql = "SELECT 1", .in = "", .out = "i"};

static const struct due_source timed = {
	.name = "things", .topic = TOPIC, .poll_ms = POLL_MS, .found = &stmt_scan, .next = &stmt_next};
static const struct due_source polled = {.name = "things", .poll_ms = POLL_MS, .found = &stmt_scan};

static void begin(struct hand *h, struct due_watch *w)
{
	due_watch_init(w, &timed, 10, /* pause_ms= */ 0);
	hand_init(h, &w->task);
	assert_int_equal(w->task.topic, TOPIC);
	assert_int_equal(hand_start(h), ASK_COMMIT);
	assert_string_equal(hand_stmt(h), "test_scan");
	assert_int_equal(h->unit.lines[0].params[0].i, 10);
}

static void what_is_due_is_told(void **state)
{
	struct due_watch w;
	struct hand h;

	(void)state;
	begin(&h, &w);
	hand_rows(&h, 3, 1, (const struct db_value[]){db_int(5), db_int(4), db_int(9)});
	hand_assert_done(&h, HX_OK);
	assert_int_equal(w.found_n, 3);
	assert_int_equal(w.found[0].subject, 5);
	assert_int_equal(w.found[1].subject, 4);
	assert_int_equal(w.found[2].subject, 9);
	assert_int_equal(w.found[2].beside, 9);
}

static void beside_whom_is_told(void **state)
{
	struct due_watch w;
	struct hand h;

	(void)state;
	begin(&h, &w);
	hand_rows(&h, 2, 2, (const struct db_value[]){db_int(5), db_int(4), db_int(9), db_int(9)});
	hand_assert_done(&h, HX_OK);
	assert_int_equal(w.found_n, 2);
	assert_int_equal(w.found[0].subject, 5);
	assert_int_equal(w.found[0].beside, 4);
	assert_int_equal(w.found[1].beside, 9);
}

static void it_sleeps_until_the_next_is_due(void **state)
{
	struct due_watch w;
	struct hand h;

	(void)state;
	begin(&h, &w);
	assert_int_equal(hand_no_rows(&h, 1), ASK_COMMIT);
	assert_string_equal(hand_stmt(&h), "test_next");
	assert_int_equal(hand_rows(&h, 1, 1, (const struct db_value[]){db_int(START_MS + 500)}), ASK_SLEEP);
	assert_int_equal(hand_wakes_ms(&h), START_MS + 500);
	assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_COMMIT);
	assert_string_equal(hand_stmt(&h), "test_scan");
	assert_int_equal(hand_no_rows(&h, 1), ASK_COMMIT);
	/* None, or one far away: other nodes may make one without our hearing of it. */
	assert_int_equal(hand_rows(&h, 1, 1, (const struct db_value[]){db_null()}), ASK_SLEEP);
	assert_int_equal(hand_wakes_ms(&h), h.answer.now.ms + POLL_MS);
}

/* By the store's clock it is not due yet, by ours it is: asking again and again would not help. */
static void a_clock_that_runs_ahead_does_not_spin(void **state)
{
	struct due_watch w;
	struct hand h;

	(void)state;
	begin(&h, &w);
	assert_int_equal(hand_no_rows(&h, 1), ASK_COMMIT);
	assert_int_equal(hand_rows(&h, 1, 1, (const struct db_value[]){db_int(START_MS - 500)}), ASK_SLEEP);
	assert_true(hand_wakes_ms(&h) > h.answer.now.ms);
	assert_true(hand_wakes_ms(&h) < h.answer.now.ms + 10);
}

static void a_store_that_is_away_is_asked_again(void **state)
{
	struct due_watch w;
	struct hand h;

	(void)state;
	begin(&h, &w);
	assert_int_equal(hand_failed(&h, HX_STORE_UNAVAILABLE), ASK_SLEEP);
	assert_in_range(hand_wakes_ms(&h), h.answer.now.ms + 100, h.answer.now.ms + POLL_MS / 2);
	assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_COMMIT);
	assert_int_equal(hand_no_rows(&h, 1), ASK_COMMIT);
	assert_int_equal(hand_failed(&h, HX_STORE_UNAVAILABLE), ASK_SLEEP);
	assert_in_range(hand_wakes_ms(&h), h.answer.now.ms + 100, h.answer.now.ms + POLL_MS / 2);
}

static void a_pause_comes_first(void **state)
{
	struct due_watch w;
	struct hand h;

	(void)state;
	due_watch_init(&w, &timed, DUE_WATCH_MAX, /* pause_ms= */ 25);
	hand_init(&h, &w.task);
	assert_int_equal(hand_start(&h), ASK_SLEEP);
	assert_int_equal(hand_wakes_ms(&h), h.answer.now.ms + 25);
	assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_COMMIT);
	assert_string_equal(hand_stmt(&h), "test_scan");
}

static void without_a_time_it_polls(void **state)
{
	struct due_watch w;
	struct hand h;

	(void)state;
	due_watch_init(&w, &polled, 1, /* pause_ms= */ 0);
	hand_init(&h, &w.task);
	assert_int_equal(hand_start(&h), ASK_COMMIT);
	assert_int_equal(hand_no_rows(&h, 1), ASK_SLEEP);
	assert_int_equal(hand_wakes_ms(&h), h.answer.now.ms + POLL_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_due_is_told),
		cmocka_unit_test(beside_whom_is_told),
		cmocka_unit_test(it_sleeps_until_the_next_is_due),
		cmocka_unit_test(a_clock_that_runs_ahead_does_not_spin),
		cmocka_unit_test(a_store_that_is_away_is_asked_again),
		cmocka_unit_test(a_pause_comes_first),
		cmocka_unit_test(without_a_time_it_polls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
