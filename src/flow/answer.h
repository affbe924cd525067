/* What every task of the engine makes of an answer: the stamp of its next unit, and what a unit that failed means for the caller. */
#pragma once

#include "flow/subject.h"
#include "task/task.h"

/* Bad data is the caller's own, all else is the store's. */
enum hx_code flow_failure(const struct unit_result *result);
/* The stamp of a unit whose op is the answer's fresh id. */
struct stamp flow_stamp(const struct answer *answer);
