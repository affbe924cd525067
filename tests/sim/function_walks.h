/* The scenarios of functions: what is checked on every edge and where nothing goes on but time, and how they are walked through. */
#ifndef HX_TESTS_SIM_FUNCTION_WALKS_H
#define HX_TESTS_SIM_FUNCTION_WALKS_H

#include "sim/function_cast.h"

#define STATES_MAX (getenv("HAPAX_SOAK") ? 10000000 : 100000)
#define ROUNDS_MAX 100

/* ---- the rest of the cast ---- */

static const struct run_machine *tree;

static const struct run_machine *machine_of(const void *context UNUSED, struct slice workflow, int64_t version UNUSED)
{
	return slice_is(workflow, "tree") ? tree : NULL;
}

static bool may_be_function(const void *context UNUSED, struct slice name UNUSED)
{
	return true;
}

static const struct run_policy policy = {
	.lease_ms = LEASE_MS, .machine_of = machine_of, .may_be_function = may_be_function};

static inline void init_obeyer(union sim_task *task, const void *plan UNUSED, struct arena *texts)
{
	struct run_verb_request *rq = arena_zalloc(texts, sizeof *rq);
	int64_t subject = first_of(fixture.sim, &stmt_asked, NULL);

	*rq = (struct run_verb_request){.kind = RUN_OBEY, .subject = subject ? subject : ROOT, .policy = &policy};
	init_verb(task, rq, texts);
}

static inline void init_driver(union sim_task *task, const void *plan UNUSED, struct arena *texts)
{
	run_drive_init((struct run_drive *)task, ROOT, &policy, texts);
}

static bool is_driven(struct sim *sim)
{
	return first_of(sim, &stmt_driven, NULL) != 0;
}

#define VERB(what, ...)                                                                                                \
	{                                                                                                              \
		.kind = what, .workspace = {"default", 7}, .subject = ROOT, .policy = &policy, __VA_ARGS__             \
	}
#define WORKER(name, node, program)                                                                                    \
	{                                                                                                              \
		name, node, true, init_worker, program, f_is_claimable                                                 \
	}
#define NEXT_WORKER(name, node, program)                                                                               \
	{                                                                                                              \
		name, node, true, init_worker, program, f_is_claimable_again                                           \
	}
#define WORKER_OF_CHILD(name, node, program)                                                                           \
	{                                                                                                              \
		name, node, true, init_worker, program, g_is_claimable                                                 \
	}
#define NODE(node)                                                                                                     \
	{                                                                                                              \
		"node", node, true, init_look, NULL, is_to_be_looked_at                                                \
	}
#define OBEYER(node)                                                                                                   \
	{                                                                                                              \
		"obeyer", node, true, init_obeyer, NULL, is_asked                                                      \
	}
#define PERSON(name, node, verb)                                                                                       \
	{                                                                                                              \
		name, node, false, init_verb, verb, NULL                                                               \
	}

/* ---- what must hold ---- */

static uint64_t effect_of(const char *name, bool undo)
{
	LOCAL_STRBUF(key, 40);

	strbuf_addf(&key, "%s/0%s", name, undo ? "/undo" : "");
	return world_key(strbuf_slice(&key));
}

static const char *const effects[] = {"a", "b", "x", NULL};

/* Undone after it was done, never done after that, in reverse. */
static void check_effects(struct sim *sim)
{
	unsigned n[SIM_EFFECTS_MAX] = {0}, done, undone;

	for (unsigned i = 0; i < sim->state.effects_n; i++)
		for (unsigned k = 0; k <= i; k++)
			n[i] += sim->state.effects[i] == sim->state.effects[k];
	for (unsigned i = 0; i < sim->state.effects_n; i++)
		if (n[i] > 1 + fixture.decisions)
			sim_violate(sim, "F4: an effect was there again, and nobody had decided so");
	for (unsigned i = 0; effects[i]; i++) {
		if (!world_did(sim, effect_of(effects[i], true), &undone))
			continue;
		if (!world_did(sim, effect_of(effects[i], false), &done) || done > undone)
			sim_violate(sim, "%s was undone before it was done", effects[i]);
	}
}

static void check(struct sim *sim)
{
	int64_t fences[SIM_ACTORS_MAX] = {0}, runs[SIM_ACTORS_MAX] = {0};

	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		const struct worker *w = (const struct worker *)&actor->task;

		if (actor->state == SIM_DEAD || actor->task.task.kind != &worker_kind)
			continue;
		if (w->wrong)
			sim_violate(sim, "%s (%s, %d)", w->wrong, w->call.work.detail ? w->call.work.detail : "",
				    (int)w->said.end);
		fences[i] = w->fence;
		runs[i] = w->run;
		for (unsigned k = 0; k < i; k++)
			if (fences[k] && fences[k] == fences[i] && runs[k] == runs[i])
				sim_violate(sim, "F3: two workers have the turn with fence %lld", (long long)fences[i]);
	}
	check_effects(sim);
	if (rows_changed) {
		rows_changed = false;
		check_rows(sim);
	}
}

