/*
 * A bulk that two nodes work on at once, explored: nodes that are lost, commits and calls whose answers are; the bulk is cancelled
 * meanwhile, and what it is about changes. What it selects is written by flow/bulk_select.h, whose reads are not walked through here.
 *
 * On every edge: B1 to B4 of flow/bulk.h. An item gets its result once; what is told as done was done by the bulk, once, and nothing else
 * was; of a bulk that is over nothing is open, and it is never begun again. And from every state in which nothing goes on but time: if from
 * there on all went well, the bulk would come to its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "flow/bulk_hand.h"
#include "flow/single.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/walks.h"
#include "sim/well.h"

#define STATES_MAX 20000000
#define BULK INT64_C(1000000) /* younger than what it selects */
#define RUN 1
#define SETTLE_ROUNDS_MAX 200

static struct {
	struct arena arena;
	const struct run_machine *machine;
	const char *verb, *condition, *state; /* of the bulk, as it begins */
	bool of_the_unpaid;                   /* the condition asks for these, otherwise for what has failed */
} fixture;

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow, (void)version;
	return fixture.machine;
}

static const struct run_policy policy = {.lease_ms = 60000, .machine_of = machine_of};
static const struct bulk_policy bulk_policy = {.runs = &policy};

static void parse(const char *steps)
{
	const struct run_definition *definition;
	struct findings findings;
	char text[2000];

	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	findings_init(&findings, &fixture.arena);
	snprintf(text, sizeof text,
		 "{\"workflow\":\"w\",\"kind\":\"run\",\"attributes\":{\"paid\":\".steps.a.status\"},"
		 "\"actions\":{\"do\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/\",\"effect\":\"keyed\"}},"
		 "\"steps\":[%s]}",
		 steps);
	run_definition_parse("w", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings, &definition);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(definition);
	fixture.machine = run_machine_new(definition, 1, &fixture.arena);
}

/* It fails by itself whenever it is begun; and one that is a call. */
#define FAILS "{\"name\":\"a\",\"type\":\"wait\",\"until\":\".input.n\"}"
#define CALL(name) "{\"name\":\"" name "\",\"type\":\"task\",\"action\":\"do\",\"retry\":{\"max_attempts\":1}}"

/* ---- the store, seen from here ---- */

/* clang-format off */

DB_STMT(stmt_setup, "sim_bulk_setup", "", "",
	"INSERT INTO hx_run (subject, workspace, workflow, definition_version, requester, input, due_at, created_at)"
	" VALUES (1, 'default', 'w', 1, 'me', '{}', hx_now_ms(), hx_now_ms())");

/* ?2: SELECTING: without its item. */
DB_STMT(stmt_setup_bulk, "sim_bulk_setup_bulk", "ittt", "",
	"INSERT INTO hx_bulk (subject, workspace, requester, verb, kind, condition, arguments, state, selected, due_at, created_at)"
	" VALUES (?1, 'default', 'me', ?3, 'run', ?4, '{}', ?2, ?2 = 'RUNNING', hx_now_ms(), hx_now_ms())");

DB_STMT(stmt_setup_item, "sim_bulk_setup_item", "i", "",
	"INSERT INTO hx_bulk_item (bulk, n, subject) SELECT subject, 0, 1 FROM hx_bulk WHERE subject = ?1 AND state = 'RUNNING'");

#define RUNS " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
#define BULK_IS_OVER "b.state IN ('COMPLETED', 'CANCELLED')"

DB_STMT(stmt_due, "sim_bulk_due", "", "i",
	"SELECT r.subject" RUNS " WHERE r.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms())");

/* Is there something for a hand, something to be ended, has it been selected, and is it over? */
DB_STMT(stmt_work, "sim_bulk_work", "", "iiii",
	"SELECT b.state = 'RUNNING' AND EXISTS (SELECT 1 FROM hx_bulk_item WHERE result IS NULL),"
	" b.state = 'CANCELLING' OR (b.state = 'RUNNING' AND NOT EXISTS (SELECT 1 FROM hx_bulk_item WHERE result IS NULL)),"
	" b.state IN ('RUNNING', 'CANCELLING'), " BULK_IS_OVER " FROM hx_bulk b");

