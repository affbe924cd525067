/* The transition task by hand: every state, every verdict, and the truth about a commit that was lost. */
#include "unit/flow/world.h"

#include "flow/transition.h"

static const struct move move = {7, "open", "paid"};

static void begin(struct hand *h, struct transition *t, int64_t version)
{
	transition_init(t, &move, version);
	hand_init(h, &t->task);
	assert_string_equal(hand_where(h), "new");
	assert_int_equal(hand_start(h), ASK_COMMIT);
}

static void with_a_version_it_writes_at_once(void **state)
{
	struct transition t;
	struct hand h;

	(void)state;
	begin(&h, &t, 4);
	assert_string_equal(hand_where(&h), "moving");
	assert_string_equal(hand_stmt(&h), "subject_transition");
	assert_int_equal(h.unit.op, h.answer.id);
	assert_int_equal(h.unit.lines[0].params[2].i, 4);
	assert_int_equal(h.unit.lines[0].params[4].i, h.answer.now.ms);
	hand_changed(&h, 5, 0);
	hand_assert_done(&h, HX_OK);
	assert_int_equal(t.version, 5);
}

static void without_one_it_reads_first(void **state)
{
	struct transition t;
	struct hand h;

	(void)state;
	begin(&h, &t, 0);
	assert_string_equal(hand_where(&h), "reading");
	assert_string_equal(hand_stmt(&h), "subject_read");
	assert_int_equal(hand_subject(&h, "open", 9, 2), ASK_COMMIT);
	assert_string_equal(hand_stmt(&h), "subject_transition");
	assert_int_equal(h.unit.op, h.answer.id);
	assert_int_equal(h.unit.lines[0].params[2].i, 9);
	hand_changed(&h, 10, 2);
	hand_assert_done(&h, HX_OK);
	assert_int_equal(t.version, 10);
}

static void a_read_that_finds_no_way(void **state)
{
	struct transition t;
	struct hand h;

	(void)state;
	begin(&h, &t, 0);
	hand_no_rows(&h, 5);
	hand_assert_done(&h, HX_NOT_FOUND);
	begin(&h, &t, 0);
	hand_subject(&h, "paid", 9, 0);
	hand_assert_done(&h, HX_WRONG_STATUS);
	begin(&h, &t, 0);
	hand_failed(&h, HX_STORE_UNAVAILABLE);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
	begin(&h, &t, 0);
	hand_verdict(&h, UNIT_UNKNOWN); /* of a read: nothing can have happened */
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
}

static void a_write_that_is_lost_or_fails(void **state)
{
	static const struct {
		enum hx_code from_store, told;
	} failures[] = {
		{HX_DATA_ERROR, HX_DATA_ERROR},
		{HX_STORE_UNAVAILABLE, HX_STORE_UNAVAILABLE},
		{HX_CONCURRENCY_ERROR, HX_STORE_UNAVAILABLE}, /* deadlocks without end: not the caller's doing */
		{HX_NO_MEMORY, HX_STORE_UNAVAILABLE},
	};
	struct transition t;
	struct hand h;

	(void)state;
	begin(&h, &t, 4);
	hand_verdict(&h, UNIT_LOST);
	hand_assert_done(&h, HX_CONCURRENCY_ERROR);
	begin(&h, &t, 4);
	hand_verdict(&h, UNIT_REFUSED);
	hand_assert_done(&h, HX_CONCURRENCY_ERROR);
	for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
		begin(&h, &t, 4);
		hand_failed(&h, failures[i].from_store);
		hand_assert_done(&h, failures[i].told);
	}
}

static void an_unknown_commit_is_looked_up(void **state)
{
	struct transition t;
	struct hand h;
	int64_t op;

	(void)state;
	for (int i = 0; i < 4; i++) {
		begin(&h, &t, 4);
		op = h.unit.op;
		assert_int_equal(hand_verdict(&h, UNIT_UNKNOWN), ASK_COMMIT);
		assert_string_equal(hand_where(&h), "looking up its op");
		assert_string_equal(hand_stmt(&h), "subject_look_up");
		assert_int_equal(h.unit.lines[0].params[0].i, 7);
		assert_int_equal(h.unit.lines[0].params[1].i, op);
		assert_int_equal(h.unit.subjects_n, 1);
		if (i == 0) {
			hand_changed(&h, 5, 0);
			hand_assert_done(&h, HX_OK); /* it had landed */
			assert_int_equal(t.version, 5);
		} else if (i == 1) {
			hand_no_rows(&h, 2);
			hand_assert_done(&h, HX_STORE_UNAVAILABLE); /* it had not, and cannot any more */
		} else {
			hand_verdict(&h, i == 2 ? UNIT_FAILED : UNIT_UNKNOWN);
			hand_assert_done(&h, HX_OUTCOME_UNKNOWN); /* nobody to ask: it says so */
		}
	}
}

static void a_late_answer_is_recognised(void **state)
{
	struct transition t;
	struct hand h;
	uint32_t turn;

	(void)state;
	begin(&h, &t, 4);
	turn = t.task.turn;
	hand_changed(&h, 5, 0);
	assert_false(task_take(&t.task, turn, &h.answer));
	assert_int_equal(t.version, 5);
}

static void over_a_store_each_version_is_reached_once(void **state)
{
	struct world *w = *state;
	struct transition t;

	world_create(w, 7, "open");
	transition_init(&t, &move, 0);
	assert_int_equal(world_drive(w, &t.task), HX_OK);
	assert_int_equal(t.version, 2);
	transition_init(&t, &move, 0);
	assert_int_equal(world_drive(w, &t.task), HX_WRONG_STATUS);
	transition_init(&t, &move, 1);
	assert_int_equal(world_drive(w, &t.task), HX_CONCURRENCY_ERROR);
	transition_init(&t, &(struct move){8, "open", "paid"}, 0);
	assert_int_equal(world_drive(w, &t.task), HX_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_a_version_it_writes_at_once),
		cmocka_unit_test(without_one_it_reads_first),
		cmocka_unit_test(a_read_that_finds_no_way),
		cmocka_unit_test(a_write_that_is_lost_or_fails),
		cmocka_unit_test(an_unknown_commit_is_looked_up),
		cmocka_unit_test(a_late_answer_is_recognised),
		cmocka_unit_test_setup_teardown(over_a_store_each_version_is_reached_once, world_set_up,
						world_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
