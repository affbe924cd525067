/*
 * Taking a call of a worker: is it who has the turn, is the call the next one, does each entry fit the journal; then what it changes.
 * A refusal changes nothing: whoever refuses leaves the work to be thrown away. See function.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/json_string.h"
#include "flow/function_parts.h"

#define WORDS_BYTES 400
#define ERROR_SHORT_BYTES 100

bool work_refuse(struct function_work *w, enum hx_code code, const char *format, ...)
{
	char words[WORDS_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	w->code = code;
	w->detail = arena_copy(w->arena, slice_str(words)).p;
	return false;
}

static bool is_in(const struct function_work *w, const char *status)
{
	return strcmp(w->row.status, status) == 0;
}

/* ---- entries ---- */

struct function_entry *work_add(struct function_work *w, enum entry_kind kind, struct slice name, int64_t n)
{
	struct function_entry *e = w->n < w->room ? arena_zalloc(w->arena, sizeof *e) : NULL;

	if (!e)
		return NULL;
	*e = (struct function_entry){.i = w->entries_n++, .n = n, .kind = kind, .name = name, .started_at = w->row.now};
	w->entries[w->n++] = e;
	return e;
}

void work_change(struct function_work *w, struct function_entry *e, enum entry_state state)
{
	e->state = state;
	e->seq = ++w->seq; /* mutant: function-seq-stands -> e->seq = w->seq; */
	e->changed = true;
	e->own = false;
	e->ends_now = entry_has_ended(state);
	e->completed_at = e->ends_now ? w->row.now : 0;
	if (e->ends_now)
		e->wake_at = e->kind == ENTRY_SLEEP ? e->wake_at : 0;
}

/* On the way back a step is not given up of which an earlier try may have been done: a worker finds out, and it is undone. */
void work_drop_try(struct function_work *w, struct function_entry *e)
{
	bool back = strcmp(w->to, RUN_CANCELLING) == 0 && e->state == ENTRY_RETRY, found_out = false;

	found_out |= back && entry_policy(e).doubt; /* mutant: doubt-dropped */
	work_change(w, e, found_out ? ENTRY_UNKNOWN : ENTRY_DROPPED);
}

void work_drop_open(struct function_work *w)
{
	bool tries = !w->row.owned || w->frees; /* else its worker may be in the middle of one: its outcome is taken */

	for (size_t i = 0; i < w->n; i++) {
		struct function_entry *e = w->entries[i];

		if (e->state != ENTRY_OPEN && (e->state != ENTRY_RETRY || !tries))
			continue;
		work_drop_try(w, e);
		w->asks_children |= e->kind == ENTRY_CHILD;
	}
}

/* ---- what a step may become ---- */

static bool follows(enum entry_state from, bool held, enum entry_state to)
{
	switch (from) {
	case ENTRY_BEGUN:
		return to != ENTRY_BEGUN;
	case ENTRY_RETRY:
		return true;
	case ENTRY_UNKNOWN:
		return !held;
	case ENTRY_OPEN:
	case ENTRY_DONE:
	case ENTRY_FAILED:
	case ENTRY_DROPPED:
		break;
	}
	return false;
}

/* A try is counted when it is begun; one that was never said to be begun, when its outcome is said. */
static bool is_another_try(enum entry_state from, enum entry_state to)
{
	return to == ENTRY_BEGUN || from == ENTRY_RETRY;
}

struct slice entry_policy_with(struct function_work *w, const struct function_entry *entry, struct slice on_unknown,
			       bool doubt)
{
	LOCAL_STRBUF(text, 64);

	strbuf_add_slice(&text, entry_policy(entry).effect);
	strbuf_add_char(&text, ' ');
	strbuf_add_slice(&text, on_unknown);
	strbuf_add_str(&text, doubt ? " " POLICY_DOUBT : "");
	return arena_copy(w->arena, strbuf_slice(&text));
}

