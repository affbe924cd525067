/*
 * After-effects, explored: two nodes deliver one job, a janitor gives back what a dead one had, with a crash anywhere, leases that
 * lapse, answers that are lost and commits that fail.
 *
 *   effect     world            what must hold besides the invariants of the rows and J1 of flow/job.h
 *   keyed      keyed service    one effect, under one key, in so many attempts as it has
 *   claimed    plain service    one effect: what may have been delivered is parked
 *
 * And with a node that lacks the function of the action: it leaves the job to the other one. With nodes that have two versions of
 * the definition in force: whoever delivers it after a doubt does so by the version that was called by first (I8, invariant.h), also
 * after a person has given it all its attempts again, and after it was refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/job_work.h"
#include "flow/single.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/left.h"
#include "sim/walks.h"
#include "sim/world.h"

#define STATES_MAX 20000000
#define JOB 1

static const struct job_policy policy = {.attempts_max = 2, .first_ms = 1000, .max_ms = 1000, .lease_ms = 60000};

static struct {
	struct action action, lacking;
	struct action other; /* of the second version */
	bool person;         /* one who redrives is about */
	bool fails_late;
	struct sim *sim;
} fixture;

/* ---- the rows ---- */

static const struct db_stmt stmt_setup = {
	.name = "sim_job_setup",
	.sql = "INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload, due_at, repeatable)"
	       " VALUES (1, 'default', 'after-effects', 'order', 'mail', 'key', '{}', hx_now_ms(), 1)",
	.in = "",
	.out = "",
};

static const struct db_stmt stmt_due = {
	.name = "sim_job_due",
	.sql = "SELECT subject FROM hx_job WHERE due_at <= hx_now_ms()",
	.in = "",
	.out = "i",
};

static const struct db_stmt stmt_past = {
	.name = "sim_job_past",
	.sql = "SELECT fence FROM hx_subject WHERE owner IS NOT NULL AND until <= hx_now_ms()",
	.in = "",
	.out = "i",
};

static const struct db_stmt stmt_moment = {
	.name = "sim_job_moment",
	.sql = "SELECT min(m) FROM (SELECT due_at AS m FROM hx_job UNION ALL SELECT until FROM hx_subject) WHERE m > hx_now_ms()",
	.in = "",
	.out = "i",
};

static const struct db_stmt stmt_hash = {
	.name = "sim_job_hash",
	.sql = "SELECT attempt, due_at, ended_at IS NULL, error IS NULL, unsettled_since, sent_version FROM hx_job",
	.in = "",
	.out = "iiiiii",
};

static const struct db_stmt stmt_check = {
	.name = "sim_job_check",
	.sql = "SELECT s.status, (j.due_at IS NOT NULL) <> (s.status IN ('AVAILABLE', 'RETRYING'))"
	       " OR (j.ended_at IS NOT NULL) <> (s.status IN ('COMPLETED', 'PARKED')),"
	       " (s.owner IS NOT NULL) <> (s.status = 'RUNNING') FROM hx_job j JOIN hx_subject s ON s.id = j.subject",
	.in = "",
	.out = "tii",
};

static const struct db_stmt stmt_redriven = {
	.name = "sim_job_redriven",
	.sql = "SELECT seq FROM hx_history WHERE from_status = 'PARKED'",
	.in = "",
	.out = "i",
};

static struct unit_result ask_store(struct sim *sim, const struct db_stmt *stmt)
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	return sim_run_unit(sim, &unit);
}

static int64_t next_moment(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_moment);
	const struct db_value *cell = db_cell(&result.rows[0], 0, 0);

	return cell->type == DB_NULL ? INT64_MAX : cell->i;
}

static uint64_t hash_job(struct sim *sim, uint64_t hash)
{
	return sim_hash_answer(sim, &stmt_hash, hash);
}

static uint64_t before;

static void before_unit(struct sim *sim, const struct unit *unit)
{
	(void)unit;
	before = hash_job(sim, 1);
}

