/*
 * The simulator's own ways with calls: those that are heard out end in every way after their lease, a scenario may have an
 * outside of its own, and tasks of one node may share a claim. What is looked for is that the schedules are there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "flow/janitor.h"
#include "flow/shapes.h"
#include "flow/subject.h"
#include "sim/explore.h"
#include "sim/invariant.h"

#define KIND 1
#define LEASE_MS 60000
#define STATES_MAX 1000000
#define WORDS_MAX (1u << 20)

/* ---- a task that claims, makes something, and keeps what it was told ---- */

struct maker_plan {
	bool hear_out;
	bool shares; /* it has no claim of its own: it acts under fence 1 at once */
};

struct maker {
	struct task task;
	const struct maker_plan *plan;
	enum { MAKER_NEW, MAKER_CLAIMING, MAKER_ACTING, MAKER_DONE } at;
	struct stamp stamp;
	struct mono_time since;
	bool acted, overrun;
	enum act_outcome outcome;
};

static void maker_take(struct task *task, const struct answer *answer)
{
	struct maker *m = (struct maker *)task;

	if (answer->kind == ANSWER_START) {
		m->stamp = (struct stamp){answer->id, answer->now, answer->node};
		m->since = answer->mono;
		m->at = m->plan->shares ? MAKER_ACTING : MAKER_CLAIMING;
	} else if (answer->kind == ANSWER_COMMIT) {
		m->at = answer->result->verdict == UNIT_WON ? MAKER_ACTING : MAKER_DONE;
	} else {
		m->at = MAKER_DONE;
		m->acted = true;
		m->outcome = answer->outcome;
		m->overrun = answer->overrun;
	}
}

static void maker_ask(const struct task *task, struct ask *ask)
{
	const struct maker *m = (const struct maker *)task;

	ask->kind = m->at == MAKER_DONE ? ASK_DONE : m->at == MAKER_ACTING ? ASK_ACT : ASK_COMMIT;
	ask->code = HX_OK;
	ask->act = (struct act_call){.action = "make",
				     .key = slice_str("key"),
				     .attempt = 1,
				     .hear_out = m->plan->hear_out,
				     .lease = {.subject = 1, .fence = 1, .lease_ms = LEASE_MS, .since = m->since}};
	if (ask->kind != ASK_COMMIT)
		return;
	unit_init(ask->unit, m->stamp.op);
	subject_claim(ask->unit, &m->stamp, &(struct move){1, "open", "busy"}, /* version= */ 1, LEASE_MS);
}

static const char *maker_where(const struct task *task)
{
	static const char *const names[] = {"new", "claiming", "making", "done"};

	return names[((const struct maker *)task)->at];
}

static const struct task_shape maker_shape = SHAPE(struct maker, NULL,
						   PART_WITH(INNER, struct maker, stamp, &stamp_shape));

static const struct task_kind maker_kind = {
	.name = "maker",
	.size = sizeof(struct maker),
	.take = maker_take,
	.ask = maker_ask,
	.where = maker_where,
	.shape = &maker_shape,
};

static void init_maker(union sim_task *task, const void *plan, struct arena *texts)
{
	struct maker *m = (struct maker *)task;

	(void)texts;
	*m = (struct maker){.plan = plan};
	task_init(&m->task, &maker_kind, /* topic= */ 0);
}

static const struct maker_plan heard_out = {.hear_out = true}, aborted = {0}, sharing = {.shares = true};

static const struct janitor_rule rule = {.kind = KIND, .claim_into = "busy", .revert_to = "open"};
static const struct janitor_rules rules = {1, &rule};

static void init_janitor(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)texts;
	janitor_init((struct janitor *)task, plan, /* budget= */ 8, (struct mono_time){0});
}

/* ---- an outside of the scenario's own: what was made, and when ---- */

struct outside {
	bool made_late; /* the janitor had ended the claim by then */
	bool cut_done, cut_not;
};

static struct outside *outside_of(const struct sim *sim)
{
	return (struct outside *)(uintptr_t)sim->state.notes;
}

static void make(struct sim *sim)
{
	struct sim_row row;

	assert_true(sim_read_row(sim, /* subject= */ 1, &row));
	outside_of(sim)->made_late = !row.claimed;
}

static bool allows(const struct sim *sim, const struct act_call *call, enum sim_act how)
{
	(void)sim;
	return slice_is(call->key, "key") && how != SIM_ACT_UNKNOWN_NOT;
}

static struct answer end(struct sim *sim, const struct act_call *call, enum sim_act how)
{
	struct answer answer = {.kind = ANSWER_ACT, .outcome = ACT_OK, .output = slice_str("{}")};

	(void)call;
	if (how == SIM_ACT_FAILED)
		answer.outcome = ACT_FAILED_FOR_GOOD;
	else
		make(sim);
	if (how == SIM_ACT_UNKNOWN_DONE)
		answer.outcome = ACT_UNKNOWN;
	return answer;
}

