/*
 * A program that lacks a function among those that have it: what needs the function is left to them. It is never called by the
 * one that lacks it (which would call nothing, or something else of that name), and it comes to its end all the same.
 */
#ifndef HX_TESTS_SIM_LEFT_H
#define HX_TESTS_SIM_LEFT_H

#include <string.h>

#include "model/action.h"
#include "sim/sim.h"

/* This program has no function for the action of that name. */
static inline void lack(const struct action *actions, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(actions[i].name, name) == 0)
			((struct action *)&actions[i])->absent = true;
}

static inline void check_left(struct sim *sim)
{
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		const struct action *action;

		if (actor->state != SIM_ASKING || actor->ask != ASK_ACT)
			continue;
		action = sim_call_of(actor).action;
		if (action->absent)
			sim_violate(sim, "%s calls \"%s\", a function that it does not have",
				    sim->scenario->cast[i].name, action->name);
	}
}

#endif
