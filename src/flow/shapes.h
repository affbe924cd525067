/* What counts of the structs that several tasks have in them (task/shape.h). */
#pragma once

#include <stdint.h>

#include "task/shape.h"

/* noted: its time goes into histories and rows for people, and nothing is decided by it. */
extern const struct task_shape stamp_shape, stamp_noted_shape;
/* A rest before the next try is spread by a fresh id: it counts in steps of ten seconds. */
static inline int64_t shape_rest(int64_t rest_ms)
{
	return (rest_ms + 9999) / 10000;
}

extern const struct task_shape run_row_shape;
extern const struct task_shape run_restart_shape;
extern const struct task_shape run_migration_shape;
extern const struct task_shape run_stood_shape;
extern const struct task_shape run_done_shape;
extern const struct task_shape slot_shape;
extern const struct task_shape rate_shape;
extern const struct task_shape bounds_shape;
extern const struct task_shape batch_hold_shape;
extern const struct task_shape batch_row_shape;
extern const struct task_shape batch_call_item_shape;
extern const struct task_shape batch_item_row_shape;
extern const struct task_shape batch_seen_shape;
extern const struct task_shape batch_tenure_shape;
