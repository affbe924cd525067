/*
 * Entry locks in this process: records of the gate's own store in memory (store_memory.c), which are acquired and removed and never
 * completed. A record without a lifetime after its lease is gone with the lease, and makes room for others then. The store
 * answers before it returns.
 */
#include <stdlib.h>

#include "base/digits.h"
#include "gate/entry_store.h"
#include "gate/store.h"

struct entry_memory {
	struct entry_locks locks;
	struct gate_store *store;
};

static void entry_memory_answered(struct gate_ticket *ticket)
{
	(void)ticket; /* whoever asks is still there, and looks at its reply */
}

static enum gate_verdict entry_memory_ask(struct entry_locks *locks, enum gate_op op, const struct entry_lock *lock)
{
	struct gate_ticket ticket = {.ask = {.op = op, .claim.lease_ms = lock->ttl_ms}, .done = entry_memory_answered};
	struct hx_gate_claim *claim = &ticket.ask.claim;
	bool read = hex_read(slice_str(lock->name), sizeof claim->key, claim->key) &&
		    hex_read(slice_str(lock->token), sizeof claim->token, claim->token);

	ASSERT(read);
	gate_ask(((struct entry_memory *)locks)->store, &ticket);
	return ticket.reply.verdict;
}

static void memory_take(struct entry_locks *locks, struct entry_ticket *ticket)
{
	enum gate_verdict verdict = entry_memory_ask(locks, GATE_ACQUIRE, &ticket->lock);

	entry_ticket_taken(ticket,
			   verdict == GATE_ACQUIRED    ? HX_OK
			   : verdict == GATE_IN_FLIGHT ? HX_ENTRY_LOCKED
						       : HX_STORE_UNAVAILABLE,
			   /* maybe_ours= */ false);
}

static void memory_release(struct entry_locks *locks, struct entry_ticket *ticket)
{
	(void)entry_memory_ask(locks, GATE_REMOVE, &ticket->lock); /* another's stays the other's */
	entry_ticket_released(ticket);
}

static void memory_free(struct entry_locks *locks)
{
	gate_store_free(((struct entry_memory *)locks)->store);
	free(locks);
}

static const struct entry_store memory = {
	.name = "memory",
	.take = memory_take,
	.release = memory_release,
	.free = memory_free,
};

enum hx_code entry_memory_new(size_t locks_max, struct clock *clock, struct entry_locks **ret_locks,
			      struct hx_error *err)
{
	struct entry_memory *m = calloc(1, sizeof *m);
	enum hx_code code = m ? gate_memory_new(locks_max, GATE_MEMORY_BYTES_MAX, clock, &m->store, err)
			      : error_set(err, HX_NO_MEMORY, "entry locks: no memory");

	ASSERT(locks_max >= 1 && locks_max <= ENTRY_MEMORY_LOCKS_MAX);
	if (code) {
		free(m);
		return code;
	}
	m->locks = (struct entry_locks){&memory, clock};
	*ret_locks = &m->locks;
	return HX_OK;
}
