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
		.bounds = {.lapses = 2},
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
		.bounds = {.lapses = 1},
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_workers),
		cmocka_unit_test(exhaustive_workers_crash),
		cmocka_unit_test(exhaustive_workers_pause),
		cmocka_unit_test(exhaustive_workers_cancel),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
