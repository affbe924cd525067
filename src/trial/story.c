/*
 * A schedule as a story: walked once more, with a look at the rows before and after each step of it. What is told is what has
 * changed, in the definition's own words; reads and rounds that changed nothing are not events.
 */
#include <stdarg.h>
#include <stdio.h>

#include "flow/batch_item.h"
#include "sim/world.h"
#include "trial/parts.h"

#define RUNS_MAX 8
#define JOBS_MAX 8
#define STEPS_MAX 24
#define ITEMS_MAX 4

struct sight_run {
	int64_t id, version;
	char workflow[WORKFLOW_NAME_MAX + 1], status[20], awaits[80], step_status[20];
	size_t steps_n;
	struct {
		int64_t position;
		char status[20];
		bool undone;
	} steps[STEPS_MAX];
};

/* What there is to see at one moment. */
struct sight {
	int64_t now;
	size_t runs_n;
	struct sight_run runs[RUNS_MAX];
	char batch[20];
	struct {
		char status[WORKFLOW_NAME_MAX + 1];
		bool owned, held;
	} entities[TRIAL_MEMBERS_MAX];
	char tables[400];
	size_t items_n; /* of a batch */
	struct {
		char status[20], decision[20];
	} items[ITEMS_MAX];
	size_t jobs_n;
	struct {
		int64_t id;
		char status[20], queue[80], action[WORKFLOW_NAME_MAX + 1];
	} jobs[JOBS_MAX];
	enum sim_actor_state actors[SIM_ACTORS_MAX];
	bool acting[SIM_ACTORS_MAX];
	uint64_t calls[SIM_ACTORS_MAX]; /* of those that are: which */
};

struct teller {
	struct explore_listener base;
	struct trial *t;
	struct trial_story *story;
	struct sight was;
	/* Of the step that is being taken: */
	const struct trial_caller *caller; /* whose call ends, or lands */
	enum trial_lane lane;
	unsigned effects_n; /* in the ledger, told so far */
};

/* ---- looking ---- */

static void put(char *to, size_t size, const struct db_value *v)
{
	snprintf(to, size, "%.*s", v->type == DB_NULL ? 0 : (int)v->s.n, v->type == DB_NULL ? "" : v->s.p);
}
#define PUT(to, v) put(to, sizeof(to), v)

static void look_at_run(struct sim *sim, const struct db_rows *rows, size_t i, struct sight_run *run)
{
	run->id = db_cell(rows, i, 0)->i;
	run->version = db_cell(rows, i, 13)->i;
	PUT(run->workflow, db_cell(rows, i, 1));
	PUT(run->status, db_cell(rows, i, 3));
	PUT(run->step_status, db_cell(rows, i, 4));
	PUT(run->awaits, db_cell(rows, i, 5));

	struct unit_result steps = trial_ask_of(sim, &trial_run_steps, run->id);

	for (size_t s = 0; s < steps.rows[0].n && s < STEPS_MAX; s++) {
		run->steps[s].position = db_cell(&steps.rows[0], s, 0)->i;
		PUT(run->steps[s].status, db_cell(&steps.rows[0], s, 1));
		run->steps[s].undone = db_cell(&steps.rows[0], s, 2)->i;
		run->steps_n = s + 1;
	}
}

static void look_at_rows(struct sim *sim, struct sight *now)
{
	struct unit_result result;

	const struct trial *t = trial_of(sim);

	result = trial_ask(sim, &trial_runs);
	for (; now->runs_n < result.rows[0].n && now->runs_n < RUNS_MAX; now->runs_n++)
		look_at_run(sim, &result.rows[0], now->runs_n, &now->runs[now->runs_n]);
	if (t->machine->batch) {
		result = trial_ask(sim, &trial_batch);
		PUT(now->batch, db_cell(&result.rows[0], 0, 0));
		result = trial_ask(sim, &trial_items);
		for (size_t i = 0; i < result.rows[0].n && i < ITEMS_MAX; i++) {
			PUT(now->items[i].status, db_cell(&result.rows[0], i, 1));
			PUT(now->items[i].decision, db_cell(&result.rows[0], i, 2));
			now->items_n = i + 1;
		}
	}
	for (size_t i = 0; i < t->members_n; i++)
		if (t->members[i].machine->entity) {
			result = trial_read_entity(sim, &t->members[i]);
			PUT(now->entities[i].status, db_cell(&result.rows[0], 0, ENTITY_STATUS));
			now->entities[i].owned = db_cell(&result.rows[0], 0, ENTITY_OWNER)->type != DB_NULL;
			now->entities[i].held = now->entities[i].owned &&
						db_cell(&result.rows[0], 0, ENTITY_UNTIL)->i == INT64_MAX;
		}
	if (t->tables.names_n) {
		result = trial_ask(sim, &t->tables.look);
		PUT(now->tables, db_cell(&result.rows[0], 0, 0));
	}
	result = trial_ask(sim, &trial_jobs);
	for (size_t i = 0; i < result.rows[0].n && i < JOBS_MAX; i++) {
		now->jobs[i].id = db_cell(&result.rows[0], i, 0)->i;
		PUT(now->jobs[i].status, db_cell(&result.rows[0], i, 1));
		PUT(now->jobs[i].queue, db_cell(&result.rows[0], i, 2));
		PUT(now->jobs[i].action, db_cell(&result.rows[0], i, 3));
		now->jobs_n = i + 1;
	}
}

