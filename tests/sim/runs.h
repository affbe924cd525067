/*
 * What the simulations of runs share: the checks of its rows and of effects, and the cast (run_world.h has the run, run_workers.h
 * the workers outside of the engine).
 *
 * On every edge: R1 to R8 of flow/run.h as far as rows show them; effects in their order, undone in reverse, none twice under
 * one key (in a plain world: none twice at all). And from every state in which nothing goes on but time: if from there on
 * all went well, the run would come to its end, or to where only a person or an event can move it.
 */
#ifndef HX_TESTS_SIM_RUNS_H
#define HX_TESTS_SIM_RUNS_H

#include "sim/run_workers.h"
#include "sim/walks.h"
#include "sim/well.h"

/* ---- what must hold ---- */

/* What the check has seen of the rows, when a unit last changed some. Rows of steps never change but for the marker, and never
 * go. */
struct notes {
	uint64_t rows[STEPS_MAX];
	bool undone[STEPS_MAX];
	unsigned present; /* rows of steps, as a mask */
	bool owned, doubt, job;
};

static const struct run_step *step_at(size_t position)
{
	return &fixture.machine->definition->steps[position];
}

static inline size_t steps_n(void)
{
	return fixture.machine->definition->steps_n;
}

static inline bool is_task(size_t position)
{
	return step_at(position)->type == RUN_TASK;
}

static inline int64_t undo_mask(void)
{
	int64_t mask = 0;

	for (size_t i = 0; i < steps_n(); i++)
		mask |= step_at(i)->compensate ? INT64_C(1) << i : 0;
	return mask;
}

static inline int64_t event_mask(void)
{
	int64_t mask = 0;

	for (size_t i = 0; i < steps_n(); i++)
		mask |= step_at(i)->type == RUN_EXTERNAL_EVENT || step_at(i)->type == RUN_APPROVAL ? INT64_C(1) << i
												   : 0;
	return mask;
}

/* Was the effect of this step there (redo < 0: that of its compensation)? When? */
static inline bool did(const struct sim *sim, size_t position, int redo, unsigned *ret_at)
{
	return world_did(sim, fixture.keys[position][1 + redo], ret_at);
}

static inline bool did_at_all(const struct sim *sim, size_t position, unsigned *ret_at)
{
	for (int redo = REDO_MAX; redo >= 0; redo--)
		if (did(sim, position, redo, ret_at))
			return true;
	return false;
}

/* R2. */
static inline void check_steps(struct sim *sim)
{
	struct notes *notes = (struct notes *)sim->state.notes;
	struct unit_result result = ask_store(sim, &stmt_steps);
	const struct db_rows *rows = &result.rows[0];
	unsigned present = 0;

	_Static_assert(sizeof *notes <= SIM_NOTES_BYTES, "the notes fit");
	for (size_t i = 0; i < rows->n; i++) {
		size_t position = (size_t)db_cell(rows, i, 0)->i;
		struct slice status = db_cell(rows, i, 1)->s, output = db_cell(rows, i, 2)->s;
		uint64_t hash = hash_bytes(hash_bytes(1, status.p, status.n), output.p, output.n);
		bool undone = db_cell(rows, i, 3)->type != DB_NULL;

		present |= 1u << position;
		if (notes->rows[position] && notes->rows[position] != hash)
			sim_violate(sim, "R2: the row of step %zu has changed", position);
		if (notes->undone[position] && !undone)
			sim_violate(sim, "R2: the marker of step %zu is gone", position);
		notes->rows[position] = hash;
		notes->undone[position] = undone;
	}
	for (size_t i = 0; i < steps_n(); i++)
		if (notes->rows[i] && !(present & 1u << i))
			sim_violate(sim, "R2: the row of step %zu is gone", i);
	notes->present = present;
}

