/*
 * Tasks: pure logic that asks.
 *
 * A task is a small state machine in a flat struct (embed `struct task` first). It does no I/O, reads no clock,
 * draws no random number and knows no threads. It is a table of states (task/states.h). For each it is said
 *
 *   what it makes of an answer   takes it in and moves on (task_go, task_end): nothing else changes the task
 *   what it wants there          a function of the task alone, so it may be asked again, and a unit that has to be
 *                                run twice (deadlock, crash of the simulator) is the same unit
 *
 *            ┌────────────── COMMIT(unit) ──▶ won | lost | refused | failed | unknown ──┐
 *   START ──▶ task ───────── ACT(call) ─────▶ ok | failed | invalid | unknown | claim_lost ──▶ task … ──▶ DONE(code)
 *            └────────────── SLEEP(until) ──▶ woke ─────────────────────────────────────┘
 *
 * An ACT under a lease ends as claim_lost when the lease cannot be kept: the lane aborts the call and drops its answer.
 * One with `hear_out` is heard out: it goes on without a lease, and its own answer comes with `overrun`. For these,
 * claim_lost says that the call was never begun.
 *
 * The struct may be copied with memcpy at any time between two calls (the simulator does): no pointers into
 * itself; pointers to things that outlive it and never change are fine.
 *
 * Waiting is by the monotonic clock alone: the wall clock may be set back by a day, and who sleeps must wake all the same and
 * decide anew. A moment that stands in a row is wall time of the store's; who waits for it sleeps for what is left of it.
 *
 * A wake on `topic` that comes while the task does something else is kept until its next SLEEP, which then
 * returns at once: reading, then sleeping, loses no change. Only rows survive a restart; tasks do not.
 */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/slice.h"
#include "db/unit.h"

struct task_kind;
struct task_shape;
struct id_source;

struct task {
	const struct task_kind *kind;
	int64_t topic;     /* what wakes it; 0: nothing but time. Set before the start, then constant */
	uint32_t turn;     /* rises with each answer taken: an answer to an earlier ask is recognised and dropped */
	int at;            /* its state, of those of its kind; 0: new */
	enum hx_code code; /* how it has ended, once it has */
	bool woken;        /* a wake came since the last SLEEP ended */
};

enum act_outcome {
	ACT_OK,              /* done; output: JSON */
	ACT_FAILED,          /* certainly not done, may be tried again; output: words */
	ACT_FAILED_FOR_GOOD, /* certainly not done, trying again is pointless; output: words */
	ACT_INVALID,         /* rejected; output: JSON of the rejection */
	ACT_UNKNOWN,         /* may have been done; output: words */
	ACT_UNSETTLED,  /* the other side is at an earlier try of this key, and says nothing about it; output: words */
	ACT_CLAIM_LOST, /* said by the lane alone: the lease could not be kept (hear_out: and nothing was begun) */
};

/* The claim under which an action runs. The lane renews it while the action lasts. */
struct lease {
	int64_t subject;
	int64_t fence; /* 0: no lease */
	int64_t lease_ms;
	struct mono_time since; /* before the claim was sent: it is trusted from here on */
};

struct act_call {
	const void *action;       /* what the port knows it by: a struct action of the model, in tests a name */
	struct slice input;       /* JSON */
	struct slice key;         /* of the logical effect: the same in every repetition */
	int64_t attempt;          /* from 1 */
	struct slice traceparent; /* with its tracestate (base/trace.h), to be continued by the call; empty: none */
	bool unknown_on_5xx;      /* the service may fail after acting */
	bool in_doubt;            /* an earlier try under this key may have been done, or be under way */
	int64_t timeout_ms;       /* 0: the action's own */
	bool hear_out;            /* what it did is wanted even when the lease is over: it is not aborted then */
	int64_t fence;            /* without a lease: the last holder's, for the other side to compare */
	uint64_t tenant;          /* whose it is, where places are shared out (db/unit.h); 0: nobody's in particular */
	struct lease lease;
};

