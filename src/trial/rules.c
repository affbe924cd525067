/* The rules that always hold (trial.h), read off the rows and the ledger. */
#include <stdarg.h>
#include <stdio.h>

#include "sim/run_rules.h"
#include "trial/parts.h"

const char *trial_rule_name(enum trial_rule rule)
{
	static const char *const names[RULES_N] = {"engine", "once", "undone", "reverse", "silence", "stuck",    "last",
						   "money",  "same", "never",  "always",  "ends",    "sometimes"};

	return names[rule];
}

void trial_break(struct sim *sim, enum trial_rule rule, const struct trial_caller *caller, const char *format, ...)
{
	struct trial *t = trial_of(sim);
	char words[400];
	va_list args;

	if (sim->violation[0])
		return;
	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	t->broken = rule;
	t->broken_said = NULL;
	t->broken_caller = caller ? (int)(caller - t->callers) : -1;
	sim_violate(sim, "%s", words);
}

static bool is_done(struct sim *sim, int64_t subject, const char *step, enum trial_role role)
{
	const struct trial_ledger *ledger = trial_ledger(sim);
	const struct trial *t = trial_of(sim);

	for (unsigned i = 0; i < ledger->n; i++) {
		const struct trial_caller *c = &t->callers[ledger->effects[i].caller];

		if (ledger->effects[i].subject == subject && c->role == role && strcmp(c->step, step) == 0)
			return true;
	}
	return false;
}

/* ---- on every edge ---- */

/* What is CANCELLED was undone. */
static void check_cancelled(struct sim *sim, int64_t subject)
{
	const struct trial_ledger *ledger = trial_ledger(sim);
	const struct trial *t = trial_of(sim);

	for (unsigned i = 0; i < ledger->n; i++) {
		const struct trial_caller *c = &t->callers[ledger->effects[i].caller];

		if (ledger->effects[i].subject != subject || c->role != ROLE_ACTION || !c->run_step ||
		    !c->run_step->compensate || !action_is_outside(c->run_step->compensate))
			continue;
		if (!is_done(sim, subject, c->step, ROLE_UNDO))
			trial_break(sim, RULE_UNDONE, c, "the run is CANCELLED, %s has happened, and %s has not",
				    c->service->action->name, c->run_step->compensate->name);
	}
}

/* The definition of a run, or of a part of one; NULL: nobody has it here. */
static const struct run_definition *part_of(const struct run_machine *m, struct slice scope)
{
	return m ? run_definition_part(m->definition, scope.n ? scope : slice_of(NULL, 0)) : NULL;
}

/* For what is told as covered. */
static void note_reached(struct sim *sim)
{
	struct trial *t = trial_of(sim);
	struct unit_result result = trial_ask(sim, &trial_steps_ended);
	const struct db_rows *rows = &result.rows[0];

	for (size_t i = 0; i < rows->n; i++) {
		const struct run_machine *m = trial_machine_of(t, db_cell(rows, i, 0)->s, db_cell(rows, i, 3)->i);
		const struct run_definition *d = part_of(m, db_cell(rows, i, 1)->s);
		size_t position = (size_t)db_cell(rows, i, 2)->i;

		for (size_t k = 0; d && position < d->steps_n && k < t->machines_n; k++)
			if (t->machines[k].run == m)
				trial_reached(t, t->machines[k].of, d->steps[position].name);
	}
}

static const struct run_definition *definition_of(const struct trial *t, const struct db_rows *runs, size_t i)
{
	return part_of(trial_machine_of(t, db_cell(runs, i, 1)->s, db_cell(runs, i, 13)->i), db_cell(runs, i, 9)->s);
}

/* The same as the rows say it, which also know of compensations that nobody is called for; and the last comes first. */
static void check_undone(struct sim *sim, const struct db_rows *runs, size_t of)
{
	struct slice status = db_cell(runs, of, 3)->s;
	const struct run_definition *d = definition_of(trial_of(sim), runs, of);
	bool cancelled = slice_is(status, RUN_CANCELLED), before = false;
	struct unit_result result;
	const struct db_rows *rows;

	if (!d || !(cancelled || slice_is(status, RUN_CANCELLING)))
		return;
	result = trial_ask_of(sim, &trial_run_steps, db_cell(runs, of, 0)->i);
	rows = &result.rows[0];
	for (size_t i = 0; i < rows->n && db_cell(rows, i, 0)->i < (int64_t)d->steps_n; i++) {
		const struct run_step *step = &d->steps[db_cell(rows, i, 0)->i];
		bool undone = db_cell(rows, i, 2)->i,
		     stands = step->compensate && !undone && slice_is(db_cell(rows, i, 1)->s, RUN_STEP_COMPLETED);

		if (stands && cancelled)
			trial_break(sim, RULE_UNDONE, NULL, "the run is CANCELLED, and step %s is not undone",
				    step->name);
		if (stands && before)
			trial_break(sim, RULE_REVERSE, NULL, "a step before %s is undone, and %s is not", step->name,
				    step->name);
		before |= undone;
	}
}