static void look(struct sim *sim, struct sight *now)
{
	memset(now, 0, sizeof *now);
	now->now = sim->state.now.ms;
	look_at_rows(sim, now);
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		now->actors[i] = sim->state.actors[i].state;
		now->acting[i] = sim->state.actors[i].state == SIM_ASKING && sim->state.actors[i].ask == ASK_ACT;
		if (now->acting[i]) {
			struct act_call call = sim_call_of(&sim->state.actors[i]);

			now->calls[i] = world_key(call.key) + (uint64_t)call.attempt;
		}
	}
}

/* ---- telling ---- */

static void HX_PRINTF(5, 6)
	tell(struct teller *x, const char *who, const char *file, size_t line, const char *format, ...)
{
	struct trial_story *story = x->story;
	char text[500];
	va_list args;

	if (story->events_n == TRIAL_EVENTS_MAX)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	story->events[story->events_n++] = (struct trial_event){arena_copy(x->t->arena, slice_str(who)).p,
								arena_copy(x->t->arena, slice_str(text)).p, file, line,
								x->lane};
}

/* Who an actor is to a reader: callers and drivers are on nodes, and these act. */
static const char *who_acts(const struct trial *t, unsigned actor)
{
	const struct trial_actor *a = &t->actors[actor];

	if (a->part == PART_JANITOR || a->part == PART_WORKER || a->part == PART_OPERATOR ||
	    (a->part == PART_CALLER && t->machine->run && !t->fires_n))
		return a->name;
	return sim_node_name(t->scenario.cast[actor].node);
}

static size_t line_of_step(const struct trial *t, const struct sight_run *run, int64_t position, const char **ret_name)
{
	const struct run_machine *m = trial_machine_of(t, slice_str(run->workflow), run->version);

	*ret_name = "?";
	if (!m || position < 0 || (size_t)position >= m->definition->steps_n)
		return 0;
	*ret_name = m->definition->steps[position].name;
	return m->definition->steps[position].line;
}

static const char *name_of_entity(const struct trial *t, size_t i)
{
	return trial_entity_names[i && trial_is_one_row(t->machine, t->members[i].machine) ? 0 : i];
}

/* Of several runs of one workflow: which. Empty: there is one. */
static const char *name_of_member(const struct trial *t, int64_t subject)
{
	static const char *const names[TRIAL_MEMBERS_MAX] = {", the first", ", the second", ", the third"};
	const struct trial_member *m;
	unsigned before = 0, all = 0;

	if (subject >= TRIAL_SUBJECT + (int64_t)t->members_n)
		return "";
	m = TRIAL_MEMBER_AT(t, subject);
	for (size_t i = 0; i < t->members_n; i++) {
		all += t->members[i].machine == m->machine;
		before += t->members[i].machine == m->machine && &t->members[i] < m;
	}
	return all > 1 ? names[before] : "";
}

static void tell_steps(struct teller *x, const char *who, const struct sight_run *was, const struct sight_run *is)
{
	const char *file = x->t->machine->of->file, *name;

	if (is->id < TRIAL_SUBJECT + (int64_t)x->t->members_n)
		file = TRIAL_MEMBER_AT(x->t, is->id)->machine->of->file;
	if (x->t->machine->next && is->version == x->t->machine->next->version)
		file = x->t->machine->next->of->file;
	for (size_t i = 0; i < is->steps_n; i++) {
		bool known = was && i < was->steps_n && was->steps[i].position == is->steps[i].position;
		size_t line = line_of_step(x->t, is, is->steps[i].position, &name);

		if (!known)
			tell(x, who, file, line, "step %s%s is %s", name, name_of_member(x->t, is->id),
			     is->steps[i].status);
		else if (is->steps[i].undone && !was->steps[i].undone)
			tell(x, who, file, line, "step %s is undone", name);
	}
}

