/*
 * The verbs of a run over a real store: each from every status, what it writes, and what happens when somebody else is
 * faster or the answer is lost. Rows are put as the driver would leave them; together with it they are explored in
 * tests/sim/test_run.c.
 */
#include "unit/flow/run_verbs.h"

struct shift {
	const char *status, *subject, *run, *more;
	enum hx_code code;
	const char *wanted; /* NULL: nothing changes */
};

static void check_shifts(struct world *w, enum run_verb_kind kind, const struct shift *shifts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct shift *s = &shifts[i];
		struct run_verb v;

		put(w, s->status, s->subject, s->run, s->more);
		v = fire(w, kind, s->code);
		assert_int_equal(v.changed, s->wanted != NULL);
		assert_is(w, &stmt_history, s->wanted ? "2" : "1");
		if (s->wanted) {
			assert_is(w, &stmt_run, s->wanted);
			assert_int_equal(v.version, VERSION + 1);
			assert_int_equal(strncmp(v.status, s->wanted, strlen(v.status)), 0);
		} else {
			assert_int_equal(v.version, VERSION);
			assert_string_equal(v.status, s->status);
		}
	}
}

static void cancel(void **state)
{
	static const struct shift shifts[] = {
		/* Nothing is done, in doubt or under way: over at once. */
		{"PENDING", "", ", due_at = 1", "", HX_OK, "CANCELLED v6, step 0 attempt 0 redo 0 ended"},
		{"WAITING", "", ", due_at = 9000000, wait_until = 9000000, attempt = 1", "", HX_OK,
		 "CANCELLED v6, step 0 attempt 1 redo 0 ended"},
		{"WAITING", "", ", at_step = 1, awaits = 'event payment'",
		 "INSERT INTO hx_run_step (run, position, status, attempt, output, started_at, completed_at, undone_at) VALUES (77, 0, 'COMPLETED', 1, '1', 1, 2, 3)",
		 HX_OK, "CANCELLED v6, step 1 attempt 0 redo 0 ended"},
		{"PAUSED", "", "", "", HX_OK, "CANCELLED v6, step 0 attempt 0 redo 0 ended"},
		{"FAILED", "", ", step_status = 'FAILED', completed_at = 8, error = '{}'", "", HX_OK,
		 "CANCELLED v6, step 0 attempt 0 redo 0 FAILED ended error"},
		/* Something is done, or may be: somebody has to look after it. */
		{"RUNNING", OWNED, ", attempt = 1", "", HX_OK, "CANCELLING v6 owned, step 0 attempt 1 redo 0"},
		{"PAUSED", OWNED, ", attempt = 1", "", HX_OK, "CANCELLING v6 owned, step 0 attempt 1 redo 0"},
		{"WAITING", "", ", at_step = 1, awaits = 'event payment', wait_until = 5", STEP_A, HX_OK,
		 "CANCELLING v6, step 1 attempt 0 redo 0 due"},
		{"FAILED", "", ", at_step = 1, step_status = 'FAILED', completed_at = 8", STEP_A, HX_OK,
		 "CANCELLING v6, step 1 attempt 0 redo 0 FAILED due"},
		{"WAITING", ", doubt = 1", ", attempt = 1, due_at = 9000000", "", HX_OK,
		 "CANCELLING v6 doubt, step 0 attempt 1 redo 0 due"},
		{"RUNNING", "", ", awaits = 'job', job = 9", A_JOB, HX_OK,
		 "CANCELLING v6, step 0 attempt 0 redo 0 awaits job job 9 due"},
		{"PAUSED", "", ", awaits = 'job', job = 9", A_JOB, HX_OK,
		 "CANCELLING v6, step 0 attempt 0 redo 0 awaits job job 9 due"},
		/* What is held is still a person's to tell, unless it could not be undone: whoever drives it knows. */
		{"WAITING", ", doubt = 1", ", step_status = 'UNKNOWN', awaits = 'person'", "", HX_OK,
		 "CANCELLING v6 doubt, step 0 attempt 0 redo 0 UNKNOWN awaits person due"},
		/* Once is enough. */
		{"CANCELLING", "", "", STEP_A, HX_OK, NULL},
		{"CANCELLED", "", "", "", HX_OK, NULL},
		{"COMPLETED", "", "", STEP_A, HX_ALREADY_COMPLETED, NULL},
	};

	check_shifts(*state, RUN_CANCEL, shifts, sizeof shifts / sizeof *shifts);
}

