/*
 * What becomes of a function without its worker: sleeps, timeouts, events, decisions and children end entries, in the order in which
 * they came; a lease lapses; and where it rests after that. Pure: all by the store's clock as it was read. See function.h.
 */
#include <string.h>

#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "flow/function_parts.h"
#include "flow/run_children.h"

#define ERROR_BYTES_MAX (1u << 18)

/* ---- errors ---- */

struct slice function_words(struct function_work *w, const char *code, const char *message)
{
	struct strbuf text;

	strbuf_init(&text, ERROR_BYTES_MAX);
	strbuf_addf(&text, "{\"code\":\"%s\",\"message\":", code);
	json_quote(slice_str(message), &text);
	strbuf_add_char(&text, '}');
	return arena_keep(w->arena, &text);
}

struct slice function_reason(struct function_work *w, const char *code, const char *message, struct slice cause)
{
	struct strbuf text;

	strbuf_init(&text, 2 * ERROR_BYTES_MAX);
	strbuf_addf(&text, "{\"code\":\"%s\",\"message\":", code);
	json_quote(slice_str(message), &text);
	strbuf_add_str(&text, ",\"step\":null");
	if (cause.p) {
		strbuf_add_str(&text, ",\"cause\":");
		strbuf_add_slice(&text, cause);
	}
	strbuf_add_char(&text, '}');
	return arena_keep(w->arena, &text);
}

static void add_member(struct strbuf *text, struct slice error, const char *member, const char *otherwise)
{
	struct json value;

	strbuf_addf(text, "%s\"%s\":", text->n == 1 ? "" : ",", member);
	if (error.p && json_find(json_trust(error), slice_str(member), &value) && json_type(value) == JSON_STRING)
		strbuf_add_slice(text, value.raw);
	else if (strcmp(member, "message") == 0 && error.p && json_type(json_trust(error)) == JSON_STRING)
		strbuf_add_slice(text, error);
	else
		json_quote(slice_str(otherwise), text);
}

struct slice function_error(struct function_work *w, struct slice error, const struct function_entry *step)
{
	struct strbuf text;
	LOCAL_STRBUF(name, 2 * FUNCTION_NAME_BYTES_MAX);

	strbuf_init(&text, ERROR_BYTES_MAX);
	strbuf_add_char(&text, '{');
	add_member(&text, error, "code", "FUNCTION_FAILED");
	add_member(&text, error, "message", "the function has failed");
	strbuf_add_str(&text, ",\"step\":");
	if (step) {
		entry_write_name(step, &name);
		json_quote(strbuf_slice(&name), &text);
	} else {
		strbuf_add_str(&text, "null");
	}
	if (error.p && json_type(json_trust(error)) == JSON_OBJECT) {
		strbuf_add_str(&text, ",\"cause\":");
		strbuf_add_slice(&text, error);
	}
	strbuf_add_char(&text, '}');
	return arena_keep(w->arena, &text);
}

/* ---- what ends by itself ---- */

static struct function_entry *open_at(const struct function_work *w, int64_t i)
{
	struct function_entry *e = work_at(w, i);

	return e && e->state == ENTRY_OPEN ? e : NULL;
}

static void end_with(struct function_work *w, struct function_entry *e, enum entry_state state, struct slice output,
		     struct slice error)
{
	e->output = output;
	e->error = error;
	work_change(w, e, state);
}

/* What comes from outside is bounded like what a worker writes. False: it has no room, and has failed with that. */
static bool has_room(struct function_work *w, struct function_entry *e, struct slice text)
{
	if (work_bytes(w) + (int64_t)text.n <= FUNCTION_BYTES_MAX)
		return true;
	end_with(w, e, ENTRY_FAILED, slice_of(NULL, 0),
		 function_words(w, "JOURNAL_FULL", "what came does not fit the journal"));
	return false;
}

static struct slice kid_error(struct function_work *w, const struct function_kid *kid)
{
	struct strbuf text;
	bool failed = slice_is(kid->state, CHILD_FAILED);

