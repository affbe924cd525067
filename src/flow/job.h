/*
 * Jobs: work that is done after a commit. An after-effect is a job written in the unit of its transition, so it
 * exists exactly when the transition does; it is delivered by whichever node claims it. All other queues are for workers
 * outside of the engine: see job_work.h.
 *
 *   AVAILABLE ─┬─ claim ─▶ RUNNING ─┬─ ok ──────────────────────────────▶ COMPLETED
 *   RETRYING ──┘  ▲   attempt+1     ├─ failed, unknown, attempts left ──▶ RETRYING, due later (unknown: unless `claimed`)
 *                 │                 ├─ unsettled, for up to 10 minutes ──▶ RETRYING, due later, attempt−1
 *                 │                 ├─ no attempts left, failed for good ▶ PARKED ── redrive ─▶ AVAILABLE
 *                 └── janitor ──────┘ (the worker died: AVAILABLE again, due at once; an action that is `claimed`
 *                                        is then PARKED by whoever takes it, since it may have been delivered)
 *
 * Invariants:
 *  J1  due_at is set exactly while the job is AVAILABLE or RETRYING, ended_at while it is COMPLETED or PARKED.
 *  J2  The effect_key never changes: a delivery that is repeated, for whatever reason, carries the same one.
 *  J3  The attempt is counted in the unit of the claim, so work that kills its worker is parked in the end.
 *  J4  What may have been done is sent again by the version of the definition that it was sent by: to the same address. That
 *      version stands in the row before anything is sent, and until an answer settles it: of a first try any certain one, later
 *      only "done". A person's redrive does not settle it, unless the action is `claimed`: then he has looked, and the definition
 *      in force counts.
 */
#pragma once

#include "base/arena.h"
#include "flow/slot.h"
#include "flow/subject.h"
#include "flow/ways.h"
#include "model/action.h"
#include "task/task.h"

#define JOB_AVAILABLE "AVAILABLE"
#define JOB_RUNNING "RUNNING"
#define JOB_RETRYING "RETRYING"
#define JOB_COMPLETED "COMPLETED"
#define JOB_PARKED "PARKED"
#define JOB_QUEUE_AFTER_EFFECTS "after-effects"

#define JOB_ERROR_BYTES_MAX 500 /* of the words that are kept of a failure */

/* Whoever looks for after-effects that are due sleeps on this topic; every unit that makes one due wakes it. */
#define JOB_TOPIC INT64_MAX
/*
 * Workers wait for their jobs at stands (task/lane.h), one for each queue of each workspace: a job is for one of them, and wakes one.
 * (Two queues may happen to share a stand: an offer is a hint.)
 */
int64_t job_stand(struct slice workspace, struct slice queue);
/* n jobs of this queue are due, or will be, or there is room for them. */
void job_offer(struct unit *unit, struct slice workspace, struct slice queue, uint32_t n);
/* What wakes all workers of a workspace, for when it is not known of which queue a job is, or too many of them have one. */
int64_t job_topic(struct slice workspace);

int64_t job_kind(void);
extern const char *const job_statuses[]; /* all there are; ends with NULL */
/* The constant that has this text; NULL: none. */
static inline const char *job_status_of(struct slice text)
{
	return ways_status(&job_ways, text);
}

/* What a new job is. Texts are borrowed until the unit is answered. */
struct job_spec {
	int64_t subject;
	struct slice workspace;
	const char *queue;
	const char *workflow;
	const char *action;
	struct slice effect_key;
	/* A JSON object, sent as it is by every try. The trace that it belongs to are members (base/trace.h). */
	struct slice payload;
	bool repeatable; /* by its key, or by its nature: after a worker was lost over it, another may take it */
};

/* Adds the job to a unit whose verdict stands before it. */
void job_insert(struct unit *unit, const struct stamp *stamp, const struct job_spec *spec);

/*
 * In the unit that ends a claim, after its verdict: the row as the end leaves it. due_in_ms -1: it is never due again
 * by itself, it has ended. error, output: .p NULL, none; the error's words are cut.
 */
struct job_ending {
	int64_t due_in_ms;
	struct slice error, output;
	int64_t unsettled_since; /* 0: it is not; otherwise the attempt of this claim is given back */
	bool answered;           /* whatever was sent is known to be done or not: J4 */
};
void job_end(struct unit *unit, int64_t subject, const struct job_ending *ending);

/*
 * A parked job gets another try, with all its attempts. REFUSED: there is no such job. LOST: it is not PARKED, or it is the
 * job of a run's step, and the run is what is retried.
 */
void job_redrive(struct unit *unit, const struct stamp *stamp, struct slice workspace, int64_t subject);
/* The same, of one that is still as it was read. LOST in line 0: it is not. */
void job_redrive_at(struct unit *unit, const struct stamp *stamp, struct slice workspace, int64_t subject,
		    int64_t version);
/* What its unit came to, and that in words; NULL: the code says it all. */
enum hx_code job_redriven(const struct unit_result *result) HX_MUST_CHECK;
const char *job_redrive_detail(enum hx_code code);

