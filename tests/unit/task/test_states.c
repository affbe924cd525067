/* A kind that is made of a table (task/states.h): what each column comes to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "task/states.h"

enum { ERRAND_NEW, ERRAND_WRITING, ERRAND_ACTING, ERRAND_RESTING, ERRAND_DONE };

struct errand {
	struct task task;
	int64_t op, attempt;
	struct mono_time rests_until;
};

static void take_written(struct errand *e, const struct answer *answer)
{
	e->attempt = answer->id;
	task_go(&e->task, ERRAND_ACTING);
}

static void take_acted(struct errand *e, const struct answer *answer)
{
	e->rests_until = mono_add_ms(answer->mono, 5);
	task_go(&e->task, ERRAND_RESTING);
}

static void take_rested(struct errand *e, const struct answer *answer)
{
	(void)answer;
	task_end(&e->task, HX_BUSY);
}

static void build_write(const struct errand *e, struct unit *unit)
{
	unit_touch(unit, e->op + 1);
}

static struct act_call call_of(const struct errand *e)
{
	return (struct act_call){.attempt = e->attempt};
}

static const char *words(const struct errand *e)
{
	return e->attempt == 7 ? "at its seventh" : "acting";
}

static const TASK_STATES(struct errand) errand_states[] = {
	[ERRAND_NEW] = {"new", .then = ERRAND_WRITING},
	[ERRAND_WRITING] = {"writing", take_written, build_write, .unknown = ERRAND_RESTING},
	[ERRAND_ACTING] = {.words = words, .take = take_acted, .act = call_of},
	[ERRAND_RESTING] = {"resting", take_rested, .until = offsetof(struct errand, rests_until)},
	[ERRAND_DONE] = {"done"},
};

TASK_KIND(errand_kind, "errand", struct errand, errand_states, .op = offsetof(struct errand, op));

static struct ask next_ask(struct errand *e, struct unit *unit, const struct answer *answer)
{
	struct ask ask = {.unit = unit};

	assert_true(task_take(&e->task, e->task.turn, answer));
	e->task.kind->ask(&e->task, &ask);
	return ask;
}

static void each_state_asks_for_its_own(void **state)
{
	struct errand e = {.op = 42};
	struct unit_result won = {.verdict = UNIT_WON};
	struct answer answer = {.id = 7, .mono = {1000}, .result = &won};
	struct unit unit;
	struct ask ask;

	(void)state;
	task_init(&e.task, &errand_kind, /* topic= */ 0);
	assert_string_equal(errand_kind.where(&e.task), "new");
	ask = next_ask(&e, &unit, &answer);
	assert_int_equal(ask.kind, ASK_COMMIT);
	assert_int_equal(unit.op, 42);
	assert_int_equal(unit.subjects[0], 43);
	ask = next_ask(&e, &unit, &answer);
	assert_int_equal(ask.kind, ASK_ACT);
	assert_int_equal(ask.act.attempt, 7);
	assert_string_equal(errand_kind.where(&e.task), "at its seventh");
	ask = next_ask(&e, &unit, &answer);
	assert_int_equal(ask.kind, ASK_SLEEP);
	assert_int_equal(ask.until.ns, 5001000);
	assert_false(task_is_done(&e.task));
	ask = next_ask(&e, &unit, &answer);
	assert_int_equal(ask.kind, ASK_DONE);
	assert_int_equal(ask.code, HX_BUSY);
	assert_true(task_is_done(&e.task));
	assert_string_equal(errand_kind.where(&e.task), "done");
}

static void what_nobody_knows_is_found_out(void **state)
{
	struct unit_result unknown = {.verdict = UNIT_UNKNOWN};
	struct answer answer = {.id = 7, .result = &unknown};
	struct errand e = {.op = 42};
	struct unit unit;

	(void)state;
	task_init(&e.task, &errand_kind, /* topic= */ 0);
	assert_int_equal(next_ask(&e, &unit, &answer).kind, ASK_COMMIT);
	assert_int_equal(next_ask(&e, &unit, &answer).kind, ASK_SLEEP);
	assert_string_equal(errand_kind.where(&e.task), "resting");
	assert_int_equal(e.attempt, 0); /* its function was not asked */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_state_asks_for_its_own),
		cmocka_unit_test(what_nobody_knows_is_found_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
