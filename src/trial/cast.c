/*
 * Who takes part in a trial, and what each could begin now.
 *
 *   callers     fire the steps of an entity that its status offers; cancel a run, send its events, decide its approvals
 *   drivers     one on each node: take a run up when it is due, or when its holder's time is over; look at the schedule that starts it
 *   janitor     ends claims whose time is over: of entities, of jobs
 *   worker      carries out jobs, outside of the engine
 *   deliverer   after-effects
 *
 * Nodes are alike, and so are callers: a second one does something only where the first is busy, or has done it.
 */
#include "trial/parts.h"

#define LEASE_MS 60000
#define DRIVEN_MAX 4 /* of runs that are due, so many are looked at */

static const struct job_policy delivery = {.attempts_max = 8, .first_ms = 1000, .max_ms = 300000, .lease_ms = LEASE_MS};

const struct run_machine *trial_machine_of(const void *context, struct slice workflow, int64_t version)
{
	const struct trial *t = context;
	const struct run_machine *newest = NULL;

	for (size_t i = 0; i < t->machines_n; i++) {
		const struct trial_machine *m = &t->machines[i];

		if (!m->run || !slice_is(workflow, m->of->name))
			continue;
		if (m->version == version)
			return m->run;
		newest = newest ? newest : m->run;
	}
	return newest;
}

static const struct workflow *workflow_of(const void *context, struct slice workflow, int64_t version)
{
	const struct trial *t = context;
	const struct trial_machine *m = t->machine;

	for (size_t i = 1; i < t->members_n; i++)
		if (slice_is(workflow, t->members[i].machine->of->name))
			m = t->members[i].machine;
	return (m->next && m->next->version == version ? m->next : m)->of->entity;
}

static const struct action *find_action(const struct definition *d, struct slice name)
{
	for (size_t a = 0; a < d->actions_n; a++)
		if (slice_is(name, d->actions[a].name))
			return &d->actions[a];
	return NULL;
}

static const struct action *action_of(const void *context, struct slice workflow, struct slice action, int64_t *version)
{
	const struct trial *t = context;
	const struct trial_machine *by = trial_in_force(t->sim);
	int64_t wanted = *version ? *version : slice_is(workflow, by->of->name) ? by->version : 0;

	for (size_t i = 0; i < t->machines_n; i++) {
		const struct trial_machine *m = &t->machines[i];
		const struct action *found = NULL;

		if (slice_is(workflow, m->of->name) && (!wanted || m->version == wanted))
			found = find_action(m->of, action);
		*version = found ? m->version : *version;
		if (found)
			return found;
	}
	return NULL;
}

/* ---- callers ---- */

static bool offers(struct sim *sim, const struct trial_actor *a, const struct trial_fire *fire)
{
	struct unit_result result = trial_read_entity(sim, fire->member);
	const char *step = fire->step->step_key;

	if (a->hook != trial_awaits_hook(a->trial, fire->member, step) || !trial_is_told(sim, fire->member, step))
		return false;
	return slice_is(db_cell(&result.rows[0], 0, ENTITY_STATUS)->s, fire->step->status) &&
	       (fire->machine == fire->member->machine || trial_is_put(sim));
}

/* A decision is taken where somebody waits for it; an event may come before that. */
static bool is_open(struct sim *sim, const struct trial_click *click)
{
	struct unit_result result = trial_ask(sim, &trial_runs);
	const struct db_rows *rows = &result.rows[0];
	const struct trial_member *m = &trial_of(sim)->members[click->rq.subject - TRIAL_SUBJECT];
	struct slice status;
	char awaits[100];
	size_t at = 0;

	if (!trial_is_told(sim, m, /* event= */ NULL) ||
	    (click->rq.kind == RUN_EVENT && !trial_is_told(sim, m, click->rq.name.p)))
		return false;
	while (db_cell(rows, at, 0)->i != click->rq.subject)
		at++;
	status = db_cell(rows, at, 3)->s;
	if (ways_is_terminal(&run_ways, status) && !(click->rq.kind == RUN_CANCEL && slice_is(status, RUN_FAILED)))
		return false;
	snprintf(awaits, sizeof awaits, RUN_AWAITS_APPROVAL "%.*s", SLICE_ARGS(click->rq.name));
	for (size_t i = 0; i < rows->n && click->rq.kind == RUN_APPROVE; i++)
		if (db_cell(rows, i, 5)->type != DB_NULL && slice_is(db_cell(rows, i, 5)->s, awaits))
			return true;
	return click->rq.kind != RUN_APPROVE;
}

