#include "task/task.h"

const char *act_outcome_name(enum act_outcome outcome)
{
	static const char *const names[] = {"ok",      "failed",    "failed for good", "invalid",
					    "unknown", "unsettled", "claim lost"};

	return names[outcome];
}
