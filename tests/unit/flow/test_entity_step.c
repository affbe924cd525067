/*
 * A claimed step by hand: every state and every answer, and the invariants of entity_step.h. Probes, retries, tables of the
 * user's and people who resolve are in tests/sim, tests/contract and tests/http.
 */
#include "support/must_hold.h"
#include "unit/flow/invoice.h"

static void begin(struct hand *h, struct entity_step *s)
{
	begin_with(h, s, &charge);
}

static void begin_claiming(struct hand *h, struct entity_step *s)
{
	begin(h, s);
	assert_int_equal(hand_entity(h, "open", 4, 1), ASK_COMMIT);
	assert_string_equal(hand_where(h), "claiming");
	assert_string_equal(hand_stmt(h), "subject_claim_for_call");
}

static void begin_acting(struct hand *h, struct entity_step *s)
{
	begin_claiming(h, s);
	assert_int_equal(hand_changed(h, 5, 2), ASK_ACT);
	assert_string_equal(hand_where(h), "acting");
}

static void begin_finishing(struct hand *h, struct entity_step *s)
{
	begin_acting(h, s);
	assert_int_equal(hand_acted(h, ACT_OK), ASK_COMMIT);
	assert_string_equal(hand_where(h), "finishing");
	assert_string_equal(hand_stmt(h), "subject_finish");
}

/* The unit asked for carries this fence as its guard. */
static void assert_fence(const struct hand *h, int64_t fence)
{
	assert_int_equal(h->unit.lines[0].rule, UNIT_VERDICT);
	assert_int_equal(h->unit.lines[0].params[2].i, fence);
}

static void all_goes_well(void **state)
{
	struct entity_step s;
	struct hand h;
	int64_t claim_op;

	(void)state;
	begin_claiming(&h, &s);
	claim_op = h.unit.op;
	assert_int_equal(claim_op, h.answer.id);
	assert_int_equal(h.unit.lines[0].params[2].i, 4);
	assert_int_equal(h.unit.lines[0].params[7].i, LEASE_MS);
	struct mono_time before_claim = h.answer.mono;

	assert_int_equal(hand_changed(&h, 5, 2), ASK_ACT); /* E3 */
	assert_string_equal(((const struct action *)h.ask.act.action)->name, "Charge");
	assert_true(slice_is(h.ask.act.key, CHARGE_KEY)); /* the subject and its effort: the same after a crash */
	assert_int_equal(h.ask.act.attempt, 1);
	assert_int_equal(h.ask.act.lease.subject, 7);
	assert_int_equal(h.ask.act.lease.fence, 2);
	assert_int_equal(h.ask.act.lease.lease_ms, LEASE_MS);
	assert_int_equal(h.ask.act.lease.since.ns, before_claim.ns);

	assert_int_equal(hand_acted(&h, ACT_OK), ASK_COMMIT);
	assert_string_equal(hand_stmt(&h), "subject_finish");
	assert_fence(&h, 2); /* E6 */
	assert_true(slice_is(h.unit.lines[0].params[0].s, "done"));
	assert_int_not_equal(h.unit.op, claim_op);
	hand_changed(&h, 6, 2);
	hand_assert_done(&h, HX_OK);
	assert_int_equal(s.version, 6);
	assert_int_equal(s.outcome, ACT_OK);
}

static void a_read_that_finds_no_way(void **state)
{
	static const struct {
		const char *status;
		enum hx_code code;
	} statuses[] = {{"busy", HX_CLAIM_FAILED}, {"done", HX_WRONG_STATUS}, {"", HX_WRONG_STATUS}};
	struct entity_step s;
	struct hand h;

	(void)state;
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
		begin(&h, &s);
		hand_entity(&h, statuses[i].status, 4, 1);
		hand_assert_done(&h, statuses[i].code);
	}
	begin(&h, &s);
	hand_no_rows(&h, ENTITY_COLUMNS);
	hand_assert_done(&h, HX_NOT_FOUND);
	begin(&h, &s);
	hand_failed(&h, HX_STORE_UNAVAILABLE);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
}

static void lose_claim(struct hand *h)
{
	assert_int_equal(hand_verdict(h, UNIT_LOST), ASK_COMMIT);
	assert_string_equal(hand_where(h), "reading");
}

/* Whatever became of it since: somebody else has it, has ended it, has given it back, has parked it. */
static void a_claim_that_is_lost_to_another_never_acts(void **state)
{
	static const char *const statuses[] = {"busy", "done", "open", "gone"};
	struct entity_step s;
	struct hand h;

	(void)state;
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
		begin_claiming(&h, &s);
		lose_claim(&h);
		hand_entity(&h, statuses[i], /* version= */ 5, 2);
		hand_assert_done(&h, HX_CLAIM_FAILED);
		assert_true(slice_is(s.output, "another operation is already in progress"));
	}
	begin_claiming(&h, &s);
	lose_claim(&h);
	hand_failed(&h, HX_STORE_UNAVAILABLE);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
}

