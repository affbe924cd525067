/* Definitions to scenarios, and the walks through them. See trial.h. */
#include "trial/trial.h"

#include <stdio.h>

#include "model/user_table.h"
#include "sim/home.h"
#include "trial/parts.h"

#define NAME_BYTES 200
#define PARTS_MAX 1000
#define NEW_VERSION 2 /* where there is an old one, which is 1 */

/* ---- scenarios ---- */

static const struct sim_outside outside = {.end = trial_end};

static const struct sim_user user = {
	.rounds = trial_rounds,
	.is_bystander = trial_is_bystander,
	.lease_end = trial_lease_end,
	.is_eager = trial_is_eager,
	.stands_still = trial_stands_still,
	.allows = trial_allows,
	.cut = trial_cut,
	.forgets_versions = trial_forgets_versions,
	.late_n = trial_late_n,
	.land = trial_land,
};

/* One thing to walk through: a machine, an input, where an entity begins. */
struct part {
	size_t n;
	struct trial_member members[TRIAL_MEMBERS_MAX];
	const char *name;
	bool given_up; /* it is larger than its share */
	bool *met;     /* of one alone: which others it meets */
};

static struct sim_subject born(const struct trial_member *m)
{
	return m->machine->run     ? (struct sim_subject){run_kind(), RUN_PENDING}
	       : m->machine->batch ? (struct sim_subject){batch_kind(), BATCH_QUEUED}
				   : (struct sim_subject){m->machine->entity->kind, m->start};
}

const char *const trial_entity_names[TRIAL_MEMBERS_MAX] = {"e1", "e2", "e3"};

