/*
 * The entity of the scenarios of its steps: `close` leads from approved to closed, as the definition of each test says, fired by two callers or
 * three, beside a janitor or a recovery; what must hold in all of them is in check(). See test_entity_step.c.
 */
#ifndef HX_TESTS_SIM_CLOSING_H
#define HX_TESTS_SIM_CLOSING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/id.h"
#include "flow/entity_step.h"
#include "flow/janitor.h"
#include "sim/entities.h"
#include "sim/explore.h"
#include "sim/invariant.h"
#include "sim/left.h"
#include "sim/walks.h"
#include "sim/world.h"

#define STATES_MAX 20000000

static const char definition[] =
	"{\"workflow\":\"billing\",\"kind\":\"entity\",\"status_types\":[\"approved\",\"closing\",\"closed\"],"
	"\"initial_status\":\"approved\",\"actions\":{"
	"\"Close\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/close\",\"effect\":\"%s\"%s},"
	"\"Ask\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/ask\",\"effect\":\"idempotent\"},"
	"\"Mail\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/mail\",\"effect\":\"keyed\"}},"
	"\"steps\":[{\"step_id\":20,\"step_key\":\"close\",\"status\":\"approved\",\"successful_state\":\"closed\","
	"\"action\":\"Close\",\"success_after_effect\":[\"Mail\"]%s}]}";

/* One world per test: definitions live as long as the program. */
static struct {
	struct arena arena;
	const struct entity_machine *machine, *second; /* the second version; NULL: there is none */
	const struct entity_machine
		*lacking; /* the second caller's and the janitor's program lacks a function; NULL: no */
	struct step_request rq;
	struct janitor_rule rule;
	struct janitor_rules rules;
	unsigned effects_max;
	bool differ;                              /* the callers' inputs */
	const char *other_requester, *other_step; /* the second caller's; NULL: as the first one's */
	const char *third_requester;              /* the third one's */
	bool changes;                             /* the second caller, and a third, change the data */
	bool fires_again;                         /* the third fires instead */
	bool reopens;                             /* the other step leads back, so that the step is done twice */
} fixture;

static inline const struct entity_machine *machine_of(const char *effect, const char *more, const char *step,
						      int64_t version)
{
	struct findings findings;
	const struct workflow *workflow;
	char text[2000];

	findings_init(&findings, &fixture.arena);
	snprintf(text, sizeof text, definition, effect, more, step);
	workflow_parse("billing.json", arena_copy(&fixture.arena, slice_str(text)), &fixture.arena, &findings,
		       &workflow);
	for (const struct finding *f = findings.first; f; f = f->next)
		printf("%s: %s\n", f->rule, f->text);
	assert_non_null(workflow);
	return entity_machine_new(workflow, version, /* table= */ NULL, &fixture.arena);
}

static inline const struct workflow *workflow_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow;
	assert_true(version == 1 || (version == 2 && fixture.second));
	return version == 1 ? fixture.machine->workflow : fixture.second->workflow;
}

static inline void parse(const char *effect, const char *probe, const char *step)
{
	arena_release(&fixture.arena);
	memset(&fixture, 0, sizeof fixture);
	arena_init(&fixture.arena, 16u << 20);
	fixture.machine = machine_of(effect, probe, step, /* version= */ 1);
	fixture.rq = (struct step_request){
		.mode = STEP_FIRE,
		.ref = {slice_str("default"), fixture.machine, slice_str("e1")},
		.step_key = slice_str("close"),
		.requester = slice_str("default"),
		.input = json_trust(slice_str("null")),
		.lease_ms = 60000,
		.workflow_of = workflow_of,
	};
	fixture.rule = (struct janitor_rule){
		.kind = fixture.machine->kind,
		.claim_into = "closing",
		.revert_to = "approved",
		.machine = fixture.machine,
	};
	fixture.rules = (struct janitor_rules){1, &fixture.rule};
	fixture.effects_max = 1;
}

/* ---- the cast ---- */

static inline void init_step(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan;
	entity_step_init((struct entity_step *)task, &fixture.rq, texts);
}

static inline void init_lacking(union sim_task *task, const void *plan, struct arena *texts)
{
	static struct step_request rq;

	(void)plan;
	rq = fixture.rq;
	rq.ref.machine = fixture.lacking;
	entity_step_init((struct entity_step *)task, &rq, texts);
}

static inline bool others_differ(void)
{
	return fixture.differ || fixture.second || fixture.other_requester || fixture.other_step;
}

/* The same with another input, or by another version, or for another requester; or another step. */
static inline void init_other(union sim_task *task, const void *plan, struct arena *texts)
{
	static struct step_request rq;

	(void)plan;
	rq = fixture.rq;
	if (fixture.second)
		rq.ref.machine = fixture.second;
	if (fixture.other_requester)
		rq.requester = slice_str(fixture.other_requester);
	if (fixture.other_step)
		rq.step_key = slice_str(fixture.other_step);
	if (fixture.differ)
		rq.input = json_trust(slice_str("{\"other\":1}"));
	entity_step_init((struct entity_step *)task, &rq, texts);
}

