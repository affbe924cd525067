/* The janitor by hand (pages, budget, every verdict) and over a store with stuck and living claims. */
#include "unit/flow/world.h"

#include "flow/entity.h"
#include "flow/janitor.h"

static const struct janitor_rule some_rules[] = {
	{.kind = KIND, .claim_into = "busy", .revert_to = "open"},
	{.kind = KIND + 1, .claim_into = "busy", .revert_to = "idle"},
};
static const struct janitor_rules rules = {2, some_rules};

static void begin(struct hand *h, struct janitor *j, int64_t budget)
{
	janitor_init(j, &rules, budget, (struct mono_time){0});
	hand_init(h, &j->task);
	assert_string_equal(hand_where(h), "new");
	assert_int_equal(hand_start(h), ASK_COMMIT);
	assert_string_equal(hand_where(h), "scanning");
	assert_string_equal(hand_stmt(h), "subject_scan_stuck");
}

/* A page of n stuck claims with ids from `first` on, all of one kind, with the fence 10 * id. */
static enum ask_kind give_page(struct hand *h, int64_t first, size_t n, int64_t kind, const char *status)
{
	struct db_value cells[4 * JANITOR_PAGE];

	for (size_t i = 0; i < n; i++) {
		cells[4 * i] = db_int(first + (int64_t)i);
		cells[4 * i + 1] = db_int(kind);
		cells[4 * i + 2] = db_str(status);
		cells[4 * i + 3] = db_int(10 * (first + (int64_t)i));
	}
	return hand_rows(h, n, 4, cells);
}

/* It must be asking for a scan from `after` on with this limit. */
static void assert_scans(const struct hand *h, int64_t after, int64_t limit)
{
	assert_string_equal(hand_stmt(h), "subject_scan_stuck");
	assert_int_equal(h->unit.lines[0].params[0].i, after);
	assert_int_equal(h->unit.lines[0].params[1].i, limit);
}

/* It must be asking for the revert of this claim. */
static void assert_reverts(const struct hand *h, int64_t subject, const char *to)
{
	assert_string_equal(hand_stmt(h), "subject_revert");
	assert_string_equal(hand_where(h), "reverting");
	assert_int_equal(h->unit.lines[0].params[6].i, subject);
	assert_int_equal(h->unit.lines[0].params[2].i, 10 * subject);
	assert_true(slice_is(h->unit.lines[0].params[0].s, to));
	assert_true(slice_is(h->unit.lines[0].params[1].s, "busy"));
	assert_int_equal(h->unit.op, h->answer.id);
}

static void nothing_to_do(void **state)
{
	struct janitor j;
	struct hand h;

	(void)state;
	begin(&h, &j, 100);
	assert_scans(&h, 0, JANITOR_PAGE);
	hand_no_rows(&h, 4);
	hand_assert_done(&h, HX_OK);
	assert_false(j.more);
	assert_int_equal(j.reverted, 0);
}

static void a_sweep_begins_at_its_time(void **state)
{
	struct janitor j;
	struct hand h;

	(void)state;
	janitor_init(&j, &rules, 100, mono_add_ms((struct mono_time){0}, 50));
	hand_init(&h, &j.task);
	assert_int_equal(hand_start(&h), ASK_SLEEP);
	assert_int_equal(h.ask.until.ns, 50000000);
	h.answer.now.ms = START_MS + 1000000; /* by the wall clock, which was set */
	h.answer.mono.ns = 50000000 - 2;
	assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_SLEEP); /* too early: it sleeps on */
	assert_int_equal(hand_give(&h, ANSWER_WOKE), ASK_COMMIT);
	assert_scans(&h, 0, JANITOR_PAGE);
}

static void a_scan_that_fails_ends_the_sweep(void **state)
{
	struct janitor j;
	struct hand h;

	(void)state;
	begin(&h, &j, 100);
	hand_failed(&h, HX_STORE_UNAVAILABLE);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
	begin(&h, &j, 100);
	hand_verdict(&h, UNIT_UNKNOWN);
	hand_assert_done(&h, HX_STORE_UNAVAILABLE);
}

static void each_claim_is_reverted_by_its_rule_whatever_becomes_of_the_others(void **state)
{
	struct janitor j;
	struct hand h;

	(void)state;
	begin(&h, &j, 100);
	give_page(&h, 1, 5, KIND + 1, "busy");
	for (enum unit_verdict verdict = UNIT_WON; verdict <= UNIT_UNKNOWN; verdict++) {
		assert_reverts(&h, 1 + (int64_t)verdict, "idle");
		hand_verdict(&h, verdict);
	}
	hand_assert_done(&h, HX_OK);
	assert_int_equal(j.reverted, 1);
	assert_false(j.more);
}

