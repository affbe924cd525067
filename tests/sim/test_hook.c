/*
 * Deliveries to a hook that signals a run, explored: the same event twice, under two ids that nobody has signed, with a crash anywhere,
 * answers that are lost and commits that fail, while a node drives the run.
 *
 * Besides what runs.h checks, on every edge:
 *  H1  The run has the event at most once.
 *  H2  It has it exactly when the row of the delivery is there.
 *  H4  Whoever was told that it is taken finds it there.
 */
#include "flow/hook.h"
#include "sim/runs.h"

static struct hook_seen seen[2];

static const struct db_stmt stmt_hook = {
	.name = "sim_hook",
	.sql = "SELECT (SELECT count(*) FROM hx_run_event WHERE run = 1),"
	       " (SELECT count(*) FROM hx_hook_seen WHERE name = 'body/x')",
	.in = "",
	.out = "ii",
};

static void check_hook(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_hook);
	int64_t events = db_cell(&result.rows[0], 0, 0)->i, rows = db_cell(&result.rows[0], 0, 1)->i;

	if (events > 1)
		sim_violate(sim, "H1: the run has %lld events of one delivery", (long long)events);
	if (events != rows)
		sim_violate(sim, "H2: %lld events, and %lld rows of the delivery", (long long)events, (long long)rows);
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];

		if (sim->scenario->cast[i].init == init_verb && actor->state == SIM_DONE &&
		    actor->task.task.code == HX_OK && !events)
			sim_violate(sim, "H4: %s was told that it is taken", sim->scenario->cast[i].name);
	}
	check(sim);
}

static void set_up_seen(void)
{
	for (size_t i = 0; i < 2; i++) {
		seen[i] = (struct hook_seen){.hook = {"h", 1}, .n = 2, .keep_ms = 1000000000};
		seen[i].names[0] = slice_str(i ? "id/e2" : "id/e1");
		seen[i].names[1] = slice_str("body/x");
		hook_seen_init(&seen[i]);
	}
}

static const struct run_verb_request first = VERB(RUN_EVENT, .name = {"payment", 7}, .event_id = {"hook:h:e1", 9},
						  .own_id = true, .along = &seen[0].along);
static const struct run_verb_request second = VERB(RUN_EVENT, .name = {"payment", 7}, .event_id = {"hook:h:e2", 9},
						   .own_id = true, .along = &seen[1].along);

static void explore_hook(struct sim_scenario scenario)
{
	parse(ACTION("do", KEYED), EVENT "}," TASK("a", ONCE));
	fixture.may_wait = true;
	set_up_seen();
	complete(&scenario);
	scenario.check = check_hook;
	walk_all(&scenario, STATES_MAX);
}

static void exhaustive_two_ids(void **state)
{
	(void)state;
	explore_hook((struct sim_scenario){
		.name = "one event delivered twice, under two ids, to a run that waits for it",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"sender-1", 1, false, init_verb, &first, NULL},
			 {"sender-2", 2, false, init_verb, &second, NULL}},
		.bounds = {.crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_again(void **state)
{
	(void)state;
	explore_hook((struct sim_scenario){
		.name = "one event delivered by two nodes at once, and commits that fail",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"sender-1", 1, false, init_verb, &first, NULL},
			 {"sender-again", 2, false, init_verb, &first, NULL}},
		.bounds = {.failures = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_two_ids),
		cmocka_unit_test(exhaustive_again),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