/* The second comes while the first is busy with a run. */
static bool may_click(const struct sim *sim, const struct trial_actor *a)
{
	const struct sim_actor *first = &sim->state.actors[a - a->trial->actors - (a->n ? 1 : 0)];

	return trial_ledger(sim)->clicks < a->trial->clicks_max && !(a->n && first->state != SIM_ASKING) && !a->hook;
}

/* Each fires once, and the first before the second. */
static bool may_fire(const struct sim *sim, const struct trial_actor *a)
{
	const struct trial_ledger *ledger = trial_ledger(sim);

	return !ledger->fired[a->n] && (!a->n || a->hook || ledger->fired[a->n - 1]);
}

/* The how-manieth of those that are offered, clicks before fires; -1: there are not so many. NULL: how many there are. */
static int find_offer(struct sim *sim, const struct trial_actor *a, const unsigned *which, unsigned *ret_n)
{
	struct trial *t = trial_of(sim);
	const struct trial_ledger *ledger = trial_ledger(sim);
	bool clicks = may_click(sim, a), fires = may_fire(sim, a);
	unsigned n = 0;

	for (size_t i = 0; i < t->clicks_n + t->fires_n; i++) {
		bool open = i < t->clicks_n
				    ? clicks && ledger->used[i] < t->clicks[i].max && is_open(sim, &t->clicks[i])
				    : fires && offers(sim, a, &t->fires[i - t->clicks_n]);

		if (open && which && n == *which)
			return (int)i;
		n += open;
	}
	if (ret_n)
		*ret_n = n;
	return -1;
}

static unsigned offers_n(struct sim *sim, const struct trial_actor *a)
{
	struct trial *t = trial_of(sim);
	unsigned n = 0;

	if (t->scripted)
		return 0;
	if (t->machine->batch)
		return may_fire(sim, a) ? trial_batch_offers(sim, /* which= */ NULL, NULL) : 0;
	(void)find_offer(sim, a, /* which= */ NULL, &n);
	return n;
}

static void init_caller(union sim_task *task, struct trial_actor *a, struct arena *texts)
{
	struct trial *t = a->trial;
	struct trial_ledger *ledger = trial_ledger(t->sim);
	enum trial_batch_act act = BATCH_CANCELS;
	int i = t->machine->batch ? 0
		: t->scripted     ? trial_scripted(t, t->sim->chosen)
				  : find_offer(t->sim, a, &t->sim->chosen, /* ret_n= */ NULL);
	int fire = i - (int)t->clicks_n;

	ASSERT(i >= 0);
	if (t->machine->batch && t->scripted)
		act = t->places[t->sim->chosen];
	else if (t->machine->batch)
		(void)trial_batch_offers(t->sim, &t->sim->chosen, &act);
	ledger->clicks++;
	if (t->machine->batch) {
		ledger->used[act]++;
		ledger->fired[a->n] = (unsigned char)(1 + act);
		trial_batch_init(task, t, act, texts);
	} else if (fire < 0) {
		ledger->used[i]++;
		run_verb_init((struct run_verb *)task, &t->clicks[i].rq, texts);
	} else {
		ledger->fired[a->n] = (unsigned char)(1 + fire);
		trial_reached(t, t->fires[fire].machine->of, t->fires[fire].step->step_key);
		entity_step_init((struct entity_step *)task, &t->fires[fire].rq, texts);
	}
}