/* What every job begins with; `more` of its columns follow. */
#define INTO_JOB(more)                                                                                                  \
	"INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload, due_at, repeatable" more \
	")"

/* Columns of job_read and job_list. */
enum {
	JOB_SUBJECT,
	JOB_STATUS,
	JOB_VERSION,
	JOB_QUEUE,
	JOB_WORKFLOW, /* "", as is the action: pushed by a caller */
	JOB_ACTION,
	JOB_KEY, /* of its effect: what a worker gets as idempotencyKey */
	JOB_PAYLOAD,
	JOB_ATTEMPT,
	JOB_DUE_AT,
	JOB_ERROR,
	JOB_UPDATED_AT,
	JOB_DOUBT,
	JOB_PRIORITY,
	JOB_USER_KEY, /* one job for each of them in its queue; NULL: none */
	JOB_OUTPUT,
	JOB_OWNER, /* NULL, as is until: nobody has it */
	JOB_UNTIL,
	JOB_FENCE,
	JOB_RUN, /* NULL: it is no step's */
	JOB_IN_FLIGHT_MAX,
	JOB_ENDED_AT,
	JOB_UNSETTLED_SINCE, /* NULL: the other side is not at an earlier try, or has not said so */
	JOB_SENT_VERSION, /* of the definition that something was sent by, which may have been done; NULL: nothing was */
	JOB_WORKSPACE,
	JOB_COLUMNS
};
void job_read(struct unit *unit, int64_t subject);
/* No row also when it is of another workspace. */
void job_read_in(struct unit *unit, struct slice workspace, int64_t subject);
/* By id, which is by age. Empty status, empty queue: any. With a status it is a page of a slice (flow/page.h), of two lines. */
void job_list(struct unit *unit, struct slice workspace, struct slice status, struct slice queue, int64_t after,
	      int64_t limit);
/* After-effects that may be claimed (flow/due_watch.h). left: JSON ["WORKFLOW/ACTION"] that are for others. */
extern const struct due_source job_due_source;
/* Claims of after-effects are past their time, see subject_end_claims(). Those of workers' jobs are not touched. */
void job_end_deliveries(struct unit *unit);

/*
 * Retention. Jobs that were COMPLETED longer than age_ms ago, the oldest first, but for those whose run has yet to take their
 * output; row: subject. Then one by one: nothing is left, and the key is free again. LOST: somebody was first.
 */
void job_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit);
void job_expire(struct unit *unit, int64_t subject, int64_t age_ms);

/*
 * ---- delivering one ----
 *
 *   NEW ─▶ READING ─▶ CLAIMING ─┬ won ─▶ ACTING ─▶ ENDING ─▶ DONE
 *                               ├ lost: somebody else has it ─▶ DONE
 *                               └ lost: a limit of its action is full ─▶ LINING_UP ─▶ DONE: in line, as it was, due later
 *
 * A slot of its action (call_limit.h) is taken in the unit of the claim, and let go in the unit that ends the claim, whoever does.
 */

struct job_policy {
	int64_t attempts_max;
	int64_t first_ms, max_ms; /* backoff: first, doubled each time, at most max */
	int64_t lease_ms;
};

/*
 * Finds the action of a job among the definitions, in this version; 0: in the one in force, which is told. NULL: it is gone, or not
 * known here (yet). Pure.
 */
typedef const struct action *(*job_action_fn)(const void *context, struct slice workflow, struct slice action,
					      int64_t *version);

enum { JOB_AT_NEW, JOB_AT_READING, JOB_AT_CLAIMING, JOB_AT_LINING_UP, JOB_AT_ACTING, JOB_AT_ENDING, JOB_AT_DONE };

struct job_run {
	struct task task;
	int64_t subject;
	const struct job_policy *policy;
	job_action_fn action_of;
	const void *context;
	struct arena *arena;
	bool in_line; /* it found a limit of its action full, and stands in line */
	/* private */
	const char *from; /* AVAILABLE or RETRYING, as read */
	const char *to;   /* where it ends */
	const struct action *action;
	int64_t version, fence, attempt, due_in_ms;
	int64_t sent_version;    /* J4; 0: there is no definition to send it by */
	bool kept;               /* it stood in the row: something was sent by it, and may have been done */
	int64_t unsettled_since; /* as read, then as it is to be written */
	uint64_t tenant;         /* its workspace, where places are shared out */
	bool doubt; /* an earlier worker died over it, or its delivery may have been done, or be under way */
	struct slice key, payload, error, trace;
	struct bounds bounds; /* of its call */
	int64_t full;         /* which of them was */
	struct stamp stamp;
	struct mono_time asked;
};

/*
 * DONE with HX_OK when it was delivered, HX_CLAIM_FAILED when somebody else has it or it stands in line, HX_CONFIG_ERROR when the version that it was sent
 * by is not known here (yet), else what went wrong.
 */
void job_run_init(struct job_run *run, int64_t subject, const struct job_policy *policy, job_action_fn action_of,
		  const void *context, struct arena *arena);
