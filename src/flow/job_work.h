/*
 * Jobs for workers outside of the engine: pushed, claimed, kept, completed or failed over the API. See job.h for the states.
 *
 *   push      AVAILABLE (or due later); a key that its queue has seen is the job that is there
 *   claim     due jobs of some queues, in one atomic write: owner, fence + 1, until, attempt + 1. The higher priority first;
 *             of one priority the queue whose job has waited longest; in a queue what fell due first
 *   heartbeat until, while owner and fence are still those
 *   complete  RUNNING ─▶ COMPLETED, by owner and fence; its run is due
 *   fail      RUNNING ─▶ RETRYING after a backoff, or PARKED: not retryable, or no attempt left; its run is due
 *   lapse     (janitor) a worker's time is over: RUNNING ─▶ AVAILABLE, or PARKED: not repeatable, or no attempt left (poison)
 *   withdraw  (its run) AVAILABLE, RETRYING, RUNNING ─▶ PARKED
 *
 * Invariants, beyond those of job.h:
 *  W1  Of all that claim at once, on all nodes, one gets a job; nobody waits for another's claim (SKIP LOCKED).
 *  W2  complete, fail and heartbeat change nothing unless owner and fence are those of the claim: HX_STALE_FENCE.
 *  W3  The job of a run's step and its run never disagree: the job's end and the run's being due are one unit.
 *  W4  A job with in_flight_max is claimed only while fewer than that of its queue are RUNNING, over all nodes; jobs without
 *      one are not counted.
 *  W5  A job of a queue with limits is claimed only with a slot (slot.h), which it has until it is nobody's any more; each claim is counted
 *      by the rate. Who finds it full stands in line: its time is later, or when it is woken.
 */
#pragma once

#include "flow/job.h"
#include "flow/slot.h"
#include "task/lane.h"

struct run_retry;

#define JOB_PUSH_MAX 1000 /* in one request */
#define JOB_CLAIM_MAX 100 /* the same */
#define JOB_QUEUES_MAX 16 /* of one claim */
#define JOB_OWNER_BYTES_MAX 128
#define JOB_LEASE_MS_MIN 100
#define JOB_LEASE_MS_MAX 86400000
#define JOB_WAIT_MS_MAX 60000
#define JOB_PAYLOAD_BYTES_MAX (1u << 20)
#define JOB_PRIORITY_MAX 1000           /* and -1000 */
#define JOB_CLAIM_BYTES_MAX (16u << 20) /* of payloads in one claim; a single larger one is handed out alone */
#define JOB_WORK_POLL_MS 2000           /* a claim that waits looks at the latest so often */
#define JOB_WORK_REST_MS 20             /* so soon again when others were at what is due */
#define JOB_PICKS_MAX 16                /* jobs of queues with limits that are looked at at a time */

/*
 * ---- push: all of them in one unit, or none ----
 *
 *   START ─▶ PUSHING ─┬ won ────▶ HX_OK, each item says what became of it
 *                     ├ failed ─▶ the store's error: nothing was pushed
 *                     └ unknown ▶ LOOKING for what was pushed ─┬ there ─▶ HX_OK
 *                                                              └ not, or not to be asked ─▶ HX_OUTCOME_UNKNOWN
 */

/* Texts without U+0000; the queue is not JOB_QUEUE_AFTER_EFFECTS (HX_VALIDATION_ERROR). */
struct job_push_item {
	struct slice queue, payload; /* payload: JSON */
	struct slice key;            /* .p NULL: none */
	int64_t due_at_ms;           /* 0: now */
	int64_t priority;
	/* afterwards */
	int64_t subject;
	bool created;
};

/* Something that goes into the very unit that pushes. */
struct job_push;
struct job_along {
	/* Adds lines, after all others; may be called again for the same unit. LOST by one of them: HX_ALREADY_EXISTS. */
	void (*add)(struct job_along *along, const struct job_push *push, struct unit *unit);
};

struct job_push {
	struct task task;
	struct slice workspace;
	size_t n;
	struct job_push_item *items; /* the caller's, as long as the task */
	struct arena *arena;
	struct job_along *along; /* NULL: nothing */
	/* private: job_push.c */
	struct stamp stamp;
	struct slice rows, names; /* as the statements read them, in the arena */
};
/* HX_TOO_LARGE: the arena is full; it holds all payloads once more, escaped. */
void job_push_init(struct job_push *push, struct slice workspace, struct job_push_item *items, size_t n,
		   struct arena *arena);

/*
 * ---- claim, with long poll ----
 *
 *   START ─▶ CLAIMING ─┬ some ───────────────▶ HX_OK
 *               ▲      ├ failed, unknown ────▶ HX_STORE_UNAVAILABLE
 *               │      └ none ─┬ no time left ▶ HX_OK, n is 0
 *               │              └─▶ READING when the next is due ─▶ SLEEPING till then, or a job is made due ─┐
 *               └─────────────────────────────────────────────────────────────────────────────────────────────┘
 *
 * Queues without limits are claimed from by one statement. Those with limits come before it or after it, by chance:
 *
 *   PICKING what is due ─▶ TAKING one of them, with a slot ─┬ won, or somebody was first ─▶ the next
 *        ▲                                                   └ full, or too early ─▶ LINING UP all picks of that key ─▶ the next
 *        └ while each look finds as many as it may, and room is left
 */

