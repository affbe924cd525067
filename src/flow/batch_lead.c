/* See batch_lead.h for the states. */
#include "flow/batch_lead.h"

#include <string.h>

#include "base/utf8.h"
#include "flow/answer.h"
#include "flow/backoff.h"
#include "flow/shapes.h"
#include "task/pulse.h"
#include "task/states.h"

#define ERROR_BYTES_MAX 500

/* Between two tries of a teardown in which something failed. */
static const struct run_retry teardown_backoff = {
	.initial_ms = 1000, .max_ms = 300000, .factor_thousandths = 2000, .jitter = true};

static void batch_lead_decide(struct batch_lead *l, const struct answer *answer);

static bool lead_is(const struct batch_lead *l, const char *status)
{
	return strcmp(l->row.status, status) == 0;
}

static void end_lead(struct batch_lead *l, enum lead_next next, enum hx_code code)
{
	l->next = next;
	task_end(&l->task, code);
}

static void ask_with_new_op(struct batch_lead *l, const struct answer *answer, enum batch_lead_at at)
{
	l->stamp = flow_stamp(answer);
	l->asked = answer->mono;
	task_go(&l->task, at);
}

/* ---- deciding ---- */

static void let_go(struct batch_lead *l, const struct answer *answer, int64_t rest_ms, struct slice why)
{
	l->rest_ms = rest_ms;
	l->failed_cleanup = why.p != NULL;
	if (why.n > ERROR_BYTES_MAX)
		why.n = utf8_valid_bytes(slice_of(why.p, ERROR_BYTES_MAX));
	l->why = why;
	ask_with_new_op(l, answer, LEAD_LETTING_GO);
}

static void let_go_failed(struct batch_lead *l, const struct answer *answer, struct slice why, int64_t not_before_ms)
{
	int64_t backoff = backoff_ms(&teardown_backoff, l->row.cleanups + 1, answer->id);

	let_go(l, answer, backoff_not_before(backoff, not_before_ms), why);
}

static void write_end(struct batch_lead *l, const struct answer *answer, const char *to)
{
	const struct batch_definition *definition = l->hold.machine->definition;

	l->end_as = to;
	l->payload = batch_totals(&l->hold, &l->row, to, l->row.version + 1, l->arena);
	for (size_t i = 0; i < definition->after_effects_n; i++) {
		l->job_keys[i] = batch_done_key(l->row.subject, definition->after_effects[i]->name, l->arena);
		l->job_ids[i] = answer->more_ids[i];
	}
	if (l->arena->failed)
		end_lead(l, LEAD_OVER, HX_TOO_LARGE);
	else
		ask_with_new_op(l, answer, LEAD_ENDING);
}

static void read_doubtful(struct batch_lead *l)
{
	l->doubtful_n = l->doubtful_next = 0;
	task_go(&l->task, LEAD_READING_DOUBTFUL);
}

static void flip_next_slice(struct batch_lead *l, const struct answer *answer)
{
	l->flip_to = l->row.flipped_to + BATCH_SLICE;
	if (l->flip_to > l->row.total)
		l->flip_to = l->row.total;
	if (l->hold.machine->definition->item_action->void_action)
		read_doubtful(l); /* mutant: void-after-refund -> ask_with_new_op(l, answer, LEAD_FLIPPING); */
	else
		ask_with_new_op(l, answer, LEAD_FLIPPING);
}

/* The order of the teardown: the money, then the artifacts, and last the end, which says that both are done. */
static void tear_down(struct batch_lead *l, const struct answer *answer)
{
	bool has_cleanup = l->hold.machine->definition->cleanup_action && l->row.next_n;

	if (l->row.flipped_to < l->row.total) {
		flip_next_slice(l, answer);
	} else if (l->seen.clean_failed && l->seen.why.p) {
		let_go_failed(l, answer, l->seen.why, l->seen.not_before_ms);
	} else if (l->seen.clean_failed) { /* broken off: nothing is known to be wrong with the artifacts */
		let_go(l, answer, BATCH_REST_MS, /* why= */ slice_of(NULL, 0));
	} else if (has_cleanup && !l->seen.cleaned) { /* mutant: terminal-first -> } else if (false) { */
		l->seen.late = l->row.late;
		end_lead(l, LEAD_CLEAN, HX_OK);
	} else if (has_cleanup && l->seen.late != l->row.late) {
		let_go(l, answer, /* rest_ms= */ 1,
		       /* why= */ slice_of(NULL, 0)); /* another pass, with keys of its own */
	} else {
		write_end(l, answer, BATCH_CANCELLED);
	}
}

