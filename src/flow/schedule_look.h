/*
 * One look at a schedule that is due: reads it, decides (schedule_plan()), and carries that out as one unit; again, while more is due. (Then
 * alone: mostly one slot is due, and a schedule costs a read and a write for each.)
 *
 *   START ─▶ READING ─┬ gone, or nothing to do: HX_OK
 *               ▲     ├ it cannot be started here: RESTING, its due_at is put off, and its slot stays ─▶ HX_CONFIG_ERROR, HX_TOO_LARGE, …
 *               │     └─▶ (READING_ACCOUNT, of a batch) ─▶ MOVING ─┬ won, and more is due ──────▶ READING
 *               │         (READING_OPEN, of `cancel`)              ├ lost, the guard: another node, or a verb ─▶ READING
 *               └──────────────────────────────────────────────────┼ lost, the key: the slot was started before ─▶ MOVING without it
 *                                                                  └ unknown ───────────────────▶ READING: the revision tells
 */
#pragma once

#include "flow/schedule.h"
#include "task/task.h"

#define SCHEDULE_LOOK_MOVES_MAX 64 /* then others come first; it is found again */

struct schedule_look {
	struct task task;
	int64_t subject;
	const struct schedule_policy *policy;
	struct arena *arena;
	/* For whoever tells: */
	int64_t started, skipped, missed; /* slots, of moves that are known to be won */
	int64_t late_ms;                  /* the longest of those that were started, after it was due */
	const char *trouble;              /* with HX_CONFIG_ERROR, in a few words */
	bool rested;                      /* it cannot start, and is due later */
	size_t cancels_n;                 /* what is to be cancelled, for `cancel` */
	struct {
		int64_t subject;
		bool batch;
	} cancels[SCHEDULE_CANCEL_MAX];
	/* private */
	struct schedule_row row;
	struct schedule_move move;
	struct schedule_start start;
	bool more;  /* after its move the next slot is due already; if not, its row says when it is found again */
	bool there; /* the slot's key has its run: only the move is left */
	bool lost;  /* to another node, or a verb: its due_at may be of one that cannot start it */
	enum hx_code cannot;
	unsigned moves;
	struct stamp stamp;
};

void schedule_look_init(struct schedule_look *look, int64_t subject, const struct schedule_policy *policy,
			struct arena *arena);
