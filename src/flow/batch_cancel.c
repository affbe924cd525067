/* See batch_cancel.h for the states. */
#include "flow/batch_cancel.h"

#include <string.h>

#include "flow/answer.h"
#include "flow/shapes.h"

#define LOSSES_MAX 20

static bool is(const struct batch_cancel *c, const char *status)
{
	return strcmp(c->row.status, status) == 0;
}

static void end(struct batch_cancel *c, enum hx_code code)
{
	c->code = code;
	c->at = CANCEL_DONE;
}

static void ask_with_new_op(struct batch_cancel *c, const struct answer *answer, int at)
{
	c->stamp = flow_stamp(answer);
	c->asked = answer->mono;
	c->at = at;
}

static void accept(struct batch_cancel *c)
{
	c->accepted = true;
	end(c, HX_OK);
}

static void decide(struct batch_cancel *c, const struct answer *answer)
{
	if (is(c, BATCH_CANCELLED)) {
		c->was_over = true;
		end(c, HX_OK);
	} else if (batch_is_terminal(c->row.status)) {
		end(c, HX_ALREADY_COMPLETED);
	} else if (c->row.cancel_requested) {
		accept(c);
	} else if (is(c, BATCH_LOADING) && c->row.past) {
		ask_with_new_op(c, answer, CANCEL_RELEASING);
	} else if (is(c, BATCH_LOADING)) {
		end(c, HX_WRONG_STATUS);
	} else if (is(c, BATCH_RUNNING) || is(c, BATCH_OUT_OF_CREDIT)) {
		ask_with_new_op(c, answer, CANCEL_FLAGGING);
	} else if (!c->row.machine) {
		end(c, HX_CONFIG_ERROR);
	} else {
		ask_with_new_op(c, answer, CANCEL_SEIZING);
	}
}

static void take_read(struct batch_cancel *c, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		end(c, c->in_doubt ? HX_OUTCOME_UNKNOWN : HX_STORE_UNAVAILABLE);
		return;
	}
	if (rows->n == 0) {
		end(c, HX_NOT_FOUND);
		return;
	}
	batch_row_take(rows, 0, c->policy, c->arena, &c->row);
	batch_hold_of(&c->row, c->policy, c->arena, &c->hold);
	if (c->arena->failed)
		end(c, HX_TOO_LARGE);
	else
		decide(c, answer);
}

/* Row: version, fence. */
static void seized(struct batch_cancel *c, const struct db_rows *rows)
{
	c->seized = true;
	c->hold.fence = db_cell(rows, 0, 1)->i;
	c->hold.since = c->asked;
	end(c, HX_OK);
}

/* Somebody was first; what it is now is read again. */
static void lost(struct batch_cancel *c)
{
	if (c->losses++ < LOSSES_MAX)
		c->at = CANCEL_READING;
	else
		end(c, HX_CONCURRENCY_ERROR);
}

static void take_written(struct batch_cancel *c, const struct answer *answer)
{
	const struct unit_result *result = answer->result;

	switch (result->verdict) {
	case UNIT_WON:
		if (c->at == CANCEL_SEIZING)
			seized(c, &result->rows[0]);
		else
			accept(c);
		break;
	case UNIT_LOST:
		lost(c);
		break;
	case UNIT_UNKNOWN:
		c->in_doubt = true;
		c->at = c->at == CANCEL_SEIZING ? CANCEL_LOOKING_UP : CANCEL_READING;
		break;
	default:
		end(c, c->in_doubt ? HX_OUTCOME_UNKNOWN : flow_failure(result));
	}
}

static void take_looked_up(struct batch_cancel *c, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON)
		end(c, HX_OUTCOME_UNKNOWN);
	else if (answer->result->rows[0].n)
		seized(c, &answer->result->rows[0]);
	else
		lost(c);
}

static void take(struct task *task, const struct answer *answer)
{
	struct batch_cancel *c = (struct batch_cancel *)task;

	switch (c->at) {
	case CANCEL_NEW:
		c->at = CANCEL_READING;
		break;
	case CANCEL_READING:
		take_read(c, answer);
		break;
	case CANCEL_SEIZING:
	case CANCEL_FLAGGING:
		take_written(c, answer);
		break;
	case CANCEL_LOOKING_UP:
		take_looked_up(c, answer);
		break;
	case CANCEL_RELEASING: /* whatever came of it: somebody has ended the load */
		lost(c);
		break;
	case CANCEL_DONE:
		ASSERT(!"a task that is done takes no answer");
	}
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct batch_cancel *c = (const struct batch_cancel *)task;

	ask->kind = ASK_COMMIT;
	switch (c->at) {
	case CANCEL_DONE:
		ask->kind = ASK_DONE;
		ask->code = c->code;
		return;
	case CANCEL_SEIZING:
		unit_init(ask->unit, c->stamp.op);
		batch_seize(ask->unit, &c->stamp, &c->row, BATCH_CANCELLING, c->hold.lease_ms);
		break;
	case CANCEL_FLAGGING:
		unit_init(ask->unit, c->stamp.op);
		batch_request_cancel(ask->unit, &c->stamp, &c->row);
		break;
	case CANCEL_RELEASING:
		unit_init(ask->unit, c->stamp.op);
		batch_load_lost(ask->unit, &c->stamp, &c->row);
		break;
	case CANCEL_LOOKING_UP:
		unit_init(ask->unit, c->stamp.op);
		subject_look_up(ask->unit, c->subject, c->stamp.op);
		break;
	default:
		unit_init(ask->unit, /* op= */ 0);
		if (c->in_doubt) /* a flag whose answer was lost has landed by the time that this is answered, or never will */
			unit_touch(ask->unit, c->subject);
		batch_read(ask->unit, c->workspace, c->subject);
	}
}

static const char *where(const struct task *task)
{
	static const char *const names[] = {"new",
					    "reading the batch",
					    "seizing it",
					    "looking up its move",
					    "setting the flag",
					    "ending a lost load",
					    "done"};

	return names[((const struct batch_cancel *)task)->at];
}

/* Before it reads, nothing counts of what it has read before; when it asked, only for the lease of what it seizes. */
static void forget(void *copy)
{
	struct batch_cancel *c = copy;

	if (c->at == CANCEL_NEW || c->at == CANCEL_READING) {
		c->row = (struct batch_row){0};
		c->stamp = (struct stamp){0};
	}
	if (c->at != CANCEL_SEIZING && c->at != CANCEL_LOOKING_UP)
		c->asked.ns = 0;
}

/* clang-format off */
static const struct task_shape shape = SHAPE(struct batch_cancel, forget,
	PART(SLICE, struct batch_cancel, workspace),
	PART_WITH(INNER, struct batch_cancel, hold, &batch_hold_shape),
	PART_WITH(INNER, struct batch_cancel, row, &batch_row_shape),
	PART_WITH(INNER, struct batch_cancel, stamp, &stamp_noted_shape));
/* clang-format on */

static const struct task_kind kind = {
	.name = "batch cancel",
	.size = sizeof(struct batch_cancel),
	.take = take,
	.ask = ask,
	.where = where,
	.shape = &shape,
};

void batch_cancel_init(struct batch_cancel *cancel, struct slice workspace, int64_t subject,
		       const struct batch_policy *policy, struct arena *arena)
{
	*cancel = (struct batch_cancel){.workspace = workspace, .subject = subject, .policy = policy, .arena = arena};
	task_init(&cancel->task, &kind, /* topic= */ 0);
}
