/* How long a failed attempt rests before the next: of steps of runs, of items, and of jobs. */
#pragma once

#include "model/run_definition.h"

/*
 * After attempt n (from 1): initial × factor^(n−1), at most max; with jitter between half of that and all of it, chosen by
 * `drawn` (a fresh id). Pure; nothing overflows.
 */
int64_t backoff_ms(const struct run_retry *retry, int64_t attempt, int64_t drawn);
/* The same, where the other side does not want to be asked for so long (0: it said nothing). A wait is never shortened by that. */
int64_t backoff_not_before(int64_t backoff_ms, int64_t not_before_ms);

/*
 * A key that the other side is still at (ACT_UNSETTLED): it is asked again under the same key, and no attempt is used, for at most
 * UNSETTLED_MS_MAX since it has first said so. The rest between two asks is the backoff, or half of the time that it has taken so
 * far, whichever is longer; the last ask is at the end of that time.
 * The moment of the next ask; 0: the time is over, or would be before the other side wants to be asked.
 */
#define UNSETTLED_MS_MAX 600000
int64_t backoff_unsettled(int64_t since_ms, int64_t now_ms, int64_t backoff_ms, int64_t not_before_ms);
