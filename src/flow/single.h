/*
 * A task of a single unit: reads, lists, simple writes. Whoever starts it says how the unit is built and what to
 * do with its answer while the rows are there.
 */
#pragma once

#include "flow/subject.h"
#include "task/task.h"

struct single {
	struct task task;
	/* Adds the lines. A function of `context` and of what stands in *single; called again if need be. */
	void (*build)(const struct single *single, struct unit *unit);
	/* Any verdict but FAILED and UNKNOWN, which end as HX_STORE_UNAVAILABLE (or HX_DATA_ERROR) and HX_OUTCOME_UNKNOWN. */
	enum hx_code (*answered)(struct single *single, const struct unit_result *result);
	void *context;
	struct stamp stamp;
	int64_t fresh_id; /* for a row that it makes */
};

void single_init(struct single *single, void *context, void (*build)(const struct single *, struct unit *),
		 enum hx_code (*answered)(struct single *, const struct unit_result *));
