/* See function_verb.h. */
#include "flow/function_verb.h"

#include <string.h>

#include "base/json_string.h"
#include "flow/answer.h"
#include "flow/function_parts.h"
#include "flow/run_children.h"
#include "flow/run_verb_parts.h"
#include "flow/singleton.h"
#include "model/nearest.h"
#include "model/text.h"

static bool stands(const struct function_work *w, const char *status)
{
	return strcmp(w->row.status, status) == 0;
}

static enum hx_code refused(struct function_work *w, enum hx_code code, const char *words)
{
	w->code = code;
	w->detail = words;
	return code;
}

static bool takes_events(const struct function_work *w)
{
	return stands(w, RUN_PENDING) || stands(w, RUN_RUNNING) || stands(w, RUN_WAITING) || stands(w, RUN_PAUSED);
}

/* Of the code's own, or an undo, by how verbs call it. */
static struct function_entry *entry_called(const struct function_work *w, enum entry_kind kind, struct slice called)
{
	struct function_entry *e = work_find(w, kind, called, 0);
	struct slice name;
	int64_t n;

	if (!e && entry_split_name(called, &name, &n))
		e = work_find(w, kind, name, n);
	return e;
}

static enum hx_code verb_cancel(struct run_verb *v, bool *ret_unchanged)
{
	struct function_work *w = v->work;

	if (stands(w, RUN_COMPLETED) && v->rq->kind != RUN_OBEY)
		return HX_ALREADY_COMPLETED;
	*ret_unchanged = stands(w, RUN_CANCELLING) || stands(w, RUN_CANCELLED);
	if (*ret_unchanged)
		return HX_OK;
	function_cancel(w, slice_of(NULL, 0));
	if (stands(w, RUN_COMPLETED))
		w->due_at = w->row.now; /* whoever looks ends it, or hands out the turn that undoes it */
	else
		function_rest(w);
	return HX_OK;
}

static enum hx_code verb_pause(struct run_verb *v, bool *ret_unchanged)
{
	struct function_work *w = v->work;

	*ret_unchanged = stands(w, RUN_PAUSED);
	if (*ret_unchanged)
		return HX_OK;
	if (!takes_events(w))
		return refused(w, HX_WRONG_STATUS, "only a run that goes on can be paused");
	w->to = RUN_PAUSED;
	function_rest(w);
	return HX_OK;
}

static enum hx_code verb_resume(struct run_verb *v)
{
	struct function_work *w = v->work;

	if (!stands(w, RUN_PAUSED))
		return refused(w, HX_WRONG_STATUS, "the run is not paused");
	w->to = w->row.owned ? RUN_RUNNING : RUN_PENDING;
	function_settle(w);
	function_rest(w);
	return HX_OK;
}

/* new_key: its failure was definite, so the tries so far do not count, and the next one has another key. */
static void begin_anew(struct function_work *w, struct function_entry *e, bool new_key)
{
	e->redo += new_key;
	e->attempt = new_key ? 0 : e->attempt;
	e->output = slice_of(NULL, 0);
	e->policy = entry_policy_with(w, e, entry_policy(e).on_unknown, /* doubt= */ false); /* somebody knows */
	work_change(w, e, ENTRY_RETRY);
	e->wake_at = w->row.now;
}

static bool retry_undos(struct function_work *w)
{
	bool any = false;

	for (size_t i = 0; i < w->n; i++)
		if (w->entries[i]->kind == ENTRY_UNDO && w->entries[i]->state == ENTRY_FAILED) {
			begin_anew(w, w->entries[i], /* new_key= */ false);
			any = true;
		}
	return any;
}

static struct function_entry *failed_entry(const struct function_work *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->entries[i]->i == w->row.failed_at && w->entries[i]->state == ENTRY_FAILED)
			return w->entries[i];
	return NULL;
}

static enum hx_code verb_retry(struct run_verb *v)
{
	struct function_work *w = v->work;
	struct function_entry *e = failed_entry(w);
	bool held = w->held.p && !w->row.owned;

