/* For the files of the simulator alone. */
#pragma once

#include "sim/sim.h"

#define SIM_START_MS 1800000000000

static inline void sim_ask(const struct task *task, struct ask *ask, struct unit *memory)
{
	*ask = (struct ask){.unit = memory};
	task->kind->ask(task, ask);
}

static inline bool sim_is_acting(const struct sim_actor *actor)
{
	return actor->state == SIM_ASKING && actor->ask == ASK_ACT;
}

/* Does a recurring actor have anything to do in its next round? */
static inline bool sim_may_start(struct sim *sim, unsigned i)
{
	const struct sim_cast *cast = &sim->scenario->cast[i];

	return !cast->may_start || cast->may_start(sim);
}

struct edge_list {
	struct sim_edge *edges;
	size_t n;
};

static inline void add_edge(struct edge_list *list, enum sim_edge_kind kind, unsigned who, unsigned how, unsigned mask)
{
	ASSERT(list->n < SIM_EDGES_MAX);
	list->edges[list->n++] = (struct sim_edge){(unsigned char)kind, (unsigned char)who, (unsigned char)how,
						   (unsigned char)mask};
}

/* user_edges.c: those of a scenario of a user's definition. */
void sim_user_edges(struct sim *sim, struct edge_list *list);

/* Rows that were read for the edge before are gone. */
static inline void sim_begin(struct sim *sim)
{
	arena_reset(&sim->arena);
	reads_let_go(&sim->reads);
}
