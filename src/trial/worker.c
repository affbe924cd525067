/*
 * A worker: a program outside of the engine that asks for a job, carries it out and says how it went, as a task.
 *
 *   CLAIMS ─▶ WORKS ─┬ done, failed ─▶ SETTLES ─▶ ENDED
 *      │             └ lost ─▶ ENDED: nobody hears of it again, and its time passes
 *      └ none ─▶ ENDED
 */
#include "flow/shapes.h"
#include "trial/parts.h"

enum { CLAIMS, WORKS, SETTLES, ENDED };

struct worker {
	struct task task;
	int stage;
	struct trial *trial;
	struct arena *texts;
	int64_t job, fence, attempt;
	struct slice key;
	const struct action *action; /* that the job is of */
	union {
		struct task inner;
		struct job_claim claim;
		struct job_settle settle;
	};
};

_Static_assert(sizeof(struct worker) <= SIM_TASK_BYTES, "a worker fits");

static void begin_to_settle(struct worker *w, const struct answer *answer)
{
	struct job_settle_request *rq = arena_zalloc(w->texts, sizeof *rq);

	ASSERT(rq);
	*rq = (struct job_settle_request){
		.kind = answer->outcome == ACT_OK ? JOB_COMPLETE : JOB_FAIL,
		.workspace = slice_str("default"),
		.subject = w->job,
		.fence = w->fence,
		.owner = w->trial->claim.owner,
		.output = answer->output,
		.retryable = answer->outcome == ACT_FAILED,
	};
	job_settle_init(&w->settle, rq, w->texts);
	w->inner.kind->take(&w->inner, &(struct answer){.kind = ANSWER_START, .now = answer->now});
	w->stage = SETTLES;
}

static void claimed(struct worker *w)
{
	const struct trial_caller *caller;
	int64_t subject;

	if (w->claim.n == 0) {
		w->stage = ENDED;
		return;
	}
	w->job = w->claim.jobs[0].subject;
	w->fence = w->claim.jobs[0].fence;
	w->attempt = w->claim.jobs[0].attempt;
	w->key = w->claim.jobs[0].key;
	caller = trial_caller_of(w->trial, &(struct act_call){.key = w->key}, &subject);
	w->action = caller && caller->service ? caller->service->action : NULL;
	w->stage = w->action ? WORKS : ENDED;
}

static void worker_take(struct task *task, const struct answer *answer)
{
	struct worker *w = (struct worker *)task;
	struct unit memory;
	struct ask ask = {.unit = &memory};

	if (w->stage == WORKS) {
		if (answer->outcome == ACT_UNKNOWN || answer->outcome == ACT_CLAIM_LOST)
			w->stage = ENDED;
		else
			begin_to_settle(w, answer);
		return;
	}
	w->inner.kind->take(&w->inner, answer);
	w->inner.kind->ask(&w->inner, &ask);
	if (ask.kind != ASK_DONE)
		return;
	if (w->stage == CLAIMS)
		claimed(w);
	else
		w->stage = ENDED;
}

static void worker_ask(const struct task *task, struct ask *ask)
{
	const struct worker *w = (const struct worker *)task;

	if (w->stage == ENDED) {
		ask->kind = ASK_DONE;
		ask->code = HX_OK;
	} else if (w->stage == WORKS) {
		ask->kind = ASK_ACT;
		ask->act = (struct act_call){.action = w->action, .key = w->key, .attempt = w->attempt};
	} else {
		w->inner.kind->ask(&w->inner, ask);
	}
}

static const char *worker_where(const struct task *task)
{
	static const char *const names[] = {"asking for a job", "working", "saying how it went", "done"};

	return names[((const struct worker *)task)->stage];
}

/* While it works, and when it has ended, nothing is asked of the store. */
static void worker_forget(void *copy)
{
	struct worker *w = copy;

	if (w->stage == WORKS || w->stage == ENDED)
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

void trial_worker_init(union sim_task *task, struct trial *trial, struct arena *texts)
{
	struct worker *w = (struct worker *)task;

	memset(w, 0, sizeof *w);
	w->trial = trial;
	w->texts = texts;
	job_claim_init(&w->claim, &trial->claim, texts);
	task_init(&w->task, &worker_kind, /* topic= */ 0);
}
