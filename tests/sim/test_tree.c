/*
 * Children of children, explored: a tree that is cancelled at any moment, that fails at its lowest run, and of which a branch has lost; nodes
 * that are lost, lapses, answers that are. What is checked, at each level, is in trees.h; trees of one level are test_children.c.
 */
#include "sim/trees.h"

/* The step with children is the second one of the run in the middle, so that what stands before it is undone after them. */
static void parse_chain(int grown)
{
	parse_three(CHILD_OF("middle"), STEP("before") "," CHILD, STEP("a"));
	fixture.positions = 1 << 4;
	fixture.grown = grown;
}

static void exhaustive_grandchild(void **state)
{
	(void)state;
	parse_chain(0);
	explore((struct sim_scenario){
		.name = "a child of a child, lapses, a crash, a lost answer",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {DRIVES(0, 0), DRIVES(1, 1), DRIVES(4, 2), DRIVES(4, 1)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
	});
}

#define CANCELLED_CHAIN                                                                                                \
	.nodes_n = 3, .cast_n = 5, .cast = {DRIVES(0, 0), DRIVES(1, 1), OBEYS_ALL(0), DRIVES(4, 2), CANCELLER(2)}

static void exhaustive_cancelled_as_it_grows(void **state)
{
	(void)state;
	parse_chain(0);
	explore((struct sim_scenario){
		.name = "a child of a child, cancelled at any moment, a crash",
		CANCELLED_CHAIN,
		.bounds = {.lapses = ONE_IN_SOAK, .crashes = 1, .lost_answers = ONE_IN_SOAK},
	});
}

static void exhaustive_cancelled_at_its_leaf(void **state)
{
	(void)state;
	parse_chain(2);
	explore((struct sim_scenario){
		.name = "a child of a child that is there, cancelled at any moment, a crash, a lost answer",
		CANCELLED_CHAIN,
		.bounds = {.lapses = ONE_IN_SOAK, .crashes = 1, .lost_answers = 1},
	});
}

static void exhaustive_cancelled_on_its_way_up(void **state)
{
	(void)state;
	parse_chain(3);
	explore((struct sim_scenario){
		.name = "a child of a child that is done, cancelled at any moment, lapses, a crash, a lost answer",
		CANCELLED_CHAIN,
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
	});
}

/* What fails at the bottom fails all above it, and not before what goes on beside it has ended. */
static void exhaustive_leaf_fails(void **state)
{
	(void)state;
	parse_three(CHILD_OF("middle"), STEP("before") "," MAP("[1,\\\"2020-01-01T00:00:00Z\\\"]", "2"), PICKY);
	fixture.positions = 1 << 4;
	fixture.concurrency = 2;
	explore((struct sim_scenario){
		.name = "two children of a child, of which one fails, lapses, a crash, a lost answer",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {DRIVES(0, 0), DRIVES(1, 1), DRIVES(4, 2), DRIVES(5, 0)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
	});
}

/* Its time is over for all of them: each fails after those that it has started. */
static void exhaustive_too_late(void **state)
{
	(void)state;
	parse_three(CHILD_OF("middle"), STEP("before") "," CHILD,
		    STEP("a") ",{\"name\":\"w\",\"type\":\"wait\",\"for\":\"1h\"}");
	fixture.positions = 1 << 4;
	fixture.times_out_in_ms = 90000;
	explore((struct sim_scenario){
		.name = "a child of a child that takes too long for the root, lapses, a crash",
		.nodes_n = 1, /* and no answer is lost, as in test_children.c */
		.cast_n = 3,
		.cast = {DRIVES(0, 0), DRIVES(1, 0), DRIVES(4, 0)},
		.bounds = {.lapses = 1, .crashes = 1},
	});
}

/* The branch that has lost has a child of its own. */
static void exhaustive_loser_with_child(void **state)
{
	(void)state;
	parse(BRANCHES("any", CHILD, STEP("y1")), STEP("a"));
	fixture.any = true;
	explore((struct sim_scenario){
		.name = "a child, of a branch that may lose to another, a crash",
		.nodes_n = 3,
		.cast_n = 5,
		.cast = {DRIVES(0, 0), DRIVES(1, 1), OBEYS_ALL(1), DRIVES(2, 2), DRIVES(4, 0)},
		.bounds = {.lapses = ONE_IN_SOAK, .crashes = 1, .lost_answers = ONE_IN_SOAK},
	});
}

/* Bodies that are repeated further down. */
static void exhaustive_repeats_below(void **state)
{
	(void)state;
	parse_three(CHILD_OF("middle"), REPEAT, STEP("a"));
	fixture.concurrency = 1;
	fixture.repeats_at = 2;
	fixture.grown = 2;
	explore((struct sim_scenario){
		.name = "a child whose body is carried out twice, cancelled at any moment",
		.nodes_n = 3,
		.cast_n = 6,
		.cast = {DRIVES(0, 0), DRIVES(1, 1), OBEYS_ALL(0), DRIVES(4, 2), DRIVES(5, 2), CANCELLER(1)},
		.bounds = {.crashes = ONE_IN_SOAK},
	});
}

/* Whoever of those further up is cancelled: the lowest run is not made any more. */
static void exhaustive_made_at_the_bottom(void **state)
{
	(void)state;
	parse_three(BRANCHES("all", CHILD_OF("middle"), STEP("y1")), CHILD, STEP("a"));
	fixture.grown = 2;
	explore((struct sim_scenario){
		.name = "a child of a child of a branch, cancelled just before it is made, lapses, a crash, a lost answer",
		.nodes_n = 2,
		.cast_n = 3,
		.cast = {DRIVES(4, 0), DRIVES(13, 0), CANCELLER(1)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
	});
}

static void exhaustive_one_event_below(void **state)
{
	(void)state;
	parse(BRANCHES("all", BRANCHES_OF("q", "all", AWAITS("u1"), STEP("v1")), AWAITS("y1")), STEP("a"));
	fixture.may_wait = true;
	fixture.grown = 2;
	explore((struct sim_scenario){
		.name = "a branch, and a branch of a branch, that await one event, lapses, a crash, a lost answer",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVES(4, 0), DRIVES(2, 1)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_grandchild),
		cmocka_unit_test(exhaustive_cancelled_as_it_grows),
		cmocka_unit_test(exhaustive_cancelled_at_its_leaf),
		cmocka_unit_test(exhaustive_cancelled_on_its_way_up),
		cmocka_unit_test(exhaustive_leaf_fails),
		cmocka_unit_test(exhaustive_too_late),
		cmocka_unit_test(exhaustive_loser_with_child),
		cmocka_unit_test(exhaustive_repeats_below),
		cmocka_unit_test(exhaustive_made_at_the_bottom),
		cmocka_unit_test(exhaustive_one_event_below),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
