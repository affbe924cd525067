/*
 * Inside of the action port: a call that it has taken over (a job), and a kind of action that carries jobs out.
 *
 *            port                          kind (http, exec, native)
 *   start ──▶ waiting ──▶ running ─start──▶ on threads of its own ──port_job_done()──▶ answered, freed
 *                │           └────cancel──▶ as soon as it can ─────port_job_done()──▶ freed (aborted: no answer)
 *                └─ abort ──▶ freed
 *
 * A job is the port's until the kind's start(), then the kind's until it calls port_job_done(), once for each.
 */
#pragma once

#include <stdatomic.h>

#include "act/verdict.h"
#include "model/action.h"
#include "task/lane.h"

struct port;
struct port_queue;

struct job {
	const struct action *action;
	struct act_call call; /* its texts are copies after this struct, each with a NUL after it */
	int64_t fence;        /* as the store has it: the call's has the floor of fences in it */
	struct ticket ticket;
	atomic_bool cancelled; /* set before the kind's cancel(); a kind may look at it at any time */

	/* The kind's, from start() to port_job_done(). */
	struct job *next;
	int wake_fd;

	/* The port's, under its mutex. */
	struct port *port;
	struct port_queue *queue;
	struct job *table_next;
	struct job *before, *behind; /* among those of its queue that wait */
	struct mono_time started;    /* if it is running */
	bool running;
	bool aborted; /* nobody waits for the answer any more */
};

/* start, flush and cancel are called with the port's mutex held: they return at once and do not call the port. */
struct kind {
	void (*start)(struct kind *kind, struct job *job);
	/* What was started begins by now; NULL: it has begun. */
	void (*flush)(struct kind *kind);
	/* The job is running or has just finished; it is alive during the call. `cancelled` is set already. */
	void (*cancel)(struct kind *kind, struct job *job);
	/* No job is left. Ends the threads. */
	void (*free)(struct kind *kind);

	/* The port's: how many jobs it may run at once, and the workspaces that have one to run, in turn. */
	size_t slots, used;
	bool unshared; /* one workspace may have all of them */
	struct port_share *turn_first, **turn_last;
};

/* How long it may take: what the call says, else the action, else the default. */
static inline int64_t job_timeout_ms(const struct job *job)
{
	if (job->call.timeout_ms > 0)
		return job->call.timeout_ms;
	return job->action->timeout_ms > 0 ? job->action->timeout_ms : ACTION_TIMEOUT_MS_DEFAULT;
}

/* From the kind's threads: the job is over. Answers its ticket unless it was aborted, and frees the job. */
void port_job_done(struct job *job, struct verdict verdict);