/* What is under way: R3. */
static inline void check_calls(struct sim *sim)
{
	const struct notes *notes = (const struct notes *)sim->state.notes;
	char id[ID_TEXT_BYTES], key[200];

	id_format("run", RUN, id);
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		struct act_call call;

		if (actor->state != SIM_ASKING || actor->ask != ASK_ACT)
			continue;
		call = sim_call_of(actor);
		for (size_t p = 0; p < steps_n(); p++) {
			int n = snprintf(key, sizeof key, "%s/%s/", id, step_at(p)->name);
			bool of_step = call.key.n > (size_t)n && memcmp(call.key.p, key, (size_t)n) == 0;
			bool undo = of_step && slice_is(slice_of(call.key.p + n, call.key.n - (size_t)n), "undo");

			if (of_step && !undo && notes->present & 1u << p)
				sim_violate(sim, "R3: step %zu is carried out although it has a row", p);
			if (undo && (!(notes->present & 1u << p) || notes->undone[p]))
				sim_violate(sim, "R3: step %zu is undone and was not done, or is undone already", p);
		}
	}
}

/* The order of effects: each after those before it, undone in reverse. */
static inline void check_order(struct sim *sim)
{
	unsigned last_undo = UINT_MAX, at, done_at;

	for (size_t p = 0; p < steps_n(); p++) {
		if (!did(sim, p, /* undo */ -1, &at))
			continue;
		if (!did_at_all(sim, p, &done_at) || done_at > at)
			sim_violate(sim, "step %zu was undone before it was done", p);
		if (at > last_undo)
			sim_violate(sim, "step %zu was undone behind one before it", p);
		last_undo = at;
	}
	for (size_t p = 0; p < steps_n(); p++)
		if (did_at_all(sim, p, &done_at) && last_undo != UINT_MAX && done_at > last_undo)
			sim_violate(sim, "step %zu was done although the run is being undone", p);
}

/* R8: where an effect is there and no row says so, somebody holds the run, or it is in doubt. */
static inline void check_doubt(struct sim *sim)
{
	const struct notes *notes = (const struct notes *)sim->state.notes;
	unsigned at;

	for (size_t p = 0; p < steps_n() && !notes->owned && !notes->doubt && !notes->job; p++) {
		if (is_task(p) && !(notes->present & 1u << p) && did_at_all(sim, p, &at))
			sim_violate(sim, "R8: the effect of step %zu is there, and the run does not doubt it", p);
		if (is_task(p) && !notes->undone[p] && did(sim, p, /* undo */ -1, &at))
			sim_violate(sim, "R8: step %zu is undone, and the run does not doubt it", p);
	}
}

static inline void check_rows(struct sim *sim)
{
	static const char *const words[] = {
		"R5: a run that had ended went on",
		"R5: CANCELLED before everything was undone",
		"R5: COMPLETED without all steps",
		"an event is taken by a step that has not ended",
		"a step that waited for an event has taken none, or several",
	};
	enum { FOUND = sizeof words / sizeof *words };
	struct notes *notes = (struct notes *)sim->state.notes;
	struct unit unit;

	sim_check_runs(sim);
	sim_check_counts(sim);
	unit_init(&unit, 0);
	UNIT_ADD(&unit, UNIT_ANY, &stmt_check, db_int((int64_t)steps_n()), db_int(undo_mask()), db_int(event_mask()));

	struct unit_result result = sim_run_unit(sim, &unit);

	for (size_t i = 0; i < FOUND; i++)
		if (db_cell(&result.rows[0], 0, i)->i)
			sim_violate(sim, "%s", words[i]);
	notes->owned = db_cell(&result.rows[0], 0, FOUND)->i;
	notes->doubt = db_cell(&result.rows[0], 0, FOUND + 1)->i;
	notes->job = db_cell(&result.rows[0], 0, FOUND + 2)->i;
}

static const struct db_stmt stmt_held = {
	.name = "sim_run_held",
	.sql = "SELECT count(*) FROM hx_run WHERE awaits = 'person'",
	.in = "",
	.out = "i",
};

