/*
 * The batches of this node: seizes those that are due, runs their turns (flow/batch_tenure.h), lets them go.
 *
 *   feeder ─ due ──────┐
 *   janitor ─ past ────┼─▶ tenure: lead ─▶ up to `concurrency` hands ─▶ lead ─▶ … ─▶ over
 *   a caller's cancel ─┘   (one object per tenure; its turns point to it, and it goes when the last of them has ended)
 *
 * A tenure that a hand of an earlier one outlives is another object: nobody ever looks for a tenure by its batch.
 *
 * All turns of a batch run in the lane of its account, but the first lead, which does not know the account yet and runs in that
 * of the batch. Every unit of a batch holds its account still: on PostgreSQL those of other lanes would wait for it with all
 * that travels in the same transaction, so that one busy account would hold up a whole node.
 *
 * Limits: BATCHES_MAX tenures at once, and as many again for batches that a caller cancels, since money waits for those. A
 * turn has an arena of its own, which is gone when it ends. So memory is bounded by the turns under way, whatever the items.
 * Known limit: while a hand hears its call out, although the lease is lost, this node does not take the batch over again;
 * others do.
 */
#pragma once

#include "base/log.h"
#include "engine/definitions.h"
#include "engine/feeder.h"
#include "flow/batch_tenure.h"
#include "task/lanes.h"

struct engine_metrics;
struct batches;

#define BATCHES_MAX 128 /* of one workspace at most half */

extern const struct feed batches_feed;
/*
 * Before the lanes are stopped: no item is begun any more, and each batch is let go as soon as its calls have ended, so that others
 * need not wait out its lease. Returns when all of them are, or after wait_ms.
 */
void batches_drain(struct batches *batches, int64_t wait_ms);
/*
 * From any thread: one whose holder's time is over. Nothing happens when it is under way here; without room a later sweep
 * finds it.
 */
void batches_take(struct batches *batches, int64_t subject);
/*
 * From any thread: a batch that a cancel has just seized is torn down. done (may be NULL) is called in a lane's thread, when the
 * tenure is over, however it ended: look at the batch to know. False: there is no room, or no memory, and done is not called; the claim
 * lapses, and whoever finds it goes on. Texts of the hold are copied.
 */
bool batches_tear_down(struct batches *batches, const struct batch_hold *hold, void (*done)(void *context),
		       void *context);
