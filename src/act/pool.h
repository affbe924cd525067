/*
 * A few threads that carry out jobs, one at a time each: for kinds whose work blocks (exec, native).
 *
 * The port gives a kind no more jobs than it has slots, and the pool has a thread for every slot: a job put in is
 * begun at once. The threads block all signals, so that those of the process go to threads which expect them, and
 * a write into a closed pipe is an error instead of a death.
 */
#ifndef HX_ACT_POOL_H
#define HX_ACT_POOL_H

#include <pthread.h>

#include "act/kind.h"

struct pool {
	pthread_mutex_t mutex;
	pthread_cond_t arrived;
	struct job *first, **last;
	bool ending;
	void (*run)(struct kind *kind, struct job *job);
	struct kind *kind;
	size_t threads_n;
	pthread_t *threads;
};

/* run(kind, job) is called on the pool's threads and ends with port_job_done(). */
enum hx_code pool_init(struct pool *pool, size_t threads, void (*run)(struct kind *kind, struct job *job),
		       struct kind *kind, struct hx_error *err) HX_MUST_CHECK;
void pool_put(struct pool *pool, struct job *job);
/* Waits for the jobs under way. Safe after a failed pool_init(), and on a zeroed struct. */
void pool_release(struct pool *pool);

/* Starts a thread that blocks all signals, for this folder. 0 or an errno. */
int pool_thread(pthread_t *ret_thread, void *(*run)(void *context), void *context);

#endif
