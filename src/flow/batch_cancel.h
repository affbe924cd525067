/*
 * The cancel of a batch, as a caller asks for it.
 *
 *   START ─▶ READING ─┬ PENDING, QUEUED ─▶ SEIZING into CANCELLING ─▶ HX_OK, seized: the caller's node tears it down
 *      ▲              ├ RUNNING, OUT_OF_CREDIT ─▶ FLAGGING ─▶ HX_OK, accepted: its holder, or whoever seizes it, does
 *      │              ├ flagged, CANCELLING ─▶ HX_OK, accepted: nothing is to be done again
 *      │              ├ CANCELLED ─▶ HX_OK, was_over
 *      │              ├ COMPLETED, FAILED ─▶ HX_ALREADY_COMPLETED
 *      │              ├ LOADING, its loader lost ─▶ RELEASING ─▶ read again
 *      │              ├ LOADING ─▶ HX_WRONG_STATUS · no such batch: HX_NOT_FOUND
 *      │              └ another version than it must be ─▶ HX_CONCURRENCY_ERROR
 *      └─ lost, or the answer was lost: read again (a seize whose answer was lost is looked up by its op first)
 */
#pragma once

#include "flow/batch.h"
#include "task/task.h"

struct batch_cancel {
	struct task task;
	struct slice workspace;
	int64_t subject;
	const struct batch_policy *policy;
	struct arena *arena;
	/* After its init, where they are wanted. */
	int64_t version;           /* what it must be, also in the unit that cancels it; 0: any */
	struct batch_along *along; /* in that unit; NULL: nothing */
	bool leaves; /* nobody here tears down what is seized: it is let go at once, for whoever finds it */
	/* With HX_OK: one of these. */
	bool seized, accepted, was_over;
	bool changed;           /* by this one, now */
	struct batch_hold hold; /* seized */
	struct batch_row row;   /* as it was read last */
	/* private */
	unsigned losses;
	bool in_doubt; /* a unit of it may have landed */
	struct stamp stamp;
	struct mono_time asked;
};

/* HX_CONFIG_ERROR: this node does not know the definition (yet). */
void batch_cancel_init(struct batch_cancel *cancel, struct slice workspace, int64_t subject,
		       const struct batch_policy *policy, struct arena *arena);
