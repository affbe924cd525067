/*
 * Batches, explored: two nodes, each of which takes the batch up whenever it is due or its holder's time is over, and callers that
 * cancel it, accept items and pay in, with a crash anywhere, leases that lapse, answers that are lost and commits that fail.
 *
 *   what                                what must hold besides what batches.h checks on every edge
 *   two workers                         the same due row is read by both: one of them works
 *   a worker, two cancellers            one refund, whoever of them tears down
 *   hold, probe                         a service that dedupes nothing draws an item once
 *   two hands of one fence              beside each other, and a lead after them
 */
#include "sim/batches.h"

/* ---- two hands of one fence, beside each other ---- */

/* After them: with what they have held, unless their node has died. */
static bool hands_are_back(const struct sim *sim)
{
	return sim->state.actors[0].state == SIM_DONE && sim->state.actors[1].state == SIM_DONE &&
	       notes_of(sim)->fence == fixture.hold.fence && notes_of(sim)->owned;
}

static bool lead_may_start(struct sim *sim)
{
	return hands_are_back(sim) || is_due(sim);
}

static void init_lead_behind(union sim_task *task, const void *plan, struct arena *texts)
{
	struct batch_tenure *tenure = &((struct tenure_task *)task)->tenure;
	struct batch_lead led = {.next = LEAD_WORK, .hold = fixture.hold};

	init_tenure(task, plan, texts);
	if (!hands_are_back(fixture.sim))
		return;
	(void)batch_tenure_next(tenure);
	batch_tenure_led(tenure, &led);
	for (unsigned i = 0; i < 2; i++)
		(void)batch_tenure_next(tenure);
	for (unsigned i = 0; i < 2; i++)
		batch_tenure_worked(tenure, &((const struct hands_task *)&fixture.sim->state.actors[i].task)->hand);
}

static void exhaustive_two_hands(void **state)
{
	(void)state;
	build_world((struct world_plan){
		.draw = KEYED, .more = ONCE, .initial = BATCH_RUNNING, .items_n = 2, .costs = {3, 5}, .balance = 10});
	explore((struct sim_scenario){
		.name = "two hands of one fence, a canceller, a lead behind them",
		.nodes_n = 2,
		.cast_n = 4,
		.cast = {{"hand-1", 0, false, init_hands, NULL, NULL},
			 {"hand-2", 0, false, init_hands, NULL, NULL},
			 {"lead", 0, true, init_lead_behind, NULL, lead_may_start},
			 CANCELLER("canceller", 1)},
		.bounds = {.crashes = 1, .lost_answers = 1},
		.shared = true,
	});
}

/* Overtaken, both of them, by another node. */
static void exhaustive_two_hands_overtaken(void **state)
{
	(void)state;
	build_world((struct world_plan){
		.draw = KEYED, .more = ONCE, .initial = BATCH_RUNNING, .items_n = 2, .costs = {3, 5}, .balance = 10});
	explore((struct sim_scenario){
		.name = "two hands of one fence, another node behind them",
		.nodes_n = 2,
		.cast_n = 3,
		.cast = {{"hand-1", 0, false, init_hands, NULL, NULL},
			 {"hand-2", 0, false, init_hands, NULL, NULL},
			 WORKER("worker", 1)},
		.bounds = {.lapses = 1},
		.shared = true,
	});
}

/* ---- work ---- */

/* Both read the same due row; one is killed, or stopped past its lease. */
static void exhaustive_two_workers(void **state)
{
	(void)state;
	build_world((struct world_plan){
		.draw = KEYED, .more = ONCE, .initial = BATCH_QUEUED, .items_n = 1, .costs = {3}, .balance = 10});
	explore((struct sim_scenario){
		.name = "an item, two nodes",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {WORKER("worker-1", 0), WORKER("worker-2", 1)},
		.bounds = {.lapses = 2, .crashes = 1},
	});
}

/* One of the nodes has no function for the items. */
static void exhaustive_left(void **state)
{
	(void)state;
	build_world((struct world_plan){
		.draw = KEYED, .more = ONCE, .initial = BATCH_QUEUED, .items_n = 1, .costs = {3}, .balance = 10});
	explore((struct sim_scenario){
		.name = "an item, a node without its function",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {WORKER("worker", 0), {"worker-that-lacks", 1, true, init_tenure, &lacking_policy, is_due}},
		.bounds = {.lapses = 2, .crashes = 1},
	});
}

