/*
 * Every kind of unit that the engine writes, and the states in which a subject, or a gate record, can meet it: the one
 * list that test_pairs and test_batch_pairs (every pair interleaved on PostgreSQL) and test_set_form (random batches on both
 * stores) walk.
 *
 * A new kind joins with one entry in unit_kinds[]. It is built for a subject from what its caller believes; a
 * belief may be right or out of date. A unit that writes must carry args->stamp.op, so that outcomes differ.
 *
 * A job of number n is the job with that id in the queue kind_job_queue(n), which has no others but those that are pushed
 * there; claims ask that queue alone.
 *
 * The account of number n is called "a" and that number.
 *
 * Bulks, functions, schedules and hooks are called as runs are: see bulk_kinds.h, function_kinds.h, schedule_kinds.h.
 *
 * Gate records are called by numbers too: the key of record n is kind_gate_key(n), a token is a number, and whoever
 * acquires one takes its op for a token.
 *
 * Units of runs (run_kinds.h) and of batches (batch_kinds.h) are what a task writes after it has read: they read args->db while
 * they are built, and are empty where the task would write nothing.
 */
#ifndef HX_TESTS_SUPPORT_UNIT_KINDS_H
#define HX_TESTS_SUPPORT_UNIT_KINDS_H

#include "db/driver.h"
#include "flow/subject.h"
#include "gate/record.h"

struct kind_args {
	int64_t subject;
	int64_t other; /* a second subject, for units that touch two */
	struct stamp stamp;
	int64_t version, fence, effort; /* what the caller believes of `subject` */
	int64_t token;                  /* and of the gate record of that number */
	int64_t other_version;
	int64_t lease_ms;
	int64_t rival_op; /* of the unit that it meets: what a look_up asks for */
	struct db *db;    /* where units of runs and batches read what they believe; not in a transaction */
	const struct unit_result
		*read; /* what run_read() or batch_read() gives there, where many were read at once; NULL: to be read */
	bool stale;    /* what they have read is one move old */
};

/* What a unit is about, in the order of the fixtures. */
enum kind_of {
	OF_SUBJECT,
	OF_GATE, /* a record of it */
	OF_JOB,
	OF_ACCOUNT,
	OF_BULK,
	OF_RUN,   /* or the job of one */
	OF_BATCH, /* or the account of one */
	OF_FUNCTION,
	OF_SCHEDULE,
	OF_HOOK,   /* a delivery to one */
	OF_FAMILY, /* a run and its child */
};

struct unit_kind {
	const char *name;
	void (*build)(struct unit *unit, const struct kind_args *args);
	bool touches_two;
	enum kind_of of;
	bool believes; /* of a gate record: the token counts */
	bool alone;    /* it meets rows that it does not name: no other unit may be in its group */
	/* Is this (side_outcome) no answer? Nothing was changed, and the task asks again. NULL: it always is one. */
	bool (*asks_again)(const char *outcome);
	bool variant;   /* differs from another kind in its numbers only: for random groups, not for pairs */
	bool seldom;    /* it stops a run, which random groups are to see further than that */
	bool own_clock; /* on SQLite it goes by the time that its task is told: for pairs, not for random groups */
};

extern const struct unit_kind unit_kinds[];
extern const size_t unit_kinds_n;