static void cut(struct sim *sim, const struct act_call *call, bool done)
{
	(void)call;
	*(done ? &outside_of(sim)->cut_done : &outside_of(sim)->cut_not) = true;
	if (done)
		make(sim);
}

static const struct sim_outside outside = {allows, end, cut};

/* ---- what is reached ---- */

static unsigned told[ACT_CLAIM_LOST + 1][2]; /* by outcome and overrun */
static unsigned made_late, cut_done, cut_not;

static void note(struct sim *sim)
{
	const struct maker *m = (const struct maker *)&sim->state.actors[0].task;

	if (sim->state.actors[0].state == SIM_DONE && m->acted)
		told[m->outcome][m->overrun]++;
	if (!sim->scenario->outside)
		return;
	made_late += outside_of(sim)->made_late;
	cut_done += outside_of(sim)->cut_done;
	cut_not += outside_of(sim)->cut_not;
}

static struct sim_scenario scenario(const struct maker_plan *plan)
{
	return (struct sim_scenario){
		.name = "a maker and a janitor on two nodes",
		.subjects_n = 1,
		.kind = KIND,
		.initial = "open",
		.claim_status = "busy",
		.revert_status = "open",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {{"maker", 0, false, init_maker, plan}, {"janitor", 1, true, init_janitor, &rules}},
		.bounds = {.lapses = 2, .lost_answers = 1},
		.check = note,
	};
}

/* All invariants hold, or the given one breaks. */
static void explore(const struct sim_scenario *scenario, const char *violation)
{
	struct explore_report report;
	struct strbuf words;
	bool held, as_expected;

	memset(told, 0, sizeof told);
	made_late = cut_done = cut_not = 0;
	strbuf_init(&words, WORDS_MAX);
	held = explore_all(scenario, STATES_MAX, &report, &words);
	as_expected = violation ? !held && strstr(words.p, violation) : held;
	if (!as_expected)
		fprintf(stderr, "%s", held ? "nothing was found\n" : words.p);
	strbuf_release(&words);
	assert_true(as_expected);
}

static void assert_all_told_late(void)
{
	assert_true(told[ACT_OK][true] && told[ACT_FAILED][true] && told[ACT_UNKNOWN][true]);
	assert_true(told[ACT_OK][false] && told[ACT_FAILED][false] && told[ACT_UNKNOWN][false]);
	assert_int_equal(told[ACT_CLAIM_LOST][true], 0);
}

static void exhaustive_heard_out(void **state)
{
	struct sim_scenario s = scenario(&heard_out);

	(void)state;
	s.world = WORLD_KEYED;
	explore(&s, /* violation= */ NULL);
	assert_all_told_late();
	assert_true(told[ACT_CLAIM_LOST][false]); /* not begun yet when the lease was over */
	s.world = WORLD_UNWATCHED;
	explore(&s, /* violation= */ NULL);
	assert_all_told_late();
	assert_int_equal(told[ACT_CLAIM_LOST][false], 0);
}

static void exhaustive_aborted(void **state)
{
	struct sim_scenario s = scenario(&aborted);

	(void)state;
	s.world = WORLD_KEYED;
	explore(&s, /* violation= */ NULL);
	for (unsigned outcome = ACT_OK; outcome <= ACT_CLAIM_LOST; outcome++)
		assert_int_equal(told[outcome][true], 0);
	assert_true(told[ACT_OK][false] && told[ACT_CLAIM_LOST][false]);
}

static void exhaustive_outside(void **state)
{
	struct sim_scenario s = scenario(&heard_out);

	(void)state;
	s.outside = &outside;
	explore(&s, /* violation= */ NULL);
	assert_true(made_late && told[ACT_OK][true] && told[ACT_FAILED_FOR_GOOD][true] && told[ACT_UNKNOWN][true]);
	assert_int_equal(told[ACT_FAILED][false] + told[ACT_FAILED][true], 0);
	assert_int_equal(cut_done, 0); /* the end of its lease does not cut it in the middle, a crash does */
	assert_true(cut_not);
	s.bounds.crashes = 1;
	explore(&s, /* violation= */ NULL);
	assert_true(cut_done);
	s = scenario(&aborted);
	s.outside = &outside;
	explore(&s, /* violation= */ NULL);
	assert_true(cut_done && cut_not && !made_late && told[ACT_CLAIM_LOST][false]);
}

static void exhaustive_shared(void **state)
{
	struct sim_scenario s = scenario(&aborted);

	(void)state;
	s.cast[1] = (struct sim_cast){.name = "sharer", .init = init_maker, .plan = &sharing};
	explore(&s, "I1: two holders with fence 1");
	s.shared = true;
	explore(&s, /* violation= */ NULL);
	s.cast[1].node = 1;
	explore(&s, "I1: two holders with fence 1");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_heard_out),
		cmocka_unit_test(exhaustive_aborted),
		cmocka_unit_test(exhaustive_outside),
		cmocka_unit_test(exhaustive_shared),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
