/* Definitions to scenarios, and the walks through them. See trial.h. */
#include "trial/trial.h"

#include <stdio.h>

#include "sim/home.h"
#include "trial/parts.h"

#define NAME_BYTES 200
#define PARTS_MAX 1000
#define NEW_VERSION 2 /* where there is an old one, which is 1 */

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

/* Statements name tables of the user's, which are not here: that they have run is written down, in the same unit. */
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
	action->statements_n = 1;
	action->statements = statement;
	t->has_sql = true;
}

/* What is parsed belongs to the trial, which has it alone. */
static void adapt(struct trial *t, const struct definition *d)
{
	struct action *actions = (struct action *)(uintptr_t)d->actions;

	for (size_t i = 0; i < d->actions_n; i++)
		if (actions[i].kind == ACTION_SQL)
			count_instead(t, &actions[i]);
	if (d->entity && d->entity->table.table) {
		((struct workflow *)(uintptr_t)d->entity)->table.table = NULL;
		t->has_table = true;
	}
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

static void add_machine(struct trial *t, const struct definition *d, int64_t version)
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
	if (d->run) {
		unspread(d->run);
		add_run(t, d);
		m->run = run_machine_new(d->run, version, t->arena);
	} else if (d->batch) {
		add_batch(t, d);
		m->batch = batch_machine(t, d->batch);
	} else {
		add_entity(t, d);
		m->entity = entity_machine_new(d->entity, version, /* table= */ NULL, t->arena);
	}
	ASSERT(m->run || m->entity || m->batch);
}

/* ---- scenarios ---- */

static const struct sim_outside outside = {.end = trial_end};

static const char schema[] = "CREATE TABLE trial_ledger (action TEXT NOT NULL, effect TEXT)";

static const struct sim_user users[TRIAL_NODES_MAX] = {
#define USER(n)                                                                                                        \
	{                                                                                                              \
		schema, n, trial_rounds, trial_is_bystander, trial_lease_end, trial_is_eager, trial_stands_still,      \
			trial_allows, trial_cut, trial_forgets_versions, trial_late_n, trial_land                      \
	}
	USER(1),
	USER(2),
	USER(3),
#undef USER
};

/* One thing to walk through: a machine, an input, where an entity begins. */
struct part {
	const struct trial_machine *machine;
	struct slice input;
	const char *start, *name;
	bool given_up; /* it is larger than its share */
};

void trial_begin(struct trial *t, const struct trial_machine *machine, struct slice input, const char *start,
		 const char *name)
{
	t->machine = machine;
	t->input = input;
	t->start = start;
	t->scenario = (struct sim_scenario){
		.name = name,
		.subjects_n = 1,
		.kind = machine->run     ? run_kind()
			: machine->batch ? batch_kind()
					 : machine->entity->kind,
		.initial = machine->run     ? RUN_PENDING
			   : machine->batch ? BATCH_QUEUED
					    : start,
		.driven = true,
		.outside = &outside,
		.user = &users[t->options->nodes - 1],
		.setup = trial_setup,
		.check = trial_check,
		.quiet = trial_quiet,
		.rows = &trial_rows,
	};
	trial_cast(t);
}

struct parts {
	size_t n, room;
	struct part *items;
};

/* Which world says the inputs of a workflow: the file's, or its own; neither: there is {}. */
static const struct trial_world *inputs_of(const struct trial *t, const struct definition *of)
{
	return t->world->inputs_n || !of->world ? t->world : of->world;
}

static void add_part(struct trial *t, struct parts *parts, struct part part, size_t input)
{
	const struct trial_world *world = inputs_of(t, part.machine->of);
	char name[NAME_BYTES], more[40] = "";

	if (parts->n == parts->room)
		return;
	if (world->inputs_n > 1)
		snprintf(more, sizeof more, ", input %zu", input + 1);
	snprintf(name, sizeof name, "%s%s%s%s", part.machine->of->name, part.start ? " from " : "",
		 part.start ? part.start : "", more);
	part.name = arena_copy(t->arena, slice_str(name)).p;
	part.input = world->inputs_n ? world->inputs[input].raw : slice_str("{}");
	parts->items[parts->n++] = part;
}

