/*
 * The sweep: removes records that have expired, so that a store does not grow for ever. Nothing depends on it: an expired
 * record is absent for whoever meets it.
 *
 * Every so often it asks the store for one slice of SWEEP_BUDGET records, and for another as long as a slice was full.
 * Each slice takes a turn that only one node has at a time, and that lasts SWEEP_TURN_MS, so sweeping never takes more
 * of the store than a slice in that time. A store that keeps the time itself (Redis) has nothing to do.
 *
 * The same thread counts what is held for a person, where somebody wants to know (held.h).
 */
#pragma once

#include "gate/held.h"
#include "gate/store.h"

#define SWEEP_BUDGET 1000
#define SWEEP_TURN_MS 50

struct gate_sweeper;

/* Starts its thread; the first slice is due after every_ms (0: never). `held` may be NULL, if there is something to sweep.
 * The store and it outlive the sweeper. */
enum hx_code gate_sweeper_new(struct gate_store *store, int64_t every_ms, struct gate_held *held,
			      struct gate_sweeper **ret_sweeper, struct hx_error *err) HX_MUST_CHECK;
/* Ends the thread, waiting for a slice that is being removed: where the store is lanes, stop these before. Takes NULL. */
void gate_sweeper_free(struct gate_sweeper *sweeper);
