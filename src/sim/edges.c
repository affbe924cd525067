/* Which edges there are: what can happen next in a world. See sim.h. */
#include "sim/invariant.h"
#include "sim/sim_parts.h"
#include "sim/world.h"

/* Where effects are counted it matters whether a call that is cut off was done: both are tried then. */
static unsigned cuts(const struct sim *sim)
{
	return world_is_watched(sim) ? 2 : 1;
}

/* ---- locks ---- */

static bool writes_same(const struct sim *sim, const struct unit *a, const struct unit *b)
{
	const struct sim_rows *rows = sim->scenario->rows;

	return unit_touches_same(a, b) || (rows && rows->locked && rows->locked(a) & rows->locked(b));
}

static bool group_locks(const struct sim *sim, const struct sim_group *group, const struct unit *unit)
{
	if (group->phase == GROUP_BUILT)
		return false;
	for (unsigned i = 0; i < SIM_ACTORS_MAX; i++) {
		struct unit memory;
		struct ask ask;

		if (!(group->actors & 1u << i))
			continue;
		sim_ask(&group->asked[i].task, &ask, &memory);
		if (writes_same(sim, &memory, unit))
			return true;
	}
	return false;
}

static bool locked(const struct sim *sim, const struct unit *unit)
{
	for (unsigned node = 0; node < sim->scenario->nodes_n; node++)
		if (group_locks(sim, &sim->state.open[node], unit))
			return true;
	return group_locks(sim, &sim->state.doubt, unit);
}

/* ---- which edges there are ---- */

/* Edges of one actor. Returns true when its unit may join a group of its node. */
static bool add_actor_edges(struct sim *sim, unsigned i, struct edge_list *list)
{
	const struct sim_actor *actor = &sim->state.actors[i];
	struct unit memory;
	struct ask ask;

	if (actor->state == SIM_DONE && sim->scenario->cast[i].recurring && sim_may_start(sim, i))
		add_edge(list, EDGE_AGAIN, i, 0, 0);
	if (actor->state != SIM_ASKING)
		return false;
	sim_ask(&actor->task.task, &ask, &memory);
	if (ask.kind == ASK_COMMIT && !locked(sim, &memory)) {
		if (!reads_only(&memory))
			return true;
		add_edge(list, EDGE_READ, i, 0, 0);
	} else if (ask.kind == ASK_ACT) {
		bool beats = ask.act.lease.fence && !actor->overrun;
		struct unit beat;

		for (unsigned how = SIM_ACT_OK; how <= SIM_ACT_UNSETTLED; how++)
			if (world_allows(sim, &ask.act, how))
				add_edge(list, EDGE_ACT, i, how, 0);
		unit_init(&beat, 0);
		unit_touch(&beat, ask.act.lease.subject);
		for (unsigned how = 0; how < cuts(sim) && beats && !locked(sim, &beat); how++)
			add_edge(list, EDGE_BEAT, i, how, 0);
	}
	return false;
}

static void add_node_edges(struct sim *sim, unsigned node, unsigned candidates, struct edge_list *list)
{
	const struct sim_bounds *left = &sim->state.left;

	if (sim->state.open[node].phase == GROUP_BUILT) {
		for (unsigned mask = candidates; mask; mask = (mask - 1) & candidates)
			add_edge(list, EDGE_EXECUTE, node, 0, mask);
		return;
	}
	add_edge(list, EDGE_COMMIT, node, COMMIT_DURABLE, 0);
	if (left->failures)
		add_edge(list, EDGE_COMMIT, node, COMMIT_FAILED, 0);
	if (left->lost_answers) {
		add_edge(list, EDGE_COMMIT, node, COMMIT_LANDED, 0);
		add_edge(list, EDGE_COMMIT, node, COMMIT_VANISHED, 0);
		if (sim->state.doubt.phase == GROUP_BUILT)
			add_edge(list, EDGE_COMMIT, node, COMMIT_OPEN, 0);
	}
	if (left->crashes)
		add_edge(list, EDGE_COMMIT, node, COMMIT_THEN_CRASH, 0);
}

int64_t sim_next_moment(struct sim *sim)
{
	int64_t next = INT64_MAX, now = sim->state.now.ms;

	for (unsigned i = 1; i <= sim->scenario->subjects_n; i++) {
		struct sim_row row;

		if (sim_read_row(sim, i, &row) && row.claimed && row.until > now && row.until < next)
			next = row.until;
	}
	for (unsigned i = 0; i < sim->scenario->cast_n; i++) {
		const struct sim_actor *actor = &sim->state.actors[i];
		int64_t wakes_ms;
		struct unit memory;
		struct ask ask;

		if (actor->state != SIM_ASKING || actor->ask != ASK_SLEEP)
			continue;
		sim_ask(&actor->task.task, &ask, &memory);
		wakes_ms = ask.until.ns == INT64_MAX ? INT64_MAX : ask.until.ns / 1000000;
		if (wakes_ms > now && wakes_ms < next)
			next = wakes_ms;
	}
	if (sim->scenario->rows) {
		int64_t moment = sim->scenario->rows->next_moment(sim);

		next = moment < next ? moment : next;
	}
	return next == INT64_MAX ? -1 : next;
}

size_t sim_edges(struct sim *sim, struct sim_edge edges[SIM_EDGES_MAX])
{
	struct edge_list list = {edges, 0};
	unsigned candidates[SIM_NODES_MAX] = {0};

	sim_begin(sim);
	if (sim->scenario->user) {
		sim_user_edges(sim, &list);
		return list.n;
	}
	for (unsigned i = 0; i < sim->scenario->cast_n; i++)
		if (add_actor_edges(sim, i, &list))
			candidates[sim->scenario->cast[i].node] |= 1u << i;
	for (unsigned node = 0; node < sim->scenario->nodes_n; node++)
		add_node_edges(sim, node, candidates[node], &list);
	if (sim->state.doubt.phase != GROUP_BUILT) {
		add_edge(&list, EDGE_RESOLVE, 0, /* lands= */ 1, 0);
		add_edge(&list, EDGE_RESOLVE, 0, /* lands= */ 0, 0);
	}
	for (unsigned how = 0; how < cuts(sim); how++) {
		if (sim->state.left.lapses && sim_next_moment(sim) >= 0)
			add_edge(&list, EDGE_TIME, 0, how, 0);
		for (unsigned node = 0; sim->state.left.crashes && node < sim->scenario->nodes_n; node++)
			add_edge(&list, EDGE_CRASH, node, how, 0);
	}
	return list.n;
}

bool sim_edge_is_progress(struct sim_edge edge)
{
	return edge.kind != EDGE_BEAT && edge.kind != EDGE_AGAIN && edge.kind != EDGE_TIME && edge.kind != EDGE_CRASH &&
	       edge.kind != EDGE_LAND;
}

bool sim_edge_writes(const struct sim *sim, struct sim_edge edge)
{
	bool lands = edge.how == COMMIT_DURABLE || edge.how == COMMIT_THEN_CRASH || edge.how == COMMIT_LANDED;

	return sim->scenario->user || edge.kind == EDGE_BEAT || (edge.kind == EDGE_COMMIT && lands) ||
	       (edge.kind == EDGE_RESOLVE && edge.how);
}
