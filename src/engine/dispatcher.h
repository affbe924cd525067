/*
 * The dispatcher: claims due jobs of the engine's own (after-effects) and delivers them, a bounded number at a time. See
 * feeder.h for how they are found.
 */
#pragma once

#include "base/log.h"
#include "engine/definitions.h"
#include "engine/feeder.h"
#include "engine/parts.h"
#include "flow/job.h"

#define DISPATCHER_JOBS_MAX 2048

struct dispatcher {
	const struct engine_parts *parts;
	struct job_policy policy;
	struct feeder feeder;
};

/* Its feeder is closed and released as any other. */
enum hx_code dispatcher_start(struct dispatcher *d, const struct engine_parts *parts) HX_MUST_CHECK;
