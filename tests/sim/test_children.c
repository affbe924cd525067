/*
 * Runs with children, explored: a child, a map, branches of which all or the first one count, a body that is repeated; their parent
 * cancelled or paused at any moment, nodes that are lost, answers that are. What runs do by themselves is test_run.c; here they only do what
 * needs no call, so that all that there is to see is who is made, told and waited for.
 *
 * On every edge: C1 to C10 of flow/run_children.h. And from every state in which nothing goes on but time: if from there on all
 * went well, the whole tree would come to its end.
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
#define ROOT 1
#define SETTLE_ROUNDS_MAX 400
#define ACTIONS "\"actions\":{\"do\":{\"kind\":\"noop\"},\"undo\":{\"kind\":\"noop\"}}"
#define STEP(name) "{\"name\":\"" name "\",\"type\":\"task\",\"action\":\"do\",\"compensate\":\"undo\"}"

static struct {
	struct arena arena;
	const struct run_machine *tree, *leaf;
	struct sim *sim;
	int64_t concurrency; /* of its map, and 1 of what is repeated; 0: there is none */
	bool repeats;
	bool any;                /* the first branch decides */
	int64_t position;        /* of the step with children */
	int64_t times_out_in_ms; /* of the root; 0: never */
	bool may_wait;           /* for an event that nobody sends any more */
	bool may_pause;          /* and nobody resumes it any more */
} fixture;

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)version;
	return slice_is(workflow, "leaf") ? fixture.leaf : fixture.tree;
}

static const struct run_policy policy = {.lease_ms = 60000, .machine_of = machine_of};

static const struct run_machine *machine_from(const char *name, const char *steps)
{
	const struct run_definition *definition;
	struct findings findings;
	char text[4000];

	findings_init(&findings, &fixture.arena);
	snprintf(text, sizeof text, "{\"workflow\":\"%s\",\"kind\":\"run\"," ACTIONS ",\"steps\":[%s]}", name, steps);
	run_definition_parse(name, arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings, &definition);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(definition);
	return run_machine_new(definition, 1, &fixture.arena);
}

static void parse(const char *tree, const char *leaf)
{
	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	fixture.tree = machine_from("tree", tree);
	fixture.leaf = machine_from("leaf", leaf);
}

/* ---- the store, seen from here ---- */

/* clang-format off */

DB_STMT(stmt_setup, "sim_tree_setup", "", "",
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, due_at, created_at)"
	" VALUES (1, 'default', 'tree', 1, 'me', '{}', hx_now_ms(), hx_now_ms())");

DB_STMT(stmt_setup_time, "sim_tree_setup_time", "i", "", "UPDATE hx_run SET times_out_at = hx_now_ms() + ?1");

#define RUNS " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"

/* ?1: -1: the root, else the child of this number. */
DB_STMT(stmt_due, "sim_tree_due", "i", "i",
	"SELECT r.subject" RUNS " WHERE coalesce(r.parent_n, -1) = ?1"
	" AND (r.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms()))");

DB_STMT(stmt_asked, "sim_tree_asked", "i", "i",
	"SELECT r.subject" RUNS " WHERE r.parent_n = ?1 AND r.asked IS NOT NULL AND r.asked NOT IN ('fail', 'cancelling')");

DB_STMT(stmt_moment, "sim_tree_moment", "", "i",
	"SELECT min(m) FROM (SELECT due_at AS m FROM hx_run UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()");

DB_STMT(stmt_hash_runs, "sim_tree_hash", "", "tiitiiiiitiiiiitiitt",
	"SELECT s.status, s.version, s.fence, s.owner, s.until, s.doubt, r.at_step, r.attempt, r.redo, r.step_status, r.step_started_at,"
	" r.undo, r.wait_until, r.due_at, r.completed_at IS NULL, r.awaits, r.winner, r.parent_n, r.child, r.asked" RUNS
	" ORDER BY r.parent_n");

DB_STMT(stmt_hash_steps, "sim_tree_hash_steps", "", "iititii",
	"SELECT r.parent_n, t.position, t.status, t.attempt, t.output, t.completed_at, t.undone_at IS NULL"
	" FROM hx_run_step t JOIN hx_run r ON r.subject = t.run ORDER BY r.parent_n, t.position");

DB_STMT(stmt_event, "sim_tree_event", "", "",
	"INSERT INTO hx_run_event (run, id, name, data, at) VALUES (1, 'event/1', 'event go', '{}', 1)");