static bool is_body(const struct run_definition *parent, const struct run_definition *d)
{
	for (size_t i = 0; parent && i < parent->steps_n; i++)
		if (parent->steps[i].type == RUN_REPEAT && parent->steps[i].parts[0].definition == d)
			return true;
	return false;
}

/* Of a repeat, the last time is undone first. */
static void check_bodies(struct sim *sim, const struct db_rows *runs, size_t of)
{
	const struct trial *t = trial_of(sim);
	const struct run_definition *d = definition_of(t, runs, of);
	size_t parent = 0;

	if (db_cell(runs, of, 2)->type == DB_NULL || !db_cell(runs, of, 9)->s.n ||
	    !(slice_is(db_cell(runs, of, 3)->s, RUN_CANCELLING) || slice_is(db_cell(runs, of, 3)->s, RUN_CANCELLED)))
		return;
	while (db_cell(runs, parent, 0)->i != db_cell(runs, of, 2)->i)
		parent++;
	for (size_t i = of + 1; i < runs->n && is_body(definition_of(t, runs, parent), d); i++)
		if (db_cell(runs, i, 2)->i == db_cell(runs, of, 2)->i && definition_of(t, runs, i) == d &&
		    !slice_is(db_cell(runs, i, 3)->s, RUN_CANCELLED))
			trial_break(sim, RULE_REVERSE, NULL,
				    "of a repeat one time is undone, and the one after it is not");
}

static void check_runs(struct sim *sim)
{
	struct unit_result result = trial_ask(sim, &trial_runs);
	const struct db_rows *rows = &result.rows[0];

	note_reached(sim);
	if (trial_has_slots(trial_of(sim)))
		trial_slots_check(sim);
	for (size_t i = 0; i < rows->n; i++) {
		if (slice_is(db_cell(rows, i, 3)->s, RUN_CANCELLED))
			check_cancelled(sim, db_cell(rows, i, 0)->i);
		check_undone(sim, rows, i);
		check_bodies(sim, rows, i);
		if (db_cell(rows, i, TRIAL_RUN_LEFT_ITS_END)->i)
			trial_break(sim, RULE_LAST, NULL, "a run that had ended went on");
	}
	sim_check_runs(sim);
}

static void check_sql(struct sim *sim)
{
	struct unit_result result = trial_ask(sim, &trial_repeated_sql);

	if (result.rows[0].n)
		trial_break(sim, RULE_ONCE, NULL, "the statements of %.*s have run twice for one decision",
			    SLICE_ARGS(db_cell(&result.rows[0], 0, 0)->s));
}

/* More at once than a limit says: calls of an action that are under way. (Those who hold a slot are counted by the engine's own rules.) */
static void check_limits(struct sim *sim)
{
	const struct action *of[SIM_ACTORS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *a = &sim->state.actors[i];
		int64_t under_way = 1;

		if (a->state != SIM_ASKING || a->ask != ASK_ACT)
			continue;
		of[n] = sim_call_of(a).action;
		for (unsigned k = 0; k < n; k++)
			under_way += of[k] == of[n];
		if (of[n]->limits.concurrency.max && !of[n]->limits.concurrency.by &&
		    under_way > of[n]->limits.concurrency.max)
			trial_break(sim, RULE_ENGINE, NULL, "more calls of %s are under way than its limit says",
				    of[n]->name);
		n++;
	}
}

void trial_check(struct sim *sim)
{
	struct trial *t = trial_of(sim);

	if (t->machine->limited && !sim->violation[0])
		check_limits(sim);
	if (!t->rows_changed || sim->violation[0])
		return;
	t->rows_changed = false;
	if (t->has_run)
		check_runs(sim);
	else if (t->machine->batch)
		trial_batch_check(sim);
	if (t->has_sql)
		check_sql(sim);
	if (t->machine->limited)
		sim_check_slots(sim);
	trial_check_own(sim, /* quiet= */ false);
}

