/*
 * One entry of a ledger: what its key, its reason and its sign must agree on. Pure; used by the pass over all ledgers
 * (audit_ledgers.c) and by whoever reads the ledger of a bundle (evidence.h).
 *
 *   1             the opening: key /opening
 *   credit        a key of the user's, above 0
 *   of a batch    /batch_ID/ITEM/REASON/ATTEMPT: a charge below 0, a return or a refund above
 */
#pragma once

#include "flow/audit_chain.h"

/* What its key says. */
struct audit_entry {
	int64_t account, seq, amount;
	bool of_batch; /* only then the rest means something */
	int64_t batch, n, attempt;
	enum { ENTRY_CHARGE, ENTRY_RETURN, ENTRY_REFUND } kind;
};

/* The row. Texts are borrowed. */
struct audit_entry_row {
	int64_t account, seq, amount, balance;
	struct slice key, reason;
};

/* False: it is none that there can be, which is noted. */
bool audit_entry_read(const struct audit_entry_row *row, const struct audit_place *place, struct audit_entry *ret_entry,
		      struct audit_finding *finding);
/* It follows one with this seq and balance; neither: 0, 0. Its own is the sum, and not below 0. */
bool audit_entry_follows(const struct audit_entry_row *row, const struct audit_place *place, int64_t seq,
			 int64_t balance, struct audit_finding *finding);
