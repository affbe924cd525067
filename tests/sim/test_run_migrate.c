/*
 * A run that is migrated to another version of its definition while it is driven and cancelled, explored: nodes are lost, leases lapse,
 * answers are lost. The other version has another name for the first step, and one more before the last.
 *
 *   version 1   a ── w ── b            a is a call with a key, w a wait, b and n need no call; all but w have a compensation
 *   version 2   z ── w ── n ── b
 *
 * On every edge: M3 of flow/run_migrate.h (what a does is done under one name, and undone under it), rows that fit the version which the
 * run has, and that the history tells of a migration exactly when there was one. And from every state in which nothing goes on but time:
 * if from there on all went well, the run would come to its end, with all steps of its version.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/id.h"
#include "flow/run_verb.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/walks.h"
#include "sim/well.h"
#include "sim/world.h"

#define STATES_MAX 20000000
#define RUN 1
#define SETTLE_ROUNDS_MAX 200
#define ACTION(name) "\"" name "\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/\",\"effect\":\"keyed\"}"
#define STEP(name)                                                                                                     \
	"{\"name\":\"" name                                                                                            \
	"\",\"type\":\"task\",\"action\":\"do\",\"compensate\":\"undo\",\"retry\":{\"max_attempts\":1}}"
#define INNER(name) "{\"name\":\"" name "\",\"type\":\"task\",\"action\":\"in\",\"compensate\":\"in\"}"
#define WAIT "{\"name\":\"w\",\"type\":\"wait\",\"for\":\"1m\"}"

static struct {
	struct arena arena;
	const struct run_machine *machines[2];
	struct sim *sim;
	bool rows_changed;
} fixture;

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow;
	ASSERT(version == 1 || version == 2);
	return fixture.machines[version - 1];
}

static const struct run_policy policy = {.lease_ms = 60000, .machine_of = machine_of};

static void parse(int64_t version, const char *steps)
{
	const struct run_definition *definition;
	struct findings findings;
	char text[2000];

	snprintf(text, sizeof text,
		 "{\"workflow\":\"w\",\"kind\":\"run\",\"actions\":{" ACTION("do") "," ACTION(
			 "undo") ",\"in\":{\"kind\":\"noop\"}},\"steps\":[%s]}",
		 steps);
	findings_init(&findings, &fixture.arena);
	run_definition_parse("w.json", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings,
			     &definition);
	assert_non_null(definition);
	fixture.machines[version - 1] = run_machine_new(definition, version, &fixture.arena);
}

/* ---- the store, seen from here ---- */

/* clang-format off */

DB_STMT(stmt_setup, "sim_migrate_setup", "", "",
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, due_at, created_at)"
	" VALUES (1, 'default', 'w', 1, 'me', '{}', hx_now_ms(), hx_now_ms())");

DB_STMT(stmt_definitions, "sim_migrate_definitions", "", "",
	"INSERT INTO hx_definition (name, version, text, at) VALUES ('w', 1, '{}', 0), ('w', 2, '{}', 0)");

#define RUNS " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"

DB_STMT(stmt_due, "sim_migrate_due", "", "i",
	"SELECT r.subject" RUNS " WHERE r.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms())");

DB_STMT(stmt_moment, "sim_migrate_moment", "", "i",
	"SELECT min(m) FROM (SELECT due_at AS m FROM hx_run UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()");

DB_STMT(stmt_hash_run, "sim_migrate_hash", "", "tiitiiiiitiiit",
	"SELECT s.status, s.version, s.fence, s.owner, s.until, s.doubt, r.at_step, r.attempt, r.redo, r.step_status, r.due_at, r.undo,"
	" r.definition_version, r.renamed" RUNS);

DB_STMT(stmt_hash_steps, "sim_migrate_hash_steps", "", "itii",
	"SELECT position, status, attempt, undone_at IS NULL FROM hx_run_step ORDER BY position");

