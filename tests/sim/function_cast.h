/*
 * Who takes part in the scenarios of functions: workers, which replay a journal and go on as a client does, by a program of the scenario's;
 * the node that looks; people and parents with their verbs.
 *
 * What a task wants of the store says all that will come of it: so tasks of functions, whose memory is full of addresses, count by the unit
 * that they ask for (digest()), and by what a worker knows.
 */
#ifndef HX_TESTS_SIM_FUNCTION_CAST_H
#define HX_TESTS_SIM_FUNCTION_CAST_H

#include "sim/function_store.h"
#include "task/shape.h"

/* ---- a task, by what it asks for ---- */

/* made: the run that it is about, which may have another id in each schedule. */
static uint64_t digest(const struct task *inner, int64_t made)
{
	struct unit unit;
	struct ask ask = {.unit = &unit};
	uint64_t hash = hash_mix((uint64_t)(uintptr_t)inner->kind, (uint64_t)inner->at);

	inner->kind->ask(inner, &ask);
	hash = hash_mix(hash_mix(hash, ask.kind), ask.code);
	for (unsigned i = 0; ask.kind == ASK_COMMIT && i < unit.lines_n; i++) {
		const struct unit_line *line = &unit.lines[i];

		hash = hash_mix(hash, (uint64_t)(uintptr_t)line->stmt);
		for (unsigned p = 0; p < line->params_n; p++) {
			const struct db_value *v = &line->params[p];

			if (v->type == DB_INT && (v->i == unit.op || v->i == made))
				continue; /* the op is fresh, and nobody is told of it */
			hash = hash_mix(hash, v->type);
			if (v->type == DB_INT)
				hash = hash_mix(hash, (uint64_t)v->i);
			else if (v->type != DB_NULL)
				hash = hash_bytes(hash, v->s.p, v->s.n);
		}
	}
	return hash;
}

/*
 * A parent leaves words on the rows of its children, and a claim asks how the parent stands, without a lock of the other's subject. On one
 * connection nothing comes between; so it is here: whoever writes holds the root, too.
 */
static void lock_root(struct ask *ask)
{
	if (ask->kind == ASK_COMMIT && !reads_only(ask->unit))
		unit_touch(ask->unit, ROOT);
}

/* A look, or a verb. */
struct masked {
	struct task task;
	uint64_t asks;
	int64_t op; /* of a verb */
	int64_t subject;
	union {
		struct task inner;
		struct function_look look;
		struct run_verb verb;
	};
};

static void masked_take(struct task *task, const struct answer *answer)
{
	struct masked *m = (struct masked *)task;

	m->inner.kind->take(&m->inner, answer);
	m->asks = digest(&m->inner, m->subject);
	if (is(m->inner.kind->name, "verb")) {
		const struct run_row *row = &m->verb.row;

		m->op = m->verb.stamp.op;
		m->asks = hash_mix(m->asks, (uint64_t)row->version);
		m->asks = hash_bytes(m->asks, row->asked.p ? row->asked.p : "", row->asked.n);
		m->asks = hash_mix(m->asks, (uint64_t)(uintptr_t)row->status);
	}
}

static void masked_ask(const struct task *task, struct ask *ask)
{
	const struct masked *m = (const struct masked *)task;

	m->inner.kind->ask(&m->inner, ask);
	lock_root(ask);
}

static const char *masked_where(const struct task *task)
{
	const struct masked *m = (const struct masked *)task;

	return m->inner.kind->where(&m->inner);
}

/* clang-format off */
static const struct task_shape masked_shape = SHAPE(struct masked, NULL,
	PART(OP, struct masked, op),
	PART(MADE, struct masked, subject),
	PART_LAST(IGNORED, struct masked, inner)); /* asks says it */
/* clang-format on */

static const struct task_kind masked_kind = {.name = "masked",
					     .size = sizeof(struct masked),
					     .take = masked_take,
					     .ask = masked_ask,
					     .where = masked_where,
					     .shape = &masked_shape};

static struct masked *masked_new(union sim_task *task, int64_t subject)
{
	struct masked *m = (struct masked *)task;

	_Static_assert(sizeof *m <= SIM_TASK_BYTES, "it fits");
	memset(m, 0, sizeof *m);
	m->subject = subject;
	task_init(&m->task, &masked_kind, /* topic= */ 0);
	return m;
}

static void init_look(union sim_task *task, const void *plan UNUSED, struct arena *texts)
{
	int64_t subject = first_of(fixture.sim, &stmt_looks, NULL);

	subject = subject ? subject : ROOT;
	function_look_init(&masked_new(task, subject)->look, subject, texts);
}

