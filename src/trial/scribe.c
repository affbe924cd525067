/*
 * A story as a test of `hapax test` (example.h): its schedule walked once more, and what people, services and nodes do in it written
 * down as given and when. A test says less than a schedule (who goes on by itself goes on as far as he can), so whoever saves one
 * carries it out first, and sees whether it breaks the same rule.
 */
#include <stdio.h>

#include "base/json_string.h"
#include "sim/sim_parts.h"
#include "sim/world.h"
#include "trial/parts.h"

#define WHENS_BYTES_MAX (64u << 10)

struct scribe {
	struct explore_listener base;
	struct trial *t;
	struct strbuf whens;
	size_t whens_n;
	int64_t waited_ms; /* since the last of them, while nothing else went on */
	int64_t now_ms;
	struct {
		unsigned n;
		unsigned char outcomes[EXAMPLE_OUTCOMES_MAX];
	} services[TRIAL_ACTIONS_MAX]; /* as trial.services[] */
	struct {
		const struct trial_service *service; /* NULL: it does not call */
		uint64_t key;
		bool overrun;
	} calls[SIM_ACTORS_MAX];
	const struct trial_service *last; /* whose call ended last; NULL: none has, or nothing has gone on since */
	unsigned begun;                   /* members that have, a bit for each */
	bool begins;                      /* one of them by itself */
	bool full;                        /* there is more than a test has room for */
};

/* ---- services ---- */

static const struct trial_service *service_of_call(struct sim *sim, unsigned actor, uint64_t *ret_key)
{
	struct act_call call = sim_call_of(&sim->state.actors[actor]);
	int64_t subject;
	const struct trial_caller *c = trial_caller_of(trial_of(sim), &call, &subject);

	*ret_key = world_key(call.key) + (uint64_t)call.attempt;
	return c ? c->service : NULL;
}

static void look_at_calls(struct scribe *x, struct sim *sim)
{
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		x->calls[i].service = NULL;
		x->calls[i].overrun = sim->state.actors[i].overrun;
		if (sim_is_acting(&sim->state.actors[i]))
			x->calls[i].service = service_of_call(sim, i, &x->calls[i].key);
	}
}

/* Actions of one name are one in a test. */
static void note_outcome(struct scribe *x, const struct trial_service *service, unsigned outcome)
{
	size_t i = 0;

	while (strcmp(x->t->services[i].action->name, service->action->name) != 0)
		i++;
	if (x->services[i].n == EXAMPLE_OUTCOMES_MAX)
		x->full = true;
	else
		x->services[i].outcomes[x->services[i].n++] = (unsigned char)outcome;
}

/* Those that were under way, and are not any more, or go on without their lease. */
static void note_cuts(struct scribe *x, struct sim *sim, unsigned outcome)
{
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		uint64_t key;

		if (!x->calls[i].service)
			continue;
		if (sim_is_acting(&sim->state.actors[i]) && service_of_call(sim, i, &key) == x->calls[i].service &&
		    key == x->calls[i].key && sim->state.actors[i].overrun == x->calls[i].overrun)
			continue;
		note_outcome(x, x->calls[i].service, outcome);
		return; /* what else is cut off by it is cut off by it in the test as well */
	}
}

/* ---- people ---- */

static void begin_when(struct scribe *x, const char *name)
{
	x->full |= x->whens_n++ == EXAMPLE_WHENS_MAX;
	strbuf_add_str(&x->whens, x->whens_n == 1 ? "\n        { " : ",\n        { ");
	strbuf_addf(&x->whens, "\"%s\": ", name);
}

/* "order", or "order/2". */
static void add_name(const struct scribe *x, unsigned member, struct strbuf *out)
{
	const struct trial_member *m = &x->t->members[member];
	unsigned n = 1;
	char text[WORKFLOW_NAME_MAX + 4];

	for (unsigned i = 0; i < member; i++)
		n += x->t->members[i].machine->of == m->machine->of;
	snprintf(text, sizeof text, n > 1 ? "%s/%u" : "%s", m->machine->of->name, n);
	json_quote(slice_str(text), out);
}

