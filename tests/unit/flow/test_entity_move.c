/* A step without a claim by hand: every state, every verdict, and the truth about a commit that was lost. */
#include "unit/flow/invoice.h"

#include "support/must_hold.h"

static void begin(struct hand *h, struct entity_step *t, int64_t version)
{
	static struct step_request rq;

	rq = pay;
	rq.version = version;
	begin_with(h, t, &rq);
}

/* Of version 4, whether that is wanted or not. */
static void begin_moving(struct hand *h, struct entity_step *t, int64_t version)
{
	begin(h, t, version);
	assert_int_equal(hand_entity(h, "open", 4, 0), ASK_COMMIT);
	assert_string_equal(hand_where(h), "finishing");
	assert_string_equal(hand_stmt(h), "subject_transition");
}

static void with_a_version_it_writes_over_that_one_alone(void **state)
{
	struct entity_step t;
	struct hand h;

	(void)state;
	begin_moving(&h, &t, 4);
	assert_int_equal(h.unit.op, h.answer.id);
	assert_int_equal(h.unit.lines[0].params[2].i, 4);
	assert_int_equal(h.unit.lines[0].params[4].i, h.answer.now.ms);
	hand_changed(&h, 5, 0);
	hand_assert_done(&h, HX_OK);
	assert_int_equal(t.version, 5);
	begin(&h, &t, 5);
	hand_entity(&h, "open", 4, 0);
	hand_assert_done(&h, HX_CONCURRENCY_ERROR);
}

static void without_one_it_takes_what_it_reads(void **state)
{
	struct entity_step t;
	struct hand h;

	(void)state;
	begin(&h, &t, 0);
	assert_string_equal(hand_where(&h), "reading");
	assert_int_equal(hand_entity(&h, "open", 9, 2), ASK_COMMIT);
	assert_string_equal(hand_stmt(&h), "subject_transition");
	assert_int_equal(h.unit.op, h.answer.id);
	assert_int_equal(h.unit.lines[0].params[2].i, 9);
	hand_changed(&h, 10, 2);
	hand_assert_done(&h, HX_OK);
	assert_int_equal(t.version, 10);
	assert_string_equal(t.status, "paid");
}

static void a_read_that_finds_no_way(void **state)
{
	struct entity_step t;
	struct hand h;

	(void)state;
	begin(&h, &t, 0);
	hand_no_rows(&h, ENTITY_COLUMNS);
	hand_assert_done(&h, HX_NOT_FOUND);
	begin(&h, &t, 0);
	hand_entity(&h, "paid", 9, 0);
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
		{HX_DATA_ERROR, HX_ACTION_FAILED},
		{HX_STORE_UNAVAILABLE, HX_STORE_UNAVAILABLE},
		{HX_CONCURRENCY_ERROR, HX_STORE_UNAVAILABLE}, /* deadlocks without end: not the caller's doing */
		{HX_NO_MEMORY, HX_STORE_UNAVAILABLE},
	};
	struct entity_step t;
	struct hand h;

	(void)state;
	begin_moving(&h, &t, 4);
	hand_verdict(&h, UNIT_LOST);
	hand_assert_done(&h, HX_CONCURRENCY_ERROR);
	for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
		begin_moving(&h, &t, 4);
		hand_failed(&h, failures[i].from_store);
		hand_assert_done(&h, failures[i].told);
	}
}

static void an_unknown_commit_is_looked_up(void **state)
{
	struct entity_step t;
	struct hand h;
	int64_t op;

	(void)state;
	for (int i = 0; i < 4; i++) {
		begin_moving(&h, &t, 4);
		op = h.unit.op;
		assert_int_equal(hand_verdict(&h, UNIT_UNKNOWN), ASK_COMMIT);
		assert_string_equal(hand_where(&h), "looking up its finish");
		assert_string_equal(hand_stmt(&h), "subject_look_up");
		assert_int_equal(h.unit.lines[0].params[0].i, 7);
		assert_int_equal(h.unit.lines[0].params[1].i, op);
		assert_int_equal(h.unit.subjects_n, 1);
		if (i == 0) {
			hand_changed(&h, 5, 0);
			hand_assert_done(&h, HX_OK); /* it had landed */
			assert_int_equal(t.version, 5);
		} else if (i == 1) {
			assert_int_equal(hand_no_rows(&h, 2), ASK_COMMIT); /* it had not, and cannot any more: again */
			assert_string_equal(hand_stmt(&h), "subject_transition");
			assert_int_not_equal(h.unit.op, op);
		} else {
			hand_verdict(&h, i == 2 ? UNIT_FAILED : UNIT_UNKNOWN);
			hand_assert_done(&h, HX_OUTCOME_UNKNOWN); /* nobody to ask: it says so */
		}
	}
}

