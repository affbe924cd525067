/*
 * The gate record in SQL, as units and as a task. What a record is, and its states, is drawn in hapax.h.
 *
 *   ACQUIRE   one upsert that takes the row if it is absent, expired, or PROCESSING past its lease with the same
 *             caller and fingerprint and not held; and, in a second unit, a look at the row if it did not
 *             Before both, for a request that version 0.1 may have kept a record of under another key: a look at that one,
 *             which nobody writes any more
 *   COMPLETE  guarded by the token; repeated by the same holder it changes nothing more
 *   REMOVE    guarded by the token, of a PROCESSING record only; and a look whether another's stands there. One that was
 *             taken over is not deleted, since the holder before may have executed: only its lease ends
 *   LOOK      finds records by the key that the client sent, or without one those that are sought, for people: a scan in
 *             slices, the least `after` first
 *   FORGET    removes one by its record key and the token that was seen, unless its lease lasts; for people
 *   RESOLVE   ends one that is PROCESSING, by its record key and the token that was seen, unless its lease lasts: with a
 *             response it is COMPLETED, under a token of its own, so that a holder who comes late is stale; without one it
 *             is removed. A person has found out what became of it
 *   TALLY     how many are held, and which were the last to become so
 *   SWEEP     guarded by a turn that only one node has at a time; removes up to `budget` expired rows
 *
 * A PROCESSING record expires `ttl` after the end of its lease, never before: while somebody may be at work, the key is
 * taken, however short the ttl. All of them can be repeated with the same token, so a unit whose outcome is unknown is simply asked again, up to
 * GATE_REPEATS_MAX times. Time is the store's (hx_now_ms()).
 */
#pragma once

#include <hapax.h>

#include "base/arena.h"
#include "task/task.h"

#define GATE_REPEATS_MAX 3
#define GATE_ENDPOINT_BYTES_MAX 200
#define GATE_ABOUT_BYTES_MAX 280
#define GATE_KEY_SHOWN_BYTES_MAX 180 /* of the key that the client sent */
#define GATE_SIGHTS_MAX 3            /* in one reply; a LOOK that has found so many stops there */

enum gate_op {
	GATE_ACQUIRE,
	GATE_COMPLETE,
	GATE_REMOVE,
	GATE_LOOK,
	GATE_FORGET,
	GATE_RESOLVE,
	GATE_TALLY,
	GATE_SWEEP,
};

/* What a LOOK without a key is for. */
enum gate_sought {
	GATE_SEEK_OPEN, /* PROCESSING, and the lease is over: lost or held */
	GATE_SEEK_HELD,
	GATE_SEEK_ALL,
};

struct gate_ask {
	enum gate_op op;
	struct hx_gate_claim claim; /* ACQUIRE: all of it. COMPLETE: key, token, ttl. Others: what they need */
	struct slice response;      /* COMPLETE, RESOLVE: the stored form, see replay.h. Borrowed until done */
	bool instead;               /* COMPLETE: another response, asked to be kept before this one, may be there */
	struct slice key_text;      /* ACQUIRE: what the client sent, kept for LOOK. LOOK: what is looked for */
	struct slice endpoint;      /* ACQUIRE: "POST /payments", kept for people; cut at GATE_ENDPOINT_BYTES_MAX */
	struct slice about; /* ACQUIRE: whose record it is, kept for people; at most GATE_ABOUT_BYTES_MAX of JSON */
	struct slice
		old_key; /* ACQUIRE: where version 0.1 kept it (api/api_gate.c), borrowed until done; {0}: nowhere */
	enum gate_sought sought;                     /* LOOK without a key */
	unsigned char resolver[HX_GATE_TOKEN_BYTES]; /* RESOLVE: the token that it is COMPLETED under */
	int64_t budget;                              /* SWEEP: records to remove. LOOK: records to look at */
	int64_t after;                               /* LOOK: the `next` of the reply before, 0 at first */
	int64_t turn_ms;                             /* SWEEP: how long it stays this node's turn */
};

enum gate_verdict {
	GATE_ACQUIRED,     /* ACQUIRE: ours */
	GATE_COMPLETED,    /* ACQUIRE: with its response. RESOLVE: there is nothing to resolve */
	GATE_IN_FLIGHT,    /* ACQUIRE, FORGET, RESOLVE: with lease_left_ms */
	GATE_HELD,         /* ACQUIRE */
	GATE_MISMATCHED,   /* ACQUIRE */
	GATE_OTHER_CALLER, /* ACQUIRE: whatever else is to be said of it is not for this one */
	GATE_STALE,        /* COMPLETE, REMOVE, FORGET, RESOLVE: there is no such token; another's */
	GATE_DONE,         /* COMPLETE, REMOVE, LOOK, FORGET, RESOLVE, TALLY, SWEEP */
	GATE_ABSENT,       /* FORGET, RESOLVE */
	GATE_UNAVAILABLE,  /* any: perhaps it was done, perhaps not; certainly not, if the reply is `certain` */
};