/* ---- the engine ---- */

static struct run_verb_request *obey_of(struct trial *t, int64_t subject)
{
	size_t i = 0;

	while (i < t->obeys_n && t->obeys[i].subject != subject)
		i++;
	i = i < TRIAL_OBEYS_MAX ? i : TRIAL_OBEYS_MAX - 1;
	t->obeys_n = i == t->obeys_n ? i + 1 : t->obeys_n;
	t->obeys[i] = (struct run_verb_request){.kind = RUN_OBEY, .subject = subject, .policy = &t->policy};
	return &t->obeys[i];
}

/* A run that a hook starts is there from when it does. */
bool trial_is_begun(const struct sim *sim, int64_t run)
{
	const struct trial *t = trial_of(sim);

	if (run >= TRIAL_SUBJECT + (int64_t)t->members_n)
		return true;
	return t->scripted ? t->begun >> (run - TRIAL_SUBJECT) & 1
			   : trial_is_told(sim, &t->members[run - TRIAL_SUBJECT], /* event= */ NULL);
}

/* How many are so, DRIVEN_MAX at most; which: the how-manieth is *ret_run. NULL: of none. */
static unsigned runs_that(struct sim *sim, unsigned column, const unsigned *which, int64_t *ret_run)
{
	struct unit_result result = trial_ask(sim, &trial_runs);
	const struct db_rows *rows = &result.rows[0];
	unsigned n = 0;

	for (size_t i = 0; i < rows->n && n < DRIVEN_MAX; i++) {
		if (!db_cell(rows, i, column)->i || !trial_is_begun(sim, db_cell(rows, i, 0)->i))
			continue;
		if (which && n == *which)
			*ret_run = db_cell(rows, i, 0)->i;
		n++;
	}
	return n;
}

static void init_driver(union sim_task *task, struct trial_actor *a, struct arena *texts)
{
	struct trial *t = a->trial;
	unsigned chosen = t->sim->chosen, due, asked;
	int64_t run;

	if (t->machine->batch) {
		trial_tenure_init(task, t, /* cancels= */ false, texts);
		return;
	}
	due = runs_that(t->sim, TRIAL_RUN_DUE, &chosen, &run);
	if (chosen < due) {
		run_drive_init((struct run_drive *)task, run, &t->policy, texts);
		return;
	}
	chosen -= due;
	asked = runs_that(t->sim, TRIAL_RUN_ASKED, &chosen, &run);
	if (chosen < asked)
		run_verb_init((struct run_verb *)task, obey_of(t, run), texts);
	else
		trial_slots_init(task, t, texts);
}

/* Of an entity whose claim is past its time: its machine, of the version in force. */
static const struct entity_machine *entity_past(const struct trial *t, const struct db_rows *past)
{
	const struct trial_member *m = TRIAL_MEMBER_AT(t, db_cell(past, 0, 0)->i);

	return m == t->members ? trial_in_force(t->sim)->entity : m->machine->entity;
}

/* What is past its time and has a probe is not for the janitor, but for who asks it. */
static bool wants_probe(const struct trial *t, const struct db_rows *past)
{
	const struct workflow *w;
	const struct step *step;

	if (db_cell(past, 0, 3)->type == DB_NULL)
		return false;
	w = entity_past(t, past)->workflow;
	step = workflow_step(w, db_cell(past, 0, 3)->s, db_cell(past, 0, 4)->s, db_cell(past, 0, 5)->s);
	return step && workflow_view(w, step, db_cell(past, 0, 5)->s)->on_unknown == UNKNOWN_PROBE;
}

