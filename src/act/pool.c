/* See pool.h. */
#include "act/pool.h"

#include <stdlib.h>

/* The pool whose thread this is. */
static _Thread_local const struct pool *own;
/* It takes the next job itself: one that ends makes room for another, and whoever was woken for that would find nothing left. */
static _Thread_local bool comes_back;

/* NULL: the pool is ending. */
static struct job *take_job(struct pool *pool)
{
	struct job *job;

	LOCKED(&pool->monitor.mutex);
	while (!pool->first && !pool->ending)
		monitor_wait(&pool->monitor);
	job = pool->first;
	if (job) {
		pool->first = job->next;
		if (!pool->first)
			pool->last = &pool->first;
	}
	return job;
}

static void *pool_run(void *context)
{
	struct pool *pool = context;
	struct job *job;

	own = pool;
	while ((job = take_job(pool))) {
		comes_back = true;
		pool->run(pool->kind, job);
	}
	return NULL;
}

enum hx_code pool_init(struct pool *pool, size_t threads, void (*run_job)(struct kind *kind, struct job *job),
		       struct kind *kind, struct hx_error *err)
{
	enum hx_code code = HX_OK;

	*pool = (struct pool){.run = run_job, .kind = kind, .last = &pool->first};
	pool->threads = calloc(threads, sizeof *pool->threads);
	if (!pool->threads)
		return error_set(err, HX_NO_MEMORY, "threads for actions");
	monitor_init(&pool->monitor);
	for (; !code && pool->threads_n < threads; pool->threads_n++)
		code = thread_start(&pool->threads[pool->threads_n], pool_run, pool, "a thread for actions", err);
	return code;
}

void pool_put(struct pool *pool, struct job *job)
{
	monitor_lock(&pool->monitor);
	job->next = NULL;
	*pool->last = job;
	pool->last = &job->next;
	pool->owed += own != pool;
	monitor_unlock(&pool->monitor);
	if (own != pool)
		return;
	if (!comes_back)
		monitor_wake_one(&pool->monitor);
	comes_back = false;
}

void pool_flush(struct pool *pool)
{
	size_t owed;

	monitor_lock(&pool->monitor);
	owed = pool->owed;
	pool->owed = 0;
	monitor_unlock(&pool->monitor);
	for (size_t i = 0; i < owed; i++)
		monitor_wake_one(&pool->monitor);
}

void pool_release(struct pool *pool)
{
	if (!pool->threads)
		return;
	monitor_raise(&pool->monitor, &pool->ending);
	for (size_t i = 0; i < pool->threads_n; i++)
		thread_join(&pool->threads[i]);
	monitor_release(&pool->monitor);
	free(pool->threads);
	*pool = (struct pool){0};
}
