/*
 * Runs under a limit, explored: several of one key, of which one may be at work at a time; nodes that are lost, leases that lapse, answers
 * that are lost, and one that is cancelled or paused while it stands in line.
 *
 * Of the workflow, of an action that it calls, or of both.
 *
 * On every edge: L1 to L6 of flow/slot.h. And from every state in which nothing goes on but time: if from there on all went well,
 * every run would come to its end, and no slot would be left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/run_verb.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/run_rules.h"
#include "sim/walks.h"
#include "sim/well.h"

#define STATES_MAX 20000000
#define SETTLE_ROUNDS_MAX 400
#define MAX 1

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

#define CONCURRENCY "\"concurrency\":{\"by\":\".input.customer\",\"max\":1}"
#define RATE "\"rate\":{\"by\":\".input.customer\",\"max\":1,\"per\":\"10s\"}"

/* limits: of the workflow; of_action: of what its steps call as "do". "go" has none. */
static void parse_both(const char *limits, const char *of_action, const char *steps)
{
	const struct run_definition *definition;
	struct findings findings;
	char text[4000];

	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	findings_init(&findings, &fixture.arena);
	snprintf(text, sizeof text,
		 "{\"workflow\":\"ship\",\"kind\":\"run\",\"limits\":{%s},\"actions\":{"
		 "\"do\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/\",\"effect\":\"keyed\",\"limits\":{%s}},"
		 "\"go\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/\",\"effect\":\"keyed\"}},\"steps\":[%s]}",
		 limits, of_action, steps);
	run_definition_parse("ship", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings,
			     &definition);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(definition);
	fixture.machine = run_machine_new(definition, 1, &fixture.arena);
}

static void parse_limited(const char *limits, const char *steps)
{
	parse_both(limits, "", steps);
}

static void parse_action(const char *limits, const char *steps)
{
	parse_both("", limits, steps);
}

static void parse(const char *steps)
{
	parse_limited(CONCURRENCY, steps);
}

/* ---- the store, seen from here ---- */

/* clang-format off */

/* The first of them may be another customer's than the others. */
DB_STMT(stmt_setup, "sim_limit_setup", "ii", "",
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, due_at, created_at, times_out_at)"
	" SELECT id, 'default', 'ship', 1, 'me', CASE WHEN id = 1 THEN '{\"customer\":\"c\",\"of\":1}' ELSE '{\"customer\":\"c\",\"of\":2}' END,"
	" hx_now_ms(), hx_now_ms(), hx_now_ms() + ?2 FROM hx_subject WHERE id <= ?1");

#define RUNS " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
#define RUNS_OF_SLOT " JOIN hx_run r ON r.subject = l.holder JOIN hx_subject s ON s.id = r.subject"

DB_STMT(stmt_due, "sim_limit_due", "i", "i",
	"SELECT r.subject" RUNS " WHERE r.subject = ?1"
	" AND (r.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms()))");

DB_STMT(stmt_moment, "sim_limit_moment", "", "i",
	"SELECT min(m) FROM (SELECT due_at AS m FROM hx_run UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()");

DB_STMT(stmt_hash_runs, "sim_limit_hash", "", "iiitiiiitii",
	"SELECT at_step, attempt, redo, step_status, step_started_at, undo, wait_until, due_at, awaits, completed_at IS NULL, started_at IS NULL"
	" FROM hx_run ORDER BY subject");

DB_STMT(stmt_hash_steps, "sim_limit_hash_steps", "", "iitii",
	"SELECT run, position, status, attempt, completed_at FROM hx_run_step ORDER BY run, position");

DB_STMT(stmt_hash_slots, "sim_limit_hash_slots", "", "ii", "SELECT holder, held FROM hx_slot ORDER BY action, name, holder");

DB_STMT(stmt_hash_ticks, "sim_limit_hash_ticks", "", "ii", "SELECT holder, at FROM hx_tick ORDER BY name, holder");

