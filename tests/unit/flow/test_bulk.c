/* Bulks over a real store: what is selected once, done once and told once, whoever else is at it. */
#include "unit/flow/driven_run.h"

#include "flow/bulk_hand.h"
#include "flow/bulk_select.h"
#include "support/must_hold.h"

#define BULK 900000
#define STEPS "'attributes':{'customer':'.input.customer'},'steps':[{'name':'a','type':'external_event','event':'go'}]"

static const struct bulk_spec spec = {
	.subject = BULK,
	.workspace = {"default", 7},
	.requester = {"me", 2},
	.verb = {"cancel", 6},
	.kind = {"run", 3},
	.condition = {"customer == \"c-1\"", 17},
	.arguments = {"{}", 2},
};

static const struct bulk_policy bulk_policy = {.runs = &policy};

static const struct db_stmt stmt_items = {
	.name = "test_items",
	.sql = "SELECT coalesce(group_concat(n || ' ' || subject || ' ' || coalesce(result, '-') || coalesce(' ' || code, ''), ', '), '')"
	       " FROM (SELECT * FROM hx_bulk_item ORDER BY n)",
	.in = "",
	.out = "t",
};

static const struct db_stmt stmt_state = {
	.name = "test_bulk_state",
	.sql = "SELECT state || ' ' || selected || CASE WHEN due_at IS NULL THEN '' ELSE ' due' END FROM hx_bulk",
	.in = "",
	.out = "t",
};

static const struct db_stmt stmt_statuses = {
	.name = "test_statuses",
	.sql = "SELECT group_concat(s.id || ' ' || s.status || ' v' || s.version, ', ') FROM hx_subject s JOIN hx_run r ON r.subject = s.id",
	.in = "",
	.out = "t",
};

static bool says(struct world *w, const struct db_stmt *stmt, const char *wanted)
{
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, stmt, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	return slice_is(db_cell(&w->result.rows[0], 0, 0)->s, wanted);
}

static void start_run(struct world *w, int64_t subject, const char *input)
{
	struct stamp stamp = world_begin(w);
	struct run_spec run = {
		.subject = subject,
		.workspace = slice_str("default"),
		.requester = slice_str("me"),
		.machine = fixture.machine,
		.input = slice_str(input),
	};

	run_describe(&run, &fixture.arena);
	run_create(&w->unit, &stamp, &run);
	assert_int_equal(world_run(w), UNIT_WON);
}

/* A bulk with the first two of three runs in it, about to be carried out. */
static void set_scene_of(struct world *w, const char *verb, const char *arguments)
{
	struct bulk_spec wanted = spec;
	struct stamp stamp;

	wanted.verb = slice_str(verb);
	wanted.arguments = slice_str(arguments);

	define(STEPS);
	start_run(w, 77, "{\"customer\":\"c-1\"}");
	start_run(w, 78, "{\"customer\":\"c-1\"}");
	start_run(w, 79, "{\"customer\":\"c-2\"}");
	stamp = world_begin(w);
	bulk_create(&w->unit, &stamp, &wanted);
	assert_int_equal(world_run(w), UNIT_WON);
}

static void set_scene(struct world *w)
{
	set_scene_of(w, "cancel", "{}");
}

static enum unit_verdict freeze(struct world *w, int64_t from, int64_t to, const char *ids, int64_t n, bool last)
{
	(void)world_begin(w);
	bulk_freeze(&w->unit, &(struct bulk_slice){BULK, from, to, from ? 1 : 0, n, slice_str(ids), last});
	return world_run(w);
}

static enum hx_code drive_task(struct world *w, struct task *task)
{
	struct ask ask = {.unit = &w->unit};
	struct answer answer = {.kind = ANSWER_START, .node = "here"};

	for (;;) {
		answer.now = w->clock.wall;
		answer.mono = w->clock.mono;
		answer.id = w->last_op += 10;
		for (int i = 0; i < ANSWER_IDS_MAX; i++)
			answer.more_ids[i] = BULK + 1000 + w->last_op + i;
		assert_true(task_take(task, task->turn, &answer));
		task->kind->ask(task, &ask);
		if (ask.kind == ASK_DONE)
			return ask.code;
		run_or_fail(w);
		answer.kind = ANSWER_COMMIT;
		answer.result = &w->result;
	}
}

static enum hx_code work_within(struct world *w, size_t bytes_max)
{
	struct arena arena;
	struct bulk_hand hand;
	enum hx_code code;

	arena_init(&arena, bytes_max);
	bulk_hand_init(&hand, BULK, 0, 1, -1, &bulk_policy, &arena);
	code = drive_task(w, &hand.task);
	arena_release(&arena);
	return code;
}

