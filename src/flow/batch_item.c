/* The statements of batch_item.h. Each guard stands on a line of its own. */
#include "flow/batch_item.h"

#include "flow/batch_parts.h"
#include "flow/job.h"
#include "flow/page.h"

/* clang-format off */

#define COLUMNS_SQL                                                                                                    \
	"n, status, decision, cost, charged, attempt, failures, doubt, fence, due_at, input, output, late, error"
#define OUT "ittiiiiiiitttt"

DB_STMT(stmt_read, "item_read", "ii", OUT,
	"SELECT " COLUMNS_SQL " FROM hx_batch_item WHERE batch = ?1 AND n = ?2"
	" AND n < (SELECT total FROM hx_batch WHERE subject = ?1)");

/* They have no gaps, so a slice (flow/page.h) is so many numbers, and a page without filters is full before. */
DB_STMT(stmt_list, "item_list", "iitti", OUT,
	"SELECT " COLUMNS_SQL " FROM hx_batch_item WHERE batch = ?1 AND n > ?2 AND n <= ?2 + " LIST_SLICE_SQL
	" AND n < (SELECT total FROM hx_batch WHERE subject = ?1)"
	" AND (?3 = '' OR status = ?3) AND (?4 = '' OR decision = ?4) ORDER BY n LIMIT ?5");

#define INTO_LEDGER "INSERT INTO hx_ledger (account, seq, amount, key, reason, balance, op, at)"

DB_STMT(stmt_slice, "item_slice", "ii", "ii",
	"SELECT CASE WHEN total > ?2 + 1 + " LIST_SLICE_SQL " THEN " LIST_SLICE_SQL " ELSE 0 END, ?2 + 1 + " LIST_SLICE_SQL
	" FROM hx_batch WHERE subject = ?1");

/* ---- start and end ---- */

/* Of one whose holder was lost nobody knows whether it was done; it was paid for, and is not paid for again. */
#define STARTING(fence, op)                                                                                            \
	"UPDATE hx_batch_item SET status = 'RUNNING', attempt = attempt + 1,"                                          \
	" losses = losses + CASE WHEN status = 'RUNNING' THEN 1 ELSE 0 END,"                                           \
	" doubt = CASE WHEN status = 'RUNNING' THEN 1 ELSE doubt END, moved = charged - cost, charged = cost,"         \
	" unsettled_since = CASE WHEN status = 'RUNNING' THEN NULL ELSE unsettled_since END,"                          \
	" fence = " fence ", op = " op ", due_at = NULL"

#define START_COLUMNS "n, input, attempt, failures, doubt, losses, unsettled_since"
#define START_OUT "itiiiii"

DB_STMT(stmt_start, "item_start", "iii", START_OUT,
	STARTING("?2", "?3") " WHERE batch = ?1 AND n = " ITEM_CHOICE
	" AND EXISTS (SELECT 1 FROM hx_batch WHERE subject = ?1 AND cancel_requested = 0)" /* mutant: start-flagged */
	" RETURNING " START_COLUMNS);

/*
 * The same for many units at once, of any batches and accounts: p1 batch, p2 fence, p3 op, p4 lease, p5 account, p6 prefix of the
 * ledger's keys, p7 now. Each unit has its place among those of its batch, and takes the item at that place of what ITEM_CHOICE
 * would choose one after the other: first what is open and nobody's (`open`), then items that were never begun. Where the
 * account cannot pay for all, none is begun: the lines then tell which.
 */
#define OPEN_ONES(class, due, which)                                                                                   \
	"(SELECT " class " AS class, " due " AS due, n FROM hx_batch_item WHERE batch = w.of_batch AND " which
#define DUE_ONES " AND due_at <= (SELECT hx_now_ms()) ORDER BY due_at, n LIMIT w.units)"