static void what_no_rule_knows_is_left_alone_and_counted(void **state)
{
	struct janitor j;
	struct hand h;

	(void)state;
	begin(&h, &j, 100);
	give_page(&h, 1, 3, KIND, "strange");
	hand_assert_done(&h, HX_OK);
	assert_int_equal(j.unruled, 3);
	begin(&h, &j, 100);
	give_page(&h, 1, 3, KIND + 7, "busy");
	hand_assert_done(&h, HX_OK);
	assert_int_equal(j.unruled, 3);
	assert_int_equal(j.reverted, 0);
}

static void a_page_of_strangers_does_not_hide_the_next_page(void **state)
{
	struct janitor j;
	struct hand h;

	(void)state;
	begin(&h, &j, 100);
	give_page(&h, 1, JANITOR_PAGE, KIND, "strange");
	assert_scans(&h, JANITOR_PAGE, JANITOR_PAGE);
	give_page(&h, JANITOR_PAGE + 1, 1, KIND, "busy");
	assert_reverts(&h, JANITOR_PAGE + 1, "open");
	hand_changed(&h, 3, 1);
	hand_assert_done(&h, HX_OK);
	assert_int_equal(j.reverted, 1);
}

static void a_full_page_is_followed_by_the_next(void **state)
{
	struct janitor j;
	struct hand h;

	(void)state;
	begin(&h, &j, 100);
	give_page(&h, 1, JANITOR_PAGE, KIND, "busy");
	for (int64_t id = 1; id <= JANITOR_PAGE; id++) {
		assert_reverts(&h, id, "open");
		hand_changed(&h, 3, 1);
	}
	assert_scans(&h, JANITOR_PAGE, JANITOR_PAGE);
	hand_no_rows(&h, 4);
	hand_assert_done(&h, HX_OK);
	assert_int_equal(j.reverted, JANITOR_PAGE);
	assert_false(j.more);
}

static void the_budget_ends_a_sweep_that_has_more_to_do(void **state)
{
	struct janitor j;
	struct hand h;

	(void)state;
	begin(&h, &j, JANITOR_PAGE + 2);
	assert_scans(&h, 0, JANITOR_PAGE);
	give_page(&h, 1, JANITOR_PAGE, KIND, "busy");
	for (int i = 0; i < JANITOR_PAGE; i++)
		hand_changed(&h, 3, 1);
	assert_scans(&h, JANITOR_PAGE, 2);
	give_page(&h, JANITOR_PAGE + 1, 2, KIND, "busy");
	hand_changed(&h, 3, 1);
	hand_changed(&h, 3, 1);
	hand_assert_done(&h, HX_OK);
	assert_int_equal(j.reverted, JANITOR_PAGE + 2);
	assert_true(j.more);
}

static void over_a_store_only_what_is_past_its_time_is_reverted(void **state)
{
	struct world *w = *state;
	struct janitor j;

	for (int64_t id = 1; id <= 40; id++)
		world_create(w, id, "open");
	for (int64_t id = 1; id <= 20; id++)
		world_claim(w, id, 1);
	fake_clock_advance_ms(&w->clock, LEASE_MS);
	for (int64_t id = 21; id <= 30; id++)
		world_claim(w, id, 1);
	janitor_init(&j, &rules, 1000, (struct mono_time){0});
	assert_int_equal(world_drive(w, &j.task), HX_OK);
	assert_int_equal(j.reverted, 20);
	assert_false(j.more);
	for (int64_t id = 1; id <= 40; id++) {
		world_begin(w);
		subject_read(&w->unit, id);
		assert_int_equal(world_run(w), UNIT_WON);
		assert_true(slice_is(db_cell(&w->result.rows[0], 0, 0)->s, id > 20 && id <= 30 ? "busy" : "open"));
	}
	janitor_init(&j, &rules, 1000, (struct mono_time){0});
	assert_int_equal(world_drive(w, &j.task), HX_OK);
	assert_int_equal(j.reverted, 0);
}