/* C9 */
DB_STMT(stmt_taken, "sim_tree_taken", "", "i",
	"SELECT (SELECT count(*) FROM hx_run_step t JOIN hx_run r ON r.subject = t.run AND r.around = 1 WHERE t.output = '{}')"
	" > (SELECT count(*) FROM hx_run_event)");

#define CHILDREN RUNS " WHERE r.parent = 1"

/* C4, of iterations: one is undone when those after it are. */
DB_STMT(stmt_reversed, "sim_tree_reversed", "", "i",
	"SELECT (SELECT count(*)" CHILDREN " AND s.status IN ('CANCELLING', 'CANCELLED') AND EXISTS (SELECT 1 FROM hx_run l JOIN hx_subject t"
	" ON t.id = l.subject WHERE l.parent = 1 AND l.parent_n > r.parent_n AND t.status <> 'CANCELLED'))");
#define ROOT_IS "(SELECT status FROM hx_subject WHERE id = 1)"

/* One row: what is wrong, as numbers of findings. ?1: the concurrency; ?2: the first branch decides; ?3: the step with children. */
DB_STMT(stmt_check, "sim_tree_check", "iii", "iiiiiiiiiiii",
	"SELECT"
	/* what the parent sees is what the child is, but for words that are on their way */
	" (SELECT count(*)" CHILDREN " AND r.asked IS NULL AND r.child <> CASE s.status WHEN 'COMPLETED' THEN 'done'"
	"   WHEN 'FAILED' THEN 'failed' WHEN 'CANCELLED' THEN 'cancelled' ELSE 'open' END),"
	/* C3 */
	" (SELECT count(*) FROM hx_run_step t WHERE t.run = 1 AND t.position = ?3 AND t.status = 'COMPLETED' AND EXISTS (SELECT 1" CHILDREN
	"   AND " ROOT_IS " NOT IN ('CANCELLING', 'CANCELLED')"
	"   AND CASE WHEN ?2 = 1 AND r.parent_n <> (SELECT winner FROM hx_run WHERE subject = 1) THEN s.status <> 'CANCELLED'"
	"   ELSE s.status <> 'COMPLETED' END)),"
	/* C4 */
	" (SELECT count(*)" CHILDREN " AND " ROOT_IS " = 'CANCELLED' AND s.status <> 'CANCELLED'),"
	" (SELECT count(*)" RUNS " JOIN hx_run_step t ON t.run = r.subject WHERE s.status = 'CANCELLED' AND t.status = 'COMPLETED'"
	"   AND t.undone_at IS NULL),"
	/* C5 */
	" (SELECT count(*)" RUNS " WHERE r.subject = 1 AND r.awaits = 'child' AND s.owner IS NULL AND r.due_at IS NULL"
	"   AND s.status <> 'PAUSED' AND NOT EXISTS (SELECT 1 FROM hx_run k WHERE k.parent = 1 AND k.child = 'open')),"
	/* C7 */
	" (SELECT count(*) FROM hx_run k WHERE k.parent = 1 AND k.child = 'open' AND " ROOT_IS " NOT IN ('CANCELLING', 'CANCELLED')) > ?1"
	"   AND ?1 > 0,"
	/* C8 */
	" (SELECT count(*) FROM hx_history h JOIN hx_run r ON r.subject = h.subject WHERE h.from_status = 'COMPLETED'"
	"   AND NOT (r.parent = 1 AND (?2 = 1 OR " ROOT_IS " IN ('CANCELLING', 'CANCELLED')))),"
	/* R7 */
	" (SELECT count(*)" RUNS " WHERE r.due_at IS NOT NULL AND s.owner IS NOT NULL AND s.until > hx_now_ms()),"
	/* C10 */
	" (SELECT count(*)" CHILDREN " AND r.child = 'open' AND " ROOT_IS " = 'FAILED'),"
	/* for what is compared with before */
	" (SELECT count(*)" CHILDREN "), " ROOT_IS " IN ('CANCELLING', 'CANCELLED', 'FAILED', 'COMPLETED'),"
	" (SELECT coalesce(winner, -1) FROM hx_run WHERE subject = 1)");

DB_STMT(stmt_end, "sim_tree_end", "", "tt", "SELECT s.status, r.awaits" RUNS " ORDER BY r.parent_n");