static void tell_run(struct teller *x, const char *who, const struct sight_run *was, const struct sight_run *is)
{
	bool plain = strcmp(is->status, RUN_RUNNING) == 0 || strcmp(is->status, RUN_PENDING) == 0;
	LOCAL_STRBUF(run, 2 * WORKFLOW_NAME_MAX);

	strbuf_add_str(&run, "the run");
	if (x->t->members_n > 1) /* which of them */
		strbuf_addf(&run, " of %s%s", is->workflow, name_of_member(x->t, is->id));
	if (!was)
		tell(x, who, NULL, 0, "starts a run of %s", is->workflow);
	tell_steps(x, who, was, is);
	if (was && strcmp(was->status, is->status) == 0 && strcmp(was->awaits, is->awaits) == 0)
		return;
	if (strcmp(is->awaits, RUN_AWAITS_PERSON) == 0)
		tell(x, who, NULL, 0, "%s is %s, and waits for a person: its step is %s", run.p, is->status,
		     is->step_status);
	else if (is->awaits[0] && !(was && strcmp(was->awaits, is->awaits) == 0))
		tell(x, who, NULL, 0, "%s is %s: it awaits %s", run.p, is->status, is->awaits);
	else if (!plain)
		tell(x, who, NULL, 0, "%s is %s", run.p, is->status);
}

static void tell_entity(struct teller *x, const char *who, const struct sight *all, size_t i)
{
	const char *was = x->was.entities[i].status, *is = all->entities[i].status;
	const char *name = name_of_entity(x->t, i);
	bool owned = all->entities[i].owned, owned_before = x->was.entities[i].owned;
	bool reverts = owned_before && !owned && strcmp(who, "janitor") == 0;

	if (all->entities[i].held && !x->was.entities[i].held)
		tell(x, who, NULL, 0, "%s stays %s, held for a person", name, is);
	if (strcmp(is, was) != 0 &&
	    !(i && trial_is_one_row(x->t->machine, x->t->members[i].machine))) /* which is told already */
		tell(x, who, NULL, 0, "%s: %s → %s%s", name, was, is,
		     owned && !owned_before ? ", a claim"
		     : reverts              ? ", its claim is over: on_unknown is revert"
					    : "");
}

static void tell_batch(struct teller *x, const char *who, const struct sight *is)
{
	for (size_t i = 0; i < is->items_n; i++) {
		if (strcmp(is->items[i].status, x->was.items[i].status) != 0)
			tell(x, who, NULL, 0, "item %zu is %s", i, is->items[i].status);
		if (strcmp(is->items[i].decision, x->was.items[i].decision) != 0)
			tell(x, who, NULL, 0, "item %zu is %s%s", i, is->items[i].decision,
			     strcmp(is->items[i].decision, ITEM_ACCEPTED) == 0
				     ? ""
				     : ", and what it was charged is given back");
	}
	if (strcmp(is->batch, x->was.batch) != 0)
		tell(x, who, NULL, 0, "the batch is %s", is->batch);
}

static void tell_jobs(struct teller *x, const char *who, const struct sight *is)
{
	for (size_t i = 0; i < is->jobs_n; i++) {
		bool effect = strcmp(is->jobs[i].queue, JOB_QUEUE_AFTER_EFFECTS) == 0;
		const char *what = effect ? "after-effect" : "job";

		if (i >= x->was.jobs_n)
			tell(x, who, NULL, 0, "the %s %s is written down", what, is->jobs[i].action);
		else if (strcmp(is->jobs[i].status, x->was.jobs[i].status) != 0 &&
			 strcmp(is->jobs[i].status, JOB_RUNNING) != 0)
			tell(x, who, NULL, 0, "the %s %s is %s", what, is->jobs[i].action, is->jobs[i].status);
	}
}

/* Calls that have begun, and callers who have their answer. */
static void tell_actors(struct teller *x, struct sim *sim, const struct sight *is)
{
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		bool caller = x->t->actors[i].part == PART_CALLER;
		int64_t subject;

		if (is->acting[i] && is->calls[i] != x->was.calls[i]) {
			struct act_call call = sim_call_of(actor);
			const struct trial_caller *c = trial_caller_of(x->t, &call, &subject);

			x->lane = LANE_NODE;
			tell(x, who_acts(x->t, i), c ? c->of->file : NULL, c ? c->line : 0, "calls %s, key %.*s",
			     ((const struct action *)call.action)->name, SLICE_ARGS(call.key));
		}
		x->lane = LANE_CALLER;
		if (caller && is->actors[i] == SIM_DONE && x->was.actors[i] == SIM_ASKING && !actor->task.task.kind)
			tell(x, x->t->actors[i].name, NULL, 0, "hears nothing: the connection breaks");
		else if (caller && is->actors[i] == SIM_DONE && x->was.actors[i] == SIM_ASKING)
			tell(x, x->t->actors[i].name, NULL, 0, "hears %d %s", hx_code_http_status(actor->code),
			     hx_code_name(actor->code));
	}
}

