/* See pool.h. */
#include "act/pool.h"

#include <signal.h>
#include <stdlib.h>

int pool_thread(pthread_t *ret_thread, void *(*run)(void *context), void *context)
{
	sigset_t all, before;
	int failure;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failure = pthread_create(ret_thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failure;
}

/* NULL: the pool is ending. */
static struct job *take(struct pool *pool)
{
	struct job *job;

	pthread_mutex_lock(&pool->mutex);
	while (!pool->first && !pool->ending)
		pthread_cond_wait(&pool->arrived, &pool->mutex);
	job = pool->first;
	if (job) {
		pool->first = job->next;
		if (!pool->first)
			pool->last = &pool->first;
	}
	pthread_mutex_unlock(&pool->mutex);
	return job;
}

static void *run(void *context)
{
	struct pool *pool = context;
	struct job *job;

	while ((job = take(pool)))
		pool->run(pool->kind, job);
	return NULL;
}

enum hx_code pool_init(struct pool *pool, size_t threads, void (*run_job)(struct kind *kind, struct job *job),
		       struct kind *kind, struct hx_error *err)
{
	*pool = (struct pool){.run = run_job, .kind = kind, .last = &pool->first};
	pool->threads = calloc(threads, sizeof *pool->threads);
	if (!pool->threads)
		return error_set(err, HX_NO_MEMORY, "threads for actions");
	pthread_mutex_init(&pool->mutex, NULL);
	pthread_cond_init(&pool->arrived, NULL);
	for (; pool->threads_n < threads; pool->threads_n++)
		if (pool_thread(&pool->threads[pool->threads_n], run, pool))
			return error_set(err, HX_INTERNAL, "a thread for actions cannot be started");
	return HX_OK;
}

void pool_put(struct pool *pool, struct job *job)
{
	pthread_mutex_lock(&pool->mutex);
	job->next = NULL;
	*pool->last = job;
	pool->last = &job->next;
	pthread_mutex_unlock(&pool->mutex);
	pthread_cond_signal(&pool->arrived);
}

void pool_release(struct pool *pool)
{
	if (!pool->threads)
		return;
	pthread_mutex_lock(&pool->mutex);
	pool->ending = true;
	pthread_mutex_unlock(&pool->mutex);
	pthread_cond_broadcast(&pool->arrived);
	for (size_t i = 0; i < pool->threads_n; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->arrived);
	pthread_mutex_destroy(&pool->mutex);
	free(pool->threads);
	*pool = (struct pool){0};
}
