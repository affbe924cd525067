/* See sweeper.h. One thread, one ticket, one mutex over both; what it waits for is an answer, its time, or the end. */
#include "gate/sweeper.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct gate_sweeper {
	struct gate_store *store;
	int64_t every_ms;
	struct gate_held *held; /* may be NULL */
	struct gate_ticket ticket;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool answered, stopping; /* under the mutex */
};

static void on_done(struct gate_ticket *ticket)
{
	struct gate_sweeper *sweeper = (struct gate_sweeper *)((char *)ticket - offsetof(struct gate_sweeper, ticket));

	pthread_mutex_lock(&sweeper->mutex);
	sweeper->answered = true;
	pthread_cond_broadcast(&sweeper->changed);
	pthread_mutex_unlock(&sweeper->mutex);
}

static void ask(struct gate_sweeper *sweeper, struct gate_ask what)
{
	sweeper->ticket = (struct gate_ticket){.ask = what, .done = on_done};
	sweeper->answered = false;
	gate_ask(sweeper->store, &sweeper->ticket);
	pthread_mutex_lock(&sweeper->mutex);
	while (!sweeper->answered)
		pthread_cond_wait(&sweeper->changed, &sweeper->mutex);
	pthread_mutex_unlock(&sweeper->mutex);
}

/* How many were removed. A store that cannot be reached now is asked again in the next round. */
static int64_t remove_slice(struct gate_sweeper *sweeper)
{
	ask(sweeper, (struct gate_ask){.op = GATE_SWEEP, .budget = SWEEP_BUDGET, .turn_ms = SWEEP_TURN_MS});
	return sweeper->ticket.reply.verdict == GATE_DONE ? sweeper->ticket.reply.removed : 0;
}

static void count_held(struct gate_sweeper *sweeper)
{
	struct mono_time asked = clock_mono(sweeper->store->clock);

	ask(sweeper, (struct gate_ask){.op = GATE_TALLY});
	gate_held_note(sweeper->held, &sweeper->ticket.reply, asked);
}

/* False: it is to end. */
static bool rest(struct gate_sweeper *sweeper, int64_t ms)
{
	struct timespec until;
	bool stopping;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&sweeper->mutex);
	while (!sweeper->stopping && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&sweeper->changed, &sweeper->mutex, &until);
	stopping = sweeper->stopping;
	pthread_mutex_unlock(&sweeper->mutex);
	return !stopping;
}

/* False: it is to end. */
static bool sweep(struct gate_sweeper *sweeper)
{
	while (remove_slice(sweeper) == SWEEP_BUDGET)
		if (!rest(sweeper, SWEEP_TURN_MS))
			return false;
	return true;
}

/* Held ones are counted at once, and then every HELD_EVERY_MS; what is to be swept waits its time from the start. */
static void *run(void *context)
{
	struct gate_sweeper *sweeper = context;
	int64_t to_sweep_ms = sweeper->every_ms, pause_ms;

	if (sweeper->held)
		count_held(sweeper);
	for (;;) {
		pause_ms = sweeper->held && (!sweeper->every_ms || to_sweep_ms > HELD_EVERY_MS) ? HELD_EVERY_MS
												: to_sweep_ms;
		if (!rest(sweeper, pause_ms))
			return NULL;
		if (sweeper->held)
			count_held(sweeper);
		to_sweep_ms -= pause_ms;
		if (!sweeper->every_ms || to_sweep_ms > 0)
			continue;
		if (!sweep(sweeper))
			return NULL;
		to_sweep_ms = sweeper->every_ms;
	}
}

static void destroy(struct gate_sweeper *sweeper)
{
	pthread_cond_destroy(&sweeper->changed);
	pthread_mutex_destroy(&sweeper->mutex);
	free(sweeper);
}

enum hx_code gate_sweeper_new(struct gate_store *store, int64_t every_ms, struct gate_held *held,
			      struct gate_sweeper **ret_sweeper, struct hx_error *err)
{
	struct gate_sweeper *sweeper = calloc(1, sizeof *sweeper);
	pthread_condattr_t attr;

	ASSERT(every_ms > 0 || held);
	if (!sweeper)
		return error_set(err, HX_NO_MEMORY, "the sweep");
	sweeper->store = store;
	sweeper->every_ms = every_ms;
	sweeper->held = held;
	pthread_mutex_init(&sweeper->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&sweeper->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&sweeper->thread, NULL, run, sweeper)) {
		destroy(sweeper);
		return error_set(err, HX_NO_MEMORY, "the thread of the sweep");
	}
	*ret_sweeper = sweeper;
	return HX_OK;
}

void gate_sweeper_free(struct gate_sweeper *sweeper)
{
	if (!sweeper)
		return;
	pthread_mutex_lock(&sweeper->mutex);
	sweeper->stopping = true;
	pthread_cond_broadcast(&sweeper->changed);
	pthread_mutex_unlock(&sweeper->mutex);
	pthread_join(sweeper->thread, NULL);
	destroy(sweeper);
}
