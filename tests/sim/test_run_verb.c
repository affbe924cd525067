/*
 * The verbs of callers against the driver of a run, explored: cancel (with compensation), pause, resume, and what persons
 * do about a run that has failed or is held.
 */
#include "sim/runs.h"

/* ---- cancel, pause, resume ---- */

static void exhaustive_cancel(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED) "," ACTION("undo", KEYED), TASK("a", ONCE UNDO) "," TASK("b", ONCE UNDO));
	explore((struct sim_scenario){
		.name = "two steps, cancelled at any moment and undone, keyed service",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVERS, {"canceller", 2, false, init_verb, &cancel, NULL}},
		.bounds = {.lapses = 1, .crashes = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_two_cancel(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED) "," ACTION("undo", KEYED), TASK("a", ONCE UNDO));
	explore((struct sim_scenario){
		.name = "a step, cancelled by two, with answers that are lost",
		.nodes_n = 4,
		.cast_n = 4,
		.cast = {DRIVERS,
			 {"canceller-1", 2, false, init_verb, &cancel, NULL},
			 {"canceller-2", 3, false, init_verb, &cancel, NULL}},
		.bounds = {.lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_cancel_plain(void **state)
{
	(void)state;
	parse(ACTION("do", PLAIN) "," ACTION("undo", PLAIN), TASK("a", ONCE UNDO));
	explore((struct sim_scenario){
		.name = "a step, cancelled and undone, what is not known is held, plain service",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVERS, {"canceller", 2, false, init_verb, &cancel, NULL}},
		.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1},
		.world = WORLD_PLAIN,
	});
}

/* While an attempt is in doubt and rests for its next, and while a compensation does. */
static void exhaustive_cancel_doubt(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED) "," ACTION("undo", KEYED), TASK("a", TWICE UNDO));
	explore((struct sim_scenario){
		.name = "a step that is tried twice, cancelled and undone, with answers that are lost",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"canceller", 1, false, init_verb, &cancel, NULL}},
		.bounds = {.lapses = 1 + ONE_IN_SOAK, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_pause(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", ONCE) "," TASK("b", ONCE));
	fixture.may_pause = true;
	explore((struct sim_scenario){
		.name = "two steps, paused and resumed at any moment",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {DRIVERS,
			 {"pauser", 2, false, init_verb, &pause_it, NULL},
			 {"resumer", 2, false, init_verb, &resume_it, NULL}},
		.bounds = {.lapses = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_pause_crash(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", TWICE));
	fixture.may_pause = true;
	explore((struct sim_scenario){
		.name = "a step that is tried twice, paused and resumed, with a crash",
		.nodes_n = 2,
		.cast_n = 3,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"pauser", 1, false, init_verb, &pause_it, NULL},
			 {"resumer", 1, false, init_verb, &resume_it, NULL}},
		.bounds = {.lapses = 1 + ONE_IN_SOAK, .crashes = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_pause_event(void **state)
{
	static const struct run_verb_request event = VERB(RUN_EVENT, .name = {"payment", 7}, .event_id = {"e1", 2});

	(void)state;
	parse(ACTION("do", KEYED), EVENT "}," TASK("a", ONCE));
	fixture.may_wait = true;
	fixture.may_pause = true;
	explore((struct sim_scenario){
		.name = "an event and a step, paused and resumed",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"sender", 1, false, init_verb, &event, NULL},
			 {"pauser", 2, false, init_verb, &pause_it, NULL},
			 {"resumer", 2, false, init_verb, &resume_it, NULL}},
		.bounds = {.crashes = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_pause_cancel(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED) "," ACTION("undo", KEYED), TASK("a", ONCE UNDO));
	fixture.may_pause = true;
	explore((struct sim_scenario){
		.name = "a step, paused, resumed and cancelled",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"pauser", 1, false, init_verb, &pause_it, NULL},
			 {"resumer", 1, false, init_verb, &resume_it, NULL},
			 {"canceller", 2, false, init_verb, &cancel, NULL}},
		.bounds = {.lapses = 1},
		.world = WORLD_KEYED,
	});
}

/* ---- persons ---- */

static const struct db_stmt stmt_held_runs = {
	.name = "sim_run_held",
	.sql = "SELECT subject FROM hx_run WHERE awaits = 'person' AND step_status = 'UNKNOWN'",
	.in = "",
	.out = "i",
};

static const struct db_stmt stmt_failed = {
	.name = "sim_run_failed",
	.sql = "SELECT s.id FROM hx_subject s JOIN hx_run r ON r.subject = s.id WHERE s.id = 1 AND s.fence < 3"
	       " AND (s.status = 'FAILED' OR (r.awaits = 'person' AND r.step_status = 'FAILED'))",
	.in = "",
	.out = "i",
};

static bool is_held(struct sim *sim)
{
	return ask_store(sim, &stmt_held_runs).rows[0].n > 0;
}

static bool has_failed(struct sim *sim)
{
	return ask_store(sim, &stmt_failed).rows[0].n > 0;
}

/* A person who looks at the outside world, and tells what is there. */
static void init_resolver(union sim_task *task, const void *plan, struct arena *texts)
{
	static const struct run_verb_request told[] = {
		VERB(RUN_RESOLVE, .name = {"a", 1}, .done = false),
		VERB(RUN_RESOLVE, .name = {"a", 1}, .done = true),
	};
	struct notes *notes = (struct notes *)fixture.sim->state.notes;
	unsigned at;
	bool undoing = notes->rows[0] != 0;

	(void)plan;
	run_verb_init((struct run_verb *)task, &told[did(fixture.sim, 0, undoing ? -1 : 0, &at)], texts);
}

static void exhaustive_resolve(void **state)
{
	(void)state;
	parse(ACTION("do", PLAIN) "," ACTION("undo", PLAIN), TASK("a", ONCE UNDO));
	explore((struct sim_scenario){
		.name = "what is held is resolved by a person, and cancelled by another, plain service",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"person", 1, true, init_resolver, NULL, is_held},
			 {"canceller", 2, false, init_verb, &cancel, NULL}},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
		.world = WORLD_PLAIN,
	});
}

static void exhaustive_retry_failed(void **state)
{
	static const struct run_verb_request retry = VERB(RUN_RETRY);

	(void)state;
	parse(ACTION("do", KEYED) "," ACTION("undo", KEYED), TASK("a", ONCE UNDO));
	explore((struct sim_scenario){
		.name = "what has failed is tried again by a person, and cancelled by another",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"person", 1, true, init_verb, &retry, has_failed},
			 {"canceller", 2, false, init_verb, &cancel, NULL}},
		.bounds = {.crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_cancel),       cmocka_unit_test(exhaustive_two_cancel),
		cmocka_unit_test(exhaustive_cancel_plain), cmocka_unit_test(exhaustive_cancel_doubt),
		cmocka_unit_test(exhaustive_pause),        cmocka_unit_test(exhaustive_pause_crash),
		cmocka_unit_test(exhaustive_pause_event),  cmocka_unit_test(exhaustive_pause_cancel),
		cmocka_unit_test(exhaustive_resolve),      cmocka_unit_test(exhaustive_retry_failed),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