static enum hx_code work(struct world *w)
{
	return work_within(w, 64u << 20);
}

static void finish(struct world *w)
{
	struct stamp stamp = world_begin(w);

	bulk_finish(&w->unit, &stamp, BULK);
	assert_int_equal(world_run(w), UNIT_WON);
}

/* A page has room for one of its items, however large they are. */
static void an_item_is_forgotten_with_its_end(void **state)
{
	struct world *w = *state;
	char *input = malloc(1u << 20);

	assert_non_null(input);
	snprintf(input, 1u << 20, "{\"customer\":\"c-1\",\"x\":\"%0*d\"}", 600000, 0);
	set_scene(w);
	for (int64_t run = 80; run < 84; run++)
		start_run(w, run, input);
	assert_int_equal(freeze(w, 0, 84, "[80,81,82,83]", 4, true), UNIT_WON);
	assert_int_equal(work_within(w, 1u << 20), HX_OK);
	assert_true(says(w, &stmt_items, "0 80 done, 1 81 done, 2 82 done, 3 83 done"));
	free(input);
}

static void a_slice_is_selected_once(void **state)
{
	struct world *w = *state;

	set_scene(w);
	assert_int_equal(freeze(w, 0, 77, "[77]", 1, false), UNIT_WON);
	MUST_HOLD(freeze(w, 0, 78, "[]", 0, false) == UNIT_LOST, "two nodes select from the same place on");
	assert_int_equal(freeze(w, 77, 78, "[78]", 1, true), UNIT_WON);
	assert_true(says(w, &stmt_items, "0 77 -, 1 78 -"));
	assert_true(says(w, &stmt_state, "RUNNING 2 due"));
}

static void a_cancel_ends_the_selection(void **state)
{
	struct world *w = *state;

	set_scene(w);
	assert_int_equal(freeze(w, 0, 77, "[77]", 1, false), UNIT_WON);
	(void)world_begin(w);
	bulk_cancel(&w->unit, slice_str("default"), BULK);
	assert_int_equal(world_run(w), UNIT_WON);
	MUST_HOLD(freeze(w, 77, 78, "[78]", 1, true) == UNIT_LOST,
		  "what was cancelled goes on selecting, and is carried out");
	assert_int_equal(work(w), HX_OK);
	finish(w);
	assert_true(says(w, &stmt_items, "0 77 cancelled"));
	assert_true(says(w, &stmt_state, "CANCELLED 1"));
	assert_true(says(w, &stmt_statuses, "77 PENDING v1, 78 PENDING v1, 79 PENDING v1"));
}

static void a_selection_goes_on_after_a_crash(void **state)
{
	struct world *w = *state;
	struct bulk_select select = {.spec = {.subject = BULK}};
	struct arena arena;

	set_scene(w);
	assert_int_equal(freeze(w, 0, 77, "[77]", 1, false), UNIT_WON);
	arena_init(&arena, 64u << 20);
	select.arena = &arena;
	bulk_select_init(&select);
	assert_int_equal(drive_task(w, &select.task), HX_CLAIM_FAILED); /* it is another's, for a while */
	w->clock.wall.ms += BULK_LEASE_MS + 1;
	bulk_select_init(&select);
	assert_int_equal(drive_task(w, &select.task), HX_OK);
	arena_release(&arena);
	assert_true(says(w, &stmt_items, "0 77 -, 1 78 -"));
	assert_true(says(w, &stmt_state, "RUNNING 2 due"));
}

static void each_is_done_and_told_in_one_unit(void **state)
{
	struct world *w = *state;

	set_scene(w);
	assert_int_equal(freeze(w, 0, 78, "[77,78]", 2, true), UNIT_WON);
	finish(w);
	MUST_HOLD(says(w, &stmt_state, "RUNNING 2 due"), "a bulk is over before its items are");
	/* Another hand has done the first one meanwhile, and this one has read it before. */
	sql(w, "CREATE TRIGGER meanwhile AFTER UPDATE ON hx_subject WHEN new.id = 77 BEGIN"
	       " UPDATE hx_bulk_item SET result = 'done' WHERE subject = 77; END");
	assert_int_equal(work(w), HX_OK);
	MUST_HOLD(says(w, &stmt_statuses, "77 PENDING v1, 78 CANCELLED v2, 79 PENDING v1"), "an item is done twice");
	sql(w, "DROP TRIGGER meanwhile");
	assert_int_equal(work(w), HX_OK);
	assert_true(says(w, &stmt_statuses, "77 CANCELLED v2, 78 CANCELLED v2, 79 PENDING v1"));
	MUST_HOLD(says(w, &stmt_items, "0 77 done, 1 78 done"), "what was done has no result");
	assert_int_equal(work(w), HX_OK);
	finish(w);
	assert_true(says(w, &stmt_state, "COMPLETED 2"));
}