/* The version is what it was: a call without a claim was written down or answered, and what is kept now decides. */
static void a_claim_that_is_lost_to_a_call_without_one(void **state)
{
	struct entity_step s;
	struct hand h;

	(void)state;
	begin_claiming(&h, &s);
	lose_claim(&h);
	hand_entity_called(&h, "open", 4, 1, "charge", "{\"other\":1}");
	hand_assert_done(&h, HX_IN_DOUBT);
	begin_claiming(&h, &s);
	lose_claim(&h);
	assert_int_equal(hand_entity_called(&h, "open", 4, 1, "charge", "{ }"), ASK_COMMIT);
	assert_string_equal(hand_stmt(&h), "subject_claim_for_call");
	assert_string_equal(h.unit.lines[2].stmt->name, "kept_call_again");
	assert_true(slice_is(h.unit.lines[2].params[2].s, "cron")); /* as it was sent, and for whom */
	assert_true(slice_is(h.unit.lines[2].params[3].s, "{ }"));
	assert_string_equal(h.unit.lines[3].stmt->name, "entity_note_claim");
	MUST_HOLD(slice_is(h.unit.lines[3].params[2].s, "default"), "whoever ends the claim asks a view that has none");
	begin_claiming(&h, &s);
	lose_claim(&h);
	hand_entity_called(&h, "open", 4, 1, "charge", "{ }");
	lose_claim(&h); /* it was answered meanwhile */
	assert_int_equal(hand_entity(&h, "open", 4, 1), ASK_COMMIT);
	assert_string_equal(h.unit.lines[2].stmt->name, "entity_note_claim");
	assert_true(slice_is(h.unit.lines[2].params[2].s, "default"));
	assert_true(slice_is(h.unit.lines[2].params[3].s, "{}"));
}

/* Its call is made again as it was sent, for whom it was; and the view that says what becomes of the claim is the claimant's. */
static void a_claim_of_what_another_has_begun(void **state)
{
	struct db_value cells[ENTITY_COLUMNS] = {
		[ENTITY_SUBJECT] = db_int(7),
		[ENTITY_STATUS] = db_str("busy"),
		[ENTITY_VERSION] = db_int(5),
		[ENTITY_FENCE] = db_int(2),
		[ENTITY_EFFORT] = db_int(EFFORT),
		[ENTITY_OWNER] = db_str(SUBJECT_HELD),
		[ENTITY_UNTIL] = db_int(INT64_MAX),
		[ENTITY_DATA] = db_str("{}"),
		[ENTITY_NAME] = db_str("e7"),
		[ENTITY_WORKSPACE] = db_str("default"),
		[ENTITY_DOUBT] = db_int(0),
		[ENTITY_CLAIM_STEP] = db_str("charge"),
		[ENTITY_CLAIM_FROM] = db_str("open"),
		[ENTITY_CLAIM_REQUESTER] = db_str("default"),
		[ENTITY_CLAIM_INPUT] = db_str("{}"),
		[ENTITY_CLAIM_EFFORT] = db_int(EFFORT),
		[ENTITY_KEPT_STEP] = db_str("charge"),
		[ENTITY_KEPT_FROM] = db_str("open"),
		[ENTITY_KEPT_REQUESTER] = db_str("cron"),
		[ENTITY_KEPT_INPUT] = db_str("{}"),
		[ENTITY_KEPT_EFFORT] = db_int(EFFORT),
		[ENTITY_KEPT_DATA] = db_str("{\"a\":1}"),
	};
	struct step_request rq = charge;
	struct entity_step s;
	struct hand h;

	(void)state;
	rq.mode = STEP_RESOLVE_NOT_DONE;
	entity_step_init(&s, &rq, &arena);
	hand_init(&h, &s.task);
	hand_start(&h);
	hand_rows(&h, 1, ENTITY_COLUMNS, cells);
	assert_string_equal(hand_where(&h), "releasing");
	assert_true(slice_is(s.requester, "default"));
	assert_true(slice_is(s.sender, "cron"));
	assert_true(slice_is(s.sent_data, "{\"a\":1}"));
}

static void a_claim_is_not_lost_for_ever(void **state)
{
	struct entity_step s;
	struct hand h;

	(void)state;
	begin_claiming(&h, &s);
	for (int i = 0; i < 3; i++) {
		lose_claim(&h);
		assert_int_equal(hand_entity(&h, "open", 4, 1), ASK_COMMIT);
	}
	hand_verdict(&h, UNIT_LOST);
	hand_assert_done(&h, HX_CLAIM_FAILED);
}

