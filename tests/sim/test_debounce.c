/*
 * Starts of a workflow with a debounce, explored: one run of its name has not begun, others start while a node begins it, with crashes,
 * answers that are lost and commits that fail, and one that starts again under the same key.
 *
 * On every edge: D1 to D3 of flow/debounce.h; that whoever was told of a run finds it by its key; and that no action is begun with an input
 * that was replaced. From every state in which nothing goes on but time: if all went well from there on, every run would come to its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json_walk.h"
#include "flow/debounce.h"
#include "flow/run_verb.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/walks.h"
#include "sim/well.h"

#define STATES_MAX 20000000
#define SETTLE_ROUNDS_MAX 400
#define STARTS 2

static struct {
	struct arena arena;
	const struct run_machine *machine;
	struct run_spec specs[STARTS];
} fixture;

static struct run_verb_request starts[STARTS];

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow, (void)version;
	return fixture.machine;
}

static const struct run_policy policy = {.lease_ms = 60000, .machine_of = machine_of};

static void prepare_start(size_t i, const char *key, const char *input)
{
	struct run_spec *spec = &fixture.specs[i];

	*spec = (struct run_spec){.workspace = slice_str("default"),
				  .requester = slice_str("me"),
				  .key = slice_str(key),
				  .machine = fixture.machine,
				  .input = slice_str(input)};
	run_describe(spec, &fixture.arena);
	starts[i] = (struct run_verb_request){.kind = RUN_DEBOUNCE,
					      .workspace = spec->workspace,
					      .workflow = slice_str("sync"),
					      .key = spec->key,
					      .start = spec,
					      .policy = &policy};
}

static void parse(const char *more)
{
	const struct run_definition *definition;
	struct findings findings;
	char text[2000];

	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	findings_init(&findings, &fixture.arena);
	snprintf(
		text, sizeof text,
		"{\"workflow\":\"sync\",\"kind\":\"run\",\"limits\":{\"debounce\":{\"for\":\"5s\",\"at_most\":\"8s\"}%s},"
		"\"actions\":{\"do\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/\",\"effect\":\"keyed\"}},\"steps\":["
		"{\"name\":\"a\",\"type\":\"task\",\"action\":\"do\",\"input\":\"{v: .input.v}\",\"retry\":{\"max_attempts\":1}}]}",
		more);
	run_definition_parse("sync", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings,
			     &definition);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(definition);
	fixture.machine = run_machine_new(definition, 1, &fixture.arena);
}

/* ---- the store, seen from here ---- */

/* clang-format off */

DB_STMT(stmt_setup, "sim_debounce_setup", "", "",
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, run_key, requester, input, due_at, created_at)"
	" SELECT id, 'default', 'sync', 1, 'first', 'me', '{\"v\":0}', hx_now_ms(), hx_now_ms() FROM hx_subject");
DB_STMT(stmt_setup_name, "sim_debounce_name", "i", "",
	"INSERT INTO hx_singleton (name, run, until) VALUES (?1, 1, hx_now_ms() + 8000)");

#define RUNS " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
#define OPEN " AND s.status = 'PENDING' AND s.owner IS NULL AND r.started_at IS NULL"
#define KEYS_OF_RUN " FROM hx_run k WHERE coalesce(k.alias_of, k.subject) = r.subject"

DB_STMT(stmt_due, "sim_debounce_due", "i", "i",
	"SELECT r.subject" RUNS " WHERE (r.subject = ?1 OR ?1 = 0)"
	" AND (r.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms())) ORDER BY r.subject LIMIT 1");

DB_STMT(stmt_moment, "sim_debounce_moment", "", "i",
	"SELECT min(m) FROM (SELECT due_at AS m FROM hx_run UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()");

DB_STMT(stmt_hash_runs, "sim_debounce_hash", "", "ttiiiiii",
	"SELECT input, run_key, attempt, due_at, wait_until, completed_at IS NULL, started_at IS NULL,"
	" (SELECT count(*) FROM hx_run b WHERE b.subject <= coalesce(hx_run.alias_of, 0)) FROM hx_run ORDER BY subject");

DB_STMT(stmt_hash_names, "sim_debounce_hash_names", "", "ii",
	"SELECT (SELECT count(*) FROM hx_run b WHERE b.subject <= run), until FROM hx_singleton ORDER BY name, run");

