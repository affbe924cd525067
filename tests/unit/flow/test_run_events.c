/*
 * What a run waits for from outside, over a real store: events before, during and after their wait, and the word of a person. See
 * test_run_verb.c.
 */
#include "unit/flow/run_verbs.h"

static void an_event_before_during_and_after_its_wait(void **state)
{
	struct world *w = *state;
	static const char one[] = "event/e1 = event payment {\"n\":1}";
	struct run_verb v;

	put(w, "PENDING", "", ", due_at = 1", "");
	v = send_event(w, "payment", "e1", HX_OK);
	assert_true(v.changed && !v.duplicate);
	assert_is(w, &stmt_events, one);
	assert_is(w, &stmt_run, "PENDING v6, step 0 attempt 0 redo 0 due");
	put(w, "RUNNING", OWNED, "", "");
	(void)send_event(w, "payment", "e1", HX_OK);
	assert_is(w, &stmt_run, "RUNNING v6 owned, step 0 attempt 0 redo 0");
	put(w, "WAITING", "", ", attempt = 1, due_at = 9000000", ""); /* another step's backoff */
	(void)send_event(w, "payment", "e1", HX_OK);
	assert_is(w, &stmt_run, "WAITING v6, step 0 attempt 1 redo 0 due later");
	put(w, "WAITING", "", ", at_step = 1, awaits = 'event payment', due_at = 9000000, wait_until = 9000000",
	    STEP_A);
	(void)send_event(w, "payment", "e1", HX_OK);
	assert_is(w, &stmt_events, one);
	assert_is(w, &stmt_run, "WAITING v6, step 1 attempt 0 redo 0 awaits event payment waits due");
	put(w, "PAUSED", "", ", at_step = 1, awaits = 'event payment'", STEP_A);
	(void)send_event(w, "payment", "e1", HX_OK);
	assert_is(w, &stmt_run, "PAUSED v6, step 1 attempt 0 redo 0 awaits event payment");
	put(w, "WAITING", "", ", at_step = 2, awaits = 'approval ok'", STEP_A STEP_PAID);
	(void)send_event(w, "payment", "e1", HX_WRONG_STATUS);
	assert_is(w, &stmt_events, "");
	static const char *const past[] = {"COMPLETED", "FAILED", "CANCELLING", "CANCELLED"};

	for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
		put(w, past[i], "", "", "");
		(void)send_event(w, "payment", "e1", HX_WRONG_STATUS);
		assert_is(w, &stmt_events, "");
	}
	put(w, "PENDING", "", "", "");
	(void)send_event(w, "refund", "e1", HX_NOT_FOUND);
	(void)send_event(w, "approval ok", "e1", HX_NOT_FOUND);
}

static void an_event_is_taken_in_once(void **state)
{
	struct world *w = *state;
	struct run_verb v;

	put(w, "PENDING", "", "", "");
	(void)send_event(w, "payment", "e1", HX_OK);
	v = send_event(w, "payment", "e1", HX_OK);
	assert_true(v.duplicate && !v.changed);
	assert_is(w, &stmt_run, "PENDING v6, step 0 attempt 0 redo 0");
	(void)send_event(w, "payment", "e2", HX_OK);
	assert_is(w, &stmt_events, "event/e1 = event payment {\"n\":1}, event/e2 = event payment {\"n\":1}");
	script(w, "UPDATE hx_subject SET status = 'COMPLETED' WHERE id = 77"); /* also when all is over */
	v = send_event(w, "payment", "e2", HX_OK);
	assert_true(v.duplicate);
	put(w, "PENDING", "", "", "");
	(void)send_event(w, "payment", "", HX_OK); /* without an id each is another one */
	(void)send_event(w, "payment", "", HX_OK);
	assert_is(w, &stmt_run, "PENDING v7, step 0 attempt 0 redo 0");
	put(w, "WAITING", "", ", at_step = 2, awaits = 'approval ok'", STEP_A STEP_PAID);
	(void)send_event(w, "payment", "approval/ok/0", HX_WRONG_STATUS);
}

static void a_run_takes_a_bounded_number_of_events(void **state)
{
	struct world *w = *state;

	put(w, "PENDING", "", "",
	    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999)"
	    " INSERT INTO hx_run_event SELECT 77, 'event/n' || i, 'event payment', '1', 1, NULL FROM n");
	(void)send_event(w, "payment", "last", HX_OK);
	(void)send_event(w, "payment", "more", HX_TOO_LARGE);
	assert_true(send_event(w, "payment", "last", HX_OK).duplicate);
}

static void approve(void **state)
{
	static const struct {
		const char *status, *run, *more, *name;
		enum hx_code code;
		const char *wanted;
	} cases[] = {
#define AT_OK ", at_step = 2, awaits = 'approval ok'"
		{"WAITING", AT_OK, STEP_A STEP_PAID, "ok", HX_OK,
		 "WAITING v6, step 2 attempt 0 redo 0 awaits approval ok due"},
		{"PENDING", AT_OK, STEP_A STEP_PAID, "ok", HX_OK,
		 "PENDING v6, step 2 attempt 0 redo 0 awaits approval ok due"},
		{"PAUSED", AT_OK, STEP_A STEP_PAID, "ok", HX_OK,
		 "PAUSED v6, step 2 attempt 0 redo 0 awaits approval ok"},
		{"WAITING", AT_OK, STEP_A STEP_PAID, "b", HX_NOT_FOUND, NULL},
		{"WAITING", AT_OK, STEP_A STEP_PAID, "c", HX_NOT_FOUND, NULL},
		{"CANCELLING", AT_OK, STEP_A STEP_PAID, "ok", HX_WRONG_STATUS, NULL},
		{"FAILED", AT_OK, STEP_A STEP_PAID, "ok", HX_WRONG_STATUS, NULL},
		{"WAITING", ", at_step = 1, awaits = 'event payment'", STEP_A, "ok", HX_WRONG_STATUS, NULL},
		{"PENDING", "", STEP_A STEP_PAID, "ok", HX_WRONG_STATUS, NULL},
		/* It is past: what stands in the row is of a step before. */
		{"RUNNING", AT_OK,
		 STEP_A STEP_PAID
		 "INSERT INTO hx_run_step (run, position, status, attempt, output, started_at, completed_at, undone_at) VALUES (77, 2, 'COMPLETED', 1, '{}', 1, 2, NULL);",
		 "ok", HX_WRONG_STATUS, NULL},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct run_verb_request rq = request(RUN_APPROVE);
		struct run_verb v;

		put(w, cases[i].status, "", cases[i].run, cases[i].more);
		rq.name = slice_str(cases[i].name);
		rq.data = slice_str("{\"decision\":\"approve\"}");
		assert_string_equal(hx_code_name(drive_rq(w, &v, &rq)), hx_code_name(cases[i].code));
		assert_is(w, &stmt_events,
			  cases[i].wanted ? "approval/ok/0 = approval ok {\"decision\":\"approve\"}" : "");
		if (!cases[i].wanted)
			continue;
		assert_is(w, &stmt_run, cases[i].wanted);
		rq.data = slice_str("{\"decision\":\"reject\"}");
		assert_int_equal(drive_rq(w, &v, &rq), HX_WRONG_STATUS);
		assert_string_equal(v.detail, "it has been decided already");
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(an_event_before_during_and_after_its_wait),
		TEST(an_event_is_taken_in_once),
		TEST(a_run_takes_a_bounded_number_of_events),
		TEST(approve),
	};

	return cmocka_run_group_tests(tests, parse, forget);
}
