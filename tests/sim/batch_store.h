/* What the store says of a batch, its items and its money, for the simulator and its checks: see batches.h. */
#ifndef HX_TESTS_SIM_BATCH_STORE_H
#define HX_TESTS_SIM_BATCH_STORE_H

#include "sim/world.h"

/* clang-format off */

/* Backoffs are spread by ids, which are other numbers in every schedule: moments are looked at through a grid. */
#define GRID_MS 10000
#define IN_GRID(at) "(" at " + 9999) / 10000"

/* All that decides the future. The ledger without its order, jobs without their ids. */
static const struct db_stmt stmt_hash_batch = {
	.name = "sim_batch_hash",
	.sql = "SELECT s.version, s.owner IS NULL, s.until, b.cancel_requested, b.needs, b.next_n, b.succeeded, b.failed, b.unknown,"
	       " b.accepted, b.cancelled, b.charged, b.refunded, b.late, b.flipped_to, b.cleanups, b.error IS NULL,"
	       " " IN_GRID("b.due_at") ", (SELECT balance FROM hx_account), (SELECT count(*) FROM hx_job)"
	       " FROM hx_batch b, hx_subject s WHERE s.id = 1",
	.in = "",
	.out = "iiiiiiiiiiiiiiiiiiii",
};

static const struct db_stmt stmt_hash_items = {
	.name = "sim_batch_hash_items",
	.sql = "SELECT status, decision, charged, attempt, failures, doubt, fence, " IN_GRID("due_at") ","
	       " output IS NULL, late IS NULL FROM hx_batch_item ORDER BY n",
	.in = "",
	.out = "ttiiiiiiii",
};

static const struct db_stmt stmt_hash_ledger = {
	.name = "sim_batch_hash_ledger",
	.sql = "SELECT key, amount FROM hx_ledger ORDER BY key",
	.in = "",
	.out = "ti",
};

/* What the check of the books looks at beside these. */
static const struct db_stmt stmt_hash_books = {
	.name = "sim_batch_hash_books",
	.sql = "SELECT s.status, s.owner IS NULL, a.seq, b.total, b.due_at IS NULL, b.due_at > hx_now_ms(),"
	       " (SELECT count(*) FROM hx_job WHERE action = 'tell'), (SELECT count(*) FROM hx_job WHERE action = 'delete'),"
	       " (SELECT group_concat(seq || ' ' || balance || ' ' || reason || ' ' || key, ',') FROM hx_ledger)"
	       " FROM hx_batch b, hx_subject s, hx_account a WHERE s.id = 1",
	.in = "",
	.out = "tiiiiiiit",
};

/* What the checks look at, item by item. */
static const struct db_stmt stmt_items = {
	.name = "sim_batch_items",
	.sql = "SELECT i.n, i.status, i.decision, i.attempt, i.fence, i.charged, i.late IS NOT NULL, b.cancel_requested, s.status,"
	       " s.fence, s.owner IS NOT NULL, coalesce(s.until, 0), coalesce(b.due_at, 0) FROM hx_batch_item i, hx_batch b, hx_subject s WHERE s.id = 1 AND i.n < b.total"
	       " ORDER BY i.n",
	.in = "",
	.out = "ittiiiiitiiii",
};

#define TERMINAL "('COMPLETED', 'FAILED', 'CANCELLED')"
#define ENTRIES(n) "coalesce((SELECT -sum(l.amount) FROM hx_ledger l WHERE l.reason IN ('charge', 'return')" \
	" AND l.key LIKE '%/' || " n " || '/' || l.reason || '/%'), 0)"
#define COUNT(what) "(SELECT count(*) FROM hx_batch_item i, hx_batch b WHERE i.n < b.total AND " what ")"
#define SUM(what, of) "(SELECT coalesce(sum(i." what "), 0) FROM hx_batch_item i, hx_batch b WHERE i.n < b.total AND " of ")"

