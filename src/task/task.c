#include "task/states.h"

#include <string.h>

const char *act_outcome_name(enum act_outcome outcome)
{
	static const char *const names[] = {"ok",      "failed",    "failed for good", "invalid",
					    "unknown", "unsettled", "claim lost"};

	return names[outcome];
}

bool task_asks_anew(struct task *task, int unknown, const struct answer *answer)
{
	if (!unknown || answer->result->verdict != UNIT_UNKNOWN)
		return false;
	task_go(task, unknown);
	return true;
}

void task_pass(struct task *task, int then)
{
	ASSERT(then > 0); /* a task that is done takes no answer */
	task_go(task, then);
}

void task_ask_unit(const struct task *task, struct ask *ask)
{
	int64_t op = 0;

	if (task->kind->op)
		memcpy(&op, (const char *)task + task->kind->op, sizeof op);
	ask->kind = ASK_COMMIT;
	unit_init(ask->unit, op);
}

void task_ask_rest(const struct task *task, size_t until, size_t latest, struct ask *ask)
{
	if (until) {
		ask->kind = ASK_SLEEP;
		memcpy(&ask->until, (const char *)task + until, sizeof ask->until);
		ask->latest = (struct mono_time){0};
		if (latest)
			memcpy(&ask->latest, (const char *)task + latest, sizeof ask->latest);
		return;
	}
	ASSERT(task_is_done(task)); /* one that is new is not asked before its START */
	ask->kind = ASK_DONE;
	ask->code = task->code;
}
