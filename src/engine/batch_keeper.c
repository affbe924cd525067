/* See batch_keeper.h. */
#include "engine/batch_keeper.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "task/states.h"

struct batch_keeper {
	struct task task;
	struct seat seat;
	int64_t subject, fence, lease_ms;
	_Atomic bool stopped;
	_Atomic int users; /* the lane and the tenure; the last one frees it */
	struct mono_time until;
};

enum { KEEPER_NEW, KEEPER_SLEEPING, KEEPER_BEATING, KEEPER_OVER };

static void drop(struct batch_keeper *k)
{
	if (atomic_fetch_sub(&k->users, 1) == 1)
		free(k);
}

static void take_beaten(struct batch_keeper *k, const struct answer *answer)
{
	bool lost = k->task.at == KEEPER_BEATING && answer->result->verdict == UNIT_LOST;

	k->until = mono_add_ms(answer->mono, k->lease_ms / 3 + 1);
	if (lost || atomic_load(&k->stopped))
		task_end(&k->task, HX_OK);
	else
		task_go(&k->task, KEEPER_SLEEPING);
}

static void take_woke(struct batch_keeper *k, const struct answer *answer UNUSED)
{
	if (atomic_load(&k->stopped))
		task_end(&k->task, HX_OK);
	else
		task_go(&k->task, KEEPER_BEATING);
}

TASK_UNIT(build_beat, struct batch_keeper, k, subject_heartbeat(unit, k->subject, k->fence, k->lease_ms));

static const TASK_STATES(struct batch_keeper) keeper_states[] = {
	[KEEPER_NEW] = {"new", take_beaten},
	[KEEPER_SLEEPING] = {"sleeping", take_woke, .until = offsetof(struct batch_keeper, until)},
	[KEEPER_BEATING] = {"beating", take_beaten, build_beat},
	[KEEPER_OVER] = {"over"},
};

TASK_KIND(keeper_kind, "batch keeper", struct batch_keeper, keeper_states);

static void over(struct seat *seat, enum hx_code code UNUSED)
{
	drop((struct batch_keeper *)((char *)seat - offsetof(struct batch_keeper, seat)));
}

struct batch_keeper *batch_keeper_start(const struct lanes *lanes, const struct batch_hold *hold)
{
	struct batch_keeper *k = calloc(1, sizeof *k);

	if (!k)
		return NULL;
	k->subject = hold->subject;
	k->fence = hold->fence;
	k->lease_ms = hold->lease_ms;
	k->users = 2;
	k->seat = (struct seat){.task = &k->task, .done = over};
	task_init(&k->task, &keeper_kind, /* topic= */ 0);
	if (lane_submit_own(lanes->pulse ? lanes->pulse : lanes_of(lanes, hold->subject), &k->seat) == HX_OK)
		return k;
	free(k);
	return NULL;
}

void batch_keeper_stop(struct batch_keeper *keeper)
{
	if (!keeper)
		return;
	atomic_store(&keeper->stopped, true);
	drop(keeper);
}
