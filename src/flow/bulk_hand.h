/*
 * A hand of a bulk: carries out the verb for a few items, one after the other. So many hands work on one bulk at once, each on the items
 * whose number leaves its own when it is divided by theirs.
 *
 *   START ─▶ READING: the bulk, and the first open items of this hand ─▶ for each: DOING ─┬ written, with its result ─▶ the next
 *              (none, or it is cancelled: DONE)                                            └ nothing to write ─▶ RECORDING ─▶ the next
 *
 * DOING is the verb itself (flow/run_verb.h), with two things along: the condition is asked of what was read (HX_NO_LONGER_MATCHES),
 * and the result of the item goes into the unit of the verb, which is lost if the item has one. What may pass (the store, a
 * definition that this node does not know yet, a run that others change all the time) ends the hand: the item stays open.
 *
 * Of anything but a run it is LOOKING first, whether it matches, and then the verb is guarded by the version that was seen: of a batch
 * (flow/batch_cancel.h, flow/batch_verb.h) and of an entity (flow/entity_step.h) as DOING, of a job as REDRIVING:
 *
 *   LOOKING ─┬ it cannot be, or does not match ─▶ RECORDING     DOING, REDRIVING ─┬ won ─▶ the next
 *      ▲     └ else ─▶ DOING, REDRIVING                                           ├ it has changed since ─▶ LOOKING
 *      └──────────────────────────────────────────────────────────────────────────┘ refused ─▶ RECORDING
 */
#pragma once

#include "flow/batch_cancel.h"
#include "flow/batch_verb.h"
#include "flow/bulk.h"
#include "flow/entity_step.h"
#include "flow/run_verb.h"
#include "model/where.h"

#define BULK_HANDS 8

struct bulk_item {
	int64_t n, subject;
};

/* What a node knows besides. */
struct bulk_policy {
	const struct run_policy *runs;
	const struct batch_policy *batches;
	/* What is in force of this name; NULL: nothing, or it is of another kind. */
	const struct entity_machine *(*entity_of)(const void *context, struct slice workflow);
	step_workflow_fn workflow_of;
	const void *context;
};

struct bulk_hand {
	struct task task;
	int64_t bulk, hand, hands;
	int64_t after; /* the number of the last item that was looked at; -1: none */
	const struct bulk_policy *policy;
	struct arena *arena;
	bool more;     /* at its end: there are items after this page, for another hand like this */
	int64_t ended; /* items that have their result now, by this hand */
	/* private */
	struct bulk_row row;
	const struct where *where;
	struct bulk_item items[BULK_PAGE];
	size_t items_n, at;
	struct arena_mark mark; /* what an item needs is forgotten with it */
	union {
		struct task task;
		struct run_verb run;
		struct batch_cancel cancel;
		struct batch_verb batch;
		struct entity_step entity;
	} verb; /* DOING */
	struct item_along *along;
	int64_t version; /* as it was seen */
	struct stamp stamp;
	unsigned losses;
	const char *result; /* of an item that is recorded alone */
	struct slice code;
};

void bulk_hand_init(struct bulk_hand *h, int64_t bulk, int64_t hand, int64_t hands, int64_t after,
		    const struct bulk_policy *policy, struct arena *arena);

/*
 * Reads the arguments of the verb into the request of an item, as a run's is (name, done, data and reason are those of an entity's, too);
 * false: they do not fit, and *ret_words says how. Texts are the row's.
 */
bool bulk_request(const struct bulk_spec *spec, struct arena *arena, struct run_verb_request *rq,
		  const char **ret_words);