/* One row: what is wrong, as numbers of findings. */
DB_STMT(stmt_check, "sim_debounce_check", "", "iiii",
	"SELECT (SELECT count(*)" RUNS " WHERE 1 = 1" OPEN ") > 1," /* D1 */
	/* D2: of the starts whose keys lead to it, one has made its input, and not the first, if there are others */
	" (SELECT count(*)" RUNS " WHERE json_extract(r.input, '$.v') NOT IN"
	"   (SELECT CASE k.run_key WHEN 'a' THEN 1 WHEN 'b' THEN 2 ELSE 0 END" KEYS_OF_RUN ")),"
	" (SELECT count(*)" RUNS " WHERE json_extract(r.input, '$.v') = 0 AND (SELECT count(*)" KEYS_OF_RUN ") > 1),"
	" (SELECT count(*)" RUNS " JOIN hx_singleton h ON h.run = r.subject WHERE r.due_at > h.until" OPEN ")"); /* D3 */

/* Is this the fence of the run? Then this is its input. */
DB_STMT(stmt_acts, "sim_debounce_acts", "ii", "t",
	"SELECT r.input" RUNS " WHERE s.id = ?1 AND s.fence = ?2 AND s.owner IS NOT NULL");

DB_STMT(stmt_keyed, "sim_debounce_keyed", "t", "i",
	"SELECT s.id FROM hx_run k JOIN hx_subject s ON s.id = coalesce(k.alias_of, k.subject) WHERE k.run_key = ?1");

DB_STMT(stmt_end, "sim_debounce_end", "", "tt", "SELECT s.status, r.awaits" RUNS);

DB_STMT(stmt_tell, "sim_debounce_tell", "", "t",
	"SELECT group_concat('run ' || r.subject || ' ' || s.status || ' ' || r.input || coalesce(' due in ' || (r.due_at - hx_now_ms()), '') ||"
	" CASE WHEN s.owner IS NULL THEN '' ELSE ' owned' END || ' keys ' || (SELECT group_concat(k.run_key)" KEYS_OF_RUN "), '; ')" RUNS);

/* clang-format on */

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_runs, hash);
	return sim_hash_answer(sim, &stmt_hash_names, hash);
}

#include "sim/own_rows.h" /* of these */

/* ---- the cast ---- */

static int64_t first_due(struct sim *sim, int64_t run)
{
	struct db_value param = db_int(run);
	struct unit_result result = ask_store(sim, &stmt_due, 1, &param);

	return result.rows[0].n ? db_cell(&result.rows[0], 0, 0)->i : 0;
}

static bool is_due(struct sim *sim)
{
	return first_due(sim, 1) != 0;
}

static void init_driver(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	run_drive_init((struct run_drive *)task, 1, &policy, texts);
}

static void init_start(union sim_task *task, const void *plan, struct arena *texts)
{
	run_verb_init((struct run_verb *)task, plan, texts);
}

/* ---- what must hold ---- */

static void check_call(struct sim *sim, const struct sim_actor *actor)
{
	struct act_call call = sim_call_of(actor);
	struct db_value params[] = {db_int(call.lease.subject), db_int(call.lease.fence)};
	struct unit_result result = ask_store(sim, &stmt_acts, 2, params);
	struct json document, input;
	char wanted[40];

	if (!result.rows[0].n)
		return;
	snprintf(wanted, sizeof wanted, "%.*s", SLICE_ARGS(db_cell(&result.rows[0], 0, 0)->s));
	document = json_trust(call.input);
	if (!json_find(document, slice_str("input"), &input) || !slice_is(input.raw, wanted))
		sim_violate(sim, "D2: an action is begun with another input than %s", wanted);
}

static void check_actors(struct sim *sim)
{
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];

		if (actor->state == SIM_ASKING && actor->ask == ASK_ACT)
			check_call(sim, actor);
		if (sim->scenario->cast[i].init == init_start && actor->state == SIM_DONE &&
		    actor->task.task.code == HX_OK) {
			const struct run_verb_request *rq = sim->scenario->cast[i].plan;
			struct db_value key = db_text(rq->key);

			if (!ask_store(sim, &stmt_keyed, 1, &key).rows[0].n)
				sim_violate(sim, "D2: %s was told of a run that its key does not lead to",
					    sim->scenario->cast[i].name);
		}
	}
}