static void end_when(struct scribe *x)
{
	strbuf_add_str(&x->whens, " }");
}

/* What was waited for until now; not where a call is waited for, which time is skipped to. */
static void note_wait(struct scribe *x, const struct trial_service *during)
{
	if (x->waited_ms && !during) {
		begin_when(x, "wait");
		strbuf_addf(&x->whens, "\"%lldms\"", (long long)x->waited_ms);
		end_when(x);
	}
	x->waited_ms = 0;
}

static const struct trial_service *under_way(const struct scribe *x)
{
	for (unsigned i = 0; i < SIM_ACTORS_MAX; i++)
		if (x->calls[i].service)
			return x->calls[i].service;
	return NULL;
}

static void note_start(struct scribe *x, unsigned member);

/*
 * member: to whom it is done, who has begun then; or, at a start, who begins by it. Without a value it is `of`, where that is of nothing more,
 * or true.
 */
static void note_when(struct scribe *x, unsigned member, const char *name, struct slice value, const char *more,
		      const char *of)
{
	const struct trial_service *during;
	bool starts = strcmp(name, "start") == 0;

	if (!starts && !(x->begun >> member & 1))
		note_start(x, member);
	/* Between two calls nobody can say anything: so it is said during the first of them. */
	during = under_way(x);
	if (!during && x->t->members_n > 1)
		during = x->last;
	note_wait(x, during);
	begin_when(x, name);
	if (starts)
		add_name(x, member, &x->whens);
	else if (value.p)
		json_quote(value, &x->whens);
	else
		strbuf_add_str(&x->whens, of ? of : "true");
	if (member && !starts) {
		strbuf_add_str(&x->whens, ", \"of\": ");
		add_name(x, member, &x->whens);
	}
	if (more) {
		strbuf_addf(&x->whens, ", \"%s\": ", more);
		json_quote(slice_str(of), &x->whens);
	}
	if (during) {
		strbuf_add_str(&x->whens, ", \"during\": ");
		json_quote(slice_str(during->action->name), &x->whens);
	}
	end_when(x);
}

static unsigned member_of_run(int64_t subject)
{
	return (unsigned)(subject - TRIAL_SUBJECT);
}

/* Whose service has told that, which starts the member, or is this event; NULL: nobody would. */
static const char *told_by(const struct scribe *x, unsigned member, const char *event)
{
	const char *found = NULL;

	for (size_t i = 0; i < x->t->services_n; i++)
		if (trial_tells(x->t, &x->t->services[i], &x->t->members[member], event))
			found = x->t->services[i].action->name;
	return found;
}

/* Who begins first does so by himself, at the beginning. */
static void note_start(struct scribe *x, unsigned member)
{
	const char *by = told_by(x, member, NULL);
	bool first = !x->begins && !x->whens_n;

	x->begins |= first;
	x->begun |= 1u << member;
	if (by)
		note_when(x, 0, "tell", slice_str(by), NULL, NULL);
	else if (!first)
		note_when(x, member, "start", slice_of(NULL, 0), NULL, NULL);
}

static void note_verb(struct scribe *x, const struct run_verb_request *rq)
{
	static const char approves[] = "{\"decision\":\"approve\"}";
	unsigned m = member_of_run(rq->subject);
	const char *by = rq->kind == RUN_EVENT ? told_by(x, m, rq->name.p) : NULL;

	if (by)
		note_when(x, 0, "tell", slice_str(by), NULL, NULL);
	else if (rq->kind == RUN_EVENT)
		note_when(x, m, "event", rq->name, "id", rq->event_id.p);
	else if (rq->kind == RUN_APPROVE)
		note_when(x, m, slice_is(rq->data, approves) ? "approve" : "reject", rq->name, NULL, NULL);
	else if (rq->kind == RUN_CANCEL)
		note_when(x, m, "cancel", slice_of(NULL, 0), NULL, NULL);
	else /* a test has one version */
		x->full = true;
}

