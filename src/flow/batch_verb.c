/* See batch_verb.h. */
#include "flow/batch_verb.h"

#include <string.h>

#include "flow/answer.h"
#include "flow/call_key.h"
#include "flow/shapes.h"
#include "task/states.h"

#define LOSSES_MAX 10

enum { BATCH_VERB_NEW, BATCH_VERB_READING, BATCH_VERB_WRITING, BATCH_VERB_PROBING, BATCH_VERB_DONE };
enum { LINE_BATCH, LINE_ITEM };

/* ---- an item as it was read ---- */

void batch_item_row_take(const struct db_rows *rows, size_t i, struct arena *arena, struct batch_item_row *ret_item)
{
	const struct db_value *due = db_cell(rows, i, ITEM_DUE_AT);

	*ret_item = (struct batch_item_row){
		.n = db_cell(rows, i, ITEM_N)->i,
		.status = item_status_of(db_cell(rows, i, ITEM_STATUS)->s),
		.cost = db_cell(rows, i, ITEM_COST)->i,
		.charged = db_cell(rows, i, ITEM_CHARGED)->i,
		.attempt = db_cell(rows, i, ITEM_ATTEMPT)->i,
		.due_at = due->type == DB_NULL ? 0 : due->i,
		.decision = cell_text(db_cell(rows, i, ITEM_DECISION), arena),
		.input = cell_text(db_cell(rows, i, ITEM_INPUT), arena),
		.output = cell_text(db_cell(rows, i, ITEM_OUTPUT), arena),
		.late = cell_text(db_cell(rows, i, ITEM_LATE), arena),
		.error = cell_text(db_cell(rows, i, ITEM_ERROR), arena),
	};
	ASSERT(ret_item->status);
}

/* ---- deciding ---- */

static void end_batch_verb(struct batch_verb *v, enum hx_code code, const char *detail)
{
	v->detail = detail;
	task_end(&v->task, code);
}

static bool is_any_of(const char *status, const char *const any[])
{
	for (size_t i = 0; any[i]; i++)
		if (strcmp(status, any[i]) == 0)
			return true;
	return false;
}

static void write(struct batch_verb *v, const struct answer *answer)
{
	v->stamp = flow_stamp(answer);
	task_go(&v->task, BATCH_VERB_WRITING);
}

static void decide_start(struct batch_verb *v, const struct answer *answer)
{
	static const char *const started[] = {BATCH_QUEUED, BATCH_RUNNING, BATCH_OUT_OF_CREDIT, BATCH_COMPLETED, NULL};

	if (is_any_of(v->row.status, started)) {
		end_batch_verb(v, HX_OK, NULL);
	} else if (strcmp(v->row.status, BATCH_PENDING) != 0) {
		end_batch_verb(v, HX_WRONG_STATUS, "a batch is started while it is held, with all its items loaded");
	} else {
		v->row.status = BATCH_QUEUED;
		v->row.version++;
		v->row.due_at = answer->now.ms;
		write(v, answer);
	}
}

/* True: it was asked before, and nothing happens again; or its item is not in the status for it. */
static bool is_not_for_item(struct batch_verb *v, bool was_asked, const char *status, const char *words)
{
	if (was_asked)
		end_batch_verb(v, HX_OK, NULL);
	else if (v->row.cancel_requested || v->item.decision.p)
		end_batch_verb(v, HX_WRONG_STATUS, "the batch is cancelled, and its items with it");
	else if (strcmp(v->item.status, status) != 0)
		end_batch_verb(v, HX_WRONG_STATUS, words);
	else
		return false;
	return true;
}

static void decide_accept(struct batch_verb *v, const struct answer *answer)
{
	if (!is_not_for_item(v, slice_is(v->item.decision, ITEM_ACCEPTED), ITEM_SUCCEEDED,
			     "only an item that has SUCCEEDED can be accepted")) {
		v->item.decision = slice_str(ITEM_ACCEPTED);
		write(v, answer);
	}
}

static void decide_resolve(struct batch_verb *v, const struct answer *answer)
{
	const char *outcome = v->rq->done ? ITEM_SUCCEEDED : ITEM_FAILED;

	bool was_asked = !v->item.decision.p && strcmp(v->item.status, outcome) == 0;

	if (!is_not_for_item(v, was_asked, ITEM_UNKNOWN, "only an item that is UNKNOWN waits for a person")) {
		v->item.status = outcome;
		v->item.output = v->rq->done ? v->rq->output : slice_of(NULL, 0);
		v->item.charged = v->rq->done ? v->item.charged : 0;
		write(v, answer);
	}
}