/* What the other side is still at: the same attempt is made again, and not for ever. */
static inline void check_unsettled(struct sim *sim)
{
	if (fixture.never_held && rows_changed) {
		struct unit_result result = ask_store(sim, &stmt_held);

		if (db_cell(&result.rows[0], 0, 0)->i)
			sim_violate(sim, "a person is asked although nobody was lost and nothing has failed");
	}
	if (sim->state.left.unsettled < fixture.unsettled_left)
		sim_violate(sim, "the other side is asked again although ten minutes are over");
}

static inline void check(struct sim *sim)
{
	check_unsettled(sim);
	check_left(sim);
	if (rows_changed) {
		rows_changed = false;
		check_steps(sim);
		check_rows(sim);
	}
	if (sim->scenario->world == WORLD_UNWATCHED)
		return;
	check_calls(sim);
	check_order(sim);
	check_doubt(sim);
	if (world_repeated(sim))
		sim_violate(sim, "an effect happened twice");
}

/* ---- nothing gets stuck ---- */

static inline bool is_due(struct sim *sim)
{
	return ask_store(sim, &stmt_due).rows[0].n > 0;
}

static inline bool settle_one(struct sim *sim, int64_t *id)
{
	union sim_task task;

	if (is_due(sim))
		run_drive_init((struct run_drive *)&task, RUN, &policy, &sim->texts);
	else if (job_is_due(sim))
		init_worker(&task, &workers[0], &sim->texts);
	else if (job_is_past(sim))
		init_lapser(&task, NULL, &sim->texts);
	else
		task.task.kind = NULL;
	if (task.task.kind) {
		go_well(sim, &task.task, id, SETTLE_ROUNDS_MAX, /* committed= */ NULL);
		return true;
	}
	return false;
}

static const struct db_stmt stmt_rest = {
	.name = "sim_run_rest",
	.sql = "SELECT s.status, r.awaits FROM hx_run r JOIN hx_subject s ON s.id = r.subject",
	.in = "",
	.out = "tt",
};

static inline void check_settled(struct sim *sim)
{
	struct unit_result result = ask_store(sim, &stmt_rest);
	struct slice status = db_cell(&result.rows[0], 0, 0)->s;
	const struct db_value *awaits = db_cell(&result.rows[0], 0, 1);
	bool held = awaits->type != DB_NULL && slice_is(awaits->s, RUN_AWAITS_PERSON);
	bool waits = awaits->type != DB_NULL && fixture.may_wait && slice_is(status, RUN_WAITING);
	char words[40];
	unsigned at;

	snprintf(words, sizeof words, "%.*s", SLICE_ARGS(status));
	if (!run_is_terminal(words) && !held && !waits && !(fixture.may_pause && slice_is(status, RUN_PAUSED)))
		sim_violate(sim, "R6: when all goes well, the run stays %s for ever", words);
	for (size_t p = 0; p < steps_n() && sim->scenario->world != WORLD_UNWATCHED; p++) {
		if (slice_is(status, RUN_COMPLETED) && is_task(p) && !did_at_all(sim, p, &at))
			sim_violate(sim, "the run is COMPLETED without the effect of step %zu", p);
		if (slice_is(status, RUN_CANCELLED) && step_at(p)->compensate && did_at_all(sim, p, &at) &&
		    !did(sim, p, /* undo */ -1, &at))
			sim_violate(sim, "the run is CANCELLED, and step %zu was not undone", p);
	}
}

static inline void settled(struct sim *sim)
{
	rows_changed = true;
	check(sim);
	check_settled(sim);
}

static inline void quiet(struct sim *sim)
{
	static const struct well well = {settle_one, settled, SETTLE_ROUNDS_MAX,
					 "R6: the run does not come to rest although all goes well"};

	try_well(sim, &well);
}