void trial_begin(struct trial *t, const struct trial_member *members, size_t n, const char *name)
{
	struct sim_subject first = born(&members[0]);

	t->machine = members[0].machine;
	t->members_n = n;
	t->has_run = t->has_entity = false;
	for (size_t i = 0; i < n; i++) {
		bool own = members[i].machine->entity && members[i].machine->entity->table;

		t->members[i] = members[i];
		t->has_run |= members[i].machine->run != NULL;
		t->has_entity |= members[i].machine->entity != NULL;
		if (i)
			t->others[i - 1] = born(&members[i]);
		t->members[i].ref = (struct entity_ref){slice_str(own ? "" : "default"), members[i].machine->entity,
							own ? members[i].machine->row
							    : slice_str(trial_entity_names[i])};
	}
	t->scenario = (struct sim_scenario){
		.name = name,
		.subjects_n = (unsigned)n,
		.kind = first.kind,
		.initial = first.initial,
		.others = t->others,
		.user_moves = n > 1,
		.driven = true,
		.outside = &outside,
		.user = &t->user,
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

/* Its name is that of its members. */
static void add_part(struct trial *t, struct parts *parts, struct part part)
{
	char name[TRIAL_MEMBERS_MAX * NAME_BYTES];
	size_t n = 0;

	if (parts->n == parts->room)
		return;
	for (size_t i = 0; i < part.n && n < sizeof name; i++) {
		const struct trial_member *m = &part.members[i];
		const struct trial_world *world = inputs_of(t, m->machine->of);
		char more[60] = "";

		for (size_t k = 0; k < world->inputs_n && world->inputs_n > 1; k++)
			if (m->input.p == world->inputs[k].raw.p)
				snprintf(more, sizeof more, ", input %zu", k + 1);
		if (m->balance == 1)
			snprintf(more + strlen(more), sizeof more - strlen(more), ", an account that runs dry");
		n += (size_t)snprintf(name + n, sizeof name - n, "%s%s%s%s%s", i ? " + " : "", m->machine->of->name,
				      m->start ? " from " : "", m->start ? m->start : "", more);
	}
	part.name = arena_copy(t->arena, slice_str(name)).p;
	parts->items[parts->n++] = part;
}

static void add_alone(struct trial *t, struct parts *parts, const struct trial_machine *m, size_t input,
		      const char *start)
{
	const struct trial_world *world = inputs_of(t, m->of);
	struct slice given = world->inputs_n ? world->inputs[input].raw : slice_str("{}");

	/* A batch also with too little for its second item. */
	for (int64_t balance = TRIAL_BALANCE; balance > 0; balance -= m->batch ? TRIAL_BALANCE - 1 : TRIAL_BALANCE)
		add_part(
			t, parts,
			(struct part){.n = 1,
				      .members = {{.machine = m, .input = given, .start = start, .balance = balance}}});
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
			add_alone(t, parts, m, input, /* start= */ NULL);
		for (size_t s = 0; m->entity && s < m->of->entity->statuses_n; s++)
			if (starts_something(m->of->entity, m->of->entity->statuses[s]))
				add_alone(t, parts, m, input, m->of->entity->statuses[s]);
	}
}

/* ---- those that meet ---- */

/* Two entities that are one row of a table of the user's: they are in one status, and not two of one workflow. */
bool trial_is_one_row(const struct trial_machine *a, const struct trial_machine *b)
{
	return a->entity && b->entity && a->entity->table && b->entity->table &&
	       user_table_is_same(&a->of->entity->table, &b->of->entity->table);
}

static bool has_action(const struct definition *d, const struct trial_service *s)
{
	return s->action >= d->actions && s->action < d->actions + d->actions_n;
}

/* By a hook: whoever has the action, and the workflow that its service tells. */
static void note_hooks(struct trial *t)
{
	unsigned bit = 1u << TRIAL_TABLES_MAX;

	for (size_t i = 0; i < t->services_n && bit; i++)
		for (size_t k = 0; k < t->machines_n && t->services[i].tells; k++) {
			struct trial_machine *m = &t->machines[k];

			if (!m->batch &&
			    (has_action(m->of, &t->services[i]) || strcmp(m->of->name, t->services[i].tells) == 0))
				m->meets |= bit;
			bit <<= k + 1 == t->machines_n;
		}
}

bool trial_tells(const struct trial *t, const struct trial_service *s, const struct trial_member *m, const char *event)
{
	bool there = false;

	if (!s->tells || strcmp(s->tells, m->machine->of->name) != 0 ||
	    (event ? !s->event || strcmp(event, s->event) != 0 : s->event != NULL))
		return false;
	for (size_t i = 0; i < t->members_n; i++)
		there |= &t->members[i] != m && has_action(t->members[i].machine->of, s);
	return there;
}

bool trial_awaits_hook(const struct trial *t, const struct trial_member *m, const char *event)
{
	bool awaits = false;

	for (size_t i = 0; i < t->services_n; i++)
		awaits |= trial_tells(t, &t->services[i], m, event);
	return awaits;
}

bool trial_is_told(const struct sim *sim, const struct trial_member *m, const char *event)
{
	const struct trial *t = trial_of(sim);
	const struct trial_ledger *ledger = trial_ledger(sim);
	bool told = false;

	for (unsigned e = 0; e < ledger->n && !told; e++)
		told = trial_tells(t, t->callers[ledger->effects[e].caller].service, m, event);
	return told || !trial_awaits_hook(t, m, event);
}

/*
 * Each with each other whose statements, or whose rows, are in the same table; and two of one. One row is in one status: both begin where
 * either does.
 */
static void add_pairs(struct trial *t, struct parts *parts, size_t alone)
{
	for (size_t i = 0; i < alone; i++) {
		parts->items[i].met = arena_zalloc(t->arena, alone);
		ASSERT(parts->items[i].met);
	}
	for (size_t i = 0; i < alone; i++)
		for (size_t k = 0; k < alone; k++) {
			const struct trial_member *first = &parts->items[i].members[0];
			const struct trial_machine *x = first->machine;
			struct trial_member second = parts->items[k].members[0];
			const struct trial_machine *y = second.machine;
			bool wanted = i <= k;

			if (!(x->meets & y->meets & (x == y ? (1u << TRIAL_TABLES_MAX) - 1 : ~0u)) &&
			    !(x == y && x->limited))
				continue;
			if (trial_is_one_row(x, y)) {
				bool is_new = !k || parts->items[k - 1].members[0].machine != y;

				second.start = first->start;
				wanted = x != y && is_new && (x < y || !starts_something(y->of->entity, second.start));
			}
			if (wanted)
				add_part(t, parts, (struct part){.n = 2, .members = {*first, second}});
			parts->items[i].met[k] = true;
		}
}

/* Of two in a world of three, 1: they meet; 0: each may meet the third; -3: not in a world that we know how to begin. */
static int beside(const struct parts *parts, size_t i, size_t k)
{
	const struct trial_machine *x = parts->items[i].members[0].machine, *y = parts->items[k].members[0].machine;
	bool met = parts->items[i].met[k];

	return trial_is_one_row(x, y) || (x == y && !met) ? -3 : met;
}

/* Each of them meets another. */
static void add_triples(struct trial *t, struct parts *parts, size_t alone)
{
	for (size_t i = 0; i < alone; i++)
		for (size_t k = i; k < alone; k++)
			for (size_t l = k; l < alone && parts->n < parts->room; l++) {
				struct part part = {.n = 3,
						    .members = {parts->items[i].members[0], parts->items[k].members[0],
								parts->items[l].members[0]}};

				if (beside(parts, i, k) + beside(parts, i, l) + beside(parts, k, l) >= 2)
					add_part(t, parts, part);
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
	trial_begin(t, part->members, part->n, part->name);
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

/* Of the edges: an account that runs dry is the smaller half of a batch. */
static unsigned weight_of(const struct part *part)
{
	return part->members[0].balance == 1 ? 1 : 3;
}

static bool walk_level(struct walker *w, struct parts *parts, unsigned mishaps)
{
	uint64_t edges_max = w->t->options->edges_max;
	bool all = true;
	unsigned weights = 0;

	for (size_t i = 0; i < parts->n; i++)
		weights += weight_of(&parts->items[i]);
	for (size_t i = 0; i < parts->n; i++) {
		uint64_t used = w->report->walked.edges, left = used < edges_max ? edges_max - used : 0;
		uint64_t share = left * weight_of(&parts->items[i]) / weights;

		weights -= weight_of(&parts->items[i]);
		if (!parts->items[i].given_up && share == 0)
			parts->items[i].given_up = true;
		if (!parts->items[i].given_up && !walk_part(w, &parts->items[i], mishaps, share))
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
	add_left_out(
		report, t->has_sql && !t->tables.names_n,
		"statements of sql actions are counted, not run, so nobody meets at a table: `tables` of a world make them");
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
	const struct trial_story *found; /* where a change is tried against it */
	const char *only;                /* the one scenario that is explored; NULL: all */
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
	trial_add_machine(t, d, /* version= */ 1);
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
	t->pays = TRIAL_PAYS;
	t->options = options;
	add_own(t, &world->rules);
	t->user = user;
	t->user.nodes_n = options->nodes;
	t->user.schema = trial_tables_make(t, set);
	for (size_t i = 0; i < set->n; i++) {
		add_own(t, &set->items[i]->rules);
		trial_add_machine(t, set->items[i], options->old ? NEW_VERSION : 1);
	}
	for (size_t i = 0; options->old && i < options->old->n; i++)
		add_old(t, options->old->items[i]);
	for (size_t i = 0; i < set->schedules_n; i++)
		add_schedule(t, set->schedules[i]);
	trial_tables_made(t);
	return t;
}

static void leave_only(struct parts *parts, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < parts->n; i++)
		if (strcmp(parts->items[i].name, name) == 0)
			parts->items[n++] = parts->items[i];
	parts->n = n;
}

static struct trial *explore_once(const struct exploration *x, struct trial_report *report)
{
	struct trial *t = trial_new(x->set, x->world, x->options, x->arena);
	struct parts parts = {.room = PARTS_MAX, .items = arena_zalloc(x->arena, PARTS_MAX * sizeof *parts.items)};
	struct walker walker = {t, report};
	size_t alone;

	ASSERT(parts.items);
	*report = (struct trial_report){0};
	for (size_t i = 0; i < t->machines_n; i++)
		if (!x->options->old || t->machines[i].next || t->machines[i].batch)
			add_parts(t, &t->machines[i], &parts);
	note_hooks(t);
	alone = parts.n;
	if (!x->options->old && x->options->together > 1)
		add_pairs(t, &parts, alone);
	if (!x->options->old && x->options->together > 2)
		add_triples(t, &parts, alone);
	if (x->only)
		leave_only(&parts, x->only);
	report->scenarios_n = t->wrong ? 0 : parts.n;
	if (report->scenarios_n)
		walk(&walker, &parts);
	if (report->scenarios_n && !report->story)
		check_reached(t, report);
	return t;
}

/* First where the rule was broken, and no further than that took, which shows of most changes that they are no help; then everything. */
static void explore_again(void *context, uint64_t edges_max, struct trial_report *ret_report)
{
	struct exploration x = *(const struct exploration *)context;
	struct trial_options options = *x.options;

	options.edges_max = edges_max;
	x.options = &options;
	x.only = x.found->scenario;
	options.mishaps = x.found->mishaps;
	(void)explore_once(&x, ret_report);
	if (ret_report->story && ret_report->story->rule != RULE_SOMETIMES)
		return;
	x.only = NULL;
	options.mishaps = ((const struct exploration *)context)->options->mishaps;
	(void)explore_once(&x, ret_report);
}

enum hx_code trial_run(const struct definition_set *set, const struct trial_world *world,
		       const struct trial_options *options, struct arena *arena, struct trial_report *ret_report,
		       struct hx_error *err)
{
	struct exploration x = {.set = set, .world = world, .options = options, .arena = arena};
	struct trial *t = explore_once(&x, ret_report);

	if (ret_report->scenarios_n)
		finish(t, ret_report);
	x.found = ret_report->story;
	if (ret_report->story && ret_report->story->events_n && !options->brief)
		trial_suggest(t, ret_report->story, explore_again, &x, ret_report);
	sim_homes_release();
	if (t->wrong)
		return error_set(err, HX_VALIDATION_ERROR, "%s", t->wrong);
	if (!ret_report->scenarios_n)
		return error_set(err, HX_VALIDATION_ERROR, "there is nothing here that can be explored");
	return HX_OK;
}
