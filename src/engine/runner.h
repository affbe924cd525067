/*
 * Running one unit and waiting for it: directly on a connection while the engine starts, through a lane afterwards
 * (only the lane's connection writes). Not for lane threads and event loops, which must not wait.
 */
#pragma once

#include "db/driver.h"
#include "task/lanes.h"

struct runner {
	/* Rows are in the arena. The verdict is in *ret_result when the code is HX_OK. */
	enum hx_code (*run)(struct runner *runner, struct unit *unit, struct unit_result *ret_result,
			    struct arena *arena, struct hx_error *err);
	bool postgres; /* the store's kind, for the few texts that differ */
};

struct direct_runner {
	struct runner runner;
	struct db *db;
};

struct lane_runner {
	struct runner runner;
	struct lane *lane;
};

void direct_runner_init(struct direct_runner *runner, struct db *db);
void lane_runner_init(struct lane_runner *runner, struct lane *lane, bool postgres);