static const struct action *probe_of(const struct batch_verb *v)
{
	return v->hold.machine->definition->item_action->probe;
}

/* As the engine asks it (batch_hand.c), under a key of its own. */
static void decide_ask(struct batch_verb *v, const struct answer *answer)
{
	if (!v->hold.machine) {
		end_batch_verb(v, HX_BUSY, "this node does not know the definition of this batch yet");
	} else if (strcmp(v->item.status, ITEM_UNKNOWN) != 0) {
		end_batch_verb(v, HX_WRONG_STATUS, "the outcome of this item is not in doubt");
	} else if (probe_missing(probe_of(v))) {
		end_batch_verb(v, HX_WRONG_STATUS, probe_missing(probe_of(v)));
	} else {
		struct slice key = batch_item_key(v->hold.subject, v->item.n, /* suffix= */ NULL, 0, v->arena);

		v->key = call_key_to_ask(key, CALL_PROBE, answer->id, v->arena);
		v->body = batch_call_body(
			&v->hold, "probe",
			&(struct batch_call_item){.n = v->item.n, .input = v->item.input, .about = key}, v->arena);
		task_go(&v->task, BATCH_VERB_PROBING);
	}
}

/* ---- answers ---- */

static void batch_verb_take_said(struct batch_verb *v, const struct answer *answer)
{
	v->says = probe_told(answer, v->arena, &v->item.output);
	end_batch_verb(v, v->arena->failed ? HX_TOO_LARGE : HX_OK, NULL);
}

static void take_item(struct batch_verb *v, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[LINE_ITEM];

	if (rows->n == 0) {
		end_batch_verb(v, HX_NOT_FOUND, "the batch has no such item");
		return;
	}
	batch_item_row_take(rows, 0, v->arena, &v->item);
	if (v->rq->kind == BATCH_ACCEPT)
		decide_accept(v, answer);
	else if (v->rq->kind == BATCH_RESOLVE)
		decide_resolve(v, answer);
	else
		decide_ask(v, answer);
}

static void take_batch_verb_read(struct batch_verb *v, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[LINE_BATCH];

	if (answer->result->verdict != UNIT_WON) {
		end_batch_verb(v, v->in_doubt ? HX_OUTCOME_UNKNOWN : HX_STORE_UNAVAILABLE, NULL);
		return;
	}
	if (rows->n == 0) {
		end_batch_verb(v, HX_NOT_FOUND, "there is no such batch");
		return;
	}
	batch_row_take(rows, 0, v->rq->policy, v->arena, &v->row);
	batch_hold_of(&v->row, v->rq->policy, v->arena, &v->hold);
	v->was = v->row;
	if (v->row.expired)
		end_batch_verb(v, HX_RUN_EXPIRED, "the batch has ended long ago, and only its key is kept");
	else if (v->rq->version && v->rq->version != v->row.version) /* mutant: bulk-starts-another -> else if (0) */
		end_batch_verb(v, HX_CONCURRENCY_ERROR, NULL);
	else if (v->rq->kind == BATCH_START)
		decide_start(v, answer);
	else
		take_item(v, answer);
	if (v->arena->failed)
		end_batch_verb(v, HX_TOO_LARGE, NULL); /* what was written by then is not of this read */
}

static void read_batch_verb_again(struct batch_verb *v, const struct answer *answer)
{
	v->in_doubt |= answer->result->verdict == UNIT_UNKNOWN;
	task_go(&v->task, BATCH_VERB_READING);
	if (v->losses++ == LOSSES_MAX)
		end_batch_verb(v, v->in_doubt ? HX_OUTCOME_UNKNOWN : HX_CONCURRENCY_ERROR, NULL);
}

static void batch_verb_written(struct batch_verb *v, const struct answer *answer)
{
	if (v->rq->along)
		v->rq->along->won(v->rq->along, answer->result);
	v->changed = true;
	end_batch_verb(v, HX_OK, NULL);
}

static void batch_verb_failed(struct batch_verb *v, const struct answer *answer)
{
	end_batch_verb(v, v->in_doubt ? HX_OUTCOME_UNKNOWN : flow_failure(answer->result), NULL);
}

