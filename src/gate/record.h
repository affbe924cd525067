/*
 * The gate record in SQL, as units and as a task. What a record is, and its states, is drawn in hapax.h.
 *
 *   ACQUIRE   one upsert that takes the row if it is absent, expired, or PROCESSING past its lease with the same
 *             fingerprint and not held; and, in a second unit, a look at the row if it did not
 *   COMPLETE  guarded by the token; repeated by the same holder it changes nothing more
 *   REMOVE    guarded by the token, of a PROCESSING record only; and a look whether another's stands there. One that was
 *             taken over is not deleted, since the holder before may have executed: only its lease ends
 *   LOOK      finds records by the key that the client sent, or without one those whose lease is over, for people: a
 *             scan in slices, the least `after` first
 *   FORGET    removes one by its record key and the token that was seen, unless its lease lasts; for people
 *   SWEEP     guarded by a turn that only one node has at a time; removes up to `budget` expired rows
 *
 * A PROCESSING record expires `ttl` after the end of its lease, never before: while somebody may be at work, the key is
 * taken, however short the ttl. All of them can be repeated with the same token, so a unit whose outcome is unknown is simply asked again, up to
 * GATE_REPEATS_MAX times. Time is the store's (hx_now_ms()).
 */
#ifndef HX_GATE_RECORD_H
#define HX_GATE_RECORD_H

#include <hapax.h>

#include "base/slice.h"
#include "task/task.h"

#define GATE_REPEATS_MAX 3
#define GATE_ENDPOINT_BYTES_MAX 200
#define GATE_SIGHTS_MAX 4 /* in one reply; a LOOK that has found so many stops there */

enum gate_op { GATE_ACQUIRE, GATE_COMPLETE, GATE_REMOVE, GATE_LOOK, GATE_FORGET, GATE_SWEEP };

struct gate_ask {
	enum gate_op op;
	struct hx_gate_claim claim; /* ACQUIRE: all of it. COMPLETE: key, token, ttl. Others: what they need */
	struct slice response;      /* COMPLETE: the stored form, see replay.h. Borrowed until done */
	bool instead;               /* COMPLETE: another response, asked to be kept before this one, may be there */
	struct slice key_text;      /* ACQUIRE: what the client sent, kept for LOOK. LOOK: what is looked for */
	struct slice endpoint;      /* ACQUIRE: "POST /payments", kept for people; cut at GATE_ENDPOINT_BYTES_MAX */
	int64_t budget;             /* SWEEP: records to remove. LOOK: records to look at */
	int64_t after;              /* LOOK: the `next` of the reply before, 0 at first */
	int64_t turn_ms;            /* SWEEP: how long it stays this node's turn */
};

enum gate_verdict {
	GATE_ACQUIRED,    /* ACQUIRE: ours */
	GATE_COMPLETED,   /* ACQUIRE: with its response */
	GATE_IN_FLIGHT,   /* ACQUIRE, FORGET: with lease_left_ms */
	GATE_HELD,        /* ACQUIRE */
	GATE_MISMATCHED,  /* ACQUIRE */
	GATE_STALE,       /* COMPLETE, REMOVE, FORGET: there is no such token; another's */
	GATE_DONE,        /* COMPLETE, REMOVE, LOOK, FORGET, SWEEP */
	GATE_ABSENT,      /* FORGET */
	GATE_UNAVAILABLE, /* any: perhaps it was done, perhaps not */
};

/* A record as LOOK shows it. */
struct gate_sight {
	unsigned char key[HX_GATE_KEY_BYTES];
	unsigned char token[HX_GATE_TOKEN_BYTES]; /* what FORGET asks for */
	enum gate_verdict
		state; /* GATE_COMPLETED, GATE_IN_FLIGHT or GATE_HELD; a lease that is over is in flight with 0 left */
	char endpoint[GATE_ENDPOINT_BYTES_MAX + 1];
	int64_t created_ms, lease_left_ms, response_bytes;
};

struct gate_reply {
	enum gate_verdict verdict;
	int64_t created_ms; /* ACQUIRE: of a record that stands in the way */
	int64_t lease_left_ms;
	int64_t ttl_left_ms; /* ACQUIRE, GATE_COMPLETED: how long the record lives yet; 0: the store does not say */
	struct slice response;
	int64_t removed; /* SWEEP */
	size_t sights_n; /* LOOK */
	struct gate_sight sights[GATE_SIGHTS_MAX];
	int64_t next; /* LOOK: where to go on, 0: that was all */
};

/* One ask as a task. The ask must stay where it is until the task is done. */
struct gate_write {
	struct task task;
	const struct gate_ask *ask;
	struct gate_reply reply; /* its response is valid only while the answer is taken: see `take` */
	/* Called while the rows are there, at the end, if not NULL. */
	void (*answered)(struct gate_write *write);
	/* private */
	int64_t op;
	unsigned repeats;
	bool reading; /* ACQUIRE: it was not to be had */
	enum { GATE_WRITE_NEW, GATE_WRITE_COMMITTING, GATE_WRITE_DONE } at;
};

void gate_write_init(struct gate_write *write, const struct gate_ask *ask);
/* Which lane it goes to: asks about one key always meet in one. */
int64_t gate_write_subject(const struct gate_ask *ask);

/* ---- for units that complete a record along with other work: the transactional gate ---- */

/*
 * Adds the completion, guarded by key, fingerprint and PROCESSING instead of the token: the unit's own verdict proves who
 * executed, whoever has taken the record over meanwhile. It decides nothing (ANY): work that was done stays done when
 * the record has been lost.
 */
void gate_add_completion(struct unit *unit, const struct gate_ask *complete);
/* The same as the unit's first line and its VERDICT, where the unit is all of the work: who has lost the record to another
 * must not do it. */
void gate_add_completion_first(struct unit *unit, const struct gate_ask *complete);
/*
 * The same once more, after such a unit whose outcome is unknown, and guarded by the token too: the record may have been
 * completed by that unit, have expired or been forgotten, and be PROCESSING anew. Lost: COMPLETE tells whether the record
 * is this token's; if it is not, nothing does.
 */
void gate_add_completion_first_again(struct unit *unit, const struct gate_ask *complete);
/*
 * Adds, as the unit's first line and its VERDICT, a record that is COMPLETED from birth: a request that is one unit
 * needs no PROCESSING. Lost: there is a record already, and nothing of the unit happened; ACQUIRE tells what it is.
 */
void gate_add_completed(struct unit *unit, const struct hx_gate_claim *claim, struct slice response);

#endif
