/*
 * Starts that meet, explored: of a singleton, whose run ends and is tried again meanwhile; and with a signal, of one key, while another
 * starts it, a node drives it, or retention takes it. With crashes, and answers that are lost while their commit lands, vanishes or stays
 * open. A start with a debounce is test_debounce.c.
 *
 * On every edge:
 *  S1  (flow/singleton.h) No start makes a run while one of its name is not terminal.
 *  K1  A run that a signal has made has it; and no signal is there without its run.
 *  K2  Whoever was told that a signal is taken finds it there, and whoever was refused does not. Of one id, one has brought it.
 *  K3  One of all has made the run.
 * And from every state in which nothing goes on but time: if all went well from there on, every run would come to its end, or wait for its
 * event.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/run_verb.h"
#include "flow/single.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/walks.h"
#include "sim/well.h"

#define STATES_MAX 20000000
#define SETTLE_ROUNDS_MAX 400
#define FIRST 1
#define STARTS 3

/* It fails by itself whenever it is begun. */
#define FAILS "{\"name\":\"a\",\"type\":\"wait\",\"until\":\".input.n\"}"
#define EVENT "{\"name\":\"e\",\"type\":\"external_event\",\"event\":\"go\"}"

static struct {
	struct arena arena;
	const struct run_machine *machine;
	struct run_spec specs[STARTS];
	struct run_verb_request signals[STARTS];
	const char *first_key; /* of the run that is there before, and has failed; NULL: there is none */
} fixture;

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow, (void)version;
	return fixture.machine;
}

static const struct run_policy policy = {.lease_ms = 60000, .machine_of = machine_of};

static void parse(const char *limits, const char *steps)
{
	const struct run_definition *definition;
	struct findings findings;
	char text[1000];

	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	findings_init(&findings, &fixture.arena);
	snprintf(text, sizeof text, "{\"workflow\":\"w\",\"kind\":\"run\",\"limits\":{%s},\"steps\":[%s]}", limits,
		 steps);
	run_definition_parse("w", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings, &definition);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(definition);
	fixture.machine = run_machine_new(definition, 1, &fixture.arena);
}

/* id: of the signal that it brings; NULL: none. */
static void prepare(size_t i, const char *requester, const char *key, const char *id)
{
	struct run_spec *spec = &fixture.specs[i];

	*spec = (struct run_spec){.workspace = slice_str("default"),
				  .requester = slice_str(requester),
				  .key = key ? slice_str(key) : slice_of(NULL, 0),
				  .machine = fixture.machine,
				  .input = slice_str("{}")};
	run_describe(spec, &fixture.arena);
	fixture.signals[i] = (struct run_verb_request){.kind = RUN_EVENT,
						       .workspace = spec->workspace,
						       .workflow = slice_str("w"),
						       .key = spec->key,
						       .start = spec,
						       .name = slice_str("go"),
						       .event_id = slice_str(id ? id : ""),
						       .policy = &policy};
}

/* ---- the store, seen from here ---- */

/* clang-format off */

#define RUNS " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
#define OVER "('COMPLETED', 'FAILED', 'CANCELLED')"

/* ?1: 1: the first, 0: another one. */
DB_STMT(stmt_due, "sim_start_due", "i", "i",
	"SELECT r.subject" RUNS " WHERE (r.subject = 1) = ?1 AND (r.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms()))"
	" ORDER BY r.requester LIMIT 1");

DB_STMT(stmt_moment, "sim_start_moment", "", "i",
	"SELECT min(m) FROM (SELECT due_at AS m FROM hx_run UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()");

DB_STMT(stmt_hash_runs, "sim_start_hash", "", "ttiiiiiiititii",
	"SELECT r.requester, s.status, s.version, s.fence, s.owner, s.until, r.at_step, r.attempt, r.redo, r.step_status, r.due_at, r.awaits,"
	" r.expired, r.completed_at IS NULL" RUNS " ORDER BY r.requester");
DB_STMT(stmt_hash_names, "sim_start_hash_names", "", "t",
	"SELECT r.requester FROM hx_singleton h JOIN hx_run r ON r.subject = h.run ORDER BY 1");