DB_STMT(stmt_start_many, "item_start_many", "iiiiiti", START_OUT, "",
	.set_sql = "WITH holding AS (SELECT u.ord, u.p1 AS of_batch, u.p2 AS holder, u.p3 AS by_op, u.p4 AS lease, u.p5 AS payer,"
	" u.p6 AS prefix, u.p7 AS now, b.next_n, b.total, row_number() OVER (PARTITION BY u.p1 ORDER BY u.ord) AS place"
	" FROM {u} JOIN hx_subject s ON s.id = u.p1 JOIN hx_batch b ON b.subject = u.p1"
	" WHERE b.account = u.p5"
	" AND s.fence = u.p2" /* mutant: many-start-fence */
	" AND s.owner IS NOT NULL AND s.status = 'RUNNING'"
	" AND b.cancel_requested = 0" /* mutant: many-start-flagged */
	"), open AS (SELECT w.of_batch, c.n, row_number() OVER (PARTITION BY w.of_batch ORDER BY c.class, c.due, c.n) AS place,"
	" count(*) OVER (PARTITION BY w.of_batch) AS items FROM"
	" (SELECT of_batch, holder, count(*) AS units FROM holding GROUP BY of_batch, holder) w, LATERAL ("
	OPEN_ONES("0", "0", ITEM_IS_OPEN " AND status = 'RUNNING' AND fence < w.holder ORDER BY n LIMIT w.units)")
	" UNION ALL " OPEN_ONES("1", "due_at", ITEM_IS_PAID DUE_ONES)
	" UNION ALL " OPEN_ONES("2", "due_at", ITEM_IS_OPEN " AND status = 'PENDING' AND NOT (doubt = 1 AND charged = cost)" DUE_ONES)
	") c), choice AS (SELECT h.*, coalesce(o.n, h.next_n + h.place - 1"
	" - coalesce((SELECT max(f.items) FROM open f WHERE f.of_batch = h.of_batch), 0)) AS item, o.n IS NULL AS fresh"
	" FROM holding h LEFT JOIN open o ON o.of_batch = h.of_batch AND o.place = h.place),"
	" priced AS (SELECT c.*, i.charged - i.cost AS money, i.attempt + 1 AS try, a.balance AS had, a.seq AS entries,"
	" sum(i.charged - i.cost) OVER (PARTITION BY c.payer) AS all_money,"
	" sum(i.charged - i.cost) OVER (PARTITION BY c.payer ORDER BY c.ord) AS so_far,"
	" count(*) FILTER (WHERE i.charged <> i.cost) OVER (PARTITION BY c.payer ORDER BY c.ord) AS entry"
	" FROM choice c JOIN hx_batch_item i ON i.batch = c.of_batch AND i.n = c.item JOIN hx_account a ON a.subject = c.payer"
	" WHERE NOT c.fresh OR c.item < c.total),"
	" paid AS (SELECT * FROM priced"
	" WHERE had + all_money >= 0" /* mutant: many-start-balance */
	"), kept AS (UPDATE hx_subject s SET until = hx_now_ms() + x.lease"
	" FROM (SELECT of_batch, max(lease) AS lease FROM paid GROUP BY of_batch) x WHERE s.id = x.of_batch),"
	" charge AS (UPDATE hx_account a SET balance = balance + x.money, seq = seq + x.entries FROM"
	" (SELECT payer, CAST(sum(money) AS bigint) AS money, count(*) FILTER (WHERE money <> 0) AS entries FROM paid GROUP BY payer) x"
	" WHERE a.subject = x.payer),"
	" entry AS (" INTO_LEDGER " SELECT payer, entries + entry, money,"
	" prefix || item || '/charge/' || try, 'charge', had + so_far, by_op, now FROM paid WHERE money <> 0),"
	" counted AS (UPDATE hx_batch b SET charged = charged - x.money, next_n = greatest(next_n, x.item + 1) FROM"
	" (SELECT of_batch, CAST(sum(money) AS bigint) AS money, max(item) AS item FROM paid GROUP BY of_batch) x"
	" WHERE b.subject = x.of_batch), started AS (" STARTING("x.holder", "x.by_op") " FROM paid x"
	" WHERE batch = x.of_batch AND n = x.item RETURNING x.ord, " START_COLUMNS ")"
	" SELECT ord, " START_COLUMNS " FROM started");