static void init_janitor(union sim_task *task, struct trial_actor *a, struct arena *texts)
{
	struct trial *t = a->trial;
	struct unit_result result = trial_ask(t->sim, &trial_past);
	const struct db_rows *past = &result.rows[0];
	struct job_settle_request *lapse;

	if (db_cell(past, 0, 1)->i != job_kind()) {
		bool is_old = trial_in_force(t->sim) == t->machine;

		t->recover.ref.machine = entity_past(t, past);
		t->recover.subject = db_cell(past, 0, 0)->i;
		if (wants_probe(t, past))
			entity_step_init((struct entity_step *)task, &t->recover, texts);
		else
			janitor_init((struct janitor *)task, is_old ? &t->janitor : &t->new_janitor, /* budget= */ 8,
				     (struct mono_time){0});
		return;
	}
	lapse = arena_zalloc(texts, sizeof *lapse);
	ASSERT(lapse);
	*lapse = (struct job_settle_request){
		.kind = JOB_LAPSE, .subject = db_cell(past, 0, 0)->i, .fence = db_cell(past, 0, 2)->i};
	job_settle_init((struct job_settle *)task, lapse, texts);
}

static void init_actor(union sim_task *task, const void *plan, struct arena *texts)
{
	struct trial_actor *a = (struct trial_actor *)(uintptr_t)plan;
	struct unit_result due;

	switch (a->part) {
	case PART_CALLER:
		init_caller(task, a, texts);
		break;
	case PART_DRIVER:
		init_driver(task, a, texts);
		break;
	case PART_JANITOR:
		init_janitor(task, a, texts);
		break;
	case PART_WORKER:
		trial_worker_init(task, a->trial, texts);
		break;
	case PART_OPERATOR:
		trial_ledger(a->trial->sim)->used[TRIAL_CLICKS_MAX - 1] = 1;
		trial_put_init(task, a->trial);
		break;
	case PART_DELIVERER:
		due = trial_ask(a->trial->sim, &trial_effect_due);
		job_run_init((struct job_run *)task, db_cell(&due.rows[0], 0, 0)->i, &delivery, action_of, a->trial,
			     texts);
		break;
	}
}

/* The drivers stand first: one comes by where those before it are busy with a call. */
static unsigned drives_n(struct sim *sim, unsigned actor)
{
	for (unsigned i = 0; i < actor; i++)
		if (sim->state.actors[i].state == SIM_DONE)
			return 0;
	if (trial_of(sim)->machine->batch)
		return (unsigned)trial_ask(sim, &trial_due_batches).rows[0].n;
	return runs_that(sim, TRIAL_RUN_DUE, /* which= */ NULL, NULL) +
	       runs_that(sim, TRIAL_RUN_ASKED, /* which= */ NULL, NULL) +
	       (trial_has_slots(trial_of(sim)) ? trial_slots_due(sim) : 0);
}

/* A claim in a status that the version in force does not have is nobody's to end (docs/definitions.md): it stays. */
static bool has_past(struct sim *sim)
{
	const struct trial *t = trial_of(sim);
	struct unit_result result = trial_ask(sim, &trial_past);
	const struct db_rows *past = &result.rows[0];

	return past->n && (db_cell(past, 0, 1)->i == job_kind() || wants_probe(t, past) ||
			   workflow_is_claim_status(entity_past(t, past)->workflow, db_cell(past, 0, 6)->s));
}

unsigned trial_rounds(struct sim *sim, unsigned actor)
{
	struct trial *t = trial_of(sim);

	t->sim = sim;
	switch (t->actors[actor].part) {
	case PART_CALLER:
		return offers_n(sim, &t->actors[actor]);
	case PART_DRIVER:
		return drives_n(sim, actor);
	case PART_JANITOR:
		return has_past(sim);
	case PART_WORKER:
		return trial_ask(sim, &trial_worker_due).rows[0].n > 0;
	case PART_OPERATOR:
		return !trial_ledger(sim)->used[TRIAL_CLICKS_MAX - 1];
	case PART_DELIVERER:
		return trial_ask(sim, &trial_effect_due).rows[0].n > 0;
	}
	return 0;
}