DB_STMT(stmt_tell, "sim_tree_tell", "", "t",
	"SELECT group_concat(coalesce('child ' || r.parent_n, 'root') || ' ' || s.status || coalesce(' ' || r.child, '') || coalesce(' asked ' || r.asked, '') ||"
	" coalesce(' awaits ' || r.awaits, '') || coalesce(' undo ' || r.undo, '') || coalesce(' due in ' || (r.due_at - hx_now_ms()), '') ||"
	" CASE WHEN s.owner IS NULL THEN '' ELSE ' owned' END || coalesce(' winner ' || r.winner, ''), '; ')" RUNS);

/* clang-format on */

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_runs, hash);
	return sim_hash_answer(sim, &stmt_hash_steps, hash);
}

#include "sim/own_rows.h" /* of these */

/* ---- what must hold ---- */

struct notes {
	int64_t children, winner; /* winner: one more than its number */
	bool begins_nothing;
};

static void compare(struct sim *sim, int64_t children, bool begins_nothing, int64_t winner)
{
	struct notes *notes = (struct notes *)sim->state.notes;

	if (notes->begins_nothing && children > notes->children && begins_nothing)
		sim_violate(sim, "C2: a child was made although its parent is being cancelled, or has ended");
	if (notes->winner && winner >= 0 && winner + 1 != notes->winner)
		sim_violate(sim, "C6: the winner is another by now");
	notes->children = children;
	notes->winner = winner + 1;
	notes->begins_nothing = begins_nothing;
}

static void check(struct sim *sim)
{
	static const char *const words[] = {
		"a child is not what its parent sees",
		"C3: a step is done before its children are",
		"C4: a run is CANCELLED before its children are",
		"R5: CANCELLED before everything was undone",
		"C5: nothing will ever move the run that awaits its children",
		"C7: more children are open than may be",
		"C8: a COMPLETED child went on without its parent's word",
		"R7: a run is due while somebody holds it",
		"C10: a run is FAILED before its children have ended",
	};
	enum { FOUND = sizeof words / sizeof *words };
	struct db_value params[] = {db_int(fixture.concurrency), db_int(fixture.any), db_int(fixture.position)};
	struct unit_result result;
	const struct db_rows *rows;

	if (!rows_changed)
		return;
	rows_changed = false;
	result = ask_store(sim, &stmt_check, 3, params);
	rows = &result.rows[0];
	for (size_t i = 0; i < FOUND; i++)
		if (db_cell(rows, 0, i)->i)
			sim_violate(sim, "%s", words[i]);
	if (db_cell(&ask_store(sim, &stmt_taken, 0, NULL).rows[0], 0, 0)->i)
		sim_violate(sim, "C9: an event was taken twice");
	if (fixture.repeats && db_cell(&ask_store(sim, &stmt_reversed, 0, NULL).rows[0], 0, 0)->i)
		sim_violate(sim, "C4: an iteration is undone before the one after it");
	compare(sim, db_cell(rows, 0, FOUND)->i, db_cell(rows, 0, FOUND + 1)->i != 0, db_cell(rows, 0, FOUND + 2)->i);
}

/* ---- the cast ---- */

static int64_t found(struct sim *sim, const struct db_stmt *stmt, int64_t n)
{
	struct db_value param = db_int(n);
	struct unit_result result = ask_store(sim, stmt, 1, &param);

	return result.rows[0].n ? db_cell(&result.rows[0], 0, 0)->i : 0;
}

static const int64_t numbers[] = {-1, 0, 1, 2};

static void init_driver(union sim_task *task, const void *plan, struct arena *texts)
{
	int64_t subject = found(fixture.sim, &stmt_due, *(const int64_t *)plan);

	run_drive_init((struct run_drive *)task, subject ? subject : ROOT, &policy, texts);
}

static void init_obeyer(union sim_task *task, const void *plan, struct arena *texts)
{
	static struct run_verb_request requests[3];
	int64_t n = *(const int64_t *)plan, subject = found(fixture.sim, &stmt_asked, n);

	requests[n] = (struct run_verb_request){
		.kind = RUN_OBEY, .subject = subject ? subject : ROOT, .policy = &policy};
	run_verb_init((struct run_verb *)task, &requests[n], texts);
}

static void init_verb(union sim_task *task, const void *plan, struct arena *texts)
{
	run_verb_init((struct run_verb *)task, plan, texts);
}

static bool root_is_due(struct sim *sim)
{
	return found(sim, &stmt_due, -1) != 0;
}

#define OF_CHILD(n)                                                                                                    \
	static bool child_##n##_is_due(struct sim *sim)                                                                \
	{                                                                                                              \
		return found(sim, &stmt_due, n) != 0;                                                                  \
	}                                                                                                              \
	static bool child_##n##_is_asked(struct sim *sim)                                                              \
	{                                                                                                              \
		return found(sim, &stmt_asked, n) != 0;                                                                \
	}