static void pause(void **state)
{
	static const struct shift shifts[] = {
		{"PENDING", "", ", due_at = 1", "", HX_OK, "PAUSED v6, step 0 attempt 0 redo 0"},
		{"WAITING", "", ", at_step = 2, awaits = 'approval ok', wait_until = 7, due_at = 7", STEP_A STEP_PAID,
		 HX_OK, "PAUSED v6, step 2 attempt 0 redo 0 awaits approval ok waits"},
		{"RUNNING", OWNED, "", "", HX_OK, "PAUSED v6 owned, step 0 attempt 0 redo 0"},
		{"RUNNING", "", ", awaits = 'job', job = 9", A_JOB, HX_OK,
		 "PAUSED v6, step 0 attempt 0 redo 0 awaits job job 9"},
		{"PAUSED", "", "", "", HX_OK, NULL},
		{"COMPLETED", "", "", "", HX_WRONG_STATUS, NULL},
		{"FAILED", "", "", "", HX_WRONG_STATUS, NULL},
		{"CANCELLING", "", "", "", HX_WRONG_STATUS, NULL},
		{"CANCELLED", "", "", "", HX_WRONG_STATUS, NULL},
	};

	check_shifts(*state, RUN_PAUSE, shifts, sizeof shifts / sizeof *shifts);
}

static void resume(void **state)
{
	static const struct shift shifts[] = {
		{"PAUSED", "", "", "", HX_OK, "PENDING v6, step 0 attempt 0 redo 0 due"},
		{"PAUSED", "", ", at_step = 2, awaits = 'approval ok', wait_until = 7", STEP_A STEP_PAID, HX_OK,
		 "PENDING v6, step 2 attempt 0 redo 0 awaits approval ok waits due"},
		{"PAUSED", OWNED, ", attempt = 1", "", HX_OK, "RUNNING v6 owned, step 0 attempt 1 redo 0"},
		/* The worker may have ended it since it was read: looked at in any case. */
		{"PAUSED", "", ", awaits = 'job', job = 9", A_JOB, HX_OK,
		 "RUNNING v6, step 0 attempt 0 redo 0 awaits job job 9 due"},
		/* The worker has ended it while the run was paused: nobody else will make it due. */
		{"PAUSED", "", ", awaits = 'job', job = 9",
		 A_JOB "UPDATE hx_subject SET status = 'COMPLETED' WHERE id = 9", HX_OK,
		 "RUNNING v6, step 0 attempt 0 redo 0 awaits job job 9 due"},
		{"PAUSED", ", doubt = 1", ", step_status = 'UNKNOWN', awaits = 'person'", "", HX_OK,
		 "WAITING v6 doubt, step 0 attempt 0 redo 0 UNKNOWN awaits person"},
		{"PENDING", "", "", "", HX_WRONG_STATUS, NULL},
		{"RUNNING", OWNED, "", "", HX_WRONG_STATUS, NULL},
		{"CANCELLING", "", "", "", HX_WRONG_STATUS, NULL},
	};

	check_shifts(*state, RUN_RESUME, shifts, sizeof shifts / sizeof *shifts);
}

static void retry(void **state)
{
	static const struct shift shifts[] = {
		{"FAILED", "", ", attempt = 3, redo = 1, step_status = 'FAILED', completed_at = 8, error = '{}'", "",
		 HX_OK, "PENDING v6, step 0 attempt 0 redo 2 due"},
		/* What may have been done keeps its key. */
		{"FAILED", ", doubt = 1", ", attempt = 3, redo = 1, step_status = 'FAILED', completed_at = 8", "",
		 HX_OK, "PENDING v6 doubt, step 0 attempt 0 redo 1 due"},
		{"FAILED", "", ", at_step = 3, attempt = 3, job = 9, completed_at = 8",
		 STEP_A STEP_PAID
		 "INSERT INTO hx_run_step (run, position, status, attempt, output, started_at, completed_at, undone_at) VALUES (77, 2, 'COMPLETED', 1, '{}', 1, 2, NULL);",
		 HX_OK, "PENDING v6, step 3 attempt 0 redo 1 due"},
		{"CANCELLING", "", ", undo = 0, attempt = 3, step_status = 'FAILED', awaits = 'person', error = '{}'",
		 STEP_A, HX_OK, "CANCELLING v6, step 1 attempt 0 redo 0 undo 0 due"},
		/* It is a step that has failed, before the cancel; its compensation is under way. */
		{"CANCELLING", OWNED, ", undo = 0, attempt = 1, step_status = 'FAILED'", STEP_A, HX_WRONG_STATUS, NULL},
		{"CANCELLING", "", ", undo = 0, attempt = 1, due_at = 9000000", STEP_A, HX_WRONG_STATUS, NULL},
		{"CANCELLING", "", ", step_status = 'FAILED'", "", HX_WRONG_STATUS, NULL},
		/* The word of the step that failed before the cancel: its compensations are still under way. */
		{"CANCELLING", "", ", undo = 0, attempt = 1, step_status = 'FAILED', due_at = 9000000", STEP_A,
		 HX_WRONG_STATUS, NULL},
		{"PENDING", "", "", "", HX_WRONG_STATUS, NULL},
		{"COMPLETED", "", "", "", HX_WRONG_STATUS, NULL},
		{"CANCELLED", "", "", "", HX_WRONG_STATUS, NULL},
	};

	check_shifts(*state, RUN_RETRY, shifts, sizeof shifts / sizeof *shifts);
}

