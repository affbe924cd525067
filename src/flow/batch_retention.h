/*
 * Retention of batches: what was finished long enough ago is stripped, slice by slice.
 *
 *   START ─▶ READING its account ─▶ DELETING a slice ─┬ some are left ─▶ DELETING the next
 *                                                     ├ none is left ──▶ DONE, gone
 *                                                     └ lost, failed ──▶ DONE
 *
 *   batch      stays, with its key, counts and sums: expired = 1 from the first slice on, 2 when its items are gone
 *   subject    stays, with the head of the history: the last word on rows that are gone
 *   ledger     stays: money is not forgotten
 *   items, history   go
 *
 * It counts as expired before its first item goes: nobody sees a batch of which some are missing. One whose node was lost in
 * the middle is found again and goes on. What somebody decides about an item at the same moment: both units hold the batch and
 * its account still, so one of them comes first, and the item is there for it or is not.
 */
#pragma once

#include "flow/batch.h"
#include "task/task.h"

/* Row: subject, the longest finished first. */
void batch_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit);
/* One slice. LOST: it is gone, or not finished so long ago. Line 2 has a row when nothing is left. */
void batch_expire(struct unit *unit, int64_t subject, int64_t account, int64_t age_ms);

struct batch_expiry {
	struct task task;
	int64_t subject, age_ms;
	bool gone; /* by us */
	/* private */
	int64_t account;
	int64_t op;
};

void batch_expiry_init(struct batch_expiry *expiry, int64_t subject, int64_t age_ms);