	strbuf_init(&text, ERROR_BYTES_MAX + RUN_OUTPUT_BYTES_MAX);
	strbuf_addf(&text, "{\"code\":\"%s\",\"message\":\"%s\"", failed ? "CHILD_FAILED" : "CHILD_CANCELLED",
		    failed ? "the child has failed" : "the child was cancelled");
	if (kid->error.p) {
		strbuf_add_str(&text, ",\"cause\":");
		strbuf_add_slice(&text, kid->error);
	}
	strbuf_add_char(&text, '}');
	return arena_keep(w->arena, &text);
}

static void settle_kids(struct function_work *w)
{
	for (size_t i = 0; i < w->kids_n; i++) {
		const struct function_kid *kid = &w->kids[i];
		struct function_entry *e = open_at(w, kid->i);

		if (!e || !has_room(w, e, kid->output.p ? kid->output : kid->error))
			continue;
		if (slice_is(kid->state, CHILD_DONE))
			end_with(w, e, ENTRY_DONE, kid->output.p ? kid->output : slice_str("null"), slice_of(NULL, 0));
		else
			end_with(w, e, ENTRY_FAILED, slice_of(NULL, 0), kid_error(w, kid));
	}
}

/* The first that waits for it, unless its time was over before it came. */
static struct function_entry *taker_of(const struct function_work *w, const struct function_event *event)
{
	struct function_entry *first = NULL;

	for (size_t i = 0; i < w->n; i++) {
		struct function_entry *e = w->entries[i];

		if (e->state == ENTRY_OPEN && e->awaits.p && slice_eq(e->awaits, event->name) &&
		    (!e->wake_at || event->at <= e->wake_at) && (!first || e->i < first->i))
			first = e;
	}
	return first;
}

static void settle_events(struct function_work *w)
{
	for (size_t i = 0; i < w->events_n; i++) {
		struct function_event *event = &w->events[i];
		struct function_entry *e = taker_of(w, event);

		if (!e || !has_room(w, e, event->data))
			continue;
		end_with(w, e, ENTRY_DONE, event->data, slice_of(NULL, 0));
		e->event_id = event->id;
	}
}

static void settle_times(struct function_work *w)
{
	size_t n;
	struct function_entry **late = work_late(w, &n);

	for (size_t i = 0; i < n; i++)
		if (late[i]->kind == ENTRY_SLEEP)
			end_with(w, late[i], ENTRY_DONE, slice_str("null"), slice_of(NULL, 0));
		else
			end_with(w, late[i], ENTRY_FAILED, slice_of(NULL, 0),
				 function_words(w, "TIMEOUT", "it did not come in time"));
}

static bool goes_on(const char *status)
{
	return strcmp(status, RUN_PENDING) == 0 || strcmp(status, RUN_RUNNING) == 0 || strcmp(status, RUN_WAITING) == 0;
}

void function_settle(struct function_work *w)
{
	if (!goes_on(w->to))
		return;
	settle_kids(w);
	settle_events(w);
	settle_times(w);
}

void function_time_out(struct function_work *w)
{
	bool over = w->row.times_out_at && w->row.times_out_at <= w->row.now;

	if (over && goes_on(w->to))
		function_cancel(w, function_reason(w, "TIMEOUT", "the run has taken longer than its timeout",
						   slice_of(NULL, 0)));
}

bool work_is_to_fail(const struct function_work *w)
{
	return w->row.asked.p && slice_is(w->row.asked, CHILD_ASKED_FAIL);
}

/* What is open stays so: a retry of its parent goes on with it. */
static void fail_with_sibling(struct function_work *w)
{
	w->to = RUN_FAILED;
	w->failed_at = -1;
	w->error = function_reason(w, "SIBLING_FAILED", "another child of the same step has failed", slice_of(NULL, 0));
}

/* ---- cancelling ---- */

/* Was there anything to be undone? Whatever else a worker says to have undone counts for nothing. */
static bool is_owed(const struct function_work *w, const struct function_entry *undo,
		    const struct function_entry *target)
{
	return target && target->state == ENTRY_DONE && work_find(w, ENTRY_COMPENSATE, undo->name, undo->n);
}

