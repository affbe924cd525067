/* Restarting a run, over a real store: what passes to the new one, who undoes it and how, and what is refused. */
#include "unit/flow/driven_run.h"

#include "flow/run_verb.h"
#include "support/must_hold.h"

#define TASK_A "{'name':'a','type':'task','action':'do','input':'{n: .input.n}','compensate':'undo'}"
#define TASK_B "{'name':'b','type':'task','action':'do','compensate':'undo','retry':{'max_attempts':1}}"

static const struct script fails_second[] = {{ACT_OK, "1"}, {ACT_FAILED, "not now"}, {ACT_OK, "null"}, {0}};

static enum hx_code say(struct world *w, enum run_verb_kind kind, int64_t subject, const char *name, const char *input,
			int64_t *ret_new)
{
	struct answer answer = {.kind = ANSWER_START, .node = "here"};
	struct ask ask = {.unit = &w->unit};
	struct run_verb_request rq = {
		.kind = kind,
		.workspace = slice_str("default"),
		.subject = subject,
		.policy = &policy,
		.name = slice_str(name),
		.requester = slice_str("you"),
		.data = input ? slice_str(input) : slice_of(NULL, 0),
	};
	struct run_verb v;

	run_verb_init(&v, &rq, &fixture.arena);
	for (;;) {
		answer.now = w->clock.wall;
		answer.id = w->last_op += 10;
		answer.more_ids[0] = 5000 + w->last_op;
		assert_true(task_take(&v.task, v.task.turn, &answer));
		v.task.kind->ask(&v.task, &ask);
		if (ask.kind == ASK_DONE)
			break;
		(void)world_run(w);
		answer.kind = ANSWER_COMMIT;
		answer.result = &w->result;
	}
	if (ret_new)
		*ret_new = v.restart.subject;
	return ask.code;
}

static const struct db_stmt stmt_run_of = {
	.name = "test_run_of",
	.sql = "SELECT s.status || ' v' || s.version FROM hx_run r JOIN hx_subject s ON s.id = r.subject JOIN hidden h ON h.subject = r.subject",
	.in = "",
	.out = "t",
};

static const struct db_stmt stmt_steps_of = {
	.name = "test_steps_of",
	.sql = "SELECT coalesce(group_concat(position || ' ' || status || ' ' || output || ' by ' || coalesce(made_by, 0) ||"
	       " ' with ' || coalesce(made_with, '-'), ', '), '') FROM hx_run_step t JOIN hidden h ON h.subject = t.run",
	.in = "",
	.out = "t",
};

/* Of one of the two runs. */
static void assert_one(struct world *w, int64_t subject, const char *run, const char *steps)
{
	char text[400];

	snprintf(
		text, sizeof text,
		"CREATE TEMP TABLE IF NOT EXISTS hidden (subject INTEGER); DELETE FROM hidden; INSERT INTO hidden VALUES (%lld)",
		(long long)subject);
	sql(w, text);
	assert_is(w, &stmt_run_of, run);
	assert_is(w, &stmt_steps_of, steps);
}

static void begin(struct world *w)
{
	define("'steps':[" TASK_A "," TASK_B "]");
	create(w, "{\"n\":1}");
	assert_int_equal(drive(w, fails_second), HX_OK);
}

static void test_what_is_done_passes(void **state)
{
	struct world *w = *state;
	int64_t new;

	begin(w);
	assert_int_equal(say(w, RUN_RESTART, RUN, "b", "{\"n\":2}", &new), HX_OK);
	assert_one(w, RUN, "FAILED v6", "0 COMPLETED 1 by 0 with -");
	assert_one(w, new, "PENDING v1", "0 COMPLETED 1 by 77 with {\"n\":1}");
	fixture.subject = new;
	fixture.calls[0] = '\0';
	assert_int_equal(drive(w, ok), HX_OK);
	assert_one(w, new, "COMPLETED v3",
		   "0 COMPLETED 1 by 77 with {\"n\":1}, 1 COMPLETED {\"n\":9007199254740993} by 0 with -");
	assert_string_equal(fixture.calls, "do/b/0 #1; ");
}

/* Under the key, and with the input, of who has done it. */
static void test_the_new_run_undoes(void **state)
{
	static const struct script fails_first[] = {{ACT_FAILED, "not now"}, {0}};
	struct world *w = *state;
	int64_t new;

	begin(w);
	assert_int_equal(say(w, RUN_RESTART, RUN, "b", "{\"n\":2}", &new), HX_OK);
	fixture.subject = new;
	assert_int_equal(drive(w, fails_first), HX_OK);
	assert_int_equal(say(w, RUN_CANCEL, new, "", NULL, NULL), HX_OK);
	fixture.keys[0] = '\0';
	assert_int_equal(drive(w, ok), HX_OK);
	MUST_HOLD(strcmp(fixture.keys, "run_000000000002d/a/undo; ") == 0,
		  "what one run has done is undone under the key of another");
	MUST_HOLD(strstr(fixture.bodies, "\"input\":{\"n\":1}"), "what was done is undone with another input");
	assert_non_null(strstr(fixture.bodies, "\"id\":\"run_000000000002d\""));
}