static void note_click(struct scribe *x, struct sim *sim, unsigned actor)
{
	const struct trial *t = x->t;
	const struct run_verb *verb = (const struct run_verb *)&sim->state.actors[actor].task;

	if (t->actors[actor].part != PART_CALLER)
		return;
	for (size_t i = 0; i < t->clicks_n; i++)
		if (verb->rq == &t->clicks[i].rq) {
			note_verb(x, verb->rq);
			return;
		}
	if (t->machine->batch) {
		static const char *const acts[BATCH_ACTS] = {"cancel", "credit", "accept", "accept"};
		static const char *const values[BATCH_ACTS] = {NULL, "10", "0", "1"};
		unsigned act = trial_ledger(sim)->fired[t->actors[actor].n] - 1u;

		note_when(x, 0, acts[act], slice_of(NULL, 0), NULL, values[act]);
	} else {
		const struct trial_fire *fire = &t->fires[trial_ledger(sim)->fired[t->actors[actor].n] - 1];
		bool anyone = strcmp(fire->requester, "default") == 0;
		unsigned m = (unsigned)(fire->member - t->members);
		const char *by = told_by(x, m, fire->step->step_key);

		if (by)
			note_when(x, 0, "tell", slice_str(by), NULL, NULL);
		else
			note_when(x, m, "fire", slice_str(fire->step->step_key), anyone ? NULL : "as", fire->requester);
	}
}

/* A run is not PENDING any more. */
static void note_starts(struct scribe *x, struct sim *sim)
{
	struct unit_result result = trial_ask(sim, &trial_runs);
	const struct db_rows *rows = &result.rows[0];

	for (size_t i = 0; i < rows->n && i < x->t->members_n; i++) {
		unsigned m = member_of_run(db_cell(rows, i, 0)->i);

		if (m < x->t->members_n && !(x->begun >> m & 1) && !slice_is(db_cell(rows, i, 3)->s, RUN_PENDING))
			note_start(x, m);
	}
}

/* Does anybody but this one have something to write? */
static bool others_go_on(struct sim *sim, unsigned actor)
{
	struct sim_edge edges[SIM_EDGES_MAX];
	size_t n = sim_edges(sim, edges);
	bool on = false;

	for (size_t i = 0; i < n; i++)
		on |= edges[i].kind == EDGE_WRITE && edges[i].who != actor;
	return on;
}

/* ---- along the way ---- */

static void scribe_before(struct explore_listener *base, struct sim *sim, struct sim_edge edge)
{
	struct scribe *x = (struct scribe *)base;

	x->now_ms = sim->state.now.ms;
	look_at_calls(x, sim);
	if (!others_go_on(sim, edge.who))
		x->last = NULL;
	if (edge.kind == EDGE_ACT && x->calls[edge.who].service)
		/* When whoever stalls goes on, a test cannot say: there it has not heard. */
		note_outcome(x, x->calls[edge.who].service,
			     edge.mask ? OUTCOME_PAUSE + CUT_DONE : trial_may_of(edge.how));
	if (edge.kind == EDGE_LAND) {
		const struct trial_effect *late = &trial_ledger(sim)->late[edge.how];

		note_when(x, 0, "land", slice_str(x->t->callers[late->caller].service->action->name), NULL, NULL);
	}
}

static void scribe_after(struct explore_listener *base, struct sim *sim, struct sim_edge edge)
{
	struct scribe *x = (struct scribe *)base;

	if (edge.kind == EDGE_ACT)
		x->last = x->calls[edge.who].service;
	note_starts(x, sim);
	if (edge.kind == EDGE_AGAIN)
		note_click(x, sim, edge.who);
	else if (edge.kind == EDGE_CRASH)
		note_cuts(x, sim, OUTCOME_CRASH + edge.how);
	else if (edge.kind == EDGE_TIME && edge.mask)
		note_cuts(x, sim, OUTCOME_PAUSE + edge.how);
	else if (edge.kind == EDGE_TIME)
		x->waited_ms += sim->state.now.ms - x->now_ms;
}

/* ---- the text ---- */

