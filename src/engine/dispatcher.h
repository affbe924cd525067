/*
 * The dispatcher: claims due jobs of the engine's own (after-effects) and delivers them, a bounded number at a time. See
 * feeder.h for how they are found.
 */
#pragma once

#include "engine/feeder.h"

#define DISPATCHER_JOBS_MAX 4096 /* of one workspace at most half */

extern const struct feed dispatcher_feed;
