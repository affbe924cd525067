/*
 * What the statements of batches share. Nobody else includes this.
 */
#pragma once

#include "flow/batch.h"

/* The words of the index hx_batch_item_open: a query that uses it has to say all of them. */
#define ITEM_IS_OPEN "decision IS NULL AND attempt > 0 AND status IN ('PENDING', 'RUNNING')"

/* The words of the index hx_batch_item_paid, and that nothing was returned since: at rest in doubt, it needs no money. */
#define ITEM_IS_PAID "decision IS NULL AND status = 'PENDING' AND doubt = 1 AND charged = cost"

/*
 * The item that a start takes: ?1 batch, ?2 fence. NULL: there is none. Of those at rest the ones that are paid for come first:
 * they must not wait for money that another needs. min(n + 0), because for the least n itself a store may walk over all items.
 */
#define ITEM_CHOICE                                                                                                    \
	"coalesce((SELECT min(n + 0) FROM hx_batch_item WHERE batch = ?1 AND " ITEM_IS_OPEN                            \
	" AND status = 'RUNNING' AND fence < ?2)," ITEM_AT_REST(ITEM_IS_PAID) "," ITEM_AT_REST(                        \
		ITEM_IS_OPEN                                                                                           \
		" AND status = 'PENDING'") ","                                                                         \
					   " (SELECT next_n FROM hx_batch WHERE subject = ?1 AND next_n < total))"
/* The function is volatile on PostgreSQL: bare, it would be a filter over all that rest. */
#define ITEM_AT_REST(which)                                                                                            \
	" (SELECT n FROM hx_batch_item WHERE batch = ?1 AND " which                                                    \
	" AND due_at <= (SELECT hx_now_ms()) ORDER BY due_at, n LIMIT 1)"

/* Every unit that writes a row of hx_batch holds both still: money wakes batches that hold only the account. */
static inline void batch_touch(struct unit *unit, int64_t subject, int64_t account)
{
	unit_touch(unit, subject);
	unit_touch(unit, account);
}

/* Line VERDICT: the batch is the writer's, in this status, and the lease begins anew. */
void batch_keep(struct unit *unit, const struct batch_hold *hold, const char *status);
