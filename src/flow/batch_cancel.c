/* See batch_cancel.h for the states. */
#include "flow/batch_cancel.h"

#include <string.h>

#include "flow/answer.h"
#include "flow/shapes.h"
#include "task/states.h"

#define LOSSES_MAX 20

enum {
	CANCEL_NEW,
	CANCEL_READING,
	CANCEL_SEIZING,
	CANCEL_LOOKING_UP,
	CANCEL_FLAGGING,
	CANCEL_RELEASING,
	CANCEL_DONE,
};

static bool batch_cancel_is(const struct batch_cancel *c, const char *status)
{
	return strcmp(c->row.status, status) == 0;
}

static void ask_with_new_op(struct batch_cancel *c, const struct answer *answer, int at)
{
	c->stamp = flow_stamp(answer);
	c->asked = answer->mono;
	task_go(&c->task, at);
}

static void accept(struct batch_cancel *c)
{
	c->accepted = true;
	task_end(&c->task, HX_OK);
}

static void batch_cancel_decide(struct batch_cancel *c, const struct answer *answer)
{
	if (batch_cancel_is(c, BATCH_CANCELLED)) {
		c->was_over = true;
		task_end(&c->task, HX_OK);
	} else if (batch_is_terminal(c->row.status)) {
		task_end(&c->task, HX_ALREADY_COMPLETED);
	} else if (c->row.cancel_requested) {
		accept(c);
	} else if (batch_cancel_is(c, BATCH_LOADING) && c->row.past) {
		ask_with_new_op(c, answer, CANCEL_RELEASING);
	} else if (batch_cancel_is(c, BATCH_LOADING)) {
		task_end(&c->task, HX_WRONG_STATUS);
	} else if (batch_cancel_is(c, BATCH_RUNNING) || batch_cancel_is(c, BATCH_OUT_OF_CREDIT)) {
		ask_with_new_op(c, answer, CANCEL_FLAGGING);
	} else if (!c->row.machine) {
		task_end(&c->task, HX_CONFIG_ERROR);
	} else {
		ask_with_new_op(c, answer, CANCEL_SEIZING);
	}
}

static void take_cancel_read(struct batch_cancel *c, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (answer->result->verdict != UNIT_WON) {
		task_end(&c->task, c->in_doubt ? HX_OUTCOME_UNKNOWN : HX_STORE_UNAVAILABLE);
		return;
	}
	if (rows->n == 0) {
		task_end(&c->task, HX_NOT_FOUND);
		return;
	}
	batch_row_take(rows, 0, c->policy, c->arena, &c->row);
	batch_hold_of(&c->row, c->policy, c->arena, &c->hold);
	if (c->arena->failed)
		task_end(&c->task, HX_TOO_LARGE);
	else if (c->version && c->version != c->row.version) /* mutant: bulk-cancels-another -> else if (0) */
		task_end(&c->task, HX_CONCURRENCY_ERROR);
	else
		batch_cancel_decide(c, answer);
}

/* Row: version, fence. */
static void seized(struct batch_cancel *c, const struct db_rows *rows)
{
	c->seized = c->changed = true;
	c->hold.fence = db_cell(rows, 0, 1)->i;
	c->hold.since = c->asked;
	task_end(&c->task, HX_OK);
}

/* Somebody was first; what it is now is read again. */
static void batch_cancel_lost(struct batch_cancel *c, const struct answer *answer UNUSED)
{
	if (c->losses++ < LOSSES_MAX)
		task_go(&c->task, CANCEL_READING);
	else
		task_end(&c->task, HX_CONCURRENCY_ERROR);
}

static void cancel_written(struct batch_cancel *c, const struct answer *answer)
{
	c->changed = true;
	if (c->along)
		c->along->won(c->along, answer->result);
	if (c->task.at == CANCEL_SEIZING)
		seized(c, &answer->result->rows[0]);
	else
		accept(c);
}

static void cancel_failed(struct batch_cancel *c, const struct answer *answer)
{
	task_end(&c->task, c->in_doubt ? HX_OUTCOME_UNKNOWN : flow_failure(answer->result));
}

static void unsure_of_cancel(struct batch_cancel *c, const struct answer *answer UNUSED)
{
	c->in_doubt = true;
	task_go(&c->task, c->task.at == CANCEL_SEIZING ? CANCEL_LOOKING_UP : CANCEL_READING);
}