static void a_rejected_approval_is_decided_anew_after_a_retry(void **state)
{
	struct world *w = *state;
	struct run_verb_request rq = request(RUN_APPROVE);
	struct run_verb v;

	put(w, "FAILED", "", ", at_step = 2, step_status = 'FAILED', completed_at = 8",
	    STEP_A STEP_PAID "INSERT INTO hx_run_event VALUES (77, 'approval/ok/0', 'approval ok', '\"no\"', 1, 2)");
	(void)fire(w, RUN_RETRY, HX_OK);
	assert_is(w, &stmt_events, "approval/ok/0 = approval ok \"no\" taken by 2");
	script(w, "UPDATE hx_subject SET status = 'WAITING' WHERE id = 77;"
		  "UPDATE hx_run SET awaits = 'approval ok', due_at = NULL");
	rq.name = slice_str("ok");
	rq.data = slice_str("\"yes\"");
	assert_int_equal(drive_rq(w, &v, &rq), HX_OK);
	assert_is(w, &stmt_events,
		  "approval/ok/0 = approval ok \"no\" taken by 2, approval/ok/1 = approval ok \"yes\"");
	assert_is(w, &stmt_run, "WAITING v7, step 2 attempt 0 redo 1 awaits approval ok due");
}

/* ---- resolve ---- */

static void resolve(void **state)
{
#define HELD ", attempt = 2, redo = 1, step_started_at = 3, step_status = 'UNKNOWN', awaits = 'person', error = '{}'"
	static const struct {
		const char *status, *run, *more, *name;
		bool done;
		enum hx_code code;
		const char *wanted, *steps;
	} cases[] = {
		{"WAITING", HELD, "", "a", true, HX_OK, "PENDING v6, step 0 attempt 0 redo 1 due",
		 "0 COMPLETED {\"x\":1}"},
		{"WAITING", HELD, "", "a", false, HX_OK, "PENDING v6, step 0 attempt 0 redo 1 due", ""},
		{"PAUSED", HELD, "", "a", true, HX_OK, "PAUSED v6, step 0 attempt 0 redo 1", "0 COMPLETED {\"x\":1}"},
		{"CANCELLING", HELD, "", "a", true, HX_OK, "CANCELLING v6, step 0 attempt 0 redo 1 due",
		 "0 COMPLETED {\"x\":1}"},
		{"CANCELLING", HELD, "", "a", false, HX_OK, "CANCELLING v6, step 0 attempt 0 redo 1 due", ""},
		/* a compensation */
		{"CANCELLING", HELD ", undo = 0", STEP_A, "a", true, HX_OK,
		 "CANCELLING v6, step 1 attempt 0 redo 1 due", "0 COMPLETED 1 undone"},
		{"CANCELLING", HELD ", undo = 0", STEP_A, "a", false, HX_OK,
		 "CANCELLING v6, step 1 attempt 0 redo 1 undo 0 due", "0 COMPLETED 1"},
		{"CANCELLING", HELD ", undo = 0", STEP_A, "paid", true, HX_WRONG_STATUS, NULL, "0 COMPLETED 1"},
		{"WAITING", HELD, "", "b", true, HX_WRONG_STATUS, NULL, ""},
		{"WAITING", HELD, "", "zz", true, HX_NOT_FOUND, NULL, ""},
		{"WAITING", ", attempt = 2, due_at = 9000000", "", "a", true, HX_WRONG_STATUS, NULL, ""},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct run_verb_request rq = request(RUN_RESOLVE);
		struct run_verb v;

		put(w, cases[i].status, ", doubt = 1", cases[i].run, cases[i].more);
		rq.name = slice_str(cases[i].name);
		rq.done = cases[i].done;
		rq.data = slice_str("{\"x\":1}");
		assert_string_equal(hx_code_name(drive_rq(w, &v, &rq)), hx_code_name(cases[i].code));
		assert_is(w, &stmt_steps, cases[i].steps);
		if (cases[i].wanted)
			assert_is(w, &stmt_run, cases[i].wanted);
	}
}