DB_STMT(stmt_moment, "sim_bulk_moment", "", "i",
	"SELECT min(m) FROM (SELECT due_at AS m FROM hx_run UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()");

DB_STMT(stmt_hash_runs, "sim_bulk_hash_runs", "", "iiititiiiitt",
	"SELECT at_step, attempt, redo, step_status, step_started_at, awaits, undo, wait_until, due_at, completed_at IS NULL, error, attributes"
	" FROM hx_run ORDER BY subject");

DB_STMT(stmt_hash_steps, "sim_bulk_hash_steps", "", "itii",
	"SELECT position, status, attempt, undone_at IS NULL FROM hx_run_step ORDER BY run, position");

/* When it is due decides nothing here: whoever comes by works on it. */
DB_STMT(stmt_hash_bulk, "sim_bulk_hash", "", "tiiitt",
	"SELECT b.state, b.selected, b.after_id, b.due_at IS NULL, i.result, i.code FROM hx_bulk b LEFT JOIN hx_bulk_item i ON i.bulk = b.subject");

/* As the history has it. ?1: it is a cancel; ?2: of what has failed alone. */
#define DONE_BY_THE_VERB "(SELECT count(*) FROM hx_history h WHERE h.subject = 1 AND CASE WHEN ?1 = 1 THEN h.to_status IN ('CANCELLING', 'CANCELLED')" \
	" AND h.from_status <> 'CANCELLING' ELSE h.to_status = 'PENDING' AND h.from_status = 'FAILED' END AND (?2 = 0 OR h.from_status = 'FAILED'))"

/* One row: what is wrong, as numbers of findings. */
DB_STMT(stmt_check, "sim_bulk_check", "ii", "iiiiiii" "iiti",
	"SELECT"
	/* B1 */
	" (SELECT b.selected <> (SELECT count(*) FROM hx_bulk_item) FROM hx_bulk b),"
	/* B3 */
	" " DONE_BY_THE_VERB " > 1,"
	" " DONE_BY_THE_VERB " <> (SELECT count(*) FROM hx_bulk_item WHERE result = 'done'),"
	/* B4 */
	" (SELECT (b.due_at IS NULL) <> (" BULK_IS_OVER ") FROM hx_bulk b),"
	" (SELECT " BULK_IS_OVER " AND EXISTS (SELECT 1 FROM hx_bulk_item WHERE result IS NULL) FROM hx_bulk b),"
	/* whatever has changed, it is told as that */
	" (SELECT count(*) FROM hx_bulk_item WHERE result NOT IN ('done', 'cancelled') AND result || code <> 'skippedNO_LONGER_MATCHES'),"
	/* what it is found by is what it says of itself */
	" (SELECT count(*) FROM hx_run r, json_each(r.attributes) a WHERE NOT EXISTS (SELECT 1 FROM hx_attribute i WHERE i.subject = r.subject"
	"   AND i.name = a.key AND i.value = a.value)) + (SELECT count(*) FROM hx_attribute i WHERE NOT EXISTS (SELECT 1 FROM hx_run r"
	"   WHERE r.subject = i.subject AND json_extract(r.attributes, '$.' || i.name) = i.value)),"
	/* for what is compared with before */
	" (SELECT b.state IN ('CANCELLING', 'CANCELLED') FROM hx_bulk b), (SELECT " BULK_IS_OVER " FROM hx_bulk b),"
	" (SELECT max(result) FROM hx_bulk_item), (SELECT count(*) FROM hx_run WHERE json_extract(attributes, '$.paid') IS NOT NULL)");

