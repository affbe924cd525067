/*
 * Retention: finished runs, batches and jobs go when their time is over: a run or a job in one unit, a batch in as many as its
 * items need, some of them side by side. Looked for every minute, or more often where the time is short. Several nodes may do it at once: of two that
 * see the same one, one wins. See feeder.h for how they are found.
 */
#pragma once

#include "engine/parts.h"
#include "model/config.h"
#include "task/lanes.h"

struct retention;

/* Nothing that the configuration keeps for ever is looked at; and nothing at all while store_clock is not believed. */
enum hx_code retention_start(const struct engine_parts *parts, struct retention **ret_retention,
			     struct hx_error *err) HX_MUST_CHECK;
/* Other times from now on. HX_NO_MEMORY: some of it may go on as before. */
enum hx_code retention_configure(struct retention *retention, const struct config *config) HX_MUST_CHECK;
/* After the lanes have stopped. Takes NULL. */
void retention_free(struct retention *retention);