	held &= !stands(w, RUN_PAUSED); /* mutant: retry-resumes */
	if (!stands(w, RUN_FAILED) && !held)
		return refused(w, HX_WRONG_STATUS, "neither the run nor a compensation of it has failed");
	if (stands(w, RUN_FAILED) && e && w->follows_n)
		return refused(w, HX_WRONG_STATUS, "entries follow the end of the step that has failed");
	if (stands(w, RUN_FAILED) && e)
		begin_anew(w, e, /* new_key= */ true);
	if (stands(w, RUN_FAILED) && w->row.timeout_ms)
		w->row.times_out_at = w->times_out_at = w->row.now + w->row.timeout_ms;
	if (stands(w, RUN_CANCELLING))
		(void)retry_undos(w); /* none: it is a turn that is wanted */
	w->held = slice_of(NULL, 0);
	w->lapses = 0;
	w->clears_error = !stands(w, RUN_CANCELLING);
	w->failed_at = -1;
	w->cold_seq = w->seq + 1; /* who has it in memory begins from the journal, changed or not */
	w->awaits = slice_of(NULL, 0);
	if (!stands(w, RUN_CANCELLING))
		w->to = RUN_PENDING;
	function_settle(w);
	function_rest(w);
	return HX_OK;
}

static void come(struct run_verb *v, const struct answer *answer)
{
	struct function_work *w = v->work;
	struct function_event *events = arena_zalloc(w->arena, (w->events_n + 1) * sizeof *events);

	if (!events)
		return;
	if (w->events_n)
		memcpy(events, w->events, w->events_n * sizeof *events);
	events[w->events_n++] = (struct function_event){
		.id = v->event_id,
		.name = v->awaits,
		.data = v->rq->data.n ? v->rq->data : slice_str("null"),
		.at = answer->now.ms < w->row.now ? answer->now.ms : w->row.now,
	};
	w->events = events;
	w->new_event = &events[w->events_n - 1];
	function_settle(w);
	function_rest(w);
}

static enum hx_code verb_event(struct run_verb *v, const struct answer *answer)
{
	struct function_work *w = v->work;

	if (!takes_events(w))
		return refused(w, HX_WRONG_STATUS, "the run takes no events any more");
	come(v, answer);
	return HX_OK;
}

/* Whoever looks has not come by yet: nobody would take what comes now. */
static bool is_late(const struct function_work *w, const struct function_entry *e)
{
	return e->wake_at && e->wake_at < w->row.now;
}

/* What is open of that kind is what could have been meant. */
static enum hx_code unnamed(struct run_verb *v, enum entry_kind kind, enum entry_state state, const char *words)
{
	struct function_work *w = v->work;
	const char **known = arena_zalloc(w->arena, (w->n + 1) * sizeof *known);
	const char *detail = NULL;
	size_t n = 0;

	for (size_t i = 0; known && i < w->n; i++) {
		struct strbuf name = arena_strbuf(w->arena, FUNCTION_NAME_BYTES_MAX + 32);

		entry_write_name(w->entries[i], &name);
		if (w->entries[i]->kind == kind && w->entries[i]->state == state && !name.failed)
			known[n++] = name.p;
	}
	if (known)
		detail = text_printf(w->arena, "%s%s", words, nearest_words(v->rq->name, known, "\"", "\"").text);
	return refused(w, HX_NOT_FOUND, detail ? detail : words);
}

static enum hx_code verb_approve(struct run_verb *v, const struct answer *answer)
{
	struct function_work *w = v->work;
	const struct function_entry *e = entry_called(w, ENTRY_APPROVAL, v->rq->name);

	if (!e || e->kind != ENTRY_APPROVAL)
		return unnamed(v, ENTRY_APPROVAL, ENTRY_OPEN, "the run has asked for no approval of this name");
	if (!takes_events(w) || e->state != ENTRY_OPEN || is_late(w, e))
		return refused(w, HX_WRONG_STATUS, "it has been decided already, or its time is over");
	v->awaits = e->awaits;
	come(v, answer);
	return HX_OK;
}

static enum hx_code verb_resolve(struct run_verb *v)
{
	struct function_work *w = v->work;
	struct function_entry *undo = entry_called(w, ENTRY_UNDO, v->rq->name);
	struct function_entry *e = undo && undo->state == ENTRY_UNKNOWN ? undo
									: entry_called(w, ENTRY_STEP, v->rq->name);

