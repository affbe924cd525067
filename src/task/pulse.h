/*
 * The pulse: what keeps a lease alive while its action runs, and what the holder may believe about it.
 *
 *   trusted until T = (monotonic time before the claim or the last renewal was sent) + lease − margin
 *
 *   now < next renewal ......... wait
 *   next renewal ≤ now < T ..... a beat is sent; while it is under way, or has failed, the lease is still ours
 *   the beat lost .............. the claim belongs to somebody else: the action is aborted as claim_lost
 *   T ≤ now .................... we do not know any more: the same
 *
 * A call that is to be heard out (task.h) is not aborted in these two cases: there are no more beats, a renewal that still
 * comes through changes nothing, and its answer is passed on as overrun. Only if it has not begun it is taken back.
 *
 * A beat is a task of one unit, so all beats that are due together travel in one group (one statement, in set
 * form). The margin covers the time between a decision and its effect, and clocks that run at different speeds.
 * The wall clock does not appear: it may jump, and safety is the fence's business anyway.
 */
#pragma once

#include "task/task.h"

struct beat {
	struct task task;
	struct lease lease;
	struct mono_time sent; /* before the renewal was asked for */
	void (*renew)(struct unit *unit, int64_t subject, int64_t fence, int64_t lease_ms);
};

/* DONE with HX_OK (renewed), HX_STALE_FENCE (lost) or HX_STORE_UNAVAILABLE (not known: try again). */
void beat_init(struct beat *beat, const struct lease *lease,
	       void (*renew)(struct unit *, int64_t subject, int64_t fence, int64_t lease_ms));

/* There is one: of a subject, given by a claim, for some time. In debug builds (base/error.h). */
void lease_assert_valid(const struct lease *lease);
/* When the holder must stop believing, and when the next renewal is due. */
struct mono_time lease_trusted_until(const struct lease *lease);
/* Before anything is done under a lease: a commit, or finding out about one, may have taken longer than it lasts. */
bool lease_is_trusted(const struct lease *lease, struct mono_time now);
struct mono_time lease_next_beat(const struct lease *lease);
/* After a beat that did not come through: soon again, but never in a busy loop. */
struct mono_time lease_beat_again(const struct lease *lease, struct mono_time now);