static void a_claim_that_is_refused_or_fails_never_acts(void **state)
{
	struct entity_step s;
	struct hand h;

	(void)state;
	begin_claiming(&h, &s);
	hand_verdict(&h, UNIT_REFUSED);
	hand_assert_done(&h, HX_CLAIM_FAILED);
	begin_claiming(&h, &s);
	hand_failed(&h, HX_DATA_ERROR);
	hand_assert_done(&h, HX_DATA_ERROR);
	begin_claiming(&h, &s);
	hand_failed(&h, HX_CONCURRENCY_ERROR);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
}

static void an_unknown_claim_is_looked_up_before_anything_is_done(void **state)
{
	struct entity_step s;
	struct hand h;
	int64_t op;

	(void)state;
	for (int i = 0; i < 4; i++) {
		begin_claiming(&h, &s);
		op = h.unit.op;
		struct mono_time before_claim = h.answer.mono;

		assert_int_equal(hand_verdict(&h, UNIT_UNKNOWN), ASK_COMMIT);
		assert_string_equal(hand_where(&h), "looking up its claim");
		assert_string_equal(hand_stmt(&h), "subject_look_up");
		assert_int_equal(h.unit.lines[0].params[1].i, op);
		if (i == 0) {
			assert_int_equal(hand_changed(&h, 5, 2), ASK_ACT); /* it had landed: it is ours */
			assert_true(slice_is(h.ask.act.key, CHARGE_KEY));
			assert_int_equal(h.ask.act.lease.fence, 2);
			/* trusted from before the claim was sent, not from now */
			assert_int_equal(h.ask.act.lease.since.ns, before_claim.ns);
		} else if (i == 1) {
			hand_no_rows(&h, 2);
			hand_assert_done(&h, HX_STORE_UNAVAILABLE);
		} else {
			hand_verdict(&h, i == 2 ? UNIT_FAILED : UNIT_UNKNOWN);
			hand_assert_done(&h, HX_STORE_UNAVAILABLE);
		}
	}
}

/* The commit, or finding out about it, took longer than the lease lasts: somebody else may hold the claim by now. */
static void a_claim_that_was_learnt_of_too_late_never_acts(void **state)
{
	int64_t trusted_ns = INT64_C(1000000) * (LEASE_MS - LEASE_MS / 10);
	struct entity_step s;
	struct hand h;

	(void)state;
	for (int looked_up = 0; looked_up <= 1; looked_up++)
		for (int late = 0; late <= 1; late++) {
			begin_claiming(&h, &s);
			struct mono_time asked = h.answer.mono;

			if (looked_up)
				hand_verdict(&h, UNIT_UNKNOWN);
			h.answer.mono.ns = asked.ns + trusted_ns - 2 + late; /* the answer comes 1 ns later */
			hand_changed(&h, 5, 2);
			if (late)
				hand_assert_done(&h, HX_STORE_UNAVAILABLE);
			else
				assert_int_equal(h.ask.kind, ASK_ACT);
		}
}

static void a_failed_action_is_released_and_the_caller_hears_of_the_action(void **state)
{
	static const struct {
		enum act_outcome outcome;
		enum hx_code code;
	} failures[] = {
		{ACT_FAILED, HX_ACTION_FAILED}, {ACT_FAILED_FOR_GOOD, HX_ACTION_FAILED}, {ACT_INVALID, HX_INVALID}};
	struct entity_step s;
	struct hand h;

	(void)state;
	for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
		for (enum unit_verdict verdict = UNIT_WON; verdict <= UNIT_UNKNOWN; verdict++) { /* E7 */
			begin_acting(&h, &s);
			assert_int_equal(hand_acted(&h, failures[i].outcome), ASK_COMMIT);
			assert_string_equal(hand_where(&h), "releasing");
			assert_string_equal(hand_stmt(&h), "subject_release");
			assert_fence(&h, 2);
			assert_true(slice_is(h.unit.lines[0].params[0].s, "open"));
			if (verdict == UNIT_WON)
				hand_changed(&h, 6, 2);
			else
				hand_verdict(&h, verdict);
			hand_assert_done(&h, failures[i].code);
		}
}

static void an_unknown_outcome_releases_nothing(void **state)
{
	struct entity_step s;
	struct hand h;

	(void)state;
	begin_acting(&h, &s);
	hand_acted(&h, ACT_UNKNOWN); /* E4 */
	hand_assert_done(&h, HX_OUTCOME_UNKNOWN);
	begin_acting(&h, &s);
	hand_acted(&h, ACT_CLAIM_LOST);
	hand_assert_done(&h, HX_OUTCOME_UNKNOWN);
}

