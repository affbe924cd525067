/*
 * The books of batches, as an outsider reads them from the store: one statement, so one moment, over a connection of its own.
 *
 * In every moment, of every batch and its account:
 *  - the balance is the sum of the ledger;
 *  - charged = Σ charged of the items = charge entries − return entries of the ledger;
 *  - refunded = Σ charged of the cancelled items = refund entries of the ledger: never the marker without the money, nor the
 *    money without the marker;
 *  - the counts are those of the items, and each item is charged as its status says;
 *  - COMPLETED: nothing refunded, nothing cancelled, no cancel requested, nothing open. CANCELLED: every item is decided.
 *    FAILED: its creation was never acknowledged, and there is nothing in it.
 * And from one moment to the next:
 *  - COMPLETED, CANCELLED and FAILED are never left, CANCELLING only for CANCELLED, and a flag that was set stays;
 *  - once the flag was seen no item is begun (attempts) and nothing is charged;
 *  - refunded and cancelled never fall.
 */
#ifndef HX_TESTS_SUPPORT_BOOKS_H
#define HX_TESTS_SUPPORT_BOOKS_H

#include "base/id.h"
#include "support/artifacts.h"
#include "support/store.h"

struct books_row {
	int64_t subject;
	char id[ID_TEXT_BYTES], status[20];
	bool flagged;
	/* as the batch's row says */
	int64_t total, next_n, succeeded, failed, unknown, accepted, cancelled, charged, refunded, late;
	/* as its items say */
	struct {
		int64_t n, succeeded, failed, unknown, accepted, cancelled, charged, refunded, late;
		int64_t open;     /* undecided, and PENDING or RUNNING */
		int64_t attempts; /* of all */
		int64_t odd;      /* whose charge does not fit their status */
	} items;
	/* as the ledger says */
	int64_t charges, returns, refunds, refund_entries;
	int64_t balance, ledger; /* of its account */
};

struct books;

/* Somebody who looks all the while, from now on. The store has its schema. Fails the test. */
struct books *books_watch(const struct store *store);
/* Words on the first thing that was wrong, NULL: nothing. From any thread; the words stay. */
const char *books_wrong(struct books *books);
size_t books_looks(struct books *books);
/* The last look; fails the test when anything has been wrong, or when it never saw anything. Returns the number of looks. */
size_t books_stop(struct books *books);
/* Takes NULL, and one that was stopped. */
void books_free(struct books *books);

/* One look. False: the store could not be read (err says why). Rows are freed by the caller. Fails nothing. */
bool books_read(struct db *db, struct books_row **ret_rows, size_t *ret_n, struct hx_error *err);
/* A connection that only reads. Fails the test. */
struct db *books_open(const struct store *store);
/* Words on what is wrong with a row by itself; NULL: nothing. */
const char *books_row_wrong(const struct books_row *row);

/* Prints what is known of batches that have not ended. */
void books_show_open(const struct store *store);

struct books_sum {
	size_t batches, completed, cancelled, items, late;
	size_t failed; /* not among them: their loader was lost, and nobody was told that they exist */
	int64_t charged, refunded;
};
/*
 * When all is calm: all batches have ended, the books balance, item by item (ledger entries of each one), the history of each
 * is whole (support/audit.h), and of all items the artifacts (NULL: there are none) are there exactly where one was paid for
 * and not cancelled. Fails the test.
 */
void books_check(const struct store *store, struct artifacts *artifacts, struct books_sum *ret_sum);

#endif