/* One row: what is wrong, as numbers of findings. */
DB_STMT(stmt_check, "sim_migrate_check", "", "iiiiii",
	"SELECT"
	/* rows of no step of its version, or with one left out */
	" (SELECT count(*) FROM hx_run_step t JOIN hx_run r ON r.subject = t.run WHERE t.position > 1 + r.definition_version"
	"   OR (t.position > 0 AND NOT EXISTS (SELECT 1 FROM hx_run_step o WHERE o.run = t.run AND o.position = t.position - 1))),"
	/* the history tells of it, once */
	" (SELECT r.definition_version <> 1 + (SELECT count(*) FROM hx_note n JOIN hx_history h ON h.subject = n.subject AND h.seq = n.seq"
	"   WHERE n.subject = r.subject AND n.reason = 'migrated from version 1 to version 2' AND n.requester = 'you') FROM hx_run r),"
	" (SELECT count(*) FROM hx_run WHERE (definition_version = 2) <> (coalesce(renamed, '') = '{\"z\":\"a\"}')),"
	/* R5 */
	" (SELECT count(*)" RUNS " WHERE s.status = 'COMPLETED' AND (SELECT count(*) FROM hx_run_step) <> 2 + r.definition_version),"
	" (SELECT count(*)" RUNS " JOIN hx_run_step t ON t.run = r.subject AND (t.position = 0 OR t.position > 1) WHERE s.status = 'CANCELLED'"
	"   AND t.status = 'COMPLETED' AND t.undone_at IS NULL),"
	/* R7 */
	" (SELECT count(*)" RUNS " WHERE r.due_at IS NOT NULL AND (s.owner IS NOT NULL OR s.status IN ('COMPLETED', 'FAILED', 'CANCELLED')))");

DB_STMT(stmt_end, "sim_migrate_end", "", "ti",
	"SELECT s.status, coalesce(r.awaits = 'person', 0)" RUNS);

DB_STMT(stmt_tell, "sim_migrate_tell", "", "t",
	"SELECT s.status || ' v' || s.version || ' of version ' || r.definition_version || CASE WHEN s.owner IS NULL THEN '' ELSE ' owned' END"
	" || ', rows ' || (SELECT count(*) FROM hx_run_step)" RUNS);

/* clang-format on */

static struct unit_result ask_store(struct sim *sim, const struct db_stmt *stmt)
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	return sim_run_unit(sim, &unit);
}

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_run, hash);
	return sim_hash_answer(sim, &stmt_hash_steps, hash);
}

static int64_t next_moment(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_moment);
	const struct db_value *cell = db_cell(&result.rows[0], 0, 0);

	return cell->type == DB_NULL ? INT64_MAX : cell->i;
}

static void before_unit(struct sim *sim, const struct unit *unit)
{
	(void)sim, (void)unit;
}

static void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	(void)sim, (void)unit;
	fixture.rows_changed |= verdict == UNIT_WON;
}

static void tell(struct sim *sim, struct strbuf *words)
{
	struct unit_result result = ask_store(sim, &stmt_tell);

	strbuf_add_str(words, ", ");
	strbuf_add_slice(words, db_cell(&result.rows[0], 0, 0)->s);
}

static const struct sim_rows rows_of_run = {next_moment, hash_all, before_unit, after_unit, tell, .locked = NULL};

static bool did(struct sim *sim, const char *step, const char *rest)
{
	char id[ID_TEXT_BYTES], key[100];
	unsigned at;

	id_format("run", RUN, id);
	snprintf(key, sizeof key, "%s/%s/%s", id, step, rest);
	return world_did(sim, world_key(slice_str(key)), &at);
}

/* M3 */
static void check_keys(struct sim *sim)
{
	if (did(sim, "z", "0") || did(sim, "z", "1"))
		sim_violate(sim, "M3: a renamed step is carried out under its new name");
	if (did(sim, "z", "undo"))
		sim_violate(sim, "M3: a renamed step is undone under its new name");
	if (did(sim, "a", "undo") && !did(sim, "a", "0") && !did(sim, "a", "1"))
		sim_violate(sim, "a step is undone that was not done");
	if (did(sim, "a", "0") && did(sim, "a", "1"))
		sim_violate(sim, "a step is carried out twice");
	if (world_repeated(sim))
		sim_violate(sim, "an effect is there twice");
}

static void check(struct sim *sim)
{
	static const char *const words[] = {
		"the rows of the run do not fit the version that it has",
		"the history does not tell of a migration, or of one that was not",
		"M3: the names in keys are not those of the run's version",
		"R5: COMPLETED without all steps of its version",
		"R5: CANCELLED before everything was undone",
		"R7: the run is due while somebody holds it, or although it has ended",
	};
	struct unit_result result;

	check_keys(sim);
	if (!fixture.rows_changed)
		return;
	fixture.rows_changed = false;
	result = ask_store(sim, &stmt_check);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (db_cell(&result.rows[0], 0, i)->i)
			sim_violate(sim, "%s", words[i]);
}

