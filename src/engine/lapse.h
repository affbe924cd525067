/*
 * Claims of jobs whose holder has gone silent, ended one by one, many at a time (the janitor finds them): a job_settle of
 * kind JOB_LAPSE for each, which is guarded by the fence that was seen and by its time, so several nodes may do it at once.
 */
#pragma once

#include <stdatomic.h>

#include "base/log.h"
#include "engine/parts.h"
#include "flow/janitor.h"
#include "task/lanes.h"

#define LAPSES_MAX 1000 /* under way; those beyond are found again by a later sweep */

struct lapses {
	const struct engine_parts *parts;
	_Atomic size_t n; /* under way */
};

/* Ends the claim of a job that was seen past its time. */
void lapse_start(struct lapses *lapses, int64_t subject, int64_t fence);
