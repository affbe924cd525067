/*
 * What the simulations of runs with children share: the tree and its definitions, the checks of its rows, and the cast. What runs do by
 * themselves is test_run.c; here they only do what needs no call, so that all that there is to see is who is made, told and waited for.
 *
 * A run is known by its place in the tree, whatever its id is:
 *
 *   root 0 ─▶ children 1 2 3 ─▶ grandchildren 4 5 6 of the first, 7 8 9 of the second, 10 11 12 of the third ─▶ below these 13 14 15
 *
 * On every edge: C1 to C10 of flow/run_children.h, of each run with those that it has started. And from every state in which nothing goes
 * on but time: if from there on all went well, the whole tree would come to its end, and of what is to be cancelled nothing goes on.
 */
#ifndef HX_TESTS_SIM_TREES_H
#define HX_TESTS_SIM_TREES_H

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
#include "sim/run_rules.h"
#include "sim/walks.h"
#include "sim/well.h"

#define STATES_MAX 20000000
#define ROOT 1
#define PLACES 16
#define SETTLE_ROUNDS_MAX 400
#define ACTIONS "\"actions\":{\"do\":{\"kind\":\"noop\"},\"undo\":{\"kind\":\"noop\"}}"
#define STEP(name) "{\"name\":\"" name "\",\"type\":\"task\",\"action\":\"do\",\"compensate\":\"undo\"}"

static struct {
	struct arena arena;
	const struct run_machine *tree, *middle, *leaf;
	struct sim *sim;
	int64_t concurrency;     /* of what begins children one after the other; 0: nothing does */
	int64_t repeats_at;      /* how deep bodies are that are repeated; 0: there are none */
	bool any;                /* the first branch decides */
	int64_t positions;       /* of the steps with children, four bits for each level, the root's last */
	int64_t times_out_in_ms; /* of the root; 0: never */
	bool may_wait;           /* for an event that nobody sends any more */
	bool may_pause;          /* and nobody resumes it any more */
	int grown;               /* so many of them have gone as far as they can go when it begins, from the root on */
} fixture;

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)version;
	return slice_is(workflow, "leaf") ? fixture.leaf : slice_is(workflow, "middle") ? fixture.middle : fixture.tree;
}

static const struct run_policy policy = {.lease_ms = 60000, .machine_of = machine_of};

static inline const struct run_machine *machine_from(const char *name, const char *steps)
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

static inline void parse(const char *tree, const char *leaf)
{
	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	fixture.tree = machine_from("tree", tree);
	fixture.leaf = machine_from("leaf", leaf);
}

static inline void parse_three(const char *tree, const char *middle, const char *leaf)
{
	parse(tree, leaf);
	fixture.middle = machine_from("middle", middle);
}

/* ---- the store, seen from here ---- */

/* clang-format off */

DB_STMT(stmt_setup, "sim_tree_setup", "", "",
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, due_at, created_at)"
	" VALUES (1, 'default', 'tree', 1, 'me', '{}', hx_now_ms(), hx_now_ms())");

DB_STMT(stmt_setup_counted, "sim_tree_setup_counted", "", "", RUNS_SETUP_COUNTED);

DB_STMT(stmt_setup_time, "sim_tree_setup_time", "i", "", "UPDATE hx_run SET times_out_at = hx_now_ms() + ?1");

#define RUNS " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
#define OF_PARENT "(SELECT p.parent_n FROM hx_run p WHERE p.subject = r.parent)"
#define PLACE "CASE r.depth WHEN 0 THEN 0 WHEN 1 THEN 1 + r.parent_n WHEN 2 THEN 4 + 3 * " OF_PARENT " + r.parent_n ELSE 13 + r.parent_n END"

DB_STMT(stmt_due, "sim_tree_due", "i", "i",
	"SELECT r.subject" RUNS " WHERE " PLACE " = ?1"
	" AND (r.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms()))");

DB_STMT(stmt_asked, "sim_tree_asked", "i", "i",
	"SELECT r.subject" RUNS " WHERE " PLACE " = ?1 AND r.asked IS NOT NULL AND r.asked NOT IN ('fail', 'cancelling')");

DB_STMT(stmt_moment, "sim_tree_moment", "", "i",
	"SELECT min(m) FROM (SELECT due_at AS m FROM hx_run UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()");