/* ---- the cast ---- */

static bool is_due(struct sim *sim)
{
	return ask_store(sim, &stmt_due).rows[0].n > 0;
}

static void init_driver(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	run_drive_init((struct run_drive *)task, RUN, &policy, texts);
}

static void init_verb(union sim_task *task, const void *plan, struct arena *texts)
{
	run_verb_init((struct run_verb *)task, plan, texts);
}

#define VERB(what, ...)                                                                                                \
	{                                                                                                              \
		.kind = what, .workspace = {"default", 7}, .subject = RUN, .policy = &policy, __VA_ARGS__              \
	}
static const struct run_verb_request migrate = VERB(RUN_MIGRATE, .definition_version = 2, .requester = {"you", 3},
						    .data = {"{\"a\":\"z\"}", 9});
static const struct run_verb_request cancel = VERB(RUN_CANCEL, .version = 0);
static const struct run_verb_request retry = VERB(RUN_RETRY, .version = 0);

/* ---- nothing gets stuck ---- */

static bool settle_one(struct sim *sim, int64_t *id)
{
	union sim_task task;

	if (is_due(sim)) {
		init_driver(&task, NULL, &sim->texts);
		go_well(sim, &task.task, id, SETTLE_ROUNDS_MAX, /* committed= */ NULL);
		return true;
	}
	return false;
}

static void settled(struct sim *sim)
{
	struct unit_result result;

	fixture.rows_changed = true;
	check(sim);
	result = ask_store(sim, &stmt_end);
	if (!ways_is_terminal(&run_ways, db_cell(&result.rows[0], 0, 0)->s) && !db_cell(&result.rows[0], 0, 1)->i)
		sim_violate(sim, "R6: when all goes well, the run does not come to its end");
}

static void quiet(struct sim *sim)
{
	static const struct well well = {settle_one, settled, SETTLE_ROUNDS_MAX,
					 "R6: the run does not come to rest although all goes well"};

	try_well(sim, &well);
}

static void setup(struct sim *sim)
{
	fixture.sim = sim;
	(void)ask_store(sim, &stmt_setup);
	(void)ask_store(sim, &stmt_definitions);
}

static void explore(struct sim_scenario scenario)
{
	arena_release(&fixture.arena);
	arena_init(&fixture.arena, 16u << 20);
	parse(1, STEP("a") "," WAIT "," INNER("b"));
	parse(2, STEP("z") "," WAIT "," INNER("n") "," INNER("b"));
	scenario.subjects_n = 1;
	scenario.kind = run_kind();
	scenario.initial = RUN_PENDING;
	scenario.driven = true;
	scenario.setup = setup;
	scenario.check = check;
	scenario.quiet = quiet;
	scenario.rows = &rows_of_run;
	scenario.world = WORLD_KEYED;
	walk_all(&scenario, STATES_MAX);
}

#define DRIVES(name, node)                                                                                             \
	{                                                                                                              \
		name, node, true, init_driver, NULL, is_due                                                            \
	}

static void exhaustive_migrate_and_cancel(void **state)
{
	(void)state;
	explore((struct sim_scenario){
		.name = "a run that is driven, migrated and cancelled at once, a crash",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVES("drives", 0),
			 {"migrator", 1, false, init_verb, &migrate, NULL},
			 {"canceller", 2, false, init_verb, &cancel, NULL}},
		.bounds = {.crashes = 1},
	});
}

static void exhaustive_lost_answers(void **state)
{
	(void)state;
	explore((struct sim_scenario){
		.name = "a run that is driven and migrated, a lapse, a crash, a lost answer",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVES("drives", 0), {"migrator", 1, false, init_verb, &migrate, NULL}},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
	});
}

static void exhaustive_two_migrate(void **state)
{
	(void)state;
	explore((struct sim_scenario){
		.name = "a run that two migrate, and that is tried again, a crash",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {DRIVES("drives", 0),
			 {"migrator-1", 1, false, init_verb, &migrate, NULL},
			 {"migrator-2", 2, false, init_verb, &migrate, NULL},
			 {"retrier", 2, false, init_verb, &retry, NULL}},
		.bounds = {.crashes = 1},
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_migrate_and_cancel),
		cmocka_unit_test(exhaustive_lost_answers),
		cmocka_unit_test(exhaustive_two_migrate),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
