/* What every task of the engine makes of an answer: the stamp of its next unit, and what a unit that failed means for the caller. */
#pragma once

#include "flow/subject.h"
#include "task/task.h"

/* Bad data is the caller's own, all else is the store's. */
enum hx_code flow_failure(const struct unit_result *result);
/* The stamp of a unit whose op is the answer's fresh id. */
struct stamp flow_stamp(const struct answer *answer);

/*
 * A task that holds something rests while the store cannot be asked. What it knows is not given up for that, for as long as
 * FLOW_PATIENCE_MS: guards and fences make every later try safe.
 */
#define FLOW_REST_MS 200
#define FLOW_PATIENCE_MS 600000
struct patience {
	struct mono_time gives_up_at; /* ns 0: the store has answered since */
	struct mono_time rests_until; /* `until` of the state that it rests in */
	int rests_from;               /* where it goes on */
};
/* False: it has rested for long enough. */
bool flow_rests(struct patience *patience, struct task *task, const struct answer *answer, int resting);
