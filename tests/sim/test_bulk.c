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
#include "sim/explore.h"
#include "sim/invariant.h"

#define RUN 1
#define SETTLE_ROUNDS_MAX 200

static struct {
	struct arena arena;
	const struct run_machine *machine;
	bool of_the_unpaid; /* the condition asks for these, otherwise for what has failed */
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

#define RUNS " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"

DB_STMT(stmt_due, "sim_bulk_due", "", "i",
	"SELECT r.subject" RUNS " WHERE r.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms())");

DB_STMT(stmt_moment, "sim_bulk_moment", "", "i",
	"SELECT min(m) FROM (SELECT due_at AS m FROM hx_run UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()");

DB_STMT(stmt_hash_runs, "sim_bulk_hash_runs", "", "iiititiiiitt",
	"SELECT at_step, attempt, redo, step_status, step_started_at, awaits, undo, wait_until, due_at, completed_at IS NULL, error, attributes"
	" FROM hx_run ORDER BY subject");

DB_STMT(stmt_hash_steps, "sim_bulk_hash_steps", "", "itii",
	"SELECT position, status, attempt, undone_at IS NULL FROM hx_run_step ORDER BY run, position");

/* As the history has it. ?1: it is a cancel; ?2: of what has failed alone. */
#define DONE_BY_THE_VERB "(SELECT count(*) FROM hx_history h WHERE h.subject = 1 AND CASE WHEN ?1 = 1 THEN h.to_status IN ('CANCELLING', 'CANCELLED')" \
	" AND h.from_status <> 'CANCELLING' ELSE h.to_status = 'PENDING' AND h.from_status = 'FAILED' END AND (?2 = 0 OR h.from_status = 'FAILED'))"

/* One row: what is wrong, as numbers of findings. */
/* How often it was done; then what it is found by, where that is not what it says of itself; and whether it is paid. */
DB_STMT(stmt_check, "sim_bulk_check_run", "ii", "iii",
	"SELECT " DONE_BY_THE_VERB ", (SELECT count(*) FROM hx_run r, json_each(r.attributes) a WHERE NOT EXISTS (SELECT 1 FROM hx_attribute i"
	"   WHERE i.subject = r.subject AND i.name = a.key AND i.value = a.value)) + (SELECT count(*) FROM hx_attribute i WHERE NOT EXISTS"
	"   (SELECT 1 FROM hx_run r WHERE r.subject = i.subject AND json_extract(r.attributes, '$.' || i.name) = i.value)),"
	" (SELECT count(*) FROM hx_run WHERE json_extract(attributes, '$.paid') IS NOT NULL)");

DB_STMT(stmt_tell, "sim_bulk_tell", "", "t",
	"SELECT 'the run ' || (SELECT group_concat(s.status || ' v' || s.version || CASE WHEN s.owner IS NULL THEN '' ELSE ' owned' END ||"
	" coalesce(' ' || r.attributes, ''))" RUNS ") || ', the bulk ' || state || coalesce(' ' || (SELECT group_concat(coalesce(result, 'open') ||"
	" coalesce(' ' || code, '')) FROM hx_bulk_item), '') FROM hx_bulk");

/* clang-format on */

static uint64_t hash_subject(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_runs, hash);
	return sim_hash_answer(sim, &stmt_hash_steps, hash);
}

#include "sim/bulks.h" /* of this */

/* ---- what must hold ---- */

struct notes {
	struct bulk_notes bulk;
	bool paid;
};

static void check(struct sim *sim)
{
	struct notes *notes = (struct notes *)sim->state.notes;
	bool was_paid = notes->paid && !notes->bulk.result[0];
	struct db_value params[] = {db_int(strcmp(bulk.verb, "cancel") == 0), db_int(!fixture.of_the_unpaid)};
	struct unit_result result;
	const struct db_rows *rows;

	if (!rows_changed)
		return;
	rows_changed = false;
	result = ask_store(sim, &stmt_check, 2, params);
	rows = &result.rows[0];
	notes->paid = db_cell(rows, 0, 2)->i;
	if (db_cell(rows, 0, 1)->i)
		sim_violate(sim, "a run is not found by its attributes");
	check_bulk(sim, db_cell(rows, 0, 0)->i);
	if (fixture.of_the_unpaid && was_paid && strcmp(notes->bulk.result, BULK_DONE) == 0)
		sim_violate(sim, "B3: what was done did not match when it was done");
}

/* ---- the cast ---- */

static bool is_due(struct sim *sim)
{
	return ask_store(sim, &stmt_due, 0, NULL).rows[0].n > 0;
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

#define DRIVER(node)                                                                                                   \
	{                                                                                                              \
		"driver", node, true, init_driver, NULL, is_due                                                        \
	}

/* ---- nothing gets stuck ---- */

static bool settle_one(struct sim *sim, int64_t *id)
{
	union sim_task task;

	rows_changed = true;
	if (settle_bulk(sim, id))
		return true;
	if (!is_due(sim))
		return false;
	init_driver(&task, NULL, &sim->texts);
	go_well(sim, &task.task, id, SETTLE_ROUNDS_MAX, check);
	return true;
}

static void quiet(struct sim *sim)
{
	static const struct well well = {settle_one, bulk_settled, SETTLE_ROUNDS_MAX,
					 "the bulk and its run do not come to rest although all goes well"};

	try_well(sim, &well);
}

static void setup(struct sim *sim)
{
	int64_t id = INT64_C(1) << 40;
	union sim_task task;

	(void)ask_store(sim, &stmt_setup, 0, NULL);
	if (!fixture.of_the_unpaid) { /* one that has failed */
		init_driver(&task, NULL, &sim->texts);
		go_well(sim, &task.task, &id, SETTLE_ROUNDS_MAX, /* committed= */ NULL);
	}
	make_bulk(sim);
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
	bulk.kind = "run";
	bulk.verb = "retry";
	bulk.condition = "status == \"FAILED\"";
	bulk.arguments = "{}";
	bulk.state = state;
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
		.cast = {HAND("hand-1", 0), HAND("hand-2", 1), BULK_CANCELLER(2), FINISHER(2)},
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
			 BULK_CANCELLER(2),
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
	bulk.verb = "cancel";
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
	retry_what_has_failed(BULK_RUNNING);
	parse(CALL("a") "," CALL("b"));
	bulk.verb = "cancel";
	bulk.condition = "paid == null";
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
