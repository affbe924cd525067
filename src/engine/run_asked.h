/*
 * What parents ask of their children: whoever finds a word on a child's row (flow/run_children.h) carries it out, as a caller's
 * verb would be. Several nodes may find the same one: the verb is guarded by the version, and one wins.
 */
#pragma once

#include "engine/feeder.h"

extern const struct feed run_asked_feed;