/* Claims of a rule that hands over are left to whoever started the sweep, a page at a time; others are ended as ever. */
static void what_is_handed_over_is_left_alone(void **state)
{
	static const struct janitor_rule mixed[] = {
		{.kind = KIND, .claim_into = "busy", .revert_to = "open"},
		{.kind = KIND + 1, .claim_into = "busy", .hand_over = true},
	};
	static const struct janitor_rules mixed_rules = {2, mixed};
	struct db_value cells[4 * JANITOR_PAGE];
	struct janitor j;
	struct hand h;

	(void)state;
	janitor_init(&j, &mixed_rules, 1000, (struct mono_time){0});
	hand_init(&h, &j.task);
	assert_int_equal(hand_start(&h), ASK_COMMIT);
	for (int64_t i = 0; i < JANITOR_PAGE; i++) { /* every other one */
		cells[4 * i] = db_int(i + 1);
		cells[4 * i + 1] = db_int(KIND + i % 2);
		cells[4 * i + 2] = db_str("busy");
		cells[4 * i + 3] = db_int(10 * (i + 1));
	}
	hand_rows(&h, JANITOR_PAGE, 4, cells);
	for (int64_t i = 0; i < JANITOR_PAGE; i += 2) {
		assert_reverts(&h, i + 1, "open");
		hand_changed(&h, 3, 1);
	}
	hand_assert_done(&h, HX_OK);
	assert_true(j.more);
	assert_int_equal(j.cursor, JANITOR_PAGE);
	assert_int_equal(j.reverted, JANITOR_PAGE / 2);
	assert_int_equal(j.handed_n, JANITOR_PAGE / 2);
	for (size_t i = 0; i < j.handed_n; i++) {
		assert_int_equal(j.handed[i].subject, 2 * (i + 1));
		assert_int_equal(j.handed[i].fence, 20 * (i + 1));
		assert_ptr_equal(j.handed[i].rule, &mixed[1]);
	}
}

static const struct entity_machine *letters(struct arena *arena)
{
	static const char text[] =
		"{\"workflow\":\"letter\",\"kind\":\"entity\",\"status_types\":[\"open\",\"busy\",\"calling\",\"sent\"],"
		"\"initial_status\":\"open\",\"steps\":[{\"step_id\":1,\"step_key\":\"send\",\"status\":\"open\","
		"\"successful_state\":\"sent\",\"claim_state\":[\"busy\",\"open\"]},{\"step_id\":2,\"step_key\":\"call\","
		"\"status\":\"open\",\"successful_state\":\"sent\",\"claim_state\":[\"calling\",\"open\"]}]}";
	const struct workflow *workflow;
	struct findings findings;

	findings_init(&findings, arena);
	workflow_parse("letter.json", slice_str(text), arena, &findings, &workflow);
	assert_non_null(workflow);
	return entity_machine_new(workflow, /* version= */ 1, /* table= */ NULL, arena);
}

/* A claim in "busy" of this step: what becomes of it? */
static const char *what_becomes_of(const struct entity_machine *machine, const char *step)
{
	struct janitor_rule rule = {.kind = KIND, .claim_into = "busy", .revert_to = "open", .machine = machine};
	struct janitor_rules one = {1, &rule};
	struct db_value row[ENTITY_COLUMNS] = {0};
	struct janitor j;
	struct hand h;

	for (size_t i = 0; i < ENTITY_COLUMNS; i++)
		row[i] = db_int(1);
	row[ENTITY_STATUS] = db_str("busy");
	row[ENTITY_CLAIM_STEP] = db_str(step);
	row[ENTITY_CLAIM_FROM] = db_str("open");
	row[ENTITY_CLAIM_REQUESTER] = db_str("default");
	row[ENTITY_NAME] = db_str("a");
	janitor_init(&j, &one, 1, (struct mono_time){0});
	hand_init(&h, &j.task);
	assert_int_equal(hand_start(&h), ASK_COMMIT);
	give_page(&h, 1, 1, KIND, "busy");
	assert_string_equal(hand_where(&h), "looking who claimed");
	hand_rows(&h, 1, ENTITY_COLUMNS, row);
	return hand_where(&h);
}

/* Its step is gone from the definition in force, or claims another status by now: nobody can say what is to happen to it. */
static void a_claim_that_the_definition_does_not_know_is_held(void **state)
{
	const struct entity_machine *machine;
	struct arena arena;

	(void)state;
	arena_init(&arena, 1u << 20);
	machine = letters(&arena);
	assert_string_equal(what_becomes_of(machine, "send"), "reverting");
	assert_string_equal(what_becomes_of(machine, "dispatch"), "holding");
	assert_string_equal(what_becomes_of(machine, "call"), "holding");
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_do),
		cmocka_unit_test(a_sweep_begins_at_its_time),
		cmocka_unit_test(a_scan_that_fails_ends_the_sweep),
		cmocka_unit_test(each_claim_is_reverted_by_its_rule_whatever_becomes_of_the_others),
		cmocka_unit_test(what_no_rule_knows_is_left_alone_and_counted),
		cmocka_unit_test(a_page_of_strangers_does_not_hide_the_next_page),
		cmocka_unit_test(a_full_page_is_followed_by_the_next),
		cmocka_unit_test(the_budget_ends_a_sweep_that_has_more_to_do),
		cmocka_unit_test_setup_teardown(over_a_store_only_what_is_past_its_time_is_reverted, world_set_up,
						world_tear_down),
		cmocka_unit_test(what_is_handed_over_is_left_alone),
		cmocka_unit_test(a_claim_that_the_definition_does_not_know_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