TASK_VERDICTS(take_cancel_written, struct batch_cancel, [UNIT_WON] = cancel_written, [UNIT_LOST] = batch_cancel_lost,
	      [UNIT_REFUSED] = cancel_failed, [UNIT_FAILED] = cancel_failed, [UNIT_UNKNOWN] = unsure_of_cancel);

static void take_cancel_looked_up(struct batch_cancel *c, const struct answer *answer)
{
	if (answer->result->verdict != UNIT_WON)
		task_end(&c->task, HX_OUTCOME_UNKNOWN);
	else if (answer->result->rows[0].n)
		seized(c, &answer->result->rows[0]);
	else
		batch_cancel_lost(c, answer);
}

/* Whatever came of it: somebody has ended the load. */
static void take_released(struct batch_cancel *c, const struct answer *answer UNUSED)
{
	batch_cancel_lost(c, answer);
}

static void build_cancel_read(const struct batch_cancel *c, struct unit *unit)
{
	unit->op = 0;    /* that of a flag tells of the flag alone */
	if (c->in_doubt) /* one whose answer was lost has landed by the time that this is answered, or never will */
		unit_touch(unit, c->subject);
	batch_read(unit, c->workspace, c->subject);
}

static void add_along(const struct batch_cancel *c, struct unit *unit)
{
	if (c->along)
		c->along->add(c->along, unit);
}

static void build_cancel_seize(const struct batch_cancel *c, struct unit *unit)
{
	batch_seize(unit, &c->stamp, &c->row, BATCH_CANCELLING, c->leaves ? 0 : c->hold.lease_ms);
	add_along(c, unit);
}

/* It raises no version, and so is guarded by none, unless somebody wants that. */
static void build_flag(const struct batch_cancel *c, struct unit *unit)
{
	if (c->version)
		subject_is_at(unit, c->subject, c->version);
	batch_request_cancel(unit, &c->stamp, &c->row);
	add_along(c, unit);
}

TASK_UNIT(build_cancel_look_up, struct batch_cancel, c, subject_look_up(unit, c->subject, c->stamp.op));
TASK_UNIT(build_cancel_release, struct batch_cancel, c, batch_load_lost(unit, &c->stamp, &c->row));

static const TASK_STATES(struct batch_cancel) cancel_states[] = {
	[CANCEL_NEW] = {"new", .then = CANCEL_READING},
	[CANCEL_READING] = {"reading the batch", take_cancel_read, build_cancel_read},
	[CANCEL_SEIZING] = {"seizing it", take_cancel_written, build_cancel_seize},
	[CANCEL_LOOKING_UP] = {"looking up its move", take_cancel_looked_up, build_cancel_look_up},
	[CANCEL_FLAGGING] = {"setting the flag", take_cancel_written, build_flag},
	[CANCEL_RELEASING] = {"ending a lost load", take_released, build_cancel_release},
	[CANCEL_DONE] = {"done"},
};

/* Before it reads, nothing counts of what it has read before; when it asked, only for the lease of what it seizes. */
static void batch_cancel_forget(void *copy)
{
	struct batch_cancel *c = copy;

	if (c->task.at == CANCEL_NEW || c->task.at == CANCEL_READING) {
		c->row = (struct batch_row){0};
		c->stamp = (struct stamp){0};
	}
	if (c->task.at != CANCEL_SEIZING && c->task.at != CANCEL_LOOKING_UP)
		c->asked.ns = 0;
}

static const struct task_shape cancel_shape = SHAPE(struct batch_cancel, batch_cancel_forget,
	PART(SLICE, struct batch_cancel, workspace),
	PART_WITH(INNER, struct batch_cancel, hold, &batch_hold_shape),
	PART_WITH(INNER, struct batch_cancel, row, &batch_row_shape),
	PART_WITH(INNER, struct batch_cancel, stamp, &stamp_noted_shape));

TASK_KIND_STAMPED(cancel_kind, "batch cancel", struct batch_cancel, cancel_states, .shape = &cancel_shape);

void batch_cancel_init(struct batch_cancel *cancel, struct slice workspace, int64_t subject,
		       const struct batch_policy *policy, struct arena *arena)
{
	*cancel = (struct batch_cancel){.workspace = workspace, .subject = subject, .policy = policy, .arena = arena};
	task_init(&cancel->task, &cancel_kind, /* topic= */ 0);
}
