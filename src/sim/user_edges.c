/*
 * Which edges there are in a scenario of a user's definition. See sim.h.
 *
 * What is left out, and why it may be: a unit that is executed and not committed only locks its subjects, and whoever meets the lock
 * waits; what is read late could as well be asked for late; a unit that loses its guard to another is read and tried again, or given
 * up, so who is eager only stands first in the line; a crash of a node that has begun nothing is as if it had not come by; a pause matters where a lease ends over it.
 */
#include "sim/sim_parts.h"

/* Where there are more than can be told apart, the rest is left out, and the walk is not complete. */
static void put_edge(struct sim *sim, struct edge_list *list, struct sim_edge edge)
{
	if (list->n == SIM_EDGES_MAX)
		sim->full = true;
	else
		list->edges[list->n++] = edge;
}
#define PUT_EDGE(sim, list, kind, who, how, mask)                                                                      \
	put_edge(sim, list,                                                                                            \
		 (struct sim_edge){(unsigned char)(kind), (unsigned char)(who), (unsigned char)(how),                  \
				   (unsigned char)(mask)})

/* Returns whether something goes on there that others wait for. */
static bool add_of_actor(struct sim *sim, unsigned i, struct edge_list *list)
{
	const struct sim_user *user = sim->scenario->user;
	const struct sim_actor *actor = &sim->state.actors[i];
	struct unit memory;
	struct ask ask;

	if (actor->state == SIM_DONE && sim->scenario->cast[i].recurring) {
		unsigned n = user->rounds(sim, i);

		for (unsigned k = 0; k < n; k++) {
			PUT_EDGE(sim, list, EDGE_AGAIN, i, k, 0);
			if (sim->state.left.lapses && sim->state.left.mishaps && user->stands_still(sim, i))
				PUT_EDGE(sim, list, EDGE_AGAIN, i, k, /* stalls= */ 1);
		}
		return n && !user->is_bystander(sim, i);
	}
	if (actor->state != SIM_ASKING)
		return false;
	sim_ask(&actor->task.task, &ask, &memory);
	if (ask.kind == ASK_COMMIT)
		PUT_EDGE(sim, list, EDGE_WRITE, i, 0, 0);
	for (unsigned how = 0; how < SIM_ACTS_N && ask.kind == ASK_ACT; how++)
		if (user->allows(sim, &ask.act, how))
			PUT_EDGE(sim, list, EDGE_ACT, i, how, 0);
	return (ask.kind == ASK_COMMIT && !actor->stalls) || ask.kind == ASK_ACT;
}

/* On this node, or on any (SIM_NODES_MAX): has somebody begun something, or a call under way that may be cut off? */
static bool has_begun(const struct sim *sim, unsigned node, bool *ret_acting)
{
	bool begun = false;

	*ret_acting = false;
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];

		if (actor->state != SIM_ASKING || (node != SIM_NODES_MAX && sim->scenario->cast[i].node != node))
			continue;
		begun |= actor->wrote || sim_is_acting(actor);
		*ret_acting |= sim_is_acting(actor);
	}
	return begun;
}

static void add_time(struct sim *sim, bool rests, struct edge_list *list)
{
	bool acting;

	if (rests) {
		if (sim_next_moment(sim) >= 0)
			PUT_EDGE(sim, list, EDGE_TIME, 0, CUT_NOT_DONE, /* paused= */ 0);
		return;
	}
	if (!sim->state.left.lapses || !sim->state.left.mishaps || !has_begun(sim, SIM_NODES_MAX, &acting) ||
	    sim->scenario->user->lease_end(sim) == INT64_MAX)
		return;
	for (unsigned how = 0; how < (acting ? CUTS_N : 1u); how++)
		PUT_EDGE(sim, list, EDGE_TIME, 0, how, /* paused= */ 1);
}

/* Once it is enough: what was answered is done, and that it is told is tried with the others. */
static void add_stalls(struct sim *sim, struct edge_list *list)
{
	if (!sim->state.left.lapses || !sim->state.left.mishaps || sim->scenario->user->lease_end(sim) == INT64_MAX)
		return;
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		struct act_call call;

		if (!sim_is_acting(&sim->state.actors[i]))
			continue;
		call = sim_call_of(&sim->state.actors[i]);
		if (sim->scenario->user->allows(sim, &call, SIM_ACT_OK))
			PUT_EDGE(sim, list, EDGE_ACT, i, SIM_ACT_OK, /* stalls= */ 1);
		if (sim->state.left.mishaps > 1 && sim->scenario->user->allows(sim, &call, SIM_ACT_FAILED))
			PUT_EDGE(sim, list, EDGE_ACT, i, SIM_ACT_FAILED, /* stalls= */ 1);
	}
}

static void add_crashes(struct sim *sim, struct edge_list *list)
{
	if (!sim->state.left.crashes || !sim->state.left.mishaps)
		return;
	for (unsigned node = 0; node < sim->scenario->user->nodes_n; node++) {
		bool acting;

		if (!has_begun(sim, node, &acting))
			continue;
		for (unsigned how = 0; how < (acting ? CUTS_N : 1u); how++)
			PUT_EDGE(sim, list, EDGE_CRASH, node, how, 0);
	}
}

void sim_user_edges(struct sim *sim, struct edge_list *list)
{
	unsigned late_n = sim->scenario->user->late_n(sim);
	bool goes_on = false;

	for (unsigned i = 0; i < sim->scenario->cast_n; i++)
		goes_on |= add_of_actor(sim, i, list);
	for (unsigned which = 0; which < late_n; which++)
		PUT_EDGE(sim, list, EDGE_LAND, 0, which, 0);
	add_time(sim, !goes_on, list);
	add_crashes(sim, list);
	add_stalls(sim, list);
}