/* One row: what is wrong, as numbers of findings. */
static const struct db_stmt stmt_check = {
	.name = "sim_batch_check",
	.sql = "SELECT"
	       /* B1: the books */
	       " (SELECT count(*) FROM (SELECT seq, balance, sum(amount) OVER (ORDER BY seq) AS sum,"
	       "   row_number() OVER (ORDER BY seq) AS place FROM hx_ledger) WHERE sum <> balance OR seq <> place),"
	       " (SELECT count(*) FROM hx_account a WHERE a.balance < 0 OR a.seq <> (SELECT count(*) FROM hx_ledger)"
	       "   OR a.balance <> (SELECT sum(amount) FROM hx_ledger)),"
	       /* B1, B2: each item against its entries, and all of them against the batch */
	       " " COUNT("i.charged <> " ENTRIES("i.n")) ","
	       " (SELECT b.charged <> " SUM("charged", "1") " FROM hx_batch b),"
	       " (SELECT b.refunded <> " SUM("charged", "i.decision = 'cancelled'")
	       "   OR b.refunded <> (SELECT coalesce(sum(amount), 0) FROM hx_ledger WHERE reason = 'refund') FROM hx_batch b),"
	       /* B2: what is paid is what was begun and not certainly undone */
	       " " COUNT("i.charged <> CASE WHEN i.status IN ('RUNNING', 'SUCCEEDED', 'UNKNOWN') THEN i.cost"
	       "   WHEN i.status = 'PENDING' AND i.doubt = 1 AND i.charged = i.cost THEN i.cost ELSE 0 END") ","
	       /* counts */
	       " (SELECT b.succeeded <> " COUNT("i.status = 'SUCCEEDED'") " OR b.failed <> " COUNT("i.status = 'FAILED'")
	       "   OR b.unknown <> " COUNT("i.status = 'UNKNOWN'") " OR b.accepted <> " COUNT("i.decision = 'accepted'")
	       "   OR b.cancelled <> " COUNT("i.decision = 'cancelled'") " OR b.late <> " COUNT("i.late IS NOT NULL")
	       "   OR b.next_n <> (SELECT count(*) FROM hx_batch_item WHERE attempt > 0) FROM hx_batch b),"
	       /* B5: never both completed and refunded, nor refunded before it is torn down */
	       " (SELECT s.status NOT IN ('CANCELLING', 'CANCELLED') AND (b.refunded > 0 OR b.cancelled > 0 OR b.flipped_to > 0)"
	       "   FROM hx_batch b, hx_subject s WHERE s.id = 1),"
	       " (SELECT s.status = 'CANCELLED' AND (b.cancelled + b.accepted <> b.total OR b.cancel_requested = 0)"
	       "   FROM hx_batch b, hx_subject s WHERE s.id = 1),"
	       " (SELECT s.status = 'COMPLETED' AND (b.cancel_requested = 1 OR b.succeeded + b.failed + b.unknown <> b.total)"
	       "   FROM hx_batch b, hx_subject s WHERE s.id = 1),"
	       /* B7, and what is held or over is not due */
	       " (SELECT count(*) FROM hx_batch b, hx_subject s, hx_account a WHERE s.id = 1 AND s.status NOT IN " TERMINAL
	       "   AND s.status <> 'PENDING' AND s.owner IS NULL AND b.due_at IS NULL"
	       "   AND NOT (s.status = 'OUT_OF_CREDIT' AND b.needs > a.balance)),"
	       " (SELECT count(*) FROM hx_batch b, hx_subject s WHERE s.id = 1 AND ((s.owner IS NOT NULL AND b.due_at IS NOT NULL)"
	       "   OR (s.status IN " TERMINAL " AND (b.due_at IS NOT NULL OR s.owner IS NOT NULL)))),"
	       " (SELECT count(*) FROM hx_batch b, hx_subject s WHERE s.id = 1 AND b.cancel_requested = 1 AND s.owner IS NULL"
	       "   AND s.status IN ('RUNNING', 'OUT_OF_CREDIT') AND (b.due_at IS NULL OR b.due_at > hx_now_ms())),"
	       /* B8 */
	       " (SELECT count(*) FROM hx_batch_item i, hx_batch b WHERE i.n >= b.total AND (i.attempt > 0 OR i.decision IS NOT NULL"
	       "   OR i.charged > 0)),"
	       /* what follows an end, or a late success */
	       " (SELECT (SELECT count(*) FROM hx_job WHERE action = 'tell') <> (s.status IN " TERMINAL ") FROM hx_subject s WHERE s.id = 1),"
	       " (SELECT ?1 AND (SELECT count(*) FROM hx_job WHERE action = 'delete') <> b.late FROM hx_batch b),"
	       /* a holder that is flagged, or tearing down, says so */
	       " (SELECT s.status IN ('CANCELLING', 'CANCELLED') AND b.cancel_requested = 0 FROM hx_batch b, hx_subject s WHERE s.id = 1)",
	.in = "i",
	.out = "iiiiiiiiiiiiiiiii",
};

