/* See lapse.h. */
#include "engine/lapse.h"

#include <stdlib.h>

#include "base/id.h"
#include "engine/engine.h"
#include "flow/job_work.h"

#define LAPSE_BYTES_MAX (1u << 20)

struct lapse {
	struct seat seat;
	struct lapses *all;
	struct job_settle_request rq;
	struct job_settle settle;
	struct arena arena;
};

static void lapse_free(struct lapse *lapse)
{
	struct lapses *all = lapse->all;

	arena_release(&lapse->arena);
	free(lapse);
	atomic_fetch_sub(&all->n, 1);
}

/* Whatever else it is than HX_OK: its holder is back, another node was first, or a later sweep finds it again. */
static void settled(struct seat *seat, enum hx_code code)
{
	struct lapse *lapse = (struct lapse *)seat;

	if (code == HX_OK) {
		atomic_fetch_add(&lapse->all->parts->metrics->janitor_reverts, 1);
		log_warn(lapse->all->parts->log, "a stuck claim was ended: its holder's time was over",
			 log_text("id", id_text("job", lapse->rq.subject).text), log_int("fence", lapse->rq.fence),
			 log_text("status", lapse->settle.status));
	}
	lapse_free(lapse);
}

void lapse_start(struct lapses *lapses, int64_t subject, int64_t fence)
{
	struct lapse *lapse = atomic_load(&lapses->n) < LAPSES_MAX ? calloc(1, sizeof *lapse) : NULL;

	if (!lapse)
		return; /* a later sweep finds it again */
	lapse->all = lapses;
	lapse->rq = (struct job_settle_request){.kind = JOB_LAPSE, .subject = subject, .fence = fence};
	arena_init(&lapse->arena, LAPSE_BYTES_MAX);
	job_settle_init(&lapse->settle, &lapse->rq, &lapse->arena);
	lapse->seat = (struct seat){.task = &lapse->settle.task, .done = settled};
	atomic_fetch_add(&lapses->n, 1);
	if (lane_submit_own(lanes_of(lapses->parts->lanes, subject), &lapse->seat))
		lapse_free(lapse);
}
