/*
 * Threads, and what they wait at.
 *
 * Signals are the program's: a thread that is started here blocks all of them, whatever the mask of the one that starts it. So they go
 * to threads which expect them, and a write into a closed pipe is an error instead of a death.
 *
 * A monitor is a mutex with its one condition. Whoever waits does so by the machine's monotonic clock, never by a clock that
 * tests move: time_in_ms() is a moment of it.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"

struct thread {
	pthread_t id;
	bool started; /* and not joined yet */
};

/* `whose`: "a lane's thread", for the error. */
enum hx_code thread_start(struct thread *thread, void *(*run)(void *context), void *context, const char *whose,
			  struct hx_error *err) HX_MUST_CHECK;
/* Nothing happens where none was started, or it was joined before. */
void thread_join(struct thread *thread);

/* Holds a mutex up to the end of the block, whichever way that is left. */
#define LOCKED(mutex) __attribute__((cleanup(mutex_let_go), unused)) pthread_mutex_t *locked = mutex_hold(mutex)

static inline pthread_mutex_t *mutex_hold(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void mutex_let_go(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}

struct monitor {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
};

void monitor_init(struct monitor *monitor);
void monitor_release(struct monitor *monitor);
/* Of a thread that waits there: it is told to stop by its flag, and joined, if it was started. */
void monitor_stop(struct monitor *monitor, bool *stopping, struct thread *thread);
/* Sets a flag that is under the mutex, and wakes everybody. Not with the mutex held. */
void monitor_raise(struct monitor *monitor, bool *flag);
/* With the mutex held, which it lets go meanwhile. False: that moment has come. */
bool monitor_wait_until(struct monitor *monitor, struct mono_time until);

static inline void monitor_lock(struct monitor *monitor)
{
	pthread_mutex_lock(&monitor->mutex);
}

static inline void monitor_unlock(struct monitor *monitor)
{
	pthread_mutex_unlock(&monitor->mutex);
}

/* With the mutex held, which it lets go meanwhile. */
static inline void monitor_wait(struct monitor *monitor)
{
	pthread_cond_wait(&monitor->changed, &monitor->mutex);
}

/* With the mutex held or without it. */
static inline void monitor_wake_one(struct monitor *monitor)
{
	pthread_cond_signal(&monitor->changed);
}

static inline void monitor_wake_all(struct monitor *monitor)
{
	pthread_cond_broadcast(&monitor->changed);
}

static inline struct mono_time time_in_ms(int64_t ms)
{
	return mono_add_ms(clock_mono(clock_system()), ms);
}

/* For those that wait at a mutex with several conditions. */
void condition_init(pthread_cond_t *condition);
bool condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, struct mono_time until);