static void check(struct sim *sim)
{
	static const char *const words[] = {
		"D1: two runs of one name have not begun",
		"D2: a run has an input of none of its keys",
		"D2: a start that was debounced has not replaced the input",
		"D3: a run is put off for too long",
	};
	struct unit_result result;

	check_actors(sim);
	if (!rows_changed)
		return;
	rows_changed = false;
	result = ask_store(sim, &stmt_check, 0, NULL);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (db_cell(&result.rows[0], 0, i)->i)
			sim_violate(sim, "%s", words[i]);
}

/* ---- nothing gets stuck ---- */

static bool settle_one(struct sim *sim, int64_t *id)
{
	int64_t run = first_due(sim, 0);
	union sim_task task;

	if (run) {
		run_drive_init((struct run_drive *)&task, run, &policy, &sim->texts);
		go_well(sim, &task.task, id, SETTLE_ROUNDS_MAX, /* committed= */ NULL);
		return true;
	}
	return false;
}

static void check_settled(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_end, 0, NULL);

	for (size_t i = 0; i < result.rows[0].n; i++) {
		char status[40];

		snprintf(status, sizeof status, "%.*s", SLICE_ARGS(db_cell(&result.rows[0], i, 0)->s));
		if (!run_is_terminal(status) &&
		    db_cell(&result.rows[0], i, 1)->type == DB_NULL) /* else a person has to say what has happened */
			sim_violate(sim, "when all goes well, a run stays %s for ever", status);
	}
}

static void settled(struct sim *sim)
{
	rows_changed = true;
	check(sim);
	check_settled(sim);
}

static void quiet(struct sim *sim)
{
	static const struct well well = {settle_one, settled, SETTLE_ROUNDS_MAX,
					 "the runs do not come to rest although all goes well"};

	try_well(sim, &well);
}

static void setup(struct sim *sim)
{
	struct db_value name = db_int(fixture.specs[0].debounce.name);

	(void)ask_store(sim, &stmt_setup, 0, NULL);
	(void)ask_store(sim, &stmt_setup_name, 1, &name);
}

static void explore(struct sim_scenario scenario)
{
	scenario.subjects_n = 1;
	scenario.kind = run_kind();
	scenario.initial = RUN_PENDING;
	scenario.driven = true;
	scenario.setup = setup;
	scenario.check = check;
	scenario.quiet = quiet;
	scenario.rows = &own_rows;
	scenario.world = WORLD_KEYED;
	walk_all(&scenario, STATES_MAX);
}

/* ---- scenarios ---- */

#define DRIVER                                                                                                         \
	{                                                                                                              \
		"driver", 0, true, init_driver, NULL, is_due                                                           \
	}
#define START(name, node, i)                                                                                           \
	{                                                                                                              \
		name, node, false, init_start, &starts[i], NULL                                                        \
	}

static void exhaustive_two_starts(void **state)
{
	(void)state;
	parse("");
	prepare_start(0, "a", "{\"v\":1}");
	prepare_start(1, "b", "{\"v\":2}");
	explore((struct sim_scenario){
		.name = "a run whose time has come, and two starts with keys of their own",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVER, START("start-a", 1, 0), START("start-b", 2, 1)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

static void exhaustive_same_key(void **state)
{
	(void)state;
	parse("");
	prepare_start(0, "a", "{\"v\":1}");
	explore((struct sim_scenario){
		.name = "a run whose time has come, and two starts with one key",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVER, START("start-a", 1, 0), START("start-a-again", 2, 0)},
		.bounds = {.failures = 1, .lost_answers = 1},
	});
}

/* In line for a slot it is PENDING as well, and leaves that line. */
static void exhaustive_with_a_slot(void **state)
{
	(void)state;
	parse(",\"concurrency\":{\"by\":\".input.v\",\"max\":1}");
	prepare_start(0, "a", "{\"v\":1}");
	prepare_start(1, "b", "{\"v\":2}");
	explore((struct sim_scenario){
		.name = "the same under a limit that counts by the input",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVER, START("start-a", 1, 0), START("start-b", 2, 1)},
		.bounds = {.lost_answers = 1},
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_two_starts),
		cmocka_unit_test(exhaustive_same_key),
		cmocka_unit_test(exhaustive_with_a_slot),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
