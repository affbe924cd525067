/*
 * Steps that workers carry out, explored: the run, its job, workers that claim it over the API, one that is late or lost, and
 * the janitor who gives the job back.
 */
#include "sim/runs.h"

/* ---- steps of workers ---- */

#define WORKER "\"do\":{\"kind\":\"worker\",\"queue\":\"stock\",\"effect\":\"keyed\"}"

static void exhaustive_workers(void **state)
{
	(void)state;
	parse(WORKER, TASK("a", ONCE));
	explore((struct sim_scenario){
		.name = "a step of two workers, of which one may be lost or late",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"worker-1", 1, true, init_worker, &workers[0], job_is_due},
			 {"worker-2", 2, true, init_worker, &workers[1], job_is_due},
			 {"janitor", 0, true, init_lapser, NULL, job_is_past}},
		.bounds = {.lapses = 2, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_workers_crash(void **state)
{
	(void)state;
	parse(WORKER, TASK("a", TWICE) "," TASK("b", TWICE));
	explore((struct sim_scenario){
		.name = "two steps of a worker, with a crash",
		.nodes_n = 2,
		.cast_n = 3,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"worker", 1, true, init_worker, &workers[0], job_is_due},
			 {"janitor", 0, true, init_lapser, NULL, job_is_past}},
		.bounds = {.lapses = 2, .crashes = 1},
		.world = WORLD_KEYED,
	});
}

/* The step's time is over before the worker's is: its job is taken back in doubt, and another one made. */
static void exhaustive_workers_timeout(void **state)
{
	(void)state;
	parse(WORKER, TASK("a", TWICE ",\"timeout\":\"30s\""));
	explore((struct sim_scenario){
		.name = "a step of a worker that takes too long",
		.nodes_n = 2,
		.cast_n = 3,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"worker", 1, true, init_worker, &workers[0], job_is_due},
			 {"janitor", 0, true, init_lapser, NULL, job_is_past}},
		.bounds = {.lapses = 2 + ONE_IN_SOAK, .crashes = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_workers_pause(void **state)
{
	(void)state;
	parse(WORKER, TASK("a", ONCE));
	fixture.may_pause = true;
	explore((struct sim_scenario){
		.name = "a step of a worker, paused and resumed",
		.nodes_n = 3,
		.cast_n = 5,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"worker", 1, true, init_worker, &workers[0], job_is_due},
			 {"janitor", 0, true, init_lapser, NULL, job_is_past},
			 {"pauser", 2, false, init_verb, &pause_it, NULL},
			 {"resumer", 2, false, init_verb, &resume_it, NULL}},
		.bounds = {.lapses = 1, .crashes = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_workers_cancel(void **state)
{
	(void)state;
	parse(WORKER "," ACTION("undo", KEYED), TASK("a", ONCE UNDO));
	explore((struct sim_scenario){
		.name = "a step of a worker, cancelled at any moment and undone",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"worker", 1, true, init_worker, &workers[0], job_is_due},
			 {"janitor", 0, true, init_lapser, NULL, job_is_past},
			 {"canceller", 2, false, init_verb, &cancel, NULL}},
		.bounds = {.lapses = 1, .crashes = 1},
		.world = WORLD_KEYED,
	});
}

/* Everything at once, beyond what can be walked through: two nodes and a worker, callers of all kinds, much trouble. */
static void random_crowd(void **state)
{
	static const struct run_verb_request event = VERB(RUN_EVENT, .name = {"payment", 7}, .event_id = {"e1", 2});

	(void)state;
	parse(WORKER "," ACTION("call", KEYED) "," ACTION("undo", KEYED),
	      TASK("a", TWICE UNDO) "," EVENT "},{\"name\":\"b\",\"type\":\"task\",\"action\":\"call\"" TWICE UNDO "}");
	fixture.may_wait = true;
	fixture.may_pause = true;
	explore_at_random((struct sim_scenario){
		.name = "a worker's step, an event and a step, with all kinds of callers",
		.nodes_n = 4,
		.cast_n = 8,
		.cast = {DRIVERS,
			 {"worker", 2, true, init_worker, &workers[0], job_is_due},
			 {"janitor", 0, true, init_lapser, NULL, job_is_past},
			 {"sender", 3, false, init_verb, &event, NULL},
			 {"pauser", 3, false, init_verb, &pause_it, NULL},
			 {"resumer", 3, false, init_verb, &resume_it, NULL},
			 {"canceller", 3, false, init_verb, &cancel, NULL}},
		.bounds = {.lapses = 8, .crashes = 3, .lost_answers = 3, .failures = 3},
		.world = WORLD_KEYED,
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_workers),         cmocka_unit_test(exhaustive_workers_crash),
		cmocka_unit_test(exhaustive_workers_timeout), cmocka_unit_test(exhaustive_workers_pause),
		cmocka_unit_test(exhaustive_workers_cancel),  cmocka_unit_test(random_crowd),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
