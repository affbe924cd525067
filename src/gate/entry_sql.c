/*
 * Entry locks in the engine's own store: each take and each release is a task in the lane of its name, so that the
 * takers of one node meet in one lane, and share their commits with everybody else's work.
 *
 * A lock is deleted when it is released; rows stay only when their owner died or lost the store. At most once in
 * SWEEP_EVERY_MS, and on a release, where nobody waits, such rows are swept up.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "gate/entry_store.h"

#define SWEEP_EVERY_MS 10000

#define PATIENCE_MS 1000 /* an outer door: who does not get an answer goes on without it, and in time */

struct entry_sql {
	struct entry_locks locks;
	const struct lanes *lanes;
	_Atomic int64_t sweep_after_ns;
	_Atomic size_t in_lanes;
};

static struct entry_ticket *ticket_of(struct seat *seat)
{
	return (struct entry_ticket *)((char *)seat - offsetof(struct entry_ticket, seat));
}

static void take_done(struct seat *seat, enum hx_code code)
{
	struct entry_ticket *ticket = ticket_of(seat);
	struct entry_sql *s = (struct entry_sql *)ticket->locks;
	bool definite = code == HX_OK || code == HX_ENTRY_LOCKED || code == HX_STORE_UNAVAILABLE;

	/* All else (unknown, or cut short by a stop) is no answer of the store. */
	atomic_fetch_sub(&s->in_lanes, 1);
	entry_ticket_taken(ticket, definite ? code : HX_STORE_UNAVAILABLE, /* maybe_ours= */ !definite);
}

static void release_done(struct seat *seat, enum hx_code code)
{
	struct entry_ticket *ticket = ticket_of(seat);
	struct entry_sql *s = (struct entry_sql *)ticket->locks;

	(void)code; /* what could not be released expires */
	atomic_fetch_sub(&s->in_lanes, 1);
	entry_ticket_released(ticket);
}

/* False: the lane is full or stopping. */
static bool entry_sql_submit(struct entry_sql *s, struct entry_ticket *ticket, enum entry_write_kind kind)
{
	struct lane *lane = lanes_of(s->lanes, entry_write_subject(&ticket->lock));
	bool submitted;

	entry_write_init(&ticket->write, &ticket->lock, kind);
	ticket->seat = (struct seat){.task = &ticket->write.task,
				     .done = kind == ENTRY_TAKE ? take_done : release_done,
				     .deadline = mono_add_ms(clock_mono(s->locks.clock), PATIENCE_MS)};
	atomic_fetch_add(&s->in_lanes, 1);
	submitted = lane_submit(lane, &ticket->seat) == HX_OK;
	if (!submitted)
		atomic_fetch_sub(&s->in_lanes, 1);
	return submitted;
}

static void sql_take(struct entry_locks *locks, struct entry_ticket *ticket)
{
	if (!entry_sql_submit((struct entry_sql *)locks, ticket, ENTRY_TAKE))
		entry_ticket_taken(ticket, HX_STORE_UNAVAILABLE, /* maybe_ours= */ false);
}

/* True for one caller in SWEEP_EVERY_MS. */
static bool time_to_sweep(struct entry_sql *s)
{
	struct mono_time now = clock_mono(s->locks.clock);
	int64_t after = atomic_load(&s->sweep_after_ns);

	return now.ns >= after &&
	       atomic_compare_exchange_strong(&s->sweep_after_ns, &after, mono_add_ms(now, SWEEP_EVERY_MS).ns);
}

static void sql_release(struct entry_locks *locks, struct entry_ticket *ticket)
{
	struct entry_sql *s = (struct entry_sql *)locks;

	if (!entry_sql_submit(s, ticket, time_to_sweep(s) ? ENTRY_RELEASE_AND_SWEEP : ENTRY_RELEASE))
		entry_ticket_released(ticket);
}

static void sql_free(struct entry_locks *locks)
{
	ASSERT(atomic_load(&((struct entry_sql *)locks)->in_lanes) == 0);
	free(locks);
}

static const struct entry_store sql = {
	.name = "sql",
	.take = sql_take,
	.release = sql_release,
	.free = sql_free,
};

enum hx_code entry_sql_new(const struct lanes *lanes, struct clock *clock, struct entry_locks **ret_locks,
			   struct hx_error *err)
{
	struct entry_sql *s = calloc(1, sizeof *s);

	ASSERT(lanes && lanes->n > 0);
	if (!s)
		return error_set(err, HX_NO_MEMORY, "entry locks: no memory");
	s->locks = (struct entry_locks){&sql, clock};
	s->lanes = lanes;
	atomic_init(&s->sweep_after_ns, clock_mono(clock).ns);
	*ret_locks = &s->locks;
	return HX_OK;
}