static void what_matches_no_longer_is_left(void **state)
{
	struct world *w = *state;

	set_scene(w);
	assert_int_equal(freeze(w, 0, 79, "[77,78,79,80]", 4, true), UNIT_WON);
	sql(w, "UPDATE hx_run SET attributes = '{\"customer\":\"sc-3\"}' WHERE subject = 77");
	assert_int_equal(work(w), HX_OK);
	MUST_HOLD(says(w, &stmt_statuses, "77 PENDING v1, 78 CANCELLED v2, 79 PENDING v1"),
		  "what matches no longer is cancelled");
	assert_true(says(
		w, &stmt_items,
		"0 77 skipped NO_LONGER_MATCHES, 1 78 done, 2 79 skipped NO_LONGER_MATCHES, 3 80 refused NOT_FOUND"));
}

static void migrates_those_that_fit(void **state)
{
	static const struct db_stmt stmt_versions = {
		.name = "test_bulk_versions",
		.sql = "SELECT group_concat(r.subject || ' of ' || r.definition_version || coalesce(' ' || r.attributes, ''), ', ')"
		       " FROM (SELECT * FROM hx_run ORDER BY subject) r",
		.in = "",
		.out = "t",
	};
	struct world *w = *state;

	set_scene_of(w, "migrate", "{\"definitionVersion\":4,\"steps\":{\"a\":\"b\"}}");
	assert_int_equal(freeze(w, 0, 78, "[77,78,79]", 3, true), UNIT_WON);
	assert_int_equal(work(w), HX_OK);
	assert_true(
		says(w, &stmt_items, "0 77 refused NOT_FOUND, 1 78 refused NOT_FOUND, 2 79 skipped NO_LONGER_MATCHES"));
	/* Now there is such a version; and one run has ended meanwhile. */
	sql(w, "UPDATE hx_bulk_item SET result = NULL, code = NULL WHERE n < 2");
	sql(w, "INSERT INTO hx_definition (name, version, text, at) VALUES ('order', 4, '{}', 0)");
	sql(w, "UPDATE hx_subject SET status = 'COMPLETED' WHERE id = 78");
	fixture.other = machine_from("'steps':[{'name':'b','type':'external_event','event':'go'}],"
				     "'attributes':{'client':'.input.customer'}",
				     4);
	assert_int_equal(work(w), HX_OK);
	assert_true(says(w, &stmt_items, "0 77 done, 1 78 refused WRONG_STATUS, 2 79 skipped NO_LONGER_MATCHES"));
	assert_true(says(
		w, &stmt_versions,
		"77 of 4 {\"client\":\"sc-1\"}, 78 of 3 {\"customer\":\"sc-1\"}, 79 of 3 {\"customer\":\"sc-2\"}"));
}

/* ---- jobs ---- */

static const struct db_stmt stmt_jobs = {
	.name = "test_jobs",
	.sql = "SELECT group_concat(s.id || ' ' || s.status || ' v' || s.version, ', ') FROM hx_subject s JOIN hx_job j ON j.subject = s.id",
	.in = "",
	.out = "t",
};

/* Jobs 50 to 54 of two queues, of which 53 is not parked, and 54 a run's; all of them are in the bulk, and one that is not there. */
static void set_scene_of_jobs(struct world *w)
{
	struct bulk_spec wanted = spec;
	struct stamp stamp;

	sql(w, "WITH RECURSIVE c(n) AS (SELECT 50 UNION ALL SELECT n + 1 FROM c WHERE n < 54)"
	       " INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head)"
	       " SELECT n, 5, CASE WHEN n = 53 THEN 'COMPLETED' ELSE 'PARKED' END, 3, 1, 1000, 3, x'00' FROM c");
	sql(w,
	    "INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload, attempt, ended_at, error, run)"
	    " SELECT id, 'default', CASE WHEN id = 52 THEN 'sms' ELSE 'mail' END, '', '', 'k', '1', 4, 1, 'no',"
	    " CASE WHEN id = 54 THEN 77 END FROM hx_subject");
	wanted.verb = slice_str("redrive");
	wanted.kind = slice_str("job");
	wanted.condition = slice_str("queue == \"mail\" and updatedAt < \"1970-01-01T00:00:02Z\"");
	stamp = world_begin(w);
	bulk_create(&w->unit, &stamp, &wanted);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(freeze(w, 0, 60, "[50,51,52,53,54,60]", 6, true), UNIT_WON);
}