DB_STMT(stmt_hash_events, "sim_start_hash_events", "", "tti",
	"SELECT r.requester, e.id, e.taken_by FROM hx_run_event e JOIN hx_run r ON r.subject = e.run ORDER BY 1, 2");

/* What is wrong, as numbers of findings; and for what is compared with before. The requester of a start with a signal is the signal's id. */
DB_STMT(stmt_check, "sim_start_check", "", "iii" "ii",
	"SELECT"
	" (SELECT count(*) FROM hx_run r WHERE r.requester LIKE 'e%' AND r.expired = 0"
	"   AND NOT EXISTS (SELECT 1 FROM hx_run_event e WHERE e.run = r.subject AND e.id = 'event/' || r.requester)),"
	" (SELECT count(*) FROM hx_run_event e WHERE NOT EXISTS (SELECT 1 FROM hx_run r WHERE r.subject = e.run AND r.expired = 0)),"
	" (SELECT count(*) - count(DISTINCT id) FROM hx_run_event),"
	" (SELECT count(*) FROM hx_run), (SELECT count(*)" RUNS " WHERE s.status NOT IN " OVER ")");

DB_STMT(stmt_signal, "sim_start_signal", "t", "ii",
	"SELECT (SELECT count(*) FROM hx_run_event WHERE id = 'event/' || ?1), (SELECT count(*) FROM hx_run WHERE expired = 1)");

DB_STMT(stmt_end, "sim_start_end", "", "t", "SELECT s.status" RUNS " WHERE coalesce(r.awaits, '') <> 'event go'");

DB_STMT(stmt_tell, "sim_start_tell", "", "t",
	"SELECT coalesce(group_concat(r.requester || ' ' || s.status || ' v' || s.version || CASE r.expired WHEN 1 THEN ' expired' ELSE '' END ||"
	" coalesce(' awaits ' || r.awaits, '') || CASE WHEN s.owner IS NULL THEN '' ELSE ' owned' END || coalesce(' with '"
	" || (SELECT group_concat(e.id) FROM hx_run_event e WHERE e.run = r.subject), ''), '; '), 'nothing')" RUNS);

/* clang-format on */

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_runs, hash);
	hash = sim_hash_answer(sim, &stmt_hash_names, hash);
	return sim_hash_answer(sim, &stmt_hash_events, hash);
}

/* Of runs with one key the second waits for the first. */
static unsigned rows_locked(const struct unit *unit)
{
	for (unsigned line = 0; line < unit->lines_n && fixture.specs[0].key.p; line++)
		if (strcmp(unit->lines[line].stmt->name, "run_create") == 0)
			return 1;
	return 0;
}
#define OWN_ROWS_LOCKED rows_locked
#include "sim/own_rows.h" /* of these */

/* ---- the cast ---- */

static struct sim *world;

static int64_t first_due(struct sim *sim, bool first)
{
	struct db_value param = db_int(first);
	struct unit_result result = ask_store(sim, &stmt_due, 1, &param);

	return result.rows[0].n ? db_cell(&result.rows[0], 0, 0)->i : 0;
}

static bool first_is_due(struct sim *sim)
{
	return first_due(sim, true) != 0;
}

static bool another_is_due(struct sim *sim)
{
	return first_due(sim, false) != 0;
}

static void init_driver(union sim_task *task, const void *plan, struct arena *texts)
{
	int64_t subject = first_due(world, plan != NULL);

	run_drive_init((struct run_drive *)task, subject ? subject : FIRST, &policy, texts);
}

static void init_verb(union sim_task *task, const void *plan, struct arena *texts)
{
	run_verb_init((struct run_verb *)task, plan, texts);
}

static enum hx_code took(struct single *single, const struct unit_result *result)
{
	(void)single;
	return result->verdict == UNIT_WON ? HX_OK : HX_ALREADY_EXISTS;
}

static void build_start(const struct single *single, struct unit *unit)
{
	struct run_spec spec = *(const struct run_spec *)single->context;

	spec.subject = single->fresh_id;
	run_create(unit, &single->stamp, &spec);
}

static void init_start(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)texts;
	single_init((struct single *)task, (void *)plan, build_start, took);
}

static void build_expire(const struct single *single, struct unit *unit)
{
	(void)single;
	run_expire(unit, FIRST, /* age_ms= */ 0);
}

