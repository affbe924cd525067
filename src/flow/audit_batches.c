/*
 * The pass over all batches: one unit for its row and the sums over its items, then its items slice by slice, each beside its
 * entries in the ledger. An item and its entries change in one unit, so a slice fits whenever it is read.
 *
 * The entries are found by their keys, which follow from the item: every attempt may have a charge and a return. A refund is of
 * a whole slice of items; its key has the first item that it flipped and the most attempts that one of them had. So refunds can
 * be added up over all items, but only once the batch is CANCELLED and no more can come.
 */
#include "base/id.h"
#include "flow/audit_parts.h"
#include "flow/batch_item.h"

/* clang-format off */

DB_STMT(stmt_batch, "audit_batch", "i", "iitiiiiiiiiiiii",
	"SELECT b.subject, b.account, s.status, b.cancel_requested, b.total, b.succeeded, b.failed, b.unknown, b.accepted,"
	" b.cancelled, b.charged, b.refunded, b.late, b.expired, a.subject"
	" FROM (SELECT * FROM hx_batch WHERE subject > ?1 ORDER BY subject LIMIT 1) b"
	" LEFT JOIN hx_subject s ON s.id = b.subject LEFT JOIN hx_account a ON a.subject = b.account");
enum {
	BATCH, ACCOUNT, STATUS, FLAG, TOTAL, SUCCEEDED, FAILED, UNKNOWN, ACCEPTED,
	CANCELLED, CHARGED, REFUNDED, LATE, EXPIRED, ACCOUNT_THERE
};

#define COUNT(condition) "CAST(coalesce(sum(CASE WHEN " condition " THEN 1 ELSE 0 END), 0) AS bigint)"
#define SUM(what) "CAST(coalesce(sum(" what "), 0) AS bigint)"
DB_STMT(stmt_sums, "audit_batch_sums", "i", "iiiiiiiiiii",
	"SELECT count(*)," COUNT("i.status = 'SUCCEEDED'") "," COUNT("i.status = 'FAILED'") ","
	COUNT("i.status = 'UNKNOWN'") "," COUNT("i.decision = 'accepted'") "," COUNT("i.decision = 'cancelled'") ","
	SUM("i.charged") "," SUM("CASE WHEN i.decision = 'cancelled' THEN i.charged ELSE 0 END") ","
	COUNT("i.late IS NOT NULL") "," COUNT("i.decision IS NULL AND i.status IN ('PENDING', 'RUNNING')") ","
	" CAST(coalesce(max(i.attempt), 0) AS bigint)"
	" FROM hx_batch b JOIN hx_batch_item i ON i.batch = b.subject AND i.n < b.total"
	" WHERE b.subject = (SELECT min(subject) FROM hx_batch WHERE subject > ?1)");
enum {
	SUM_ITEMS, SUM_SUCCEEDED, SUM_FAILED, SUM_UNKNOWN, SUM_ACCEPTED, SUM_CANCELLED, SUM_CHARGED, SUM_REFUNDED, SUM_LATE,
	SUM_OPEN, SUM_ATTEMPTS
};

/* The next batch that has items at all. */
DB_STMT(stmt_next_items, "audit_next_items", "i", "i",
	"SELECT min(batch) FROM hx_batch_item WHERE batch > ?1");

/*
 * ?1 batch   ?2 from   ?3 to   ?4 account   ?5 prefix of its keys   ?6 the most attempts, where refunds are added up; else 0
 * An entry is looked up by its whole key, and not joined: in a plan made while the ledger is small a join reads all of the account's
 * entries for each item, and such a plan is kept while the ledger grows.
 */
#define ENTRIES(reason)                                                                                                \
	"(SELECT " SUM("(SELECT l.amount FROM hx_ledger l WHERE l.account = ?4"                                        \
	" AND l.key = ?5 || p.n || '/" reason "/' || t.a)") " FROM tries t"
DB_STMT(stmt_items, "audit_items", "iiiiti", "ittiiiiiiii",
	"WITH RECURSIVE part AS (SELECT i.n, i.status, i.decision, i.cost, i.charged, i.attempt, i.doubt, i.fence"
	" FROM hx_batch b JOIN hx_batch_item i ON i.batch = b.subject AND i.n < b.total"
	" WHERE b.subject = ?1 AND b.expired = 0 AND i.n >= ?2 AND i.n < ?3),"
	" tries(a) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT a + 1 FROM tries WHERE a < ?6"
	" OR a < (SELECT max(attempt) FROM part))"
	" SELECT p.n, p.status, p.decision, p.cost, p.charged, p.attempt, p.doubt, p.fence,"
	" (SELECT fence FROM hx_subject WHERE id = ?1), "
	ENTRIES("charge") " WHERE t.a <= p.attempt) + " ENTRIES("return") " WHERE t.a <= p.attempt),"
	" CASE WHEN ?6 > 0 AND p.decision = 'cancelled' THEN " ENTRIES("refund") ") ELSE 0 END FROM part p ORDER BY p.n");
