/*
 * The making of a run by the task that drives it, explored: two nodes that start runs, under one key or two, and a third that takes up
 * what is due or past its time; with crashes, leases that lapse, answers that are lost and commits that fail.
 *
 * On every edge: whoever was told that he made a run has made it, and whoever was told that it is there finds one under his key (R1); a
 * call is made for a run that is there, and has begun its step (R3, R8); a run that somebody holds is not due (R7); its history is that of
 * one that was made and then seized. From every state in which nothing goes on but time: if all went well from there on, every run would
 * come to its end, or to where only a person can move it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/run_drive.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/left.h"
#include "sim/run_rules.h"
#include "sim/walks.h"
#include "sim/well.h"

#define STATES_MAX 20000000
#define SETTLE_ROUNDS_MAX 400
#define MAKERS 2
#define KEYS (-7)

struct plan {
	struct run_spec spec;
	struct single single;
	const struct run_policy *policy;
};

static struct {
	struct arena arena;
	const struct run_machine *machine;
	const struct run_machine
		*lacking; /* the same in a program without the function of its step; NULL: there is none */
	struct plan plans[MAKERS];
	struct sim *sim;
} fixture;

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)workflow, (void)version;
	return context ? fixture.lacking : fixture.machine;
}

static const struct run_policy policy = {.lease_ms = 60000, .machine_of = machine_of};
static const struct run_policy lacking_policy = {.lease_ms = 60000, .machine_of = machine_of, .context = &fixture};

/* ---- what makes it ---- */

static void build_front(const struct single *single, struct unit *unit)
{
	(void)single;
	unit_keep_apart(
		unit,
		KEYS); /* who inserts a key waits for whoever has just inserted it: the simulator knows no index */
}

static enum hx_code answer_run(struct single *single, const struct unit_result *result)
{
	(void)single;
	return result->verdict == UNIT_WON ? HX_OK : HX_ALREADY_EXISTS;
}

static void prepare(size_t i, const char *key)
{
	struct plan *plan = &fixture.plans[i];

	plan->policy = &policy;
	plan->single = (struct single){.build = build_front, .answered = answer_run, .context = plan};
	plan->spec = (struct run_spec){.workspace = slice_str("default"),
				       .requester = slice_str("me"),
				       .key = slice_str(key),
				       .machine = fixture.machine,
				       .input = slice_str("{}"),
				       .due_in_ms = 2000};
	run_describe(&plan->spec, &fixture.arena);
}

static const struct run_machine *machine_with(const char *effect, const char *more)
{
	const struct run_definition *definition;
	struct findings findings;
	char text[2000];

	findings_init(&findings, &fixture.arena);
	snprintf(
		text, sizeof text,
		"{\"workflow\":\"order\",\"kind\":\"run\"%s,\"actions\":{\"do\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/\","
		"\"effect\":\"%s\"}},\"steps\":[{\"name\":\"a\",\"type\":\"task\",\"action\":\"do\",\"retry\":{\"max_attempts\":1}}]}",
		more, effect);
	run_definition_parse("order", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings,
			     &definition);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(definition);
	return run_machine_new(definition, 1, &fixture.arena);
}

static void parse(const char *effect, const char *more)
{
	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	fixture.machine = machine_with(effect, more);
}

/* ---- the store, seen from here ---- */

/* clang-format off */

#define RUNS " FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
#define HELD " AND s.owner IS NOT NULL AND s.until > hx_now_ms()"

DB_STMT(stmt_due, "sim_make_due", "", "i",
	"SELECT r.subject" RUNS " WHERE r.due_at <= hx_now_ms() OR (s.owner IS NOT NULL AND s.until <= hx_now_ms())"
	" ORDER BY r.subject LIMIT 1");

DB_STMT(stmt_moment, "sim_make_moment", "", "i",
	"SELECT min(m) FROM (SELECT due_at AS m FROM hx_run UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()");

DB_STMT(stmt_hash_runs, "sim_make_hash", "", "tiiitttii",
	"SELECT r.run_key, r.attempt, r.due_at, r.wait_until, s.status, s.owner, r.awaits, s.until, s.version" RUNS " ORDER BY r.run_key");

/* One row: what is wrong, as numbers of findings. */
DB_STMT(stmt_check, "sim_make_check", "", "iiiii",
	"SELECT (SELECT count(*) FROM hx_subject s WHERE NOT EXISTS (SELECT 1 FROM hx_run r WHERE r.subject = s.id)),"
	" (SELECT count(*)" RUNS " WHERE r.due_at IS NOT NULL" HELD "),"
	" (SELECT count(*)" RUNS " WHERE r.attempt = 0" HELD "),"
	" (SELECT count(*) FROM hx_subject s WHERE (SELECT count(*) FROM hx_history h WHERE h.subject = s.id) <> s.seq"
	"   OR NOT EXISTS (SELECT 1 FROM hx_history h WHERE h.subject = s.id AND h.seq = 1 AND h.to_status = 'PENDING' AND h.version = 1)"
	"   OR (s.seq > 1 AND NOT EXISTS (SELECT 1 FROM hx_history h WHERE h.subject = s.id AND h.seq = 2 AND h.from_status = 'PENDING'"
	"     AND h.version = 2 AND h.fence = 1))),"
	RUNS_MISCOUNTED);

DB_STMT(stmt_of, "sim_make_of", "it", "i",
	"SELECT count(*) FROM hx_run WHERE (subject = ?1 OR ?1 = 0) AND (run_key = ?2 OR ?2 = '')");

DB_STMT(stmt_end, "sim_make_end", "", "tt", "SELECT s.status, r.awaits" RUNS);