int64_t work_to_undo(const struct function_work *w)
{
	int64_t left = w->row.to_undo;

	for (size_t i = 0; i < w->n; i++) {
		const struct function_entry *e = w->entries[i], *target;

		if (e->changed && e->kind == ENTRY_STEP && e->state == ENTRY_DONE) {
			target = work_find(w, ENTRY_COMPENSATE, e->name, e->n);
			left += target && !target->changed; /* it was said before the step was done */
		}
		if (!e->changed || !entry_is_about(e->kind))
			continue;
		target = work_find(w, ENTRY_STEP, e->name, e->n);
		if (e->kind == ENTRY_COMPENSATE)
			left += target && target->state == ENTRY_DONE;
		else if (e->kind == ENTRY_UNDO && e->state == ENTRY_DONE)
			left -= is_owed(w, e, target);
	}
	return left;
}

void function_cancel(struct function_work *w, struct slice error)
{
	w->to = RUN_CANCELLING;
	work_drop_open(w);
	w->awaits = w->held = slice_of(NULL, 0);
	w->any_of = false;
	if (error.p)
		w->error = error;
}

/* ---- resting ---- */

static bool has(const struct function_work *w, bool (*is)(const struct function_entry *))
{
	for (size_t i = 0; i < w->n; i++)
		if (entry_is_step(w->entries[i]->kind) && is(w->entries[i]))
			return true;
	return false;
}

static bool is_unknown(const struct function_entry *e)
{
	return e->state == ENTRY_UNKNOWN;
}

/* A worker has to find out. */
static bool is_to_be_found_out(const struct function_entry *e)
{
	return e->state == ENTRY_UNKNOWN && !entry_is_held(e);
}

static bool is_due(const struct function_work *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->entries[i]->state == ENTRY_RETRY && w->entries[i]->wake_at <= w->row.now)
			return true;
	return has(w, is_to_be_found_out);
}

/* Of what it is suspended on, so much is open; what has ended is taken off. */
static bool awaited_is_there(struct function_work *w)
{
	struct json_iter it = json_iter_of(json_trust(w->awaits));
	struct json value;
	struct hx_error err;
	struct strbuf left;
	bool ready = false;
	size_t open_n = 0;

	strbuf_init(&left, FUNCTION_ENTRIES_MAX * 8);
	while (json_iter_element(&it, &value)) {
		int64_t i = 0;
		const struct function_entry *e = json_int64(value, &err, &i) == HX_OK ? work_at(w, i) : NULL;
		bool open = e && !entry_has_ended(e->state);

		if (open)
			strbuf_addf(&left, "%s%lld", open_n++ ? "," : "[", (long long)i);
		else
			ready |= w->any_of || !e || e->state == ENTRY_FAILED;
	}
	strbuf_add_char(&left, ']');
	ready |= open_n == 0;
	if (ready)
		strbuf_release(&left);
	else
		w->awaits = arena_keep(w->arena, &left);
	return ready;
}

/* When the engine has to look: what is suspended or under way ends by its time, a try that is due later is due. */
static int64_t next_time(const struct function_work *w, bool owned)
{
	int64_t next = strcmp(w->to, RUN_CANCELLING) == 0 ? 0 : w->row.times_out_at;

	for (size_t i = 0; i < w->n; i++) {
		const struct function_entry *e = w->entries[i];
		bool counts = e->state == ENTRY_OPEN || (e->state == ENTRY_RETRY && !owned);

		if (counts && e->wake_at > w->row.now && (!next || e->wake_at < next))
			next = e->wake_at;
	}
	return next;
}

/* What a person, or a caller, is told that it waits for: of several the one that needs somebody. */
static struct slice waits_for(const struct function_work *w)
{
	const struct function_entry *best = NULL;

	for (size_t i = 0; i < w->n; i++) {
		const struct function_entry *e = w->entries[i];

		if (e->state == ENTRY_OPEN && (!best || (e->kind == ENTRY_APPROVAL && best->kind != ENTRY_APPROVAL)))
			best = e;
	}
	if (best && best->awaits.p)
		return best->awaits;
	return best && best->kind == ENTRY_CHILD ? slice_str(RUN_AWAITS_CHILD) : slice_of(NULL, 0);
}