enum {
	N, ITEM_IS, DECISION, COST, ITEM_WAS_CHARGED, ATTEMPT, DOUBT, ITEM_HELD, BATCH_HELD, MOVED, REFUND
};

/* clang-format on */

static void batches_ask(struct auditor *a, struct unit *unit)
{
	if (!a->batch) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_batch, db_int(a->key));
		UNIT_ADD(unit, UNIT_ANY, &stmt_sums, db_int(a->key));
		UNIT_ADD(unit, UNIT_ANY, &stmt_next_items, db_int(a->key));
		return;
	}
	UNIT_ADD(unit, UNIT_ANY, &stmt_items, db_int(a->batch), db_int(a->seq), db_int(a->seq + AUDIT_ITEMS_SLICE),
		 db_int(a->account), db_text(strbuf_slice(&a->prefix)), db_int(a->refunds_known ? a->attempts : 0));
}

/* ---- a batch ---- */

static bool audit_batches_is(const struct db_value *row, const char *status)
{
	return slice_is(row[STATUS].s, status);
}

static bool sums_fit(struct audit_finding *f, const struct audit_place *place, const struct db_value *row,
		     const struct db_value *sums)
{
	return audit_equal(f, place, "items", row[TOTAL].i, sums[SUM_ITEMS].i) &&
	       audit_equal(f, place, "succeeded", sums[SUM_SUCCEEDED].i, row[SUCCEEDED].i) &&
	       audit_equal(f, place, "failed", sums[SUM_FAILED].i, row[FAILED].i) &&
	       audit_equal(f, place, "unknown", sums[SUM_UNKNOWN].i, row[UNKNOWN].i) &&
	       audit_equal(f, place, "accepted", sums[SUM_ACCEPTED].i, row[ACCEPTED].i) &&
	       audit_equal(f, place, "cancelled", sums[SUM_CANCELLED].i, row[CANCELLED].i) &&
	       audit_equal(f, place, "charged", sums[SUM_CHARGED].i, row[CHARGED].i) &&
	       audit_equal(f, place, "refunded", sums[SUM_REFUNDED].i, row[REFUNDED].i) &&
	       audit_holds(f, place, row[LATE].i >= sums[SUM_LATE].i, "late", "as many as its items have, or more",
			   slice_str("fewer"));
}

/* Never both completed and refunded; and an end is one. */
static bool end_fits(struct audit_finding *f, const struct audit_place *place, const struct db_value *row, int64_t open)
{
	bool undone = row[CANCELLED].i || row[REFUNDED].i;

	return audit_holds(f, place, !audit_batches_is(row, BATCH_COMPLETED) || (!undone && !row[FLAG].i && !open),
			   "status", "COMPLETED without a cancel, a refund or an item that is open", row[STATUS].s) &&
	       audit_holds(f, place,
			   !audit_batches_is(row, BATCH_CANCELLED) ||
				   (row[FLAG].i && row[CANCELLED].i + row[ACCEPTED].i == row[TOTAL].i),
			   "status", "CANCELLED when every item is decided", row[STATUS].s) &&
	       audit_holds(f, place,
			   !undone || audit_batches_is(row, BATCH_CANCELLING) || audit_batches_is(row, BATCH_CANCELLED),
			   "status", "CANCELLING or CANCELLED: items of it are cancelled", row[STATUS].s);
}

static bool batch_fits(struct audit_finding *f, const struct db_value *row, const struct db_value *sums)
{
	struct audit_place place = {.id = row[BATCH].i};

	if (!audit_holds(f, &place, row[STATUS].type != DB_NULL, "subject", "the subject of this batch",
			 slice_str("there is none")) ||
	    !audit_holds(f, &place, row[ACCOUNT_THERE].type != DB_NULL, "account", "the account of this batch",
			 slice_str("there is none")))
		return false;
	if (row[EXPIRED].i)
		return audit_holds(f, &place, row[EXPIRED].i == 1 || sums[SUM_ITEMS].i == 0, "items",
				   "none: it is expired", slice_str("some")) &&
		       end_fits(f, &place, row, /* open= */ 0);
	return sums_fit(f, &place, row, sums) && end_fits(f, &place, row, sums[SUM_OPEN].i);
}

