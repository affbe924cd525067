/* What a probe says about an effect whose outcome is unknown: {"outcome": "done" | "not_done" | "unknown", "output"?}. */
#pragma once

#include "flow/what_next.h"
#include "task/task.h"

enum probe_says { PROBE_UNKNOWN, PROBE_DONE, PROBE_NOT_DONE };

/* What is neither done nor not_done is unknown, and so is a probe that failed. *ret_output: of PROBE_DONE, null if it told none. */
enum probe_says probe_read(const struct answer *answer, struct slice *ret_output);
/* The same, as what is heard of the try that it asks about. */
enum heard probe_heard(const struct answer *answer, struct slice *ret_output);
