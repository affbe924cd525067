/*
 * A definition of kind `batch`, parsed and checked: many costly items, each of which is one call, cancellable with
 * refund. Immutable from then on and never freed while the program runs; a changed definition is a new object, and a
 * batch keeps the one that it started with.
 *
 *   field                 must   value                            where it is not written
 *   item_action           yes    an action: what an item is
 *   cleanup_action               an action: deletes what a        an item leaves nothing behind
 *                                cancelled item has left behind
 *   done_after_effect            at most 4 actions, with the      none
 *                                final totals
 *   concurrency                  items at a time, 1 to 64         4
 *   cancel_check_every           items per worker slot from one   1
 *                                look for a cancel to the next
 *   retry                        of an item, as in a run          3 attempts, 1s, doubled, at most 5m, jitter
 *   timeout                      of one attempt of an item        that of its action
 *   lease                        how long a silent node keeps     that of the configuration
 *                                the batch
 *   on_unknown                   of an item: retry, probe, hold   retry for keyed and idempotent actions, else hold
 *   on_5xx                       of an item: failed, unknown      failed
 *   attributes                   what batches are searched by,    none
 *                                over .data (attributes.h)
 *
 * `void`, a field that actions have in batches alone, names the action that makes the key of an item useless: whoever
 * has voided a key can give the money back, because a late effect under that key is refused by the other side. It counts
 * for the item_action only; on another one it is a warning.
 *
 * cleanup and void are called again after every takeover, and until they are done: what they do must be as good twice as
 * once, whatever their effect says. So an effect `claimed` there, which is the default of http, is a warning.
 *
 * For the cleanup_action http 404 and 410 count as done (action.h, gone_is_done). So an http one is used for nothing else: a
 * void that is answered 404 has voided nothing.
 *
 * All of these are carried out by the engine itself in this version: neither they nor the after-effects, nor a probe
 * that on_unknown asks, are of kind sql or worker.
 */
#pragma once

#include "model/attempt.h"
#include "model/attributes.h"
#include "model/workflow.h"

#define BATCH_COST_MAX INT64_C(1000000000) /* of one item: a million of them still fit into ACCOUNT_AMOUNT_MAX */
#define BATCH_DATA_BYTES_MAX (16u << 10)   /* it is read with every look at the batch */
#define BATCH_CONCURRENCY_MAX 64
#define BATCH_CONCURRENCY_DEFAULT 4
#define BATCH_CANCEL_CHECK_MAX 1000000 /* the contract names no ceiling; every number has one */

struct batch_definition {
	HEAD_MEMBERS;

	/* Its void_action voids the key of an item; NULL there: a late effect is only seen. */
	const struct action *item_action;
	const struct action *cleanup_action; /* NULL: nothing to clean up; never the item_action */
	size_t after_effects_n;              /* of done_after_effect, none twice */
	const struct action *after_effects[STEP_AFTER_EFFECTS_MAX];
	int64_t concurrency;
	int64_t cancel_check_every;
	int64_t lease_ms; /* 0: that of the configuration */
	/* items */
	struct run_retry retry;
	int64_t timeout_ms;         /* 0: that of the action */
	enum on_unknown on_unknown; /* never UNKNOWN_REVERT; UNKNOWN_PROBE: item_action has a probe */
	bool unknown_on_5xx;

	struct attributes attributes; /* over .data */
};

/*
 * Parses one definition. All findings are added, not the first alone; *ret is NULL when there is an error among
 * them. The definition lives in *arena.
 */
void batch_definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
			    const struct batch_definition **ret);