/* ---- what all of them share ---- */

static void what_cannot_be_read_is_refused(void **state)
{
	struct world *w = *state;
	struct run_verb_request rq = request(RUN_CANCEL);
	struct run_verb v;

	put(w, "PENDING", "", "", "");
	rq.subject = RUN + 1;
	assert_int_equal(drive_rq(w, &v, &rq), HX_NOT_FOUND);
	rq.subject = RUN;
	rq.workspace = slice_str("other");
	assert_int_equal(drive_rq(w, &v, &rq), HX_NOT_FOUND);
	put(w, "COMPLETED", "", ", expired = 1", "");
	(void)fire(w, RUN_CANCEL, HX_RUN_EXPIRED);
	(void)send_event(w, "payment", "e", HX_RUN_EXPIRED);
	put(w, "PENDING", "", ", definition_version = 4", "");
	(void)fire(w, RUN_CANCEL, HX_CONFIG_ERROR);
}

/* Raises the version as somebody else's move would. */
#define BUMP "UPDATE hx_subject SET version = version + 1 WHERE id = 77;"

static void with_a_version_the_loser_is_told(void **state)
{
	struct world *w = *state;
	struct run_verb_request rq = request(RUN_PAUSE);
	struct run_verb v;

	put(w, "PENDING", "", "", "");
	rq.version = VERSION - 1;
	assert_int_equal(drive_rq(w, &v, &rq), HX_CONCURRENCY_ERROR);
	rq.version = VERSION;
	assert_int_equal(drive(w, &v, &rq, (struct trouble){.script = BUMP}), HX_CONCURRENCY_ERROR);
	assert_is(w, &stmt_run, "PENDING v6, step 0 attempt 0 redo 0");
	rq.version = VERSION + 1;
	assert_int_equal(drive_rq(w, &v, &rq), HX_OK);
	assert_int_equal(v.version, VERSION + 2);
}

static void without_one_it_is_decided_again_by_what_is_there_now(void **state)
{
	struct world *w = *state;
	struct run_verb_request rq = request(RUN_CANCEL);
	struct run_verb v;

	put(w, "PENDING", "", "", "");
	assert_int_equal(drive(w, &v, &rq, (struct trouble){.script = BUMP STEP_A}), HX_OK);
	assert_is(w, &stmt_run, "CANCELLING v7, step 0 attempt 0 redo 0 due");
	put(w, "RUNNING", OWNED, "", "");
	assert_int_equal(
		drive(w, &v, &rq,
		      (struct trouble){.script = BUMP "UPDATE hx_subject SET status = 'COMPLETED', owner = NULL,"
						      " until = NULL WHERE id = 77"}),
		HX_ALREADY_COMPLETED);
	assert_is(w, &stmt_run, "COMPLETED v6, step 0 attempt 0 redo 0");
}

/* A run that moves fast must not keep callers from ever getting in. */
static void a_run_that_is_held_is_cancelled_whatever_its_version_is(void **state)
{
	struct world *w = *state;
	struct run_verb_request rq = request(RUN_CANCEL);
	struct run_verb v;

	put(w, "RUNNING", OWNED, "", "");
	assert_int_equal(drive(w, &v, &rq, (struct trouble){.script = BUMP BUMP STEP_A}), HX_OK);
	assert_int_equal(v.tries, 0);
	assert_int_equal(v.version, VERSION + 3);
	assert_is(w, &stmt_run, "CANCELLING v8 owned, step 0 attempt 0 redo 0");
	put(w, "RUNNING", OWNED, "", "");
	rq.version = VERSION;
	assert_int_equal(drive(w, &v, &rq, (struct trouble){.script = BUMP}), HX_CONCURRENCY_ERROR);
}

