/* A call of a worker, and what a node does for a function, as tasks. See function.h. */
#include <string.h>

#include "base/json_write.h"
#include "flow/answer.h"
#include "flow/function_parts.h"
#include "flow/shapes.h"
#include "task/states.h"

#define TRIES_MAX 64 /* of a write that others were faster than */

enum { CALL_NEW, CALL_READING, CALL_WRITING, CALL_BEATING, CALL_DONE };

static void end_refused(struct function_call *c)
{
	task_end(&c->task, c->work.code);
}

static void call_start(struct function_call *c, const struct answer *answer UNUSED)
{
	c->named = function_named(c->rq, c->arena);
	task_go(&c->task, CALL_READING);
	if (c->arena->failed)
		task_end(&c->task, HX_TOO_LARGE);
}

static void decide_call(struct function_call *c, const struct answer *answer)
{
	bool takes = function_take(&c->work, c->rq, answer->ids, answer->now);

	c->stamp = flow_stamp(answer);
	c->until_ms = c->work.row.owned ? c->work.row.until : 0;
	if (takes)
		task_go(&c->task, CALL_WRITING);
	else if (!c->work.code && function_is_heartbeat(c->rq))
		task_go(&c->task, CALL_BEATING);
	else
		end_refused(c); /* or told again */
	if (takes && !function_prepare(&c->work))
		task_end(&c->task, HX_TOO_LARGE);
}

static void call_read(struct function_call *c, const struct answer *answer)
{
	enum hx_code code;

	if (answer->result->verdict != UNIT_WON) {
		task_end(&c->task, HX_STORE_UNAVAILABLE);
		return;
	}
	code = function_work_take(answer->result, c->rq->changes_n, c->named.lean ? FUNCTION_LEAN : FUNCTION_CALL,
				  c->arena, &c->work);
	if (!code && c->named.lean && c->work.row.has_open) /* mutant: function-lean -> if (0) */
		c->named.lean = false;                      /* there is more to it: READING once more */
	else if (code)
		task_end(&c->task, code);
	else
		decide_call(c, answer);
}

/* Somebody was faster, or nobody knows: the next read tells, by the hash, whether it was taken. */
static void call_again(struct function_call *c)
{
	task_go(&c->task, CALL_READING);
	if (c->tries++ == TRIES_MAX)
		task_end(&c->task, HX_BUSY);
}

static void call_written(struct function_call *c, const struct answer *answer)
{
	const struct unit_result *result = answer->result;
	bool beats = c->task.at == CALL_BEATING;

	if (result->verdict == UNIT_WON) {
		c->until_ms = c->work.turn_ends ? 0 : c->until_ms;
		if (beats || (!c->work.frees && strcmp(c->work.to, c->work.row.status) == 0))
			c->until_ms = db_cell(&result->rows[beats ? 0 : FUNCTION_LINE_SUBJECT], 0, 0)->i;
		task_end(&c->task, HX_OK);
	} else if (result->verdict == UNIT_FAILED) {
		task_end(&c->task, flow_failure(result));
	} else {
		call_again(c);
	}
}

static void build_call_read(const struct function_call *c, struct unit *unit)
{
	unit->op = 0;
	unit_touch(unit, c->rq->subject); /* a commit whose answer was lost has ended before this is answered */
	function_read(unit, c->rq->workspace, c->rq->subject, &c->named, c->rq->seq);
}

static void build_beat(const struct function_call *c, struct unit *unit)
{
	const struct function_row *row = &c->work.row;

	function_keep(unit, row, c->rq->lease_ms ? c->rq->lease_ms : row->lease_ms);
}

TASK_UNIT(build_call_write, struct function_call, c, function_write(unit, &c->stamp, &c->work));

static const TASK_STATES(struct function_call) call_states[] = {
	[CALL_NEW] = {"new", call_start},
	[CALL_READING] = {"reading", call_read, build_call_read},
	[CALL_WRITING] = {"writing", call_written, build_call_write},
	[CALL_BEATING] = {"keeping its lease", call_written, build_beat},
	[CALL_DONE] = {"done"},
};

TASK_KIND_STAMPED(call_kind, "function call", struct function_call, call_states);

void function_call_init(struct function_call *call, const struct function_request *rq, struct arena *arena)
{
	*call = (struct function_call){.rq = rq, .arena = arena};
	task_init(&call->task, &call_kind, /* topic= */ 0);
}

/* ---- what is told ---- */

static bool is_of_call(const struct function_request *rq, const struct function_entry *e)
{
	for (size_t i = 0; i < rq->changes_n; i++)
		if (rq->changes[i].kind == e->kind && rq->changes[i].n == e->n &&
		    slice_eq(rq->changes[i].name, e->name) && (entry_is_step(e->kind) || e->kind == ENTRY_VALUE))
			return true;
	return false;
}

