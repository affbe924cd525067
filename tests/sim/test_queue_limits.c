/*
 * Jobs of a queue with limits, explored: two or three of one customer, of which one may be at work at a time; workers that claim them over
 * the API, one that is late or lost, and the janitor who gives a job back.
 *
 * On every edge: L1, L3 to L6 of flow/slot.h, of jobs. And from every state in which nothing goes on but time: if from there on all went
 * well, every job would come to its end, and no slot would be left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/config.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/walks.h"
#include "sim/well.h"
#include "sim/worker.h"

#define STATES_MAX 20000000
#define SETTLE_ROUNDS_MAX 400

static struct {
	struct arena arena;
	struct config config;
	struct job_claim_request workers[3];
	struct sim *sim;
} fixture;

#define CONCURRENCY "\"concurrency\":{\"by\":\".payload.customer\",\"max\":1}"
#define RATE "\"rate\":{\"by\":\".payload.customer\",\"max\":1,\"per\":\"10s\"}"

static void configure(const char *limits)
{
	struct findings findings;
	char text[1000];

	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	findings_init(&findings, &fixture.arena);
	snprintf(text, sizeof text, "{\"queues\":{\"stock\":{\"limits\":{%s}}}}", limits);
	config_parse("hapax.json", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings,
		     &fixture.config);
	for (const struct finding *f = findings.first; f; f = f->next)
		fail_msg("%s: %s", f->rule, f->text);
	for (int i = 0; i < 3; i++)
		fixture.workers[i] = (struct job_claim_request){
			.workspace = slice_str("default"),
			.owner = slice_str(i == 0   ? "w1"
					   : i == 1 ? "w2"
						    : "w3"),
			.queues_n = 1,
			.queues = {slice_str("stock")},
			.limits = {config_queue_limits(&fixture.config, slice_str("stock"))},
			.max = 1,
			.lease_ms = 60000,
		};
}

/* ---- the store, seen from here ---- */

/* clang-format off */

DB_STMT(stmt_setup, "sim_queue_setup", "i", "",
	"INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload, due_at, priority, repeatable, attempts_max)"
	" SELECT id, 'default', 'stock', '', '', 'job_' || id, '{\"customer\":\"c\"}', hx_now_ms(), 0, 1, 1 FROM hx_subject WHERE id <= ?1");

#define JOBS " FROM hx_job j JOIN hx_subject s ON s.id = j.subject"
#define JOBS_OF_SLOT " JOIN hx_job j ON j.subject = l.holder JOIN hx_subject s ON s.id = j.subject"

DB_STMT(stmt_job_due, "sim_queue_due", "", "i", "SELECT subject FROM hx_job WHERE due_at <= hx_now_ms() ORDER BY subject");
DB_STMT(stmt_job_past, "sim_queue_past", "", "ii",
	"SELECT j.subject, s.fence" JOBS " WHERE s.status = 'RUNNING' AND s.until <= hx_now_ms()");

DB_STMT(stmt_moment, "sim_queue_moment", "", "i",
	"SELECT min(m) FROM (SELECT due_at AS m FROM hx_job UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()");

DB_STMT(stmt_hash_jobs, "sim_queue_hash", "", "iiit",
	"SELECT attempt, due_at, ended_at IS NULL, error FROM hx_job ORDER BY subject");
DB_STMT(stmt_hash_slots, "sim_queue_hash_slots", "", "ii", "SELECT holder, held FROM hx_slot ORDER BY name, holder");
DB_STMT(stmt_hash_ticks, "sim_queue_hash_ticks", "", "ii", "SELECT holder, at FROM hx_tick ORDER BY name, holder, at");