TASK_VERDICTS(take_batch_verb_written, struct batch_verb, [UNIT_WON] = batch_verb_written,
	      [UNIT_LOST] = read_batch_verb_again, [UNIT_REFUSED] = read_batch_verb_again,
	      [UNIT_FAILED] = batch_verb_failed, [UNIT_UNKNOWN] = read_batch_verb_again);

/* ---- units ---- */

static void build_batch_verb_read(const struct batch_verb *v, struct unit *unit)
{
	if (v->in_doubt) {
		unit_touch(unit, v->was.subject);
		unit_touch(unit, v->was.account);
	}
	batch_read(unit, v->rq->workspace, v->rq->subject);
	if (v->rq->kind != BATCH_START)
		item_read(unit, v->rq->subject, v->rq->n);
}

static void batch_verb_build_write(const struct batch_verb *v, struct unit *unit)
{
	switch (v->rq->kind) {
	case BATCH_START:
		batch_start(unit, &v->stamp, &v->was);
		break;
	case BATCH_ACCEPT:
		item_accept(unit, &v->stamp, &v->hold, v->rq->n);
		break;
	case BATCH_RESOLVE:
		item_resolve(unit, &v->stamp, &v->hold, v->rq->n, v->rq->done, v->item.output);
		break;
	case BATCH_ASK:
		break;
	}
	if (v->rq->along)
		v->rq->along->add(v->rq->along, unit);
}

static const char *batch_verb_words(const struct batch_verb *v)
{
	static const char *const verbs[] = {"starting", "accepting", "resolving"};

	return verbs[v->rq->kind];
}

static struct act_call batch_verb_call_of(const struct batch_verb *v)
{
	struct act_call call = batch_call(&v->hold, probe_of(v), v->body, v->key, /* attempt= */ 1);

	/* Whoever holds the batch works on: this is a call beside it, which keeps nobody's lease alive. */
	call.lease = (struct lease){0}; /* mutant: asked-under-lease */
	call.fence = v->hold.fence;
	return call;
}

static const TASK_STATES(struct batch_verb) batch_verb_states[] = {
	[BATCH_VERB_NEW] = {"new", .then = BATCH_VERB_READING},
	[BATCH_VERB_READING] = {"reading", take_batch_verb_read, build_batch_verb_read},
	[BATCH_VERB_WRITING] = {.words = batch_verb_words,
				.take = take_batch_verb_written,
				.commit = batch_verb_build_write},
	[BATCH_VERB_PROBING] = {"asking the probe of an item", batch_verb_take_said, .act = batch_verb_call_of},
	[BATCH_VERB_DONE] = {"done"},
};

/* Before it reads, nothing counts of what it has read before. What it tells at its end is for its caller. */
static void batch_verb_forget(void *copy)
{
	struct batch_verb *v = copy;

	if (v->task.at == BATCH_VERB_WRITING || v->task.at == BATCH_VERB_PROBING)
		return;
	v->row = (struct batch_row){0};
	v->was = (struct batch_row){.subject = v->was.subject,
				    .account = v->was.account}; /* what a look in doubt locks */
	v->item = (struct batch_item_row){0};
	v->hold = (struct batch_hold){0};
	v->stamp = (struct stamp){0};
}

static const struct task_shape batch_verb_shape = SHAPE(struct batch_verb, batch_verb_forget,
	PART_WITH(INNER, struct batch_verb, row, &batch_row_shape),
	PART_WITH(INNER, struct batch_verb, item, &batch_item_row_shape),
	PART(TEXT, struct batch_verb, detail),
	PART_WITH(INNER, struct batch_verb, was, &batch_row_shape),
	PART_WITH(INNER, struct batch_verb, hold, &batch_hold_shape),
	PART(KEY, struct batch_verb, key), PART(SLICE, struct batch_verb, body),
	PART_WITH(INNER, struct batch_verb, stamp, &stamp_noted_shape));

TASK_KIND_STAMPED(batch_verb_kind, "batch_verb", struct batch_verb, batch_verb_states, .shape = &batch_verb_shape);

void batch_verb_init(struct batch_verb *verb, const struct batch_verb_request *rq, struct arena *arena)
{
	*verb = (struct batch_verb){.rq = rq, .arena = arena};
	task_init(&verb->task, &batch_verb_kind, /* topic= */ 0);
}
