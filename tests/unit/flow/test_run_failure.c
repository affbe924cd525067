/* Runs that fail, over a real store: what their definition makes of it, who is told, and the time of a whole run. */
#include "unit/flow/driven_run.h"

#include "flow/run_verb.h"
#include "support/must_hold.h"

#define TASK_A "{'name':'a','type':'task','action':'do','compensate':'undo'}"
#define TASK_B "{'name':'b','type':'task','action':'do','retry':{'max_attempts':1}}"
#define NOT_NOW "{\"code\":\"ACTION_FAILED\",\"message\":\"not now\",\"step\":\"b\"}"
#define TOO_LATE(step) "{\"code\":\"TIMEOUT\",\"message\":\"the run was not done in time\",\"step\":\"" step "\"}"

static const struct script fails_second[] = {{ACT_OK, "1"}, {ACT_FAILED, "not now"}, {ACT_OK, "null"}, {0}};

static const struct db_stmt stmt_told = {
	.name = "test_told",
	.sql = "SELECT coalesce(group_concat(j.action || ' ' || j.effect_key || ' ' || j.payload, '; '), '') FROM hx_job j"
	       " WHERE j.queue = 'after-effects' AND j.due_at <= hx_now_ms() AND j.workspace = 'default'",
	.in = "",
	.out = "t",
};

static bool tells(struct world *w, const char *wanted)
{
	unit_init(&w->unit, 0);
	unit_add(&w->unit, UNIT_ANY, &stmt_told, 0, NULL);
	assert_int_equal(world_run(w), UNIT_WON);
	return slice_is(db_cell(&w->result.rows[0], 0, 0)->s, wanted);
}

static void test_a_failure_compensates(void **state)
{
	struct world *w = *state;

	define("'on_failure':'compensate','steps':[" TASK_A "," TASK_B "]");
	create(w, "{}");
	assert_int_equal(drive(w, fails_second), HX_OK);
	assert_run(w, "CANCELLING v5, step 1 attempt 1 FAILED due error " NOT_NOW, "0 COMPLETED 1");
	assert_int_equal(drive(w, ok), HX_OK);
	assert_run(w, "CANCELLED v8, step 1 attempt 1 FAILED error " NOT_NOW, "0 COMPLETED 1 undone");
	assert_string_equal(fixture.calls, "do/a/0 #1; do/b/0 #1; undo/a/undo #1; ");
}

static void test_a_failure_is_told(void **state)
{
	struct world *w = *state;

	define("'failure_after_effect':['ask','nothing'],'steps':[" TASK_A "," TASK_B "]");
	create(w, "{\"n\":1}");
	assert_int_equal(drive(w, fails_second), HX_OK);
	assert_run(w, "FAILED v5, step 1 attempt 1 FAILED error " NOT_NOW, "0 COMPLETED 1");
#define PAYLOAD                                                                                                         \
	"{\"workflow\":\"order\",\"id\":\"run_000000000002d\",\"step\":\"b\",\"requester\":\"me\",\"input\":{\"n\":1}," \
	"\"from\":\"RUNNING\",\"to\":\"FAILED\",\"version\":5,\"output\":null,\"error\":" NOT_NOW "}"
	MUST_HOLD(tells(w, "ask run_000000000002d/failed/1/ask " PAYLOAD
			   "; nothing run_000000000002d/failed/1/nothing " PAYLOAD),
		  "a run has failed, and nobody is told");
}

/* Not in the midst of a step, but before the next. */
static void test_nothing_is_begun_too_late(void **state)
{
	struct world *w = *state;

	define("'timeout':'1m','failure_after_effect':['ask'],'steps':[" TASK_A
	       ",{'name':'w','type':'wait','for':'1h'},"
	       "{'name':'b','type':'task','action':'do'}]");
	create(w, "{}");
	assert_int_equal(drive(w, ok), HX_OK);
	MUST_HOLD(run_is(w, "WAITING v4, step 1 attempt 1 due in 60000"), "nobody looks at a run whose time is over");
	fake_clock_advance_ms(&w->clock, 59999);
	assert_int_equal(drive(w, ok), HX_OK);
	fake_clock_advance_ms(&w->clock, 1);
	assert_int_equal(drive(w, ok), HX_OK);
	MUST_HOLD(run_is(w, "FAILED v5, step 1 attempt 1 FAILED error " TOO_LATE("w")),
		  "a run goes on although its time is over");
}

/* What a caller says to the run. */
static enum hx_code say(struct world *w, const struct run_verb_request *rq)
{
	struct answer answer = {.kind = ANSWER_START, .node = "here"};
	struct ask ask = {.unit = &w->unit};
	struct run_verb v;

	run_verb_init(&v, rq, &fixture.arena);
	for (;;) {
		answer.now = w->clock.wall;
		answer.id = w->last_op += 10;
		assert_true(task_take(&v.task, v.task.turn, &answer));
		v.task.kind->ask(&v.task, &ask);
		if (ask.kind == ASK_DONE)
			return ask.code;
		(void)world_run(w);
		answer.kind = ANSWER_COMMIT;
		answer.result = &w->result;
	}
}

static void test_a_retry_has_all_the_time_again(void **state)
{
	struct world *w = *state;
	struct run_verb_request rq = {
		.kind = RUN_RETRY, .workspace = slice_str("default"), .subject = RUN, .policy = &policy};

	define("'timeout':'1m','steps':[{'name':'e','type':'external_event','event':'go'}]");
	create(w, "{}");
	assert_int_equal(drive(w, ok), HX_OK);
	fake_clock_advance_ms(&w->clock, 60000);
	assert_int_equal(drive(w, ok), HX_OK);
	assert_run(w, "FAILED v3, step 0 attempt 1 FAILED error " TOO_LATE("e"), "");
	fake_clock_advance_ms(&w->clock, 5000);
	assert_int_equal(say(w, &rq), HX_OK);
	assert_int_equal(drive(w, ok), HX_OK);
	assert_run(w, "WAITING v5, step 0 attempt 1 awaits event go due in 60000", "");
}

/* What nobody knows is for a person, whatever the time. */
static void test_doubt_outlives_the_time(void **state)
{
	static const struct script unknown[] = {{ACT_UNKNOWN, "lost"}, {0}};
	struct world *w = *state;

	define("'timeout':'1m','on_failure':'compensate','steps':[{'name':'a','type':'task','action':'once'}]");
	create(w, "{}");
	assert_int_equal(drive(w, unknown), HX_OK);
	assert_run(w,
		   "WAITING v3 doubt, step 0 attempt 1 UNKNOWN awaits person error {\"code\":\"OUTCOME_UNKNOWN\","
		   "\"message\":\"lost\",\"step\":\"a\"}",
		   "");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_failure_compensates),     TEST(test_a_failure_is_told),
		TEST(test_nothing_is_begun_too_late), TEST(test_a_retry_has_all_the_time_again),
		TEST(test_doubt_outlives_the_time),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, forget);
}
