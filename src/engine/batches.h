/*
 * The batches of this node: seizes those that are due, runs their turns (flow/batch_tenure.h), lets them go.
 *
 *   feeder ─ due ──────┐
 *   janitor ─ past ────┼─▶ tenure: lead ─▶ up to `concurrency` hands ─▶ lead ─▶ … ─▶ over
 *   a caller's cancel ─┘   (one object per tenure; its turns point to it, and it goes when the last of them has ended)
 *
 * All turns of a batch run in the lane of its account: PostgreSQL takes one unit of a subject per transaction, so elsewhere they
 * would only wait for each other.
 * Limits: BATCHES_MAX tenures at once; a turn has an arena of its own, which is gone when it ends.
 */
#ifndef HX_ENGINE_BATCHES_H
#define HX_ENGINE_BATCHES_H

#include "base/log.h"
#include "engine/definitions.h"
#include "flow/batch_tenure.h"
#include "task/lanes.h"

struct engine_metrics;
struct batches;

#define BATCHES_MAX 64

struct batches_options {
	struct lanes *lanes;
	struct definitions *definitions;
	int64_t lease_ms; /* of definitions without one */
	struct clock *clock;
	struct log *log;
	struct engine_metrics *metrics;
};

enum hx_code batches_start(const struct batches_options *options, struct batches **ret) HX_MUST_CHECK;
/* After the lanes have stopped. Takes NULL. */
void batches_free(struct batches *batches);
const struct batch_policy *batches_policy(const struct batches *batches);
/* From any thread: one whose holder's time is over, or that is due. Nothing happens when it is under way here. */
void batches_take(struct batches *batches, int64_t subject);
/*
 * From any thread: a batch that a cancel has just seized is torn down. done is called in a lane's thread, when the tenure is
 * over, however it ended: look at the batch to know. False: there is no room, and done is not called; the claim lapses, and
 * whoever finds it goes on.
 */
bool batches_tear_down(struct batches *batches, const struct batch_hold *hold, void (*done)(void *context),
		       void *context);

#endif