static void init_verb(union sim_task *task, const void *plan, struct arena *texts)
{
	const struct run_verb_request *rq = plan;

	run_verb_init(&masked_new(task, rq->subject)->verb, rq, texts);
}

/* ---- workers ---- */

/* What the programs of all scenarios write. */
enum label {
	STEP_A,
	COMP_A,
	UNDO_A,
	STEP_B,
	COMP_B,
	UNDO_B,
	STEP_X,
	COMP_X,
	UNDO_X,
	CHILD_C,
	CHILD_D,
	SLEEP_S,
	EVENT_E,
	EVENT_F,
	DROP_E,
	DROP_C,
	DROP_S,
	LABELS_N
};
static const struct {
	enum entry_kind kind;
	const char *name, *other; /* an event's, or a workflow's */
	int64_t ms;
} labels[] = {
	[STEP_A] = {ENTRY_STEP, "a", NULL, 0},       [COMP_A] = {ENTRY_COMPENSATE, "a", NULL, 0},
	[UNDO_A] = {ENTRY_UNDO, "a", NULL, 0},       [STEP_B] = {ENTRY_STEP, "b", NULL, 0},
	[COMP_B] = {ENTRY_COMPENSATE, "b", NULL, 0}, [UNDO_B] = {ENTRY_UNDO, "b", NULL, 0},
	[STEP_X] = {ENTRY_STEP, "x", NULL, 0},       [COMP_X] = {ENTRY_COMPENSATE, "x", NULL, 0},
	[UNDO_X] = {ENTRY_UNDO, "x", NULL, 0},       [CHILD_C] = {ENTRY_CHILD, "c", "g", 0},
	[CHILD_D] = {ENTRY_CHILD, "d", "g", 0},      [SLEEP_S] = {ENTRY_SLEEP, "s", NULL, 1000},
	[EVENT_E] = {ENTRY_EVENT, "e", "go", 0},     [EVENT_F] = {ENTRY_EVENT, "f", "go", 0},
	[DROP_E] = {ENTRY_DROP, "e", NULL, 0},       [DROP_C] = {ENTRY_DROP, "c", NULL, 0},
	[DROP_S] = {ENTRY_DROP, "s", NULL, 0},
};

/* One call: up to three entries, and an end; a step of them is carried out after it. */
struct said {
	unsigned n;
	struct {
		enum label label;
		enum entry_state state; /* of a step */
	} entries[3];
	enum function_end_state end;
	unsigned awaits; /* labels, as a mask */
	bool any;
	int works; /* one more than the label; 0: nothing */
};

/*
 * CLAIMS ─┬▶ SENDS what its program says ─┬▶ WORKS ─▶ SENDS the outcome ─▶ SENDS what comes next …
 *         └ none: ENDED                   └▶ ENDED, with the turn or without
 */
struct worker {
	struct task task;
	const struct program *program;
	enum { CLAIMS, SENDS, WORKS, ENDED } at;
	int works;                     /* what it carries out, or is about to */
	int64_t run, fence, seq;       /* fence 0: it has no turn */
	int64_t cancelled;             /* it has been told */
	unsigned char known[LABELS_N]; /* one more than the state, or than HELD; 0: it is not there */
	unsigned char redo[LABELS_N];
	const char *wrong;
	struct mono_time since;
	uint64_t sent, asks;
	struct slice key;
	struct arena *texts;
	struct said said;
	struct function_request *rq;
	union {
		struct task inner;
		struct function_claim claim;
		struct function_call call;
	};
};

struct program {
	struct function_claim_request claim;
	struct said (*next)(const struct worker *w);
};

#define HELD ((enum entry_state)(ENTRY_DROPPED + 1)) /* unknown, and a person has to say */

static bool knows(const struct worker *w, enum label label, enum entry_state state)
{
	return w->known[label] == 1 + state;
}

static void note(struct worker *w, enum label label, enum entry_state state)
{
	w->known[label] = (unsigned char)(1 + state);
}

static const struct run_machine *machine_of(const void *context, struct slice workflow, int64_t version);

static struct function_change change_of(struct worker *w, enum label label, enum entry_state state)
{
	struct function_change c = {.kind = labels[label].kind,
				    .state = state,
				    .name = slice_str(labels[label].name),
				    .detail = slice_str("{}"),
				    .retry_after_ms = -1};