static bool starts_something(const struct workflow *w, const char *status)
{
	for (size_t i = 0; i < w->steps_n; i++)
		for (size_t v = 0; v <= w->requesters_n && strcmp(w->steps[i].status, status) == 0; v++)
			if (w->steps[i].views[v].allowed && w->steps[i].views[v].start == STARTS_HERE)
				return true;
	return false;
}

static void add_parts(struct trial *t, const struct trial_machine *m, struct parts *parts)
{
	const struct trial_world *world = inputs_of(t, m->of);
	size_t inputs = world->inputs_n ? world->inputs_n : 1;

	for (size_t input = 0; input < inputs; input++) {
		if (!m->entity)
			add_part(t, parts, (struct part){.machine = m}, input);
		for (size_t s = 0; m->entity && s < m->of->entity->statuses_n; s++)
			if (starts_something(m->of->entity, m->of->entity->statuses[s]))
				add_part(t, parts, (struct part){.machine = m, .start = m->of->entity->statuses[s]},
					 input);
	}
}

/* ---- walking ---- */

struct walker {
	struct trial *t;
	struct trial_report *report;
};

static bool pass_over(void *context)
{
	const struct trial_options *o = ((const struct walker *)context)->t->options;

	return o->is_over && o->is_over(o->context);
}

static void pass_progress(void *context, const struct explore_report *so_far)
{
	const struct walker *w = context;
	struct explore_report all = w->report->walked;

	all.states += so_far->states;
	all.edges += so_far->edges;
	w->t->options->progress(w->t->options->context, w->t->scenario.name, &all);
}

/* True: go on. */
static bool walk_part(struct walker *w, struct part *part, unsigned mishaps, uint64_t edges_max)
{
	struct trial *t = w->t;
	struct explore_limits limits = {
		.states_max = TRIAL_STATES_MAX,
		.edges_max = edges_max,
		.seed = t->options->seed,
		.progress = t->options->progress ? pass_progress : NULL,
		.is_over = pass_over,
		.context = w,
	};
	struct explore_found *found = arena_zalloc(t->arena, sizeof *found);
	struct trial_story *story;
	enum explore_verdict verdict;

	ASSERT(found);
	trial_begin(t, part->machine, part->input, part->start, part->name);
	t->scenario.bounds = (struct sim_bounds){.lapses = t->options->pauses,
						 .crashes = t->options->crashes,
						 .lost_answers = t->options->lost,
						 .failures = t->options->failures,
						 .mishaps = mishaps};
	verdict = explore_within(&t->scenario, &limits, &w->report->walked, found);
	part->given_up |= verdict == EXPLORE_BOUNDED;
	if (verdict != EXPLORE_BROKEN)
		return true;
	story = arena_zalloc(t->arena, sizeof *story);
	ASSERT(story);
	story->scenario = part->name;
	story->mishaps = mishaps;
	trial_tell(t, found, story);
	w->report->story = story;
	return false;
}

static bool walk_level(struct walker *w, struct parts *parts, unsigned mishaps)
{
	uint64_t edges_max = w->t->options->edges_max;
	bool all = true;

	for (size_t i = 0; i < parts->n; i++) {
		uint64_t used = w->report->walked.edges, left = used < edges_max ? edges_max - used : 0;

		if (!parts->items[i].given_up && left / (parts->n - i) == 0)
			parts->items[i].given_up = true;
		if (!parts->items[i].given_up && !walk_part(w, &parts->items[i], mishaps, left / (parts->n - i)))
			return false;
		all &= !parts->items[i].given_up;
	}
	w->report->complete = all;
	if (all)
		w->report->complete_mishaps = mishaps;
	return true;
}

static void walk(struct walker *w, struct parts *parts)
{
	const struct trial_options *o = w->t->options;
	unsigned all = o->crashes + o->pauses + o->lost + o->failures,
		 mishaps_max = all < o->mishaps ? all : o->mishaps;

	w->report->complete_mishaps = -1u;
	for (unsigned mishaps = 0; mishaps <= mishaps_max; mishaps++)
		if (!walk_level(w, parts, mishaps)) {
			w->report->complete = false;
			return;
		}
}

