/*
 * The outside world of a scenario: which calls had an effect, under which keys.
 *
 * A call that is under way when its answer is lost, its node is killed or its lease ends was either done or not:
 * both are tried. With WORLD_KEYED a key that was done already is answered ok and has no second effect. A probe
 * answers truthfully, or not at all. A scenario with an outside of its own (struct sim_outside) decides all of this itself.
 */
#pragma once

#include "sim/sim.h"

/* Are effects counted? Then holders keep to their leases, and what is cut off was done, or not. */
bool world_is_watched(const struct sim *sim);
/* Can this call end this way? */
bool world_allows(const struct sim *sim, const struct act_call *call, enum sim_act how);
/* Lets it end; the answer for the task. */
struct answer world_end(struct sim *sim, const struct act_call *call, enum sim_act how);
/* It is cut off in the middle: done (if it can be), or not. */
void world_cut(struct sim *sim, const struct act_call *call, enum sim_cut done);
/* How many different effects there were: calls, or keys where the other side dedupes. */
unsigned world_effects(const struct sim *sim);
/* A key, as effects are remembered. */
uint64_t world_key(struct slice key);
/* Was there an effect under this key? *ret_at: the how-manieth of all it was. */
bool world_did(const struct sim *sim, uint64_t key, unsigned *ret_at);
/* Was there a second one under the same key? */
bool world_repeated(const struct sim *sim);
