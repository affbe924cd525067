/*
 * Walking through a scenario's worlds: all of them within its bounds, or many at random.
 *
 * Exhaustive: depth first, taking back by savepoint, merging states by hash. When an invariant breaks, the walk is
 * repeated with a growing limit on its length, so the schedule that is printed is a shortest one; as long as that is not
 * much more work than finding it was. With HAPAX_SIM_ANY in the environment the first one is told as it was found: enough for
 * who only wants to know that there is one (tests/mutants).
 * Random: a seed decides every choice. When an invariant breaks, here or where a shortest is too much work, steps are left
 * out as long as it still breaks.
 */
#pragma once

#include "sim/sim.h"

#define EXPLORE_DEPTH_MAX 400

struct explore_report {
	uint64_t states;       /* distinct */
	uint64_t edges;        /* taken, each with all checks */
	uint64_t crash_points; /* edges among them at which a node was killed */
	uint64_t quiet;        /* states in which nothing could go on but time */
	double schedules;      /* different ways from the start to an end, counting none twice through a loop */
	unsigned longest;
};

/*
 * True: every invariant held in every state within the bounds. False: *words tells a short schedule that
 * breaks one. More than states_max states is an error of the scenario and is told as such, false.
 */
bool explore_all(const struct sim_scenario *scenario, uint64_t states_max, struct explore_report *ret_report,
		 struct strbuf *words);
/* The same for who tells it himself: how far the walk may go, and who wants to hear of it meanwhile. */
struct explore_limits {
	uint64_t states_max, edges_max;
	uint64_t seed; /* 0: edges are taken in their own order; otherwise in one that it decides */
	void (*progress)(void *context, const struct explore_report *so_far); /* now and then; NULL: nobody */
	bool (*is_over)(
		void *context); /* asked now and then: true gives it up, as at the last edge; NULL: nobody does */
	void *context;
};
enum explore_verdict {
	EXPLORE_HELD,    /* in every state */
	EXPLORE_BROKEN,  /* *ret_found is a short schedule that breaks an invariant */
	EXPLORE_BOUNDED, /* nothing was found within the limits */
};
struct explore_found {
	unsigned n;
	struct sim_edge path[EXPLORE_DEPTH_MAX];
	char violation[512];
	bool shortest; /* there is none with fewer steps */
};
/* *report: what was there before is added to. */
enum explore_verdict explore_within(const struct sim_scenario *scenario, const struct explore_limits *limits,
				    struct explore_report *report, struct explore_found *ret_found);
/* Goes along it once more, and asks whoever tells it before and after each step. */
struct explore_listener {
	void (*before)(struct explore_listener *listener, struct sim *sim, struct sim_edge edge);
	void (*after)(struct explore_listener *listener, struct sim *sim, struct sim_edge edge);
};
void explore_follow(const struct sim_scenario *scenario, const struct explore_found *found,
		    struct explore_listener *listener);
/*
 * `runs` walks of at most `steps` edges. trace (may be NULL) gets every step in words. False: *words tells the
 * seed, the run and a schedule from which no step can be left out.
 */
bool explore_random(const struct sim_scenario *scenario, uint64_t seed, unsigned runs, unsigned steps,
		    struct explore_report *ret_report, struct strbuf *trace, struct strbuf *words);
