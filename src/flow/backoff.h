/* How long a failed attempt rests before the next: of steps of runs, and of the jobs of workers. */
#ifndef HX_FLOW_BACKOFF_H
#define HX_FLOW_BACKOFF_H

#include "model/run_definition.h"

/*
 * Behind attempt n (from 1): initial × factor^(n−1), at most max; with jitter between half of that and all of it, chosen by
 * `drawn` (a fresh id). Pure; nothing overflows.
 */
int64_t backoff_ms(const struct run_retry *retry, int64_t attempt, int64_t drawn);

#endif