/* One row: what is wrong, as numbers of findings. ?1: how many may hold one. */
DB_STMT(stmt_check, "sim_limit_check", "ii", "iiiii",
	"SELECT"
	" (SELECT count(*) FROM (SELECT DISTINCT name FROM hx_slot) n"                                              /* L4 */
	"   WHERE (SELECT count(*) FROM hx_slot l" RUNS_OF_SLOT " WHERE l.name = n.name AND l.held = 0 AND r.due_at IS NOT NULL) > 0"
	"   AND (SELECT count(*) FROM hx_slot h WHERE h.name = n.name AND h.held = 1) < ?1"
	"   AND (SELECT count(*) FROM hx_slot l" RUNS_OF_SLOT " WHERE l.name = n.name AND l.held = 0 AND r.due_at <= hx_now_ms()) = 0),"
	" (SELECT count(*)" RUNS " WHERE s.status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND (r.due_at IS NOT NULL"
	"   OR EXISTS (SELECT 1 FROM hx_slot l WHERE l.holder = r.subject))),"
	" (SELECT count(*) FROM hx_tick a, hx_tick b WHERE (a.holder, a.nth) < (b.holder, b.nth) AND abs(a.at - b.at) < ?2)," /* L5, of one at a time */
	" (SELECT count(*)" RUNS " WHERE ?2 > 0 AND r.started_at > hx_now_ms() - ?2 AND s.status NOT IN ('FAILED', 'CANCELLED')"
	"   AND NOT EXISTS (SELECT 1 FROM hx_tick t WHERE t.holder = r.subject)),"
	" (SELECT count(*) FROM hx_slot a JOIN hx_slot b ON b.holder = a.holder AND b.name > a.name" /* L6, and a slot beside it */
	"   WHERE (a.action IS NULL) = (b.action IS NULL) OR a.held <> 1 OR b.held <> 1)");

/* Is this the fence of the run, and has it its slot? */
DB_STMT(stmt_acts, "sim_limit_acts", "iii", "i",
	"SELECT (SELECT count(*) FROM hx_slot l WHERE l.holder = s.id AND l.held = 1) = ?3 FROM hx_subject s WHERE s.id = ?1 AND s.fence = ?2"
	" AND s.owner IS NOT NULL");

DB_STMT(stmt_end, "sim_limit_end", "", "tit", "SELECT s.status, (SELECT count(*) FROM hx_slot), r.awaits" RUNS);

DB_STMT(stmt_tell, "sim_limit_tell", "", "t",
	"SELECT group_concat('run ' || r.subject || ' ' || s.status || ' attempt ' || r.attempt || coalesce(' due in ' || (r.due_at - hx_now_ms()), '') ||"
	" CASE WHEN s.owner IS NULL THEN '' ELSE ' owned' END || coalesce((SELECT CASE l.held WHEN 1 THEN ' holds' ELSE ' in line' END"
	" FROM hx_slot l WHERE l.holder = r.subject), ''), '; ')" RUNS);

/* clang-format on */

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_runs, hash);
	hash = sim_hash_answer(sim, &stmt_hash_slots, hash);
	hash = sim_hash_answer(sim, &stmt_hash_ticks, hash);
	return sim_hash_answer(sim, &stmt_hash_steps, hash);
}

#include "sim/own_rows.h" /* of these */

/* ---- what must hold ---- */

static const struct limits *limits_of_action(void)
{
	return &fixture.machine->definition->actions[0].limits; /* by name: "do" is the first */
}

/* L2. What a holder does that was overtaken is in doubt, and its run's slot is with whoever has taken over. */
static void check_calls(struct sim *sim)
{
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		struct unit_result result;
		struct act_call call;
		int64_t slots;

		if (actor->state != SIM_ASKING || actor->ask != ASK_ACT)
			continue;
		call = sim_call_of(actor);
		slots = (fixture.machine->definition->limits.concurrency.max != 0) +
			(((const struct action *)call.action)->limits.concurrency.max != 0);
		result = ask_store(
			sim, &stmt_acts, 3,
			(struct db_value[]){db_int(call.lease.subject), db_int(call.lease.fence), db_int(slots)});
		if (result.rows[0].n && !db_cell(&result.rows[0], 0, 0)->i)
			sim_violate(sim, "L2: a run is at work without its slots, or with others");
	}
}