static void jobs_are_redriven_once(void **state)
{
	struct world *w = *state;

	set_scene_of_jobs(w);
	sql(w, "UPDATE hx_subject SET updated_at = 3000 WHERE id = 51");
	assert_int_equal(work(w), HX_OK);
	MUST_HOLD(says(w, &stmt_jobs, "50 AVAILABLE v4, 51 PARKED v3, 52 PARKED v3, 53 COMPLETED v3, 54 PARKED v3"),
		  "a job is redriven that does not match any more");
	MUST_HOLD(
		says(w, &stmt_items,
		     "0 50 done, 1 51 skipped NO_LONGER_MATCHES, 2 52 skipped NO_LONGER_MATCHES, 3 53 refused WRONG_STATUS,"
		     " 4 54 refused WRONG_STATUS, 5 60 refused NOT_FOUND"),
		"what was done has no result");
	assert_int_equal(work(w), HX_OK);
	finish(w);
	assert_true(says(w, &stmt_state, "COMPLETED 6"));
}

/* It was redriven by somebody else, and is parked again, between the look and the write. */
static void a_job_that_has_changed_is_asked_again(void **state)
{
	struct world *w = *state;
	struct arena arena;
	struct bulk_hand hand;
	struct ask ask = {.unit = &w->unit};
	struct answer answer = {.kind = ANSWER_START, .node = "here"};
	bool changed = false;

	set_scene_of_jobs(w);
	arena_init(&arena, 64u << 20);
	bulk_hand_init(&hand, BULK, 0, 1, -1, &bulk_policy, &arena);
	for (;;) {
		answer.now = w->clock.wall;
		answer.id = w->last_op += 10;
		assert_true(task_take(&hand.task, hand.task.turn, &answer));
		hand.task.kind->ask(&hand.task, &ask);
		if (ask.kind == ASK_DONE)
			break;
		if (!changed && strcmp(w->unit.lines[0].stmt->name, "subject_is_at") == 0) {
			struct unit built = w->unit;

			sql(w, "UPDATE hx_subject SET updated_at = 3000, version = 5 WHERE id = 50");
			w->unit = built;
			changed = true;
		}
		run_or_fail(w);
		answer.kind = ANSWER_COMMIT;
		answer.result = &w->result;
	}
	arena_release(&arena);
	assert_true(changed);
	MUST_HOLD(says(w, &stmt_jobs, "50 PARKED v5, 51 AVAILABLE v4, 52 PARKED v3, 53 COMPLETED v3, 54 PARKED v3"),
		  "a job is redriven that has been another since it was looked at");
}

/* Of those that are there the parked ones of the workspace are found, by their index. */
static void parked_jobs_are_found(void **state)
{
	struct world *w = *state;
	struct bulk_spec wanted = spec;
	struct bulk_select select = {.dry = true};
	struct arena arena;

	set_scene_of_jobs(w);
	arena_init(&arena, 64u << 20);
	wanted.kind = slice_str("job");
	wanted.condition = slice_str("status == \"PARKED\" and queue == \"mail\"");
	select.arena = &arena;
	select.search = bulk_search(&wanted, bulk_where(&wanted, &arena));
	assert_non_null(select.search.where);
	bulk_select_init(&select);
	assert_int_equal(drive_task(w, &select.task), HX_OK);
	assert_int_equal(select.search.by, SEARCH_PARKED);
	assert_int_equal(select.row.selected, 3);
	wanted.condition = slice_str("workflow == \"\" and key == null");
	select.search = bulk_search(&wanted, bulk_where(&wanted, &arena));
	bulk_select_init(&select);
	assert_int_equal(drive_task(w, &select.task), HX_OK);
	assert_int_equal(select.search.by, SEARCH_ALL);
	assert_int_equal(select.row.selected, 5);
	arena_release(&arena);
}

static enum unit_verdict expire(struct world *w, int64_t age_ms)
{
	(void)world_begin(w);
	bulk_expire(&w->unit, BULK, age_ms);
	return world_run(w);
}

static void go_through_with_it(struct world *w)
{
	set_scene(w);
	assert_int_equal(freeze(w, 0, 78, "[77,78]", 2, true), UNIT_WON);
	MUST_HOLD(expire(w, 0) == UNIT_LOST, "a bulk is deleted that is under way");
	assert_int_equal(work(w), HX_OK);
	finish(w);
	assert_true(says(w, &stmt_state, "COMPLETED 2"));
	w->clock.wall.ms += 1000;
}

