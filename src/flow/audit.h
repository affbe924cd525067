/*
 * The audit: re-derives the promises from what is in the store, and names the first that was broken. `hapax audit`.
 *
 *   auditor_ask ─▶ a unit that reads a slice ─▶ (one transaction) ─▶ auditor_take ─▶ ask … until there is nothing left to read,
 *   or something is wrong. Pure: who runs the units, and how, is another's business (engine/audit.h).
 *
 * It reads beside servers that write, and never gives a false alarm: whatever is compared was read in one unit, which sees one
 * moment of the store, or never changes any more. A history and a ledger are only appended to, so a long one may be followed
 * over many slices; its subject is compared in the slice that has its last row. What retention takes in between is gone as a
 * whole, and is judged as what it is by then.
 *
 * The passes, each over a table by its key, in slices, so that memory stays flat and no transaction is long:
 *   histories   every subject with its history (audit_chain.h), and with the row of its noun: a claim has owner and time or
 *               neither, what has ended is held by nobody and says when it ended, what retention has left has its head.
 *               No history without a subject. A job of a run was made by a unit of that run.
 *   nouns       no entity, run, batch, job or account without its subject
 *   steps       no step without its run; a step was ended, and undone, by a unit of its run
 *   slots       no slot of a limit (slot.h) without its run; who has ended has none, and nobody holds one whom nobody is at
 *   ledgers     seq without gaps, each balance the one before plus the amount, the account's at the end; each entry of a batch
 *               has an item for its marker, of that price, begun so often
 *   batches     counts and sums are those of the items; each item is charged what its entries say; refunds are what cancelled
 *               items were charged; never both completed and refunded
 *
 * What it cannot see. The chain has no key: who may write every table can rewrite a history and the rows of its nouns from
 * some row on, so that all fits. What gives such a one away is what stands elsewhere (steps, jobs, items, ledgers), and a
 * head that somebody noted outside. Of what retention has stripped only the head, the counts and the sums are left. What an
 * action did in the world, what a table of the user's says, and the gate's records are not looked at.
 */
#pragma once

#include "flow/audit_entry.h"

#define AUDIT_SUBJECTS_SLICE 512 /* also of all that is read by one key */
#define AUDIT_ROWS_SLICE 4096    /* of histories */
#define AUDIT_ENTRIES_SLICE 512
#define AUDIT_ITEMS_SLICE 500
#define AUDIT_ARENA_BYTES_MAX (256u << 20) /* rows of one slice; texts are bounded by what they were let in with */

struct audit_counts {
	int64_t subjects, history_rows, steps, accounts, entries, batches, items;
};

struct auditor {
	struct audit_counts counts;
	struct audit_finding finding; /* .there: it ended with it */
	const char *pass;             /* what is being read, for people; NULL: it is over */
	int percent;                  /* of this pass, by the ids; -1: unknown */
	/* private */
	unsigned at;
	unsigned table;           /* nouns: which */
	int64_t first, last;      /* the ids that there were at the start, for the percentage */
	int64_t key, seq;         /* where the next slice begins */
	struct audit_chain chain; /* of a subject whose history goes on in the next slice */
	int64_t balance;          /* of the ledger that goes on */
	bool looks_up;            /* ledgers: the markers of `entries` are next */
	bool more;                /* ledgers: and there are entries after them */
	size_t entries_n;
	struct audit_entry entries[AUDIT_ENTRIES_SLICE]; /* their markers are looked up in the next unit */
	int64_t batch, account, left, attempts, refunds; /* of the batch whose items are being read; batch 0: none */
	bool refunds_known;
	struct strbuf list, prefix;
};

void auditor_init(struct auditor *a);
void auditor_release(struct auditor *a);
/* The next unit, into memory that need not be zeroed. False: it is over. */
bool auditor_ask(struct auditor *a, struct unit *unit);
/* What that unit has read. Texts are borrowed for the call. */
void auditor_take(struct auditor *a, const struct unit_result *result);
