/*
 * A run that has failed, restarted by two while others retry and cancel it, explored: nodes are lost, and answers. Its steps need no
 * call, so that all that there is to see is who goes on, and who undoes what.
 *
 * On every edge: T1 and T2 of flow/run_restart.h. And from every state in which nothing goes on but time: if from there on all went
 * well, both runs would come to their end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "flow/run_verb.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/walks.h"
#include "sim/well.h"

#define STATES_MAX 20000000
#define OLD 1
#define SETTLE_ROUNDS_MAX 200
/* The second step fails for want of a time, which the restart brings. */
#define STEP(name) "{\"name\":\"" name "\",\"type\":\"task\",\"action\":\"do\",\"compensate\":\"undo\"}"

static struct {
	struct arena arena;
	const struct run_machine *machine;
	struct sim *sim;
} fixture;

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow, (void)version;
	return fixture.machine;
}

static const struct run_policy policy = {.lease_ms = 60000, .machine_of = machine_of};

static void parse(void)
{
	static const char text[] =
		"{\"workflow\":\"w\",\"kind\":\"run\",\"actions\":{\"do\":{\"kind\":\"noop\"},\"undo\":{\"kind\":\"noop\"}},"
		"\"steps\":[" STEP("a") ",{\"name\":\"b\",\"type\":\"wait\",\"until\":\".input.n\"}]}";
	const struct run_definition *definition;
	struct findings findings;

	arena_release(&fixture.arena);
	arena_init(&fixture.arena, 16u << 20);
	findings_init(&findings, &fixture.arena);
	run_definition_parse("w.json", slice_str(text), &fixture.arena, &findings, &definition);
	assert_non_null(definition);
	fixture.machine = run_machine_new(definition, 1, &fixture.arena);
}

/* ---- the store, seen from here ---- */

/* clang-format off */

DB_STMT(stmt_setup, "sim_restart_setup", "", "",
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, due_at, created_at)"
	" VALUES (1, 'default', 'w', 1, 'me', '{}', hx_now_ms(), hx_now_ms())");

#define RUNS " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"

/* ?1: 0: the old one, 1: a new one. */
DB_STMT(stmt_due, "sim_restart_due", "i", "i",
	"SELECT r.subject" RUNS " WHERE (r.restart_of IS NOT NULL) = ?1"
	" AND (r.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms()))");

DB_STMT(stmt_moment, "sim_restart_moment", "", "i",
	"SELECT min(m) FROM (SELECT due_at AS m FROM hx_run UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()");

DB_STMT(stmt_hash_runs, "sim_restart_hash", "", "tiitiiiiitiiii",
	"SELECT s.status, s.version, s.fence, s.owner, s.until, s.doubt, r.at_step, r.attempt, r.redo, r.step_status, r.due_at,"
	" r.undo, r.restart_of IS NULL, r.restarted_by IS NULL" RUNS " ORDER BY r.restart_of IS NULL, r.subject");

DB_STMT(stmt_hash_steps, "sim_restart_hash_steps", "", "iitiii",
	"SELECT r.restart_of IS NULL, t.position, t.status, t.attempt, t.made_by, t.undone_at IS NULL"
	" FROM hx_run_step t JOIN hx_run r ON r.subject = t.run ORDER BY 1, t.position");

/* One row: what is wrong, as numbers of findings. */
DB_STMT(stmt_check, "sim_restart_check", "", "iiiiii",
	"SELECT"
	/* T1: one restart, and both know each other */
	" (SELECT count(*) > 1 FROM hx_run WHERE restart_of = 1),"
	" (SELECT count(*) FROM hx_run o WHERE o.subject = 1 AND (o.restarted_by IS NULL) <> NOT EXISTS (SELECT 1 FROM hx_run n"
	"   WHERE n.restart_of = 1 AND n.subject IS o.restarted_by)),"
	/* T1: what was restarted stays as it is */
	" (SELECT count(*)" RUNS " WHERE r.subject = 1 AND r.restarted_by IS NOT NULL AND (s.status NOT IN ('FAILED', 'COMPLETED') OR r.due_at IS NOT NULL)),"
	/* T2: what one run has done is undone once */
	" (SELECT count(*) FROM (SELECT coalesce(t.made_by, t.run), t.position FROM hx_run_step t WHERE t.undone_at IS NOT NULL GROUP BY 1, 2"
	"   HAVING count(*) > 1)),"
	/* what passed says who has made it */
	" (SELECT count(*) FROM hx_run_step t JOIN hx_run r ON r.subject = t.run AND r.restart_of = 1 WHERE t.position = 0 AND t.made_by IS NOT 1),"
	/* R5 */
	" (SELECT count(*)" RUNS " JOIN hx_run_step t ON t.run = r.subject WHERE s.status = 'CANCELLED' AND t.status = 'COMPLETED' AND t.undone_at IS NULL)");

DB_STMT(stmt_end, "sim_restart_end", "", "t", "SELECT s.status" RUNS);

DB_STMT(stmt_tell, "sim_restart_tell", "", "t",
	"SELECT group_concat(CASE WHEN r.restart_of IS NULL THEN 'old ' ELSE 'new ' END || s.status || ' v' || s.version ||"
	" CASE WHEN r.restarted_by IS NULL THEN '' ELSE ' restarted' END || CASE WHEN s.owner IS NULL THEN '' ELSE ' owned' END, '; ')" RUNS);