/* Ours and RUNNING, after the hands. */
static void close(struct batch_lead *l, const struct answer *answer)
{
	bool all_begun = l->row.next_n == l->row.total;

	if (l->row.cancel_requested)
		ask_with_new_op(l, answer, LEAD_TURNING);
	else if (all_begun && !l->row.running && !l->row.retry_at)
		write_end(l, answer, BATCH_COMPLETED);
	else if (l->row.running || l->seen.hands_failed)
		let_go(l, answer, BATCH_REST_MS, /* why= */ slice_of(NULL, 0));
	else if (l->seen.short_of_credit && !l->losses)
		ask_with_new_op(l, answer, LEAD_STOPPING_SHORT);
	else /* items rest, or money has come meanwhile */
		let_go(l, answer, all_begun ? 0 : 1, /* why= */ slice_of(NULL, 0));
}

static bool is_to_be_seized(const struct batch_lead *l)
{
	if (batch_is_terminal(l->row.status) || lead_is(l, BATCH_PENDING))
		return false;
	return l->row.owned ? l->row.past : l->row.due_at && l->row.due_at <= l->row.now;
}

static void batch_lead_leave(struct batch_lead *l)
{
	l->missing_workflow = l->row.workflow;
	end_lead(l, LEAD_OVER, HX_CONFIG_ERROR);
}

const struct action *batch_row_absent(const struct batch_row *row)
{
	const struct batch_definition *definition = row->machine ? row->machine->definition : NULL;
	const struct action *absent = definition ? action_absent(definition->item_action) : NULL;

	return definition && !absent ? action_absent(definition->cleanup_action) : absent;
}

static void batch_lead_decide(struct batch_lead *l, const struct answer *answer)
{
	if (l->holding && lead_is(l, BATCH_CANCELLING))
		tear_down(l, answer);
	else if (l->holding && l->seen.worked)
		close(l, answer);
	else if (l->holding)
		end_lead(l, LEAD_WORK, HX_OK);
	else if (!is_to_be_seized(l))
		end_lead(l, LEAD_OVER, l->row.owned ? HX_CLAIM_FAILED : HX_OK);
	else if (!lead_is(l, BATCH_LOADING) && batch_row_absent(&l->row)) /* mutant: left-batch-taken -> else if (0) */
		batch_lead_leave(l);
	else
		ask_with_new_op(l, answer, lead_is(l, BATCH_LOADING) ? LEAD_RELEASING : LEAD_SEIZING);
}

/* ---- answers ---- */

static void take_lead_read(struct batch_lead *l, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];
	int64_t fence = l->hold.fence;

	if (answer->result->verdict != UNIT_WON) {
		end_lead(l, LEAD_OVER, HX_STORE_UNAVAILABLE); /* the claim ends by its time, if it is ours */
		return;
	}
	if (rows->n == 0) {
		end_lead(l, LEAD_OVER, HX_NOT_FOUND);
		return;
	}
	batch_row_take(rows, 0, l->policy, l->arena, &l->row);
	if (l->arena->failed) {
		end_lead(l, LEAD_OVER, HX_TOO_LARGE);
	} else if (l->holding && (!l->row.owned || l->row.fence != fence)) {
		l->fenced = true;
		end_lead(l, LEAD_OVER, HX_STALE_FENCE);
	} else if (!l->row.machine && !lead_is(l, BATCH_LOADING)) {
		batch_lead_leave(l);
	} else {
		if (!l->holding)
			batch_hold_of(&l->row, l->policy, l->arena, &l->hold);
		batch_lead_decide(l, answer);
	}
}

