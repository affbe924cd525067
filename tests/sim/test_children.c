/*
 * Runs with children, explored: a child, a map, branches of which all or the first one count, a body that is repeated; their parent
 * cancelled or paused at any moment, nodes that are lost, answers that are. What is checked is in trees.h; trees that are deeper are
 * test_tree.c.
 */
#include "sim/trees.h"

static const struct run_verb_request pause_it = {
	.kind = RUN_PAUSE, .workspace = {"default", 7}, .subject = ROOT, .policy = &policy};
static const struct run_verb_request resume_it = {
	.kind = RUN_RESUME, .workspace = {"default", 7}, .subject = ROOT, .policy = &policy};

static void exhaustive_child(void **state)
{
	(void)state;
	parse(CHILD, STEP("a"));
	explore((struct sim_scenario){
		.name = "a child, two nodes that drive its parent, lapses, a crash, a lost answer",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVES(0, 0), DRIVES(0, 1), DRIVES(1, 2)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
	});
}

static void exhaustive_child_cancelled(void **state)
{
	(void)state;
	parse(STEP("before") "," CHILD, STEP("a"));
	fixture.positions = 1;
	explore((struct sim_scenario){
		.name = "a child, its parent cancelled at any moment, a crash",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {DRIVES(0, 0), DRIVES(1, 1), OBEYS(1, 1), CANCELLER(2)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
	});
}

/* The parent stands further on when it is cancelled: what its child has done is undone all the same. */
static void exhaustive_child_done_cancelled(void **state)
{
	(void)state;
	parse(CHILD ",{\"name\":\"w\",\"type\":\"wait\",\"for\":\"1h\"}", STEP("a"));
	explore((struct sim_scenario){
		.name = "a child and a wait after it, their parent cancelled at any moment",
		.nodes_n = 2,
		.cast_n = 4,
		.cast = {DRIVES(0, 0), DRIVES(1, 0), OBEYS(1, 0), CANCELLER(1)},
	});
}

static void exhaustive_child_too_late(void **state)
{
	(void)state;
	parse(CHILD, STEP("a") ",{\"name\":\"w\",\"type\":\"wait\",\"for\":\"1h\"}");
	fixture.times_out_in_ms = 90000;
	explore((struct sim_scenario){
		.name = "a child that takes too long for its parent, a crash",
		.nodes_n =
			1, /* a word does not lock the child (run_children.h): on two, a move may meet it at its commit */
		.cast_n = 2,
		.cast = {DRIVES(0, 0), DRIVES(1, 0)},
		.bounds = {.lapses = 1, .crashes = 1},
	});
}

static void exhaustive_map(void **state)
{
	(void)state;
	parse(MAP("[1,2]", "1"), STEP("a"));
	fixture.concurrency = 1;
	explore((struct sim_scenario){
		.name = "a map of two, one at a time, two nodes that drive its parent, a crash",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {DRIVES(0, 0), DRIVES(0, 1), DRIVES(1, 2), DRIVES(2, 2)},
		.bounds = {.crashes = 1},
	});
}

static void exhaustive_map_fails(void **state)
{
	(void)state;
	parse(MAP("[1,\\\"2020-01-01T00:00:00Z\\\"]", "2"), PICKY);
	fixture.concurrency = 2;
	explore((struct sim_scenario){
		.name = "a map of two at once, of which one fails, a crash",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVES(0, 0), DRIVES(1, 1), DRIVES(2, 2)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

static void exhaustive_branches_cancelled(void **state)
{
	(void)state;
	parse(PARALLEL("all"), STEP("a"));
	explore((struct sim_scenario){
		.name = "two branches, cancelled at any moment",
		.nodes_n = 3,
		.cast_n = 6,
		.cast = {DRIVES(0, 0), DRIVES(1, 1), OBEYS(1, 1), DRIVES(2, 2), OBEYS(2, 2), CANCELLER(0)},
		.bounds = {0},
	});
}

static void exhaustive_first_branch(void **state)
{
	(void)state;
	parse(PARALLEL("any"), STEP("a"));
	fixture.any = true;
	explore((struct sim_scenario){
		.name = "two branches, of which the first one counts, a crash",
		.nodes_n = 3,
		.cast_n = 5,
		.cast = {DRIVES(0, 0), DRIVES(1, 1), OBEYS(1, 1), DRIVES(2, 2), OBEYS(2, 2)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
	});
}

/* One after the other, and back in reverse: also where the last time has failed the step. */
static void exhaustive_repeat_cancelled(void **state)
{
	(void)state;
	parse(REPEAT, STEP("a"));
	fixture.concurrency = 1;
	fixture.repeats_at = 1;
	explore((struct sim_scenario){
		.name = "a body that is carried out twice, cancelled at any moment, a crash",
		.nodes_n = 3,
		.cast_n = 6,
		.cast = {DRIVES(0, 0), DRIVES(1, 1), OBEYS(1, 1), DRIVES(2, 2), OBEYS(2, 2), CANCELLER(0)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

/* Whoever resumes it has it looked at, whatever its body is doing. */
static void exhaustive_repeat_paused(void **state)
{
	(void)state;
	parse(REPEAT, STEP("a"));
	fixture.concurrency = 1;
	fixture.repeats_at = 1;
	fixture.may_pause = true;
	explore((struct sim_scenario){
		.name = "a body that is carried out twice, paused and resumed at any moment",
		.nodes_n = 3,
		.cast_n = 6,
		.cast = {DRIVES(0, 0),
			 DRIVES(1, 1),
			 OBEYS(1, 1),
			 DRIVES(2, 1),
			 {"pauser", 2, false, init_verb, &pause_it, NULL},
			 {"resumer", 2, false, init_verb, &resume_it, NULL}},
		.bounds = {.crashes = 1},
	});
}

static void exhaustive_one_event(void **state)
{
	(void)state;
	parse(BRANCHES("all", AWAITS("x1"), AWAITS("y1")), STEP("a"));
	fixture.may_wait = true;
	explore((struct sim_scenario){
		.name = "two branches that await one event, a crash",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVES(0, 0), DRIVES(1, 1), DRIVES(2, 2)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_child),
		cmocka_unit_test(exhaustive_child_cancelled),
		cmocka_unit_test(exhaustive_child_done_cancelled),
		cmocka_unit_test(exhaustive_child_too_late),
		cmocka_unit_test(exhaustive_map),
		cmocka_unit_test(exhaustive_map_fails),
		cmocka_unit_test(exhaustive_branches_cancelled),
		cmocka_unit_test(exhaustive_first_branch),
		cmocka_unit_test(exhaustive_repeat_cancelled),
		cmocka_unit_test(exhaustive_repeat_paused),
		cmocka_unit_test(exhaustive_one_event),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
