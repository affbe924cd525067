/* What the simulator has to know of entities, for scenarios that fire steps of theirs. */
#ifndef HX_TESTS_SIM_ENTITIES_H
#define HX_TESTS_SIM_ENTITIES_H

#include "base/hash.h"
#include "flow/entity_step.h"
#include "sim/invariant.h"
#include "sim/sim.h"

/* The subjects are made by the simulator; here is what makes them entities: e1, e2, … */
static const struct db_stmt stmt_entities = {
	.name = "sim_entities",
	.sql = "INSERT INTO hx_entity (subject, workspace, workflow, name, data)"
	       " SELECT id, 'default', ?1, 'e' || id, '{}' FROM hx_subject",
	.in = "t",
	.out = "",
};

static void make_entities(struct sim *sim, const char *workflow)
{
	struct unit unit;

	unit_init(&unit, 0);
	UNIT_ADD(&unit, UNIT_ANY, &stmt_entities, db_str(workflow));
	(void)sim_run_unit(sim, &unit);
}

/* The calls that are written down, and the data that goes with them, decide what may be sent. */
static const struct db_stmt stmt_calls = {
	.name = "sim_calls",
	.sql = "SELECT claim_step, claim_input, claim_effort, claim_version, claim_requester, data FROM hx_entity",
	.in = "",
	.out = "ttiitt",
};

static const struct db_stmt stmt_kept = {
	.name = "sim_kept",
	.sql = "SELECT step, effort, from_status, requester, input, data, version, open FROM hx_kept_call ORDER BY subject, step, effort",
	.in = "",
	.out = "titttti"
	       "i",
};

static const struct db_stmt stmt_note = {
	.name = "sim_note",
	.sql = "SELECT count(*) FROM hx_kept_call WHERE subject = ?1 AND op = ?2",
	.in = "ii",
	.out = "i",
};

/* NULL: it is something else. */
static const struct entity_step *step_of(const struct sim *sim, unsigned actor)
{
	const struct task *task = &sim->state.actors[actor].task.task;

	return task->kind && strcmp(task->kind->name, "step") == 0 ? (const struct entity_step *)task : NULL;
}

/* Ops are no part of a state; whether the one that somebody looks for stands there is. */
static uint64_t hash_calls(struct sim *sim, uint64_t hash)
{
	struct unit unit;

	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct entity_step *s = step_of(sim, i);

		if (!s || s->task.at != STEP_LOOKING_UP_NOTE)
			continue;
		unit_init(&unit, 0);
		UNIT_ADD(&unit, UNIT_ANY, &stmt_note, db_int(s->subject), db_int(s->stamp.op));

		struct unit_result result = sim_run_unit(sim, &unit);

		hash = hash_mix(hash, i * 2u + (db_cell(&result.rows[0], 0, 0)->i != 0));
	}
	return sim_hash_answer(sim, &stmt_kept, sim_hash_answer(sim, &stmt_calls, hash));
}

static int64_t never(struct sim *sim)
{
	(void)sim;
	return INT64_MAX;
}

static void before_unit(struct sim *sim, const struct unit *unit)
{
	(void)sim, (void)unit;
}

static void after_unit(struct sim *sim, const struct unit *unit, enum unit_verdict verdict)
{
	(void)sim, (void)unit, (void)verdict;
}

static void tell_nothing(struct sim *sim, struct strbuf *words)
{
	(void)sim, (void)words;
}

static const struct sim_rows rows_of_entities = {
	.next_moment = never,
	.hash = hash_calls,
	.before_unit = before_unit,
	.after_unit = after_unit,
	.tell = tell_nothing,
};

#endif