static void init_retention(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan, (void)texts;
	single_init((struct single *)task, NULL, build_expire, took);
}

static const struct run_verb_request retry = {
	.kind = RUN_RETRY, .workspace = {"default", 7}, .subject = FIRST, .policy = &policy};

/* clang-format off */
#define DRIVES_FIRST(node) {"drives-first", node, true, init_driver, "first", first_is_due}
#define DRIVES_OTHERS(node) {"drives-others", node, true, init_driver, NULL, another_is_due}
#define START(name, node, i) {name, node, false, init_start, &fixture.specs[i], NULL}
#define SIGNAL(name, node, i) {name, node, false, init_verb, &fixture.signals[i], NULL}
#define PERSON(node) {"person", node, false, init_verb, &retry, NULL}
/* clang-format on */

/* ---- what must hold ---- */

struct notes {
	int64_t runs, open;
};

/* Then it may be there by the other one. */
static bool same_signal(void)
{
	return slice_eq(fixture.signals[0].event_id, fixture.signals[1].event_id);
}

static void check_signal(struct sim *sim, const char *name, const struct run_verb *v)
{
	struct db_value id = db_text(v->rq->event_id);
	struct unit_result result = ask_store(sim, &stmt_signal, 1, &id);
	bool there = db_cell(&result.rows[0], 0, 0)->i, expired = db_cell(&result.rows[0], 0, 1)->i;

	if (v->task.code == HX_OK && !there && !expired)
		sim_violate(sim, "K2: %s was told that its signal is taken", name);
	if (v->task.code != HX_OK && v->task.code != HX_OUTCOME_UNKNOWN && there && !same_signal())
		sim_violate(sim, "K2: %s was told %s, and its signal is there", name, hx_code_name(v->task.code));
}

/* Callers that have an answer. */
static void check_told(struct sim *sim)
{
	unsigned made = 0, brought = 0;

	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		const struct sim_cast *cast = &sim->scenario->cast[i];
		const struct run_verb *v = (const struct run_verb *)&actor->task;

		if (actor->state != SIM_DONE || cast->plan == &retry)
			continue;
		if (cast->init == init_start)
			made += actor->task.task.code == HX_OK;
		if (cast->init != init_verb)
			continue;
		made += v->task.code == HX_OK && v->created;
		brought += v->task.code == HX_OK && v->changed;
		check_signal(sim, cast->name, v);
	}
	if (fixture.specs[0].key.p && made + (fixture.first_key != NULL) > 1)
		sim_violate(sim, "K3: two were told that they have made the run");
	if (same_signal() && brought > 1)
		sim_violate(sim, "K2: two were told that they have brought one signal");
}

static void check(struct sim *sim)
{
	static const char *const words[] = {
		"K1: a run that was made with a signal does not have it",
		"K1: a signal is there without its run",
		"K2: a signal is there twice",
	};
	enum { FOUND = sizeof words / sizeof *words };
	struct notes *was = (struct notes *)sim->state.notes, now;
	struct unit_result result;

	check_told(sim);
	if (!rows_changed)
		return;
	rows_changed = false;
	result = ask_store(sim, &stmt_check, 0, NULL);
	for (size_t i = 0; i < FOUND; i++)
		if (db_cell(&result.rows[0], 0, i)->i)
			sim_violate(sim, "%s", words[i]);
	now = (struct notes){db_cell(&result.rows[0], 0, FOUND)->i, db_cell(&result.rows[0], 0, FOUND + 1)->i};
	if (fixture.specs[0].singleton && now.runs > was->runs && (was->open || now.runs > was->runs + 1))
		sim_violate(sim, "S1: a start has made a run beside one that is not terminal");
	*was = now;
}

/* ---- nothing gets stuck ---- */

