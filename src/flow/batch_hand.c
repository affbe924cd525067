/* See batch_hand.h for the states. */
#include "flow/batch_hand.h"

#include <string.h>

#include "base/utf8.h"
#include "flow/answer.h"
#include "flow/call_key.h"
#include "flow/probe.h"
#include "flow/shapes.h"
#include "flow/what_next.h"
#include "task/pulse.h"
#include "task/states.h"

#define ERROR_BYTES_MAX 500

static const struct batch_definition *definition_of(const struct batch_hand *h)
{
	return h->hold.machine->definition;
}

static void end_hand(struct batch_hand *h, enum hand_came_to came_to, enum hx_code code)
{
	h->came_to = came_to;
	task_end(&h->task, code);
}

static void ask_with_new_op(struct batch_hand *h, const struct answer *answer, enum batch_hand_at at)
{
	h->stamp = flow_stamp(answer);
	h->asked = answer->mono;
	task_go(&h->task, at);
}

static void rest_a_moment(struct batch_hand *h, const struct answer *answer)
{
	if (!flow_rests(&h->patience, &h->task, answer, HAND_RESTING))
		end_hand(h, HAND_FAILED, HX_STORE_UNAVAILABLE);
}

/* ---- how an item ends ---- */

static void end_item(struct batch_hand *h, const struct answer *answer, const struct item_end *as)
{
	h->end = *as;
	h->end.n = h->n;
	h->end.attempt = h->attempt;
	ask_with_new_op(h, answer, HAND_ENDING);
}

static struct slice batch_hand_words(struct batch_hand *h, struct slice text)
{
	if (text.n > ERROR_BYTES_MAX)
		text.n = utf8_valid_bytes(slice_of(text.p, ERROR_BYTES_MAX));
	return arena_copy(h->arena, text);
}

static enum item_doubt doubt_of(const struct batch_hand *h)
{
	if (h->doubt)
		return DOUBT_NOW;
	return h->doubted ? DOUBT_ONCE : DOUBT_NONE; /* mutant: doubt-ended-by-probe -> return DOUBT_NONE; */
}

/* An earlier call under this key may still be under way: teardown has to know. */
static void succeeded(struct batch_hand *h, const struct answer *answer, struct slice output)
{
	enum item_doubt doubt = DOUBT_NONE;

	doubt = doubt_of(h); /* mutant: doubt-ended-by-success */
	if (output.n > BATCH_OUTPUT_BYTES_MAX)
		end_item(h, answer,
			 &(struct item_end){.status = ITEM_SUCCEEDED,
					    .doubt = doubt,
					    .output = slice_str("null"),
					    .error = slice_str("its output was longer than 1 MiB, and was not kept")});
	else
		end_item(h, answer,
			 &(struct item_end){
				 .status = ITEM_SUCCEEDED, .doubt = doubt, .output = arena_copy(h->arena, output)});
}

static void left_unknown(struct batch_hand *h, const struct answer *answer, bool failure, struct slice error)
{
	h->unknown = true;
	end_item(h, answer,
		 &(struct item_end){.status = ITEM_UNKNOWN, .failure = failure, .doubt = DOUBT_NOW, .error = error});
}

/* The lease was over before the call could be begun: it is as it was, and this node begins nothing else. */
static void not_begun(struct batch_hand *h, const struct answer *answer)
{
	h->overrun = true;
	end_item(h, answer,
		 &(struct item_end){.status = ITEM_PENDING,
				    .doubt = doubt_of(h),
				    .returns = !h->doubt,
				    .error = slice_str("its holder lost the batch before it could be begun")});
}

static void probe(struct batch_hand *h, const struct answer *answer)
{
	struct slice key = batch_item_key(h->hold.subject, h->n, /* suffix= */ NULL, 0, h->arena);

	h->key = call_key_to_ask(key, CALL_PROBE, answer->id, h->arena);
	h->body = batch_call_body(&h->hold, "probe",
				  &(struct batch_call_item){.n = h->n, .input = h->input, .about = key}, h->arena);
	task_go(&h->task, HAND_PROBING);
}

/* After a call that was heard out nothing else is begun: whoever takes over asks. */
static void begin_probe(struct batch_hand *h, const struct answer *answer)
{
	struct lease lease = batch_lease(&h->hold);

	if (lease_is_trusted(&lease, answer->mono))
		probe(h, answer);
	else
		not_begun(h, answer);
}