static void put_outcome(struct function_work *w, struct function_entry *e, const struct function_change *c)
{
	enum entry_state from = e->state;

	e->attempt += from == ENTRY_OPEN || is_another_try(from, c->state);
	if (from == ENTRY_OPEN)
		e->policy = c->policy; /* it is new */
	e->output = c->output;
	e->error = c->state == ENTRY_BEGUN ? e->error : c->error;
	if (c->state == ENTRY_UNKNOWN) /* what its worker does not know either, a person has to */
		e->policy = entry_policy_with(w, e, slice_str(POLICY_HOLD), /* doubt= */ false);
	else if (from == ENTRY_UNKNOWN && !entry_has_ended(c->state))
		e->policy = entry_policy_with(w, e, entry_policy(e).on_unknown, /* doubt= */ true);
	work_change(w, e, c->state);
	e->wake_at = c->state == ENTRY_RETRY ? w->row.now + c->retry_after_ms : 0;
	e->own = true;
}

/* ---- one entry of the call ---- */

static bool bad(struct function_work *w, const struct function_change *c, const char *words)
{
	return work_refuse(w, HX_BAD_ENTRY, "%s \"%.*s\" %lld: %s", entry_kinds[c->kind], SLICE_ARGS(c->name),
			   (long long)c->n, words);
}

static bool is_outcome(const struct function_change *c, const struct function_entry *there)
{
	return entry_is_step(c->kind) && (c->state != ENTRY_BEGUN || (there && there->state == ENTRY_UNKNOWN));
}

/* While it is cancelled or paused, what was done is taken, and nothing new. */
static bool may_now(struct function_work *w, const struct function_change *c, const struct function_entry *there)
{
	bool undoes = c->kind == ENTRY_UNDO || c->kind == ENTRY_COMPENSATE;
	bool stands_still = is_in(w, RUN_PAUSED) || work_is_to_fail(w);
	bool begins = !is_outcome(c, there) || c->state == ENTRY_BEGUN;

	if (is_in(w, RUN_CANCELLING) && !is_outcome(c, there) && !undoes) /* mutant: begun-under-cancel -> if (0) */
		return work_refuse(w, HX_CANCELLED,
				   "the run is being cancelled: only outcomes, compensate and undo are taken");
	if (stands_still && begins) /* mutant: begun-while-paused -> if (0) */
		return work_refuse(w, HX_WRONG_STATUS, "the run is paused, or to fail: only outcomes are taken");
	if (c->kind == ENTRY_CHILD && w->row.stopped) /* mutant: bears-under-cancel -> if (0) */
		return work_refuse(w, HX_WRONG_STATUS,
				   "a run that it is a child of is being cancelled: only outcomes are taken");
	if (c->kind == ENTRY_UNDO && !is_in(w, RUN_CANCELLING))
		return bad(w, c, "nothing is undone before the run is cancelled");
	return true;
}

static bool is_next_of_its_name(const struct function_work *w, const struct function_change *c)
{
	return c->n == 0 || work_find(w, ENTRY_STEP, c->name, c->n - 1) != NULL;
}

static struct slice join(struct function_work *w, const char *first, struct slice second)
{
	LOCAL_STRBUF(text, 2 * FUNCTION_NAME_BYTES_MAX);

	strbuf_add_str(&text, first);
	strbuf_add_slice(&text, second);
	return arena_copy(w->arena, strbuf_slice(&text));
}

static struct slice approval_awaits(struct function_work *w, const struct function_entry *e)
{
	LOCAL_STRBUF(name, 2 * FUNCTION_NAME_BYTES_MAX);

	entry_write_name(e, &name);
	return join(w, RUN_AWAITS_APPROVAL, strbuf_slice(&name));
}

static int64_t time_after(const struct function_work *w, int64_t ms)
{
	return ms ? w->row.now + ms : 0;
}

