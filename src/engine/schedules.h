/*
 * The schedules of this node: finds those that are due, and has a look at each (flow/schedule_look.h). Several nodes may look at one: the
 * move is guarded, and one wins.
 *
 *   feeder (due schedules, woken by SCHEDULE_TOPIC, by time, at the latest every second) ─ ids ─▶ a schedule_look for each
 *       └ what `cancel` wants cancelled ─▶ the verb of a run, or of a batch: asked again with each look, until it has ended
 */
#pragma once

#include "engine/feeder.h"
#include "flow/schedule.h"

struct schedules;

extern const struct feed schedules_feed;
/* Puts the schedules of this folder (model/schedule_file.h), in the workspace `default`; NULL: there is none. What is unchanged does nothing. */
void schedules_apply(struct schedules *schedules, const char *dir);