/* ---- the report ---- */

static void add_left_out(struct trial_report *report, bool holds, const char *words)
{
	if (holds && report->left_out_n < TRIAL_LEFT_OUT_MAX)
		report->left_out[report->left_out_n++] = words;
}

size_t trial_fill_covered(const struct trial *t, struct trial_covered covered[TRIAL_COVERED_MAX])
{
	static const char *const roles[ROLES_N] = {"", " (compensation)", " (after-effect)", " (asked)", " (void)"};
	size_t n = 0;

	for (; n < t->callers_n && n < TRIAL_COVERED_MAX; n++) {
		const struct trial_caller *c = &t->callers[n];
		char what[WORKFLOW_NAME_MAX + 40] = "";

		if (c->service)
			snprintf(what, sizeof what, "%s%s", c->service->action->name, roles[c->role]);
		covered[n] = (struct trial_covered){
			.workflow = c->of->name,
			.step = c->step,
			.what = arena_copy(t->arena, slice_str(what)).p,
			.file = c->of->file,
			.line = c->line,
			.may = c->service ? c->service->may : 0,
			.seen = c->seen,
			.reached = c->reached,
		};
	}
	return n;
}

static bool has_stranger(const struct trial *t, const struct run_definition *d)
{
	for (size_t i = 0; i < d->steps_n; i++) {
		if (d->steps[i].workflow && !trial_machine_of(t, slice_str(d->steps[i].workflow), RUN_NEWEST))
			return true;
		for (size_t p = 0; p < d->steps[i].parts_n; p++)
			if (has_stranger(t, d->steps[i].parts[p].definition))
				return true;
	}
	return false;
}

static bool lacks_child(const struct trial *t)
{
	for (size_t i = 0; i < t->machines_n; i++)
		if (t->machines[i].run && has_stranger(t, t->machines[i].of->run))
			return true;
	return false;
}

static bool lacks_inputs(const struct trial *t)
{
	for (size_t i = 0; i < t->machines_n; i++)
		if (!inputs_of(t, t->machines[i].of)->inputs_n)
			return true;
	return false;
}

static void finish(const struct trial *t, struct trial_report *report)
{
	report->covered_n = trial_fill_covered(t, report->covered);
	add_left_out(report, true,
		     "commits whose answer is lost, and groups of units: the engine's own tests walk through these");
	add_left_out(report, t->has_sql, "statements of sql actions are counted, not run: none of them refuses");
	add_left_out(report, t->has_table, "entities of a table of yours are explored as the engine's own");
	add_left_out(report, t->has_function, "functions");
	add_left_out(report, t->has_old, "workflows that are in one version alone");
	add_left_out(report, t->has_batch_schedule, "schedules of batches");
	add_left_out(report, lacks_child(t), "runs of workflows that were not given: whoever starts one waits there");
	add_left_out(report, t->has_more_rules, "rules of your own beyond the first 256");
	add_left_out(report, lacks_inputs(t), "inputs other than {}: a world file names some");
}

/* ---- one exploration, and those that try what might help ---- */

struct exploration {
	const struct definition_set *set;
	const struct trial_world *world;
	const struct trial_options *options;
	struct arena *arena;
};

/* The first that is said to be sometimes, and never was; NULL: none. */
static const struct user_rule *first_unreached(const struct trial *t)
{
	for (size_t i = 0; i < t->own_n; i++)
		if (t->own[i].kind == RULE_IS_SOMETIMES && !t->own_reached[i])
			return &t->own[i];
	return NULL;
}

static void check_reached(struct trial *t, struct trial_report *report)
{
	const struct user_rule *rule = report->story ? NULL : first_unreached(t);
	struct trial_story *story;

	if (!rule)
		return;
	story = arena_zalloc(t->arena, sizeof *story);
	ASSERT(story);
	*story = (struct trial_story){
		.rule = RULE_SOMETIMES,
		.scenario = "all of them",
		.broken = "what is sometimes to be never was",
		.shortest = true,
		.file = rule->file,
		.line = rule->line,
		.workflow = rule->workflow ? rule->workflow : t->machines[0].of->name,
		.field = user_rule_kinds[RULE_IS_SOMETIMES],
		.why = rule->text,
	};
	report->story = story;
}

