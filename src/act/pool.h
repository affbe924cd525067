/*
 * A few threads that carry out jobs, one at a time each: for kinds whose work blocks (exec, native).
 *
 * The port gives a kind no more jobs than it has slots, and the pool has a thread for every slot: a job put in is
 * begun at the next flush.
 */
#pragma once

#include "act/kind.h"
#include "base/thread.h"

struct pool {
	struct monitor monitor;
	struct job *first, **last;
	size_t owed; /* jobs that were put in, and nobody was woken for them yet */
	bool ending;
	void (*run)(struct kind *kind, struct job *job);
	struct kind *kind;
	size_t threads_n;
	struct thread *threads;
};

/* run(kind, job) is called on the pool's threads and ends with port_job_done(). */
enum hx_code pool_init(struct pool *pool, size_t threads, void (*run)(struct kind *kind, struct job *job),
		       struct kind *kind, struct hx_error *err) HX_MUST_CHECK;
/* Whoever puts it in, and is no thread of the pool, flushes afterwards: once for many, as a thread that wakes takes the processor. */
void pool_put(struct pool *pool, struct job *job);
void pool_flush(struct pool *pool);
/* Waits for the jobs under way. Safe after a failed pool_init(), and on a zeroed struct. */
void pool_release(struct pool *pool);
