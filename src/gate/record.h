/*
 * The gate record in SQL, as units and as a task. What a record is, and its states, is drawn in hapax.h.
 *
 *   ACQUIRE   one upsert that takes the row if it is absent, expired, or PROCESSING past its lease with the same
 *             fingerprint and not held; and a look at the row if it did not
 *   COMPLETE  guarded by the token; repeated by the same holder it changes nothing more
 *   REMOVE    guarded by the token; and a look whether another's record stands there
 *   LOOK      reads one, for people        FORGET  removes one whatever its token, for people
 *   SWEEP     guarded by a turn that only one node has at a time; removes up to `budget` expired rows
 *
 * All of them can be repeated with the same token, so a unit whose outcome is unknown is simply asked again, up to
 * GATE_REPEATS_MAX times. Time is the store's (hx_now_ms()).
 */
#ifndef HX_GATE_RECORD_H
#define HX_GATE_RECORD_H

#include <hapax.h>

#include "base/slice.h"
#include "task/task.h"

#define GATE_REPEATS_MAX 3

enum gate_op { GATE_ACQUIRE, GATE_COMPLETE, GATE_REMOVE, GATE_LOOK, GATE_FORGET, GATE_SWEEP };

struct gate_ask {
	enum gate_op op;
	struct hx_gate_claim claim; /* ACQUIRE: all of it. COMPLETE: key, token, ttl. Others: what they need */
	struct slice response;      /* COMPLETE: the stored form, see replay.h. Borrowed until done */
	int64_t budget;             /* SWEEP */
	int64_t turn_ms;            /* SWEEP: how long it stays this node's turn */
};

enum gate_verdict {
	GATE_ACQUIRED,    /* ACQUIRE: ours */
	GATE_COMPLETED,   /* ACQUIRE, LOOK: with its response */
	GATE_IN_FLIGHT,   /* ACQUIRE, LOOK: with lease_left_ms */
	GATE_HELD,        /* ACQUIRE, LOOK */
	GATE_MISMATCHED,  /* ACQUIRE */
	GATE_STALE,       /* COMPLETE, REMOVE: there is no such token; another's */
	GATE_DONE,        /* COMPLETE, REMOVE, FORGET, SWEEP */
	GATE_ABSENT,      /* LOOK, FORGET */
	GATE_UNAVAILABLE, /* any: perhaps it was done, perhaps not */
};

struct gate_reply {
	enum gate_verdict verdict;
	int64_t created_ms, lease_left_ms;
	struct slice response;
	int64_t removed; /* SWEEP */
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
	enum { GATE_WRITE_NEW, GATE_WRITE_COMMITTING, GATE_WRITE_DONE } at;
};

void gate_write_init(struct gate_write *write, const struct gate_ask *ask);
/* Which lane it goes to: asks about one key always meet in one. */
int64_t gate_write_subject(const struct gate_ask *ask);

/* ---- for units that complete a record along with other work: the transactional gate ---- */

/* Adds the completion. It decides nothing (ANY): work that was done stays done when the record has been lost. */
void gate_add_completion(struct unit *unit, const struct gate_ask *complete);
/*
 * Adds, as the unit's first line and its VERDICT, a record that is COMPLETED from birth: a request that is one unit
 * needs no PROCESSING. Lost: there is a record already, and nothing of the unit happened; ACQUIRE tells what it is.
 */
void gate_add_completed(struct unit *unit, const struct hx_gate_claim *claim, struct slice response);

#endif