static void begin_items(struct auditor *a, const struct db_value *row, const struct db_value *sums)
{
	a->counts.batches++;
	a->batch = row[EXPIRED].i || !row[TOTAL].i ? 0 : row[BATCH].i;
	a->left = row[TOTAL].i;
	a->account = row[ACCOUNT].i;
	a->seq = 0;
	a->attempts = sums[SUM_ATTEMPTS].i;
	a->refunds_known = audit_batches_is(row, BATCH_CANCELLED) && a->attempts > 0;
	a->refunds = -row[REFUNDED].i; /* and it comes to 0 */
	strbuf_reset(&a->prefix);
	strbuf_addf(&a->prefix, "/%s/", id_text("batch", row[BATCH].i).text);
}

static bool take_batch(struct auditor *a, const struct unit_result *result)
{
	const struct db_rows *batches = &result->rows[0];
	const struct db_value *row = batches->n ? db_cell(batches, 0, 0) : NULL;
	const struct db_value *sums = db_cell(&result->rows[1], 0, 0), *next = db_cell(&result->rows[2], 0, 0);
	struct audit_place place = {.id = cell_int(next)};
	bool fine;

	fine = audit_holds(&a->finding, &place, next->type == DB_NULL || (row && next->i >= row[BATCH].i), "batch",
			   "the batch of these items", slice_str("there is none"));
	if (fine && row)
		fine = batch_fits(&a->finding, row, sums);
	if (!fine)
		audit_name(a, "batch");
	if (!fine || !row)
		return false;
	a->key = row[BATCH].i;
	begin_items(a, row, sums);
	return true;
}

/* ---- its items ---- */

/* What it is charged fits what became of it. */
static bool charge_fits(struct audit_finding *f, const struct audit_place *place, const struct db_value *row)
{
	bool decided = row[DECISION].type != DB_NULL;
	int64_t cost = row[COST].i, charged = row[ITEM_WAS_CHARGED].i;
	struct slice status = row[ITEM_IS].s;

	if (row[ATTEMPT].i == 0 || slice_is(status, ITEM_FAILED) ||
	    (!decided && slice_is(status, ITEM_PENDING) && row[DOUBT].i == 0))
		return audit_equal(f, place, "charged", 0, charged);
	if (slice_is(status, ITEM_SUCCEEDED) || (!decided && slice_is(status, ITEM_RUNNING)))
		return audit_equal(f, place, "charged", cost, charged);
	return audit_holds(f, place, charged == 0 || charged == cost, "charged", "its cost, or 0",
			   slice_str("another amount"));
}

static bool item_fits(struct auditor *a, const struct db_value *row)
{
	struct audit_place place = {a->batch, "item", row[N].i};

	return audit_holds(&a->finding, &place, item_status_of(row[ITEM_IS].s) != NULL, "status",
			   "one that an item can have", row[ITEM_IS].s) &&
	       charge_fits(&a->finding, &place, row) &&
	       audit_equal(&a->finding, &place, "ledger", -row[ITEM_WAS_CHARGED].i, row[MOVED].i) &&
	       audit_holds(&a->finding, &place, row[ITEM_HELD].i <= row[BATCH_HELD].i, "fence",
			   "none that its batch has not had", slice_str("a higher one"));
}

/* A slice that is not full is the last one, also because retention came in between: then there is nothing left to add up. */
static bool take_items(struct auditor *a, const struct unit_result *result)
{
	const struct db_rows *rows = &result->rows[0];
	struct audit_place place = {.id = a->batch};
	bool fine = true;

	for (size_t i = 0; i < rows->n && fine; i++) {
		const struct db_value *row = db_cell(rows, i, 0);

		fine = item_fits(a, row);
		a->refunds = audit_sum(a->refunds, row[REFUND].i);
		a->counts.items++;
	}
	a->left -= (int64_t)rows->n;
	a->seq += AUDIT_ITEMS_SLICE;
	if (fine && rows->n == AUDIT_ITEMS_SLICE && a->left)
		return true;
	if (fine && a->refunds_known && !a->left)
		fine = audit_equal(&a->finding, &place, "refunds", 0, a->refunds);
	audit_name(a, "batch");
	a->batch = 0;
	return fine;
}

static bool batches_take(struct auditor *a, const struct unit_result *result)
{
	return a->batch ? take_items(a, result) : take_batch(a, result);
}

const struct audit_pass audit_batches = {.name = "batches", .ask = batches_ask, .take = batches_take};
