/*
 * What the statements of batches share. Nobody else includes this.
 */
#ifndef HX_FLOW_BATCH_PARTS_H
#define HX_FLOW_BATCH_PARTS_H

#include "flow/batch.h"

/* The words of the index hx_batch_item_open: a query that uses it has to say all of them. */
#define ITEM_IS_OPEN "decision IS NULL AND attempt > 0 AND status IN ('PENDING', 'RUNNING')"

/* The item that a start takes: ?1 batch, ?2 fence. NULL: there is none. */
#define ITEM_CHOICE                                                                                                    \
	"coalesce((SELECT n FROM hx_batch_item WHERE batch = ?1 AND " ITEM_IS_OPEN                                     \
	" AND status = 'RUNNING' AND fence < ?2 ORDER BY n LIMIT 1),"                                                  \
	" (SELECT n FROM hx_batch_item WHERE batch = ?1 AND " ITEM_IS_OPEN                                             \
	" AND status = 'PENDING' AND due_at <= hx_now_ms() ORDER BY due_at, n LIMIT 1),"                               \
	" (SELECT next_n FROM hx_batch WHERE subject = ?1 AND next_n < total))"

/* Every unit that writes a row of hx_batch holds both still: money wakes batches that hold only the account. */
static inline void batch_touch(struct unit *unit, int64_t subject, int64_t account)
{
	unit_touch(unit, subject);
	unit_touch(unit, account);
}

/* Line VERDICT: the batch is the writer's, in this status, and the lease begins anew. */
void batch_keep(struct unit *unit, const struct batch_hold *hold, const char *status);

#endif