static void check(struct sim *sim)
{
	static const char *const words[] = {
		"L4: a slot is free, and nobody in line is due",
		"a run that has ended is due, or in line",
		"L5: more were begun than may be",
		"L5: a run was begun that was not counted",
		"L6: a run is in two lines, or waits with a slot",
	};
	const struct limits *limits = &fixture.machine->definition->limits, *of_action = limits_of_action();
	int64_t per_ms = limits->rate.per_ms ? limits->rate.per_ms : of_action->rate.per_ms;
	struct db_value params[] = {db_int(MAX), db_int(per_ms)};
	struct unit_result result;

	if (limits->concurrency.max || of_action->concurrency.max)
		check_calls(sim);
	if (!rows_changed)
		return;
	rows_changed = false;
	sim_check_slots(sim);
	result = ask_store(sim, &stmt_check, 2, params);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (db_cell(&result.rows[0], 0, i)->i)
			sim_violate(sim, "%s", words[i]);
}

/* ---- the cast ---- */

static bool is_due(struct sim *sim, int64_t run)
{
	struct db_value param = db_int(run);

	return ask_store(sim, &stmt_due, 1, &param).rows[0].n > 0;
}

static bool first_is_due(struct sim *sim)
{
	return is_due(sim, 1);
}

static bool second_is_due(struct sim *sim)
{
	return is_due(sim, 2);
}

static bool third_is_due(struct sim *sim)
{
	return is_due(sim, 3);
}

static const int64_t numbers[] = {1, 2, 3};

static void init_driver(union sim_task *task, const void *plan, struct arena *texts)
{
	run_drive_init((struct run_drive *)task, *(const int64_t *)plan, &policy, texts);
}

static void init_verb(union sim_task *task, const void *plan, struct arena *texts)
{
	run_verb_init((struct run_verb *)task, plan, texts);
}

#define VERB(what, run)                                                                                                \
	{                                                                                                              \
		.kind = what, .workspace = {"default", 7}, .subject = run, .policy = &policy                           \
	}
#define FIRST(name, node)                                                                                              \
	{                                                                                                              \
		name, node, true, init_driver, &numbers[0], first_is_due                                               \
	}
#define SECOND(name, node)                                                                                             \
	{                                                                                                              \
		name, node, true, init_driver, &numbers[1], second_is_due                                              \
	}
#define THIRD(name, node)                                                                                              \
	{                                                                                                              \
		name, node, true, init_driver, &numbers[2], third_is_due                                               \
	}

/* ---- nothing gets stuck ---- */

static bool settle_one(struct sim *sim, int64_t *id)
{
	union sim_task task;

	for (size_t i = 0; i < sim->scenario->subjects_n; i++) {
		if (!is_due(sim, numbers[i]))
			continue;
		init_driver(&task, &numbers[i], &sim->texts);
		go_well(sim, &task.task, id, SETTLE_ROUNDS_MAX, /* committed= */ NULL);
		return true;
	}
	return false;
}

static void check_settled(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_end, 0, NULL);
	const struct db_rows *rows = &result.rows[0];

	for (size_t i = 0; i < rows->n; i++) {
		char status[40];

		snprintf(status, sizeof status, "%.*s", SLICE_ARGS(db_cell(rows, i, 0)->s));
		if (!run_is_terminal(status) && strcmp(status, RUN_PAUSED) != 0 &&
		    db_cell(rows, i, 2)->type == DB_NULL) /* else a person has to say what has happened */
			sim_violate(sim, "when all goes well, a run stays %s for ever", status);
		if (db_cell(rows, i, 1)->i)
			sim_violate(sim, "a slot is left");
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
	int64_t timeout_ms = fixture.machine->definition->timeout_ms;
	struct db_value params[] = {db_int(sim->scenario->subjects_n), timeout_ms ? db_int(timeout_ms) : db_null()};

	fixture.sim = sim;
	(void)ask_store(sim, &stmt_setup, 2, params);
}

static void explore(struct sim_scenario scenario)
{
	scenario.subjects_n = scenario.subjects_n ? scenario.subjects_n : 2;
	scenario.kind = run_kind();
	scenario.initial = RUN_PENDING;
	scenario.driven = true;
	scenario.setup = setup;
	scenario.check = check;
	scenario.quiet = quiet;
	scenario.rows = &own_rows;
	walk_all(&scenario, STATES_MAX);
}

