/* See shapes.h. */
#include "flow/shapes.h"

#include "flow/batch.h"
#include "flow/batch_lead.h"
#include "flow/batch_tenure.h"
#include "flow/batch_verb.h"
#include "flow/run.h"
#include "flow/run_migrate.h"
#include "flow/run_restart.h"
#include "flow/slot.h"

const struct task_shape stamp_shape = SHAPE(struct stamp, NULL, PART(OP, struct stamp, op));
const struct task_shape stamp_noted_shape = SHAPE(struct stamp, NULL, PART(OP, struct stamp, op),
						  PART(IGNORED, struct stamp, at));

/* ---- runs ---- */

const struct task_shape run_done_shape = SHAPE(
	struct run_done, NULL, PART_WITH(OBJECT, struct run_done, before, &run_done_shape),
	PART(TEXT, struct run_done, status), PART(SLICE, struct run_done, output),
	PART(MADE, struct run_done, made_by), PART(SLICE, struct run_done, made_with));

const struct task_shape run_stood_shape = SHAPE(struct run_stood, NULL, PART(SLICE, struct run_stood, status, error));

const struct task_shape run_row_shape = SHAPE(struct run_row, NULL,
	PART(MADE, struct run_row, subject),
	PART(TEXT, struct run_row, status),
	PART(MADE, struct run_row, parent), PART(MADE, struct run_row, around),
	PART(IGNORED, struct run_row, above), /* it follows from the parent */
	PART(MADE, struct run_row, restart_of, restarted_by),
	PART(SLICE, struct run_row, parent_step, scope, asked, limit_key, line_action),
	PART(SLICE, struct run_row, owner, workspace, requester, key, trace, input, output, error),
	PART(SLICE, struct run_row, awaits, step_status, attributes, renamed),
	PART_WITH(OBJECT, struct run_row, done, &run_done_shape),
	PART_WITH(INNER, struct run_row, stood, &run_stood_shape),
	PART(IGNORED, struct run_row, updated_at, until), /* for people; whether its time is over says `past` */
	PART(MADE, struct run_row, job),
	PART(TEXT, struct run_row, job_status),
	PART(SLICE, struct run_row, job_output, job_error));

const struct task_shape run_restart_shape = SHAPE(struct run_restart, NULL,
	PART(MADE, struct run_restart, subject),
	PART(SLICE, struct run_restart, requester, traceparent, input, positions, parents));

const struct task_shape run_migration_shape = SHAPE(struct run_migration, NULL,
	PART(SLICE, struct run_migration, renames, requester),
	PART(SLICE, struct run_migration, runs, positions, names, renamed, reason, attributes),
	PART(TEXT, struct run_migration, misfit));

const struct task_shape rate_shape = SHAPE(struct rate, NULL, PART(SLICE, struct rate, key, action));
const struct task_shape slot_shape = SHAPE(struct slot, NULL, PART(SLICE, struct slot, key, action));

const struct task_shape bounds_shape = SHAPE(struct bounds, NULL,
	PART_WITH(INNER, struct bounds, slot, &slot_shape),
	PART_WITH(INNER, struct bounds, rate, &rate_shape));

/* ---- batches ---- */

const struct task_shape batch_hold_shape = SHAPE(struct batch_hold, NULL,
	PART(SLICE, struct batch_hold, workspace, requester, trace, data, ledger_prefix));

/* Backoffs are spread by fresh ids. The other times are for people, and for retention. */
const struct task_shape batch_row_shape = SHAPE(struct batch_row, NULL,
	PART(TEXT, struct batch_row, status),
	PART(FRESH, struct batch_row, retry_at, due_at),
	PART(IGNORED, struct batch_row, created_at, started_at, completed_at),
	PART(IGNORED, struct batch_row, now), /* compared with the others when it is read, and never later */
	PART(SLICE, struct batch_row, workspace, workflow, requester, trace, key, account_name, owner, error),
	PART(SLICE, struct batch_row, data, attributes));

const struct task_shape batch_call_item_shape = SHAPE(struct batch_call_item, NULL,
	PART(SLICE, struct batch_call_item, input, output, about));

const struct task_shape batch_item_row_shape = SHAPE(struct batch_item_row, NULL,
	PART(TEXT, struct batch_item_row, status),
	PART(SLICE, struct batch_item_row, decision, input, output, late, error));

const struct task_shape batch_seen_shape = SHAPE(struct batch_seen, NULL, PART(SLICE, struct batch_seen, why));

const struct task_shape batch_tenure_shape = SHAPE(struct batch_tenure, NULL,
	PART_WITH(INNER, struct batch_tenure, hold, &batch_hold_shape),
	PART_WITH(INNER, struct batch_tenure, seen, &batch_seen_shape));
