/*
 * The entry lock: the outermost of the three doors, a short lock per entity and step.
 *
 * It is there for whoever clicks twice: the second click is told "it is being processed" at once, instead of
 * travelling to the claim and losing there. It is never what correctness rests on: claim and commit decide with or
 * without it, it expires by itself, and when its store is down the caller goes on (and counts that).
 *
 *                 take                                    release
 *   IDLE ──────▶ TAKING ──▶ taken(HX_OK)                ─────────▶ RELEASING ──▶ released ──▶ IDLE
 *                      ├──▶ taken(HX_ENTRY_LOCKED)       ─────────▶ at once ────▶ released ──▶ IDLE
 *                      └──▶ taken(HX_STORE_UNAVAILABLE)  ─────────▶ RELEASING where it may have been taken after all
 *
 * So every ticket is released, whatever the answer was, and is free for reuse (or to be freed) when released() is
 * called. A release is guarded by the ticket's token: what has expired and been taken by another stays the other's.
 * It is best effort: what cannot be released expires.
 *
 * Stores: "memory:" (this process only), "sql:" (the engine's own store, through its lanes: two units per lock) and
 * "redis://[:password@]host:port/db", or another of redis.h (one thread, one connection; Redis 2.6.12 or later).
 *
 * The callbacks come on the calling thread, on a lane's or on the service's own; at once or later; never with a lock
 * held, so they may take and release. They must not block.
 */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/slice.h"
#include "gate/entry_write.h"
#include "gate/redis_worker.h"
#include "task/lanes.h"

struct entry_locks;

/* What is locked. The parts are hashed one by one, so that no choice of names makes two keys the same. */
struct entry_key {
	struct slice workspace, workflow, entity, step;
};

/* Zeroed before its first take. The caller owns it and leaves it alone from a take until taken(), from a release until
 * released(). */
struct entry_ticket {
	/* Set by the caller before the take. */
	void (*taken)(struct entry_ticket *ticket, enum hx_code code);
	void (*released)(struct entry_ticket *ticket);

	/* The service's own. */
	struct entry_locks *locks;
	struct entry_lock lock;
	enum { TICKET_IDLE, TICKET_TAKING, TICKET_NOT_OURS, TICKET_MAYBE_OURS, TICKET_RELEASING } state;
	struct redis_errand errand; /* redis */
	struct entry_write write;   /* sql */
	struct seat seat;
};

/*
 * The lanes are needed for "sql:" only and must outlive the service, as must the clock. HX_CONFIG_ERROR for a url
 * that cannot be read and for a Redis that answers and refuses us; one that cannot be reached is no error.
 */
enum hx_code entry_locks_new(const char *url, const struct lanes *lanes, struct clock *clock,
			     struct entry_locks **ret_locks, struct hx_error *err) HX_MUST_CHECK;
/*
 * When nobody takes or releases any more, and for "sql:" when the lanes have stopped (which answers what is still
 * in them). For Redis, takes still waiting are answered HX_STORE_UNAVAILABLE and releases still waiting are carried
 * out; a server that is silent is given up after the timeouts of redis.h. Takes NULL.
 */
void entry_locks_free(struct entry_locks *locks);

/* ttl_ms is from 1 to DURATION_MS_MAX. The key is not needed after the call; the ticket stays until released(). */
void entry_lock_take(struct entry_locks *locks, struct entry_ticket *ticket, const struct entry_key *key,
		     int64_t ttl_ms);
/* After taken(), once; also of a ticket that nobody has taken, which is told at once. */
void entry_lock_release(struct entry_ticket *ticket);