static void rest_unowned(struct function_work *w, bool cancelling)
{
	bool held = w->held.p || has(w, entry_is_held);
	bool goes = !w->awaits.p || is_due(w);

	goes = goes || awaited_is_there(w); /* mutant: function-not-woken */

	if (held) /* mutant: held-handed-out -> if (0) */
		w->run_awaits = slice_str(RUN_AWAITS_PERSON);
	else if (goes)
		w->turn_at = w->row.turn_at ? w->row.turn_at : w->row.now;
	else
		w->run_awaits = waits_for(w);
	if (w->turn_at)
		w->awaits = slice_of(NULL, 0);
	if (!cancelling)
		w->to = w->turn_at ? RUN_PENDING : RUN_WAITING;
	if (held)
		w->step_status = w->held.p ? NULL : RUN_STEP_UNKNOWN;
}

/* Nobody has the turn: steps that were to be tried again later are dropped. */
static void drop_tries(struct function_work *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->entries[i]->kind == ENTRY_STEP && w->entries[i]->state == ENTRY_RETRY)
			work_drop_try(w, w->entries[i]);
}

/*
 * Is a child to be undone next? Then nothing else is: the function rests until the last child that stands is
 * CANCELLED. Which one that is, and whether a compensation that stands after it in the journal is owed first, was read
 * with the function, and is true as long as this decision has changed nothing. If it has, the function is due at once,
 * and whoever looks decides. What is in doubt comes first: it says what is owed.
 */
static bool undoes_children(struct function_work *w)
{
	bool read = strcmp(w->row.status, RUN_CANCELLING) == 0 && w->seq == w->row.seq;
	bool owed_after = work_to_undo(w) > 0 && w->row.last_owed > w->row.standing;

	if ((!w->row.has_kids && !w->births) || w->held.p || has(w, is_unknown))
		return false;
	if (read && owed_after) /* mutant: children-undone-first -> if (0) */
		return false;
	w->asks_standing = read;
	w->due_at = read ? 0 : w->row.now;
	w->run_awaits = slice_str(RUN_AWAITS_CHILD);
	return true;
}

/* Nothing is left to find out, to be undone, or for a person. */
static bool is_undone(const struct function_work *w)
{
	bool undone = !w->held.p;

	undone &= !has(w, is_unknown);  /* mutant: function-cancelled-in-doubt */
	undone &= work_to_undo(w) <= 0; /* mutant: function-cancelled-owed */
	return undone;
}

void function_rest(struct function_work *w)
{
	bool owned = w->row.owned && !w->frees;

	w->turn_at = w->due_at = 0;
	w->run_awaits = slice_of(NULL, 0);
	if (work_is_to_fail(w) && !owned && (goes_on(w->to) || strcmp(w->to, RUN_PAUSED) == 0))
		fail_with_sibling(w);
	if (strcmp(w->to, RUN_CANCELLING) == 0 && !owned)
		drop_tries(w);
	if (strcmp(w->to, RUN_CANCELLING) == 0 && !owned && undoes_children(w)) /* mutant: children-left -> if (0) */
		return;
	if (strcmp(w->to, RUN_CANCELLING) == 0 && !owned && is_undone(w)) {
		work_drop_open(w);
		w->to = RUN_CANCELLED;
	}
	if (strcmp(w->to, RUN_PAUSED) == 0 && has(w, entry_is_held))
		w->run_awaits = slice_str(RUN_AWAITS_PERSON);
	if (run_is_terminal(w->to) || strcmp(w->to, RUN_PAUSED) == 0)
		return;
	if (!owned)
		rest_unowned(w, strcmp(w->to, RUN_CANCELLING) == 0);
	w->due_at = next_time(w, owned);
	if (w->cut && (!w->due_at || w->due_at > w->row.now))
		w->due_at = w->row.now;
}

bool function_lapse(struct function_work *w)
{
	if (!w->row.owned || !w->row.past)
		return false;
	for (size_t i = 0; i < w->n; i++)
		if (w->entries[i]->state == ENTRY_BEGUN)
			work_change(w, w->entries[i], ENTRY_UNKNOWN); /* mutant: function-lapse-known -> ; */
	w->frees = w->if_past = w->lapses_now = true;
	w->awaits = slice_of(NULL, 0);
	if (++w->lapses >= FUNCTION_LAPSES_MAX)
		w->held = w->error = function_reason(
			w, "LAPSED", "ten workers in a row were lost with it, and no call of theirs was taken",
			slice_of(NULL, 0));
	return true;
}
