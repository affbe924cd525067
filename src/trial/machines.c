/* Definitions made ready for a trial: machines, the services that they call, and who calls these. */
#include <stdio.h>

#include "trial/parts.h"

/* ---- services ---- */

#define BIT(may) (1u << (may))
#define MAY_BY_DEFAULT                                                                                                 \
	(BIT(MAY_DONE) | BIT(MAY_FAILED) | BIT(MAY_REJECTED) | BIT(MAY_TIMEOUT) | BIT(MAY_TIMEOUT_AFTER) |             \
	 BIT(MAY_LATE))

static void service_said(struct trial_service *s, const struct trial_service_said *said)
{
	if (!said)
		return;
	s->may = said->may ? said->may : s->may;
	s->dedupes = said->dedupes_said ? said->dedupes : s->dedupes;
	s->guesses |= said->guesses;
	s->voids |= said->voids;
	s->returns = said->returns.raw.p ? said->returns.raw : s->returns;
	s->tells = said->tells;
	s->event = said->event;
}

/* What a definition says of its services goes, unless the world's file says something else. */
static struct trial_service *service_of(struct trial *t, const struct action *action)
{
	struct trial_service *s;

	for (size_t i = 0; i < t->services_n; i++)
		if (t->services[i].action == action)
			return &t->services[i];
	if (t->services_n == TRIAL_ACTIONS_MAX)
		return NULL;
	s = &t->services[t->services_n++];
	*s = (struct trial_service){
		.action = action,
		.may = MAY_BY_DEFAULT,
		.repeats = action->effect == EFFECT_IDEMPOTENT,
		.dedupes = action->effect == EFFECT_KEYED,
		.returns = slice_str("{}"),
	};
	if (s->repeats) /* when it happens does not matter */
		s->may &= ~BIT(MAY_LATE);
	service_said(s, trial_world_service(t->adding->world, action->name));
	service_said(s, trial_world_service(t->world, action->name));
	return s;
}

/* Asked, and nothing happens by it. */
static void only_asked(struct trial *t, const struct action *action, bool rejects)
{
	struct trial_service *s = service_of(t, action);

	if (s)
		s->may = BIT(MAY_DONE) | BIT(MAY_TIMEOUT) | (rejects ? BIT(MAY_REJECTED) : 0);
}

static void add_caller(struct trial *t, struct trial_caller c, const struct action *action)
{
	c.service = action && action_is_outside(action) ? service_of(t, action) : NULL;
	for (size_t i = 0; i < t->callers_n; i++) {
		const struct trial_caller *other = &t->callers[i];

		if (other->of == c.of && other->role == c.role && other->service == c.service &&
		    strcmp(other->step, c.step) == 0)
			return;
	}
	if (t->callers_n < TRIAL_ACTIONS_MAX)
		t->callers[t->callers_n++] = c;
}

static void add_asked(struct trial *t, struct trial_caller c, const struct action *action, bool rejects)
{
	if (!action || !action_is_outside(action))
		return;
	c.role = ROLE_ASK;
	add_caller(t, c, action);
	only_asked(t, action, rejects);
}

static void add_view(struct trial *t, struct trial_caller c, const struct step_view *view)
{
	if (!view->allowed || view->start != STARTS_HERE)
		return;
	add_caller(t, c, view->action);
	add_asked(t, c, view->validation, /* rejects= */ true);
	add_asked(t, c, view->action ? view->action->probe : NULL, /* rejects= */ false);
	c.role = ROLE_AFTER;
	t->has_effects |= view->after_effects_n > 0;
	for (size_t i = 0; i < view->after_effects_n; i++)
		if (action_is_outside(view->after_effects[i]))
			add_caller(t, c, view->after_effects[i]);
}

static void add_entity(struct trial *t, const struct definition *d)
{
	const struct workflow *w = d->entity;

	for (size_t i = 0; i < w->steps_n; i++)
		for (size_t v = 0; v <= w->requesters_n; v++)
			add_view(t,
				 (struct trial_caller){
					 .of = d, .step = w->steps[i].step_key, .line = w->steps[i].line, .order = i},
				 &w->steps[i].views[v]);
}

static void add_run_steps(struct trial *t, const struct definition *d, const struct run_definition *part)
{
	for (size_t i = 0; i < part->steps_n; i++) {
		const struct run_step *step = &part->steps[i];
		struct trial_caller c = {
			.of = d, .step = step->name, .line = step->line, .run_step = step, .order = t->callers_n};

		t->has_events |= step->type == RUN_EXTERNAL_EVENT || step->type == RUN_APPROVAL;
		add_caller(t, c, step->type == RUN_TASK ? step->action : NULL);
		add_asked(t, c, step->action ? step->action->probe : NULL, /* rejects= */ false);
		c.role = ROLE_UNDO;
		if (step->type == RUN_TASK && step->compensate && action_is_outside(step->compensate))
			add_caller(t, c, step->compensate);
		for (size_t p = 0; p < step->parts_n; p++)
			add_run_steps(t, d, step->parts[p].definition);
	}
}

