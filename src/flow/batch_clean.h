/*
 * A slice of the cleanup of a batch that is being torn down: deletes what its cancelled items have left behind.
 *
 *   START ─▶ READING (renews the lease) ─▶ ACTING on the first ─▶ … ─▶ ACTING on the last ─▶ DONE
 *
 * All cancelled items of [from, to) that were ever begun are cleaned up, whoever may have done so before: after each takeover
 * the whole is scanned again, because nobody knows how far the last holder came. A call that fails does not keep the others
 * from being made, but the batch from its end. The key of a call has the tenure's fence in it: a service that dedupes would
 * answer a later pass from its memory.
 */
#pragma once

#include "flow/batch_item.h"
#include "task/task.h"

#define CLEAN_SLICE 16 /* items */

struct batch_clean {
	struct task task;
	struct batch_hold hold;
	struct arena *arena;
	int64_t from;          /* items [from, from + CLEAN_SLICE) */
	bool failed;           /* not everything is gone */
	struct slice why;      /* of the last that failed; .p NULL: the store, or the lease */
	int64_t not_before_ms; /* the longest time for which one of those that failed does not want to be asked */
	/* private */
	size_t items_n, next;
	struct batch_call_item items[CLEAN_SLICE];
	struct slice key, body;
};

/* The definition has a cleanup_action. */
void batch_clean_init(struct batch_clean *clean, const struct batch_hold *hold, int64_t from, struct arena *arena);
