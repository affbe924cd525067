/* See sweeper.h. One thread, one ticket, one mutex over both; what it waits for is an answer, its time, or the end. */
#include "gate/sweeper.h"

#include <stdlib.h>

#include "base/thread.h"

struct gate_sweeper {
	struct gate_store *store;
	int64_t every_ms;
	struct gate_held *held; /* may be NULL */
	struct gate_ticket ticket;
	struct thread thread;
	struct monitor monitor;
	bool answered, stopping; /* under the mutex */
};

static void on_done(struct gate_ticket *ticket)
{
	struct gate_sweeper *sweeper = (struct gate_sweeper *)((char *)ticket - offsetof(struct gate_sweeper, ticket));

	monitor_raise(&sweeper->monitor, &sweeper->answered);
}

static void sweeper_ask(struct gate_sweeper *sweeper, struct gate_ask what)
{
	sweeper->ticket = (struct gate_ticket){.ask = what, .done = on_done};
	sweeper->answered = false;
	gate_ask(sweeper->store, &sweeper->ticket);
	LOCKED(&sweeper->monitor.mutex);
	while (!sweeper->answered)
		monitor_wait(&sweeper->monitor);
}

/* How many were removed. A store that cannot be reached now is asked again in the next round. */
static int64_t remove_slice(struct gate_sweeper *sweeper)
{
	sweeper_ask(sweeper, (struct gate_ask){.op = GATE_SWEEP, .budget = SWEEP_BUDGET, .turn_ms = SWEEP_TURN_MS});
	return sweeper->ticket.reply.verdict == GATE_DONE ? sweeper->ticket.reply.removed : 0;
}

static void count_held(struct gate_sweeper *sweeper)
{
	struct mono_time asked = clock_mono(sweeper->store->clock);

	sweeper_ask(sweeper, (struct gate_ask){.op = GATE_TALLY});
	gate_held_note(sweeper->held, &sweeper->ticket.reply, asked);
}

/* False: it is to end. */
static bool sweeper_rest(struct gate_sweeper *sweeper, int64_t ms)
{
	struct mono_time until = time_in_ms(ms);
	bool stopping;

	monitor_lock(&sweeper->monitor);
	while (!sweeper->stopping && monitor_wait_until(&sweeper->monitor, until))
		;
	stopping = sweeper->stopping;
	monitor_unlock(&sweeper->monitor);
	return !stopping;
}

/* False: it is to end. */
static bool sweeper_sweep(struct gate_sweeper *sweeper)
{
	while (remove_slice(sweeper) == SWEEP_BUDGET)
		if (!sweeper_rest(sweeper, SWEEP_TURN_MS))
			return false;
	return true;
}

/* Held ones are counted at once, and then every HELD_EVERY_MS; what is to be swept waits its time from the start. */
static void *sweeper_run(void *context)
{
	struct gate_sweeper *sweeper = context;
	int64_t to_sweep_ms = sweeper->every_ms, pause_ms;

	if (sweeper->held)
		count_held(sweeper);
	for (;;) {
		pause_ms = sweeper->held && (!sweeper->every_ms || to_sweep_ms > HELD_EVERY_MS) ? HELD_EVERY_MS
												: to_sweep_ms;
		if (!sweeper_rest(sweeper, pause_ms))
			return NULL;
		if (sweeper->held)
			count_held(sweeper);
		to_sweep_ms -= pause_ms;
		if (!sweeper->every_ms || to_sweep_ms > 0)
			continue;
		if (!sweeper_sweep(sweeper))
			return NULL;
		to_sweep_ms = sweeper->every_ms;
	}
}

static void sweeper_destroy(struct gate_sweeper *sweeper)
{
	monitor_release(&sweeper->monitor);
	free(sweeper);
}

enum hx_code gate_sweeper_new(struct gate_store *store, int64_t every_ms, struct gate_held *held,
			      struct gate_sweeper **ret_sweeper, struct hx_error *err)
{
	struct gate_sweeper *sweeper = calloc(1, sizeof *sweeper);
	enum hx_code code;

	ASSERT(every_ms > 0 || held);
	if (!sweeper)
		return error_set(err, HX_NO_MEMORY, "the sweep");
	sweeper->store = store;
	sweeper->every_ms = every_ms;
	sweeper->held = held;
	monitor_init(&sweeper->monitor);
	code = thread_start(&sweeper->thread, sweeper_run, sweeper, "the thread of the sweep", err);
	return HAND_OVER(code, sweeper, sweeper_destroy, ret_sweeper);
}

void gate_sweeper_free(struct gate_sweeper *sweeper)
{
	if (!sweeper)
		return;
	monitor_stop(&sweeper->monitor, &sweeper->stopping, &sweeper->thread);
	sweeper_destroy(sweeper);
}