/* One row: what is wrong, as numbers of findings. ?1: whether there are slots   ?2: in how long one may begin */
DB_STMT(stmt_check, "sim_queue_check", "ii", "iiiiiii",
	"SELECT"
	" coalesce((SELECT max(n) FROM (SELECT count(*) AS n FROM hx_slot WHERE held = 1 GROUP BY name)), 0) > 1,"  /* L1 */
	" (SELECT count(*)" JOBS " WHERE (s.status = 'RUNNING') <> EXISTS (SELECT 1 FROM hx_slot l WHERE l.holder = j.subject AND l.held = 1)"
	"   AND ?1 = 1),"                                                                                           /* L2, L3 */
	" (SELECT count(*) FROM (SELECT DISTINCT name FROM hx_slot WHERE held < 2) n"                               /* L4 */
	"   WHERE (SELECT count(*) FROM hx_slot l" JOBS_OF_SLOT " WHERE l.name = n.name AND l.held = 0) > 0"
	"   AND (SELECT count(*) FROM hx_slot h WHERE h.name = n.name AND h.held = 1) < 1"
	"   AND (SELECT count(*) FROM hx_slot l" JOBS_OF_SLOT " WHERE l.name = n.name AND l.held = 0 AND j.due_at <= hx_now_ms()) = 0),"
	" (SELECT count(*)" JOBS " WHERE s.status IN ('COMPLETED', 'PARKED') AND (j.due_at IS NOT NULL"
	"   OR EXISTS (SELECT 1 FROM hx_slot l WHERE l.holder = j.subject))),"
	" (SELECT count(*) FROM hx_tick a, hx_tick b WHERE (a.holder, a.nth) < (b.holder, b.nth) AND abs(a.at - b.at) < ?2)," /* L5 */
	" (SELECT count(*) FROM (SELECT j.subject, j.attempt, (SELECT count(*) FROM hx_tick t WHERE t.holder = j.subject) AS ticks" JOBS ")"
	"   WHERE ?2 > 0 AND attempt <> ticks),"
	" (SELECT count(*) FROM hx_slot a JOIN hx_slot b ON b.holder = a.holder AND b.name > a.name)");             /* L6 */

DB_STMT(stmt_end, "sim_queue_end", "", "ti", "SELECT s.status, (SELECT count(*) FROM hx_slot)" JOBS);

DB_STMT(stmt_tell, "sim_queue_tell", "", "t",
	"SELECT group_concat('job ' || j.subject || ' ' || s.status || ' attempt ' || j.attempt || coalesce(' due in ' || (j.due_at - hx_now_ms()), '') ||"
	" coalesce((SELECT CASE l.held WHEN 1 THEN ' holds' ELSE ' in line' END FROM hx_slot l WHERE l.holder = j.subject), ''), '; ')" JOBS);

/* clang-format on */

static uint64_t hash_all(struct sim *sim, uint64_t hash)
{
	hash = sim_hash_answer(sim, &stmt_hash_jobs, hash);
	hash = sim_hash_answer(sim, &stmt_hash_slots, hash);
	return sim_hash_answer(sim, &stmt_hash_ticks, hash);
}

#include "sim/own_rows.h" /* of these */

/* ---- what must hold ---- */

static const struct limits *limits(void)
{
	return &fixture.config.queues[0].limits;
}

static void check(struct sim *sim)
{
	static const char *const words[] = {
		"L1: more hold a slot than there are",
		"L2, L3: a job is at work without its slot, or has one although nobody is at it",
		"L4: a slot is free, and nobody in line is due",
		"a job that has ended is due, or has a slot",
		"L5: more were begun than may be",
		"L5: a claim was not counted",
		"L6: a job is in two lines",
	};
	struct db_value params[] = {db_int(limits()->concurrency.max), db_int(limits()->rate.per_ms)};
	struct unit_result result;

	if (!rows_changed)
		return;
	rows_changed = false;
	result = ask_store(sim, &stmt_check, 2, params);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (db_cell(&result.rows[0], 0, i)->i)
			sim_violate(sim, "%s", words[i]);
}

/* ---- the cast ---- */

