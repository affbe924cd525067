/* A worker of the simulations: what a program outside of the engine does, as a task; and whoever ends the claims of those who died. */
#ifndef HX_TESTS_SIM_WORKER_H
#define HX_TESTS_SIM_WORKER_H

#include "flow/job_work.h"
#include "flow/shapes.h"
#include "sim/sim.h"

/*
 * CLAIMS ─▶ BEATS ─▶ WORKS ─┬ ok, failed ─▶ SETTLES ─▶ ENDED
 *    │        └ stale ─┐    └ unknown ─▶ ENDED: nobody hears of it again
 *    └ none ───────────┴─▶ ENDED
 */
struct worker {
	struct task task;
	enum { CLAIMS, BEATS, WORKS, SETTLES, ENDED } at;
	const struct job_claim_request *rq;
	struct arena *texts;
	int64_t job,
		also; /* what it is going to get, and may have to do with: the simulator has to know what a claim locks */
	int64_t fence, attempt;
	struct slice key;
	enum act_outcome outcome;
	union {
		struct task inner;
		struct job_claim claim;
		struct job_settle settle;
	};
};

static inline void worker_settle(struct worker *w, enum job_settle_kind kind, const struct answer *answer)
{
	struct job_settle_request *rq = arena_zalloc(w->texts, sizeof *rq);

	*rq = (struct job_settle_request){
		.kind = kind,
		.workspace = w->rq->workspace,
		.subject = w->job,
		.fence = w->fence,
		.owner = w->rq->owner,
		.lease_ms = w->rq->lease_ms,
		.output = slice_str(kind == JOB_COMPLETE ? "1" : "no"),
		.retryable = true,
	};
	job_settle_init(&w->settle, rq, w->texts);
	w->inner.kind->take(&w->inner, &(struct answer){.kind = ANSWER_START, .now = answer->now});
	w->at = kind == JOB_HEARTBEAT ? BEATS : SETTLES;
}

static inline void worker_claimed(struct worker *w, const struct answer *answer)
{
	if (w->claim.n == 0) {
		w->at = ENDED;
		return;
	}
	w->job = w->claim.jobs[0].subject;
	w->fence = w->claim.jobs[0].fence;
	w->attempt = w->claim.jobs[0].attempt;
	w->key = w->claim.jobs[0].key;
	worker_settle(w, JOB_HEARTBEAT, answer);
}

static inline void worker_take(struct task *task, const struct answer *answer)
{
	struct worker *w = (struct worker *)task;
	struct unit memory;
	struct ask ask = {.unit = &memory};

	if (w->at == WORKS) {
		w->outcome = answer->outcome;
		if (answer->outcome == ACT_OK || answer->outcome == ACT_FAILED)
			worker_settle(w, answer->outcome == ACT_OK ? JOB_COMPLETE : JOB_FAIL, answer);
		else
			w->at = ENDED;
		return;
	}
	w->inner.kind->take(&w->inner, answer);
	w->inner.kind->ask(&w->inner, &ask);
	if (ask.kind != ASK_DONE)
		return;
	if (w->at == CLAIMS)
		worker_claimed(w, answer);
	else
		w->at = w->at == BEATS && ask.code == HX_OK ? WORKS : ENDED;
}

static inline void worker_ask(const struct task *task, struct ask *ask)
{
	static const struct action work = {.name = "work"};
	const struct worker *w = (const struct worker *)task;

	if (w->at == ENDED) {
		ask->kind = ASK_DONE;
		ask->code = HX_OK;
	} else if (w->at == WORKS) {
		ask->kind = ASK_ACT;
		ask->act = (struct act_call){.action = &work, .key = w->key, .attempt = w->attempt};
	} else {
		w->inner.kind->ask(&w->inner, ask);
		if (w->at == CLAIMS) {
			unit_touch(ask->unit, w->job);
			unit_touch(ask->unit, w->also);
		}
	}
}

static const char *worker_where(const struct task *task)
{
	static const char *const names[] = {"claiming", "sending a heartbeat", "working", "settling", "done"};

	return names[((const struct worker *)task)->at];
}

/* While it works, and when it has ended, nothing is asked of the store. */
static void worker_forget(void *copy)
{
	struct worker *w = copy;

	if (w->at == WORKS || w->at == ENDED)
		w->inner.kind = NULL;
}

/* clang-format off */
static const struct task_shape worker_shape = SHAPE(struct worker, worker_forget,
	PART(MADE, struct worker, job),
	PART(SLICE, struct worker, key),
	PART_LAST(TASK, struct worker, inner));
/* clang-format on */

static const struct task_kind worker_kind = {
	.name = "worker",
	.size = sizeof(struct worker),
	.take = worker_take,
	.ask = worker_ask,
	.where = worker_where,
	.shape = &worker_shape,
};

static inline void worker_init(union sim_task *task, const struct job_claim_request *rq, int64_t job, int64_t also,
			       struct arena *texts)
{
	struct worker *w = (struct worker *)task;

	_Static_assert(sizeof *w <= SIM_TASK_BYTES, "a worker fits");
	memset(w, 0, sizeof *w);
	w->rq = rq;
	w->texts = texts;
	w->job = job;
	w->also = also;
	job_claim_init(&w->claim, w->rq, texts);
	task_init(&w->task, &worker_kind, /* topic= */ 0);
}

/* past: rows of job and fence. */
static inline void lapser_init(union sim_task *task, const struct db_rows *past, struct arena *texts)
{
	struct job_settle_request *rq = arena_zalloc(texts, sizeof *rq);

	*rq = (struct job_settle_request){.kind = JOB_LAPSE, .subject = -1};
	if (past->n) {
		rq->subject = db_cell(past, 0, 0)->i;
		rq->fence = db_cell(past, 0, 1)->i;
	}
	job_settle_init((struct job_settle *)task, rq, texts);
}

#endif
