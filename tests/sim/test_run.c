/*
 * The driver of runs, explored: two nodes, each of which takes the run up whenever it is due or its holder's time is over, with
 * a crash anywhere, leases that lapse, answers that are lost and commits that fail.
 *
 *   what                        world            what must hold besides what runs.h checks on every edge
 *   two steps, retries          keyed service    one effect for each step, under one key, whoever carried it out
 *   hold, probe                 plain service    at most one call had an effect: what is not known is held, or found out
 *   waits, events, decisions    keyed service    before, during, after and twice; nothing is slept over
 */
#include "sim/runs.h"

/* ---- steps ---- */

static void exhaustive_two_steps_keyed(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", ONCE) "," TASK("b", ONCE));
	explore((struct sim_scenario){
		.name = "two steps, two nodes, keyed service",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_failed_commits(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", ONCE) "," TASK("b", ONCE));
	explore((struct sim_scenario){
		.name = "two steps, two nodes, commits that fail",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 2 + ONE_IN_SOAK, .crashes = 1, .failures = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_hold_plain(void **state)
{
	(void)state;
	parse(ACTION("do", PLAIN), TASK("a", TWICE) "," TASK("b", TWICE));
	explore((struct sim_scenario){
		.name = "two steps, what is not known is held, plain service",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1},
		.world = WORLD_PLAIN,
	});
}

static void exhaustive_probe_plain(void **state)
{
	(void)state;
	parse(ACTION("do", PLAIN ",\"probe\":\"ask\"") "," ACTION("ask", ",\"effect\":\"idempotent\""),
	      TASK("a", TWICE ",\"on_unknown\":\"probe\""));
	explore((struct sim_scenario){
		.name = "a step, what is not known is probed, plain service",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1},
		.world = WORLD_PLAIN,
	});
}

/* Attempts that fail, are lost, or are cut off: one key for all of them. */
static void exhaustive_retries_keyed(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", TWICE));
	explore((struct sim_scenario){
		.name = "a step that is tried twice, keyed service",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

/* A service that is still at an earlier try: asking it again uses no attempt, and its one effect is found. */
static void exhaustive_unsettled(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", ONCE));
	fixture.never_held = true;
	explore((struct sim_scenario){
		.name = "a step with one attempt, a service that is still at it",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 2 + ONE_IN_SOAK, .crashes = 1, .unsettled = 2},
		.world = WORLD_KEYED,
		.never_fails = true,
	});
}

/* The same for ever: at 0, 5 and 10 minutes, and never again. (A node that is lost over it makes a doubt of its own.) */
static void exhaustive_unsettled_ends(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", ",\"retry\":{\"max_attempts\":1,\"initial\":\"5m\",\"jitter\":false}"));
	fixture.unsettled_left = 1;
	explore((struct sim_scenario){
		.name = "a step, a service that is at it for ever",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 2, .unsettled = 4},
		.world = WORLD_KEYED,
		.never_fails = true,
	});
}

/* With failures, lost answers and probes beside it: nothing is done twice, nothing forgotten. */
static void exhaustive_unsettled_probed(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED ",\"probe\":\"ask\"") "," ACTION("ask", ",\"effect\":\"idempotent\""),
	      TASK("a", TWICE ",\"on_unknown\":\"probe\""));
	explore((struct sim_scenario){
		.name = "a step, what is not known is probed, and the service may still be at it",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 1 + ONE_IN_SOAK, .crashes = 1, .lost_answers = 1, .unsettled = 1},
		.world = WORLD_KEYED,
	});
}

/* One of the nodes has no function for the step: it leaves the run to the other, also when that one dies over it. */
static void exhaustive_left(void **state)
{
	(void)state;
	parse_lacking(ACTION("first", KEYED) "," ACTION("do", KEYED),
		      "{\"name\":\"a\",\"type\":\"task\",\"action\":\"first\"" ONCE "}," TASK("b", ONCE), "do");
	explore((struct sim_scenario){
		.name = "two steps, a node without the function of the second",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {LACKING_DRIVERS},
		.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

/* Of the compensation: a run that is cancelled is left, too. */
static void exhaustive_left_undo(void **state)
{
	(void)state;
	parse_lacking(ACTION("do", KEYED) "," ACTION("undo", KEYED), TASK("a", ONCE UNDO), "undo");
	explore((struct sim_scenario){
		.name = "a step and its compensation, a node without the function of that one, a canceller",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {LACKING_DRIVERS, {"canceller", 2, false, init_verb, &cancel}},
		.bounds = {.lapses = 1, .crashes = 1},
		.world = WORLD_KEYED,
	});
}

/* Paused holders that go on after their time: effects cannot be counted there, the rows must still be right. */
static void exhaustive_paused_holders(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), TASK("a", ONCE) "," TASK("b", ONCE));
	explore((struct sim_scenario){
		.name = "two steps, holders that are stopped past their lease",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 2, .lost_answers = 1},
		.world = WORLD_UNWATCHED,
	});
}