	(void)w;
	if (entry_is_step(c.kind))
		c.policy = slice_str(fixture.policy);
	if (state == ENTRY_DONE)
		c.output = slice_str("1");
	if (c.kind == ENTRY_CHILD) {
		c.workflow = slice_str(labels[label].other);
		c.input = slice_str("{}");
	}
	if (c.kind == ENTRY_EVENT)
		c.event = slice_str(labels[label].other);
	if (c.kind == ENTRY_SLEEP)
		c.for_ms = labels[label].ms;
	return c;
}

static void add_awaits(struct worker *w, struct function_request *rq)
{
	struct function_awaited *awaits = arena_zalloc(w->texts, LABELS_N * sizeof *awaits);

	for (unsigned i = 0; i < LABELS_N; i++)
		if (w->said.awaits & 1u << i)
			awaits[rq->end.awaits_n++] = (struct function_awaited){.kind = labels[i].kind,
									       .name = slice_str(labels[i].name)};
	rq->end.awaits = awaits;
	rq->end.any = w->said.any;
}

static void ask_inner(struct worker *w, const struct answer *answer)
{
	static struct id_source ids;
	struct answer with = *answer;

	/* A child has the same id in all schedules. */
	ids = (struct id_source){.last = (INT64_C(1) << 52) + 16 * (w->rq ? w->said.entries[0].label : 0)};
	with.ids = &ids;
	w->inner.kind->take(&w->inner, &with);
	w->asks = digest(&w->inner, w->run);
}

static void send(struct worker *w, struct said said, const struct answer *answer)
{
	struct function_request *rq = arena_zalloc(w->texts, sizeof *rq);
	struct function_change *changes = arena_zalloc(w->texts, 3 * sizeof *changes);
	struct strbuf text;

	strbuf_init(&text, 200);
	w->said = said;
	*rq = (struct function_request){
		.workspace = slice_str("default"),
		.subject = w->run,
		.worker = w->program->claim.worker,
		.fence = w->fence,
		.seq = w->seq,
		.changes_n = said.n,
		.changes = changes,
		.end = {.state = said.end, .output = slice_str("1"), .error = slice_str("null")},
		.machine_of = machine_of};
	strbuf_addf(&text, "%lld %lld %d", (long long)w->fence, (long long)w->seq, (int)said.end);
	for (unsigned i = 0; i < said.n; i++) {
		changes[i] = change_of(w, said.entries[i].label, said.entries[i].state);
		strbuf_addf(&text, " %d %d", (int)said.entries[i].label, (int)said.entries[i].state);
	}
	add_awaits(w, rq);
	rq->hash = arena_keep(w->texts, &text);
	w->sent = hash_bytes(1, rq->hash.p, rq->hash.n);
	w->at = SENDS;
	w->rq = rq;
	w->works = said.works;
	function_call_init(&w->call, rq, w->texts);
	ask_inner(w, &(struct answer){.kind = ANSWER_START, .now = answer->now});
}

static void know(struct worker *w, const struct function_entry *e)
{
	for (unsigned i = 0; i < LABELS_N; i++)
		if (labels[i].kind == e->kind && slice_is(e->name, labels[i].name)) {
			note(w, (enum label)i, entry_is_held(e) ? HELD : e->state);
			w->redo[i] = (unsigned char)e->redo;
		}
}

static void go_on(struct worker *w, const struct answer *answer)
{
	send(w, w->program->next(w), answer);
}

static void claimed(struct worker *w, const struct answer *answer)
{
	const struct function_turn *turn = w->claim.n ? &w->claim.turns[0] : NULL;

	w->at = ENDED;
	if (!turn)
		return;
	w->run = turn->row.subject;
	w->fence = turn->row.fence;
	w->seq = turn->row.seq;
	w->cancelled = is(turn->row.status, RUN_CANCELLING);
	for (size_t i = 0; i < turn->journal_n; i++)
		know(w, &turn->journal[i]);
	go_on(w, answer);
}

/* What it was told, of a call that it has sent. */
static void told(struct worker *w)
{
	const struct function_work *work = &w->call.work;

	w->seq = work->seq;
	w->cancelled |= is(work->to, RUN_CANCELLING);
	for (unsigned i = 0; i < w->said.n; i++) {
		enum label label = w->said.entries[i].label;
		enum entry_state state = w->said.entries[i].state;

		if (!entry_is_step(labels[label].kind))
			state = labels[label].kind >= ENTRY_VALUE ? ENTRY_DONE : ENTRY_OPEN;
		note(w, label, state == ENTRY_UNKNOWN ? HELD : state);
	}
	for (size_t i = 0; i < work->ended_n; i++)
		know(w, &work->ended[i]);
	for (size_t i = 0; i < work->n && work->taken; i++)
		if (work->entries[i]->ends_now)
			know(w, work->entries[i]);
}