/* A new entry of the code's own, which is not a step. */
static void put_asked(struct function_work *w, struct function_entry *e, const struct function_change *c)
{
	e->attempt = 1;
	e->output = c->output;
	if (c->kind >= ENTRY_VALUE) {
		work_change(w, e, ENTRY_DONE);
		e->own = true;
		return;
	}
	work_change(w, e, ENTRY_OPEN);
	e->own = true;
	e->output = slice_of(NULL, 0);
	if (c->kind == ENTRY_SLEEP)
		e->wake_at = c->until_ms ? c->until_ms : time_after(w, c->for_ms);
	else
		e->wake_at = time_after(w, c->timeout_ms);
	if (c->kind == ENTRY_EVENT)
		e->awaits = join(w, RUN_AWAITS_EVENT, c->event);
	else if (c->kind == ENTRY_APPROVAL)
		e->awaits = approval_awaits(w, e);
}

static bool put_new(struct function_work *w, const struct function_request *rq, const struct function_change *c,
		    struct id_source *ids, struct wall_time now)
{
	struct function_entry *e;

	if (w->entries_n >= FUNCTION_ENTRIES_MAX)
		return work_refuse(w, HX_JOURNAL_FULL, FUNCTION_ENTRIES_WORDS);
	e = work_add(w, c->kind, c->name, c->n);
	if (!e)
		return work_refuse(w, HX_TOO_LARGE, "there is no memory for it");
	e->detail = c->detail;
	e->state = ENTRY_OPEN;
	if (entry_is_step(c->kind))
		put_outcome(w, e, c);
	else
		put_asked(w, e, c);
	if (c->kind == ENTRY_CHILD)
		return function_bear(w, e, c, rq, ids, now);
	return true;
}

static bool take_own(struct function_work *w, const struct function_request *rq, const struct function_change *c,
		     struct id_source *ids, struct wall_time now)
{
	struct function_entry *there = work_find(w, c->kind, c->name, c->n);

	if (!may_now(w, c, there))
		return false;
	if (!there && !is_next_of_its_name(w, c))
		return bad(w, c, "n does not count the uses of its name");
	if (!there)
		return put_new(w, rq, c, ids, now);
	if (there->kind != c->kind || c->kind != ENTRY_STEP)
		return bad(w, c, "there is one already");
	if (!follows(there->state, entry_is_held(there), c->state))
		return bad(w, c,
			   entry_is_held(there)            ? "its outcome is unknown, and held for a person"
			   : entry_has_ended(there->state) ? "it has ended"
							   : "it has begun already");
	put_outcome(w, there, c);
	return true;
}

/* ---- about an earlier entry ---- */

/*
 * What has ended and is not known to the code yet is as if it had not: its event goes back, its run is cancelled. Not a step, which a person
 * has resolved meanwhile: what it did is done.
 */
static bool drop(struct function_work *w, const struct function_request *rq, const struct function_change *c,
		 struct function_entry *target)
{
	bool unseen = entry_has_ended(target->state) && target->seq > rq->seq && !target->own;

	unseen &= target->kind != ENTRY_STEP; /* mutant: done-step-dropped */
	if (target->state == ENTRY_BEGUN)
		return bad(w, c, "a step that is begun is not dropped: its outcome is needed");
	if (target->state == ENTRY_UNKNOWN)
		return bad(w, c, "a step whose outcome is unknown is not dropped");
	if (entry_has_ended(target->state) && !unseen)
		return bad(w, c, "it has ended");
	if (unseen && target->awaits.p)
		target->event_back = w->gives_back = w->cut = true; /* mutant: event-not-given-back -> ; */
	target->event_id = slice_of(NULL, 0);
	target->output = target->error = slice_of(NULL, 0);
	work_change(w, target, ENTRY_DROPPED);
	target->own = true;
	w->asks_children |= target->kind == ENTRY_CHILD; /* mutant: dropped-child-goes-on */
	return true;
}

