/*
 * Waiting for a run or a batch to end: read, sleep until it ends, look again.
 *
 *   START ─▶ READING ─┬ there is none, it has expired ───────────▶ DONE with the code
 *                     ├ ended, too late, nobody listens any more ▶ DONE, with the thing as it is
 *                     └ not yet ─▶ SLEEPING ─┬ woken: it has ended ─────────────▶ READING
 *                                            └ END_WAIT_LOOK_MS, the deadline ─▶ LOOKING ─┬ not yet ─▶ SLEEPING
 *                                                                                         └ else ────▶ READING
 *   START of what was created just now, and has only begun ─▶ SLEEPING, and of what somebody else may have ended since ─▶ LOOKING
 *   `over`, set by whoever ended it and has shown it, in the same thread ─▶ DONE, with the next answer
 *
 * The unit that ends it wakes it, once durable; a wake between the look and the sleep is kept. Other nodes wake only
 * as a hint, hence the look now and then, which is also when it is noticed that nobody listens any more. Clients of the
 * API wait so (api/api_wait.h), and threads of an embedding program (engine/embed_runs.c).
 */
#pragma once

#include "flow/subject.h"
#include "task/task.h"

#define END_WAIT_LOOK_MS 1000
#define END_WAIT_NAME "end wait" /* by which the simulator knows who sleeps (I6) */

struct end_wait;

/* What is waited for, and by whom. */
struct end_wait_kind {
	void (*read)(const struct end_wait *wait, struct unit *unit);
	/* What was read, while the rows are there; sets `over`. A code ends the waiting. */
	enum hx_code (*show)(struct end_wait *wait, const struct unit_result *result);
	/* What was shown was not the end: it is not kept over the sleep. */
	void (*forget)(struct end_wait *wait);
	/* NULL: always. */
	bool (*is_awaited)(const struct end_wait *wait);
};

struct end_wait {
	struct task task;
	const struct end_wait_kind *kind;
	int64_t subject;
	int64_t wait_ms; /* 0: it is read once */
	/* By its status alone; NULL: only a read can tell. */
	bool (*has_ended)(struct slice status);
	bool begun;  /* it was created just now: nothing is to be found out by reading it */
	bool is_new; /* it was created just now, and hardly is at its end */
	bool over;   /* its end has come, and is shown: by what was read, or by whoever ended it */
	/* private */
	struct mono_time deadline, look_at;
};

/* `topic` is woken by its end. What is not named here is zero, and may be set before the start. */
void end_wait_init(struct end_wait *w, const struct end_wait_kind *kind, int64_t subject, int64_t topic,
		   int64_t wait_ms);