	if (!e)
		return unnamed(v, ENTRY_STEP, ENTRY_UNKNOWN, "the run has no step of this name");
	if (e->state != ENTRY_UNKNOWN || run_is_terminal(w->row.status))
		return refused(w, HX_WRONG_STATUS, "the outcome of this step is not unknown");
	if (v->rq->done) {
		e->output = v->rq->data.n ? v->rq->data : slice_str("null");
		e->error = slice_of(NULL, 0);
		work_change(w, e, ENTRY_DONE);
	} else {
		begin_anew(w, e, /* new_key= */ false);
	}
	w->cold_seq = w->seq;
	function_rest(w);
	return HX_OK;
}

static struct slice migrate_reason(struct run_verb *v, struct slice from, struct slice to)
{
	LOCAL_STRBUF(text, 4096);

	strbuf_add_str(&text, "migrated from version ");
	strbuf_add_slice(&text, from.p ? from : slice_str("(none)"));
	strbuf_add_str(&text, " to version ");
	strbuf_add_slice(&text, to);
	return arena_copy(v->arena, strbuf_slice(&text));
}

/* Nothing else changes: whether the journal fits the other code, that code finds out (diverged). */
static enum hx_code verb_migrate(struct run_verb *v, bool *ret_unchanged)
{
	struct function_work *w = v->work;
	struct slice to = v->rq->function_version;

	if (!to.p)
		return refused(w, HX_CANNOT_MIGRATE, "it is a function: functionVersion says where it is to go");
	if (stands(w, RUN_COMPLETED) || stands(w, RUN_CANCELLED))
		return refused(w, HX_WRONG_STATUS, "the run has ended");
	if (w->row.owned) /* mutant: migrated-under-its-worker -> if (0) */
		return refused(w, HX_WRONG_STATUS, "a worker has its turn");
	*ret_unchanged = v->rq->dry_run || (w->version.p && slice_eq(w->version, to));
	v->migration.reason = migrate_reason(v, w->version, to);
	w->version = to;
	w->cold_seq = w->seq + 1; /* what somebody has in memory is of the other code */
	w->stays = true;
	return HX_OK;
}

/* Its key has a run, or it is that of its singleton: that is the answer. Else its input is replaced, and it comes to its limits anew. */
static void verb_debounce(struct run_verb *v, const struct answer *answer, bool *ret_unchanged)
{
	v->duplicate = !v->by_name;
	*ret_unchanged = !v->joins;
	if (!v->joins)
		return;
	verb_prepare_join(v, answer);
	v->slot = (struct slot){0}; /* function_write() lets go of it */
	v->work->turn_at = 0;       /* out of line, until it is put off */
	v->work->stays = true;
}

static enum hx_code decide_kind(struct run_verb *v, const struct answer *answer, bool *ret_unchanged)
{
	switch (v->kind) {
	case RUN_CANCEL:
		return verb_cancel(v, ret_unchanged);
	case RUN_PAUSE:
		return verb_pause(v, ret_unchanged);
	case RUN_RESUME:
		return verb_resume(v);
	case RUN_RETRY:
		return verb_retry(v);
	case RUN_EVENT:
		return verb_event(v, answer);
	case RUN_APPROVE:
		return verb_approve(v, answer);
	case RUN_RESOLVE:
		return verb_resolve(v);
	case RUN_MIGRATE:
		return verb_migrate(v, ret_unchanged);
	case RUN_DEBOUNCE:
		verb_debounce(v, answer, ret_unchanged);
		return HX_OK;
	case RUN_RESTART:
	case RUN_OBEY:
		break;
	}
	return refused(v->work, HX_WRONG_STATUS, "a function is not restarted: retry it");
}

static enum hx_code function_verb_decide(struct run_verb *v, const struct answer *answer, bool *ret_unchanged)
{
	struct function_work *w = v->work;
	enum hx_code code;

	*ret_unchanged = false;
	w->lease_ms = 0;
	code = decide_kind(v, answer, ret_unchanged);
	if (code || *ret_unchanged)
		return code;
	w->shifts = true;
	return function_prepare(w) ? HX_OK : HX_TOO_LARGE;
}

/* ---- the task ---- */

static void end_verb(struct run_verb *v, enum hx_code code, const char *detail)
{
	v->detail = detail;
	task_end(&v->task, code);
}

static struct slice event_name(struct run_verb *v)
{
	LOCAL_STRBUF(text, 4096);

	strbuf_add_str(&text, RUN_AWAITS_EVENT);
	strbuf_add_slice(&text, v->rq->name);
	return arena_copy(v->arena, strbuf_slice(&text));
}