DB_STMT(stmt_hash_runs, "sim_tree_hash", "", "tiitiiiiitiiiiitiittii",
	"SELECT s.status, s.version, s.fence, s.owner, s.until, s.doubt, r.at_step, r.attempt, r.redo, r.step_status, r.step_started_at,"
	" r.undo, r.wait_until, r.due_at, r.completed_at IS NULL, r.awaits, r.winner, r.parent_n, r.child, r.asked, r.depth, " OF_PARENT RUNS
	" ORDER BY r.depth, " OF_PARENT ", r.parent_n");

DB_STMT(stmt_hash_steps, "sim_tree_hash_steps", "", "iiiititii",
	"SELECT r.depth, " OF_PARENT ", r.parent_n, t.position, t.status, t.attempt, t.output, t.completed_at, t.undone_at IS NULL"
	" FROM hx_run_step t JOIN hx_run r ON r.subject = t.run ORDER BY r.depth, " OF_PARENT ", r.parent_n, t.position");

DB_STMT(stmt_event, "sim_tree_event", "", "",
	"INSERT INTO hx_run_event (run, id, name, data, at) VALUES (1, 'event/1', 'event go', '{}', 1)");

#define STOPPED "('CANCELLING', 'CANCELLED')"
#define CHILDREN RUNS " JOIN hx_subject q ON q.id = r.parent WHERE 1 = 1"
/* Is it to be cancelled with one further up? */
#define UNDER_A_CANCEL "EXISTS (WITH RECURSIVE up(id) AS (SELECT r.parent UNION SELECT u.parent FROM up JOIN hx_run u ON u.subject = up.id)" \
	" SELECT 1 FROM up JOIN hx_subject a ON a.id = up.id WHERE a.status IN " STOPPED ")"
/* Where the run stands or stood with its children. ?3: the positions. */
#define OF_CHILDREN(run) "((?3 >> (4 * (SELECT o.depth FROM hx_run o WHERE o.subject = " run "))) & 15)"

/* One row: what is wrong, as numbers of findings. ?1: the concurrency; ?2: the first branch decides; ?4: how deep bodies are. */
DB_STMT(stmt_check, "sim_tree_check", "iiii", "iiiiiiii" "iii",
	"SELECT"
	/* C3 */
	" (SELECT count(*) FROM hx_run_step t WHERE t.position = " OF_CHILDREN("t.run") " AND t.status = 'COMPLETED' AND EXISTS (SELECT 1" CHILDREN
	"   AND r.parent = t.run AND q.status NOT IN " STOPPED
	"   AND CASE WHEN ?2 = 1 AND r.parent_n <> (SELECT winner FROM hx_run WHERE subject = t.run) THEN s.status <> 'CANCELLED'"
	"   ELSE s.status <> 'COMPLETED' END)),"
	/* C4 */
	" (SELECT count(*)" RUNS " JOIN hx_run_step t ON t.run = r.subject WHERE s.status = 'CANCELLED' AND t.status = 'COMPLETED'"
	"   AND t.undone_at IS NULL),"
	" (SELECT count(*) FROM hx_run_step t WHERE t.undone_at IS NOT NULL AND (EXISTS (SELECT 1 FROM hx_run_step l WHERE l.run = t.run"
	"   AND l.position > t.position AND l.status = 'COMPLETED' AND l.undone_at IS NULL) OR (t.position <= " OF_CHILDREN("t.run")
	"   AND EXISTS (SELECT 1" CHILDREN " AND r.parent = t.run AND s.status <> 'CANCELLED')))),"
	" (SELECT count(*)" CHILDREN " AND r.depth = ?4 AND s.status IN " STOPPED " AND EXISTS (SELECT 1 FROM hx_run l JOIN hx_subject t"
	"   ON t.id = l.subject WHERE l.parent = r.parent AND l.parent_n > r.parent_n AND t.status <> 'CANCELLED')),"
	/* C7 */
	" (SELECT count(*) FROM (SELECT 1" CHILDREN " AND r.child = 'open' AND q.status NOT IN " STOPPED
	"   GROUP BY r.parent HAVING count(*) > ?1)) > 0 AND ?1 > 0,"
	/* C8 */
	" (SELECT count(*) FROM hx_history h JOIN hx_run r ON r.subject = h.subject LEFT JOIN hx_subject q ON q.id = r.parent"
	"   WHERE h.from_status = 'COMPLETED' AND NOT coalesce((?2 = 1 AND r.depth = 1) OR q.status IN " STOPPED ", 0)),"
	/* C9 */
	" (SELECT count(*) FROM hx_run_step t JOIN hx_run r ON r.subject = t.run AND r.around = 1 WHERE t.output = '{}')"
	"   > (SELECT count(*) FROM hx_run_event),"
	/* C6: nobody wins but a branch */
	" (SELECT count(*) FROM hx_run r WHERE r.winner IS NOT NULL AND ?2 = 0 AND NOT EXISTS (SELECT 1 FROM hx_run k WHERE k.parent = r.subject"
	"   AND k.parent_n = r.winner AND k.around IS NOT NULL)),"
	/* for what is compared with before: those that there are, those that begin nothing any more, and who has won where */
	" (SELECT sum(1 << (" PLACE "))" RUNS "),"
	" (SELECT coalesce(sum(1 << (" PLACE ")), 0)" RUNS " WHERE s.status IN ('CANCELLING', 'CANCELLED', 'FAILED', 'COMPLETED')),"
	" (SELECT coalesce(sum((r.winner + 1) << 3 * (" PLACE ")), 0) FROM hx_run r WHERE r.winner IS NOT NULL)");