static const char *seized_into(const struct batch_lead *l)
{
	return l->row.cancel_requested || lead_is(l, BATCH_CANCELLING) ? BATCH_CANCELLING : BATCH_RUNNING;
}

/* Rows: version, fence. */
static void moved(struct batch_lead *l, const struct answer *answer, const char *to, const struct db_rows *rows)
{
	l->row.status = to;
	l->row.version = db_cell(rows, 0, 0)->i;
	l->row.fence = l->hold.fence = db_cell(rows, 0, 1)->i;
	l->row.owned = true;
	l->row.past = false;
	l->hold.since = l->asked;
	l->holding = true;
	batch_lead_decide(l, answer);
}

/* The unit of this state is durable. */
static void won(struct batch_lead *l, const struct answer *answer, enum batch_lead_at at, const struct db_rows *rows)
{
	switch (at) {
	case LEAD_SEIZING:
		l->took_over = l->row.owned;
		moved(l, answer, seized_into(l), rows);
		break;
	case LEAD_TURNING:
		moved(l, answer, BATCH_CANCELLING, rows);
		break;
	case LEAD_ENDING:
		l->row.status = l->end_as;
		end_lead(l, LEAD_OVER, HX_OK);
		break;
	default:
		end_lead(l, LEAD_OVER, HX_OK);
	}
}

/* Somebody was first, or something has changed since it was read. */
static void batch_lead_lost(struct batch_lead *l, const struct answer *answer UNUSED)
{
	if (l->losses++ < LEAD_LOSSES_MAX)
		task_go(&l->task, LEAD_READING);
	else
		end_lead(l, LEAD_OVER, HX_CLAIM_FAILED);
}

static void lead_moved(struct batch_lead *l, const struct answer *answer)
{
	l->asked = answer->sent;
	won(l, answer, l->task.at, &answer->result->rows[0]);
}

static void lead_failed(struct batch_lead *l, const struct answer *answer)
{
	end_lead(l, LEAD_OVER, flow_failure(answer->result));
}

static void look_lead_up(struct batch_lead *l, const struct answer *answer UNUSED)
{
	l->looks_up = l->task.at;
	task_go(&l->task, LEAD_LOOKING_UP);
}

TASK_VERDICTS(take_moved, struct batch_lead, [UNIT_WON] = lead_moved, [UNIT_LOST] = batch_lead_lost,
	      [UNIT_REFUSED] = lead_failed, [UNIT_FAILED] = lead_failed, [UNIT_UNKNOWN] = look_lead_up);

static void take_lead_looked_up(struct batch_lead *l, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON)
		end_lead(l, LEAD_OVER, HX_STORE_UNAVAILABLE);
	else if (answer->result->rows[0].n)
		won(l, answer, l->looks_up, &answer->result->rows[0]);
	else
		batch_lead_lost(l, answer);
}

static void void_next(struct batch_lead *l, const struct answer *answer)
{
	struct lease lease = batch_lease(&l->hold);
	struct batch_call_item *item = &l->doubtful[l->doubtful_next];

	if (!lease_is_trusted(&lease, answer->mono)) {
		end_lead(l, LEAD_OVER, HX_STORE_UNAVAILABLE);
		return;
	}
	item->about = batch_item_key(l->hold.subject, item->n, /* suffix= */ NULL, 0, l->arena);
	l->key = batch_item_key(l->hold.subject, item->n, "void", l->hold.fence_floor + l->hold.fence, l->arena);
	l->body = batch_call_body(&l->hold, "void", item, l->arena);
	if (l->arena->failed)
		end_lead(l, LEAD_OVER, HX_TOO_LARGE);
	else
		task_go(&l->task, LEAD_VOIDING);
}

/*
 * A page of those that are in doubt is voided, then everything up to its last one is flipped: what comes after has a turn of
 * its own, with memory of its own. Nothing becomes doubtful meanwhile: no item is begun while CANCELLING.
 */