/* How a subject stands before the units meet. */
enum fixture {
	FIXTURE_ABSENT,
	FIXTURE_OPEN,
	FIXTURE_CLAIMED,    /* and live */
	FIXTURE_PAST,       /* claimed, and past its time */
	FIXTURE_TAKEN_OVER, /* claimed by a second holder: whoever believes the fence before is stale */
	FIXTURE_GATE_ABSENT,
	FIXTURE_GATE_PROCESSING,
	FIXTURE_GATE_PAST, /* its lease is over */
	FIXTURE_GATE_TAKEN_OVER,
	FIXTURE_GATE_HELD, /* its lease is over, and it waits for a person */
	FIXTURE_GATE_COMPLETED,
	FIXTURE_GATE_EXPIRED,
	FIXTURE_JOB_ABSENT,
	FIXTURE_JOB_AVAILABLE,
	FIXTURE_JOB_RUNNING,
	FIXTURE_JOB_PAST,      /* its worker's time is over */
	FIXTURE_JOB_RECLAIMED, /* by a second worker */
	FIXTURE_JOB_PARKED,
	FIXTURE_JOB_COMPLETED,
	FIXTURE_ACCOUNT_ABSENT,
	FIXTURE_ACCOUNT_NEW,
	FIXTURE_ACCOUNT_CREDITED, /* with the key "key" */
	FIXTURE_BULK_ABSENT,
	FIXTURE_BULK_SELECTING,
	FIXTURE_BULK_RUNNING, /* two items, both open */
	FIXTURE_BULK_LAST,    /* one of them has ended */
	FIXTURE_BULK_OPEN_CANCELLED,
	FIXTURE_BULK_ENDED, /* both, and nobody has finished it */
	FIXTURE_BULK_COMPLETED,
	FIXTURE_RUN_ABSENT,
	FIXTURE_RUN_PENDING,
	FIXTURE_RUN_OWNED, /* the next step waits for an event */
	FIXTURE_RUN_PAST,  /* its holder's time is over */
	FIXTURE_RUN_LAST,  /* owned, at its last step */
	FIXTURE_RUN_BACKOFF,
	FIXTURE_RUN_HELD, /* for a person, in doubt */
	FIXTURE_RUN_AT_EVENT,
	FIXTURE_RUN_EVENT_THERE,
	FIXTURE_RUN_AT_APPROVAL,
	FIXTURE_RUN_APPROVED,
	FIXTURE_RUN_AT_WORKER, /* its job is there */
	FIXTURE_RUN_AT_WORK,   /* a worker has it */
	FIXTURE_RUN_LATE_WORK, /* the worker's time is over */
	FIXTURE_RUN_WORKED,    /* its job is completed */
	FIXTURE_RUN_PAUSED,    /* while it waits for an event */
	FIXTURE_RUN_PAUSED_OWNED,
	FIXTURE_RUN_PAUSED_AT_WORK,
	FIXTURE_RUN_CANCELLED_OWNED, /* the holder does not know yet */
	FIXTURE_RUN_CANCELLED_AT_WORK,
	FIXTURE_RUN_CANCELLING, /* a step is to be undone */
	FIXTURE_RUN_UNDOING,
	FIXTURE_RUN_NARROW,      /* there is one slot, for it and the one beside it */
	FIXTURE_RUN_NARROW_HELD, /* and it holds that */
	FIXTURE_RUN_NARROW_LINE, /* and the other waits for it */
	FIXTURE_RUN_FAILED,      /* as those below long ago */
	FIXTURE_RUN_COMPLETED,
	FIXTURE_BATCH_ABSENT, /* its account is there */
	FIXTURE_BATCH_LOADING,
	FIXTURE_BATCH_LOADING_PAST, /* its loader's time is over */
	FIXTURE_BATCH_ADDING_PAST,  /* to one that was acknowledged */
	FIXTURE_BATCH_HELD,
	FIXTURE_BATCH_QUEUED,
	FIXTURE_BATCH_OWNED,      /* at work */
	FIXTURE_BATCH_PAST,       /* its holder's time is over */
	FIXTURE_BATCH_LAST,       /* owned, and nothing is left to do */
	FIXTURE_BATCH_POOR,       /* owned, too little credit for the next item; another waits for money too */
	FIXTURE_BATCH_WAITING,    /* out of credit, and so is another */
	FIXTURE_BATCH_FLAGGED,    /* owned */
	FIXTURE_BATCH_CANCELLING, /* owned, one of two slices is flipped */
	FIXTURE_BATCH_FLIPPED,    /* owned, all of them */
	FIXTURE_BATCH_CLEANING_PAST,
	FIXTURE_BATCH_COMPLETED,
	FIXTURE_BATCH_CANCELLED,
	FIXTURE_FUNCTION_ABSENT,
	FIXTURE_FUNCTION_DUE,
	FIXTURE_FUNCTION_HELD,
	FIXTURE_FUNCTION_BEGUN,
	FIXTURE_FUNCTION_PAST, /* its worker's time is over, in a step */
	FIXTURE_FUNCTION_ASLEEP,
	FIXTURE_SCHEDULE_ABSENT,
	FIXTURE_SCHEDULE_RESTING,
	FIXTURE_SCHEDULE_DUE,
	FIXTURE_SCHEDULE_OPEN, /* due, and what it has started has not ended */
	FIXTURE_SCHEDULE_PAUSED,
	FIXTURE_HOOK_ABSENT,
	FIXTURE_HOOK_SEEN,
	FIXTURE_HOOK_OLD,    /* its time is over */
	FIXTURE_FAMILY_NEW,  /* the child is not made yet */
	FIXTURE_FAMILY_OPEN, /* the parent waits, and nobody has the child */
	FIXTURE_FAMILY_AT_WORK,
	FIXTURE_FAMILY_CHILD_DONE, /* and the parent has not looked */
	FIXTURE_FAMILY_CHILD_FAILED,
	FIXTURE_FAMILY_CANCELLED, /* the child has not heard of it */
	FIXTURE_FAMILY_CANCELLED_AT_WORK,
	FIXTURE_FAMILY_PAUSED,
	FIXTURE_FAMILY_FAILED, /* by its child */
	FIXTURE_COUNT
};

