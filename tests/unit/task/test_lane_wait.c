/* Who has waited for as long as it can: its unit is not sent, and it is told so. Time is moved by hand. */
#include "unit/task/party.h"

#include "support/must_hold.h"
#include "support/subjects.h"

#define STORE_TIMEOUT_MS 2000

static void who_waits_too_long_is_not_sent(void **state)
{
	struct caller holder, late, early;

	(void)state;
	party_start_with(STORE_SQLITE_MEMORY, 1000, STORE_TIMEOUT_MS);
	hold_lane(party.lane, &holder);
	caller_probe(&late, build_create, /* subject= */ 1, 0);
	submit(party.lane, &late);
	party.clock.mono_ms += STORE_TIMEOUT_MS;
	caller_probe(&early, build_create, /* subject= */ 2, 0);
	submit(party.lane, &early);
	let_lane_go();
	AWAIT(late.done && early.done);
	assert_int_equal(late.probe.verdict, UNIT_FAILED);
	assert_int_equal(late.probe.error, HX_STORE_UNAVAILABLE);
	assert_int_equal(early.code, HX_OK);
	assert_int_equal(ask_lane(party.lane, build_read, 1, 0).rows_n, 0);
	assert_int_equal(ask_lane(party.lane, build_read, 2, 0).rows_n, 1);
}

/* Commits twice. Between the two, all of its time passes. */
struct dawdler {
	struct task task;
	struct stamp stamp;
	unsigned answers;
	enum unit_verdict verdicts[3];
	struct hx_error error;
};

static void dawdler_take(struct task *task, const struct answer *answer)
{
	struct dawdler *d = (struct dawdler *)task;

	d->stamp = (struct stamp){answer->id, answer->now, answer->node};
	if (answer->kind == ANSWER_COMMIT) {
		d->verdicts[d->answers] = answer->result->verdict;
		d->error = answer->result->error;
		party.clock.mono_ms += 2 * STORE_TIMEOUT_MS;
	}
	d->answers++;
}

static void dawdler_ask(const struct task *task, struct ask *ask)
{
	const struct dawdler *d = (const struct dawdler *)task;

	ask->kind = d->answers < 3 ? ASK_COMMIT : ASK_DONE;
	ask->code = HX_OK;
	if (ask->kind == ASK_DONE)
		return;
	unit_init(ask->unit, d->stamp.op);
	subject_create(ask->unit, &d->stamp, /* id= */ 10 + d->answers, KIND, "open");
}

static void who_asks_after_its_time_is_not_sent(void **state)
{
	static const struct task_kind kind = {.name = "dawdler", .take = dawdler_take, .ask = dawdler_ask};
	struct dawdler dawdler = {0};
	struct caller c = {0};

	(void)state;
	party_start_with(STORE_SQLITE_MEMORY, 1000, STORE_TIMEOUT_MS);
	task_init(&dawdler.task, &kind, /* topic= */ 0);
	caller_sit(&c, &dawdler.task);
	submit(party.lane, &c);
	AWAIT(c.done);
	assert_int_equal(dawdler.verdicts[1], UNIT_WON);
	MUST_HOLD(dawdler.verdicts[2] == UNIT_FAILED, "its caller has given up, and it is sent all the same");
	assert_int_equal(dawdler.error.code, HX_STORE_UNAVAILABLE);
	assert_int_equal(ask_lane(party.lane, build_read, 11, 0).rows_n, 1);
	assert_int_equal(ask_lane(party.lane, build_read, 12, 0).rows_n, 0);
	AWAIT(party_stats().refused == 1);
}

/* Acts, and writes down what came of it. Between the two, more time passes than a caller has. */
struct recorder {
	struct task task;
	struct stamp stamp;
	enum { RECORDER_NEW, RECORDER_ACTING, RECORDER_WRITING, RECORDER_DONE } at;
	enum unit_verdict verdict;
};

static void recorder_take(struct task *task, const struct answer *answer)
{
	struct recorder *r = (struct recorder *)task;

	r->stamp = (struct stamp){answer->id, answer->now, answer->node};
	if (answer->kind == ANSWER_ACT)
		party.clock.mono_ms += 5 * STORE_TIMEOUT_MS;
	if (answer->kind == ANSWER_COMMIT)
		r->verdict = answer->result->verdict;
	r->at++;
}

static void recorder_ask(const struct task *task, struct ask *ask)
{
	const struct recorder *r = (const struct recorder *)task;

	ask->kind = r->at == RECORDER_ACTING ? ASK_ACT : r->at == RECORDER_WRITING ? ASK_COMMIT : ASK_DONE;
	ask->act = (struct act_call){.action = "act"};
	ask->code = HX_OK;
	if (ask->kind != ASK_COMMIT)
		return;
	unit_init(ask->unit, r->stamp.op);
	subject_create(ask->unit, &r->stamp, /* id= */ 20, KIND, "open");
}

/* What an action has answered is written down, although its caller may wait no longer for anything else. */
static void what_was_done_is_not_given_up(void **state)
{
	static const struct task_kind kind = {.name = "recorder", .take = recorder_take, .ask = recorder_ask};
	struct recorder recorder = {.verdict = UNIT_UNKNOWN};
	struct caller c = {0};

	(void)state;
	party_start_with(STORE_SQLITE_MEMORY, 1000, STORE_TIMEOUT_MS);
	task_init(&recorder.task, &kind, /* topic= */ 0);
	caller_sit(&c, &recorder.task);
	submit(party.lane, &c);
	AWAIT(c.done);
	MUST_HOLD(recorder.verdict == UNIT_WON, "an effect is done, and its record is given up");
	assert_int_equal(ask_lane(party.lane, build_read, 20, 0).rows_n, 1);
}

/* ---- a statement of the user's ---- */

#define LIMIT_MS 600000

static void build_endless(struct unit *unit, const struct probe *p)
{
	static const struct db_stmt endless = {
		.name = "endless",
		.sql = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c",
		.in = "",
		.out = "i",
		.foreign = true,
	};

	(void)p;
	unit_add(unit, UNIT_ANY, &endless, 0, NULL);
	unit_limit(unit, LIMIT_MS);
}

/* They were in one round: the statement goes on for as long as the clock stands still. */
static void who_has_its_answer_does_not_wait_for_a_statement(void **state)
{
	static struct caller endless; /* it is in the lane until that stops */
	struct caller holder, c;

	(void)state;
	party_start_with(STORE_SQLITE_MEMORY, 1000, STORE_TIMEOUT_MS);
	hold_lane(party.lane, &holder);
	caller_probe(&endless, build_endless, /* subject= */ 1, 0);
	submit(party.lane, &endless);
	caller_probe(&c, build_create, /* subject= */ 2, 0);
	submit(party.lane, &c);
	let_lane_go();
	AWAIT(c.done);
	assert_int_equal(c.code, HX_OK);
	assert_false(is_done(&endless));
	party.clock.mono_ms += LIMIT_MS; /* that was its short try; the long one is ended by the stop, or by this */
}

static int tear_down(void **state)
{
	(void)state;
	party_end();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(who_waits_too_long_is_not_sent, tear_down),
		cmocka_unit_test_teardown(who_asks_after_its_time_is_not_sent, tear_down),
		cmocka_unit_test_teardown(what_was_done_is_not_given_up, tear_down),
		cmocka_unit_test_teardown(who_has_its_answer_does_not_wait_for_a_statement, tear_down),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
