/* Waiting for an end, by hand: read, sleep, look, read again; what is shown, and when it is forgotten. */
#include "unit/flow/world.h"

#include "flow/end_wait.h"
#include "support/subjects.h"

#define SUBJECT 7
#define TOPIC (-7)

/* What is waited for: a subject of one row, whose first column is its status. */
struct waiting {
	struct end_wait wait;
	int shown, forgotten;
	bool gone;
};

static void read_it(const struct end_wait *wait, struct unit *unit)
{
	subject_read_history(unit, wait->subject, /* after= */ 0, /* limit= */ 1); /* any that is not the look's */
}

static bool has_ended(struct slice status)
{
	return slice_is(status, "done");
}

static enum hx_code show(struct end_wait *wait, const struct unit_result *result)
{
	if (result->rows[0].n == 0)
		return HX_NOT_FOUND;
	((struct waiting *)wait)->shown++;
	wait->over = has_ended(db_cell(&result->rows[0], 0, 0)->s);
	return HX_OK;
}

static void forget(struct end_wait *wait)
{
	((struct waiting *)wait)->forgotten++;
}

static bool is_awaited(const struct end_wait *wait)
{
	return !((const struct waiting *)wait)->gone;
}

static void set_up(struct waiting *w, int64_t wait_ms)
{
	static const struct end_wait_kind kind = {read_it, show, forget, is_awaited};

	*w = (struct waiting){.shown = 0};
	end_wait_init(&w->wait, &kind, SUBJECT, TOPIC, wait_ms);
	w->wait.has_ended = has_ended;
}

static void begin(struct hand *h, struct waiting *w, int64_t wait_ms, bool begun)
{
	set_up(w, wait_ms);
	w->wait.begun = begun;
	hand_init(h, &w->wait.task);
	assert_int_equal(w->wait.task.topic, TOPIC);
	assert_int_equal(hand_start(h), begun ? ASK_SLEEP : ASK_COMMIT);
}

static bool reads(const struct hand *h)
{
	return strcmp(h->unit.lines[0].stmt->name, "subject_read") != 0;
}

/* Made just now, and somebody else is at it: a look is enough. */
static void begin_new(struct hand *h, struct waiting *w)
{
	set_up(w, 5000);
	w->wait.is_new = true;
	hand_init(h, &w->wait.task);
	assert_int_equal(hand_start(h), ASK_COMMIT);
	assert_false(reads(h));
}

static void one_that_is_new_is_looked_at(void **state)
{
	struct waiting w;
	struct hand h;

	(void)state;
	begin_new(&h, &w);
	assert_int_equal(hand_subject(&h, "busy", 1, 0), ASK_SLEEP);
	assert_int_equal(w.shown, 0);
	begin_new(&h, &w); /* it has ended meanwhile */
	assert_int_equal(hand_subject(&h, "done", 2, 0), ASK_COMMIT);
	assert_true(reads(&h));
	assert_int_equal(hand_subject(&h, "done", 2, 0), ASK_DONE);
	assert_int_equal(w.shown, 1);
	begin_new(&h, &w); /* and is gone */
	assert_int_equal(hand_no_rows(&h, 6), ASK_COMMIT);
	assert_true(reads(&h));
	assert_int_equal(hand_no_rows(&h, 5), ASK_DONE);
	assert_int_equal(h.ask.code, HX_NOT_FOUND);
}

static void ended_already(void **state)
{
	struct waiting w;
	struct hand h;

	(void)state;
	begin(&h, &w, 5000, false);
	assert_true(reads(&h));
	assert_int_equal(hand_subject(&h, "done", 4, 0), ASK_DONE);
	assert_int_equal(h.ask.code, HX_OK);
	assert_int_equal(w.shown, 1);
	assert_int_equal(w.forgotten, 0);
}