/* A statement finds what it has to undo by the id that it was done with. */
static void test_statements_undo_what_the_old_run_did(void **state)
{
	static const struct script fails[] = {{ACT_FAILED, "not now"}, {0}};
	static const struct db_stmt stmt_noted = {
		.name = "test_noted", .sql = "SELECT group_concat(name) FROM noted", .in = "", .out = "t"};
	struct world *w = *state;
	int64_t new;

	sql(w, "CREATE TABLE noted (name TEXT PRIMARY KEY, sku TEXT)");
	define("'steps':[{'name':'a','type':'task','action':'nothing','compensate':'note'}," TASK_B "]");
	create(w, "{\"sku\":\"x\"}");
	assert_int_equal(drive(w, fails), HX_OK);
	assert_int_equal(say(w, RUN_RESTART, RUN, "b", NULL, &new), HX_OK);
	fixture.subject = new;
	assert_int_equal(drive(w, fails), HX_OK);
	assert_int_equal(say(w, RUN_CANCEL, new, "", NULL, NULL), HX_OK);
	assert_int_equal(drive(w, ok), HX_OK);
	assert_is(w, &stmt_noted, "run_000000000002d");
}

static void test_a_restarted_run_is_over(void **state)
{
	struct world *w = *state;
	int64_t new;

	begin(w);
	assert_int_equal(say(w, RUN_RESTART, RUN, "c", NULL, NULL), HX_NOT_FOUND);
	assert_int_equal(say(w, RUN_RESTART, RUN, "a", NULL, &new), HX_OK);
	assert_one(w, new, "PENDING v1", "");
	MUST_HOLD(say(w, RUN_RETRY, RUN, "", NULL, NULL) == HX_RESTARTED, "a run that was restarted goes on beside it");
	assert_int_equal(say(w, RUN_CANCEL, RUN, "", NULL, NULL), HX_RESTARTED);
	assert_int_equal(say(w, RUN_PAUSE, RUN, "", NULL, NULL), HX_RESTARTED);
	assert_int_equal(say(w, RUN_RESTART, RUN, "a", NULL, NULL), HX_RESTARTED);
	assert_int_equal(say(w, RUN_RESTART, new, "a", NULL, NULL), HX_WRONG_STATUS); /* it has not ended */
}

static void test_only_from_where_it_has_been(void **state)
{
	struct world *w = *state;

	define("'steps':[{'name':'a','type':'condition','when':'true','then':'c'},{'name':'b','type':'task','action':'do'},"
	       "{'name':'c','type':'task','action':'do'},{'name':'d','type':'task','action':'do','retry':{'max_attempts':1}}]");
	create(w, "{}");
	assert_int_equal(drive(w, fails_second), HX_OK);
	MUST_HOLD(say(w, RUN_RESTART, RUN, "b", NULL, NULL) == HX_WRONG_STATUS,
		  "a run is to begin with a step that its way does not lead to");
	assert_int_equal(say(w, RUN_RESTART, RUN, "c", NULL, NULL), HX_OK);
}

/* It was read as a child of the old run, and ends as one of the new. */
static void test_a_child_tells_whose_it_is(void **state)
{
	static const struct db_stmt stmt_child = {
		.name = "test_child", .sql = "SELECT subject FROM hx_run WHERE parent = 77", .in = "", .out = "i"};
	static const struct db_stmt stmt_due = {
		.name = "test_due",
		.sql = "SELECT group_concat(subject) FROM hx_run WHERE parent IS NULL AND due_at IS NOT NULL",
		.in = "",
		.out = "t"};
	struct world *w = *state;

	define("'steps':[{'name':'p','type':'parallel','branches':{'x':[" TASK_B "]}}]");
	create(w, "{}");
	assert_int_equal(drive(w, ok), HX_OK);
	create_as(w, RUN + 1, "{}");
	sql(w, "UPDATE hx_run SET awaits = 'child', due_at = NULL WHERE parent IS NULL");
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, &stmt_child, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	fixture.subject = world_int(w, 0, 0);
	fixture.meanwhile = "UPDATE hx_run SET parent = 78 WHERE parent = 77";
	assert_int_equal(drive(w, ok), HX_OK);
	assert_null(fixture.meanwhile);
	assert_is(w, &stmt_due, "78");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_done_passes),
		TEST(test_the_new_run_undoes),
		TEST(test_statements_undo_what_the_old_run_did),
		TEST(test_a_restarted_run_is_over),
		TEST(test_only_from_where_it_has_been),
		TEST(test_a_child_tells_whose_it_is),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, forget);
}