static void tell_click(struct teller *x, struct sim *sim, unsigned actor)
{
	static const char *const acts[BATCH_ACTS] = {"cancels the batch", "pays in", "accepts item 0",
						     "accepts item 1"};
	const struct trial_ledger *ledger = trial_ledger(sim);
	const struct trial *t = x->t;

	x->lane = LANE_CALLER;
	if (t->actors[actor].part == PART_OPERATOR)
		tell(x, "operator", NULL, 0, "puts the new version%s",
		     trial_is_put(sim) ? "" : ", which is refused: somebody is in what it has no more");
	if (t->actors[actor].part != PART_CALLER)
		return;
	if (t->machine->batch) {
		tell(x, t->actors[actor].name, NULL, 0, "%s", acts[ledger->fired[t->actors[actor].n] - 1]);
		return;
	}
	for (size_t i = 0; i < t->clicks_n; i++)
		if (((const struct run_verb *)&sim->state.actors[actor].task)->rq == &t->clicks[i].rq) {
			tell(x, t->actors[actor].name, NULL, 0, "%s%s", t->clicks[i].words,
			     name_of_member(t, t->clicks[i].rq.subject));
			return;
		}

	const struct trial_fire *fire = &t->fires[ledger->fired[t->actors[actor].n] - 1];
	size_t i = (size_t)(fire->member - t->members);

	tell(x, t->actors[actor].name, fire->machine->of->file, fire->step->line, "fires %s as %s%s; %s is %s",
	     fire->step->step_key, fire->requester, fire->machine == t->machine->next ? ", by the new version" : "",
	     name_of_entity(t, i), x->was.entities[i].status);
}

static void tell_act(struct teller *x, enum sim_act how, bool stalls)
{
	static const char *const words[SIM_ACTS_N] = {
		[SIM_ACT_OK] = "does it, and says so",
		[SIM_ACT_FAILED] = "fails: nothing was done, and it says so",
		[SIM_ACT_UNKNOWN_DONE] = "does it, and the answer is lost",
		[SIM_ACT_UNKNOWN_NOT] = "does nothing, and no answer comes",
		[SIM_ACT_UNSETTLED] = "is still at an earlier try",
		[SIM_ACT_INVALID] = "rejects it",
		[SIM_ACT_LATE] = "does nothing yet, and no answer comes",
		[SIM_ACT_LIED] = "does it, and says that it failed",
	};
	const struct trial_caller *c = x->caller;
	const char *said = words[how];

	if (c && c->role == ROLE_ASK && how == SIM_ACT_OK)
		said = "answers what is asked";
	bool tells = c && c->service->tells && (how == SIM_ACT_OK || how == SIM_ACT_UNKNOWN_DONE);

	tell(x, c ? c->service->action->name : "a service", NULL, 0, "%s%s%s%s", said,
	     tells ? ", and calls the hook of " : "", tells ? c->service->tells : "",
	     stalls ? "; whoever called stands still with that until its lease is over" : "");
}

static void tell_time(struct teller *x, struct sim *sim, struct sim_edge edge)
{
	static const char *const cut[CUTS_N] = {"was not done", "was done", "is still on its way"};
	int64_t ms = sim->state.now.ms - x->was.now;
	bool acting = false;

	for (unsigned i = 0; i < sim->scenario->cast_n; i++)
		acting |= x->was.acting[i];
	if (!edge.mask)
		tell(x, "time", NULL, 0, "%lld.%03lld s pass", (long long)(ms / 1000), (long long)(ms % 1000));
	else
		tell(x, "time", NULL, 0, "%lld s pass: a node stands still until its lease is over%s%s",
		     (long long)(ms / 1000), acting ? "; what it had asked for " : "", acting ? cut[edge.how] : "");
}

static void tell_crash(struct teller *x, struct sim_edge edge)
{
	static const char *const cut[CUTS_N] = {"; what it had asked for was not done",
						"; what it had asked for was done",
						"; what it had asked for is still on its way"};
	bool acting = false;

	for (unsigned i = 0; i < x->t->scenario.cast_n; i++)
		acting |= x->was.acting[i] && x->t->scenario.cast[i].node == edge.who;
	tell(x, sim_node_name(edge.who), NULL, 0, "is killed%s", acting ? cut[edge.how] : "");
}

