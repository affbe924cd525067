/*
 * Jobs for workers outside of the engine: pushed, claimed, kept, completed or failed over the API. See job.h for the states.
 *
 *   push      AVAILABLE (or due later); a key that its queue has seen is the job that is there
 *   claim     due jobs of some queues, best first, in one atomic write: owner, fence + 1, until, attempt + 1
 *   heartbeat until, while owner and fence are still those
 *   complete  RUNNING ─▶ COMPLETED, by owner and fence; its run is due
 *   fail      RUNNING ─▶ RETRYING after a backoff, or PARKED: not retryable, or no attempt left; its run is due
 *   lapse     (janitor) a worker's time is over: RUNNING ─▶ AVAILABLE, or PARKED: not repeatable, or no attempt left (poison)
 *
 * Invariants, beyond those of job.h:
 *  W1  Of all that claim at once, on all nodes, one gets a job; nobody waits for another's claim (SKIP LOCKED).
 *  W2  complete, fail and heartbeat change nothing unless owner and fence are those of the claim: HX_STALE_FENCE.
 *  W3  The job of a run's step and its run never disagree: the job's end and the run's being due are one unit.
 *  W4  Never more than in_flight_max jobs of a queue are RUNNING, over all nodes.
 */
#ifndef HX_FLOW_JOB_WORK_H
#define HX_FLOW_JOB_WORK_H

#include "flow/job.h"

#define JOB_PUSH_MAX 1000 /* in one request */
#define JOB_CLAIM_MAX 100 /* the same */
#define JOB_QUEUES_MAX 16 /* of one claim */
#define JOB_OWNER_BYTES_MAX 128
#define JOB_LEASE_MS_MIN 100
#define JOB_LEASE_MS_MAX 86400000
#define JOB_WAIT_MS_MAX 60000
#define JOB_PAYLOAD_BYTES_MAX (1u << 20)
#define JOB_PRIORITY_MAX 1000 /* and -1000 */

/* ---- push: all of them in one unit, or none ---- */

struct job_push_item {
	struct slice queue, payload; /* payload: JSON */
	struct slice key;            /* .p NULL: none */
	int64_t due_at_ms;           /* 0: now */
	int64_t priority;
	/* afterwards */
	int64_t subject;
	bool created;
};

struct job_push {
	struct task task;
	struct slice workspace;
	size_t n;
	struct job_push_item *items; /* the caller's, as long as the task */
	struct arena *arena;
	enum hx_code code;
	/* private: job_push.c */
	int at;
	struct stamp stamp;
	struct slice rows; /* as the statements read them */
};
void job_push_init(struct job_push *push, struct slice workspace, struct job_push_item *items, size_t n,
		   struct arena *arena);

/* ---- claim, with long poll ---- */

struct job_claim_request {
	struct slice workspace, owner;
	size_t queues_n;
	struct slice queues[JOB_QUEUES_MAX];
	int64_t max, lease_ms, wait_ms;
};

struct job_claimed {
	int64_t subject, attempt, fence, until_ms;
	struct slice queue, payload, key;
};

struct job_claim {
	struct task task;
	const struct job_claim_request *rq;
	struct arena *arena;
	enum hx_code code;
	size_t n;
	struct job_claimed *jobs; /* in the arena */
	/* private: job_claim.c */
	int at;
	struct stamp stamp;
	struct wall_time deadline, until;
};
/* DONE with HX_OK and n jobs, 0 of them when the time has passed. HX_STORE_UNAVAILABLE: what was claimed, if anything,
 * comes back by its time. */
void job_claim_init(struct job_claim *claim, const struct job_claim_request *rq, struct arena *arena);

/* ---- heartbeat, complete, fail, lapse ---- */

enum job_settle_kind { JOB_HEARTBEAT, JOB_COMPLETE, JOB_FAIL, JOB_LAPSE };

struct job_settle_request {
	enum job_settle_kind kind;
	struct slice workspace; /* .p NULL (lapse): any */
	int64_t subject, fence;
	struct slice owner;  /* not with lapse */
	int64_t lease_ms;    /* heartbeat */
	struct slice output; /* complete: JSON; fail: the error's words */
	bool retryable;      /* fail */
};

struct job_settle {
	struct task task;
	const struct job_settle_request *rq;
	struct arena *arena;
	enum hx_code code;  /* HX_NOT_FOUND, HX_STALE_FENCE, … */
	const char *status; /* reached */
	int64_t until_ms;   /* heartbeat */
	/* private: job_settle.c */
	int at;
	const char *to;
	int64_t due_in_ms, run;
	struct stamp stamp;
};
void job_settle_init(struct job_settle *settle, const struct job_settle_request *rq, struct arena *arena);

/* ---- for runs: in units of theirs ---- */

/* The job of a run's step: what job_insert() adds, and whose it is. Adds no verdict. */
struct job_of_run {
	struct job_spec spec;
	int64_t run;
	bool repeatable;
	const struct run_retry *retry;
	int64_t in_flight_max; /* 0: no bound */
	int64_t due_in_ms;
};
void job_insert_of_run(struct unit *unit, const struct stamp *stamp, const struct job_of_run *job);
/*
 * Takes a job away from its run before it has ended (the run was cancelled, or the step's time is over): PARKED with these words,
 * whoever holds it finds its fence stale. LOST: it has ended, or is not at this version.
 */
void job_withdraw(struct unit *unit, const struct stamp *stamp, int64_t subject, int64_t version, const char *status,
		  const char *words);

#endif