/* B6 */
static const struct db_stmt stmt_check_history = {
	.name = "sim_batch_check_history",
	.sql = "SELECT count(*) FROM hx_history WHERE subject = 1 AND (from_status IN " TERMINAL
	       " OR (from_status = 'CANCELLING' AND to_status NOT IN ('CANCELLING', 'CANCELLED')))",
	.in = "",
	.out = "i",
};

/* After the unit that ends it: the totals that are told are those of the batch. */
static const struct db_stmt stmt_told_totals = {
	.name = "sim_batch_told_totals",
	.sql = "SELECT count(*) FROM hx_batch b, hx_subject s, hx_job j WHERE s.id = 1 AND j.action = 'tell'"
	       " AND json_extract(j.payload, '$.to') = s.status AND json_extract(j.payload, '$.version') = s.version"
	       " AND json_extract(j.payload, '$.output.total') = b.total"
	       " AND json_extract(j.payload, '$.output.succeeded') = b.succeeded"
	       " AND json_extract(j.payload, '$.output.failed') = b.failed"
	       " AND json_extract(j.payload, '$.output.unknown') = b.unknown"
	       " AND json_extract(j.payload, '$.output.accepted') = b.accepted"
	       " AND json_extract(j.payload, '$.output.cancelled') = b.cancelled"
	       " AND json_extract(j.payload, '$.output.charged') = b.charged"
	       " AND json_extract(j.payload, '$.output.refunded') = b.refunded",
	.in = "",
	.out = "i",
};

static const struct db_stmt stmt_tell = {
	.name = "sim_batch_tell",
	.sql = "SELECT CASE WHEN s.owner IS NULL THEN '' ELSE ', held by ' || s.owner END ||"
	       " CASE b.cancel_requested WHEN 1 THEN ', cancel requested' ELSE '' END || coalesce(', needs ' || b.needs, '') ||"
	       " coalesce(', due in ' || (b.due_at - hx_now_ms()), '') || CASE WHEN b.flipped_to > 0 THEN ', flipped to '"
	       " || b.flipped_to ELSE '' END || '; balance ' || (SELECT balance FROM hx_account) || '; items ' ||"
	       " (SELECT group_concat(i.n || ' ' || i.status || coalesce(' ' || i.decision, '') || ' paid ' || i.charged || '/' || i.cost ||"
	       "   ' attempt ' || i.attempt || ' fence ' || i.fence || CASE i.doubt WHEN 1 THEN ' doubt' ELSE '' END ||"
	       "   CASE WHEN i.late IS NULL THEN '' ELSE ' late' END, ', ') FROM hx_batch_item i WHERE i.n < b.total)"
	       " FROM hx_batch b, hx_subject s WHERE s.id = 1",
	.in = "",
	.out = "t",
};

static const struct db_stmt stmt_rest = {
	.name = "sim_batch_rest",
	.sql = "SELECT s.status, b.cancel_requested, coalesce(b.needs, -1), a.balance FROM hx_batch b, hx_subject s, hx_account a"
	       " WHERE s.id = 1",
	.in = "",
	.out = "tiii",
};

/* clang-format on */

static inline struct unit_result ask_store(struct sim *sim, const struct db_stmt *stmt)
{
	struct unit unit;

	unit_init(&unit, 0);
	unit_add(&unit, UNIT_ANY, stmt, 0, NULL);
	return sim_run_unit(sim, &unit);
}

#endif