struct job_claim_request {
	struct slice workspace, owner;
	size_t queues_n;
	struct slice queues[JOB_QUEUES_MAX];
	const struct limits *limits[JOB_QUEUES_MAX]; /* NULL: it has none */
	int64_t max, lease_ms, wait_ms;
	/* Nobody listens any more: asked before each try to claim, which is then the end. NULL: never. */
	bool (*gave_up)(const void *context);
	const void *gave_up_context;
};

struct job_claimed {
	int64_t subject, attempt, fence, until_ms;
	struct slice queue, payload, key;
	struct slice trace; /* of the run that it is a step of; empty: none */
};

/* One that is due and has limits. */
struct job_pick {
	struct slot_waiter waiter;
	struct bounds bounds;
};
struct job_picks {
	int64_t n;
	struct job_pick items[JOB_PICKS_MAX];
};

struct job_claim {
	struct task task;
	const struct job_claim_request *rq;
	struct arena *arena;
	size_t n;
	struct job_claimed *jobs; /* in the arena */
	size_t in_line;           /* so many found their limit full */
	/* private: job_claim.c, job_limit.c */
	struct stamp stamp;
	struct slice queues, plain, limited; /* as the statements read them, in the arena: all, without limits, with */
	struct mono_time deadline, until;
	int64_t bytes;     /* of payloads */
	int64_t left;      /* JOBS_PLAIN, JOBS_LIMITED: what is still to be looked at this time */
	int64_t full;      /* the name that was */
	int64_t moved;     /* of the picks of this look one was claimed, or stands in line */
	int64_t at;        /* the pick that is looked at */
	uint64_t lined_up; /* bit i: pick i stands in line */
	const struct job_picks *picks;
};
_Static_assert(JOB_PICKS_MAX <= 64, "a bit for each");

/*
 * When whoever waits for work looks again, from a read of how many ms there are until the next is due: then, at the latest at the poll
 * or the deadline, at the soonest after a rest. Whatever makes work due here wakes it before that.
 */
struct mono_time work_looks_again(const struct answer *answer, struct mono_time deadline);
/*
 * DONE with HX_OK and n jobs, 0 of them when the time has passed or nobody waits any more. HX_STORE_UNAVAILABLE,
 * HX_TOO_LARGE (the arena): what was claimed, if anything, comes back by its time.
 */
void job_claim_init(struct job_claim *claim, const struct job_claim_request *rq, struct arena *arena);

/* Where the seat of one that waits has its places, and how many jobs it has of what was offered at one of them. */
size_t job_claim_places(const struct job_claim_request *rq, struct lane_place places[JOB_QUEUES_MAX]);
size_t job_claim_took(const struct job_claim *claim, const struct lane_place *place);

/*
 * ---- heartbeat, complete, fail, lapse ----
 *
 *   START ─▶ (TRYING, a heartbeat or a plain completion) ─┬ won ─▶ HX_OK
 *      │                                                    └ lost ─┐
 *      └─▶ READING ◀───────────────────────────────────────────────┘
 *             ├ no such job ─────────────▶ HX_NOT_FOUND
 *             ├ not this claim any more ─▶ HX_STALE_FENCE
 *             └─▶ SETTLING ─┬ won ───────▶ HX_OK
 *                           ├ lost ──────▶ HX_STALE_FENCE
 *                           ├ failed ────▶ the store's error
 *                           └ unknown ───▶ LOOKING_UP its op ─▶ either; a heartbeat: HX_STORE_UNAVAILABLE
 */

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

enum { SETTLE_NEW, SETTLE_TRYING, SETTLE_READING, SETTLE_SETTLING, SETTLE_LOOKING_UP, SETTLE_DONE };

struct job_settle {
	struct task task;
	const struct job_settle_request *rq;
	struct arena *arena;
	const char *status; /* reached */
	int64_t until_ms;   /* heartbeat */
	/* private: job_settle.c */
	const char *to;
	struct job_ending ending;
	int64_t run;                   /* 0: none */
	bool bounded;                  /* its queue has room for another one after it */
	bool after_effect;             /* nobody outside waits for jobs like this one */
	struct slot slot;              /* that it has; .name 0: none */
	struct slice workspace, queue; /* its own */
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
};
void job_insert_of_run(struct unit *unit, const struct stamp *stamp, const struct job_of_run *job);
/*
 * Takes a job away from its run before it has ended (the run was cancelled, or the step's time is over): PARKED with these words,
 * whoever holds it finds its fence stale. LOST: it has ended, or is not at this version.
 */
void job_withdraw(struct unit *unit, const struct stamp *stamp, int64_t subject, int64_t version, const char *status,
		  const char *words);
