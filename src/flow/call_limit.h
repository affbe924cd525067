/*
 * Limits of an action (model/limits.h): which slot, and which tick of a rate, a call of it needs. They are counted under the name of the
 * workflow and the action, in one workspace, whoever calls: a step of a run, an after-effect, a step of an entity.
 *
 * The key is by the version of the definition that the call is made by, the numbers are those of the one in force: who raises them lets
 * those go on that wait, and who takes the limit away lets all go.
 */
#pragma once

#include "flow/slot.h"
#include "model/action.h"

struct call_of {
	struct slice workspace, workflow;
	const struct action *action;
	const struct action *in_force; /* NULL: it is in that definition no more, and its own numbers count */
	struct slice input;            /* of the step, or of the transition: JSON, what keys are made of */
};

/* The member `input` of what an action is called with; null: there is none. */
struct slice call_input(struct slice body);

/* Nothing (names 0) where it has no limits. Texts live in the arena. Pure. */
struct bounds call_bounds(const struct call_of *call, struct arena *arena);
