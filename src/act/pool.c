/* See pool.h. */
#include "act/pool.h"

#include <stdlib.h>

/* NULL: the pool is ending. */
static struct job *take_job(struct pool *pool)
{
	struct job *job;
	bool more;

	monitor_lock(&pool->monitor);
	pool->idle++;
	while (!pool->first && !pool->ending)
		monitor_wait(&pool->monitor);
	pool->idle--;
	job = pool->first;
	if (job) {
		pool->first = job->next;
		if (!pool->first)
			pool->last = &pool->first;
	}
	more = pool->first && pool->idle;
	monitor_unlock(&pool->monitor);
	if (more)
		monitor_wake_one(&pool->monitor);
	return job;
}

static void *pool_run(void *context)
{
	struct pool *pool = context;
	struct job *job;

	while ((job = take_job(pool)))
		pool->run(pool->kind, job);
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
	LOCKED(&pool->monitor.mutex);
	job->next = NULL;
	*pool->last = job;
	pool->last = &job->next;
}

void pool_flush(struct pool *pool)
{
	bool more;

	monitor_lock(&pool->monitor);
	more = pool->first && pool->idle;
	monitor_unlock(&pool->monitor);
	if (more)
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
