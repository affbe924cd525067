/*
 * From every state in which nothing goes on but time, it has to be possible to come to an end: a task, carried there; and all that is due,
 * until nothing is.
 */
#pragma once

#include <stdlib.h>

#include "base/arena.h"
#include "sim/sim.h"
#include "sim/world.h"

/* Carries a task to its end in a world where all goes well. `committed`: what looks at the rows after each unit; NULL: nobody. */
static inline void go_well(struct sim *sim, struct task *task, int64_t *id, int rounds_max,
			   void (*committed)(struct sim *sim))
{
	struct answer answer = {.kind = ANSWER_START};
	struct unit unit;
	struct unit_result result;

	for (int n = 0; n < rounds_max; n++) {
		struct ask ask = {.unit = &unit};

		answer.now = sim->state.now;
		answer.mono.ns = sim->state.now.ms * 1000000;
		answer.id = ++*id;
		for (int i = 0; i < ANSWER_IDS_MAX; i++)
			answer.more_ids[i] = ++*id;
		answer.node = "well";
		(void)task_take(task, task->turn, &answer); /* it is the turn */
		task->kind->ask(task, &ask);
		if (ask.kind == ASK_DONE)
			return;
		if (ask.kind == ASK_COMMIT) {
			arena_reset(&sim->arena); /* it is meant for one edge, and this is many */
			result = sim_run_unit(sim, &unit);
			answer = (struct answer){.kind = ANSWER_COMMIT, .result = &result};
			answer.sent.ns = sim->state.now.ms * 1000000;
			if (committed)
				committed(sim);
		} else if (ask.kind == ASK_ACT) {
			answer = world_end(sim, &ask.act, SIM_ACT_OK);
			answer.lease_since = ask.act.lease.since;
		} else {
			sim_set_now(sim, ((struct wall_time){ask.until.ns / 1000000}));
			answer = (struct answer){.kind = ANSWER_WOKE};
		}
	}
	sim_violate(sim, "a task does not end although all goes well");
}

/* What becomes of a world in which from here on all goes well. */
struct well {
	bool (*next)(struct sim *sim, int64_t *id); /* carries out what there is to do; false: there is nothing now */
	void (*settled)(struct sim *sim);           /* looks at what has come of it all */
	int rounds_max;
	const char *never; /* it is still not at rest: what is said of that */
};

/* Lets time pass until nothing is due any more. */
static inline void settle_well(struct sim *sim, const struct well *well)
{
	int64_t id = INT64_C(1) << 40, moment;

	for (int n = 0; n < well->rounds_max && !sim->violation[0]; n++) {
		if (well->next(sim, &id))
			continue;
		moment = sim->scenario->rows->next_moment(sim);
		if (moment == INT64_MAX)
			return;
		sim_set_now(sim, (struct wall_time){moment});
	}
	sim_violate(sim, "%s", well->never);
}

/* Looks at that, and takes it back. */
static inline void try_well(struct sim *sim, const struct well *well)
{
	struct sim_state *saved = malloc(sizeof *saved);

	ASSERT(saved);
	sim_save(sim, saved);
	sim_savepoint(sim);
	settle_well(sim, well);
	well->settled(sim);
	sim_roll_back(sim);
	sim_restore(sim, saved);
	free(saved);
}