static void add_own(struct trial *t, const struct user_rules *rules)
{
	for (size_t i = 0; i < rules->n && t->own_n < TRIAL_OWN_MAX; i++)
		t->own[t->own_n++] = rules->items[i];
	t->has_more_rules |= t->own_n == TRIAL_OWN_MAX;
}

/* It begins with this one, and may go on with the one that is explored; a batch keeps its version, so each is explored. */
static void add_old(struct trial *t, const struct definition *d)
{
	const struct trial_machine *next = NULL;

	for (size_t i = 0; i < t->machines_n; i++)
		if (t->machines[i].version == NEW_VERSION && strcmp(t->machines[i].of->name, d->name) == 0 &&
		    strcmp(t->machines[i].of->kind, d->kind) == 0)
			next = &t->machines[i];
	if (!next || t->machines_n == TRIAL_MACHINES_MAX) {
		t->has_old = true;
		return;
	}
	add_machine(t, d, /* version= */ 1);
	t->machines[t->machines_n - 1].next = d->batch ? NULL : next;
}

/* One that fires steps does what callers do. */
static void add_schedule(struct trial *t, const struct schedule_file *schedule)
{
	for (size_t i = 0; i < t->machines_n && schedule->spec.starts == SCHEDULE_STARTS_RUN; i++)
		if (t->machines[i].run && slice_is(schedule->spec.workflow, t->machines[i].of->name))
			t->machines[i].schedule = schedule;
	t->has_batch_schedule |= schedule->spec.starts == SCHEDULE_STARTS_BATCH;
}

struct trial *trial_new(const struct definition_set *set, const struct trial_world *world,
			const struct trial_options *options, struct arena *arena)
{
	struct trial *t = arena_zalloc(arena, sizeof *t);

	ASSERT(t);
	t->arena = arena;
	t->world = world;
	t->options = options;
	add_own(t, &world->rules);
	for (size_t i = 0; i < set->n; i++) {
		add_own(t, &set->items[i]->rules);
		add_machine(t, set->items[i], options->old ? NEW_VERSION : 1);
	}
	for (size_t i = 0; options->old && i < options->old->n; i++)
		add_old(t, options->old->items[i]);
	for (size_t i = 0; i < set->schedules_n; i++)
		add_schedule(t, set->schedules[i]);
	return t;
}

static struct trial *explore_once(const struct exploration *x, struct trial_report *report)
{
	struct trial *t = trial_new(x->set, x->world, x->options, x->arena);
	struct parts parts = {.room = PARTS_MAX, .items = arena_zalloc(x->arena, PARTS_MAX * sizeof *parts.items)};
	struct walker walker = {t, report};

	ASSERT(parts.items);
	*report = (struct trial_report){0};
	for (size_t i = 0; i < t->machines_n; i++)
		if (!x->options->old || t->machines[i].next || t->machines[i].batch)
			add_parts(t, &t->machines[i], &parts);
	report->scenarios_n = parts.n;
	if (parts.n)
		walk(&walker, &parts);
	if (parts.n && !report->story)
		check_reached(t, report);
	return t;
}

static void explore_again(void *context, struct trial_report *ret_report)
{
	(void)explore_once(context, ret_report);
}

enum hx_code trial_run(const struct definition_set *set, const struct trial_world *world,
		       const struct trial_options *options, struct arena *arena, struct trial_report *ret_report,
		       struct hx_error *err)
{
	struct exploration x = {set, world, options, arena};
	struct trial *t = explore_once(&x, ret_report);

	if (ret_report->scenarios_n)
		finish(t, ret_report);
	if (ret_report->story && ret_report->story->events_n && !options->brief)
		trial_suggest(t, ret_report->story, explore_again, &x, ret_report);
	sim_homes_release();
	if (!ret_report->scenarios_n)
		return error_set(err, HX_VALIDATION_ERROR, "there is nothing here that can be explored");
	return HX_OK;
}
