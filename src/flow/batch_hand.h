/*
 * A hand: one item of a batch that this node holds, from its start to its end. Whoever runs hands begins the next one as long
 * as this says so (batch_tenure.h): what a hand keeps in memory is one item.
 *
 *   START ─▶ STARTING ─┬ won ──▶ (in doubt: on_unknown) ─▶ ACTING ─▶ ENDING ─┬ won, or failed for too long ─▶ DONE
 *               ▲      │            │ probe ─▶ PROBING ─┤                    ├ lost, and done ─▶ SETTLING ─┬ won ─▶ DONE
 *               │      │            └ hold ────────────▶ ENDING as UNKNOWN   └ unknown, failed ─▶ RESTING ─▶ ENDING again
 *               │      │                                                                                └ lost ─▶ RECORDING a late success ─▶ lost ─▶ DOUBTING: it rests, given back; the next asks first
 *               │      ├ lost ─────▶ DONE, HAND_NO_MORE: nothing can be begun
 *               │      ├ refused ──▶ DONE, HAND_SHORT: too little credit
 *               │      └ unknown ──▶ LOOKING_UP ─▶ as won, or STARTING again
 *               └──────────┘
 *
 *   ACTING ─┬ ok ────────────────────────▶ SUCCEEDED
 *           ├ failed, attempts left ─────▶ PENDING after its backoff, returned (in doubt: not)
 *           ├ failed, none left; for good, invalid ─▶ FAILED, returned (in doubt: UNKNOWN, not)
 *           ├ unsettled ─────────────────▶ PENDING in doubt, no attempt used; after ten minutes UNKNOWN (probe: PROBING)
 *           └ unknown ───────────────────▶ on_unknown: retry  PENDING in doubt, none left: UNKNOWN
 *                                                      probe  PROBING ─▶ done: SUCCEEDED · not done: as failed, without doubt
 *                                                      hold   UNKNOWN
 *
 * The call is heard out, even when the lease is lost meanwhile: an end is guarded by the item, so what is known is recorded
 * as long as nobody has begun it anew, and a success of an item that was cancelled is kept as late.
 * An end that was sent and not answered is sent again: it has landed if it loses then, or the item is another's.
 */
#pragma once

#include "flow/answer.h"
#include "flow/batch_item.h"
#include "task/task.h"

enum hand_came_to {
	HAND_GO_ON,   /* there may be another */
	HAND_NO_MORE, /* nothing can be begun now */
	HAND_SHORT,   /* too little credit for the next one */
	HAND_FAILED,  /* the store, or the lease: this node had better let go */
};

enum batch_hand_at {
	HAND_NEW,
	HAND_STARTING,
	HAND_LOOKING_UP,
	HAND_ACTING,
	HAND_PROBING,
	HAND_ENDING,
	HAND_SETTLING,
	HAND_RECORDING,
	HAND_DOUBTING,
	HAND_RESTING,
	HAND_DONE,
};

struct batch_hand {
	struct task task;
	struct batch_hold hold; /* since: moves on with every renewal */
	struct arena *arena;
	/* For whoever runs it: */
	enum hand_came_to came_to;
	bool late;    /* a success came after its item was cancelled */
	bool unknown; /* an item was left for a person */
	/* private */
	int64_t n, attempt, failures, unsettled_since;
	bool doubt, doubted, overrun; /* doubted: it was in doubt once, whatever a probe said then */
	struct slice input, key, body;
	struct item_end end;
	int64_t job_id;
	struct slice job_key, payload;
	struct patience patience;
	struct stamp stamp;
	struct mono_time asked;
};

void batch_hand_init(struct batch_hand *hand, const struct batch_hold *hold, struct arena *arena);