DB_STMT(stmt_tell, "sim_bulk_tell", "", "t",
	"SELECT 'the run ' || (SELECT group_concat(s.status || ' v' || s.version || CASE WHEN s.owner IS NULL THEN '' ELSE ' owned' END ||"
	" coalesce(' ' || r.attributes, ''))" RUNS ") || ', the bulk ' || state || coalesce(' ' || (SELECT group_concat(coalesce(result, 'open') ||"
	" coalesce(' ' || code, '')) FROM hx_bulk_item), '') FROM hx_bulk");

/* clang-format on */

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_runs, hash);
	hash = sim_hash_answer(sim, &stmt_hash_steps, hash);
	return sim_hash_answer(sim, &stmt_hash_bulk, hash);
}

/* Rows of the bulk and of its items, which no subject stands for: who writes one has it until its commit. */
static unsigned rows_locked(const struct unit *unit)
{
	enum { THE_BULK = 1, THE_ITEM = 2 };
	static const struct {
		const char *stmt;
		unsigned rows;
	} writes[] = {{"bulk_freeze", THE_BULK | THE_ITEM},
		      {"bulk_renew", THE_BULK},
		      {"bulk_cancel", THE_BULK},
		      {"bulk_item_ended", THE_ITEM},
		      {"bulk_finish", THE_BULK | THE_ITEM}};
	unsigned locked = 0;

	for (unsigned line = 0; line < unit->lines_n; line++)
		for (size_t i = 0; i < sizeof writes / sizeof *writes; i++)
			if (strcmp(unit->lines[line].stmt->name, writes[i].stmt) == 0)
				locked |= writes[i].rows;
	return locked;
}
#define OWN_ROWS_LOCKED rows_locked
#include "sim/own_rows.h" /* of these */

static bool there_is(struct sim *sim, int what)
{
	struct unit_result result = ask_store(sim, &stmt_work, 0, NULL);

	return db_cell(&result.rows[0], 0, (size_t)what)->i != 0;
}
enum { FOR_A_HAND, TO_BE_ENDED, UNDER_WAY, OVER };

/* ---- what must hold ---- */

struct notes {
	bool cancelled, over, paid;
	char result[16];
};

static void compare(struct sim *sim, const struct notes *now)
{
	struct notes *was = (struct notes *)sim->state.notes;

	if (was->result[0] && strcmp(was->result, now->result) != 0)
		sim_violate(sim, "B2: the result of an item was %s, and is %s", was->result, now->result);
	if (was->cancelled && !now->cancelled)
		sim_violate(sim, "a bulk goes on after its cancel");
	if (was->over && !now->over)
		sim_violate(sim, "a bulk that was over is not any more");
	if (was->over && strcmp(was->result, now->result) != 0)
		sim_violate(sim, "an item gets a result after the end of its bulk");
	if (fixture.of_the_unpaid && was->paid && !was->result[0] && strcmp(now->result, BULK_DONE) == 0)
		sim_violate(sim, "B3: what was done did not match when it was done");
	*was = *now;
}

static void check(struct sim *sim)
{
	static const char *const words[] = {
		"B1: the bulk has not the items that it has selected",
		"B3: an item was done twice",
		"B3: what was done is not what is told",
		"B4: nobody will ever look at the bulk, or it is due after its end",
		"a bulk is over before its items are",
		"an item that matches no longer is told to be something else",
		"a run is not found by its attributes",
	};
	enum { FOUND = sizeof words / sizeof *words };
	struct db_value params[] = {db_int(strcmp(fixture.verb, "cancel") == 0), db_int(!fixture.of_the_unpaid)};
	struct notes now = {0};
	struct unit_result result;
	const struct db_rows *rows;

	if (!rows_changed)
		return;
	rows_changed = false;
	result = ask_store(sim, &stmt_check, 2, params);
	rows = &result.rows[0];
	for (size_t i = 0; i < FOUND; i++)
		if (db_cell(rows, 0, i)->i)
			sim_violate(sim, "%s", words[i]);
	now.cancelled = db_cell(rows, 0, FOUND)->i;
	now.over = db_cell(rows, 0, FOUND + 1)->i;
	now.paid = db_cell(rows, 0, FOUND + 3)->i;
	if (db_cell(rows, 0, FOUND + 2)->type != DB_NULL)
		snprintf(now.result, sizeof now.result, "%.*s", SLICE_ARGS(db_cell(rows, 0, FOUND + 2)->s));
	compare(sim, &now);
}