static bool take_about(struct function_work *w, const struct function_request *rq, const struct function_change *c,
		       struct id_source *ids, struct wall_time now)
{
	struct function_entry *there = work_find(w, c->kind, c->name, c->n);
	struct function_entry *target = work_find(w, ENTRY_STEP, c->name, c->n);

	if (!may_now(w, c, there))
		return false;
	if (!target)
		return bad(w, c, "there is no such entry that it could be about");
	if (there && c->kind != ENTRY_UNDO)
		return bad(w, c, "there is one already");
	if (there && !follows(there->state, entry_is_held(there), c->state))
		return bad(w, c, "it has ended, or begun already");
	if (there) {
		put_outcome(w, there, c);
		return true;
	}
	if (c->kind == ENTRY_DROP && !drop(w, rq, c, target))
		return false;
	return put_new(w, rq, c, ids, now);
}

/*
 * Does the journal grow: by a new entry, or by what one puts out? That a step was not done can be said always, or no
 * turn could be ended.
 */
static bool grows(const struct function_work *w)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct function_entry *e = w->entries[i];

		if (e->changed && (!e->bytes_before || e->state == ENTRY_DONE))
			return true;
	}
	return false;
}

/* Its word is taken, and its error is not kept: one of 64 KiB for each of 20,000 steps would be more than a node can read. */
static void shorten_errors(struct function_work *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct function_entry *e = w->entries[i];

		if (e->changed && e->own && e->error.n > ERROR_SHORT_BYTES)
			e->error = function_words(w, "JOURNAL_FULL", "its error does not fit the journal");
	}
}

static bool take_changes(struct function_work *w, const struct function_request *rq, struct id_source *ids,
			 struct wall_time now)
{
	for (size_t i = 0; i < rq->changes_n; i++) {
		const struct function_change *c = &rq->changes[i];

		if (!(entry_is_about(c->kind) ? take_about : take_own)(w, rq, c, ids, now))
			return false;
	}
	if (work_bytes(w) > FUNCTION_BYTES_MAX && !grows(w))
		shorten_errors(w); /* mutant: journal-of-errors -> ; */
	else if (work_bytes(w) > FUNCTION_BYTES_MAX)
		return work_refuse(w, HX_JOURNAL_FULL, "a journal has at most 24 MiB");
	return true;
}

/* ---- the end of the turn ---- */

/*
 * Does this entry keep the turn open? One that is under way does. So does an unknown one, if the run is to end: that
 * worker has to find out.
 */
static bool keeps_open(const struct function_entry *e, enum function_end_state end)
{
	bool last = end == END_COMPLETED || end == END_UNDONE;

	return e->state == ENTRY_BEGUN ||
	       (last && e->state == ENTRY_UNKNOWN && !entry_is_held(e)); /* mutant: ended-in-doubt -> false; */
}

static bool has_held(const struct function_work *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (entry_is_held(w->entries[i]))
			return true;
	return false;
}

/*
 * While a step is held for a person the run is not over. When that is resolved, a worker comes to the same end once
 * more.
 */
static void complete(struct function_work *w, const struct function_end *end)
{
	if (has_held(w)) /* mutant: completed-in-doubt -> if (0) */
		return;
	work_drop_open(w);
	w->output = end->output;
	w->clears_error = true;
	w->to = RUN_COMPLETED;
}

static bool may_end(struct function_work *w, enum function_end_state end)
{
	if (is_in(w, RUN_CANCELLING) && (end == END_COMPLETED || end == END_FAILED))
		return work_refuse(w, HX_CANCELLED, "the run is being cancelled: it ends undone");
	if (is_in(w, RUN_PAUSED) && end != END_RELEASED)
		return work_refuse(w, HX_WRONG_STATUS, "the run is paused: a turn is released");
	if (end == END_UNDONE && !is_in(w, RUN_CANCELLING))
		return work_refuse(w, HX_BAD_ENTRY, "nothing is undone before the run is cancelled");
	for (size_t i = 0; i < w->n; i++)
		if (keeps_open(w->entries[i], end))
			return work_refuse(w, HX_STEP_OPEN, "%s \"%.*s\" %lld is %s: a turn ends with its outcome",
					   entry_kinds[w->entries[i]->kind], SLICE_ARGS(w->entries[i]->name),
					   (long long)w->entries[i]->n, entry_states[w->entries[i]->state]);
	return true;
}