/* What the calls of one claim are doing in a port, for a person who asks why (flow/why.h). */
struct port_sight {
	size_t running, waiting;
	const struct action *action; /* of one that waits; it lives as long as its definition. NULL: none waits */
	size_t limit;                /* so many calls may run at once, and do: that is why it waits */
	bool of_kind;                /* all calls of its kind; else those of the action alone, by its max_in_flight */
	bool of_share;               /* of its workspace, of that kind: the places that are left are for others */
};

/* What the other side is told: its holders count from 1. */
static inline int64_t act_fence(const struct act_call *call)
{
	int64_t fence = call->lease.fence ? call->lease.fence : call->fence;

	return fence > 0 ? fence : 1;
}

enum ask_kind { ASK_COMMIT, ASK_ACT, ASK_SLEEP, ASK_DONE };

struct ask {
	enum ask_kind kind;
	struct unit *unit; /* COMMIT: memory given by the caller, filled in by the task */
	struct act_call act;
	struct mono_time until; /* SLEEP */
	struct mono_time
		latest;    /* SLEEP: till then, while somebody else at its stands looks by time; ns 0: none does */
	enum hx_code code; /* DONE; what else there is to tell stands in the task itself */
};

#define ANSWER_IDS_MAX 5

enum answer_kind { ANSWER_START, ANSWER_COMMIT, ANSWER_ACT, ANSWER_WOKE };

struct answer {
	enum answer_kind kind;
	/* What a task may not fetch by itself. */
	struct wall_time now;
	struct mono_time mono;
	int64_t id;                       /* fresh; a task uses it as the op of its next unit */
	int64_t more_ids[ANSWER_IDS_MAX]; /* fresh too, for rows that it makes */
	struct id_source *ids;            /* during the call: for the few that make more rows than that (base/id.h) */
	const char *node;
	/* COMMIT: rows are valid only during the call. */
	const struct unit_result *result;
	struct mono_time sent; /* before its transaction began: a lease that it renews is trusted from here on */
	/* ACT */
	enum act_outcome outcome;
	struct slice output;
	int64_t not_before_ms; /* the other side wants no further try for so long from now on; 0: it said nothing */
	struct mono_time lease_since; /* the lease was renewed meanwhile: it is trusted from here on */
	/* Of a call that is heard out: its lease was lost, or could not be trusted to the end. This is the outcome all the
	 * same; whether the claim is still ours, only the fence can tell. */
	bool overrun;
};

/* Defined by TASK_KIND() (task/states.h), out of a table of states. */
struct task_kind {
	const char *name;
	size_t size;
	int done;  /* its last state */
	size_t op; /* where in it the op of its units stands, an int64_t; 0: they have none */
	void (*take)(struct task *task, const struct answer *answer);
	void (*ask)(const struct task *task, struct ask *ask);
	/* For the simulator: where it stands, in a few words of the domain. */
	const char *(*where)(const struct task *task);
	/* For the simulator: what of it does not count by its bytes (task/shape.h). NULL: all of it does. */
	const struct task_shape *shape;
};

static inline void task_init(struct task *task, const struct task_kind *kind, int64_t topic)
{
	*task = (struct task){.kind = kind, .topic = topic};
}

static inline void task_go(struct task *task, int at)
{
	task->at = at;
}

static inline void task_end(struct task *task, enum hx_code code)
{
	task->code = code;
	task->at = task->kind->done;
}

static inline bool task_is_done(const struct task *task)
{
	return task->at == task->kind->done;
}

/* Gives an answer to the ask of the given turn. A late or doubled answer changes nothing: false. */
static inline bool task_take(struct task *task, uint32_t turn, const struct answer *answer)
{
	if (turn != task->turn)
		return false;
	task->turn++;
	task->kind->take(task, answer);
	return true;
}

const char *act_outcome_name(enum act_outcome outcome);