#define STARTED "batch = ?1 AND " ITEM_IS_OPEN " AND status = 'RUNNING' AND fence = ?2 AND op = ?3"

DB_STMT(stmt_look_up_start, "item_look_up_start", "iii", "itiiiii",
	"SELECT n, input, attempt, failures, doubt, losses, unsettled_since FROM hx_batch_item WHERE " STARTED);

DB_STMT(stmt_end, "item_end", "iiiiitiiiitti", "",
	"UPDATE hx_batch_item SET status = ?6, failures = failures + ?7, doubt = ?8,"
	" moved = CASE WHEN ?9 = 1 THEN charged ELSE 0 END, charged = CASE WHEN ?9 = 1 THEN 0 ELSE charged END,"
	" op = ?5, due_at = CASE WHEN ?6 = 'PENDING' THEN hx_now_ms() + ?10 END, output = ?11, error = ?12,"
	" unsettled_since = ?13"
	" WHERE batch = ?1 AND n = ?2 AND status = 'RUNNING'"
	" AND fence = ?3 AND attempt = ?4" /* mutant: item-end-fence */
	" AND decision IS NULL",
	.fenced = true);

/* The same for many units at once that give nothing back: as item_end without its ?9; p13 the account. */
DB_STMT(stmt_end_many, "item_end_many", "iiiiitiiittii", "", "",
	.set_sql = "WITH ended AS (UPDATE hx_batch_item SET status = u.p6, failures = failures + u.p7, doubt = u.p8, moved = 0, op = u.p5,"
	" due_at = CASE WHEN u.p6 = 'PENDING' THEN hx_now_ms() + u.p9 END, output = u.p10, error = u.p11, unsettled_since = u.p12"
	" FROM {u} WHERE batch = u.p1 AND n = u.p2 AND status = 'RUNNING'"
	" AND fence = u.p3 AND attempt = u.p4" /* mutant: many-end-fence */
	" AND decision IS NULL RETURNING u.ord, u.p1 AS of_batch, u.p13 AS payer, u.p6 AS to_status),"
	" counted AS (UPDATE hx_batch b SET succeeded = succeeded + x.s, failed = failed + x.f, unknown = unknown + x.u FROM"
	" (SELECT of_batch, payer, count(*) FILTER (WHERE to_status = 'SUCCEEDED') AS s,"
	" count(*) FILTER (WHERE to_status = 'FAILED') AS f, count(*) FILTER (WHERE to_status = 'UNKNOWN') AS u"
	" FROM ended GROUP BY of_batch, payer) x WHERE b.subject = x.of_batch AND b.account = x.payer)"
	" SELECT ord FROM ended",
	.counted = true);

/* One item is changed, and no money moves. */
#define SET_ITEM(what, op) "UPDATE hx_batch_item SET " what ", moved = 0, op = " op " WHERE batch = ?1 AND n = ?2"
/* A count of the batch goes up by one. */
#define DB_STMT_COUNT(variable, name, column)                                                                          \
	DB_STMT(variable, name, "i", "", "UPDATE hx_batch SET " column " = " column " + 1 WHERE subject = ?1")

/* ?2 n   ?3 attempt */
#define DONE_AFTER_ALL                                                                                                 \
	"batch = ?1 AND n = ?2 AND attempt >= ?3 AND decision IS NULL AND charged = cost"                              \
	" AND status IN ('RUNNING', 'PENDING', 'UNKNOWN')"

DB_STMT(stmt_settle_count, "item_settle_count", "iii", "",
	"UPDATE hx_batch SET succeeded = succeeded + 1, unknown = unknown - x.n FROM"
	" (SELECT CASE WHEN status = 'UNKNOWN' THEN 1 ELSE 0 END AS n FROM hx_batch_item WHERE " DONE_AFTER_ALL ") x"
	" WHERE subject = ?1");