/* ---- where nothing goes on any more ---- */

static void check_jobs(struct sim *sim)
{
	struct unit_result result = trial_ask(sim, &trial_jobs);
	const struct db_rows *rows = &result.rows[0];

	for (size_t i = 0; i < rows->n; i++)
		if (!slice_is(db_cell(rows, i, 1)->s, JOB_COMPLETED) && !slice_is(db_cell(rows, i, 1)->s, JOB_PARKED))
			trial_break(sim, RULE_STUCK, NULL, "the job of %.*s stays %.*s for ever",
				    SLICE_ARGS(db_cell(rows, i, 3)->s), SLICE_ARGS(db_cell(rows, i, 1)->s));
}

static bool awaits_somebody(const struct db_value *awaits)
{
	struct slice s = awaits->s;

	return awaits->type != DB_NULL && (slice_is(s, RUN_AWAITS_PERSON) || slice_is(s, RUN_AWAITS_CHILD) ||
					   (s.n > 6 && memcmp(s.p, RUN_AWAITS_EVENT, 6) == 0) ||
					   (s.n > 9 && memcmp(s.p, RUN_AWAITS_APPROVAL, 9) == 0));
}

/* The status of a step's row; empty: it has none. */
static struct slice status_of_step(struct sim *sim, int64_t run, size_t position)
{
	struct unit_result result = trial_ask_of(sim, &trial_run_steps, run);
	const struct db_rows *rows = &result.rows[0];

	for (size_t i = 0; i < rows->n; i++)
		if (db_cell(rows, i, 0)->i == (int64_t)position)
			return db_cell(rows, i, 1)->s;
	return slice_of("", 0);
}

/* An effect of a run that has ended: its step is done, or was skipped because its definition says so, or undone, or in doubt. */
static void check_told(struct sim *sim, const struct db_rows *rows, size_t i, const struct trial_caller *c)
{
	int64_t run = db_cell(rows, i, 0)->i;
	struct slice status = db_cell(rows, i, 3)->s, step = status_of_step(sim, run, c->run_step->position);
	const struct db_value *step_status = db_cell(rows, i, 4);
	bool unknown = step_status->type != DB_NULL && slice_is(step_status->s, RUN_STEP_UNKNOWN);

	if (slice_is(step, RUN_STEP_COMPLETED) || unknown || db_cell(rows, i, 6)->i ||
	    is_done(sim, run, c->step, ROLE_UNDO) ||
	    (slice_is(step, RUN_STEP_SKIPPED) && c->run_step->goes_on_timed_out))
		return;
	trial_break(sim, RULE_SILENCE, c,
		    "the run is %.*s, %s has happened, and the run says that step %s was not done", SLICE_ARGS(status),
		    c->service->action->name, c->step);
}

static void check_ended_runs(struct sim *sim)
{
	const struct trial_ledger *ledger = trial_ledger(sim);
	const struct trial *t = trial_of(sim);
	struct unit_result result = trial_ask(sim, &trial_runs);
	const struct db_rows *rows = &result.rows[0];

	sim_check_counts(sim);
	for (size_t i = 0; i < rows->n; i++) {
		struct slice status = db_cell(rows, i, 3)->s;

		if (!ways_is_terminal(&run_ways, status) && !awaits_somebody(db_cell(rows, i, 5)) &&
		    trial_is_begun(sim, db_cell(rows, i, 0)->i))
			trial_break(sim, RULE_STUCK, NULL, "the run stays %.*s for ever, and waits for nobody",
				    SLICE_ARGS(status));
		for (unsigned e = 0; e < ledger->n && ways_is_terminal(&run_ways, status); e++) {
			const struct trial_caller *c = &t->callers[ledger->effects[e].caller];

			if (ledger->effects[e].subject == db_cell(rows, i, 0)->i && c->role == ROLE_ACTION &&
			    c->run_step && !c->service->repeats)
				check_told(sim, rows, i, c);
		}
	}
}

