/*
 * The schedules of this node: finds those that are due, and has a look at each (flow/schedule_look.h). Several nodes may look at one: the
 * move is guarded, and one wins.
 *
 *   feeder (due schedules, woken by SCHEDULE_TOPIC, by time, at the latest every second) ─ ids ─▶ a schedule_look for each
 *       └ what `cancel` wants cancelled ─▶ the verb of a run, or of a batch: asked again with each look, until it has ended
 */
#pragma once

#include "engine/parts.h"
#include "flow/schedule.h"

struct schedules;

enum hx_code schedules_start(const struct engine_parts *parts, struct schedules **ret_schedules,
			     struct hx_error *err) HX_MUST_CHECK;
/* From now on no slot is left by this node. Takes NULL. */
void schedules_close(struct schedules *schedules);
/* After the lanes have stopped. Takes NULL. */
void schedules_free(struct schedules *schedules);
/* Puts the schedules of this folder (model/schedule_file.h), in the workspace `default`; NULL: there is none. What is unchanged does nothing. */
void schedules_apply(struct schedules *schedules, const char *dir);
const struct schedule_policy *schedules_policy(const struct schedules *schedules);
