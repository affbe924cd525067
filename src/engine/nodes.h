/*
 * This node among the others: the number for its ids, leased from the store (flow/node_lease.h) and renewed while it lives,
 * which is its heartbeat; and how many nodes are alive.
 *
 *   nodes_join (at the start, directly) ─▶ number ─ renewed every NODES_RENEW_MS ─┬ … ─▶ the process ends: it lapses
 *                                             ▲                                    └ it is another's by now ─┐
 *                                             └───────────── takes another, which the lanes use from then on ┘
 *
 * A leased number stands for NODE_NUMBERS of those in ids: one for each lane and one for the pulse.
 *
 * A node that was out of sight, paused or cut off, may come back to a store that was restored meanwhile, and whose fences were
 * raised (fences.h): with its lease it hears of the floor, and gives out fences above it from then on.
 *
 * A name is what histories, claims and the log call it, for people: no guard asks for it, the fence does (flow/subject.h), and the
 * token of this table is drawn anew for each life. But who reads that `vm` holds a claim wants to know which one. So a node that is
 * started with the name of one that is alive is called NAME#NUMBER, its number being leased to it alone. It looks after it has taken
 * its number: of two that start at once, at least the later one sees the other. One that was killed counts as alive until its time here
 * is over (NODE_LEASE_MS); one that has been stopped does not. Two that come to have one name later, because one was out of
 * sight for longer than its lease when the other was started, are told of in the log.
 *
 * With each renewal it hears what time it is in the store, and judges that by its own monotonic clock (base/steady_clock.h). The
 * statements themselves go by the store's clock, whatever it says: a jump of it is told, and retention waits, but claims and keys
 * end by it.
 *
 * A node that cannot renew says so and goes on: its claims are guarded by their own leases, and its number is safe as long
 * as there are others to give away first. What an id that was made twice would cost is one insert that fails.
 */
#pragma once

#include "base/id.h"
#include "base/log.h"
#include "base/steady_clock.h"
#include "flow/node_lease.h"
#include "task/lanes.h"

struct engine_metrics;

#define NODE_NUMBERS ((ID_NODE_MAX + 1) / NODES_MAX)
#define NODES_LANES_MAX (NODE_NUMBERS - 1)
#define NODES_RENEW_MS (NODE_LEASE_MS / 4)
#define NODE_NAME_MAX 64                     /* bytes of a name that is given */
#define NODE_NAME_BYTES (NODE_NAME_MAX + 16) /* with what makes it unique */

struct nodes {
	const struct lanes *lanes;
	struct engine_metrics *metrics;
	struct log *log;
	struct clock *clock;
	const char *name; /* as others see it: as given, or `unique` */
	char unique[NODE_NAME_BYTES];
	int64_t token; /* of this life of the process */
	struct seat seat;
	struct node_lease lease;
	_Atomic int64_t *fence_floor; /* the engine's */
	struct mono_time renewed;
	bool late, twin;                 /* it has been told */
	struct steady_clock store_clock; /* what is thought of the clock of the store's machine, on PostgreSQL */
};

/* Leases a number on a connection that nobody else uses. HX_BUSY: all are taken. */
enum hx_code nodes_join(struct nodes *nodes, struct db *db, const char *name, struct clock *clock,
			struct hx_error *err) HX_MUST_CHECK;
/* After the lanes have stopped, on a connection of its own: others need not wait for its time to be over. */
void nodes_leave(struct nodes *nodes, const char *url);
/* The first of its numbers for ids. */
uint32_t nodes_number(const struct nodes *nodes);
/* Keeps it, and the floor of fences up to date, from then on. */
enum hx_code nodes_start(struct nodes *nodes, const struct lanes *lanes, _Atomic int64_t *fence_floor,
			 struct engine_metrics *metrics, struct log *log) HX_MUST_CHECK;
