/*
 * The items of a batch: the units that begin them, end them, decide them, and move the money that this costs or gives back.
 *
 * Money moves in one way: the line that changes an item writes into its `moved` what the account gains (a charge is
 * negative), and two lines after it add the sum of that, over the rows that carry the unit's op, to the balance and to the
 * ledger. Nobody reads a balance to write it, and nobody tells the store an amount.
 *
 *   unit         guard (LOST)                                      moves
 *   start        the batch is RUNNING, ours, no cancel requested   charged − cost: 0 for one that is in doubt and was paid
 *   end          the item is RUNNING under this fence, attempt     a failure that is certain: what was charged
 *   flip         the batch is CANCELLING, ours; cursor             what is charged of each row that flips
 *   resolve      the item is UNKNOWN and undecided                 not done: what was charged
 *   settle       an end was lost, and it was done: undecided, paid,  nothing
 *                and not yet SUCCEEDED
 *   late, accept                                                   nothing
 *
 * An end is guarded by the item alone: a holder that was overtaken may still record what it knows, until another has begun the
 * item anew or teardown has flipped it.
 */
#pragma once

#include "flow/batch.h"

#define ITEM_PENDING "PENDING"
#define ITEM_RUNNING "RUNNING"
#define ITEM_SUCCEEDED "SUCCEEDED"
#define ITEM_FAILED "FAILED"
#define ITEM_UNKNOWN "UNKNOWN"
#define ITEM_ACCEPTED "accepted"
#define ITEM_CANCELLED "cancelled"

/* Columns of item_read, item_list, item_read_left and item_read_doubtful. */
enum {
	ITEM_N,
	ITEM_STATUS,
	ITEM_DECISION,
	ITEM_COST,
	ITEM_CHARGED,
	ITEM_ATTEMPT,
	ITEM_FAILURES,
	ITEM_DOUBT,
	ITEM_FENCE,
	ITEM_DUE_AT,
	ITEM_INPUT,
	ITEM_OUTPUT,
	ITEM_LATE,
	ITEM_ERROR,
	ITEM_COLUMNS
};
void item_read(struct unit *unit, int64_t batch, int64_t n);
/* By n after `after` (-1: from the first on), of those below the batch's total. Empty status, decision: any. */
void item_list(struct unit *unit, int64_t batch, struct slice status, struct slice decision, int64_t after,
	       int64_t limit);
extern const char *const item_statuses[]; /* all there are; ends with NULL */
extern const char *const item_decisions[];
const char *item_status_of(struct slice text);

/*
 * The next one: an item whose holder was lost, or a retry that is due, or the first that was never begun. It renews the lease.
 * LOST: nothing can be begun (the batch is not ours, its cancel is requested, or there is none). REFUSED: too little credit.
 * Row of line 1: the columns of START below.
 */
void item_start(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold);
enum { START_N, START_INPUT, START_ATTEMPT, START_FAILURES, START_DOUBT, START_LOSSES, START_UNSETTLED_SINCE };
/* Was that start won? Holds the batch still. Row: the same; none: it was not, or the item is another's by now. */
void item_look_up_start(struct unit *unit, const struct batch_hold *hold, int64_t op);

/* What a call under the key of an item may have done, or may still do. Stays over a success: teardown voids such keys. */
enum item_doubt {
	DOUBT_NONE,
	DOUBT_NOW,  /* it may have been done: nothing is returned, nor debited again */
	DOUBT_ONCE, /* a probe said that it was not, by then; a call that was sent before may still arrive */
};

struct item_end {
	int64_t n, attempt;
	const char *status; /* ITEM_PENDING: again after rest_ms */
	bool failure;       /* counts against its attempts */
	enum item_doubt doubt;
	bool returns; /* what it was charged: it has certainly not been done */
	int64_t rest_ms;
	int64_t unsettled_since;    /* 0: it is not */
	struct slice output, error; /* .p NULL: none */
};
/* LOST: it has ended already, is another's by now, or was cancelled. */
void item_end(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, const struct item_end *end);
/*
 * Its end was lost, and yet it was done: a success is one of the key, not of the attempt. LOST: it is decided, or it has
 * succeeded already, or what it was charged has been given back since.
 */
void item_settle(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, int64_t n,
		 int64_t attempt, struct slice output);
/*
 * It was done after all, and cancelled, or returned as failed, before that was known: kept, counted, never charged, and its
 * artifact deleted by a job (job_id 0: there is no cleanup). LOST: it is neither, or that is known, or the end had landed.
 */
void item_late(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, const struct item_end *end,
	       int64_t job_id, struct slice job_key, struct slice payload);

/*
 * It was done, and given back as not done, and waits for its next attempt: that one is to ask first, where it can. LOST: it does
 * not wait any more.
 */
void item_doubt(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold,
		const struct item_end *end);

/* By callers, whose hold is that of a reader: batch_hold_of(). */
/* LOST: it is not SUCCEEDED and undecided, or the cancel of its batch is requested. */
void item_accept(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, int64_t n);
/* By a person: SUCCEEDED with this output, or FAILED and returned. LOST: it is not UNKNOWN and undecided, or the cancel is requested. */
void item_resolve(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, int64_t n, bool done,
		  struct slice output);

/* Teardown: items of [from, to) that may have been done, or still be: their keys are voided first. At most `limit`. */
void item_read_doubtful(struct unit *unit, int64_t batch, int64_t from, int64_t to, int64_t limit);
/*
 * Teardown: the undecided ones of [from, to) are cancelled, and what they were charged is given back. Renews the lease.
 * LOST: the batch is not ours, not CANCELLING, or not flipped up to `from`.
 */
void item_flip(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, int64_t from, int64_t to);
/* Cleanup: cancelled items of [from, to) that were ever begun. Renews the lease. LOST: the batch is not ours. Rows of line 1. */
void item_read_left(struct unit *unit, const struct batch_hold *hold, int64_t from, int64_t to);