/* Does this transition finish a step that calls somebody, so that it is accounted for? */
static bool finishes(const struct workflow *w, struct slice from, struct slice to)
{
	for (size_t i = 0; i < w->steps_n; i++)
		for (size_t v = 0; v <= w->requesters_n; v++) {
			const struct step_view *view = &w->steps[i].views[v];
			const char *begins = view->claim_into ? view->claim_into : w->steps[i].status;

			if (view->allowed && view->start == STARTS_HERE && view->action &&
			    action_is_outside(view->action) && slice_is(from, begins) &&
			    slice_is(to, view->successful_state))
				return true;
		}
	return false;
}

static void check_entity_told(struct sim *sim, const struct trial_member *m, unsigned in_doubt)
{
	const struct trial_ledger *ledger = trial_ledger(sim);
	const struct trial *t = trial_of(sim);
	int64_t subject = TRIAL_SUBJECT_OF(t, m);
	struct unit_result result = trial_ask_of(sim, &trial_history, subject);
	const struct db_rows *rows = &result.rows[0];
	unsigned finished = in_doubt, done = 0;

	for (size_t i = 0; i < rows->n; i++) {
		struct slice from = db_cell(rows, i, 0)->s, to = db_cell(rows, i, 1)->s;
		const struct trial_machine *next = m->machine->next;

		finished += finishes(m->machine->of->entity, from, to) ||
			    (next && finishes(next->of->entity, from, to));
	}
	for (unsigned i = 0; i < ledger->n; i++) {
		const struct trial_caller *c = &t->callers[ledger->effects[i].caller];

		done += c->role == ROLE_ACTION && !c->service->repeats && ledger->effects[i].subject == subject;
		if (done > finished)
			trial_break(sim, RULE_SILENCE, c,
				    "%s has happened, and step %s neither was done nor is its outcome held as unknown",
				    c->service->action->name, c->step);
	}
}

/* Calls that are kept, beside that of the claim; not where the entity was moved on, so that nobody goes on with the call. */
DB_STMT(kept, "trial_kept", "itt", "i",
	"SELECT count(*) FROM hx_kept_call WHERE subject = ?1 AND from_status = ?2 AND step <> ?3");

static unsigned kept_beside(struct sim *sim, const struct db_rows *rows, bool claimed)
{
	LOCAL_UNIT(unit);

	UNIT_ADD(&unit, UNIT_ANY, &kept, db_int(db_cell(rows, 0, ENTITY_SUBJECT)->i),
		 db_text(db_cell(rows, 0, ENTITY_STATUS)->s),
		 db_text(claimed ? db_cell(rows, 0, ENTITY_CLAIM_STEP)->s : slice_str("")));

	struct unit_result result = sim_run_unit(sim, &unit);

	return (unsigned)db_cell(&result.rows[0], 0, 0)->i;
}

static void check_entity(struct sim *sim, const struct trial_member *m)
{
	struct unit_result result = trial_read_entity(sim, m);
	const struct db_rows *rows = &result.rows[0];
	bool owned = db_cell(rows, 0, ENTITY_OWNER)->type != DB_NULL,
	     /* or in a claim that a new version does not have, where it stays until a person has moved it (docs/definitions.md) */
		held = owned && (db_cell(rows, 0, ENTITY_UNTIL)->i == INT64_MAX ||
				 (m->machine->next && !workflow_is_claim_status(trial_in_force(sim)->of->entity,
										db_cell(rows, 0, ENTITY_STATUS)->s)));
	bool claimed = held || db_cell(rows, 0, ENTITY_DOUBT)->i;

	if (owned && !held)
		trial_break(sim, RULE_STUCK, NULL, "the entity stays %.*s for ever",
			    SLICE_ARGS(db_cell(rows, 0, ENTITY_STATUS)->s));
	check_entity_told(sim, m, claimed + kept_beside(sim, rows, claimed));
}

void trial_quiet(struct sim *sim)
{
	const struct trial *t = trial_of(sim);

	if (trial_has_jobs(t))
		check_jobs(sim);
	if (t->has_run)
		check_ended_runs(sim);
	if (t->machine->batch)
		trial_batch_quiet(sim);
	for (size_t i = 0; i < t->members_n; i++)
		if (t->members[i].machine->entity)
			check_entity(sim, &t->members[i]);
	if (!trial_of(sim)->machine->entity || trial_ledger(sim)->clicks) /* otherwise it has not begun */
		trial_check_own(sim, /* quiet= */ true);
}
