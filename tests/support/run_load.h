/*
 * Runs under way while a chaos test does its worst. Each is a sequence of RUN_LOAD_STEPS calls of a service that knows
 * keys (support/effects.h), and is created with an idempotency key by clients that try again at another node.
 *
 *   creators   create runs evenly over a time; what is answered is acknowledged, and must not be lost
 *   a poller   reads runs by chance, all the while: a version never falls, and COMPLETED is never left
 *
 * And then, when all is calm again, run_load_check():
 *  - every run is COMPLETED, and there is one for each key, the one that was acknowledged;
 *  - each step was done once: one key, (run, step), whose receipt is what the run says came of that step, and the steps
 *    were done in their order;
 *  - no holder made a call twice;
 *  - the history of each is whole (support/audit.h).
 *
 * These fail the running test, so: from its thread.
 */
#ifndef HX_TESTS_SUPPORT_RUN_LOAD_H
#define HX_TESTS_SUPPORT_RUN_LOAD_H

#include "support/effects.h"
#include "support/fleet.h"

#define RUN_LOAD_STEPS 5
#define RUN_LOAD_LEASE_MS 2000

struct run_load;

struct run_load_sum {
	size_t runs, takeovers; /* a node has gone on with what another had in its hands */
	size_t tries;           /* calls that it took to create them */
	size_t polls;
	size_t effects, repeated; /* calls for what was done already */
};

/* Defines the workflow and configures a scene on which nothing is started yet. */
void run_load_define(struct scene *scene, struct effects *effects);
/* The fleet is up; runs_n are created over this time. */
struct run_load *run_load_start(struct fleet *fleet, struct effects *effects, size_t runs_n, int64_t over_ms);
/* Waits until all are created, and then until all are COMPLETED. At least one node must be up. */
void run_load_await(struct run_load *load, int64_t deadline_ms);
void run_load_check(struct run_load *load, struct run_load_sum *ret_sum);
/* Stops whatever still goes on. Takes NULL. */
void run_load_free(struct run_load *load);

#endif