DB_STMT(stmt_settle, "item_settle", "iiiti", "",
	"UPDATE hx_batch_item SET status = 'SUCCEEDED', output = ?4, error = NULL, due_at = NULL, doubt = 1, moved = 0,"
	" op = ?5 WHERE " DONE_AFTER_ALL);

DB_STMT(stmt_late, "item_late", "iitii", "",
	SET_ITEM("late = ?3", "?4")
	" AND late IS NULL" /* mutant: late-twice */
	" AND (decision = 'cancelled' OR status = 'FAILED')" /* mutant: late-of-a-good-one */
	" AND NOT (status = 'SUCCEEDED' AND attempt = ?5)" /* mutant: late-though-landed -> " AND ?5 = ?5" */
);

DB_STMT(stmt_doubt, "item_doubt", "iiii", "",
	SET_ITEM("doubt = 1", "?4") " AND attempt >= ?3 AND status = 'PENDING' AND decision IS NULL");

DB_STMT_COUNT(stmt_late_count, "item_late_count", "late");

/* ---- money ---- */

/* ?1 account   ?2 batch   ?3 op   ?4 n from   ?5 n to: what the rows that this unit has changed move. */
#define MOVED(rows)                                                                                                    \
	"(SELECT CAST(coalesce(sum(moved), 0) AS bigint) AS money, min(n) AS n, max(attempt) AS attempt,"              \
	" count(*) AS items FROM hx_batch_item WHERE " rows ") x"
#define OF_START "batch = ?2 AND " ITEM_IS_OPEN " AND status = 'RUNNING' AND op = ?3"
#define OF_RANGE "batch = ?2 AND n >= ?4 AND n < ?5 AND op = ?3"

#define RAISED " balance = balance + x.money" /* mutant: read-modify-write -> #define RAISED " balance = (SELECT l.balance FROM hx_ledger l WHERE l.account = ?1 AND l.seq = 1) + x.money" */
#define BALANCE(rows)                                                                                                  \
	"UPDATE hx_account SET seq = seq + CASE WHEN x.money <> 0 THEN 1 ELSE 0 END," RAISED " FROM " MOVED(rows)      \
	" WHERE subject = ?1 AND balance + x.money >= 0"

/* After the balance. A key that exists is a data error, and the whole unit is nothing: an item moves money once a turn. */
#define ENTRY(rows, prefix, reason, at)                                                                                \
	INTO_LEDGER " SELECT a.subject, a.seq, x.money, "  \
	prefix " || x.n || '/' || " reason " || '/' || x.attempt, " reason ", a.balance, ?3, " at                        \
	" FROM hx_account a, " MOVED(rows) " WHERE a.subject = ?1 AND x.money <> 0"

DB_STMT(stmt_charge, "item_charge", "iii", "", BALANCE(OF_START));

DB_STMT(stmt_charge_entry, "item_charge_entry", "iiiti", "",
	ENTRY(OF_START, "?4", "'charge'", "?5"));

DB_STMT(stmt_charge_count, "item_charge_count", "iii", "",
	"UPDATE hx_batch SET charged = charged - x.money, next_n = CASE WHEN x.n < next_n THEN next_n ELSE x.n + 1 END"
	" FROM " MOVED(OF_START) " WHERE subject = ?2 AND account = ?1");

DB_STMT(stmt_give, "item_give", "iiiii", "", BALANCE(OF_RANGE));

DB_STMT(stmt_give_entry, "item_give_entry", "iiiiitti", "",
	ENTRY(OF_RANGE, "?6", "?7", "?8"));

DB_STMT(stmt_end_count, "item_end_count", "iiiiiiii", "",
	"UPDATE hx_batch SET charged = charged - x.money, succeeded = succeeded + ?6, failed = failed + ?7,"
	" unknown = unknown + ?8 FROM " MOVED(OF_RANGE) " WHERE subject = ?2 AND account = ?1");

