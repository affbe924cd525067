/*
 * The keeper of a tenure: renews the lease of a batch for as long as this node holds it. A call has its own beat (task/pulse.h);
 * but where many batches share an account their units queue for it, and nobody must lose a batch for waiting in that line.
 *
 *   SLEEPING a third of the lease ─▶ (stopped: over) ─▶ BEATING ─┬ renewed, or the store did not say ─▶ SLEEPING …
 *                                                               └ lost: it is another's, over
 *
 * It tells nobody that the lease is trusted: who begins a call still reckons from its own last unit.
 */
#pragma once

#include "flow/batch.h"
#include "task/lanes.h"

struct batch_keeper;

/* NULL: no memory, or the lanes are stopping; the lease is then renewed by calls and starts alone. */
struct batch_keeper *batch_keeper_start(const struct lanes *lanes, const struct batch_hold *hold);
/* From any thread; frees it, now or when it wakes. Takes NULL. */
void batch_keeper_stop(struct batch_keeper *keeper);