static void exhaustive_two_items(void **state)
{
	(void)state;
	build_world((struct world_plan){
		.draw = KEYED, .more = ONCE, .initial = BATCH_QUEUED, .items_n = 2, .costs = {0, 5}, .balance = 5});
	explore((struct sim_scenario){
		.name = "two items, two nodes, answers that are lost",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {WORKER("worker-1", 0), WORKER("worker-2", 1)},
		.bounds = {.lapses = 1, .lost_answers = 1},
	});
}

static void exhaustive_failed_commits(void **state)
{
	(void)state;
	build_world((struct world_plan){
		.draw = KEYED, .more = ONCE, .initial = BATCH_QUEUED, .items_n = 1, .costs = {3}, .balance = 10});
	explore((struct sim_scenario){
		.name = "an item, two nodes, commits that fail",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {WORKER("worker-1", 0), WORKER("worker-2", 1)},
		.bounds = {.lapses = 2, .failures = 1},
	});
}

/* Failures are returned, what is in doubt is not. */
static void exhaustive_retries(void **state)
{
	(void)state;
	build_world((struct world_plan){.draw = KEYED,
					.more = TWICE,
					.initial = BATCH_QUEUED,
					.items_n = 1,
					.costs = {3},
					.balance = 3,
					.refusals = 2});
	explore((struct sim_scenario){
		.name = "an item that is tried twice",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {WORKER("worker-1", 0), WORKER("worker-2", 1)},
		.bounds = {.lapses = 1, .lost_answers = 1},
	});
}

static void exhaustive_hold_plain(void **state)
{
	static const struct batch_verb_request verbs[] = {VERB(BATCH_RESOLVE, .done = true, .output = {"1", 1}),
							  VERB(BATCH_RESOLVE)};

	(void)state;
	for (unsigned done = 0; done < 2; done++) {
		build_world((struct world_plan){.draw = PLAIN,
						.more = TWICE,
						.plain = true,
						.initial = BATCH_QUEUED,
						.items_n = 1,
						.costs = {3},
						.balance = 3});
		explore((struct sim_scenario){
			.name = done ? "what is not known is held for a person, who says that it was done"
				     : "what is not known is held for a person, who says that it was not done",
			.nodes_n = 2,
			.cast_n = 3,
			.cast = {WORKER("worker-1", 0),
				 WORKER("worker-2", 1),
				 {"person", 1, false, init_verb, &verbs[!done], NULL}},
			.bounds = {.lapses = 1, .crashes = 1},
		});
	}
}

static void exhaustive_probe_plain(void **state)
{
	(void)state;
	build_world((struct world_plan){.draw = PLAIN ",\"probe\":\"ask\"",
					.more = TWICE ",\"on_unknown\":\"probe\"",
					.plain = true,
					.initial = BATCH_QUEUED,
					.items_n = 1,
					.costs = {3},
					.balance = 3});
	explore((struct sim_scenario){
		.name = "what is not known is probed",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {WORKER("worker-1", 0), WORKER("worker-2", 1)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
	});
}

/* ---- money ---- */

static const struct account_credit_request credit = {{"default", 7}, {"alice", 5}, {"c", 1}, 10};

static void exhaustive_out_of_credit(void **state)
{
	(void)state;
	build_world((struct world_plan){
		.draw = KEYED, .more = ONCE, .initial = BATCH_QUEUED, .items_n = 2, .costs = {3, 5}, .balance = 4});
	explore((struct sim_scenario){
		.name = "too little credit for the second item, and somebody pays in",
		.nodes_n = 2,
		.cast_n = 3,
		.cast = {WORKER("worker-1", 0),
			 {"payer", 1, false, init_credit, &credit, NULL},
			 CANCELLER("canceller", 1)},
		.bounds = {.lapses = 1, .crashes = 1},
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_two_workers),         cmocka_unit_test(exhaustive_two_items),
		cmocka_unit_test(exhaustive_failed_commits),      cmocka_unit_test(exhaustive_retries),
		cmocka_unit_test(exhaustive_hold_plain),          cmocka_unit_test(exhaustive_probe_plain),
		cmocka_unit_test(exhaustive_out_of_credit),       cmocka_unit_test(exhaustive_two_hands),
		cmocka_unit_test(exhaustive_two_hands_overtaken), cmocka_unit_test(exhaustive_left),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