static void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	(void)unit;
	if (verdict != UNIT_WON && hash_job(sim, 1) != before)
		sim_violate(sim, "I4: a unit that was %s left something of a job behind", unit_verdict_name(verdict));
}

static void tell_nothing(struct sim *sim, struct strbuf *words)
{
	(void)sim, (void)words;
}

static const struct sim_rows rows_of_jobs = {next_moment, hash_job,     before_unit,
					     after_unit,  tell_nothing, .locked = NULL};

/* ---- the cast ---- */

static bool is_due(struct sim *sim)
{
	return ask_store(sim, &stmt_due).rows[0].n > 0;
}

static bool is_past(struct sim *sim)
{
	return ask_store(sim, &stmt_past).rows[0].n > 0;
}

/* The context is what the node has in force. */
static const struct action *action_of(const void *context, struct slice workflow, struct slice action, int64_t *version)
{
	(void)workflow, (void)action;
	if (!*version)
		*version = context == &fixture.other ? 2 : 1;
	if (*version == 2)
		return &fixture.other;
	return context == &fixture.lacking ? &fixture.lacking : &fixture.action;
}

static void init_delivery(union sim_task *task, const void *plan, struct arena *texts)
{
	_Static_assert(sizeof(struct job_run) <= SIM_TASK_BYTES, "a delivery fits");
	job_run_init((struct job_run *)task, JOB, &policy, action_of, plan, texts);
}

/* What a janitor does about a claim on a job that is past its time. */
static void init_lapser(union sim_task *task, const void *plan, struct arena *texts)
{
	struct job_settle_request *rq = arena_zalloc(texts, sizeof *rq);
	struct unit_result past = ask_store(fixture.sim, &stmt_past);

	(void)plan;
	*rq = (struct job_settle_request){.kind = JOB_LAPSE, .subject = JOB};
	rq->fence = past.rows[0].n ? db_cell(&past.rows[0], 0, 0)->i : -1;
	job_settle_init((struct job_settle *)task, rq, texts);
}

static bool may_redrive(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_check);

	return slice_is(db_cell(&result.rows[0], 0, 0)->s, JOB_PARKED) &&
	       (sim->scenario->world == WORLD_KEYED || world_effects(sim) == 0) &&
	       ask_store(sim, &stmt_redriven).rows[0].n == 0; /* once, or there would be no end of it */
}

static void build_redrive(const struct single *single, struct unit *unit)
{
	job_redrive(unit, &single->stamp, slice_str("default"), JOB);
}

static enum hx_code answered_redrive(struct single *single, const struct unit_result *result)
{
	(void)single;
	return job_redriven(result);
}

/* Redrives what was certainly not delivered, since he knows the truth; where the service dedupes he need not know. */
static void init_person(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan, (void)texts;
	single_init((struct single *)task, /* context= */ NULL, build_redrive, answered_redrive);
}

static void setup(struct sim *sim)
{
	fixture.sim = sim;
	(void)ask_store(sim, &stmt_setup);
}

/* J3: so many attempts, and no more. */
static void check_attempts(struct sim *sim)
{
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];

		if (actor->state == SIM_ASKING && actor->ask == ASK_ACT &&
		    sim_call_of(actor).attempt > policy.attempts_max)
			sim_violate(sim, "J3: it is delivered once more than it has attempts");
	}
}

static void check(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_check);

	if (db_cell(&result.rows[0], 0, 1)->i)
		sim_violate(sim, "J1: a job is due that cannot be claimed, or has ended and is due, or the reverse");
	if (db_cell(&result.rows[0], 0, 2)->i)
		sim_violate(sim, "a job is RUNNING and nobody's, or the reverse");
	if (slice_is(db_cell(&result.rows[0], 0, 0)->s, JOB_COMPLETED) && world_effects(sim) != 1)
		sim_violate(sim, "a job is COMPLETED and was delivered %u times", world_effects(sim));
	if (world_effects(sim) > 1)
		sim_violate(sim, "an after-effect was delivered twice");
	check_attempts(sim);
	check_left(sim);
}