static void a_late_answer_is_recognised(void **state)
{
	struct entity_step t;
	struct hand h;
	uint32_t turn;

	(void)state;
	begin_moving(&h, &t, 4);
	turn = t.task.turn;
	hand_changed(&h, 5, 0);
	assert_false(task_take(&t.task, turn, &h.answer));
	assert_int_equal(t.version, 5);
}

static enum hx_code drive(struct world *w, const char *name, int64_t version, struct entity_step *t)
{
	struct step_request rq = pay;

	rq.ref.name = slice_str(name);
	rq.version = version;
	entity_step_init(t, &rq, &arena);
	return world_drive(w, &t->task);
}

static void over_a_store_each_version_is_reached_once(void **state)
{
	struct entity_step t;
	struct stamp stamp;
	struct world *w;

	assert_int_equal(world_set_up(state), 0);
	w = *state;
	stamp = world_begin(w);
	entity_create(&w->unit, &stamp, &pay.ref, /* subject= */ 7, slice_str("{}"), slice_of(NULL, 0));
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(drive(w, "e7", 2, &t), HX_CONCURRENCY_ERROR);
	assert_int_equal(drive(w, "e7", 0, &t), HX_OK);
	assert_int_equal(t.version, 2);
	assert_int_equal(drive(w, "e7", 0, &t), HX_WRONG_STATUS);
	assert_int_equal(drive(w, "e8", 0, &t), HX_NOT_FOUND);
	world_tear_down(state);
}

static const struct workflow *same_workflow(const void *context, struct slice workflow, int64_t version)
{
	(void)workflow, (void)version;
	return context;
}

/* A version before this one may have made it a call: nobody would notice, since nothing is written down before a move. */
static void a_move_of_a_later_version_looks_first(void **state)
{
	struct step_request rq = pay;
	struct entity_step t;
	struct hand h;

	(void)state;
	rq.ref.machine = entity_machine_new(pay.ref.machine->workflow, /* version= */ 2, /* table= */ NULL, &arena);
	rq.workflow_of = same_workflow;
	rq.context = pay.ref.machine->workflow;
	entity_step_init(&t, &rq, &arena);
	hand_init(&h, &t.task);
	assert_int_equal(hand_start(&h), ASK_COMMIT);
	MUST_HOLD(strcmp(hand_stmt(&h), "entity_read") == 0, "what is kept of a step is not looked for");
	assert_int_equal(hand_entity_called(&h, "open", 9, 2, "pay", "{}"), ASK_COMMIT);
	MUST_HOLD(strcmp(hand_stmt(&h), "kept_call_answered") == 0,
		  "what was never sent is made another call under its key");
	assert_int_equal(hand_verdict(&h, UNIT_WON), ASK_COMMIT);
	assert_string_equal(hand_where(&h), "reading");
	assert_int_equal(hand_entity(&h, "open", 9, 2), ASK_COMMIT);
	assert_string_equal(hand_stmt(&h), "subject_transition");
}

/* In "done" the step of this name calls nobody: that a call of it from "open" is in doubt is nothing to it. */
static void what_another_step_of_its_name_calls_is_not_sent(void **state)
{
	struct db_value cells[ENTITY_COLUMNS] = {
		[ENTITY_SUBJECT] = db_int(7),
		[ENTITY_STATUS] = db_str("done"),
		[ENTITY_VERSION] = db_int(9),
		[ENTITY_FENCE] = db_int(2),
		[ENTITY_EFFORT] = db_int(EFFORT),
		[ENTITY_DATA] = db_str("{}"),
		[ENTITY_NAME] = db_str("e7"),
		[ENTITY_WORKSPACE] = db_str("default"),
		[ENTITY_DOUBT] = db_int(0),
		[ENTITY_KEPT_STEP] = db_str("knock"),
		[ENTITY_KEPT_FROM] = db_str("open"),
		[ENTITY_KEPT_REQUESTER] = db_str("default"),
		[ENTITY_KEPT_INPUT] = db_str("{}"),
		[ENTITY_KEPT_EFFORT] = db_int(EFFORT - 1),
		[ENTITY_KEPT_ADDRESS] = db_str("http://127.0.0.1:1/charge"),
		[ENTITY_KEPT_VERSION] = db_int(1),
		[ENTITY_KEPT_DATA] = db_str("{}"),
	};
	struct step_request rq = pay;
	struct entity_step t;
	struct hand h;

	(void)state;
	rq.step_key = slice_str("knock");
	for (int same_key = 0; same_key <= 1; same_key++) {
		entity_step_init(&t, &rq, &arena);
		hand_init(&h, &t.task);
		assert_int_equal(hand_start(&h), ASK_COMMIT);
		MUST_HOLD(strcmp(hand_stmt(&h), "entity_read") == 0,
			  "what another status has it call is not looked for");
		cells[ENTITY_KEPT_EFFORT] = db_int(EFFORT - 1 + same_key);
		hand_rows(&h, 1, ENTITY_COLUMNS, cells);
		if (same_key) {
			hand_assert_done(&h, HX_IN_DOUBT);
			continue;
		}
		MUST_HOLD(h.ask.kind == ASK_COMMIT && strcmp(hand_stmt(&h), "subject_transition") == 0,
			  "what another step has begun is sent for this one, or keeps it from being done");
	}
}

