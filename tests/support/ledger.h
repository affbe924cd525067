/*
 * What the tables say about some subjects, and the gate records, jobs, accounts and bulks, or the runs, or the batches, of the same
 * numbers, as text that two stores or two runs can be compared by, with the chain of the history checked on the way.
 */
#ifndef HX_TESTS_SUPPORT_LEDGER_H
#define HX_TESTS_SUPPORT_LEDGER_H

#include "db/driver.h"

/* Fails with this many history rows of one subject. */
#define LEDGER_HISTORY_MAX 1000

/* Which tables. */
enum ledger {
	LEDGER_MIXED, /* of subjects and gate records */
	LEDGER_SUBJECTS,
	LEDGER_GATE,
	LEDGER_JOBS,
	LEDGER_ACCOUNTS,
	LEDGER_BULKS,
	LEDGER_RUNS,
	LEDGER_BATCHES,
	LEDGER_FUNCTIONS,
	LEDGER_SCHEDULES,
	LEDGER_HOOKS,
};

/*
 * Appends one line per subject row and history row, and for each of the rest. Subjects are called by their place in ids[]. The claim's
 * end is none, live or past; times and hashes stand there only `with_hashes`. False, with words in *out, when
 * the store fails or a chain is broken. Runs a transaction of its own.
 */
bool ledger_write(struct db *db, enum ledger what, const int64_t ids[], size_t n, bool with_hashes, struct strbuf *out);
/* Rows of a result as text; the unit's subjects are called by their place; the until of a subject_read, the subject of an
 * account and the due_at of an item are left out. */
void ledger_write_rows(const struct unit *unit, const struct unit_result *result, struct strbuf *out);

#endif