/* ---- decisions ---- */

#define NOT_FLAGGED " AND EXISTS (SELECT 1 FROM hx_batch WHERE subject = ?1 AND cancel_requested = 0)"

DB_STMT(stmt_accept, "item_accept", "iii", "",
	SET_ITEM("decision = 'accepted'", "?3") " AND status = 'SUCCEEDED' AND decision IS NULL"
	NOT_FLAGGED /* mutant: accept-flagged */
);

DB_STMT_COUNT(stmt_accept_count, "item_accept_count", "accepted");

DB_STMT(stmt_resolve, "item_resolve", "iiiit", "",
	"UPDATE hx_batch_item SET status = CASE WHEN ?4 = 1 THEN 'SUCCEEDED' ELSE 'FAILED' END, output = ?5,"
	" moved = CASE WHEN ?4 = 1 THEN 0 ELSE charged END, charged = CASE WHEN ?4 = 1 THEN charged ELSE 0 END, op = ?3"
	" WHERE batch = ?1 AND n = ?2 AND status = 'UNKNOWN' AND decision IS NULL" NOT_FLAGGED);

/* ---- teardown ---- */

DB_STMT(stmt_read_doubtful, "item_read_doubtful", "iiii", OUT,
	"SELECT " COLUMNS_SQL " FROM hx_batch_item WHERE batch = ?1 AND n >= ?2 AND n < ?3 AND decision IS NULL"
	" AND (status IN ('RUNNING', 'UNKNOWN')"
	" OR doubt > 0" /* mutant: void-of-open-ones */
	") ORDER BY n LIMIT ?4");

/* Nobody of ours is at those that are RUNNING; what became of them is not known. */
DB_STMT(stmt_flip_cursor, "item_flip_cursor", "iii", "",
	"UPDATE hx_batch SET flipped_to = ?3, unknown = unknown + (SELECT count(*) FROM hx_batch_item"
	" WHERE batch = ?1 AND " ITEM_IS_OPEN " AND status = 'RUNNING' AND n >= ?2 AND n < ?3) WHERE subject = ?1"
	" AND flipped_to = ?2"
	" AND total >= ?3");

DB_STMT(stmt_flip, "item_flip", "iiii", "",
	"UPDATE hx_batch_item SET decision = 'cancelled', op = ?4,"
	" moved = charged," /* mutant: refund-of-cost -> " moved = cost," */
	" status = CASE WHEN status = 'RUNNING' THEN 'UNKNOWN' ELSE status END"
	" WHERE batch = ?1 AND n >= ?2 AND n < ?3"
	" AND decision IS NULL" /* mutant: flip-decided */
);

DB_STMT(stmt_flip_count, "item_flip_count", "iiiii", "",
	"UPDATE hx_batch SET refunded = refunded + x.money, cancelled = cancelled + x.items FROM " MOVED(OF_RANGE)
	" WHERE subject = ?2 AND account = ?1");

DB_STMT(stmt_read_left, "item_read_left", "iii", OUT,
	"SELECT " COLUMNS_SQL " FROM hx_batch_item WHERE batch = ?1 AND n >= ?2 AND n < ?3 AND attempt > 0"
	" AND decision = 'cancelled'" /* mutant: cleanup-of-undecided -> " AND decision IS NULL" */
	" ORDER BY n");

/* clang-format on */

const char *const item_statuses[] = {ITEM_PENDING, ITEM_RUNNING, ITEM_SUCCEEDED, ITEM_FAILED, ITEM_UNKNOWN, NULL};
const char *const item_decisions[] = {ITEM_ACCEPTED, ITEM_CANCELLED, NULL};

const char *item_status_of(struct slice text)
{
	for (const char *const *status = item_statuses; *status; status++)
		if (slice_is(text, *status))
			return *status;
	return NULL;
}

void item_read(struct unit *unit, int64_t batch, int64_t n)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read, db_int(batch), db_int(n));
}

