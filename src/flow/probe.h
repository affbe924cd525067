/* What a probe says about an effect whose outcome is unknown: {"outcome": "done" | "not_done" | "unknown", "output"?}. */
#pragma once

#include "base/arena.h"
#include "flow/what_next.h"
#include "model/action.h"
#include "task/task.h"

enum probe_says { PROBE_UNKNOWN, PROBE_DONE, PROBE_NOT_DONE };

/* What is neither done nor not_done is unknown, and so is a probe that failed. *ret_output: of PROBE_DONE, null if it told none. */
enum probe_says probe_read(const struct answer *answer, struct slice *ret_output);
/* The same, as what is heard of the try that it asks about. */
enum heard probe_heard(const struct answer *answer, struct slice *ret_output);

/*
 * For a person who has to decide, and asks first: nothing is decided by it. *ret_output: JSON of PROBE_DONE; words of a probe that has
 * failed; else .p NULL. It lives in the arena.
 */
enum probe_says probe_told(const struct answer *answer, struct arena *arena, struct slice *ret_output);
/* Why nobody can be asked, in words; NULL: it can. probe NULL: the action declares none. */
const char *probe_missing(const struct action *probe);
