/* A delivery by hand, for what the simulator's clock does not come to; tests/sim/test_delivery.c has all else. */
#include "unit/flow/world.h"

#include "flow/job.h"
#include "support/must_hold.h"

static const struct job_policy policy = {.attempts_max = 2, .first_ms = 1000, .max_ms = 1000, .lease_ms = 60000};
static const struct action mail = {.name = "mail", .kind = ACTION_HTTP, .effect = EFFECT_CLAIMED};

static const struct action *action_of(const void *context, struct slice workflow, struct slice action, int64_t *version)
{
	(void)context, (void)workflow, (void)action;
	*version = 1;
	return &mail;
}

static void put_job(struct world *w)
{
	struct stamp stamp = world_begin(w);
	struct job_spec spec = {.subject = 1,
				.workspace = slice_str("default"),
				.queue = JOB_QUEUE_AFTER_EFFECTS,
				.workflow = "order",
				.action = "mail",
				.effect_key = slice_str("key"),
				.payload = slice_str("{}")};

	job_insert(&w->unit, &stamp, &spec);
	assert_int_equal(world_run(w), UNIT_WON);
}

/* Until it asks for something else than the store; its claim is answered so much later than it was asked for. */
static enum ask_kind deliver(struct world *w, struct arena *texts, int64_t claim_ms)
{
	struct ask ask = {.unit = &w->unit};
	struct answer answer = {.kind = ANSWER_START, .node = "here"};
	struct job_run run;

	job_run_init(&run, 1, &policy, action_of, /* context= */ NULL, texts);
	for (;;) {
		answer.now = w->clock.wall;
		answer.mono = w->clock.mono;
		answer.id = ++w->last_op;
		assert_true(task_take(&run.task, run.task.turn, &answer));
		run.task.kind->ask(&run.task, &ask);
		if (ask.kind != ASK_COMMIT)
			return ask.kind;
		assert_int_equal(world_run(w), UNIT_WON);
		if (run.task.at == JOB_AT_CLAIMING)
			fake_clock_advance_ms(&w->clock, claim_ms);
		answer.kind = ANSWER_COMMIT;
		answer.result = &w->result;
	}
}

static void nothing_is_delivered_under_a_lease_that_is_over(void **state)
{
	struct world *w = *state;
	struct arena texts;

	arena_init(&texts, 1u << 20);
	put_job(w);
	MUST_HOLD(deliver(w, &texts, policy.lease_ms) == ASK_DONE,
		  "an after-effect is delivered by one whose claim may be another's by now");
	arena_release(&texts);
}

static void a_claim_in_time_is_delivered(void **state)
{
	struct world *w = *state;
	struct arena texts;

	arena_init(&texts, 1u << 20);
	put_job(w);
	assert_int_equal(deliver(w, &texts, policy.lease_ms / 2), ASK_ACT);
	arena_release(&texts);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_delivered_under_a_lease_that_is_over, world_set_up,
						world_tear_down),
		cmocka_unit_test_setup_teardown(a_claim_in_time_is_delivered, world_set_up, world_tear_down),
	};

	ONLY_THE_NAMED(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