static bool is_dropped_unheard(const struct function_request *rq, const struct function_entry *e)
{
	return e->state == ENTRY_DROPPED && e->seq > rq->seq && !e->own;
}

/* Is what it waits for of a kind that ends by itself, and has the caller not seen it end? */
static bool suspend(struct function_work *w, const struct function_request *rq)
{
	const struct function_end *end = &rq->end;
	bool ready = false;
	size_t open_n = 0;
	struct strbuf text;

	if (!end->awaits_n)
		return work_refuse(w, HX_NOTHING_TO_WAIT_FOR, "awaits names nothing");
	strbuf_init(&text, FUNCTION_ENTRIES_MAX * 8);
	for (size_t i = 0; i < end->awaits_n; i++) {
		const struct function_awaited *a = &end->awaits[i];
		const struct function_entry *e = work_find(w, a->kind, a->name, a->n);
		bool ended = e && entry_has_ended(e->state);

		if (e && e->kind == a->kind && is_dropped_unheard(rq, e)) { /* mutant: suspended-unheard -> if (0) { */
			strbuf_release(&text); /* by a cancel that the caller has not heard of */
			return work_refuse(w, HX_CANCELLED, "the run is being cancelled: nothing is waited for");
		}
		if (!e || e->kind != a->kind || e->state == ENTRY_DROPPED || (ended && (e->own || e->seq <= rq->seq))) {
			strbuf_release(&text);
			return work_refuse(w, HX_NOTHING_TO_WAIT_FOR, "%s \"%.*s\" %lld %s", entry_kinds[a->kind],
					   SLICE_ARGS(a->name), (long long)a->n,
					   e && e->kind == a->kind ? "has ended" : "was never asked for");
		}
		ready |= ended && (end->any || e->state == ENTRY_FAILED);
		if (!ended)
			strbuf_addf(&text, "%s%lld", open_n++ ? "," : "[", (long long)e->i);
	}
	strbuf_add_char(&text, ']');
	if (!ready && open_n)
		w->awaits = arena_keep(w->arena, &text);
	else
		strbuf_release(&text);
	w->any_of = end->any;
	return true;
}

static void hold_diverged(struct function_work *w, const struct function_end *end)
{
	struct slice cause;
	struct strbuf text;

	strbuf_init(&text, 1u << 18);
	strbuf_add_str(&text, "{\"expected\":");
	strbuf_add_slice(&text, end->expected);
	strbuf_add_str(&text, ",\"found\":");
	strbuf_add_slice(&text, end->found);
	strbuf_add_str(&text, ",\"version\":");
	json_quote(w->row.version.p ? w->row.version : w->row.turn_version, &text);
	strbuf_add_str(&text, ",\"worker\":");
	json_quote(w->row.turn_version, &text);
	strbuf_add_char(&text, '}');
	cause = arena_keep(w->arena, &text);
	w->held = w->error = function_reason(w, "DIVERGED", "the journal does not fit the code", cause);
}

/* The failed step that `retry` would begin anew; a name that is not there is no step's. */
static struct function_entry *failed_step(const struct function_work *w, struct slice called)
{
	struct function_entry *e = called.p ? work_find(w, ENTRY_STEP, called, 0) : NULL;
	struct slice name;
	int64_t n;

	if (!e && called.p && entry_split_name(called, &name, &n))
		e = work_find(w, ENTRY_STEP, name, n);
	return e && e->kind == ENTRY_STEP && e->state == ENTRY_FAILED ? e : NULL;
}