/* ---- waits, events, decisions ---- */

static void exhaustive_wait(void **state)
{
	(void)state;
	parse(ACTION("do", KEYED), "{\"name\":\"w\",\"type\":\"wait\",\"for\":\"10m\"}," TASK("b", ONCE));
	explore((struct sim_scenario){
		.name = "a wait and a step",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 3, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

/* Two waits for the same event; one is sent twice, with one id, at any moment, and another one beside it. */
static void exhaustive_event(void **state)
{
	static const struct run_verb_request first = VERB(RUN_EVENT, .name = {"payment", 7}, .event_id = {"e1", 2});
	static const struct run_verb_request second = VERB(RUN_EVENT, .name = {"payment", 7}, .event_id = {"e2", 2});

	(void)state;
	parse(ACTION("do", KEYED),
	      EVENT "}," TASK("a", ONCE) ",{\"name\":\"rest\",\"type\":\"external_event\",\"event\":\"payment\"}");
	fixture.may_wait = true;
	explore((struct sim_scenario){
		.name = "two waits for events, of which one comes twice",
		.nodes_n = 2,
		.cast_n = 4,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"sender-1", 1, false, init_verb, &first, NULL},
			 {"sender-1-again", 1, false, init_verb, &first, NULL},
			 {"sender-2", 1, false, init_verb, &second, NULL}},
		.bounds = {.lost_answers = 0},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_event_lost(void **state)
{
	static const struct run_verb_request event = VERB(RUN_EVENT, .name = {"payment", 7}, .event_id = {"e1", 2});

	(void)state;
	parse(ACTION("do", KEYED), TASK("a", ONCE) "," EVENT "}," TASK("b", ONCE));
	fixture.may_wait = true;
	explore((struct sim_scenario){
		.name = "a step, an event, a step, with answers that are lost and commits that fail",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due}, {"sender", 1, false, init_verb, &event, NULL}},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1, .failures = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_event_timeout(void **state)
{
	static const struct run_verb_request event = VERB(RUN_EVENT, .name = {"payment", 7});

	(void)state;
	parse(ACTION("do", KEYED), EVENT ",\"timeout\":\"1h\",\"on_timeout\":\"continue\"}," TASK("b", ONCE));
	explore((struct sim_scenario){
		.name = "an event that comes, or does not come in time",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVERS, {"sender", 2, false, init_verb, &event, NULL}},
		.bounds = {.lapses = 2},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_approval(void **state)
{
	static const struct run_verb_request yes = VERB(RUN_APPROVE, .name = {"ok", 2},
							.data = {"{\"decision\":\"approve\"}", 22});
	static const struct run_verb_request no = VERB(RUN_APPROVE, .name = {"ok", 2},
						       .data = {"{\"decision\":\"reject\"}", 21});

	(void)state;
	parse(ACTION("do", KEYED), "{\"name\":\"ok\",\"type\":\"approval\"}," TASK("b", ONCE));
	fixture.may_wait = true;
	explore((struct sim_scenario){
		.name = "an approval that two decide, each in another way",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {{"driver", 0, true, init_driver, NULL, is_due},
			 {"approves", 1, false, init_verb, &yes, NULL},
			 {"rejects", 2, false, init_verb, &no, NULL}},
		.bounds = {.crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_two_steps_keyed),
		cmocka_unit_test(exhaustive_failed_commits),
		cmocka_unit_test(exhaustive_left),
		cmocka_unit_test(exhaustive_left_undo),
		cmocka_unit_test(exhaustive_hold_plain),
		cmocka_unit_test(exhaustive_probe_plain),
		cmocka_unit_test(exhaustive_retries_keyed),
		cmocka_unit_test(exhaustive_unsettled),
		cmocka_unit_test(exhaustive_unsettled_ends),
		cmocka_unit_test(exhaustive_unsettled_probed),
		cmocka_unit_test(exhaustive_paused_holders),
		cmocka_unit_test(exhaustive_wait),
		cmocka_unit_test(exhaustive_event),
		cmocka_unit_test(exhaustive_event_lost),
		cmocka_unit_test(exhaustive_event_timeout),
		cmocka_unit_test(exhaustive_approval),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