void item_list(struct unit *unit, int64_t batch, struct slice status, struct slice decision, int64_t after,
	       int64_t limit)
{
	/* No item has such a number. Not as a difference in the statements: the range of the index would have one end only. */
	if (after > INT64_MAX - 1 - LIST_SLICE)
		after = INT64_MAX - 1 - LIST_SLICE;
	UNIT_ADD(unit, UNIT_ANY, &stmt_list, db_int(batch), db_int(after), db_text(status), db_text(decision),
		 db_int(limit));
	UNIT_ADD(unit, UNIT_ANY, &stmt_slice, db_int(batch), db_int(after));
}

/* ---- money ---- */

/* Rows [from, to) that the unit has changed give their money back, and whoever waits for money hears of it. */
static void add_giving(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, int64_t from,
		       int64_t to, const char *reason)
{
	UNIT_ADD(unit, UNIT_MUST, &stmt_give, db_int(hold->account), db_int(hold->subject), db_int(stamp->op),
		 db_int(from), db_int(to));
	UNIT_ADD(unit, UNIT_ANY, &stmt_give_entry, db_int(hold->account), db_int(hold->subject), db_int(stamp->op),
		 db_int(from), db_int(to), db_text(hold->ledger_prefix), db_str(reason), db_int(stamp->at.ms));
	batch_wake_waiting(unit, hold->account);
}

static void add_end_count(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, int64_t n,
			  int64_t succeeded, int64_t failed, int64_t unknown)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_end_count, db_int(hold->account), db_int(hold->subject), db_int(stamp->op),
		 db_int(n), db_int(n + 1), db_int(succeeded), db_int(failed), db_int(unknown));
}

/* ---- start and end ---- */

void item_start(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold)
{
	batch_keep(unit, hold, BATCH_RUNNING);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_start, db_int(hold->subject), db_int(hold->fence), db_int(stamp->op));
	UNIT_ADD(unit, UNIT_MUST, &stmt_charge, db_int(hold->account), db_int(hold->subject), db_int(stamp->op));
	UNIT_ADD(unit, UNIT_ANY, &stmt_charge_entry, db_int(hold->account), db_int(hold->subject), db_int(stamp->op),
		 db_text(hold->ledger_prefix), db_int(stamp->at.ms));
	UNIT_ADD(unit, UNIT_ANY, &stmt_charge_count, db_int(hold->account), db_int(hold->subject), db_int(stamp->op));
	UNIT_TOGETHER(unit, /* rows= */ 1, &stmt_start_many, db_int(hold->subject), db_int(hold->fence),
		      db_int(stamp->op), db_int(hold->lease_ms), db_int(hold->account), db_text(hold->ledger_prefix),
		      db_int(stamp->at.ms));
}

void item_look_up_start(struct unit *unit, const struct batch_hold *hold, int64_t op)
{
	batch_touch(unit, hold->subject, hold->account);
	UNIT_ADD(unit, UNIT_ANY, &stmt_look_up_start, db_int(hold->subject), db_int(hold->fence), db_int(op));
}

void item_end(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, const struct item_end *end)
{
	struct slice status = slice_str(end->status);

	batch_touch(unit, hold->subject, hold->account);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_end, db_int(hold->subject), db_int(end->n), db_int(hold->fence),
		 db_int(end->attempt), db_int(stamp->op), db_text(status), db_int(end->failure), db_int(end->doubt),
		 db_int(end->returns), db_int(end->rest_ms), db_optional(end->output), db_optional(end->error),
		 end->unsettled_since ? db_int(end->unsettled_since) : db_null());
	if (end->returns)
		add_giving(unit, stamp, hold, end->n, end->n + 1, "return");
	add_end_count(unit, stamp, hold, end->n, slice_is(status, ITEM_SUCCEEDED), slice_is(status, ITEM_FAILED),
		      slice_is(status, ITEM_UNKNOWN));
	if (!end->returns)
		UNIT_TOGETHER(unit, /* rows= */ 0, &stmt_end_many, db_int(hold->subject), db_int(end->n),
			      db_int(hold->fence), db_int(end->attempt), db_int(stamp->op), db_text(status),
			      db_int(end->failure), db_int(end->doubt), db_int(end->rest_ms), db_optional(end->output),
			      db_optional(end->error), end->unsettled_since ? db_int(end->unsettled_since) : db_null(),
			      db_int(hold->account));
}