/* Retention takes a run that has failed, and its version stays. */
static void what_expires_in_between_is_not_revived(void **state)
{
	struct world *w = *state;

	for (enum run_verb_kind kind = RUN_CANCEL; kind <= RUN_RETRY; kind += RUN_RETRY - RUN_CANCEL) {
		struct run_verb_request rq = request(kind);
		struct run_verb v;

		put(w, "FAILED", "", ", step_status = 'FAILED', completed_at = 8", "");
		assert_int_equal(drive(w, &v, &rq, (struct trouble){.script = "UPDATE hx_run SET expired = 1"}),
				 HX_RUN_EXPIRED);
		assert_is(w, &stmt_run, "FAILED v5, step 0 attempt 0 redo 0 FAILED ended");
	}
}

static void a_lost_answer_is_looked_up(void **state)
{
	struct world *w = *state;
	struct run_verb_request rq = request(RUN_EVENT);
	struct run_verb v;

	rq.name = slice_str("payment");
	put(w, "PENDING", "", "", "");
	assert_int_equal(drive(w, &v, &rq, (struct trouble){.at = 1, .lost = true}), HX_OK);
	assert_is(w, &stmt_run, "PENDING v6, step 0 attempt 0 redo 0");
	put(w, "PENDING", "", "", "");
	assert_int_equal(drive(w, &v, &rq, (struct trouble){.at = 1, .vanishes = true}), HX_STORE_UNAVAILABLE);
	assert_is(w, &stmt_events, "");
	rq.kind = RUN_CANCEL;
	assert_int_equal(drive(w, &v, &rq, (struct trouble){.at = 1, .lost = true}), HX_OK);
	assert_is(w, &stmt_run, "CANCELLED v6, step 0 attempt 0 redo 0 ended");
}

static void a_store_that_fails(void **state)
{
	struct run_verb_request rq = request(RUN_CANCEL);
	struct run_verb v;
	struct hand h;

	(void)state;
	run_verb_init(&v, &rq, &fixture.arena);
	hand_init(&h, &v.task);
	assert_int_equal(hand_start(&h), ASK_COMMIT);
	assert_string_equal(hand_where(&h), "reading");
	hand_failed(&h, HX_STORE_UNAVAILABLE);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
}

/* ---- along ---- */

struct note {
	struct run_along along;
	unsigned added, won;
	char told[40];
};

static const struct db_stmt stmt_note = {
	.name = "test_note",
	.sql = "UPDATE hx_run SET trace = ?1",
	.in = "t",
	.out = "",
};

static void add_note(struct run_along *along, const struct run_verb *verb, struct unit *unit)
{
	struct note *note = (struct note *)along;

	note->added++;
	snprintf(note->told, sizeof note->told, "%s %lld", verb->status, (long long)verb->version);
	UNIT_ADD(unit, UNIT_ANY, &stmt_note, db_str(note->told));
}

static void note_won(struct run_along *along, const struct unit_result *result)
{
	assert_int_equal(result->verdict, UNIT_WON);
	((struct note *)along)->won++;
}

static void what_goes_along_is_in_the_unit_that_writes(void **state)
{
	struct world *w = *state;
	struct note note = {.along = {add_note, note_won}};
	struct run_verb_request rq = request(RUN_PAUSE);
	struct run_verb v;

	rq.along = &note.along;
	put(w, "PENDING", "", "", "");
	assert_int_equal(drive_rq(w, &v, &rq), HX_OK);
	assert_int_equal(note.won, 1);
	assert_string_equal(note.told, "PAUSED 6");
	unit_init(&w->unit, 0);
	run_read(&w->unit, slice_str("default"), RUN);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_true(slice_is(db_cell(&w->result.rows[0], 0, RUN_TRACE)->s, "PAUSED 6"));
	note.added = 0;
	assert_int_equal(drive_rq(w, &v, &rq), HX_OK); /* nothing is written, so nothing goes along */
	assert_int_equal(note.added, 0);
	assert_int_equal(note.won, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(cancel),
		TEST(pause),
		TEST(resume),
		TEST(retry),
		TEST(a_rejected_approval_is_decided_anew_after_a_retry),
		TEST(resolve),
		TEST(what_cannot_be_read_is_refused),
		TEST(with_a_version_the_loser_is_told),
		TEST(without_one_it_is_decided_again_by_what_is_there_now),
		TEST(a_run_that_is_held_is_cancelled_whatever_its_version_is),
		TEST(what_expires_in_between_is_not_revived),
		TEST(a_lost_answer_is_looked_up),
		TEST(a_store_that_fails),
		TEST(what_goes_along_is_in_the_unit_that_writes),
	};

	return cmocka_run_group_tests(tests, parse, forget);
}