static void go_read(struct run_verb *v)
{
	if (v->rq->kind == RUN_EVENT)
		v->awaits = event_name(v);
	v->work = arena_zalloc(v->arena, sizeof *v->work);
	v->named = v->rq->name.p ? function_named_so(v->rq->name, v->arena) : (struct function_named){.failed = true};
	task_go(&v->task, VERB_FUNCTION);
	if (v->arena->failed)
		end_verb(v, HX_TOO_LARGE, NULL);
}

void function_verb_begin(struct run_verb *v, const struct answer *answer)
{
	const struct db_rows *seen = &answer->result->rows[VERB_LINE_SEEN];

	if (v->rq->kind == RUN_EVENT && seen->n) {
		v->duplicate = true;
		v->changed = false;
		end_verb(v, HX_OK, NULL);
	} else if (v->rq->kind == RUN_EVENT &&
		   db_cell(&answer->result->rows[VERB_LINE_COUNT], 0, 0)->i >= RUN_EVENTS_MAX) {
		end_verb(v, HX_TOO_LARGE, "the run has had too many events");
	} else if (v->rq->kind == RUN_APPROVE && seen->n) {
		end_verb(v, HX_WRONG_STATUS, "it has been decided already");
	} else {
		go_read(v);
	}
}

void function_verb_read(const struct run_verb *v, struct unit *unit)
{
	unit->op = 0;
	function_read(unit, v->rq->workspace, v->subject, &v->named, /* ended_after= */ -1);
}

/* The word of its parent, as the verb that it is; false: there is none. */
static bool heed_parent(struct run_verb *v)
{
	static const struct {
		const char *word;
		enum run_verb_kind kind;
	} words[] = {{CHILD_ASKED_CANCEL, RUN_CANCEL},
		     {CHILD_ASKED_PAUSE, RUN_PAUSE},
		     {CHILD_ASKED_RESUME, RUN_RESUME},
		     {CHILD_ASKED_RETRY, RUN_RETRY}};

	if (v->rq->kind != RUN_OBEY)
		return true;
	for (size_t i = 0; v->row.asked.p && i < sizeof words / sizeof *words; i++)
		if (slice_is(v->row.asked, words[i].word)) {
			v->kind = words[i].kind;
			return true;
		}
	return false;
}

/* A verb that changes nothing is written all the same if it is the word of a parent: that it was heard is noted. */
static void go_write(struct run_verb *v, const struct answer *answer, bool unchanged)
{
	v->stamp = flow_stamp(answer);
	v->due = false;
	v->to = unchanged ? NULL : v->work->to;
	v->singleton = unchanged ? 0 : verb_singleton(v, v->to);
	v->changed = !unchanged;
	v->status = unchanged ? v->row.status : v->work->to;
	v->version = v->row.version + !unchanged;
	if (unchanged && v->rq->kind != RUN_OBEY)
		end_verb(v, HX_OK, NULL);
	else
		task_go(&v->task, VERB_WRITING);
}

void function_verb_take(struct run_verb *v, const struct answer *answer)
{
	bool unchanged = false;
	enum hx_code code = HX_STORE_UNAVAILABLE;

	if (answer->result->verdict == UNIT_WON)
		code = function_work_take(answer->result, 0, FUNCTION_STATE, v->arena, v->work);
	if (code || !heed_parent(v)) {
		v->changed = false;
		end_verb(v, code, NULL);
		return;
	}
	if (v->named.failed)
		v->work->follows_n = function_follows_n(answer->result);
	code = function_verb_decide(v, answer, &unchanged);
	if (code && v->rq->kind != RUN_OBEY)
		end_verb(v, code, v->work->detail);
	else
		go_write(v, answer, unchanged || code);
}

void function_verb_write(const struct run_verb *v, struct unit *unit)
{
	function_write(unit, &v->stamp, v->work);
	if (v->singleton)
		singleton_return(unit, v->singleton, v->subject);
	if (v->kind == RUN_MIGRATE)
		subject_add_note(unit, v->subject,
				 &(struct history_note){.reason = v->migration.reason, .by = v->rq->requester});
	if (v->kind == RUN_PAUSE)
		run_children_ask_all(unit, v->subject, CHILD_ASKED_PAUSE);
	else if (v->kind == RUN_RESUME)
		run_children_ask_all(unit, v->subject, CHILD_ASKED_RESUME);
}