/* Not tried again. What is in doubt stays charged: whether it ever was done is another question. */
static void given_up(struct batch_hand *h, const struct answer *answer, struct slice error)
{
	end_item(h, answer,
		 &(struct item_end){.status = ITEM_FAILED,
				    .failure = true,
				    .doubt = doubt_of(h),
				    .returns = !h->doubt,
				    .error = error});
}

static void again(struct batch_hand *h, const struct answer *answer, const struct next *next, struct slice error)
{
	end_item(h, answer,
		 &(struct item_end){.status = ITEM_PENDING,
				    .failure = next->what == NEXT_AGAIN,
				    .doubt = doubt_of(h),
				    .returns = !h->doubt,
				    .error = error,
				    .rest_ms = next->rest_ms,
				    .unsettled_since = next->unsettled_since});
}

static struct next batch_hand_next_of(const struct batch_hand *h, const struct answer *answer, enum heard heard)
{
	return what_next(&(struct tried){
		.heard = heard,
		.doubt = h->doubt,
		.policy = definition_of(h)->on_unknown,
		.retry = &definition_of(h)->retry,
		.attempt = h->failures + 1,
		.drawn = answer->id,
		.now_ms = answer->now.ms,
		.not_before_ms = answer->not_before_ms,
		.unsettled_since = h->unsettled_since,
		.waits = true,
	});
}

static void heard(struct batch_hand *h, const struct answer *answer, enum heard heard, struct slice error)
{
	struct next next = batch_hand_next_of(h, answer, heard);

	h->doubt = next.doubt;
	h->doubted |= next.doubt;
	switch (next.what) {
	case NEXT_DONE:
		succeeded(h, answer, answer->output);
		break;
	case NEXT_AGAIN:
	case NEXT_SAME_AGAIN:
		again(h, answer, &next, error);
		break;
	case NEXT_PROBE:
		begin_probe(h, answer);
		break;
	case NEXT_HOLD:
		left_unknown(h, answer, /* failure= */ heard != HEARD_UNSETTLED, error);
		break;
	case NEXT_FAIL:
		given_up(h, answer, error);
		break;
	}
}

/* ---- answers ---- */

/* The start is durable: the item is ours. */
static void call(struct batch_hand *h, const struct answer *answer)
{
	h->key = batch_item_key(h->hold.subject, h->n, /* suffix= */ NULL, 0, h->arena);
	h->body = batch_call_body(&h->hold, "item", &(struct batch_call_item){.n = h->n, .input = h->input}, h->arena);
	if (h->arena->failed) {
		h->arena->failed = false;
		heard(h, answer, HEARD_REFUSED, slice_str("there was no room for its texts"));
		return;
	}
	task_go(&h->task, HAND_ACTING);
}

/* A holder that was lost has used up no attempt: of those there is a bound of their own. */
static enum next_what next_after_loss(const struct batch_hand *h)
{
	static const struct run_retry any_number = {.max_attempts = INT64_MAX};

	return what_next(&(struct tried){
				 .heard = HEARD_UNKNOWN, .policy = definition_of(h)->on_unknown, .retry = &any_number})
		.what;
}

static void batch_hand_begin(struct batch_hand *h, const struct answer *answer, const struct db_rows *rows)
{
	enum next_what next = h->doubt ? next_after_loss(h) : NEXT_AGAIN;
	struct lease lease = batch_lease(&h->hold);
	bool may = true;

	may &= lease_is_trusted(&lease, answer->mono); /* mutant: hand-on-lapsed-lease */
	if (!may)
		not_begun(h, answer);
	else if (db_cell(rows, 0, START_LOSSES)->i > BATCH_LOSSES_MAX)
		left_unknown(h, answer, /* failure= */ false, slice_str("too many holders were lost over it"));
	else if (h->unsettled_since) /* nobody was lost over it: it is only asked again */
		call(h, answer);
	else if (next == NEXT_PROBE)
		probe(h, answer);
	else if (next == NEXT_HOLD)
		left_unknown(h, answer, /* failure= */ false, slice_str("its holder was lost"));
	else
		call(h, answer);
}

static void take_item(struct batch_hand *h, const struct answer *answer, const struct db_rows *rows)
{
	h->n = db_cell(rows, 0, START_N)->i;
	h->attempt = db_cell(rows, 0, START_ATTEMPT)->i;
	h->failures = db_cell(rows, 0, START_FAILURES)->i;
	h->doubt = db_cell(rows, 0, START_DOUBT)->i == DOUBT_NOW;
	h->doubted = db_cell(rows, 0, START_DOUBT)->i != DOUBT_NONE;
	h->unsettled_since = db_cell(rows, 0, START_UNSETTLED_SINCE)->type == DB_NULL
				     ? 0
				     : db_cell(rows, 0, START_UNSETTLED_SINCE)->i;
	h->input = arena_copy(h->arena, db_cell(rows, 0, START_INPUT)->s);
	h->patience.gives_up_at.ns = 0;
	h->hold.since = h->asked;
	batch_hand_begin(h, answer, rows);
}