static bool job_is_due(struct sim *sim)
{
	return ask_store(sim, &stmt_job_due, 0, NULL).rows[0].n > 0;
}

static bool job_is_past(struct sim *sim)
{
	return ask_store(sim, &stmt_job_past, 0, NULL).rows[0].n > 0;
}

static void init_worker(union sim_task *task, const void *plan, struct arena *texts)
{
	worker_init(task, plan, 1, 2, texts);
}

static void init_lapser(union sim_task *task, const void *plan, struct arena *texts)
{
	struct unit_result past = ask_store(fixture.sim, &stmt_job_past, 0, NULL);

	(void)plan;
	lapser_init(task, &past.rows[0], texts);
}

#define WORKER(name, node, n)                                                                                          \
	{                                                                                                              \
		name, node, true, init_worker, &fixture.workers[n], job_is_due                                         \
	}
#define JANITOR                                                                                                        \
	{                                                                                                              \
		"janitor", 0, true, init_lapser, NULL, job_is_past                                                     \
	}

/* ---- nothing gets stuck ---- */

static bool settle_one(struct sim *sim, int64_t *id)
{
	union sim_task task;

	if (job_is_past(sim))
		init_lapser(&task, NULL, &sim->texts);
	else if (job_is_due(sim))
		init_worker(&task, &fixture.workers[2], &sim->texts);
	else
		return false;
	go_well(sim, &task.task, id, SETTLE_ROUNDS_MAX, /* committed= */ NULL);
	return true;
}

static void check_settled(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_end, 0, NULL);
	const struct db_rows *rows = &result.rows[0];

	for (size_t i = 0; i < rows->n; i++) {
		struct slice status = db_cell(rows, i, 0)->s;

		if (!slice_is(status, JOB_COMPLETED) && !slice_is(status, JOB_PARKED))
			sim_violate(sim, "when all goes well, a job stays %.*s for ever", SLICE_ARGS(status));
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
					 "the jobs do not come to rest although all goes well"};

	try_well(sim, &well);
}

static void setup(struct sim *sim)
{
	struct db_value param = db_int(sim->scenario->subjects_n);

	fixture.sim = sim;
	(void)ask_store(sim, &stmt_setup, 1, &param);
}

static void explore(struct sim_scenario scenario)
{
	scenario.subjects_n = 2;
	scenario.kind = job_kind();
	scenario.initial = JOB_AVAILABLE;
	scenario.driven = true;
	scenario.setup = setup;
	scenario.check = check;
	scenario.quiet = quiet;
	scenario.rows = &own_rows;
	scenario.world = WORLD_KEYED;
	walk_all(&scenario, STATES_MAX);
}

/* ---- scenarios ---- */

static void exhaustive_slot(void **state)
{
	(void)state;
	configure(CONCURRENCY);
	explore((struct sim_scenario){
		.name = "two jobs and one slot, a worker may be lost or late",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {WORKER("worker-1", 1, 0), WORKER("worker-2", 2, 1), JANITOR},
		.bounds = {.lapses = 1, .lost_answers = 1},
	});
}

static void exhaustive_rate(void **state)
{
	(void)state;
	configure(RATE);
	explore((struct sim_scenario){
		.name = "two jobs, of which one may begin at a time",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {WORKER("worker-1", 1, 0), WORKER("worker-2", 2, 1), JANITOR},
		.bounds = {.lapses = 1},
	});
}

static void exhaustive_both(void **state)
{
	(void)state;
	configure(CONCURRENCY "," RATE);
	explore((struct sim_scenario){
		.name = "two jobs and one slot, of which one may begin at a time",
		.nodes_n = 3,
		.cast_n = 3,
		.cast = {WORKER("worker-1", 1, 0), WORKER("worker-2", 2, 1), JANITOR},
		.bounds = {.lapses = 1},
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_slot),
		cmocka_unit_test(exhaustive_rate),
		cmocka_unit_test(exhaustive_both),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