/* What those have done that are to be cancelled with one further up and have not been told. */
DB_STMT(stmt_forward, "sim_tree_forward", "", "i",
	"SELECT count(*)" RUNS " JOIN hx_run_step t ON t.run = r.subject WHERE s.status NOT IN " STOPPED " AND " UNDER_A_CANCEL);

DB_STMT(stmt_end, "sim_tree_end", "", "ti", "SELECT s.status, " PLACE RUNS " ORDER BY r.depth, r.parent_n");

DB_STMT(stmt_tell, "sim_tree_tell", "", "t",
	"SELECT group_concat(CASE r.depth WHEN 0 THEN 'root' ELSE 'run ' || (" PLACE ") END || ' ' || s.status || coalesce(' ' || r.child, '') ||"
	" coalesce(' asked ' || r.asked, '') || coalesce(' awaits ' || r.awaits, '') || coalesce(' undo ' || r.undo, '') ||"
	" coalesce(' due in ' || (r.due_at - hx_now_ms()), '') ||"
	" CASE WHEN s.owner IS NULL THEN '' ELSE ' owned' END || coalesce(' winner ' || r.winner, ''), '; ')" RUNS);

/* clang-format on */

static inline uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_runs, hash);
	return sim_hash_answer(sim, &stmt_hash_steps, hash);
}

#include "sim/own_rows.h" /* of these */

/* ---- what must hold ---- */

struct notes {
	int64_t made, stopped; /* by place, a bit each */
	int64_t winners;       /* by place, three bits each: one more than the number */
};

static inline int place_of_parent(int place)
{
	return place > 12 ? 4 : place > 3 ? 1 + (place - 4) / 3 : place ? 0 : -1;
}

/* stopped: those that have ended or are being cancelled; what is made in the transaction of a cancel was made before that. */
static inline void compare(struct sim *sim, int64_t made, int64_t stopped, int64_t winners)
{
	struct notes *notes = (struct notes *)sim->state.notes;

	for (int place = 1; place < PLACES && notes->made; place++) {
		int64_t is = winners >> 3 * place_of_parent(place) & 7,
			was = notes->winners >> 3 * place_of_parent(place) & 7;

		for (int up = place_of_parent(place); up >= 0 && (made & ~notes->made) >> place & 1;
		     up = place_of_parent(up))
			if ((notes->stopped & stopped) >> up & 1)
				sim_violate(
					sim,
					"C2: a child was made although what it belongs to is being cancelled, or has ended");
		if (was && is && was != is)
			sim_violate(sim, "C6: the winner is another by now");
	}
	*notes = (struct notes){made, stopped, winners};
}

