/*
 * Where entry locks live: three stores with one table. Included by entry_lock.c, the stores and their tests only.
 */
#pragma once

#include "gate/entry_lock.h"
#include "gate/redis.h"

#define ENTRY_MEMORY_LOCKS_MAX 65536
#define ENTRY_REDIS_QUEUE_MAX 4096

struct entry_store {
	const char *name;
	/*
	 * Takes ticket->lock if nobody has a lock of that name that has not expired, in one atomic step, and calls
	 * entry_ticket_taken() exactly once. It may come before the function returns.
	 */
	void (*take)(struct entry_locks *locks, struct entry_ticket *ticket);
	/* Removes the lock of that name and token, if there is one, in one atomic step; entry_ticket_released(). */
	void (*release)(struct entry_locks *locks, struct entry_ticket *ticket);
	void (*free)(struct entry_locks *locks);
};

/* What all stores start with; they embed it as their first member. */
struct entry_locks {
	const struct entry_store *store;
	struct clock *clock;
};

/* locks_max is how many may be taken at once; one more is HX_STORE_UNAVAILABLE. */
enum hx_code entry_memory_new(size_t locks_max, struct clock *clock, struct entry_locks **ret_locks,
			      struct hx_error *err) HX_MUST_CHECK;
enum hx_code entry_sql_new(const struct lanes *lanes, struct clock *clock, struct entry_locks **ret_locks,
			   struct hx_error *err) HX_MUST_CHECK;
/* queue_max is how many tickets may wait for the server; one more is HX_STORE_UNAVAILABLE. */
enum hx_code entry_redis_new(const struct redis_url *url, size_t queue_max, struct clock *clock,
			     struct entry_locks **ret_locks, struct hx_error *err) HX_MUST_CHECK;

/* The answers of a store. With maybe_ours the lock may stand although the take failed: its release is then sent. */
void entry_ticket_taken(struct entry_ticket *ticket, enum hx_code code, bool maybe_ours);
void entry_ticket_released(struct entry_ticket *ticket);