/* Somebody else has the turn, or nobody knows: its lease ends by itself. */
static bool is_gone(enum hx_code code)
{
	return code == HX_STALE_FENCE || code == HX_STORE_UNAVAILABLE || code == HX_BUSY;
}

static void answered(struct worker *w, enum hx_code code, const struct answer *answer)
{
	const struct function_work *work = &w->call.work;

	if (!code && work->taken && work->row.fence != w->fence)
		w->wrong = "F3: a call of a turn that is over was taken";
	if (is_gone(code) || (!code && w->said.end)) {
		w->at = ENDED;
	} else if (code == HX_CANCELLED && !w->cancelled) {
		w->cancelled = true;
		go_on(w, answer);
	} else if (code == HX_WRONG_STATUS && w->said.end != END_RELEASED) {
		send(w, (struct said){.end = END_RELEASED}, answer);
	} else if (code) {
		w->wrong = "a call that fits was refused";
		w->at = ENDED;
	} else {
		told(w);
		if (w->works)
			w->at = WORKS;
		else
			go_on(w, answer);
	}
	if (w->at == WORKS) {
		LOCAL_STRBUF(key, 100);

		strbuf_addf(&key, "%s/%d%s", labels[w->works - 1].name, w->redo[w->works - 1],
			    labels[w->works - 1].kind == ENTRY_UNDO ? "/undo" : "");
		w->key = arena_copy(w->texts, strbuf_slice(&key));
	}
}

/* A lease that is over is not waited for: the client drops the run. */
static void worked(struct worker *w, enum act_outcome outcome, const struct answer *answer)
{
	struct said said = {.n = 1};

	if (outcome == ACT_CLAIM_LOST) {
		w->at = ENDED;
		return;
	}
	said.entries[0].label = (enum label)(w->works - 1);
	said.entries[0].state = outcome == ACT_OK ? ENTRY_DONE : outcome == ACT_FAILED ? ENTRY_FAILED : ENTRY_UNKNOWN;
	send(w, said, answer);
}

/* What it claimed is read at once: what may come between is test_functions.c. */
static void read_claimed(struct worker *w, const struct answer *answer)
{
	struct answer next = *answer;

	while (!task_is_done(&w->inner)) {
		LOCAL_UNIT(unit);
		struct ask ask = {.unit = &unit};
		struct unit_result result;

		w->inner.kind->ask(&w->inner, &ask);
		result = sim_run_unit(fixture.sim, &unit);
		next.result = &result;
		w->inner.kind->take(&w->inner, &next);
	}
}

static void worker_take(struct task *task, const struct answer *answer)
{
	struct worker *w = (struct worker *)task;

	if (answer->kind == ANSWER_START) {
		ask_inner(w, answer);
		return;
	}
	if (w->at == WORKS) {
		worked(w, answer->outcome, answer);
	} else {
		if (answer->result->verdict == UNIT_WON)
			w->since = answer->sent.ns ? answer->sent : w->since;
		ask_inner(w, answer);
		if (w->at == CLAIMS)
			read_claimed(w, answer);
		if (!task_is_done(&w->inner))
			return;
		if (w->at == CLAIMS)
			claimed(w, answer);
		else
			answered(w, w->inner.code, answer);
	}
	if (w->at == ENDED)
		w->fence = 0;
}

static void worker_ask(const struct task *task, struct ask *ask)
{
	static const struct action work = {.name = "work"};
	const struct worker *w = (const struct worker *)task;

	if (w->at == ENDED) {
		ask->kind = ASK_DONE;
		ask->code = HX_OK;
	} else if (w->at == WORKS) {
		ask->kind = ASK_ACT;
		ask->act = (struct act_call){
			.action = &work, .key = w->key, .attempt = 1, .lease = {w->run, w->fence, LEASE_MS, w->since}};
	} else {
		w->inner.kind->ask(&w->inner, ask);
		if (w->at == CLAIMS)
			unit_touch(ask->unit, w->run);
		lock_root(ask);
	}
}

static const char *worker_where(const struct task *task)
{
	static const char *const names[] = {"claiming", "sending", "working", "done"};

	return names[((const struct worker *)task)->at];
}