/* ---- a call is written down before it is made ---- */

static void begin_noting(struct hand *h, struct entity_step *t)
{
	static struct step_request rq;

	rq = pay;
	rq.step_key = slice_str("ping");
	begin_with(h, t, &rq);
	assert_int_equal(hand_entity(h, "open", 4, 0), ASK_COMMIT);
	assert_string_equal(hand_where(h), "writing its call down");
	assert_string_equal(hand_stmt(h), "kept_call_note");
}

/* It was done, and that has to be written down under its key: the caller is told so. */
static void a_call_that_was_done_and_not_written_down(void **state)
{
	struct entity_step t;
	struct hand h;

	(void)state;
	begin_noting(&h, &t);
	assert_int_equal(hand_verdict(&h, UNIT_WON), ASK_ACT);
	assert_int_equal(hand_acted(&h, ACT_OK), ASK_COMMIT);
	assert_string_equal(hand_where(&h), "finishing");
	hand_verdict(&h, UNIT_LOST);
	hand_assert_done(&h, HX_CONCURRENCY_ERROR);
	assert_non_null(memmem(t.output.p, t.output.n, "the call was done", 17));
}

static void begin_looking_for_the_note(struct hand *h, struct entity_step *t)
{
	int64_t op;

	begin_noting(h, t);
	op = h->unit.op;
	hand_verdict(h, UNIT_UNKNOWN);
	assert_string_equal(hand_stmt(h), "kept_call_look_up");
	assert_int_equal(h->unit.lines[0].params[1].i, op);
}

static void a_note_that_is_not_written_leaves_nothing(void **state)
{
	struct entity_step t;
	struct hand h;

	(void)state;
	begin_noting(&h, &t);
	hand_failed(&h, HX_STORE_UNAVAILABLE);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
}

static void a_note_whose_commit_was_lost_is_looked_up(void **state)
{
	struct db_value there = db_int(7);
	struct entity_step t;
	struct hand h;

	(void)state;
	begin_looking_for_the_note(&h, &t);
	assert_int_equal(hand_rows(&h, 1, 1, &there), ASK_ACT);
	begin_looking_for_the_note(&h, &t);
	assert_int_equal(hand_no_rows(&h, 1), ASK_COMMIT); /* it did not land */
	assert_string_equal(hand_stmt(&h), "kept_call_note");
}

/* Nothing was called; and yet whoever comes next with another input is refused, so 503 would not be the truth. */
static void a_note_that_nobody_can_be_asked_about(void **state)
{
	struct entity_step t;
	struct hand h;

	(void)state;
	begin_looking_for_the_note(&h, &t);
	hand_failed(&h, HX_STORE_UNAVAILABLE);
	hand_assert_done(&h, HX_OUTCOME_UNKNOWN);
	assert_non_null(memmem(t.output.p, t.output.n, "nothing was called", 18));
	begin_looking_for_the_note(&h, &t);
	hand_no_rows(&h, 1);
	hand_failed(&h, HX_STORE_UNAVAILABLE); /* others may have written over the first one since */
	hand_assert_done(&h, HX_OUTCOME_UNKNOWN);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_a_version_it_writes_over_that_one_alone),
		cmocka_unit_test(without_one_it_takes_what_it_reads),
		cmocka_unit_test(a_read_that_finds_no_way),
		cmocka_unit_test(a_write_that_is_lost_or_fails),
		cmocka_unit_test(an_unknown_commit_is_looked_up),
		cmocka_unit_test(a_late_answer_is_recognised),
		cmocka_unit_test(over_a_store_each_version_is_reached_once),
		cmocka_unit_test(a_move_of_a_later_version_looks_first),
		cmocka_unit_test(what_another_step_of_its_name_calls_is_not_sent),
		cmocka_unit_test(a_call_that_was_done_and_not_written_down),
		cmocka_unit_test(a_note_that_is_not_written_leaves_nothing),
		cmocka_unit_test(a_note_whose_commit_was_lost_is_looked_up),
		cmocka_unit_test(a_note_that_nobody_can_be_asked_about),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, make_workflow, drop_workflow);
}
