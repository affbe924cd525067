/*
 * The dispatcher: claims due jobs of the engine's own (after-effects) and delivers them, a bounded number at a time. See
 * feeder.h for how they are found.
 */
#pragma once

#include "engine/feeder.h"

#define DISPATCHER_JOBS_MAX 2048

extern const struct feed dispatcher_feed;