/* What counts of the call under way is in `sent` and `asks`; where there is none, nothing. */
static void worker_forget(void *copy)
{
	struct worker *w = copy;

	if (w->at == SENDS || w->at == CLAIMS)
		w->key = slice_of(NULL, 0);
	else
		w->sent = w->asks = 0;
	if (w->at == ENDED)
		w->since.ns = 0;
}

/* clang-format off */
static const struct task_shape worker_shape = SHAPE(struct worker, worker_forget,
	PART(MADE, struct worker, run),
	PART(TEXT, struct worker, wrong),
	PART(SLICE, struct worker, key),
	PART(IGNORED, struct worker, said, rq),
	PART_LAST(IGNORED, struct worker, inner));
/* clang-format on */

static const struct task_kind worker_kind = {.name = "worker",
					     .size = sizeof(struct worker),
					     .take = worker_take,
					     .ask = worker_ask,
					     .where = worker_where,
					     .shape = &worker_shape};

static void init_worker(union sim_task *task, const void *plan, struct arena *texts)
{
	struct worker *w = (struct worker *)task;

	_Static_assert(sizeof *w <= SIM_TASK_BYTES, "a worker fits");
	memset(w, 0, sizeof *w);
	w->program = plan;
	w->texts = texts;
	w->run = first_of(fixture.sim, &stmt_claimable, w->program->claim.polled->name.p);
	if (!w->run)
		w->run = ROOT;
	function_claim_init(&w->claim, &w->program->claim, texts);
	task_init(&w->task, &worker_kind, /* topic= */ 0);
}

static const struct function_polled polled_f = {.name = {"f", 1}, .version = {"1", 1}};
static const struct function_polled polled_g = {.name = {"g", 1}, .version = {"1", 1}};
#define PROGRAM(of, code)                                                                                              \
	{                                                                                                              \
		.claim = {.workspace = {"default", 7},                                                                 \
			  .worker = {"w", 1},                                                                          \
			  .polled_n = 1,                                                                               \
			  .polled = of,                                                                                \
			  .max = 1,                                                                                    \
			  .lease_ms = LEASE_MS},                                                                       \
		.next = code                                                                                           \
	}

/* ---- words of programs ---- */

static struct said ends(enum function_end_state end)
{
	return (struct said){.end = end};
}

static inline struct said suspends(unsigned awaits)
{
	return (struct said){.end = END_SUSPENDED, .awaits = awaits};
}

static struct said begun(enum label step, bool with_compensation)
{
	return (struct said){.n = 1 + with_compensation,
			     .entries = {{step, ENTRY_BEGUN}, {(enum label)(step + 1), ENTRY_DONE}},
			     .works = 1 + (int)step};
}

/* Is it to be begun? First with its compensation, then, after a lapse or a person's word, without. */
static bool begins(const struct worker *w, enum label step, struct said *ret)
{
	bool again = knows(w, step, ENTRY_UNKNOWN) || knows(w, step, ENTRY_RETRY);

	if (w->known[step] && !again)
		return false;
	*ret = begun(step, /* with_compensation= */ !again);
	return true;
}

/* A step that has a compensation, on the way back. */
static inline bool undoes(const struct worker *w, enum label step, struct said *ret)
{
	enum label undo = (enum label)(step + 2);

	if (knows(w, step, ENTRY_UNKNOWN))
		*ret = begun(step, /* with_compensation= */ false);
	else if (knows(w, step, ENTRY_DONE) &&
		 (!w->known[undo] || knows(w, undo, ENTRY_UNKNOWN) || knows(w, undo, ENTRY_RETRY)))
		*ret = begun(undo, /* with_compensation= */ false);
	else
		return false;
	return true;
}

/* ---- is there something for them? ---- */

static bool f_is_claimable(struct sim *sim)
{
	return first_of(sim, &stmt_claimable, "f") != 0;
}

/* For a second worker, whose turn is never the first: two of a kind would only be each other's mirror. */
static inline bool f_is_claimable_again(struct sim *sim)
{
	struct sim_row row;

	return f_is_claimable(sim) && sim_read_row(sim, ROOT, &row) && row.fence > 0;
}

static inline bool g_is_claimable(struct sim *sim)
{
	return first_of(sim, &stmt_claimable, "g") != 0;
}

static bool is_to_be_looked_at(struct sim *sim)
{
	return first_of(sim, &stmt_looks, NULL) != 0;
}

static bool is_asked(struct sim *sim)
{
	return first_of(sim, &stmt_asked, NULL) != 0;
}

#endif