/* ---- the cast ---- */

static bool is_due(struct sim *sim)
{
	return ask_store(sim, &stmt_due, 0, NULL).rows[0].n > 0;
}

static bool has_work(struct sim *sim)
{
	return there_is(sim, FOR_A_HAND);
}

/* Whoever has worked on it looks, whatever has come of that. */
static bool is_under_way(struct sim *sim)
{
	return there_is(sim, UNDER_WAY);
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

static void init_hand(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	bulk_hand_init((struct bulk_hand *)task, BULK, /* hand= */ 0, /* hands= */ 1, /* after= */ -1, &bulk_policy,
		       texts);
}

static enum hx_code took(struct single *single, const struct unit_result *result)
{
	(void)single;
	return result->verdict == UNIT_WON ? HX_OK : HX_CLAIM_FAILED;
}

static void build_finish(const struct single *single, struct unit *unit)
{
	bulk_finish(unit, &single->stamp, BULK);
}

static void build_bulk_cancel(const struct single *single, struct unit *unit)
{
	(void)single;
	bulk_cancel(unit, slice_str("default"), BULK);
}

/* All of them: the last slice. */
static void build_freeze(const struct single *single, struct unit *unit)
{
	static const struct bulk_slice slice = {BULK, 0, RUN, 0, 1, {"[1]", 3}, true};

	(void)single;
	bulk_freeze(unit, &slice);
}

#define OF_A_UNIT(name, build)                                                                                         \
	static void name(union sim_task *task, const void *plan, struct arena *texts)                                  \
	{                                                                                                              \
		(void)plan, (void)texts;                                                                               \
		single_init((struct single *)task, NULL, build, took);                                                 \
	}                                                                                                              \
	static void name(union sim_task *task, const void *plan, struct arena *texts)
OF_A_UNIT(init_finisher, build_finish);
OF_A_UNIT(init_bulk_canceller, build_bulk_cancel);
OF_A_UNIT(init_freezer, build_freeze);

#define HAND(name, node)                                                                                               \
	{                                                                                                              \
		name, node, true, init_hand, NULL, has_work                                                            \
	}
#define FINISHER(node)                                                                                                 \
	{                                                                                                              \
		"finisher", node, true, init_finisher, NULL, is_under_way                                              \
	}
#define DRIVER(node)                                                                                                   \
	{                                                                                                              \
		"driver", node, true, init_driver, NULL, is_due                                                        \
	}

/* ---- nothing gets stuck ---- */

static bool settle_one(struct sim *sim, int64_t *id)
{
	union sim_task task;

	if (has_work(sim))
		init_hand(&task, NULL, &sim->texts);
	else if (there_is(sim, TO_BE_ENDED))
		init_finisher(&task, NULL, &sim->texts);
	else if (is_due(sim))
		init_driver(&task, NULL, &sim->texts);
	else
		return false;
	go_well(sim, &task.task, id, SETTLE_ROUNDS_MAX, /* committed= */ check);
	return true;
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
	sim_violate(sim, "the bulk and its run do not come to rest although all goes well");
}

/* One that is SELECTING waits for who selects, who is not brought back here. */
static void quiet(struct sim *sim)
{
	struct sim_state *saved = malloc(sizeof *saved);

	assert_non_null(saved);
	sim_save(sim, saved);
	sim_savepoint(sim);
	rows_changed = true;
	settle(sim);
	check(sim);
	if (!there_is(sim, OVER) && strcmp(fixture.state, BULK_SELECTING) != 0)
		sim_violate(sim, "when all goes well, the bulk does not come to its end");
	sim_roll_back(sim);
	sim_restore(sim, saved);
	free(saved);
}

static void setup(struct sim *sim)
{
	struct db_value bulk[] = {db_int(BULK), db_str(fixture.state), db_str(fixture.verb), db_str(fixture.condition)};

	int64_t id = INT64_C(1) << 40;
	union sim_task task;

	(void)ask_store(sim, &stmt_setup, 0, NULL);
	if (!fixture.of_the_unpaid) { /* one that has failed */
		init_driver(&task, NULL, &sim->texts);
		go_well(sim, &task.task, &id, SETTLE_ROUNDS_MAX, /* committed= */ NULL);
	}
	(void)ask_store(sim, &stmt_setup_bulk, 4, bulk);
	(void)ask_store(sim, &stmt_setup_item, 1, bulk);
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

static void retry_what_has_failed(const char *state)
{
	parse(FAILS);
	fixture.verb = "retry";
	fixture.condition = "status == \"FAILED\"";
	fixture.state = state;
}

/* What was begun anew may fail again: then it is what the condition asks for, and still is not done twice. */
static void exhaustive_two_hands(void **state)
{
	(void)state;
	retry_what_has_failed(BULK_RUNNING);
	explore((struct sim_scenario){
		.name = "a failed run that two hands try again, a crash, a lost answer",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {HAND("hand-1", 0), HAND("hand-2", 1), DRIVER(2), FINISHER(1)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

static void exhaustive_bulk_cancelled(void **state)
{
	(void)state;
	retry_what_has_failed(BULK_RUNNING);
	explore((struct sim_scenario){
		.name = "a failed run that a hand tries again, its bulk cancelled meanwhile, a crash",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {HAND("hand-1", 0),
			 HAND("hand-2", 1),
			 {"canceller", 2, false, init_bulk_canceller, NULL, NULL},
			 FINISHER(2)},
		.bounds = {.crashes = 1, .lost_answers = 1, .failures = 1},
	});
}

static void exhaustive_selected_twice(void **state)
{
	(void)state;
	retry_what_has_failed(BULK_SELECTING);
	explore((struct sim_scenario){
		.name = "two nodes that select, the bulk cancelled meanwhile, a crash",
		.nodes_n = 3,
		.cast_n = 5,
		.cast = {{"selects-1", 0, false, init_freezer, NULL, NULL},
			 {"selects-2", 1, false, init_freezer, NULL, NULL},
			 {"canceller", 2, false, init_bulk_canceller, NULL, NULL},
			 HAND("hand", 0),
			 FINISHER(1)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

static const struct run_verb_request retry = {
	.kind = RUN_RETRY, .workspace = {"default", 7}, .subject = RUN, .policy = &policy};

/* Those that have failed are to be cancelled; a person begins one anew: it is not cancelled then, although it could be. */
static void exhaustive_no_longer_matches(void **state)
{
	(void)state;
	retry_what_has_failed(BULK_RUNNING);
	fixture.verb = "cancel";
	explore((struct sim_scenario){
		.name = "a failed run that two hands cancel and a person tries again, a crash",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {HAND("hand-1", 0),
			 HAND("hand-2", 1),
			 {"person", 2, false, init_verb, &retry, NULL},
			 FINISHER(2)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

/* Whoever cancels a run that a node holds need not know its version; a bulk has to: what it asks for is the run's, and changes. */
static void exhaustive_held(void **state)
{
	(void)state;
	parse(CALL("a") "," CALL("b"));
	fixture.verb = "cancel";
	fixture.condition = "paid == null";
	fixture.state = BULK_RUNNING;
	fixture.of_the_unpaid = true;
	explore((struct sim_scenario){
		.name = "a run that a hand cancels unless it is paid, and that is being driven",
		.nodes_n = 2,
		.cast_n = 3,
		.cast = {HAND("hand", 0), DRIVER(1), FINISHER(0)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_two_hands),      cmocka_unit_test(exhaustive_bulk_cancelled),
		cmocka_unit_test(exhaustive_selected_twice), cmocka_unit_test(exhaustive_no_longer_matches),
		cmocka_unit_test(exhaustive_held),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
