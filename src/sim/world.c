/* See world.h. */
#include "sim/world.h"

#include "base/hash.h"

static bool is_probe(const struct sim *sim, const struct act_call *call)
{
	return sim->scenario->is_probe && sim->scenario->is_probe(call->action);
}

uint64_t world_key(struct slice key)
{
	return hash_bytes(1, key.p, key.n);
}

/* A probe's own key begins with the one that it asks about (flow/call_key.h). */
static struct slice key_asked_about(struct slice key)
{
	static const char probe[] = "/probe/";
	const char *at = memmem(key.p, key.n, probe, sizeof probe - 1);

	return at ? slice_of(key.p, (size_t)(at - key.p)) : key;
}

static bool was_done(const struct sim *sim, const struct act_call *call)
{
	unsigned at;

	return world_did(sim, world_key(key_asked_about(call->key)), &at);
}

static void apply(struct sim *sim, const struct act_call *call)
{
	if (!world_is_watched(sim) || is_probe(sim, call))
		return;
	if (sim->scenario->world == WORLD_KEYED && was_done(sim, call))
		return;
	ASSERT(sim->state.effects_n < SIM_EFFECTS_MAX);
	sim->state.effects[sim->state.effects_n++] = world_key(call->key);
}

bool world_is_watched(const struct sim *sim)
{
	return sim->scenario->world != WORLD_UNWATCHED || sim->scenario->outside;
}

static bool may_fail(const struct sim *sim)
{
	if (sim->scenario->fails_late)
		return sim->state.left.unsettled < sim->scenario->bounds.unsettled;
	return !sim->scenario->never_fails;
}

bool world_allows(const struct sim *sim, const struct act_call *call, enum sim_act how)
{
	bool lost = how == SIM_ACT_UNKNOWN_DONE || how == SIM_ACT_UNKNOWN_NOT;

	if (lost && !sim->state.left.lost_answers)
		return false;
	if (how == SIM_ACT_UNSETTLED)
		return sim->state.left.unsettled && sim->scenario->world == WORLD_KEYED && !sim->scenario->outside &&
		       !is_probe(sim, call);
	if (how == SIM_ACT_FAILED && !may_fail(sim))
		return false;
	if (sim->scenario->outside)
		return sim->scenario->outside->allows(sim, call, how);
	if (is_probe(sim, call))
		return how == SIM_ACT_OK || how == SIM_ACT_UNKNOWN_NOT;
	if (how == SIM_ACT_UNKNOWN_DONE && !world_is_watched(sim))
		return false; /* nobody could tell the two apart */
	return true;          /* a failure can be a refused connection, whatever was done before */
}

struct answer world_end(struct sim *sim, const struct act_call *call, enum sim_act how)
{
	struct answer answer = {.kind = ANSWER_ACT, .outcome = ACT_OK, .output = slice_str("null")};
	bool lost = how == SIM_ACT_UNKNOWN_DONE || how == SIM_ACT_UNKNOWN_NOT;

	if (sim->scenario->user)
		return sim->scenario->outside->end(sim, call, how);
	sim->state.left.lost_answers -= lost;
	sim->state.left.unsettled -= how == SIM_ACT_UNSETTLED;
	if (sim->scenario->outside)
		return sim->scenario->outside->end(sim, call, how);
	if (how == SIM_ACT_OK && is_probe(sim, call))
		answer.output = slice_str(was_done(sim, call) ? "{\"outcome\":\"done\"}"
							      : "{\"outcome\":\"not_done\"}");
	if (how == SIM_ACT_OK || how == SIM_ACT_UNKNOWN_DONE)
		apply(sim, call);
	if (how == SIM_ACT_FAILED)
		answer.outcome = ACT_FAILED;
	if (how == SIM_ACT_UNSETTLED)
		answer.outcome = ACT_UNSETTLED;
	if (lost)
		answer.outcome = ACT_UNKNOWN;
	return answer;
}

void world_cut(struct sim *sim, const struct act_call *call, enum sim_cut done)
{
	if (sim->scenario->user)
		sim->scenario->user->cut(sim, call, done);
	else if (sim->scenario->outside)
		sim->scenario->outside->cut(sim, call, done);
	else if (done)
		apply(sim, call);
}

unsigned world_effects(const struct sim *sim)
{
	return sim->state.effects_n;
}

bool world_did(const struct sim *sim, uint64_t key, unsigned *ret_at)
{
	for (unsigned i = 0; i < sim->state.effects_n; i++)
		if (sim->state.effects[i] == key) {
			*ret_at = i;
			return true;
		}
	return false;
}

bool world_repeated(const struct sim *sim)
{
	for (unsigned i = 0; i < sim->state.effects_n; i++)
		for (unsigned k = i + 1; k < sim->state.effects_n; k++)
			if (sim->state.effects[i] == sim->state.effects[k])
				return true;
	return false;
}