OF_CHILD(0)
OF_CHILD(1)

static const struct run_verb_request cancel = {
	.kind = RUN_CANCEL, .workspace = {"default", 7}, .subject = ROOT, .policy = &policy};

static const struct run_verb_request pause_it = {
	.kind = RUN_PAUSE, .workspace = {"default", 7}, .subject = ROOT, .policy = &policy};
static const struct run_verb_request resume_it = {
	.kind = RUN_RESUME, .workspace = {"default", 7}, .subject = ROOT, .policy = &policy};

#define DRIVES_ROOT(name, node)                                                                                        \
	{                                                                                                              \
		name, node, true, init_driver, &numbers[0], root_is_due                                                \
	}
#define DRIVES(n, node)                                                                                                \
	{                                                                                                              \
		"drives-child-" #n, node, true, init_driver, &numbers[1 + (n)], child_##n##_is_due                     \
	}
#define OBEYS(n, node)                                                                                                 \
	{                                                                                                              \
		"child-" #n "-obeys", node, true, init_obeyer, &numbers[1 + (n)], child_##n##_is_asked                 \
	}
#define CANCELLER(node)                                                                                                \
	{                                                                                                              \
		"canceller", node, false, init_verb, &cancel, NULL                                                     \
	}

/* ---- nothing gets stuck ---- */

static bool settle_one(struct sim *sim, int64_t *id)
{
	union sim_task task;

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		if (found(sim, &stmt_due, numbers[i]))
			init_driver(&task, &numbers[i], &sim->texts);
		else if (i && found(sim, &stmt_asked, numbers[i]))
			init_obeyer(&task, &numbers[i], &sim->texts);
		else
			continue;
		go_well(sim, &task.task, id, SETTLE_ROUNDS_MAX, /* committed= */ NULL);
		return true;
	}
	return false;
}

static void settle(struct sim *sim)
{
	int64_t id = INT64_C(1) << 40;

	for (int n = 0; n < SETTLE_ROUNDS_MAX; n++) {
		int64_t moment;

		if (settle_one(sim, &id))
			continue;
		moment = next_moment(sim);
		if (moment == INT64_MAX)
			return;
		sim_set_now(sim, (struct wall_time){moment});
	}
	sim_violate(sim, "R6: the tree does not come to rest although all goes well");
}

/* The root is, and what is around in it may wait for that. */
static bool may_stay_paused(const struct db_rows *rows)
{
	return slice_is(db_cell(rows, 0, 0)->s, RUN_PAUSED);
}

static void check_settled(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_end, 0, NULL);
	const struct db_rows *rows = &result.rows[0];

	for (size_t i = 0; i < rows->n; i++) {
		char status[40];

		snprintf(status, sizeof status, "%.*s", SLICE_ARGS(db_cell(rows, i, 0)->s));
		if (!run_is_terminal(status) && !(fixture.may_wait && slice_is(slice_str(status), RUN_WAITING)) &&
		    !(fixture.may_pause && may_stay_paused(rows)))
			sim_violate(sim, "R6: when all goes well, %s stays %s for ever", i ? "a child" : "the root",
				    status);
	}
}

static void quiet(struct sim *sim)
{
	struct sim_state *saved = malloc(sizeof *saved);

	assert_non_null(saved);
	sim_save(sim, saved);
	sim_savepoint(sim);
	settle(sim);
	rows_changed = true;
	check(sim);
	check_settled(sim);
	sim_roll_back(sim);
	sim_restore(sim, saved);
	free(saved);
}

static void setup(struct sim *sim)
{
	struct db_value time = db_int(fixture.times_out_in_ms);

	fixture.sim = sim;
	(void)ask_store(sim, &stmt_setup, 0, NULL);
	if (fixture.times_out_in_ms)
		(void)ask_store(sim, &stmt_setup_time, 1, &time);
	if (fixture.may_wait)
		(void)ask_store(sim, &stmt_event, 0, NULL);
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
	walk_all(&scenario, STATES_MAX);
}

/* ---- scenarios ---- */

#define CHILD "{\"name\":\"c\",\"type\":\"child\",\"workflow\":\"leaf\"}"
#define MAP(items, at_once)                                                                                            \
	"{\"name\":\"m\",\"type\":\"map\",\"over\":\"" items                                                           \
	"\",\"workflow\":\"leaf\",\"input\":\"{n: .item}\",\"concurrency\":" at_once "}"