bool trial_is_bystander(const struct sim *sim, unsigned actor)
{
	enum trial_part part = trial_of(sim)->actors[actor].part;

	return part == PART_CALLER || part == PART_OPERATOR;
}

/*
 * All up to the first call, and what is written about its answer: whoever is killed or stands still in between has been so during the
 * call, which was done. Callers of entities race for the claim, which is what they are for.
 */
bool trial_is_eager(const struct sim *sim, unsigned actor)
{
	const struct sim_actor *a = &sim->state.actors[actor];

	if (trial_of(sim)->actors[actor].part == PART_CALLER && trial_of(sim)->fires_n)
		return a->answered;
	return trial_of(sim)->actors[actor].part != PART_DRIVER || !a->wrote || a->answered;
}

/*
 * Whoever ends what is over acts on what he has read of others, and they go on meanwhile. So do nodes that look at a schedule, or take a
 * run up: but that makes a run three times as large, and has shown nothing more of it, so that it takes two pauses.
 */
bool trial_stands_still(const struct sim *sim, unsigned actor)
{
	const struct trial *t = trial_of(sim);
	enum trial_part part = t->actors[actor].part;

	if (part == PART_DRIVER)
		return t->machine->schedule || t->options->pauses > 1;
	return part == PART_JANITOR;
}

/* ---- what callers could do ---- */

void trial_add_click(struct trial *t, unsigned max, struct run_verb_request rq, const char *words)
{
	rq.subject = rq.subject ? rq.subject : TRIAL_SUBJECT;
	if (t->clicks_n == TRIAL_CLICKS_MAX)
		return;
	for (size_t i = 0; i < t->clicks_n && !t->scripted; i++) /* both versions have it */
		if (strcmp(t->clicks[i].words, words) == 0 && t->clicks[i].rq.subject == rq.subject)
			return;
	rq.workspace = slice_str("default");
	rq.policy = &t->policy;
	t->clicks[t->clicks_n++] = (struct trial_click){words, rq, max};
}

const char *trial_words_of(struct trial *t, const char *format, const char *name)
{
	char text[120];

	snprintf(text, sizeof text, format, name);
	return arena_copy(t->arena, slice_str(text)).p;
}

static void add_clicks(struct trial *t, int64_t subject, const struct run_definition *d)
{
	for (size_t i = 0; i < d->steps_n; i++) {
		const struct run_step *step = &d->steps[i];

		if (step->type == RUN_EXTERNAL_EVENT)
			trial_add_click(t, t->options->callers > 1 ? 2 : 1,
					(struct run_verb_request){.kind = RUN_EVENT,
								  .subject = subject,
								  .name = slice_str(step->event),
								  .event_id = slice_str("event-1"),
								  .data = slice_str("{}")},
					trial_words_of(t, "sends the event %s", step->event));
		if (step->type == RUN_APPROVAL) {
			trial_add_click(t, 1,
					(struct run_verb_request){.kind = RUN_APPROVE,
								  .subject = subject,
								  .name = slice_str(step->name),
								  .data = slice_str("{\"decision\":\"approve\"}")},
					trial_words_of(t, "approves %s", step->name));
			trial_add_click(t, 1,
					(struct run_verb_request){.kind = RUN_APPROVE,
								  .subject = subject,
								  .name = slice_str(step->name),
								  .data = slice_str("{\"decision\":\"reject\"}")},
					trial_words_of(t, "rejects %s", step->name));
		}
		t->clicks_max += step->type == RUN_EXTERNAL_EVENT || step->type == RUN_APPROVAL;
		for (size_t p = 0; p < step->parts_n; p++)
			add_clicks(t, subject, step->parts[p].definition);
	}
}

static void add_run_clicks(struct trial *t, const struct trial_member *m)
{
	int64_t subject = TRIAL_SUBJECT_OF(t, m);

	trial_add_click(t, 1, (struct run_verb_request){.kind = RUN_CANCEL, .subject = subject}, "cancels the run");
	add_clicks(t, subject, m->machine->of->run);
}