static void fail(struct function_work *w, const struct function_end *end)
{
	const struct function_entry *step = failed_step(w, end->step);

	w->failed_at = step ? step->i : -1;
	w->error = function_error(w, end->error, step);
	w->step_status = RUN_STEP_FAILED;
	w->to = RUN_FAILED;
	if (w->row.on_failure.p)
		function_cancel(w, w->error);
}

static bool end_undone(struct function_work *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->entries[i]->kind == ENTRY_UNDO && w->entries[i]->state == ENTRY_FAILED) {
			w->error = function_error(w, w->entries[i]->error, w->entries[i]);
			w->held = w->error;
			return true; /* CANCELLING, and a person decides */
		}
	if (w->row.undo_failed) { /* said in an earlier call */
		w->error = w->held = function_reason(w, "UNDO_FAILED", "a compensation has failed", slice_of(NULL, 0));
		return true;
	}
	if (work_to_undo(w) > 0)
		return work_refuse(w, HX_BAD_ENTRY, "%lld compensations have not been done",
				   (long long)work_to_undo(w));
	/* With a step that is held a person says what it has done; with children they are undone; else function_rest() ends it. */
	return true;
}

static bool take_end(struct function_work *w, const struct function_request *rq)
{
	const struct function_end *end = &rq->end;

	if (end->state == END_NONE)
		return true;
	if (!may_end(w, end->state))
		return false;
	w->turn_ends = w->frees = true;
	w->awaits = slice_of(NULL, 0);
	w->any_of = false;
	switch (end->state) {
	case END_NONE:
	case END_RELEASED:
		break;
	case END_SUSPENDED:
		if (!suspend(w, rq))
			return false;
		break;
	case END_COMPLETED:
		complete(w, end);
		break;
	case END_FAILED:
		fail(w, end);
		break;
	case END_UNDONE:
		if (!end_undone(w))
			return false;
		break;
	case END_DIVERGED:
		hold_diverged(w, end);
		break;
	}
	w->seq++;
	return true;
}

/* ---- the call ---- */

static bool has_the_turn(const struct function_work *w, const struct function_request *rq)
{
	bool has = w->row.fence == rq->fence; /* mutant: function-fence -> bool has = true; */

	has &= slice_eq(w->row.worker, rq->worker); /* mutant: function-worker */
	return has;
}

static bool was_taken(const struct function_work *w, const struct function_request *rq)
{
	return w->row.body_hash.p && slice_eq(w->row.body_hash, rq->hash);
}

bool function_take(struct function_work *w, const struct function_request *rq, struct id_source *ids,
		   struct wall_time now)
{
	bool again = was_taken(w, rq); /* mutant: function-repeat -> bool again = false; */

	if (!has_the_turn(w, rq) || (!w->row.owned && !again))
		return work_refuse(w, HX_STALE_FENCE, "the turn is another worker's by now, or has ended");
	if (function_is_heartbeat(rq) || again)
		return false;
	if (rq->seq < w->row.taken_seq || rq->seq > w->row.seq) /* mutant: function-seq -> if (0) */
		return work_refuse(w, HX_SEQ_CONFLICT,
				   "a call was taken after seq %lld, or it has not been; the journal is at %lld",
				   (long long)rq->seq, (long long)w->row.seq);
	if (rq->unread.code)
		return work_refuse(w, rq->unread.code, "%s", rq->unread.detail);
	if (!take_changes(w, rq, ids, now))
		return false;
	function_settle(w);
	if (!take_end(w, rq))
		return false;
	w->taken = true;
	w->hash = rq->hash;
	w->lapses = 0; /* mutant: lapses-for-ever -> ; */
	w->lease_ms = rq->lease_ms ? rq->lease_ms : w->row.lease_ms;
	if (!w->version.p && rq->changes_n)
		w->version = w->row.turn_version;
	function_rest(w);
	return true;
}