#define PARALLEL(join)                                                                                                 \
	"{\"name\":\"p\",\"type\":\"parallel\",\"join\":\"" join                                                       \
	"\",\"branches\":{\"x\":[" STEP("x1") "],\"y\":[" STEP("y1") "]}}"
/* What has no number in its input waits for a moment that is over, the others fail. */
#define PICKY "{\"name\":\"w\",\"type\":\"wait\",\"until\":\".input.n\"}"

static void exhaustive_child(void **state)
{
	(void)state;
	parse(CHILD, STEP("a"));
	explore((struct sim_scenario){
		.name = "a child, two nodes that drive its parent, lapses, a crash, a lost answer",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVES_ROOT("drives-root-1", 0), DRIVES_ROOT("drives-root-2", 1), DRIVES(0, 2)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
	});
}

static void exhaustive_child_cancelled(void **state)
{
	(void)state;
	parse(STEP("before") "," CHILD, STEP("a"));
	fixture.position = 1;
	explore((struct sim_scenario){
		.name = "a child, its parent cancelled at any moment, a crash",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {DRIVES_ROOT("drives-root", 0), DRIVES(0, 1), OBEYS(0, 1), CANCELLER(2)},
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
		.cast = {DRIVES_ROOT("drives-root", 0), DRIVES(0, 0), OBEYS(0, 0), CANCELLER(1)},
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
		.cast = {DRIVES_ROOT("drives-root", 0), DRIVES(0, 0)},
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
		.cast = {DRIVES_ROOT("drives-root-1", 0), DRIVES_ROOT("drives-root-2", 1), DRIVES(0, 2), DRIVES(1, 2)},
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
		.cast = {DRIVES_ROOT("drives-root", 0), DRIVES(0, 1), DRIVES(1, 2)},
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
		.cast = {DRIVES_ROOT("drives-root", 0), DRIVES(0, 1), OBEYS(0, 1), DRIVES(1, 2), OBEYS(1, 2),
			 CANCELLER(0)},
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
		.cast = {DRIVES_ROOT("drives-root", 0), DRIVES(0, 1), OBEYS(0, 1), DRIVES(1, 2), OBEYS(1, 2)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
	});
}

/* One after the other, and back in reverse: also where the last time has failed the step. */
static void exhaustive_repeat_cancelled(void **state)
{
	(void)state;
	parse("{\"name\":\"r\",\"type\":\"repeat\",\"steps\":[" STEP("b") "],\"until\":\"false\",\"max\":2}",
	      STEP("a"));
	fixture.concurrency = 1;
	fixture.repeats = true;
	explore((struct sim_scenario){
		.name = "a body that is carried out twice, cancelled at any moment, a crash",
		.nodes_n = 3,
		.cast_n = 6,
		.cast = {DRIVES_ROOT("drives-root", 0), DRIVES(0, 1), OBEYS(0, 1), DRIVES(1, 2), OBEYS(1, 2),
			 CANCELLER(0)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

/* Whoever resumes it has it looked at, whatever its body is doing. */
static void exhaustive_repeat_paused(void **state)
{
	(void)state;
	parse("{\"name\":\"r\",\"type\":\"repeat\",\"steps\":[" STEP("b") "],\"until\":\"false\",\"max\":2}",
	      STEP("a"));
	fixture.concurrency = 1;
	fixture.repeats = fixture.may_pause = true;
	explore((struct sim_scenario){
		.name = "a body that is carried out twice, paused and resumed at any moment",
		.nodes_n = 3,
		.cast_n = 6,
		.cast = {DRIVES_ROOT("drives-root", 0),
			 DRIVES(0, 1),
			 OBEYS(0, 1),
			 DRIVES(1, 1),
			 {"pauser", 2, false, init_verb, &pause_it, NULL},
			 {"resumer", 2, false, init_verb, &resume_it, NULL}},
		.bounds = {.crashes = 1},
	});
}

static void exhaustive_one_event(void **state)
{
	(void)state;
	parse("{\"name\":\"p\",\"type\":\"parallel\",\"branches\":{"
	      "\"x\":[{\"name\":\"x1\",\"type\":\"external_event\",\"event\":\"go\"}],"
	      "\"y\":[{\"name\":\"y1\",\"type\":\"external_event\",\"event\":\"go\"}]}}",
	      STEP("a"));
	fixture.may_wait = true;
	explore((struct sim_scenario){
		.name = "two branches that await one event, a crash",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVES_ROOT("drives-root", 0), DRIVES(0, 1), DRIVES(1, 2)},
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
