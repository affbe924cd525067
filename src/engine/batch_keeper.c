/* See batch_keeper.h. */
#include "engine/batch_keeper.h"

#include <stdatomic.h>
#include <stdlib.h>

struct batch_keeper {
	struct seat seat;
	struct task task;
	int64_t subject, fence, lease_ms;
	_Atomic bool stopped;
	_Atomic int users; /* the lane and the tenure; the last one frees it */
	enum { KEEPER_NEW, KEEPER_SLEEPING, KEEPER_BEATING, KEEPER_OVER } at;
	struct mono_time until;
};

static struct batch_keeper *keeper_of(const struct task *task)
{
	return (struct batch_keeper *)((char *)task - offsetof(struct batch_keeper, task));
}

static void drop(struct batch_keeper *k)
{
	if (atomic_fetch_sub(&k->users, 1) == 1)
		free(k);
}

static void take(struct task *task, const struct answer *answer)
{
	struct batch_keeper *k = keeper_of(task);
	bool lost = k->at == KEEPER_BEATING && answer->result->verdict == UNIT_LOST;

	if (lost || atomic_load(&k->stopped)) {
		k->at = KEEPER_OVER;
	} else if (k->at == KEEPER_SLEEPING) {
		k->at = KEEPER_BEATING;
	} else {
		k->until = mono_add_ms(answer->mono, k->lease_ms / 3 + 1);
		k->at = KEEPER_SLEEPING;
	}
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct batch_keeper *k = keeper_of(task);

	switch (k->at) {
	case KEEPER_BEATING:
		ask->kind = ASK_COMMIT;
		unit_init(ask->unit, /* op= */ 0);
		subject_heartbeat(ask->unit, k->subject, k->fence, k->lease_ms);
		break;
	case KEEPER_SLEEPING:
		ask->kind = ASK_SLEEP;
		ask->until = k->until;
		break;
	default:
		ask->kind = ASK_DONE;
		ask->code = HX_OK;
	}
}

/* It is never in the simulator: where and fingerprint are not asked for. */
static const struct task_kind kind = {.name = "batch keeper", .size = sizeof(struct task), .take = take, .ask = ask};

static void over(struct seat *seat, enum hx_code code)
{
	(void)code;
	drop((struct batch_keeper *)seat);
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
	task_init(&k->task, &kind, /* topic= */ 0);
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