static bool settle_one(struct sim *sim, int64_t *id)
{
	bool first = first_is_due(sim);
	union sim_task task;

	if (first || another_is_due(sim)) {
		init_driver(&task, first ? "first" : NULL, &sim->texts);
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
			sim_violate(sim, "when all goes well, a run does not come to its end");
}

static void quiet(struct sim *sim)
{
	static const struct well well = {settle_one, settled, SETTLE_ROUNDS_MAX,
					 "the runs do not come to rest although all goes well"};

	try_well(sim, &well);
}

/* One that is there before has failed. (It is none of the simulator's own subjects: retention takes their history.) */
static void setup(struct sim *sim)
{
	struct notes *notes = (struct notes *)sim->state.notes;
	struct stamp stamp = {.op = FIRST, .at = sim->state.now, .node = "setup"};
	struct run_spec spec = fixture.specs[0];
	int64_t id = INT64_C(1) << 40;
	union sim_task task;
	struct unit unit;

	world = sim;
	if (!fixture.first_key)
		return;
	spec.subject = FIRST;
	spec.requester = slice_str("before");
	spec.key = slice_str(fixture.first_key);
	unit_init(&unit, stamp.op);
	run_create(&unit, &stamp, &spec);
	assert_int_equal(sim_run_unit(sim, &unit).verdict, UNIT_WON);
	init_driver(&task, "first", &sim->texts);
	go_well(sim, &task.task, &id, SETTLE_ROUNDS_MAX, /* committed= */ NULL);
	notes->runs = 1;
}

static void explore(struct sim_scenario scenario)
{
	scenario.driven = true;
	scenario.setup = setup;
	scenario.check = check;
	scenario.quiet = quiet;
	scenario.rows = &own_rows;
	walk_all(&scenario, STATES_MAX);
}

/* ---- scenarios ---- */

static void exhaustive_singleton(void **state)
{
	(void)state;
	parse("\"singleton\":{}", FAILS);
	fixture.first_key = "before";
	prepare(0, "a", NULL, NULL);
	prepare(1, "b", NULL, NULL);
	explore((struct sim_scenario){
		.name = "two starts of a singleton, whose run has failed and is tried again",
		.nodes_n = 3,
		.cast_n = 5,
		.cast = {DRIVES_FIRST(2), DRIVES_OTHERS(2), PERSON(2), START("start-a", 0, 0), START("start-b", 1, 1)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

static void exhaustive_singleton_signals(void **state)
{
	(void)state;
	parse("\"singleton\":{}", FAILS "," EVENT);
	fixture.first_key = "before";
	prepare(0, "e1", NULL, "e1");
	prepare(1, "e2", NULL, "e2");
	explore((struct sim_scenario){
		.name = "two signals to a singleton, whose run has failed and is tried again",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {PERSON(2), SIGNAL("signal-1", 0, 0), SIGNAL("signal-2", 1, 1)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

static void exhaustive_signals(void **state)
{
	(void)state;
	parse("", EVENT);
	prepare(0, "e1", "k", "e1");
	prepare(1, "e2", "k", "e2");
	explore((struct sim_scenario){
		.name = "two that start a run of one key with a signal, while it is driven",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {SIGNAL("signal-1", 0, 0), SIGNAL("signal-2", 1, 1), DRIVES_OTHERS(2)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

static void exhaustive_same_signal(void **state)
{
	(void)state;
	parse("", EVENT);
	prepare(0, "e1", "k", "e1");
	prepare(1, "e1", "k", "e1");
	prepare(2, "start", "k", NULL);
	explore((struct sim_scenario){
		.name = "two that start a run of one key with the same signal, and one that starts it without",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {SIGNAL("signal-1", 0, 0), SIGNAL("signal-again", 1, 1), START("start", 2, 2),
			 DRIVES_OTHERS(2)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

static void exhaustive_retention(void **state)
{
	(void)state;
	parse("", FAILS "," EVENT);
	fixture.first_key = "k";
	prepare(0, "e1", "k", "e1");
	prepare(1, "e2", "k", "e2");
	explore((struct sim_scenario){
		.name = "a start with a signal of a run that has failed, is tried again and taken by retention",
		.nodes_n = 3,
		.cast_n = 4,
		.cast = {SIGNAL("signal", 0, 0),
			 PERSON(1),
			 {"retention", 2, false, init_retention, NULL, NULL},
			 DRIVES_FIRST(2)},
		.bounds = {.crashes = 1, .lost_answers = 1},
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_singleton), cmocka_unit_test(exhaustive_singleton_signals),
		cmocka_unit_test(exhaustive_signals),   cmocka_unit_test(exhaustive_same_signal),
		cmocka_unit_test(exhaustive_retention),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