static void explore(const char *name, enum sim_world world, const struct action *second, struct sim_bounds bounds)
{
	struct sim_scenario scenario = {
		.name = name,
		.subjects_n = 1,
		.kind = job_kind(),
		.initial = JOB_AVAILABLE,
		.driven = true,
		.nodes_n = 3,
		.cast_n = fixture.person ? 4 : 3,
		.cast = {{"node-1", 0, true, init_delivery, &fixture.action, is_due},
			 {"node-2", 1, true, init_delivery, second, is_due},
			 {"janitor", 2, true, init_lapser, NULL, is_past},
			 {"person", 2, true, init_person, NULL, may_redrive}},
		.bounds = bounds,
		.world = world,
		.fails_late = fixture.fails_late,
		.setup = setup,
		.check = check,
		.rows = &rows_of_jobs,
	};

	walk_all(&scenario, STATES_MAX);
}

static void act_with(enum action_effect effect)
{
	fixture.person = fixture.fails_late = false;
	fixture.other = (struct action){.name = "mail", .kind = ACTION_HTTP, .effect = effect};
	fixture.action = (struct action){.name = "mail", .kind = ACTION_HTTP, .effect = effect};
	fixture.lacking = (struct action){.name = "mail", .kind = ACTION_NATIVE, .effect = effect, .absent = true};
}

static const struct sim_bounds usual = {.lapses = 1, .crashes = 1, .lost_answers = 1};

static void exhaustive_keyed(void **state)
{
	(void)state;
	act_with(EFFECT_KEYED);
	explore("an after-effect, two nodes, keyed service", WORLD_KEYED, &fixture.action, usual);
}

/* The service may still be at it: asked again, and no attempt is used up. */
static void exhaustive_unsettled(void **state)
{
	(void)state;
	act_with(EFFECT_KEYED);
	explore("an after-effect, a service that is still at it", WORLD_KEYED, &fixture.action,
		(struct sim_bounds){.lapses = 1, .crashes = 1, .unsettled = 2});
}

/* Workers that die over it, one after the other: it is parked in the end. */
static void exhaustive_lapses(void **state)
{
	(void)state;
	act_with(EFFECT_KEYED);
	explore("an after-effect that is lost over and over, commits that fail", WORLD_KEYED, &fixture.action,
		(struct sim_bounds){.lapses = 3, .failures = 1});
}

static void exhaustive_claimed(void **state)
{
	(void)state;
	act_with(EFFECT_CLAIMED);
	fixture.person = true;
	explore("an after-effect, two nodes and a person, plain service", WORLD_PLAIN, &fixture.action,
		(struct sim_bounds){.lapses = 1, .crashes = 1});
}

/* Each node has another version in force. After a definite failure that one is right, if none before it was in doubt. */
static void exhaustive_versions(void **state)
{
	(void)state;
	act_with(EFFECT_KEYED);
	explore("an after-effect, two versions of its definition", WORLD_KEYED, &fixture.other,
		(struct sim_bounds){.lapses = 1, .crashes = 1, .lost_answers = 1, .unsettled = 1});
}

/* What the service was still at is refused, redriven, and refused again: of the first call nobody has heard. */
static void exhaustive_redriven(void **state)
{
	(void)state;
	act_with(EFFECT_KEYED);
	fixture.person = fixture.fails_late = true;
	explore("an after-effect, two versions of its definition and a person", WORLD_KEYED, &fixture.other,
		(struct sim_bounds){.lapses = 1, .lost_answers = 1, .unsettled = 1});
}

static void exhaustive_left(void **state)
{
	(void)state;
	act_with(EFFECT_KEYED);
	explore("an after-effect, a node without its function", WORLD_KEYED, &fixture.lacking, usual);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive_keyed),    cmocka_unit_test(exhaustive_unsettled),
		cmocka_unit_test(exhaustive_lapses),   cmocka_unit_test(exhaustive_claimed),
		cmocka_unit_test(exhaustive_left),     cmocka_unit_test(exhaustive_versions),
		cmocka_unit_test(exhaustive_redriven),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