static inline void check(struct sim *sim)
{
	static const char *const words[] = {
		"C3: a step is done before its children are",
		"R5: CANCELLED before everything was undone",
		"C4: a step is undone before what came after it, or before its children",
		"C4: an iteration is undone before the one after it",
		"C7: more children are open than may be",
		"C8: a COMPLETED child went on without its parent's word",
		"C9: an event was taken twice",
		"C6: something else than a branch has won",
	};
	enum { FOUND = sizeof words / sizeof *words };
	struct db_value params[] = {db_int(fixture.concurrency), db_int(fixture.any), db_int(fixture.positions),
				    db_int(fixture.repeats_at)};
	struct unit_result result;
	const struct db_rows *rows;

	if (!rows_changed)
		return;
	rows_changed = false;
	sim_check_runs(sim);
	sim_check_counts(sim);
	result = ask_store(sim, &stmt_check, sizeof params / sizeof *params, params);
	rows = &result.rows[0];
	for (size_t i = 0; i < FOUND; i++)
		if (db_cell(rows, 0, i)->i)
			sim_violate(sim, "%s", words[i]);
	compare(sim, db_cell(rows, 0, FOUND)->i, db_cell(rows, 0, FOUND + 1)->i, db_cell(rows, 0, FOUND + 2)->i);
}

/* ---- the cast ---- */

static inline int64_t found(struct sim *sim, const struct db_stmt *stmt, int64_t place)
{
	struct db_value param = db_int(place);
	struct unit_result result = ask_store(sim, stmt, 1, &param);

	return result.rows[0].n ? db_cell(&result.rows[0], 0, 0)->i : 0;
}

