/*
 * What the tables say about some subjects, and the gate records, jobs and accounts, or the runs, or the batches, of the same
 * numbers, as text that two stores or two runs can be compared by, with the chain of the history checked on the way.
 */
#ifndef HX_TESTS_SUPPORT_LEDGER_H
#define HX_TESTS_SUPPORT_LEDGER_H

#include "db/driver.h"

/* Fails with this many history rows of one subject. */
#define LEDGER_HISTORY_MAX 1000

/*
 * Appends one line per subject row and history row. Subjects are called by their place in ids[]. The claim's
 * end is none, live or past; times and hashes stand there only `with_hashes`. False, with words in *out, when
 * the store fails or a chain is broken. Runs a transaction of its own.
 */
bool ledger_write(struct db *db, const int64_t ids[], size_t n, bool with_hashes, struct strbuf *out);
/* The same of subjects that are runs. */
bool ledger_write_runs(struct db *db, const int64_t ids[], size_t n, bool with_hashes, struct strbuf *out);
/* The same of subjects that are batches. */
bool ledger_write_batches(struct db *db, const int64_t ids[], size_t n, bool with_hashes, struct strbuf *out);
/* Rows of a result as text; the unit's subjects are called by their place; the until of a subject_read, the subject of an
 * account and the due_at of an item are left out. */
void ledger_write_rows(const struct unit *unit, const struct unit_result *result, struct strbuf *out);

#endif