static void woken_by_its_end(void **state)
{
	struct waiting w;
	struct hand h;

	(void)state;
	begin(&h, &w, 5000, false);
	assert_int_equal(hand_subject(&h, "busy", 1, 0), ASK_SLEEP);
	assert_int_equal(w.forgotten, 1);
	assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_COMMIT);
	assert_true(reads(&h));
	assert_int_equal(hand_subject(&h, "done", 2, 0), ASK_DONE);
	assert_int_equal(w.shown, 2);
	assert_int_equal(w.forgotten, 1);
}

static void now_and_then_it_looks_at_the_status_alone(void **state)
{
	struct waiting w;
	struct hand h;

	(void)state;
	begin(&h, &w, 5000, true);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(hand_wakes_ms(&h), h.answer.now.ms + END_WAIT_LOOK_MS);
		hand_sleep_out(&h);
		assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_COMMIT);
		assert_false(reads(&h));
		assert_int_equal(hand_subject(&h, "busy", 1, 0), ASK_SLEEP);
	}
	assert_int_equal(w.shown, 0);
	hand_sleep_out(&h);
	assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_COMMIT);
	assert_int_equal(hand_subject(&h, "done", 2, 0), ASK_COMMIT);
	assert_true(reads(&h));
	assert_int_equal(hand_subject(&h, "done", 2, 0), ASK_DONE);
}

static void too_late_it_is_told_as_it_is(void **state)
{
	struct waiting w;
	struct hand h;

	(void)state;
	begin(&h, &w, 500, false);
	assert_int_equal(hand_subject(&h, "busy", 1, 0), ASK_SLEEP);
	assert_int_equal(hand_wakes_ms(&h), START_MS + 1 + 500);
	hand_sleep_out(&h);
	assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_COMMIT);
	assert_int_equal(hand_subject(&h, "busy", 1, 0), ASK_COMMIT); /* looked: now it is read */
	assert_int_equal(hand_subject(&h, "busy", 1, 0), ASK_DONE);
	assert_int_equal(h.ask.code, HX_OK);
	assert_int_equal(w.shown, 2);
	assert_int_equal(w.forgotten, 1);
	begin(&h, &w, 0, false); /* no time at all: one read */
	assert_int_equal(hand_subject(&h, "busy", 1, 0), ASK_DONE);
	assert_int_equal(w.forgotten, 0);
}

static void nobody_listens_any_more(void **state)
{
	struct waiting w;
	struct hand h;

	(void)state;
	begin(&h, &w, 5000, true);
	w.gone = true;
	hand_sleep_out(&h);
	assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_COMMIT);
	assert_int_equal(hand_subject(&h, "busy", 1, 0), ASK_COMMIT);
	assert_int_equal(hand_subject(&h, "busy", 1, 0), ASK_DONE);
}

static void the_store_may_come_back(void **state)
{
	struct waiting w;
	struct hand h;

	(void)state;
	begin(&h, &w, 1500, false);
	assert_int_equal(hand_failed(&h, HX_STORE_UNAVAILABLE), ASK_SLEEP);
	hand_sleep_out(&h);
	assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_COMMIT);
	assert_int_equal(hand_verdict(&h, UNIT_UNKNOWN), ASK_SLEEP);
	hand_sleep_out(&h);
	assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_COMMIT);
	assert_int_equal(hand_failed(&h, HX_STORE_UNAVAILABLE), ASK_DONE);
	assert_int_equal(h.ask.code, HX_STORE_UNAVAILABLE);
}

static void what_is_not_there_is_told_at_once(void **state)
{
	struct waiting w;
	struct hand h;

	(void)state;
	begin(&h, &w, 5000, false);
	assert_int_equal(hand_no_rows(&h, 5), ASK_DONE);
	assert_int_equal(h.ask.code, HX_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ended_already),
		cmocka_unit_test(one_that_is_new_is_looked_at),
		cmocka_unit_test(woken_by_its_end),
		cmocka_unit_test(now_and_then_it_looks_at_the_status_alone),
		cmocka_unit_test(too_late_it_is_told_as_it_is),
		cmocka_unit_test(nobody_listens_any_more),
		cmocka_unit_test(the_store_may_come_back),
		cmocka_unit_test(what_is_not_there_is_told_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