static void take_doubtful(struct batch_lead *l, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		end_lead(l, LEAD_OVER, HX_STORE_UNAVAILABLE);
		return;
	}
	if (rows->n == 0) {
		ask_with_new_op(l, answer, LEAD_FLIPPING);
		return;
	}
	for (size_t i = 0; i < rows->n; i++) {
		const struct db_value *output = db_cell(rows, i, ITEM_OUTPUT);

		l->doubtful[i] = (struct batch_call_item){
			.n = db_cell(rows, i, ITEM_N)->i,
			.attempt = db_cell(rows, i, ITEM_ATTEMPT)->i,
			.input = arena_copy(l->arena, db_cell(rows, i, ITEM_INPUT)->s),
			.output = output->type == DB_NULL ? slice_of(NULL, 0) : arena_copy(l->arena, output->s),
		};
	}
	l->doubtful_n = rows->n;
	if (rows->n == LEAD_DOUBTFUL_MAX)
		l->flip_to = l->doubtful[rows->n - 1].n + 1;
	void_next(l, answer);
}

static void take_voided(struct batch_lead *l, const struct answer *answer)
{
	if (answer->outcome == ACT_CLAIM_LOST) {
		end_lead(l, LEAD_OVER, HX_STALE_FENCE);
		return;
	}
	l->hold.since = answer->lease_since;
	if (answer->outcome != ACT_OK)
		let_go_failed(l, answer, arena_copy(l->arena, answer->output), /* no money before the key is void */
			      answer->not_before_ms);
	else if (++l->doubtful_next < l->doubtful_n)
		void_next(l, answer);
	else
		ask_with_new_op(l, answer, LEAD_FLIPPING);
}

/* After a lost answer the cursor tells: it is read again, under the lock. */
static void lead_flipped(struct batch_lead *l, const struct answer *answer)
{
	l->row.flipped_to = l->flip_to;
	l->hold.since = answer->sent;
	if (l->doubtful_n)
		end_lead(l, LEAD_AGAIN, HX_OK);
	else if (l->row.flipped_to == l->row.total)
		task_go(&l->task, LEAD_READING); /* the totals, as they are now */
	else
		tear_down(l, answer);
}

TASK_VERDICTS(take_flipped, struct batch_lead, [UNIT_WON] = lead_flipped, [UNIT_LOST] = batch_lead_lost,
	      [UNIT_REFUSED] = lead_failed, [UNIT_FAILED] = lead_failed, [UNIT_UNKNOWN] = batch_lead_lost);

/* ---- asking ---- */

static void build_lead_read(const struct batch_lead *l, struct unit *unit)
{
	if (l->holding) /* a flip whose answer was lost has ended before this is answered */
		unit_touch(unit, l->subject);
	batch_read(unit, /* workspace= */ slice_str(""), l->subject);
}

TASK_UNIT(build_lead_seize, struct batch_lead, l,
	  batch_seize(unit, &l->stamp, &l->row, seized_into(l), l->hold.lease_ms));
TASK_UNIT(build_lead_release, struct batch_lead, l, batch_load_lost(unit, &l->stamp, &l->row));
TASK_UNIT(build_turn, struct batch_lead, l, batch_begin_teardown(unit, &l->stamp, &l->hold));
TASK_UNIT(build_read_doubtful, struct batch_lead, l,
	  item_read_doubtful(unit, l->subject, l->row.flipped_to, l->flip_to, LEAD_DOUBTFUL_MAX));

static struct act_call call_to_void(const struct batch_lead *l)
{
	return batch_call(&l->hold, l->hold.machine->definition->item_action->void_action, l->body, l->key,
			  l->doubtful[l->doubtful_next].attempt);
}

TASK_UNIT(build_flip, struct batch_lead, l, item_flip(unit, &l->stamp, &l->hold, l->row.flipped_to, l->flip_to));
TASK_UNIT(build_stop_short, struct batch_lead, l, batch_stop_short(unit, &l->stamp, &l->hold));
TASK_UNIT(build_let_go, struct batch_lead, l,
	  batch_let_go(unit, &l->stamp, &l->hold, l->row.status, l->rest_ms, l->failed_cleanup, l->why));
