/*
 * For tests of lanes and stores, which want a task that writes and nothing more: a plain transition, one guarded
 * write by status and version, and the truth about it.
 *
 *   START ─▶ READING (only when no version was given) ─▶ MOVING ─┬─ won ────▶ HX_OK
 *                 └─ no row: HX_NOT_FOUND                        ├─ lost ───▶ HX_CONCURRENCY_ERROR
 *                 └─ other status: HX_WRONG_STATUS               ├─ failed ─▶ the store's error
 *                                                                └─ unknown ▶ LOOKING_UP the op ─▶ either
 *
 * HX_OK is said only when the write is durable; HX_OUTCOME_UNKNOWN only when the store could not be asked.
 */
#ifndef HX_TESTS_SUPPORT_TRANSITION_H
#define HX_TESTS_SUPPORT_TRANSITION_H

#include "flow/subject.h"
#include "task/task.h"

struct transition {
	struct task task;
	struct move move;
	int64_t version; /* what it must be; 0: whatever it is when read. After HX_OK: the one reached */
	/* private */
	struct stamp stamp;
	enum hx_code code;
	enum { TRANSITION_NEW, TRANSITION_READING, TRANSITION_MOVING, TRANSITION_LOOKING_UP, TRANSITION_DONE } at;
};

void transition_init(struct transition *t, const struct move *move, int64_t version);

#endif