/* clang-format on */

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_runs, hash);
	return sim_hash_answer(sim, &stmt_hash_steps, hash);
}

#include "sim/own_rows.h" /* of these */

static void check(struct sim *sim)
{
	static const char *const words[] = {
		"T1: a run was restarted twice",
		"T1: a restart and its run do not know each other",
		"T1: a run that was restarted goes on",
		"T2: what was done once is undone twice",
		"T2: a step that passed to a new run forgets who has carried it out",
		"R5: CANCELLED before everything was undone",
	};
	struct unit_result result;

	if (!rows_changed)
		return;
	rows_changed = false;
	result = ask_store(sim, &stmt_check, 0, NULL);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (db_cell(&result.rows[0], 0, i)->i)
			sim_violate(sim, "%s", words[i]);
}

/* ---- the cast ---- */

static int64_t due(struct sim *sim, int64_t is_new)
{
	struct db_value param = db_int(is_new);
	struct unit_result result = ask_store(sim, &stmt_due, 1, &param);

	return result.rows[0].n ? db_cell(&result.rows[0], 0, 0)->i : 0;
}

static const int64_t whose[] = {0, 1};

static void init_driver(union sim_task *task, const void *plan, struct arena *texts)
{
	int64_t subject = due(fixture.sim, *(const int64_t *)plan);

	run_drive_init((struct run_drive *)task, subject ? subject : OLD, &policy, texts);
}

static bool old_is_due(struct sim *sim)
{
	return due(sim, 0) != 0;
}

static bool new_is_due(struct sim *sim)
{
	return due(sim, 1) != 0;
}

static void init_verb(union sim_task *task, const void *plan, struct arena *texts)
{
	run_verb_init((struct run_verb *)task, plan, texts);
}

#define VERB(what, ...)                                                                                                \
	{                                                                                                              \
		.kind = what, .workspace = {"default", 7}, .subject = OLD, .policy = &policy, __VA_ARGS__              \
	}
static const struct run_verb_request restart = VERB(RUN_RESTART, .name = {"b", 1}, .requester = {"me", 2},
						    .data = {"{\"n\":\"2020-01-01T00:00:00Z\"}", 28});
static const struct run_verb_request retry = VERB(RUN_RETRY, .version = 0);
static const struct run_verb_request cancel = VERB(RUN_CANCEL, .version = 0);

/* ---- nothing gets stuck ---- */

static bool settle_one(struct sim *sim, int64_t *id)
{
	union sim_task task;

	if (due(sim, 0) || due(sim, 1)) {
		init_driver(&task, &whose[due(sim, 0) ? 0 : 1], &sim->texts);
		go_well(sim, &task.task, id, SETTLE_ROUNDS_MAX, /* committed= */ NULL);
		return true;
	}
	return false;
}

static void settled(struct sim *sim)
{
	struct unit_result result;

	rows_changed = true;
	check(sim);
	result = ask_store(sim, &stmt_end, 0, NULL);
	for (size_t i = 0; i < result.rows[0].n; i++)
		if (!ways_is_terminal(&run_ways, db_cell(&result.rows[0], i, 0)->s))
			sim_violate(sim, "R6: when all goes well, a run does not come to its end");
}

static void quiet(struct sim *sim)
{
	static const struct well well = {settle_one, settled, SETTLE_ROUNDS_MAX,
					 "R6: the runs do not come to rest although all goes well"};

	try_well(sim, &well);
}

static void setup(struct sim *sim)
{
	fixture.sim = sim;
	(void)ask_store(sim, &stmt_setup, 0, NULL);
}

static void explore(struct sim_scenario scenario)
{
	parse();
	scenario.subjects_n = 1;
	scenario.kind = run_kind();
	scenario.initial = RUN_PENDING;
	scenario.driven = true;
	scenario.setup = setup;
	scenario.check = check;
	scenario.quiet = quiet;
	scenario.rows = &own_rows;
	walk_all(&scenario, STATES_MAX);
}

#define DRIVES_OLD(node)                                                                                               \
	{                                                                                                              \
		"drives-old", node, true, init_driver, &whose[0], old_is_due                                           \
	}
#define DRIVES_NEW(node)                                                                                               \
	{                                                                                                              \
		"drives-new", node, true, init_driver, &whose[1], new_is_due                                           \
	}

static void exhaustive_restart_and_cancel(void **state)
{
	(void)state;
	explore((struct sim_scenario){
		.name = "a run that has failed, restarted and cancelled at once, a crash, a lost answer",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {DRIVES_OLD(0),
			 DRIVES_NEW(0),
			 {"restarter", 1, false, init_verb, &restart, NULL},
			 {"canceller", 2, false, init_verb, &cancel, NULL}},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
	});
}

static void exhaustive_two_restarts(void **state)
{
	(void)state;
	explore((struct sim_scenario){
		.name = "a run that has failed, restarted by two and retried, a crash",
		.nodes_n = 3,
		.cast_n = 5,
		.cast = {DRIVES_OLD(0),
			 DRIVES_NEW(0),
			 {"restarter-1", 1, false, init_verb, &restart, NULL},
			 {"restarter-2", 2, false, init_verb, &restart, NULL},
			 {"retrier", 2, false, init_verb, &retry, NULL}},
		.bounds = {.crashes = 1},
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_restart_and_cancel),
		cmocka_unit_test(exhaustive_two_restarts),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