static void add_run(struct trial *t, const struct definition *d)
{
	struct trial_caller c = {.of = d, .step = "", .role = ROLE_AFTER};

	add_run_steps(t, d, d->run);
	t->has_effects |= d->run->failure_effects_n > 0;
	for (size_t i = 0; i < d->run->failure_effects_n; i++) {
		c.line = d->run->failure_effects[i]->line;
		if (action_is_outside(d->run->failure_effects[i]))
			add_caller(t, c, d->run->failure_effects[i]);
	}
}

/* It is asked for again until it is done: when that is, and how often, does not matter. */
static void add_repeated(struct trial *t, struct trial_caller c, const struct action *action, enum trial_role role)
{
	if (!action)
		return;
	c.role = role;
	add_caller(t, c, action);
	if (action_is_outside(action) && service_of(t, action))
		service_of(t, action)->repeats = true;
}

static void add_batch(struct trial *t, const struct definition *d)
{
	const struct batch_definition *b = d->batch;
	struct trial_caller c = {.of = d, .step = TRIAL_ITEM, .line = b->item_action->line};

	add_caller(t, c, b->item_action);
	add_asked(t, c, b->item_action->probe, /* rejects= */ false);
	add_repeated(t, c, b->item_action->void_action, ROLE_VOID);
	add_repeated(t, c, b->cleanup_action, ROLE_UNDO);
	c.step = "";
	c.role = ROLE_AFTER;
	t->has_effects |= b->after_effects_n > 0 || b->cleanup_action;
	for (size_t i = 0; i < b->after_effects_n; i++)
		if (action_is_outside(b->after_effects[i]))
			add_caller(t, c, b->after_effects[i]);
}

/* ---- machines ---- */

/* Statements name tables of the user's: that they have run is written down, in the same unit; where the tables are not given, in their place. */
static void count_instead(struct trial *t, struct action *action)
{
	struct action_statement *statement = arena_zalloc(t->arena, sizeof *statement);
	char sql[WORKFLOW_NAME_MAX + 100];

	ASSERT(statement);
	snprintf(sql, sizeof sql, "INSERT INTO trial_ledger (action, effect) VALUES ('%s', ?1)", action->name);
	statement->name = "done";
	statement->sql = arena_copy(t->arena, slice_str(sql)).p;
	statement->params_n = 1;
	statement->params[0] = "key";
	t->has_sql = true;
	if (t->tables.names_n) {
		t->machines[t->machines_n - 1].meets |= trial_tables_touched(t, action, statement);
		return;
	}
	action->statements_n = 1;
	action->statements = statement;
}

/* What is parsed belongs to the trial, which has it alone. */
static void adapt(struct trial *t, const struct definition *d)
{
	struct action *actions = (struct action *)(uintptr_t)d->actions;

	for (size_t i = 0; i < d->actions_n; i++)
		if (actions[i].kind == ACTION_SQL)
			count_instead(t, &actions[i]);
}

static const struct entity_machine *entity_machine(struct trial *t, const struct definition *d, int64_t version,
						   struct trial_machine *m)
{
	struct workflow *w = (struct workflow *)(uintptr_t)d->entity;
	const struct entity_table *table = trial_tables_entity(t, w, m);

	t->has_table |= w->table.table && !table;
	if (!table)
		w->table.table = NULL;
	return entity_machine_new(w, version, table, t->arena);
}

/* A rest that is spread at random is another in every schedule, and nothing depends on it. */
static void unspread(const struct run_definition *d)
{
	struct run_step *steps = (struct run_step *)(uintptr_t)d->steps;

	for (size_t i = 0; i < d->steps_n; i++) {
		steps[i].retry.jitter = false;
		for (size_t p = 0; p < steps[i].parts_n; p++)
			unspread(steps[i].parts[p].definition);
	}
}

static const struct batch_machine *batch_machine(const struct trial *t, const struct batch_definition *d)
{
	struct batch_machine *machine = arena_zalloc(t->arena, sizeof *machine);

	ASSERT(machine);
	((struct batch_definition *)(uintptr_t)d)->retry.jitter = false;
	*machine = (struct batch_machine){d, 1};
	return machine;
}

static bool is_limited(const struct definition *d)
{
	bool limited = d->run && d->run->limits.concurrency.max;

	for (size_t i = 0; i < d->actions_n; i++)
		limited |= d->actions[i].limits.concurrency.max > 0;
	return limited && !d->batch;
}

void trial_add_machine(struct trial *t, const struct definition *d, int64_t version)
{
	struct trial_machine *m = &t->machines[t->machines_n];

	t->has_function |= d->function != NULL;
	if (d->function || t->machines_n == TRIAL_MACHINES_MAX)
		return;
	t->machines_n++;
	t->adding = d;
	adapt(t, d);
	m->of = d;
	m->version = version;
	m->limited = is_limited(d);
	if (d->run) {
		unspread(d->run);
		add_run(t, d);
		m->run = run_machine_new(d->run, version, t->arena);
	} else if (d->batch) {
		add_batch(t, d);
		m->batch = batch_machine(t, d->batch);
	} else {
		add_entity(t, d);
		m->entity = entity_machine(t, d, version, m);
	}
	ASSERT(m->run || m->entity || m->batch);
}