static const struct db_stmt stmt_left = {
	.name = "test_bulk_left",
	.sql = "SELECT (SELECT count(*) FROM hx_bulk_item) || ' ' || coalesce((SELECT expired || condition || arguments FROM hx_bulk), 'gone')",
	.in = "",
	.out = "t",
};

static void what_ended_long_ago_goes(void **state)
{
	struct world *w = *state;

	go_through_with_it(w);
	MUST_HOLD(expire(w, 1001) == UNIT_LOST, "a bulk is deleted before its time");
	assert_true(says(w, &stmt_items, "0 77 done, 1 78 done"));
	/* More than a page: it is expired at once, and goes with the last of them. */
	sql(w, "WITH RECURSIVE c(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM c WHERE n < 7000)"
	       " INSERT INTO hx_bulk_item (bulk, n, subject, result) SELECT 900000, n, n, 'done' FROM c");
	assert_int_equal(expire(w, 1000), UNIT_WON);
	assert_true(says(w, &stmt_left, "2001 1{}"));
	assert_int_equal(expire(w, 1000), UNIT_WON);
	assert_true(says(w, &stmt_left, "0 gone"));
	assert_int_equal(expire(w, 1000), UNIT_LOST);
}

static void its_key_stays(void **state)
{
	struct world *w = *state;

	go_through_with_it(w);
	sql(w, "UPDATE hx_bulk SET bulk_key = 'k'");
	assert_int_equal(expire(w, 1000), UNIT_WON);
	MUST_HOLD(says(w, &stmt_left, "0 2{}"), "a late retry is carried out again: its key is gone");
	(void)world_begin(w);
	bulk_scan_expired(&w->unit, 1000, 10);
	assert_int_equal(world_run(w), UNIT_WON);
	assert_int_equal(w->result.rows[0].n, 0);
}

static void arguments_fit_the_verb(void **state)
{
	static const struct {
		const char *kind, *verb, *arguments;
		bool fit;
	} all[] = {
		{"run", "cancel", "{}", true},
		{"run", "cancel", "{\"reason\":\"recalled\"}", true},
		{"run", "cancel", "{\"reason\":\"\"}", false},
		{"run", "cancel", "{\"step\":\"a\"}", false},
		{"run", "resolve", "{\"step\":\"a\",\"outcome\":\"done\",\"reason\":\"seen\"}", true},
		{"run", "resolve", "{\"step\":\"a\",\"outcome\":\"maybe\"}", false},
		{"run", "signal", "{\"data\":1}", false},
		{"job", "redrive", "{}", true},
		{"job", "redrive", "{\"reason\":\"seen\"}", false},
		{"run", "migrate", "{\"definitionVersion\":2}", true},
		{"run", "migrate", "{\"definitionVersion\":2,\"steps\":{\"a\":\"b\"}}", true},
		{"run", "migrate", "{\"definitionVersion\":0}", false},
		{"run", "migrate", "{\"definitionVersion\":\"2\"}", false},
		{"run", "migrate", "{\"definitionVersion\":2,\"steps\":[]}", false},
		{"run", "migrate", "{\"definitionVersion\":2,\"steps\":{\"a\":\"no such/name\"}}", false},
		{"run", "migrate", "{\"definitionVersion\":2,\"dryRun\":true}", false},
		{"batch", "cancel", "{}", true},
		{"batch", "cancel", "{\"reason\":\"recalled\"}", false},
		{"batch", "start", "{}", true},
		{"entity", "resolve", "{\"step\":\"a\",\"outcome\":\"done\",\"output\":1}", true},
		{"entity", "resolve", "{\"outcome\":\"done\"}", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct bulk_spec asked = {.verb = slice_str(all[i].verb),
					  .kind = slice_str(all[i].kind),
					  .arguments = slice_str(all[i].arguments)};
		struct run_verb_request rq = {0};
		const char *words = NULL;
		struct arena arena;

		arena_init(&arena, 1u << 20);
		assert_int_equal(bulk_request(&asked, &arena, &rq, &words), all[i].fit);
		assert_true(words && *words);
		arena_release(&arena);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slice_is_selected_once),
		TEST(a_cancel_ends_the_selection),
		TEST(a_selection_goes_on_after_a_crash),
		TEST(each_is_done_and_told_in_one_unit),
		TEST(what_matches_no_longer_is_left),
		TEST(migrates_those_that_fit),
		TEST(an_item_is_forgotten_with_its_end),
		TEST(arguments_fit_the_verb),
		TEST(jobs_are_redriven_once),
		TEST(a_job_that_has_changed_is_asked_again),
		TEST(parked_jobs_are_found),
		TEST(what_ended_long_ago_goes),
		TEST(its_key_stays),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests_name("bulk", tests, NULL, forget);
}