/* To the other version, which has come meanwhile; and what can be done to a run of that. */
static void add_migration(struct trial *t)
{
	if (!t->machine->next)
		return;
	trial_add_click(t, 1,
			(struct run_verb_request){.kind = RUN_MIGRATE,
						  .definition_version = t->machine->next->version,
						  .requester = slice_str("caller")},
			"migrates the run to the new version");
	add_clicks(t, TRIAL_SUBJECT, t->machine->next->of->run);
}

static bool same_view(const struct step_view *a, const struct step_view *b)
{
	return a->action == b->action && a->validation == b->validation && a->claim_into == b->claim_into &&
	       a->on_unknown == b->on_unknown && strcmp(a->successful_state, b->successful_state) == 0;
}

static bool has_fire(const struct trial *t, const struct trial_member *m, const struct step *step,
		     const struct step_view *view)
{
	for (size_t i = 0; i < t->fires_n; i++)
		if (t->fires[i].member == m && t->fires[i].step == step &&
		    same_view(view,
			      workflow_view(t->fires[i].machine->of->entity, step, slice_str(t->fires[i].requester))))
			return true;
	return false;
}

void trial_add_fire(struct trial *t, const struct trial_member *member, const struct trial_machine *m,
		    const struct step *step, const char *requester)
{
	t->fires[t->fires_n++] = (struct trial_fire){
		.machine = m,
		.member = member,
		.step = step,
		.requester = requester,
		.rq = {.mode = STEP_FIRE,
		       .ref = {member->ref.workspace, m->entity, member->ref.name},
		       .step_key = slice_str(step->step_key),
		       .requester = slice_str(requester),
		       .input = json_trust(member->input),
		       .lease_ms = LEASE_MS,
		       .workflow_of = workflow_of,
		       .context = t},
	};
}

static void add_fires(struct trial *t, const struct trial_member *member, const struct trial_machine *m)
{
	const struct workflow *w = m->of->entity;

	for (size_t i = 0; i < w->steps_n; i++)
		for (size_t v = w->requesters_n + 1; v-- > 0;) {
			const struct step_view *view = &w->steps[i].views[v];

			if (view->allowed && view->start == STARTS_HERE && t->fires_n < TRIAL_FIRES_MAX &&
			    !has_fire(t, member, &w->steps[i], view))
				trial_add_fire(t, member, m, &w->steps[i],
					       v == w->requesters_n ? "default" : w->requesters[v]);
		}
}

/* As the engine's janitors make them. */
static struct janitor_rules rules_of(struct trial *t, const struct trial_machine *m)
{
	const struct workflow *w = m->of->entity;
	struct janitor_rules rules = {0, &t->rules[t->rules_n]};

	for (size_t i = 0; i < t->rules_n; i++) /* two of one workflow */
		if (t->rules[i].machine == m->entity)
			return rules;
	for (size_t i = 0; i < w->statuses_n && t->rules_n < TRIAL_FIRES_MAX; i++)
		if (workflow_is_claim_status(w, slice_str(w->statuses[i])))
			t->rules[t->rules_n++] = (struct janitor_rule){
				.kind = m->entity->kind,
				.claim_into = w->statuses[i],
				.revert_to = workflow_revert_of(w, slice_str(w->statuses[i])),
				.machine = m->entity,
			};
	rules.n = (size_t)(&t->rules[t->rules_n] - rules.rules);
	return rules;
}