/* ---- scenarios ---- */

#define TASK(name) "{\"name\":\"" name "\",\"type\":\"task\",\"action\":\"do\",\"retry\":{\"max_attempts\":1}}"

static void exhaustive_two(void **state)
{
	(void)state;
	parse(TASK("a"));
	explore((struct sim_scenario){
		.name = "two runs and one slot, lapses, a crash, a lost answer",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {FIRST("drives-1", 0), SECOND("drives-2", 1)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

/* Who waits for its time has no slot, and another goes on meanwhile. */
static void exhaustive_waits_between(void **state)
{
	(void)state;
	parse(TASK("a") ",{\"name\":\"w\",\"type\":\"wait\",\"for\":\"1s\"}," TASK("b"));
	explore((struct sim_scenario){
		.name = "two runs that wait between their steps, and one slot",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {FIRST("drives-1", 0), SECOND("drives-2", 1)},
		.bounds = {.crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_taken_over(void **state)
{
	(void)state;
	parse(TASK("a"));
	explore((struct sim_scenario){
		.name = "two runs and one slot, of which two nodes drive one",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {FIRST("drives-1", 0), FIRST("drives-1-too", 1), SECOND("drives-2", 2)},
		.bounds = {.lapses = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_three(void **state)
{
	(void)state;
	parse(TASK("a"));
	explore((struct sim_scenario){
		.name = "three runs and one slot",
		.subjects_n = 3,
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {FIRST("drives-1", 0), SECOND("drives-2", 1), THIRD("drives-3", 2)},
		.bounds = {.lapses = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_cancelled(void **state)
{
	static const struct run_verb_request cancel = VERB(RUN_CANCEL, 2);

	(void)state;
	parse(TASK("a"));
	explore((struct sim_scenario){
		.name = "three runs and one slot, the second is cancelled",
		.subjects_n = 3,
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {FIRST("drives-1", 0),
			 SECOND("drives-2", 0),
			 THIRD("drives-3", 1),
			 {"canceller", 2, false, init_verb, &cancel, NULL}},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_paused(void **state)
{
	static const struct run_verb_request pause_it = VERB(RUN_PAUSE, 2);

	(void)state;
	parse(TASK("a"));
	explore((struct sim_scenario){
		.name = "three runs and one slot, the second is paused",
		.subjects_n = 3,
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {FIRST("drives-1", 0),
			 SECOND("drives-2", 0),
			 THIRD("drives-3", 1),
			 {"pauser", 2, false, init_verb, &pause_it, NULL}},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_rate(void **state)
{
	(void)state;
	parse_limited(RATE, TASK("a"));
	explore((struct sim_scenario){
		.name = "two runs, of which one may begin at a time, a crash, a lost answer",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {FIRST("drives-1", 0), SECOND("drives-2", 1)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_rate_cancelled(void **state)
{
	static const struct run_verb_request cancel = VERB(RUN_CANCEL, 2);

	(void)state;
	parse_limited(RATE, TASK("a"));
	explore((struct sim_scenario){
		.name = "three runs, of which one may begin at a time, the second is cancelled",
		.subjects_n = 3,
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {FIRST("drives-1", 0),
			 SECOND("drives-2", 0),
			 THIRD("drives-3", 1),
			 {"canceller", 2, false, init_verb, &cancel, NULL}},
		.world = WORLD_KEYED,
	});
}

/* Who has to wait for the one waits for nothing else meanwhile. */
static void exhaustive_rate_and_slot(void **state)
{
	(void)state;
	parse_limited(CONCURRENCY "," RATE, TASK("a"));
	explore((struct sim_scenario){
		.name = "two runs and one slot, of which one may begin at a time",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {FIRST("drives-1", 0), SECOND("drives-2", 1)},
		.bounds = {.lapses = 1, .crashes = 1},
		.world = WORLD_KEYED,
	});
}

/* ---- of an action ---- */

#define GO(name) "{\"name\":\"" name "\",\"type\":\"task\",\"action\":\"go\",\"retry\":{\"max_attempts\":1}}"
#define AGAIN(name) "{\"name\":\"" name "\",\"type\":\"task\",\"action\":\"do\",\"retry\":{\"max_attempts\":2}}"

static void exhaustive_action(void **state)
{
	(void)state;
	parse_action(CONCURRENCY, TASK("a"));
	explore((struct sim_scenario){
		.name = "two runs and one call of an action, lapses, a crash, a lost answer",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {FIRST("drives-1", 0), SECOND("drives-2", 1)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

/* The action is the second step: who finds it full has a step to record, and holds the run. */
static void exhaustive_action_after_another(void **state)
{
	(void)state;
	parse_action(CONCURRENCY, GO("a") "," TASK("b") "," GO("c"));
	explore((struct sim_scenario){
		.name = "two runs, and one call of the action of their second step",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {FIRST("drives-1", 0), SECOND("drives-2", 1)},
		.bounds = {.crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_action_taken_over(void **state)
{
	(void)state;
	parse_action(CONCURRENCY, TASK("a"));
	explore((struct sim_scenario){
		.name = "two runs and one call of an action, two nodes drive one of them",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {FIRST("drives-1", 0), FIRST("drives-1-too", 1), SECOND("drives-2", 2)},
		.bounds = {.lapses = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_action_cancelled(void **state)
{
	static const struct run_verb_request cancel = VERB(RUN_CANCEL, 2);

	(void)state;
	parse_action(CONCURRENCY, TASK("a"));
	explore((struct sim_scenario){
		.name = "three runs and one call of an action, the second is cancelled",
		.subjects_n = 3,
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {FIRST("drives-1", 0),
			 SECOND("drives-2", 0),
			 THIRD("drives-3", 1),
			 {"canceller", 2, false, init_verb, &cancel, NULL}},
		.world = WORLD_KEYED,
	});
}

/* One node stands in line with a run that another has found too late to go on. */
static void exhaustive_action_timed_out(void **state)
{
	(void)state;
	parse_both("},\"timeout\":\"1s\",\"attributes\":{", CONCURRENCY, TASK("a"));
	explore((struct sim_scenario){
		.name = "two runs and one call of an action, two nodes drive the second, whose time is over",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {FIRST("drives-1", 0), SECOND("drives-2", 1), SECOND("drives-2-too", 2)},
		.bounds = {.lapses = 1},
		.world = WORLD_KEYED,
	});
}

/* Each of an attempt, with a backoff between them. */
static void exhaustive_action_rate(void **state)
{
	(void)state;
	parse_action(RATE, AGAIN("a"));
	explore((struct sim_scenario){
		.name = "two runs, of which one attempt may begin at a time, a lapse, a crash",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {FIRST("drives-1", 0), SECOND("drives-2", 1)},
		.bounds = {.lapses = 1, .crashes = 1},
		.world = WORLD_KEYED,
	});
}

/* The workflow by one key, the action by another: who waits for the one holds nothing of the other. */
static void exhaustive_both(void **state)
{
	(void)state;
	parse_both("\"concurrency\":{\"by\":\".input.of\",\"max\":1}", CONCURRENCY, GO("a") "," TASK("b"));
	explore((struct sim_scenario){
		.name = "three runs with a limit, and one of the action of their second step",
		.subjects_n = 3,
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {FIRST("drives-1", 0), SECOND("drives-2", 1), THIRD("drives-3", 2)},
		.world = WORLD_KEYED,
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_action),
		cmocka_unit_test(exhaustive_action_after_another),
		cmocka_unit_test(exhaustive_action_taken_over),
		cmocka_unit_test(exhaustive_action_cancelled),
		cmocka_unit_test(exhaustive_action_rate),
		cmocka_unit_test(exhaustive_action_timed_out),
		cmocka_unit_test(exhaustive_both),
		cmocka_unit_test(exhaustive_two),
		cmocka_unit_test(exhaustive_waits_between),
		cmocka_unit_test(exhaustive_taken_over),
		cmocka_unit_test(exhaustive_rate),
		cmocka_unit_test(exhaustive_rate_cancelled),
		cmocka_unit_test(exhaustive_rate_and_slot),
		cmocka_unit_test(exhaustive_three),
		cmocka_unit_test(exhaustive_cancelled),
		cmocka_unit_test(exhaustive_paused),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
