/*
 * Loading: a new batch with its items, or more items for a held one that is PENDING.
 *
 *   START ─▶ READING ─┬ no such account, no such batch: HX_NOT_FOUND
 *      ▲              ├ the key has a batch: HX_OK, and nothing is created
 *      │              ├ LOADING: HX_IN_FLIGHT (HX_CLAIM_FAILED for more items), or past its time ─▶ CLEARING ─▶ READING
 *      │              └ else ─▶ LOADING, slice by slice ─┬ lost: the first: READING again; later ones: HX_STALE_FENCE
 *      │                            ▲    │               ├ unknown: the first or the last ─▶ LOOKING_UP its op; else: once more
 *      │                            └────┘ won           └ won, the last: HX_OK
 *      └────── not landed, of the first ──── LOOKING_UP ─── landed: as won; not, of the last: once more
 *
 * Each slice is one unit. The first one also creates the batch (or takes it), the last one also says how many items there are,
 * which is when they begin to exist, and lets the batch go. So a small batch is one unit, and a large one that is cut off
 * anywhere has never been: whoever finds it past its time makes it FAILED and frees its key, or leaves it with the items that
 * it had before.
 */
#pragma once

#include "base/json_walk.h"
#include "flow/batch_verb.h"

#define BATCH_SLICE_BYTES (4u << 20) /* of inputs in one unit, beyond the first of them */

/* Immutable while the task lives; texts are the caller's. */
struct batch_load_request {
	struct slice workspace;
	struct json items; /* an array of {"cost", "input"?}, checked: cost in digits, 0 to BATCH_COST_MAX */
	int64_t items_n;
	const struct batch_machine *machine; /* of a new one; NULL: more items for `subject` */
	int64_t subject;
	/* of a new one */
	struct slice account;          /* its name */
	struct slice requester, trace; /* trace empty: none */
	struct slice key;              /* .p NULL: none */
	struct slice data, attributes; /* the same; attributes: batch_describe() */
	bool held;                     /* PENDING after it; else QUEUED */
	struct mono_time until;        /* no slice is begun after it; .ns 0: any time will do */
	const struct batch_policy *policy;
	struct batch_along *along; /* in the last unit; NULL: nothing */
};

struct batch_load {
	struct task task;
	const struct batch_load_request *rq;
	struct arena *arena; /* takes about twice the bytes of the items */
	/* With HX_OK: as it is after it, or as it was found. */
	struct batch_row row;
	bool changed;       /* it was created, or got its items, now */
	const char *detail; /* of a refusal; NULL: the code says it all */
	/* private */
	struct batch_row was; /* CLEARING, and more items: as it was found */
	struct batch_hold hold;
	struct json_iter rest; /* items after this slice */
	struct slice rows;     /* this slice, as batch_load_slice() takes it; .p NULL: no item in it */
	int64_t from, to;      /* its items */
	int64_t total;         /* when all of them are there */
	int64_t created_at;
	bool first; /* the batch is not ours yet */
	unsigned losses;
	struct stamp stamp;
};

void batch_load_init(struct batch_load *load, const struct batch_load_request *rq, struct arena *arena);