const char *fixture_name(enum fixture fixture);
/* The truth about a subject in this fixture. */
int64_t fixture_version(enum fixture fixture);
int64_t fixture_fence(enum fixture fixture);
int64_t fixture_effort(enum fixture fixture);
int64_t fixture_token(enum fixture fixture);
/* What it is a state of. */
static inline enum kind_of fixture_of(enum fixture fixture)
{
	static const enum fixture first[] = {FIXTURE_GATE_ABSENT,     FIXTURE_JOB_ABSENT,      FIXTURE_ACCOUNT_ABSENT,
					     FIXTURE_BULK_ABSENT,     FIXTURE_RUN_ABSENT,      FIXTURE_BATCH_ABSENT,
					     FIXTURE_FUNCTION_ABSENT, FIXTURE_SCHEDULE_ABSENT, FIXTURE_HOOK_ABSENT,
					     FIXTURE_FAMILY_NEW};
	size_t n = 0;

	while (n < sizeof first / sizeof *first && fixture >= first[n])
		n++;
	return (enum kind_of)n;
}
static inline bool fixture_is_run(enum fixture fixture)
{
	return fixture_of(fixture) == OF_RUN;
}
static inline bool fixture_is_batch(enum fixture fixture)
{
	return fixture_of(fixture) == OF_BATCH;
}
unsigned fixture_steps_n(enum fixture fixture);
/* The step-th unit that leads there. Each is a group of its own, built when those before it are in the store. */
void fixture_step(enum fixture fixture, unsigned step, int64_t subject, struct db *db, const struct unit_result *read,
		  struct unit *unit);

#define KIND_JOB_QUEUE_BYTES 24
void kind_job_queue(int64_t number, char ret_queue[KIND_JOB_QUEUE_BYTES]);
/* What a unit of this op makes (a push, an account, a run, a run's job): ids whose last five digits are the op. */
#define KIND_JOB_PUSHED INT64_C(1000000000000000)
static inline int64_t kind_made(int64_t number, int64_t op)
{
	return KIND_JOB_PUSHED + number * 100000 + op;
}
void kind_gate_key(int64_t number, unsigned char ret_key[HX_GATE_KEY_BYTES]);
/* The number that stands in a token. */
int64_t kind_gate_token(struct slice token);

#endif