static void take_first(struct batch_hand *h, const struct answer *answer)
{
	ask_with_new_op(h, answer, HAND_STARTING);
}

static void take_started(struct batch_hand *h, const struct answer *answer)
{
	const struct unit_result *result = answer->result;

	if (result->verdict == UNIT_WON) {
		h->asked = answer->sent; /* it may have waited for its turn before that */
		take_item(h, answer, &result->rows[1]);
	} else if (result->verdict == UNIT_LOST && result->line == 0) {
		end_hand(h, HAND_FAILED, HX_STALE_FENCE);
	} else if (result->verdict != UNIT_FAILED) {
		end_hand(h, result->verdict == UNIT_LOST ? HAND_NO_MORE : HAND_SHORT, HX_OK);
	} else {
		end_hand(h, HAND_FAILED, flow_failure(result));
	}
}

static void take_found(struct batch_hand *h, const struct answer *answer)
{
	take_item(h, answer, &answer->result->rows[0]);
}

/* If the start is not found, it was not written, or the item is another's by now. */
TASK_LOOKED_UP(take_hand_looked_up, struct batch_hand, rest_a_moment, take_found, take_first);

/* False: the call was never begun, and not_begun() has dealt with that. */
static bool was_begun(struct batch_hand *h, const struct answer *answer)
{
	if (answer->outcome == ACT_CLAIM_LOST) {
		not_begun(h, answer);
		return false;
	}
	h->overrun |= answer->overrun;
	if (!answer->overrun)
		h->hold.since = answer->lease_since;
	return true;
}

static void batch_hand_take_acted(struct batch_hand *h, const struct answer *answer)
{
	if (was_begun(h, answer))
		heard(h, answer, heard_of(answer->outcome), batch_hand_words(h, answer->output));
}

static void batch_hand_take_probed(struct batch_hand *h, const struct answer *answer)
{
	struct slice output;
	enum heard said;

	if (!was_begun(h, answer))
		return;
	said = probe_heard(answer, &output);
	h->doubt &= said != HEARD_NOT_DONE;
	if (said == HEARD_DONE)
		succeeded(h, answer, output);
	else
		heard(h, answer, said,
		      said == HEARD_NOT_DONE ? slice_str("a probe says that it was not done")
					     : batch_hand_words(h, answer->output));
}

static void batch_hand_go_on(struct batch_hand *h)
{
	end_hand(h, h->overrun ? HAND_FAILED : HAND_GO_ON, h->overrun ? HX_STALE_FENCE : HX_OK);
}

/* It was cancelled, or given back, before we could say that it was done. */
static void record_late(struct batch_hand *h, const struct answer *answer)
{
	ask_with_new_op(h, answer, HAND_RECORDING);
	h->job_id = definition_of(h)->cleanup_action ? answer->more_ids[0] : 0;
	h->job_key = batch_item_key(h->hold.subject, h->n, "cleanup/late", h->attempt, h->arena);
	h->payload = batch_call_body(&h->hold, "cleanup",
				     &(struct batch_call_item){.n = h->n, .input = h->input, .output = h->end.output},
				     h->arena);
}

/* Lost: it had landed before, or the item is another's by now, or it was decided. */
static void take_lost(struct batch_hand *h, const struct answer *answer)
{
	if (strcmp(h->end.status, ITEM_SUCCEEDED) != 0)
		batch_hand_go_on(h);
	else if (h->task.at == HAND_ENDING)
		ask_with_new_op(h, answer, HAND_SETTLING); /* mutant: known-success-forgotten -> batch_hand_go_on(h); */
	else if (h->task.at == HAND_SETTLING)
		record_late(h, answer); /* mutant: late-success-forgotten -> batch_hand_go_on(h); */
	else if (h->task.at == HAND_RECORDING)
		ask_with_new_op(h, answer, HAND_DOUBTING);
	else
		batch_hand_go_on(h);
}

static void item_ended(struct batch_hand *h, const struct answer *answer UNUSED)
{
	h->late = h->task.at == HAND_RECORDING; /* mutant: late-success-counted -> ; */
	batch_hand_go_on(h);
}