static bool is_plain(const struct scribe *x, size_t i)
{
	for (unsigned k = 0; k < x->services[i].n; k++)
		if (x->services[i].outcomes[k] != MAY_DONE)
			return false;
	return true;
}

static void add_service(const struct scribe *x, size_t i, struct strbuf *out)
{
	unsigned n = x->services[i].n;

	json_quote(slice_str(x->t->services[i].action->name), out);
	strbuf_add_str(out, ": [");
	for (unsigned k = 0; k < n; k++)
		strbuf_addf(out, "%s\"%s\"", k ? ", " : "", example_outcome_name(x->services[i].outcomes[k]));
	/* The last one goes for all that follow. */
	if (n < EXAMPLE_OUTCOMES_MAX && x->services[i].outcomes[n - 1] != MAY_DONE &&
	    x->t->services[i].may & 1u << MAY_DONE)
		strbuf_add_str(out, ", \"done\"");
	strbuf_add_char(out, ']');
}

static void add_subject(const struct scribe *x, unsigned i, struct strbuf *out)
{
	const struct trial_member *m = &x->t->members[i];

	if (m->start) {
		strbuf_add_str(out, "\"status\": ");
		json_quote(slice_str(m->start), out);
		strbuf_add_str(out, ", ");
	}
	strbuf_addf(out, "\"input\": %.*s", SLICE_ARGS(m->input));
	if (m->machine->batch && m->balance < TRIAL_BALANCE)
		strbuf_addf(out, ", \"balance\": %lld", (long long)m->balance);
	if (++i == x->t->members_n)
		return;
	strbuf_add_str(out, ", \"with\": { \"workflow\": ");
	json_quote(slice_str(x->t->members[i].machine->of->name), out);
	strbuf_add_str(out, ", ");
	add_subject(x, i, out);
	strbuf_add_str(out, " }");
}

static void add_given(const struct scribe *x, struct strbuf *out)
{
	const struct trial *t = x->t;
	bool first = true;

	strbuf_add_str(out, "      \"given\": { ");
	add_subject(x, 0, out);
	strbuf_add_str(out, ", \"services\": { ");
	for (size_t i = 0; i < t->services_n; i++)
		if (x->services[i].n && !is_plain(x, i)) {
			strbuf_add_str(out, first ? "" : ", ");
			add_service(x, i, out);
			first = false;
		}
	strbuf_add_str(out, " } },\n");
}

static const char *text_of(struct scribe *x, const struct trial_story *story)
{
	LOCAL_STRBUF(out, 2 * WHENS_BYTES_MAX);
	LOCAL_STRBUF(name, EXAMPLE_TEXT_MAX);

	strbuf_addf(&name, "never again: %.*s", EXAMPLE_TEXT_MAX - 20, story->broken);
	strbuf_add_str(&out, "    { \"name\": ");
	json_quote(strbuf_slice(&name), &out);
	strbuf_add_str(&out, ",\n      \"workflow\": ");
	json_quote(slice_str(x->t->machine->of->name), &out);
	strbuf_add_str(&out, ",\n");
	add_given(x, &out);
	if (x->whens_n)
		strbuf_addf(&out, "      \"when\": [%.*s ],\n", (int)x->whens.n, x->whens.p);
	strbuf_add_str(&out, "      \"then\": {} }");
	return x->full || x->whens.failed || out.failed ? NULL : arena_copy(x->t->arena, strbuf_slice(&out)).p;
}

const char *trial_as_test(struct trial *t, const struct explore_found *found, const struct trial_story *story)
{
	struct scribe *x = arena_zalloc(t->arena, sizeof *x);
	const char *text;

	ASSERT(x);
	x->base = (struct explore_listener){scribe_before, scribe_after};
	x->t = t;
	for (unsigned i = 0; i < t->members_n; i++)
		x->begun |= (unsigned)(t->members_n == 1 || !t->members[i].machine->run) << i;
	strbuf_init(&x->whens, WHENS_BYTES_MAX);
	explore_follow(&t->scenario, found, &x->base);
	text = text_of(x, story);
	strbuf_release(&x->whens);
	return text;
}
