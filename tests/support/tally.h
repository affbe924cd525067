/*
 * Batches for tests that write their units straight into a store: a definition, the unit under way, and what the tables say
 * about an account and its batches, as text and as a list of what is wrong with it.
 *
 *   render   draws an item, deletes what a cancelled one has left, tells of the end
 */
#ifndef HX_TESTS_SUPPORT_TALLY_H
#define HX_TESTS_SUPPORT_TALLY_H

#include "db/driver.h"
#include "flow/batch_item.h"

extern const struct batch_machine *tally_machine(void);
extern const struct batch_policy tally_policy;

/* Items of these costs, each with {"n":N}, as batch_load_slice() takes them. */
struct slice tally_rows(const int64_t costs[], size_t n, struct arena *arena);

/*
 * B1, B2, B5, B7 and B8 of flow/batch.h as far as the tables show them, and A1, A2 of flow/account.h. Words on the first that
 * does not hold, in the arena; NULL: all do. Runs a transaction of its own.
 */
const char *tally_wrong(struct db *db, int64_t account, struct arena *arena);

/*
 * All rows of the account and its batches. EXACT: with all times as they are, so that any write is seen. STORES: of times none,
 * live or past, so that two stores can be compared. False, with words in *out: the store failed.
 */
enum tally_how { TALLY_STORES, TALLY_EXACT };
bool tally_write(struct db *db, int64_t account, enum tally_how how, struct arena *arena, struct strbuf *out);

#endif