/* ---- the cast ---- */

static inline void init_driver(union sim_task *task, const void *plan, struct arena *texts)
{
	run_drive_init((struct run_drive *)task, RUN, plan ? plan : &policy, texts);
}

static inline void init_verb(union sim_task *task, const void *plan, struct arena *texts)
{
	run_verb_init((struct run_verb *)task, plan, texts);
}

#define VERB(what, ...)                                                                                                \
	(const struct run_verb_request)                                                                                \
	{                                                                                                              \
		.kind = what, .workspace = {"default", 7}, .subject = RUN, .policy = &policy, __VA_ARGS__              \
	}

static const struct run_verb_request cancel = VERB(RUN_CANCEL);
static const struct run_verb_request pause_it = VERB(RUN_PAUSE);
static const struct run_verb_request resume_it = VERB(RUN_RESUME);

#define DRIVERS                                                                                                        \
	{"driver-1", 0, true, init_driver, NULL, is_due},                                                              \
	{                                                                                                              \
		"driver-2", 1, true, init_driver, NULL, is_due                                                         \
	}

#define LACKING_DRIVERS                                                                                                \
	{"driver", 0, true, init_driver, NULL, is_due},                                                                \
	{                                                                                                              \
		"driver-that-lacks", 1, true, init_driver, &lacking_policy, is_due                                     \
	}

static inline bool is_probe(const void *action)
{
	return strcmp(((const struct action *)action)->name, "ask") == 0;
}

static inline void name_keys(size_t position)
{
	char id[ID_TEXT_BYTES], key[200];

	id_format("run", RUN, id);
	for (int redo = -1; redo <= REDO_MAX; redo++) {
		if (redo < 0)
			snprintf(key, sizeof key, "%s/%s/undo", id, step_at(position)->name);
		else
			snprintf(key, sizeof key, "%s/%s/%d", id, step_at(position)->name, redo);
		fixture.keys[position][1 + redo] = world_key(slice_str(key));
	}
}

static inline void setup(struct sim *sim)
{
	fixture.sim = sim;
	for (size_t p = 0; p < steps_n(); p++)
		name_keys(p);
	(void)ask_store(sim, &stmt_setup);
	(void)ask_store(sim, &stmt_setup_counted);
	if (fixture.times_out_in_ms) {
		struct unit unit;

		unit_init(&unit, 0);
		UNIT_ADD(&unit, UNIT_ANY, &stmt_setup_time, db_int(fixture.times_out_in_ms));
		(void)sim_run_unit(sim, &unit);
	}
}

/* What all scenarios have in common. */
static inline void complete(struct sim_scenario *scenario)
{
	scenario->subjects_n = 1;
	scenario->kind = run_kind();
	scenario->initial = RUN_PENDING;
	scenario->driven = true;
	scenario->setup = setup;
	scenario->check = check;
	scenario->quiet = quiet;
	scenario->is_probe = is_probe;
	scenario->rows = &rows_of_runs;
}

static inline void explore(struct sim_scenario scenario)
{
	complete(&scenario);
	walk_all(&scenario, STATES_MAX);
}

static inline void explore_at_random(struct sim_scenario scenario)
{
	unsigned walks = getenv("HAPAX_SOAK") ? 100000 : 1000;

	complete(&scenario);
	assert_true(walk_at_random(&scenario, walks, 390) > walks / 2);
}

/* ---- definitions ---- */

#define ONCE ",\"retry\":{\"max_attempts\":1}"
#define TWICE ",\"retry\":{\"max_attempts\":2,\"initial\":\"1s\",\"jitter\":false}"
#define UNDO ",\"compensate\":\"undo\""
#define TASK(name, more) "{\"name\":\"" name "\",\"type\":\"task\",\"action\":\"do\"" more "}"

#define EVENT "{\"name\":\"paid\",\"type\":\"external_event\",\"event\":\"payment\""

#endif
