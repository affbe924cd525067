/*
 * Runs that fail, explored: what `on_failure`, `failure_after_effect` and `timeout` of their definition make of it, while nodes are
 * lost, answers are lost, and callers cancel and retry.
 *
 * On every edge, beside R1 to R8: F1 and F2 of flow/run_failure.c.
 */
#include "sim/runs.h"

#define ACTIONS ACTION("do", KEYED) "," ACTION("undo", KEYED) "," ACTION("tell", KEYED)
#define TELLS ",\"failure_after_effect\":[\"tell\"]"
#define COMPENSATES ",\"on_failure\":\"compensate\""

/* F1: as many jobs as there were failures, each with a key of its own. F2: with `compensate` there is no FAILED. */
static const struct db_stmt stmt_told = {
	.name = "sim_run_told",
	.sql = "SELECT (SELECT count(*) FROM hx_job WHERE queue = 'after-effects'),"
	       " (SELECT count(DISTINCT effect_key) FROM hx_job WHERE queue = 'after-effects'),"
	       " (SELECT count(*) FROM hx_history WHERE subject = 1 AND to_status = 'FAILED'),"
	       " (SELECT count(*) FROM hx_history h WHERE h.subject = 1 AND h.to_status = 'CANCELLING' AND h.from_status <> 'CANCELLING'"
	       "   AND EXISTS (SELECT 1 FROM hx_run WHERE coalesce(stood_error, error) IS NOT NULL)),"
	       " (SELECT count(*) FROM hx_run_step WHERE undone_at IS NOT NULL)",
	.in = "",
	.out = "iiiii",
};

static void check_failures(struct sim *sim)
{
	bool changed = rows_changed, compensates = fixture.machine->definition->compensates;
	struct unit_result result;
	const struct db_rows *rows;
	int64_t jobs, failures;

	check(sim);
	if (!changed)
		return;
	result = ask_store(sim, &stmt_told);
	rows = &result.rows[0];
	jobs = db_cell(rows, 0, 0)->i;
	failures = compensates ? db_cell(rows, 0, 3)->i : db_cell(rows, 0, 2)->i;
	if (jobs != failures)
		sim_violate(sim, "F1: %lld failures were told, and there were %lld", (long long)jobs,
			    (long long)failures);
	if (jobs != db_cell(rows, 0, 1)->i)
		sim_violate(sim, "F1: two failures have one key");
	if (compensates && db_cell(rows, 0, 2)->i)
		sim_violate(sim, "F2: a run is FAILED that is to compensate");
}

static void explore_failures(struct sim_scenario scenario)
{
	complete(&scenario);
	scenario.check = check_failures;
	walk_all(&scenario, STATES_MAX);
}

static void exhaustive_compensates(void **state)
{
	(void)state;
	parse_with(ACTIONS, TASK("a", ONCE UNDO) "," TASK("b", ONCE UNDO), COMPENSATES TELLS);
	explore_failures((struct sim_scenario){
		.name = "two steps of which any fails, and the run undoes itself",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_holds(void **state)
{
	static const struct run_verb_request retry = VERB(RUN_RETRY);

	(void)state;
	parse_with(ACTIONS, TASK("a", ONCE UNDO), TELLS);
	explore_failures((struct sim_scenario){
		.name = "a step that fails, is told of and retried",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVERS, {"retrier", 2, false, init_verb, &retry, NULL}},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_timeout(void **state)
{
	(void)state;
	parse_with(ACTIONS, TASK("a", ONCE UNDO) "," EVENT "}", COMPENSATES TELLS);
	fixture.times_out_in_ms = 90000;
	explore_failures((struct sim_scenario){
		.name = "an event that nobody sends, in a run whose time is over then",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVERS},
		.bounds = {.lapses = 2, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_compensates),
		cmocka_unit_test(exhaustive_holds),
		cmocka_unit_test(exhaustive_timeout),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
