/* The watch task by hand: read, sleep, read again, until there or too late. */
#include "unit/flow/world.h"

#include "support/watch.h"

static void begin(struct hand *h, struct watch *w)
{
	watch_init(w, 7, "done", (struct mono_time){100000000});
	hand_init(h, &w->task);
	assert_int_equal(w->task.topic, 7);
	assert_string_equal(hand_where(h), "new");
	assert_int_equal(hand_start(h), ASK_COMMIT);
	assert_string_equal(hand_where(h), "reading");
	assert_string_equal(hand_stmt(h), "subject_read");
}

static void there_already(void **state)
{
	struct watch w;
	struct hand h;

	(void)state;
	begin(&h, &w);
	hand_subject(&h, "done", 4, 0);
	hand_assert_done(&h, HX_OK);
	assert_int_equal(w.version, 4);
}

static void each_wake_is_one_more_read(void **state)
{
	struct watch w;
	struct hand h;

	(void)state;
	begin(&h, &w);
	for (int64_t version = 1; version < 5; version++) {
		assert_int_equal(hand_subject(&h, "busy", version, 0), ASK_SLEEP);
		assert_string_equal(hand_where(&h), "sleeping");
		assert_int_equal(h.ask.until.ns, 100000000);
		assert_int_equal(w.version, version);
		assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_COMMIT);
		assert_string_equal(hand_stmt(&h), "subject_read");
	}
	hand_subject(&h, "done", 5, 0);
	hand_assert_done(&h, HX_OK);
}

static void at_the_deadline_it_looks_once_more(void **state)
{
	struct watch w;
	struct hand h;

	(void)state;
	for (int there = 0; there <= 1; there++) {
		begin(&h, &w);
		assert_int_equal(hand_subject(&h, "busy", 1, 0), ASK_SLEEP);
		h.answer.mono.ns = 100000000 - 1; /* the next answer comes a nanosecond later */
		assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_COMMIT);
		hand_subject(&h, there ? "done" : "busy", 2, 0);
		hand_assert_done(&h, there ? HX_OK : HX_WRONG_STATUS);
	}
}

static void nothing_there_or_nobody_to_ask(void **state)
{
	struct watch w;
	struct hand h;

	(void)state;
	begin(&h, &w);
	hand_no_rows(&h, 5);
	hand_assert_done(&h, HX_NOT_FOUND);
	begin(&h, &w);
	hand_failed(&h, HX_STORE_UNAVAILABLE);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
	begin(&h, &w);
	hand_verdict(&h, UNIT_UNKNOWN);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_already),
		cmocka_unit_test(each_wake_is_one_more_read),
		cmocka_unit_test(at_the_deadline_it_looks_once_more),
		cmocka_unit_test(nothing_there_or_nobody_to_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
