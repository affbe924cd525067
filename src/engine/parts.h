/*
 * What an engine is made of, filled in while it starts, in the order of engine.c, and constant from then on. Its services get all of it
 * and take what they need; whoever stands in front of the engine asks for it by engine_parts().
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct engine_parts {
	const struct config *config; /* as at the start; engine_config() is the one in force */
	struct log *log;
	struct clock *clock;
	/* Not to be read, but to be asked whether it is doubted: the clock of PostgreSQL's machine, as this node judges it. */
	const struct clock *store_clock;
	struct engine_metrics *metrics;
	struct definitions *definitions;
	struct keyring *keyring;
	struct port *port;
	struct lanes *lanes;
	struct readers *readers; /* for seats whose task only reads: they see all that was committed before */
	struct entry_locks *entry_locks;
	struct gate_store *
		gate_store; /* records of idempotency keys: in the engine's store, so that a unit of work can carry one */
	struct runs *runs;
	struct functions *functions;
	struct batches *batches;
	struct schedules *schedules;
	/* What the definitions say, for whoever reads, starts or moves one: of the three before, and as long as they are there. */
	const struct run_policy *run_policy;
	const struct batch_policy *batch_policy;
	const struct schedule_policy *schedule_policy;
	struct backlog *backlog;
	struct sentinel *sentinel;
	const _Atomic int64_t
		*fence_floor; /* added to every fence that goes out, taken off from one that comes in (fences.h) */
};