TASK_UNIT(build_end, struct batch_lead, l,
	  batch_end(unit, &l->stamp, &l->hold, l->end_as, &l->row, l->job_ids, l->job_keys, l->payload));
TASK_UNIT(build_lead_look_up, struct batch_lead, l, subject_look_up(unit, l->subject, l->stamp.op));

static const TASK_STATES(struct batch_lead) lead_states[] = {
	[LEAD_NEW] = {"new", .then = LEAD_READING},
	[LEAD_READING] = {"reading the batch", take_lead_read, build_lead_read},
	[LEAD_SEIZING] = {"seizing it", take_moved, build_lead_seize},
	[LEAD_RELEASING] = {"ending a lost load", take_moved, build_lead_release},
	[LEAD_TURNING] = {"turning to the teardown", take_moved, build_turn},
	[LEAD_READING_DOUBTFUL] = {"reading what is in doubt", take_doubtful, build_read_doubtful},
	[LEAD_VOIDING] = {"voiding a key", take_voided, .act = call_to_void},
	[LEAD_FLIPPING] = {"refunding a slice", take_flipped, build_flip},
	[LEAD_STOPPING_SHORT] = {"stopping for want of credit", take_moved, build_stop_short},
	[LEAD_LETTING_GO] = {"letting it go", take_moved, build_let_go},
	[LEAD_ENDING] = {"ending it", take_moved, build_end},
	[LEAD_LOOKING_UP] = {"looking up its move", take_lead_looked_up, build_lead_look_up},
	[LEAD_DONE] = {"done"},
};

/* Before it reads, nothing counts of what it has read and decided before. What is dealt with is over. */
static void batch_lead_forget(void *copy)
{
	struct batch_lead *l = copy;
	bool voids = l->task.at == LEAD_READING_DOUBTFUL || l->task.at == LEAD_VOIDING;

	l->rest_ms = shape_rest(l->rest_ms);
	memset(l->doubtful, 0, l->doubtful_next * sizeof *l->doubtful);
	if (l->task.at == LEAD_NEW || l->task.at == LEAD_READING) {
		l->row = (struct batch_row){0};
		memset(&l->flip_to, 0, offsetof(struct batch_lead, losses) - offsetof(struct batch_lead, flip_to));
		l->stamp = (struct stamp){0};
	}
	if (l->task.at == LEAD_NEW || l->task.at == LEAD_READING || voids)
		l->asked.ns = 0;
}

static const struct task_shape lead_shape = SHAPE(struct batch_lead, batch_lead_forget,
	PART_WITH(INNER, struct batch_lead, seen, &batch_seen_shape),
	PART_WITH(INNER, struct batch_lead, hold, &batch_hold_shape),
	PART_WITH(INNER, struct batch_lead, row, &batch_row_shape),
	PART(SLICE, struct batch_lead, missing_workflow),
	PART_WITH(INNER, struct batch_lead, doubtful, &batch_call_item_shape),
	PART(KEY, struct batch_lead, key),
	PART(SLICE, struct batch_lead, body, why, payload, job_keys),
	PART(TEXT, struct batch_lead, end_as),
	PART(FRESH, struct batch_lead, job_ids),
	PART_WITH(INNER, struct batch_lead, stamp, &stamp_noted_shape));

TASK_KIND_STAMPED(lead_kind, "batch", struct batch_lead, lead_states, .shape = &lead_shape);

void batch_lead_init(struct batch_lead *lead, int64_t subject, const struct batch_policy *policy,
		     const struct batch_hold *hold, const struct batch_seen *seen, struct arena *arena)
{
	*lead = (struct batch_lead){.subject = subject, .policy = policy, .arena = arena};
	if (hold) {
		lead->hold = *hold;
		lead->holding = true;
	}
	if (seen)
		lead->seen = *seen;
	task_init(&lead->task, &lead_kind, /* topic= */ 0);
}