static inline void init_third(union sim_task *task, const void *plan, struct arena *texts)
{
	static struct step_request rq;

	(void)plan;
	rq = fixture.rq;
	rq.requester = slice_str(fixture.third_requester);
	entity_step_init((struct entity_step *)task, &rq, texts);
}

/* The plan is the member that it adds. */
static inline void init_change(union sim_task *task, const void *plan, struct arena *texts)
{
	static struct step_request x, y;
	bool first = strcmp(plan, "{\"x\":1}") == 0;
	struct step_request *rq = first ? &x : &y;

	*rq = fixture.rq;
	rq->mode = STEP_CHANGE;
	rq->version = 1;
	rq->input = json_trust(slice_str(plan));
	entity_step_init((struct entity_step *)task, rq, texts);
}

static inline void init_janitor(union sim_task *task, const void *plan, struct arena *texts)
{
	(void)plan, (void)texts;
	janitor_init((struct janitor *)task, &fixture.rules, /* budget= */ 8, (struct mono_time){0});
}

/* What a janitor starts for a claim whose step wants a probe. It finds nothing to do unless the time is over. */
static inline void init_recovery(union sim_task *task, const void *plan, struct arena *texts)
{
	static struct step_request rq;

	(void)plan;
	rq = (struct step_request){
		.mode = STEP_RECOVER,
		.ref = {.machine = fixture.lacking ? fixture.lacking : fixture.machine},
		.subject = 1,
		.lease_ms = 60000,
	};
	entity_step_init((struct entity_step *)task, &rq, texts);
}

static inline bool is_probe(const void *action)
{
	return strcmp(((const struct action *)action)->name, "Ask") == 0;
}

static const struct db_stmt stmt_count = {
	.name = "sim_after_effects",
	.sql = "SELECT (SELECT count(*) FROM hx_job), (SELECT count(*) FROM hx_history WHERE to_status = 'closed'),"
	       " (SELECT count(*) FROM hx_job WHERE (due_at IS NULL) <> ((SELECT status FROM hx_subject WHERE id = hx_job.subject)"
	       " NOT IN ('AVAILABLE', 'RETRYING'))), (SELECT max(fence) FROM hx_subject WHERE id = 1),"
	       " (SELECT count(*) FROM hx_subject s JOIN hx_entity e ON e.subject = s.id"
	       " WHERE s.owner IS NOT NULL AND (coalesce(e.claim_step, '') NOT IN ('close', 'edit') OR coalesce(e.claim_effort, s.effort + 1) > s.effort)),"
	       " (SELECT count(*) FROM hx_kept_call k JOIN hx_subject s ON s.id = k.subject WHERE s.status = 'closed' AND k.step = 'close')",
	.in = "",
	.out = "iiiiii",
};

static inline void setup(struct sim *sim)
{
	make_entities(sim, "billing");
}

/*
 * E8: nothing was ever called, everybody who may have written a call down heard that the store was away, and yet somebody is told
 * that a call is in doubt. Of steps without a claim: a claim that nobody came to use ends by its time, as one whose node was lost.
 */
static inline bool is_refused_for_nothing(const struct sim *sim)
{
	unsigned refused = 0;

	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		bool read_only = actor->state == SIM_ASKING &&
				 (!step_of(sim, i) || step_of(sim, i)->task.at <= STEP_READING);

		refused += actor->state == SIM_DONE && actor->code == HX_IN_DOUBT;
		if (!read_only &&
		    !(actor->state == SIM_DONE && (actor->code == HX_IN_DOUBT || actor->code == HX_STORE_UNAVAILABLE)))
			return false;
	}
	return refused && !sim->state.requests_n;
}

/* Under all its keys together. */
static inline unsigned effects_of(const struct sim *sim, const char *step)
{
	char id[ID_TEXT_BYTES], key[ID_TEXT_BYTES + 40];
	unsigned n = 0, at;

	id_format("ent", /* subject= */ 1, id);
	for (int effort = 0; effort < SIM_EFFECTS_MAX; effort++) {
		snprintf(key, sizeof key, "%s-%d-%s", id, effort, step);
		n += world_did(sim, world_key(slice_str(key)), &at);
	}
	return n;
}

static const struct db_stmt stmt_data = {
	.name = "sim_data",
	.sql = "SELECT CASE WHEN s.status = 'closed' THEN 1 ELSE 0 END, instr(e.data, '\"saved\":'), instr(e.data, '\"x\":1'),"
	       " instr(e.data, '\"y\":1') FROM hx_entity e JOIN hx_subject s ON s.id = e.subject",
	.in = "",
	.out = "iiii",
};