static const int64_t places[PLACES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static inline void init_driver(union sim_task *task, const void *plan, struct arena *texts)
{
	int64_t subject = found(fixture.sim, &stmt_due, *(const int64_t *)plan);

	run_drive_init((struct run_drive *)task, subject ? subject : ROOT, &policy, texts);
}

static inline void init_obeyer(union sim_task *task, const void *plan, struct arena *texts)
{
	static struct run_verb_request requests[PLACES];
	int64_t place = *(const int64_t *)plan, subject = found(fixture.sim, &stmt_asked, place);

	requests[place] = (struct run_verb_request){
		.kind = RUN_OBEY, .subject = subject ? subject : ROOT, .policy = &policy};
	run_verb_init((struct run_verb *)task, &requests[place], texts);
}

static inline void init_verb(union sim_task *task, const void *plan, struct arena *texts)
{
	run_verb_init((struct run_verb *)task, plan, texts);
}

/* Whoever is asked. */
static inline int64_t asked_place(struct sim *sim)
{
	int64_t place = PLACES - 1;

	while (place && !found(sim, &stmt_asked, place))
		place--;
	return place;
}

static inline bool is_asked(struct sim *sim)
{
	return asked_place(sim) != 0;
}

static inline void init_any_obeyer(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	init_obeyer(task, &places[asked_place(fixture.sim)], texts);
}

#define OF_PLACE(place)                                                                                                \
	static inline bool is_due_##place(struct sim *sim)                                                             \
	{                                                                                                              \
		return found(sim, &stmt_due, place) != 0;                                                              \
	}                                                                                                              \
	static inline bool is_asked_##place(struct sim *sim)                                                           \
	{                                                                                                              \
		return found(sim, &stmt_asked, place) != 0;                                                            \
	}
OF_PLACE(0)
OF_PLACE(1)
OF_PLACE(2)
OF_PLACE(4)
OF_PLACE(5)
OF_PLACE(13)

static const struct run_verb_request cancel = {
	.kind = RUN_CANCEL, .workspace = {"default", 7}, .subject = ROOT, .policy = &policy};

#define DRIVES(place, node)                                                                                            \
	{                                                                                                              \
		"drives-" #place, node, true, init_driver, &places[place], is_due_##place                              \
	}
#define OBEYS(place, node)                                                                                             \
	{                                                                                                              \
		"obeys-" #place, node, true, init_obeyer, &places[place], is_asked_##place                             \
	}
#define OBEYS_ALL(node)                                                                                                \
	{                                                                                                              \
		"obeys", node, true, init_any_obeyer, NULL, is_asked                                                   \
	}
#define CANCELLER(node)                                                                                                \
	{                                                                                                              \
		"canceller", node, false, init_verb, &cancel, NULL                                                     \
	}

/* ---- nothing gets stuck ---- */

static inline int64_t forward(struct sim *sim)
{
	return db_cell(&ask_store(sim, &stmt_forward, 0, NULL).rows[0], 0, 0)->i;
}

static inline void drive_well(struct sim *sim, int64_t place, int64_t *id)
{
	int64_t before = forward(sim);
	union sim_task task;

	init_driver(&task, &places[place], &sim->texts);
	go_well(sim, &task.task, id, SETTLE_ROUNDS_MAX, /* committed= */ NULL);
	if (forward(sim) > before)
		sim_violate(sim, "C2: a run was taken up and has gone on under a cancel");
	rows_changed = true;
	check(sim);
}

static inline bool settle_one(struct sim *sim, int64_t *id)
{
	union sim_task task;

	for (int64_t place = 0; place < PLACES; place++)
		if (found(sim, &stmt_due, place)) {
			drive_well(sim, place, id);
			return true;
		}
	if (!is_asked(sim))
		return false;
	init_any_obeyer(&task, NULL, &sim->texts);
	go_well(sim, &task.task, id, SETTLE_ROUNDS_MAX, /* committed= */ NULL);
	return true;
}

static inline void check_settled(struct sim *sim)
{
	struct unit_result result;
	const struct db_rows *rows;

	rows_changed = true;
	check(sim);
	result = ask_store(sim, &stmt_end, 0, NULL);
	rows = &result.rows[0];
	for (size_t i = 0; i < rows->n; i++) {
		/* What is around in a root that is paused may wait for that. */
		bool paused = fixture.may_pause && slice_is(db_cell(rows, 0, 0)->s, RUN_PAUSED);
		char status[40];

		snprintf(status, sizeof status, "%.*s", SLICE_ARGS(db_cell(rows, i, 0)->s));
		if (!run_is_terminal(status) && !(fixture.may_wait && strcmp(status, RUN_WAITING) == 0) && !paused)
			sim_violate(sim, "R6: when all goes well, run %d stays %s for ever",
				    (int)db_cell(rows, i, 1)->i, status);
	}
}

static inline void quiet(struct sim *sim)
{
	static const struct well well = {settle_one, check_settled, SETTLE_ROUNDS_MAX,
					 "R6: the tree does not come to rest although all goes well"};

	try_well(sim, &well);
}

static inline void setup(struct sim *sim)
{
	static const int64_t path[] = {0, 1, 4, 13};
	struct db_value time = db_int(fixture.times_out_in_ms);
	int64_t id = INT64_C(1) << 20;

	fixture.sim = sim;
	(void)ask_store(sim, &stmt_setup, 0, NULL);
	(void)ask_store(sim, &stmt_setup_counted, 0, NULL);
	if (fixture.times_out_in_ms)
		(void)ask_store(sim, &stmt_setup_time, 1, &time);
	if (fixture.may_wait)
		(void)ask_store(sim, &stmt_event, 0, NULL);
	for (int i = 0; i < fixture.grown; i++)
		drive_well(sim, path[i], &id);
}

static inline void explore(struct sim_scenario scenario)
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

/* ---- steps ---- */

#define CHILD_OF(workflow) "{\"name\":\"c\",\"type\":\"child\",\"workflow\":\"" workflow "\"}"
#define CHILD CHILD_OF("leaf")
#define MAP(items, at_once)                                                                                            \
	"{\"name\":\"m\",\"type\":\"map\",\"over\":\"" items                                                           \
	"\",\"workflow\":\"leaf\",\"input\":\"{n: .item}\",\"concurrency\":" at_once "}"
#define BRANCHES_OF(name, join, x, y)                                                                                  \
	"{\"name\":\"" name "\",\"type\":\"parallel\",\"join\":\"" join "\",\"branches\":{\"x\":[" x "],\"y\":[" y "]}}"
#define BRANCHES(join, x, y) BRANCHES_OF("p", join, x, y)
#define PARALLEL(join) BRANCHES(join, STEP("x1"), STEP("y1"))
#define REPEAT "{\"name\":\"r\",\"type\":\"repeat\",\"steps\":[" STEP("b") "],\"until\":\"false\",\"max\":2}"
#define AWAITS(name) "{\"name\":\"" name "\",\"type\":\"external_event\",\"event\":\"go\"}"
/* What has no number in its input waits for a moment that is over, the others fail. */
#define PICKY "{\"name\":\"w\",\"type\":\"wait\",\"until\":\".input.n\"}"

#endif