void item_settle(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, int64_t n,
		 int64_t attempt, struct slice output)
{
	struct db_value batch = db_int(hold->subject);

	batch_touch(unit, hold->subject, hold->account);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_settle_count, batch, db_int(n), db_int(attempt));
	UNIT_ADD(unit, UNIT_ANY, &stmt_settle, batch, db_int(n), db_int(attempt), db_text(output), db_int(stamp->op));
}

void item_late(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, const struct item_end *end,
	       int64_t job_id, struct slice job_key, struct slice payload)
{
	const struct batch_definition *definition = hold->machine->definition;

	batch_touch(unit, hold->subject, hold->account);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_late, db_int(hold->subject), db_int(end->n), db_text(end->output),
		 db_int(stamp->op), db_int(end->attempt));
	UNIT_ADD(unit, UNIT_ANY, &stmt_late_count, db_int(hold->subject));
	if (job_id) {
		struct job_spec spec = {
			.subject = job_id,
			.workspace = hold->workspace,
			.queue = JOB_QUEUE_AFTER_EFFECTS,
			.repeatable = true, /* a cleanup is as good twice as once */
			.workflow = definition->name,
			.action = definition->cleanup_action->name,
			.effect_key = job_key,
			.payload = payload,
		};

		job_insert(unit, stamp, &spec);
		unit_wake(unit, JOB_TOPIC);
	}
}

void item_doubt(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, const struct item_end *end)
{
	batch_touch(unit, hold->subject, hold->account);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_doubt, db_int(hold->subject), db_int(end->n), db_int(end->attempt),
		 db_int(stamp->op));
}

/* ---- decisions ---- */

void item_accept(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, int64_t n)
{
	batch_touch(unit, hold->subject, hold->account);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_accept, db_int(hold->subject), db_int(n), db_int(stamp->op));
	UNIT_ADD(unit, UNIT_ANY, &stmt_accept_count, db_int(hold->subject));
}

void item_resolve(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, int64_t n, bool done,
		  struct slice output)
{
	batch_touch(unit, hold->subject, hold->account);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_resolve, db_int(hold->subject), db_int(n), db_int(stamp->op), db_int(done),
		 db_optional(output));
	if (!done)
		add_giving(unit, stamp, hold, n, n + 1, "return");
	add_end_count(unit, stamp, hold, n, done, !done, /* unknown= */ -1);
}

/* ---- teardown ---- */

void item_read_doubtful(struct unit *unit, int64_t batch, int64_t from, int64_t to, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_doubtful, db_int(batch), db_int(from), db_int(to), db_int(limit));
}

void item_flip(struct unit *unit, const struct stamp *stamp, const struct batch_hold *hold, int64_t from, int64_t to)
{
	struct db_value batch = db_int(hold->subject), first = db_int(from), end = db_int(to);

	batch_keep(unit, hold, BATCH_CANCELLING);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_flip_cursor, batch, first, end);
	UNIT_ADD(unit, UNIT_ANY, &stmt_flip, batch, first, end, db_int(stamp->op));
	add_giving(unit, stamp, hold, from, to, "refund"); /* mutant: refund-outside-unit */
	UNIT_ADD(unit, UNIT_ANY, &stmt_flip_count, db_int(hold->account), batch, db_int(stamp->op), first, end);
}

void item_read_left(struct unit *unit, const struct batch_hold *hold, int64_t from, int64_t to)
{
	batch_keep(unit, hold, BATCH_CANCELLING);
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_left, db_int(hold->subject), db_int(from), db_int(to));
}
