/* See thread.h. */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

enum hx_code thread_start(struct thread *thread, void *(*run)(void *context), void *context, const char *whose,
			  struct hx_error *err)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread->id, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	thread->started = rc == 0;
	return rc ? error_set(err, HX_INTERNAL, "%s cannot be started: %s", whose, strerror(rc)) : HX_OK;
}

void thread_join(struct thread *thread)
{
	if (thread->started)
		pthread_join(thread->id, NULL);
	thread->started = false;
}

void monitor_init(struct monitor *monitor)
{
	pthread_mutex_init(&monitor->mutex, NULL);
	condition_init(&monitor->changed);
}

void monitor_release(struct monitor *monitor)
{
	pthread_cond_destroy(&monitor->changed);
	pthread_mutex_destroy(&monitor->mutex);
}

void monitor_raise(struct monitor *monitor, bool *flag)
{
	monitor_lock(monitor);
	*flag = true;
	monitor_wake_all(monitor);
	monitor_unlock(monitor);
}

bool monitor_wait_until(struct monitor *monitor, struct mono_time until)
{
	return condition_wait_until(&monitor->changed, &monitor->mutex, until);
}

void condition_init(pthread_cond_t *condition)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attr);
	pthread_condattr_destroy(&attr);
}

bool condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, struct mono_time until)
{
	struct timespec at = {.tv_sec = until.ns / 1000000000, .tv_nsec = until.ns % 1000000000};

	return pthread_cond_timedwait(condition, mutex, &at) == 0;
}

void monitor_stop(struct monitor *monitor, bool *stopping, struct thread *thread)
{
	monitor_raise(monitor, stopping);
	thread_join(thread);
}