/* It had ended without the caller's knowledge, and this call drops it: it never ends, as a replay will have it. */
static bool is_dropped_now(const struct function_work *w, const struct function_entry *ended)
{
	const struct function_entry *e = w->taken ? work_at(w, ended->i) : NULL;

	return e && e->state == ENTRY_DROPPED;
}

void function_call_write(const struct function_call *call, struct strbuf *text)
{
	const struct function_work *w = &call->work;
	int64_t now = w->row.now;
	bool first = true;

	strbuf_addf(text, "{\"seq\":%lld,\"completed\":[", (long long)w->seq);
	for (size_t i = 0; i < w->ended_n; i++) {
		if (is_dropped_now(w, &w->ended[i]))
			continue;
		strbuf_add_str(text, first ? "" : ",");
		entry_write(w->row.subject, &w->ended[i], now, !is_of_call(call->rq, &w->ended[i]), text);
		first = false;
	}
	for (size_t i = 0; i < w->ended_now_n; i++, first = false) {
		strbuf_add_str(text, first ? "" : ",");
		entry_write(w->row.subject, w->ended_now[i], now, !w->ended_now[i]->own, text);
	}
	strbuf_add_char(text, ']');
	json_more_bool(text, "cancelled", strcmp(w->to, RUN_CANCELLING) == 0 || strcmp(w->to, RUN_CANCELLED) == 0);
	json_more_bool(text, "paused", strcmp(w->to, RUN_PAUSED) == 0 || work_is_to_fail(w));
	json_more_time(text, "leaseUntil", call->until_ms);
	strbuf_add_char(text, '}');
}

/* ---- a node looks ---- */

enum { LOOK_NEW, LOOK_READING, LOOK_WRITING, LOOK_DONE };

static bool is_as_it_was(const struct function_work *w)
{
	const struct function_row *row = &w->row;

	return w->seq == row->seq && strcmp(w->to, row->status) == 0 && !w->frees && !w->asks_standing &&
	       w->turn_at == row->turn_at && w->due_at == row->due_at && slice_eq(w->awaits, row->awaits) &&
	       slice_eq(w->run_awaits, row->run_awaits);
}

static void look_read(struct function_look *l, const struct answer *answer)
{
	enum hx_code code = HX_STORE_UNAVAILABLE;

	if (answer->result->verdict == UNIT_WON)
		code = function_work_take(answer->result, 0, FUNCTION_STATE, l->arena, &l->work);
	if (code) {
		task_end(&l->task, code);
		return;
	}
	l->stamp = flow_stamp(answer);
	l->lapsed = function_lapse(&l->work);
	function_settle(&l->work);
	function_time_out(&l->work);
	function_rest(&l->work);
	task_go(&l->task, LOOK_WRITING);
	if (is_as_it_was(&l->work))
		task_end(&l->task, HX_OK);
	else if (!function_prepare(&l->work))
		task_end(&l->task, HX_TOO_LARGE);
}

static void look_won(struct function_look *l, const struct answer *answer UNUSED)
{
	l->ended = run_is_terminal(l->work.to);
	task_end(&l->task, HX_OK);
}

static void look_lost(struct function_look *l, const struct answer *answer UNUSED)
{
	task_go(&l->task, LOOK_READING);
	if (l->tries++ == TRIES_MAX)
		task_end(&l->task, HX_BUSY);
}

static void look_failed(struct function_look *l, const struct answer *answer UNUSED)
{
	task_end(&l->task, HX_STORE_UNAVAILABLE);
}

TASK_VERDICTS(look_written, struct function_look, [UNIT_WON] = look_won, [UNIT_LOST] = look_lost,
	      [UNIT_REFUSED] = look_lost, [UNIT_FAILED] = look_failed, [UNIT_UNKNOWN] = look_failed);

static void build_look_read(const struct function_look *l, struct unit *unit)
{
	static const struct function_named none = {0};

	unit->op = 0;
	function_read(unit, slice_of(NULL, 0), l->subject, &none, /* ended_after= */ -1);
}

TASK_UNIT(build_look_write, struct function_look, l, function_write(unit, &l->stamp, &l->work));

static const TASK_STATES(struct function_look) look_states[] = {
	[LOOK_NEW] = {"new", .then = LOOK_READING},
	[LOOK_READING] = {"reading", look_read, build_look_read},
	[LOOK_WRITING] = {"writing", look_written, build_look_write},
	[LOOK_DONE] = {"done"},
};

TASK_KIND_STAMPED(look_kind, "function look", struct function_look, look_states);

void function_look_init(struct function_look *look, int64_t subject, struct arena *arena)
{
	*look = (struct function_look){.subject = subject, .arena = arena};
	task_init(&look->task, &look_kind, /* topic= */ 0);
}