/* ---- nothing gets stuck ---- */

static const struct program *programs[2]; /* of f, of g */

static bool settle_one(struct sim *sim, int64_t *id)
{
	union sim_task task;

	if (is_to_be_looked_at(sim))
		init_look(&task, NULL, &sim->texts);
	else if (is_asked(sim))
		init_obeyer(&task, NULL, &sim->texts);
	else if (fixture.tree && is_driven(sim))
		init_driver(&task, NULL, &sim->texts);
	else if (f_is_claimable(sim))
		init_worker(&task, programs[0], &sim->texts);
	else if (g_is_claimable(sim))
		init_worker(&task, programs[1], &sim->texts);
	else
		return false;
	go_well(sim, &task.task, id, ROUNDS_MAX, /* committed= */ NULL);
	return true;
}

/* Its end, or what only a person, an event, or an end that waits for these can move. */
static bool may_stay(const char *status, const struct db_value *awaits, bool other_is_held)
{
	bool held = awaits->type != DB_NULL && slice_is(awaits->s, RUN_AWAITS_PERSON);
	bool child = awaits->type != DB_NULL && slice_is(awaits->s, RUN_AWAITS_CHILD);
	bool event = awaits->type != DB_NULL && awaits->s.n > 6 && memcmp(awaits->s.p, "event ", 6) == 0;

	return run_is_terminal(status) || held || (fixture.may_pause && is(status, RUN_PAUSED)) ||
	       (event && fixture.may_wait) || (child && other_is_held);
}

static void check_settled(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_end, 0, NULL);
	const struct db_rows *rows = &result.rows[0];
	bool held = false, cancelled = true;
	unsigned at;

	for (size_t i = rows->n; i-- > 0;) {
		const struct db_value *awaits = db_cell(rows, i, 1);
		char status[40];

		snprintf(status, sizeof status, "%.*s", SLICE_ARGS(db_cell(rows, i, 0)->s));
		if (!may_stay(status, awaits, held))
			sim_violate(sim, "F5: when all goes well, %.*s stays %s for ever",
				    SLICE_ARGS(db_cell(rows, i, 2)->s), status);
		held |= (awaits->type != DB_NULL && slice_is(awaits->s, RUN_AWAITS_PERSON)) || is(status, RUN_PAUSED);
		cancelled &= is(status, RUN_CANCELLED);
	}
	if (fixture.drops && first_of(sim, &stmt_dropped, NULL))
		sim_violate(sim, "C4: a child was dropped, and is not CANCELLED");
	for (unsigned i = 0; cancelled && !fixture.decisions && effects[i]; i++)
		if (world_did(sim, effect_of(effects[i], false), &at) &&
		    !world_did(sim, effect_of(effects[i], true), &at))
			sim_violate(sim, "F6: it is CANCELLED, and %s was not undone", effects[i]);
}

static void settled(struct sim *sim)
{
	rows_changed = true;
	check(sim);
	check_settled(sim);
}

static void quiet(struct sim *sim)
{
	static const struct well well = {settle_one, settled, ROUNDS_MAX,
					 "F5: it does not come to rest although all goes well"};

	try_well(sim, &well);
	rows_changed = true;
}

static void setup(struct sim *sim)
{
	struct db_value version = db_int(fixture.tree);

	fixture.sim = sim;
	(void)ask_store(sim, &stmt_setup_run, 1, &version);
	(void)ask_store(sim, &stmt_setup_counted, 0, NULL);
	if (!fixture.tree)
		(void)ask_store(sim, &stmt_setup_function, 0, NULL);
	(void)ask_store(sim, &stmt_setup_poll, 0, NULL);
}

static void explore(struct sim_scenario scenario, const struct program *f, const struct program *g)
{
	programs[0] = f;
	programs[1] = g;
	scenario.subjects_n = 1;
	scenario.kind = fixture.tree ? run_kind() : function_kind();
	scenario.initial = RUN_PENDING;
	scenario.driven = true;
	scenario.world = is(fixture.policy, "claimed hold") ? WORLD_PLAIN : WORLD_KEYED;
	scenario.setup = setup;
	scenario.check = check;
	scenario.quiet = quiet;
	scenario.rows = &rows_of_functions;
	walk_all(&scenario, STATES_MAX);
}

#endif