/* A record as LOOK shows it. */
struct gate_sight {
	unsigned char key[HX_GATE_KEY_BYTES];
	unsigned char token[HX_GATE_TOKEN_BYTES]; /* what FORGET asks for */
	enum gate_verdict
		state; /* GATE_COMPLETED, GATE_IN_FLIGHT or GATE_HELD; a lease that is over is in flight with 0 left */
	char endpoint[GATE_ENDPOINT_BYTES_MAX + 1];
	char about[GATE_ABOUT_BYTES_MAX + 1];        /* empty: of version 0.1, or not a gate's */
	char key_text[GATE_KEY_SHOWN_BYTES_MAX + 1]; /* cut where it is longer */
	int64_t created_ms, lease_left_ms, response_bytes;
	int64_t over_ms; /* for how long the lease has been over */
};

struct gate_reply {
	enum gate_verdict verdict;
	bool certain;       /* GATE_UNAVAILABLE: nothing was done, and nothing will be */
	int64_t created_ms; /* ACQUIRE: of a record that stands in the way */
	int64_t lease_left_ms;
	int64_t ttl_left_ms; /* ACQUIRE, GATE_COMPLETED: how long the record lives yet; 0: the store does not say */
	struct slice response;
	int64_t removed; /* SWEEP */
	int64_t held;    /* TALLY */
	size_t sights_n; /* LOOK, TALLY */
	struct gate_sight sights[GATE_SIGHTS_MAX];
	int64_t next; /* LOOK: where to go on, 0: that was all */
};

/* One ask as a task. The ask must stay where it is until the task is done. */
struct gate_write {
	struct task task;
	const struct gate_ask *ask;
	struct gate_reply reply; /* its response is valid only while the answer is taken: see `answered` */
	/* Called while the rows are there, at the end, if not NULL. */
	void (*answered)(struct gate_write *write);
	/* private */
	int64_t op;
	unsigned repeats;
	bool doubt;   /* some try of it may have been carried out */
	bool old;     /* ACQUIRE: a record of version 0.1 is looked for */
	bool reading; /* ACQUIRE: it was not to be had */
};

/* Copies texts that a store has, cut to what a sight shows; not in the middle of a character. */
void gate_sight_describe(struct gate_sight *sight, struct slice endpoint, struct slice about, struct slice key_text);
/* "POST /payments", for people; cut where it is longer. p NULL: the arena has failed. */
struct slice gate_endpoint_text(struct slice method, struct slice path, struct arena *arena);
/* Is there a caller, and if so: the bytes to be stored. All zero: {NULL, 0}. */
struct slice gate_claim_caller(const struct hx_gate_claim *claim);

void gate_write_init(struct gate_write *write, const struct gate_ask *ask);
/* Which lane it goes to: asks about one key always meet in one. */
int64_t gate_write_subject(const struct gate_ask *ask);

/* ---- for units that complete a record along with other work: the transactional gate ---- */

/*
 * Adds the completion, guarded by key, caller, fingerprint and PROCESSING instead of the token: the unit's own verdict proves who
 * executed, whoever has taken the record over meanwhile. It decides nothing (ANY): work that was done stays done when
 * the record has been lost.
 */
void gate_add_completion(struct unit *unit, const struct gate_ask *complete);
/*
 * The same as the unit's first line and its VERDICT, where the unit is all of the work: who has lost the record to another
 * must not do it. With `again`, after such a unit whose outcome is unknown, it is guarded by the token too: the record may have
 * been completed by that unit, have expired or been forgotten, and be PROCESSING anew. Lost: COMPLETE tells whether the record
 * is this token's; if it is not, nothing does.
 */
void gate_add_completion_first(struct unit *unit, const struct gate_ask *complete, bool again);
/*
 * Adds, as the unit's first line and its VERDICT, a record that is COMPLETED from birth: a request that is one unit
 * needs no PROCESSING. Lost: there is a record already, and nothing of the unit happened; ACQUIRE tells what it is.
 */
void gate_add_completed(struct unit *unit, const struct hx_gate_claim *claim, struct slice response);
