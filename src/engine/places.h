/*
 * Places that workspaces share, of which who has taken one waits for nothing: what is to come waits in the store, where it can be
 * passed over (flow/due_watch.h). None takes another place unless more are free than it has: one alone, however much it has to do, has
 * half of them, two have three quarters, and there is one left for whoever comes next.
 *
 * The same rule as in task/shares.h and act/port_turns.c, which have lines of their own besides. Pure; not thread-safe.
 */
#pragma once

#include "base/id_set.h"

struct places {
	size_t max;
	size_t taken;
	struct id_set held; /* who has any, and how many */
};

/* HX_NO_MEMORY. */
enum hx_code places_init(struct places *places, size_t max) HX_MUST_CHECK;
/* Safe on a zeroed struct. */
void places_release(struct places *places);
/* May it take one? tenant: not 0. */
bool places_may_take(const struct places *places, uint64_t tenant);
/* False: it may not. */
bool places_take(struct places *places, uint64_t tenant);
/* One that it has taken. */
void places_give_back(struct places *places, uint64_t tenant);
/* Those who have some and may take no more, at most `max` of them; returns how many. */
size_t places_full(const struct places *places, uint64_t full[], size_t max);