static void add_entity_parts(struct trial *t)
{
	t->janitor = (struct janitor_rules){0, t->rules};
	for (size_t i = 0; i < t->members_n; i++)
		if (t->members[i].machine->entity) {
			add_fires(t, &t->members[i], t->members[i].machine);
			t->janitor.n += rules_of(t, t->members[i].machine).n;
		}
	if (t->machine->next && t->machine->entity) {
		add_fires(t, t->members, t->machine->next);
		t->new_janitor = rules_of(t, t->machine->next);
		trial_put_prepare(t);
	}
	t->recover = (struct step_request){.mode = STEP_RECOVER,
					   .ref = {.machine = t->machine->entity},
					   .subject = TRIAL_SUBJECT,
					   .lease_ms = LEASE_MS,
					   .workflow_of = workflow_of,
					   .context = t};
}

/* ---- the cast ---- */

static void add_actor(struct trial *t, enum trial_part part, unsigned n, unsigned node)
{
	static const char *const names[] = {"caller", "driver", "janitor", "worker", "deliverer", "operator"};
	unsigned i = t->scenario.cast_n++;
	struct trial_actor *a = &t->actors[i];

	ASSERT(i < SIM_ACTORS_MAX);
	*a = (struct trial_actor){.trial = t, .part = part, .n = n};
	if (part == PART_CALLER && n == t->options->callers) {
		a->hook = true;
		snprintf(a->name, sizeof a->name, "hook");
	} else if (part == PART_CALLER || part == PART_DRIVER)
		snprintf(a->name, sizeof a->name, "%s-%u", names[part], n + 1);
	else
		snprintf(a->name, sizeof a->name, "%s", names[part]);
	t->scenario.cast[i] = (struct sim_cast){
		.name = a->name, .node = node, .recurring = true, .init = init_actor, .plan = a};
}

static void add_queues(struct trial *t)
{
	t->claim = (struct job_claim_request){
		.workspace = slice_str("default"), .owner = slice_str("worker"), .max = 1, .lease_ms = LEASE_MS};
	for (size_t m = 0; m < t->machines_n; m++)
		for (size_t a = 0; a < t->machines[m].of->actions_n && t->claim.queues_n < JOB_QUEUES_MAX; a++)
			if (action_is_for_workers(&t->machines[m].of->actions[a]))
				t->claim.queues[t->claim.queues_n++] = slice_str(t->machines[m].of->actions[a].queue);
}

void trial_cast(struct trial *t)
{
	unsigned nodes = t->options->nodes, callers = t->options->callers;
	bool is_run = t->has_run, is_entity = t->has_entity, is_batch = t->machine->batch != NULL;

	t->fires_n = t->clicks_n = t->rules_n = t->obeys_n = 0;
	t->clicks_max = callers;
	t->scenario.cast_n = 0;
	t->scenario.nodes_n = nodes + 1; /* the last one has the janitor, and is no node of the engine's */
	t->policy = (struct run_policy){.lease_ms = LEASE_MS, .machine_of = trial_machine_of, .context = t};
	add_queues(t);
	for (size_t i = 0; i < t->members_n; i++)
		if (t->members[i].machine->run)
			add_run_clicks(t, &t->members[i]);
	if (t->machine->run)
		add_migration(t);
	if (is_entity)
		add_entity_parts(t);
	for (unsigned i = 0; i < nodes && (is_run || is_batch); i++)
		add_actor(t, PART_DRIVER, i, i);
	for (unsigned i = 0; i < callers && !(!is_entity && i == 2); i++)
		add_actor(t, PART_CALLER, i, is_run && !is_entity ? nodes : i % nodes);
	for (size_t i = 0; i < t->fires_n; i++)
		if (trial_awaits_hook(t, t->fires[i].member, t->fires[i].step->step_key)) {
			add_actor(t, PART_CALLER, callers, /* node= */ 0);
			break;
		}
	if (is_entity || t->claim.queues_n || t->has_effects)
		add_actor(t, PART_JANITOR, 0, nodes);
	if (is_run && t->claim.queues_n)
		add_actor(t, PART_WORKER, 0, nodes);
	if (t->has_effects)
		add_actor(t, PART_DELIVERER, 0, 0);
	if (t->machine->entity && t->machine->next)
		add_actor(t, PART_OPERATOR, 0, nodes);
}