DB_STMT(stmt_tell, "sim_make_tell", "", "t",
	"SELECT coalesce(group_concat('run ' || r.subject || ' key ' || r.run_key || ' ' || s.status || ' attempt ' || r.attempt ||"
	" coalesce(' due in ' || (r.due_at - hx_now_ms()), '') || CASE WHEN s.owner IS NULL THEN '' ELSE ' owned' END, '; '), 'no run')" RUNS);

/* clang-format on */

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	return sim_hash_answer(sim, &stmt_hash_runs, hash);
}

#include "sim/own_rows.h" /* of these */

/* ---- the cast ---- */

static int64_t first_due(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_due, 0, NULL);

	return result.rows[0].n ? db_cell(&result.rows[0], 0, 0)->i : 0;
}

static bool is_due(struct sim *sim)
{
	return first_due(sim) != 0;
}

static void init_driver(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	run_drive_init((struct run_drive *)task, fixture.sim ? first_due(fixture.sim) : 0, &policy, texts);
}

static void init_maker(union sim_task *task, const void *plan, struct arena *texts)
{
	const struct plan *p = plan;

	run_drive_init_making((struct run_drive *)task, &p->single, &p->spec, p->policy, texts);
}

/* ---- what must hold ---- */

static bool is_there(struct sim *sim, int64_t subject, struct slice key)
{
	struct db_value params[] = {db_int(subject), db_text(key)};

	return db_cell(&ask_store(sim, &stmt_of, 2, params).rows[0], 0, 0)->i > 0;
}

static void check_maker(struct sim *sim, const struct sim_cast *cast, const struct sim_actor *actor)
{
	const struct run_drive *d = (const struct run_drive *)&actor->task;
	const struct plan *plan = cast->plan;

	if (d->made && !is_there(sim, d->subject, plan->spec.key))
		sim_violate(sim, "R1: %s was told that it made a run, and it is not there", cast->name);
	if (actor->state == SIM_DONE && actor->task.task.code == HX_ALREADY_EXISTS &&
	    !is_there(sim, /* subject= */ 0, plan->spec.key))
		sim_violate(sim, "R1: %s was told that its key has a run, and it has none", cast->name);
}

static void check_actors(struct sim *sim)
{
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];

		if (sim->scenario->cast[i].init == init_maker)
			check_maker(sim, &sim->scenario->cast[i], actor);
		if (actor->state == SIM_ASKING && actor->ask == ASK_ACT &&
		    !is_there(sim, sim_call_of(actor).lease.subject, slice_str("")))
			sim_violate(sim, "R3: a call is made for a run that is not there");
	}
}

static void check(struct sim *sim)
{
	static const char *const words[] = {
		"a subject is there without its run",
		"R7: a run is due while somebody holds it",
		"R8: a run is held for a step of which nothing is written",
		"the history of a run is not that of one that was made and then seized",
		RUNS_MISCOUNTED_WORDS,
	};
	struct unit_result result;

	check_actors(sim);
	check_left(sim);
	if (world_repeated(sim))
		sim_violate(sim, "an effect happened twice");
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
	int64_t run = first_due(sim);
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
		if (!run_is_terminal(status) && db_cell(&result.rows[0], i, 1)->type == DB_NULL)
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
	fixture.sim = sim;
}

static void explore(struct sim_scenario scenario)
{
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

#define DRIVER                                                                                                         \
	{                                                                                                              \
		"driver", 0, true, init_driver, NULL, is_due                                                           \
	}
#define MAKER(name, node, i)                                                                                           \
	{                                                                                                              \
		name, node, false, init_maker, &fixture.plans[i], NULL                                                 \
	}

static void exhaustive_one_key(void **state)
{
	(void)state;
	parse("keyed", "");
	prepare(0, "k");
	prepare(1, "k");
	explore((struct sim_scenario){
		.name = "two starts with one key, each begins what it makes; keyed service",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVER, MAKER("maker-1", 1, 0), MAKER("maker-2", 2, 1)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

static void exhaustive_plain(void **state)
{
	(void)state;
	parse("claimed", "");
	prepare(0, "k");
	explore((struct sim_scenario){
		.name = "a start that begins what it makes, plain service",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVER, MAKER("maker", 1, 0)},
		.bounds = {.lapses = 2, .crashes = 2, .lost_answers = 2, .failures = 1},
		.world = WORLD_PLAIN,
	});
}

/* Nobody's start is lost to a limit: it stands in line. */
static void exhaustive_limit(void **state)
{
	(void)state;
	parse("keyed", ",\"limits\":{\"concurrency\":{\"by\":\"1\",\"max\":1}}");
	prepare(0, "k");
	prepare(1, "l");
	explore((struct sim_scenario){
		.name = "two starts of a workflow of which one may run",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {DRIVER, MAKER("maker-1", 1, 0), MAKER("maker-2", 2, 1)},
		.bounds = {.lost_answers = 1},
		.world = WORLD_KEYED,
	});
}

/* It is made there, and left to a program that can carry it out. */
static void exhaustive_left(void **state)
{
	(void)state;
	parse("keyed", "");
	fixture.lacking = machine_with("keyed", "");
	((struct action *)fixture.lacking->definition->steps[0].action)->absent = true;
	prepare(0, "k");
	fixture.plans[0].policy = &lacking_policy;
	fixture.plans[0].spec.machine = fixture.lacking;
	explore((struct sim_scenario){
		.name = "a start by a program that lacks a function",
		.nodes_n = 2,
		.cast_n = 2,
		.cast = {DRIVER, MAKER("maker-that-lacks", 1, 0)},
		.bounds = {.lapses = 1, .crashes = 1, .lost_answers = 1, .failures = 1},
		.world = WORLD_KEYED,
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_one_key),
		cmocka_unit_test(exhaustive_plain),
		cmocka_unit_test(exhaustive_limit),
		cmocka_unit_test(exhaustive_left),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
