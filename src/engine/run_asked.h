/*
 * What parents ask of their children: whoever finds a word on a child's row (flow/run_children.h) carries it out, as a caller's
 * verb would be. Several nodes may find the same one: the verb is guarded by the version, and one wins.
 */
#pragma once

#include "engine/feeder.h"
#include "flow/run_verb.h"

struct run_asked {
	const struct run_policy *policy;
	struct feeder feeder;
};

/* Its feeder is closed and released as any other. */
enum hx_code run_asked_start(struct run_asked *asked, struct lanes *lanes, struct clock *clock,
			     const struct run_policy *policy, struct hx_error *err) HX_MUST_CHECK;