static void a_finish_that_cannot_be_written_leaves_the_outcome_unknown(void **state)
{
	struct entity_step s;
	struct hand h;

	(void)state;
	begin_finishing(&h, &s);
	hand_verdict(&h, UNIT_LOST);
	hand_assert_done(&h, HX_OUTCOME_UNKNOWN);
	begin_finishing(&h, &s);
	hand_failed(&h, HX_STORE_UNAVAILABLE);
	hand_assert_done(&h, HX_OUTCOME_UNKNOWN);
	begin_finishing(&h, &s);
	assert_int_equal(hand_failed(&h, HX_DATA_ERROR), ASK_COMMIT); /* once more, under other ids */
	assert_fence(&h, 2);
	hand_failed(&h, HX_DATA_ERROR);
	hand_assert_done(&h, HX_OUTCOME_UNKNOWN);
}

static void an_unknown_finish_is_looked_up(void **state)
{
	struct entity_step s;
	struct hand h;
	int64_t first_op;

	(void)state;
	begin_finishing(&h, &s);
	first_op = h.unit.op;
	assert_int_equal(hand_verdict(&h, UNIT_UNKNOWN), ASK_COMMIT);
	assert_string_equal(hand_where(&h), "looking up its finish");
	assert_int_equal(h.unit.lines[0].params[1].i, first_op);
	hand_changed(&h, 6, 2);
	hand_assert_done(&h, HX_OK);
	assert_int_equal(s.version, 6);

	begin_finishing(&h, &s);
	hand_verdict(&h, UNIT_UNKNOWN);
	hand_verdict(&h, UNIT_FAILED);
	hand_assert_done(&h, HX_OUTCOME_UNKNOWN);
}

static void a_finish_that_did_not_land_is_written_again_under_a_fresh_op(void **state)
{
	struct entity_step s;
	struct hand h;
	int64_t op;

	(void)state;
	begin_finishing(&h, &s);
	for (int i = 0; i < 5; i++) {
		op = h.unit.op;
		assert_int_equal(hand_verdict(&h, UNIT_UNKNOWN), ASK_COMMIT);
		assert_int_equal(hand_no_rows(&h, 2), ASK_COMMIT);
		assert_string_equal(hand_stmt(&h), "subject_finish");
		assert_fence(&h, 2);
		assert_int_not_equal(h.unit.op, op);
	}
	hand_changed(&h, 6, 2);
	hand_assert_done(&h, HX_OK);
}

static bool has_line(const struct hand *h, const char *stmt)
{
	for (unsigned i = 0; i < h->unit.lines_n; i++)
		if (strcmp(h->unit.lines[i].stmt->name, stmt) == 0)
			return true;
	return false;
}

/* The row of a table of theirs says "open" again, by somebody's hand: whoever goes on from there ends the claim that is noted, too. */
static void a_former_claim_is_ended_with_its_slot(void **state)
{
	struct entity_step s;
	struct hand h;

	(void)state;
	begin_claiming(&h, &s);
	assert_false(has_line(&h, "slot_forget"));
	begin(&h, &s);
	assert_int_equal(hand_entity_moved_on(&h, "open", 4, 1), ASK_COMMIT);
	MUST_HOLD(has_line(&h, "slot_forget"), "a claim that nobody has any more keeps its slot");
	assert_int_equal(hand_changed(&h, 5, 2), ASK_ACT);
	assert_int_equal(hand_acted(&h, ACT_OK), ASK_COMMIT);
	assert_false(has_line(&h, "slot_forget"));
	begin_with(&h, &s, &pay);
	assert_int_equal(hand_entity_moved_on(&h, "open", 4, 1), ASK_COMMIT);
	assert_string_equal(hand_where(&h), "finishing");
	assert_true(has_line(&h, "slot_forget"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_goes_well),
		cmocka_unit_test(a_read_that_finds_no_way),
		cmocka_unit_test(a_claim_that_is_lost_to_another_never_acts),
		cmocka_unit_test(a_claim_that_is_lost_to_a_call_without_one),
		cmocka_unit_test(a_claim_of_what_another_has_begun),
		cmocka_unit_test(a_claim_is_not_lost_for_ever),
		cmocka_unit_test(a_claim_that_is_refused_or_fails_never_acts),
		cmocka_unit_test(an_unknown_claim_is_looked_up_before_anything_is_done),
		cmocka_unit_test(a_claim_that_was_learnt_of_too_late_never_acts),
		cmocka_unit_test(a_failed_action_is_released_and_the_caller_hears_of_the_action),
		cmocka_unit_test(an_unknown_outcome_releases_nothing),
		cmocka_unit_test(a_finish_that_cannot_be_written_leaves_the_outcome_unknown),
		cmocka_unit_test(an_unknown_finish_is_looked_up),
		cmocka_unit_test(a_finish_that_did_not_land_is_written_again_under_a_fresh_op),
		cmocka_unit_test(a_former_claim_is_ended_with_its_slot),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, make_workflow, drop_workflow);
}
