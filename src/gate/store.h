/*
 * Where gate records live: memory, SQL (the engine's store or one of the gate's own), Redis, or a table of functions of
 * the user's (struct hx_gate_store in hapax.h, which also has the record's states). One service, asked by tickets.
 *
 *   gate_ask() ──▶ the store ──▶ ticket->done(ticket), exactly once; perhaps before gate_ask() returns, perhaps in a
 *                                thread of the store's; never with a lock held. It must not block; it may ask again.
 *
 * Every ask is one atomic step that can be repeated with the same token: a store that lost an answer repeats it, and
 * only if that fails too is the verdict GATE_UNAVAILABLE, which then means "perhaps", or "certainly not" where the reply
 * says so. All of it has one deadline, the ticket's: who asks is answered by then, whatever the store does. What was
 * not sent by then never is; what was sent and is carried out after all is nobody's, and ends with its lease.
 */
#pragma once

#include <hapax.h>

#include "base/clock.h"
#include "base/log.h"
#include "gate/record.h"
#include "gate/redis_worker.h"
#include "task/lanes.h"

struct gate_store;

struct gate_ticket {
	/* Set by the caller, and left alone until done. */
	struct gate_ask ask;
	void (*done)(struct gate_ticket *ticket);
	struct mono_time by; /* when it is given up; ns 0: after the store's timeout. Set anew for each ask */
	/* Set by the store. The response is valid only during done(), and there until it asks again. */
	struct gate_reply reply;

	/* The store's own. */
	struct gate_store *store;
	struct mono_time asked;
	struct redis_errand errand; /* redis */
	struct gate_write write;    /* sql */
	struct seat seat;
};

struct gate_store_kind {
	const char *name;
	void (*ask)(struct gate_store *store, struct gate_ticket *ticket);
	void (*free)(struct gate_store *store);
	/* It answers as fast as anything could be recalled, and may keep another response than it was asked to. */
	bool in_memory;
};

/* What all stores start with; they embed it as their first member. */
struct gate_store {
	const struct gate_store_kind *kind;
	struct clock *clock;
	struct recall *recall;      /* NULL: every acquisition is asked of the store */
	int64_t timeout_ms;         /* of an ask whose ticket names no moment; 0: as long as it takes */
	struct mono_time old_until; /* until then it may have records of version 0.1; ns 0: never had any */
};

/* The ticket is the store's until done. An acquisition that can be recalled does not reach it. */
void gate_ask(struct gate_store *store, struct gate_ticket *ticket);
/* For the stores: the reply stands in the ticket. The ticket is the caller's again, and may be gone on return. */
void gate_ticket_done(struct gate_ticket *ticket);

/* From now on what was answered lately is recalled (recall.h), for as long as there is memory for it; but for a store in
 * memory, which has no use for it. Before the first ask. */
void gate_store_recall(struct gate_store *store);
/* It was made by version 0.1, and brought up to date perhaps just now: its records live for GATE_OLD_MS yet. */
#define GATE_OLD_MS (INT64_C(25) * 60 * 60 * 1000) /* the API's ttl was 24 h, from the end of a lease of 60 s */
void gate_store_note_old(struct gate_store *store);
/* May there be records under keys that version 0.1 has made? */
bool gate_store_has_old(const struct gate_store *store);
/* Would an acquisition be answered at once? A hint. */
bool gate_is_recalled(struct gate_store *store, const struct hx_gate_claim *claim);
/* A unit that carried its record has been won: the same as a COMPLETE that is done. */
void gate_note_completed(struct gate_store *store, const struct hx_gate_claim *claim, struct slice response);

#define GATE_MEMORY_RECORDS_MAX 100000
#define GATE_MEMORY_BYTES_MAX (256u << 20)

/* One more record than that is GATE_UNAVAILABLE: nothing is ever thrown out to make room. */
enum hx_code gate_memory_new(size_t records_max, size_t bytes_max, struct clock *clock, struct gate_store **ret_store,
			     struct hx_error *err) HX_MUST_CHECK;
/* The lanes must outlive the store and have stopped (which answers what is in them) before it is freed. */
enum hx_code gate_sql_new(const struct lanes *lanes, struct clock *clock, struct gate_store **ret_store,
			  struct hx_error *err) HX_MUST_CHECK;
/* HX_CONFIG_ERROR for a url that cannot be read and for a Redis that answers and refuses us, HX_STORE_UNAVAILABLE for one
 * that cannot be reached. *ret_durable: it says that it syncs every write (appendfsync always) and throws out none (noeviction). */
enum hx_code gate_redis_new(const char *url, struct clock *clock, struct gate_store **ret_store, bool *ret_durable,
			    struct hx_error *err) HX_MUST_CHECK;
/* The table is copied; its functions are called in the thread that asks. It has nothing for LOOK, FORGET, RESOLVE and TALLY: to ask for
 * these is a mistake, as its owner has tools of his own. HX_CONFIG_ERROR: a function is missing. */
enum hx_code gate_user_new(const struct hx_gate_store *table, struct clock *clock, struct gate_store **ret_store,
			   struct hx_error *err) HX_MUST_CHECK;
/* Nobody asks any more, and every gate_ask() has returned. What still waits in it is answered. Takes NULL. */
void gate_store_free(struct gate_store *store);