/* ---- along the way ---- */

static void before_step(struct explore_listener *base, struct sim *sim, struct sim_edge edge)
{
	struct teller *x = (struct teller *)base;
	const struct trial_ledger *ledger = trial_ledger(sim);
	int64_t subject;

	look(sim, &x->was);
	x->caller = NULL;
	if (edge.kind == EDGE_ACT) {
		struct act_call call = sim_call_of(&sim->state.actors[edge.who]);

		x->caller = trial_caller_of(x->t, &call, &subject);
	} else if (edge.kind == EDGE_LAND) {
		x->caller = &x->t->callers[ledger->late[edge.how].caller];
	}
}

static void tell_edge(struct teller *x, struct sim *sim, struct sim_edge edge)
{
	x->lane = edge.kind == EDGE_TIME ? LANE_TIME : edge.kind == EDGE_CRASH ? LANE_NODE : LANE_SERVICE;
	switch ((enum sim_edge_kind)edge.kind) {
	case EDGE_AGAIN:
		tell_click(x, sim, edge.who);
		x->lane = LANE_NODE;
		if (edge.mask)
			tell(x, who_acts(x->t, edge.who), NULL, 0, "reads, and stands still before it writes");
		break;
	case EDGE_ACT:
		tell_act(x, edge.how, edge.mask);
		break;
	case EDGE_TIME:
		tell_time(x, sim, edge);
		break;
	case EDGE_CRASH:
		tell_crash(x, edge);
		break;
	case EDGE_LAND:
		tell(x, x->caller->service->action->name, x->caller->of->file, x->caller->line,
		     "does now what it was asked for before, step %s", x->caller->step);
		break;
	default:
		break;
	}
}

static void note_happened(struct teller *x, const struct trial_caller *c)
{
	struct trial_story *s = x->story;

	if (s->happened_n < TRIAL_HAPPENED_MAX)
		s->happened[s->happened_n++] = (struct trial_happened){c->service->action->name, c->step, s->events_n};
}

/* What the ledger has more than before; what has happened twice does not stand there, and is where the story ends. */
static void note_effects(struct teller *x, struct sim *sim)
{
	const struct trial_ledger *ledger = trial_ledger(sim);

	for (; x->effects_n < ledger->n; x->effects_n++)
		note_happened(x, &x->t->callers[ledger->effects[x->effects_n].caller]);
	if (sim->violation[0] && x->t->broken == RULE_ONCE && x->t->broken_caller >= 0)
		note_happened(x, &x->t->callers[x->t->broken_caller]);
}

static void after_step(struct explore_listener *base, struct sim *sim, struct sim_edge edge)
{
	struct teller *x = (struct teller *)base;
	bool by_actor = edge.kind == EDGE_READ || edge.kind == EDGE_WRITE || edge.kind == EDGE_ACT ||
			edge.kind == EDGE_AGAIN;
	const char *who = by_actor ? who_acts(x->t, edge.who) : "the engine";
	struct sight is;

	look(sim, &is);
	tell_edge(x, sim, edge);
	note_effects(x, sim);
	x->lane = LANE_STORE;
	for (size_t i = 0; i < is.runs_n; i++)
		tell_run(x, who, i < x->was.runs_n ? &x->was.runs[i] : NULL, &is.runs[i]);
	for (size_t i = 0; i < x->t->members_n; i++)
		if (x->t->members[i].machine->entity)
			tell_entity(x, who, &is, i);
	if (x->t->machine->batch)
		tell_batch(x, who, &is);
	if (strcmp(is.tables, x->was.tables) != 0)
		tell(x, who, NULL, 0, "the tables are %s", is.tables);
	tell_jobs(x, who, &is);
	tell_actors(x, sim, &is);
}

struct explore_listener *trial_teller(struct trial *t, struct trial_story *story)
{
	struct teller *x = arena_zalloc(t->arena, sizeof *x);

	ASSERT(x);
	x->base = (struct explore_listener){before_step, after_step};
	x->t = t;
	x->story = story;
	t->broken = RULE_ENGINE;
	t->broken_caller = -1;
	t->broken_said = NULL;
	return &x->base;
}

void trial_tell(struct trial *t, const struct explore_found *found, struct trial_story *story)
{
	explore_follow(&t->scenario, found, trial_teller(t, story));
	story->rule = t->broken;
	story->broken = arena_copy(t->arena, slice_str(found->violation)).p;
	story->shortest = found->shortest;
	story->test = trial_as_test(t, found, story);
	trial_blame(t, story);
}