/* What is given back raises a balance: it is never refused. */
TASK_VERDICTS(take_ended, struct batch_hand, [UNIT_WON] = item_ended, [UNIT_LOST] = take_lost,
	      [UNIT_FAILED] = rest_a_moment, [UNIT_UNKNOWN] = rest_a_moment);

static void take_hand_rested(struct batch_hand *h, const struct answer *answer UNUSED)
{
	task_go(&h->task, h->patience.rests_from);
}

/* ---- asking ---- */

TASK_UNIT(build_start, struct batch_hand, h, item_start(unit, &h->stamp, &h->hold));
TASK_UNIT(build_hand_look_up, struct batch_hand, h, item_look_up_start(unit, &h->hold, h->stamp.op));
TASK_UNIT(build_end, struct batch_hand, h, item_end(unit, &h->stamp, &h->hold, &h->end));
TASK_UNIT(build_settle, struct batch_hand, h, item_settle(unit, &h->stamp, &h->hold, h->n, h->attempt, h->end.output));
TASK_UNIT(build_record, struct batch_hand, h,
	  item_late(unit, &h->stamp, &h->hold, &h->end, h->job_id, h->job_key, h->payload));
TASK_UNIT(build_doubt, struct batch_hand, h, item_doubt(unit, &h->stamp, &h->hold, &h->end));

static struct act_call batch_hand_call_of(const struct batch_hand *h)
{
	const struct action *item = definition_of(h)->item_action;
	bool probing = h->task.at == HAND_PROBING;
	struct act_call call = batch_call(&h->hold, probing ? item->probe : item, h->body, h->key, h->attempt);

	call.unknown_on_5xx = definition_of(h)->unknown_on_5xx;
	call.in_doubt = h->doubt;
	call.timeout_ms = probing ? 0 : definition_of(h)->timeout_ms;
	call.hear_out = !probing;
	return call;
}

static const TASK_STATES(struct batch_hand) hand_states[] = {
	[HAND_NEW] = {"new", take_first},
	[HAND_STARTING] = {"starting an item", take_started, build_start, .unknown = HAND_LOOKING_UP},
	[HAND_LOOKING_UP] = {"looking up its start", take_hand_looked_up, build_hand_look_up},
	[HAND_ACTING] = {"at an item", batch_hand_take_acted, .act = batch_hand_call_of},
	[HAND_PROBING] = {"probing", batch_hand_take_probed, .act = batch_hand_call_of},
	[HAND_ENDING] = {"ending an item", take_ended, build_end},
	[HAND_SETTLING] = {"settling an item", take_ended, build_settle},
	[HAND_RECORDING] = {"recording a late success", take_ended, build_record},
	[HAND_DOUBTING] = {"telling the next to ask first", take_ended, build_doubt},
	[HAND_RESTING] = {"resting", take_hand_rested, .until = offsetof(struct batch_hand, patience.rests_until)},
	[HAND_DONE] = {"done"},
};

/* When it asked counts for the lease that a start renews, and until when it rests while it does. */
static void batch_hand_forget(void *copy)
{
	struct batch_hand *h = copy;

	if (h->task.at != HAND_STARTING && h->task.at != HAND_LOOKING_UP && h->patience.rests_from != HAND_LOOKING_UP)
		h->asked.ns = 0;
	if (h->task.at != HAND_RESTING)
		h->patience.rests_until.ns = 0;
	h->end.rest_ms = shape_rest(h->end.rest_ms);
}

static const struct task_shape end_shape = SHAPE(struct item_end, NULL,
	PART(TEXT, struct item_end, status),
	PART(SLICE, struct item_end, output, error));

static const struct task_shape hand_shape = SHAPE(struct batch_hand, batch_hand_forget,
	PART_WITH(INNER, struct batch_hand, hold, &batch_hold_shape),
	PART(SLICE, struct batch_hand, input), PART(KEY, struct batch_hand, key), PART(SLICE, struct batch_hand, body),
	PART_WITH(INNER, struct batch_hand, end, &end_shape),
	PART(FRESH, struct batch_hand, job_id),
	PART(SLICE, struct batch_hand, job_key, payload),
	PART_WITH(INNER, struct batch_hand, stamp, &stamp_noted_shape));

TASK_KIND_STAMPED(hand_kind, "batch item", struct batch_hand, hand_states, .shape = &hand_shape);

void batch_hand_init(struct batch_hand *hand, const struct batch_hold *hold, struct arena *arena)
{
	*hand = (struct batch_hand){.hold = *hold, .arena = arena};
	task_init(&hand->task, &hand_kind, /* topic= */ 0);
}
