/*
 * A hand of a bulk: carries out the verb for a few items, one after the other. So many hands work on one bulk at once, each on the items
 * whose number leaves its own when it is divided by theirs.
 *
 *   START ─▶ READING: the bulk, and the first open items of this hand ─▶ for each: DOING ─┬ written, with its result ─▶ the next
 *              (none, or it is cancelled: DONE)                                            └ nothing to write ─▶ RECORDING ─▶ the next
 *
 * Of a job it is LOOKING, at the job and whether it matches, and REDRIVING, guarded by the version that was seen:
 *
 *   LOOKING ─┬ it cannot be, or does not match ─▶ RECORDING        REDRIVING ─┬ won ─▶ the next
 *      ▲     └ it is parked ─▶ REDRIVING                                      ├ it has changed since ─▶ LOOKING
 *      └──────────────────────────────────────────────────────────────────────┘ it is a step of a run ─▶ RECORDING
 *
 * DOING is the verb itself (flow/run_verb.h), with two things along: the condition is asked of what was read (HX_NO_LONGER_MATCHES),
 * and the result of the item goes into the unit of the verb, which is lost if the item has one. What may pass (the store, a
 * definition that this node does not know yet, a run that others change all the time) ends the hand: the item stays open.
 */
#pragma once

#include "flow/bulk.h"
#include "flow/run_verb.h"
#include "model/where.h"

#define BULK_HANDS 8

struct bulk_item {
	int64_t n, subject;
};

struct bulk_hand {
	struct task task;
	int64_t bulk, hand, hands;
	int64_t after; /* the number of the last item that was looked at; -1: none */
	const struct run_policy *policy;
	struct arena *arena;
	bool more;     /* at its end: there are items after this page, for another hand like this */
	int64_t ended; /* items that have their result now, by this hand */
	/* private */
	struct bulk_row row;
	const struct where *where;
	struct bulk_item items[BULK_PAGE];
	size_t items_n, at;
	struct arena_mark mark; /* what an item needs is forgotten with it */
	struct run_verb verb;
	int64_t version; /* of a job, as it was seen */
	unsigned losses;
	const char *result; /* of an item that is recorded alone */
	struct slice code;
};

void bulk_hand_init(struct bulk_hand *h, int64_t bulk, int64_t hand, int64_t hands, int64_t after,
		    const struct run_policy *policy, struct arena *arena);

/* Reads the arguments of the verb into the request of an item, which is a run's; false: they do not fit, and *ret_words says how. Texts are the row's. */
bool bulk_request(const struct bulk_spec *spec, struct arena *arena, struct run_verb_request *rq,
		  const char **ret_words);