static inline void check_data(struct sim *sim)
{
	const struct sim_actor *actors = sim->state.actors;
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, &stmt_data, 0, NULL);

	struct unit_result result = sim_run_unit(sim, &unit);
	const struct db_rows *rows = &result.rows[0];

	if (result.verdict != UNIT_WON)
		return;
	if ((db_cell(rows, 0, 0)->i != 0) != (db_cell(rows, 0, 1)->i != 0))
		sim_violate(sim, "E9: what the step saves is there without its transition, or the reverse");
	for (int i = 1; i <= (fixture.fires_again ? 1 : 3); i += 2)
		if (actors[i].state == SIM_DONE && actors[i].code == HX_OK && !db_cell(rows, 0, i == 1 ? 2 : 3)->i)
			sim_violate(sim, "E9: a change of the data was acknowledged, and is not there");
}

static inline void check_effects(struct sim *sim)
{
	if (fixture.effects_max && world_effects(sim) > fixture.effects_max)
		sim_violate(sim, "E2: the action took effect %u times", world_effects(sim));
	if (fixture.other_step && !fixture.reopens &&
	    (effects_of(sim, "close") > 1 || effects_of(sim, fixture.other_step) > 1))
		sim_violate(sim, "E2: the actions took effect %u and %u times", effects_of(sim, "close"),
			    effects_of(sim, fixture.other_step));
}

/* Then the call of `close` may be in doubt still; `edit` does not lead there. */
static inline bool another_closes(void)
{
	return fixture.other_step && strcmp(fixture.other_step, "edit") != 0;
}

/* Each time that it was done is an effect of its own; and of the one that is not written down yet there is one. */
static inline void check_each(struct sim *sim, int64_t done)
{
	unsigned effects = effects_of(sim, "close");

	if (effects < done || effects > done + 1)
		sim_violate(sim, "K1: the step was done %lld times, and took effect %u times", (long long)done,
			    effects);
}

static inline void check(struct sim *sim)
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, &stmt_count, 0, NULL);

	struct unit_result result = sim_run_unit(sim, &unit);

	if (result.verdict == UNIT_WON && db_cell(&result.rows[0], 0, 0)->i != db_cell(&result.rows[0], 0, 1)->i)
		sim_violate(sim, "E1: there are %lld after-effects of %lld transitions",
			    (long long)db_cell(&result.rows[0], 0, 0)->i, (long long)db_cell(&result.rows[0], 0, 1)->i);
	if (result.verdict == UNIT_WON && db_cell(&result.rows[0], 0, 2)->i)
		sim_violate(sim, "J1: a job is due that cannot be claimed, or the reverse");
	check_left(sim);
	if (result.verdict == UNIT_WON && db_cell(&result.rows[0], 0, 3)->i == 0 && is_refused_for_nothing(sim))
		sim_violate(sim, "E8: a call is taken for one in doubt that was never made, and whose maker knew it");
	if (result.verdict == UNIT_WON && db_cell(&result.rows[0], 0, 4)->i)
		sim_violate(sim, "E5: the call that is written down is not that of the claim");
	if (result.verdict == UNIT_WON && !another_closes() && db_cell(&result.rows[0], 0, 5)->i)
		sim_violate(sim, "K1: the step is done, and its call is kept");
	if (result.verdict == UNIT_WON && fixture.reopens)
		check_each(sim, db_cell(&result.rows[0], 0, 1)->i);
	check_effects(sim);
	if (fixture.changes)
		check_data(sim);
}

static inline void explore_with(const char *name, enum sim_world world, bool recovery, bool third,
				struct sim_bounds bounds)
{
	struct sim_scenario scenario = {
		.name = name,
		.subjects_n = 1,
		.kind = fixture.machine->kind,
		.initial = "approved",
		.claim_status = "closing",
		.revert_status = "approved",
		.nodes_n = third ? 4 : 3,
		.cast_n = third ? 4 : 3,
		.cast = {{"caller-1", 0, false, init_step, NULL},
			 {"caller-2", 1, false,
			  fixture.changes   ? init_change
			  : fixture.lacking ? init_lacking
			  : others_differ() ? init_other
					    : init_step,
			  "{\"x\":1}"},
			 {recovery ? "recovery" : "janitor", 2, true, recovery ? init_recovery : init_janitor, NULL},
			 {"caller-3", 3, false,
			  fixture.third_requester                   ? init_third
			  : fixture.changes && !fixture.fires_again ? init_change
								    : init_step,
			  "{\"y\":1}"}},
		.bounds = bounds,
		.world = world,
		.setup = setup,
		.check = check,
		.is_probe = is_probe,
		.rows = &rows_of_entities,
	};

	walk_all(&scenario, STATES_MAX);
}

#define CLAIM ",\"claim_state\":[\"closing\",\"approved\"]"
#define SAVES ",\"save_as\":\"saved\""
#define CRON_CLAIMS ",\"claim_state\":{\"cron\":[\"closing\",\"approved\"],\"default\":null}"
#define PING "},\"Ping\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/ping\",\"effect\":\"keyed\""

#endif
