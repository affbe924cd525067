/* See tally.h. */
#include "support/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define LEASE_MS 3600000

#define ACTION(name, effect)                                                                                           \
	"\"" name "\":{\"kind\":\"http\",\"url\":\"http://127.0.0.1:1/\",\"effect\":\"" effect "\"}"

/* Parsed once, and kept as long as the program lives. */
const struct batch_machine *tally_machine(void)
{
	static const char text[] =
		"{\"workflow\":\"render\",\"kind\":\"batch\",\"actions\":{" ACTION("draw", "keyed") "," ACTION(
			"delete",
			"idempotent") "," ACTION("tell",
						 "keyed") "},\"item_action\":\"draw\","
							  "\"cleanup_action\":\"delete\",\"done_after_effect\":[\"tell\"],\"lease\":\"1h\"}";
	static struct arena arena;
	static struct batch_machine machine;
	struct findings findings;

	if (machine.definition)
		return &machine;
	arena_init(&arena, 4u << 20);
	findings_init(&findings, &arena);
	batch_definition_parse("render.json", slice_str(text), &arena, &findings, &machine.definition);
	assert_non_null(machine.definition);
	machine.version = 1;
	return &machine;
}

static const struct batch_machine *machine_of(const void *context, struct slice workflow, int64_t version)
{
	(void)context, (void)workflow, (void)version;
	return tally_machine();
}

const struct batch_policy tally_policy = {.lease_ms = LEASE_MS, .machine_of = machine_of};

struct slice tally_rows(const int64_t costs[], size_t n, struct arena *arena)
{
	struct strbuf rows;
	struct slice kept;

	strbuf_init(&rows, 16u << 20);
	strbuf_add_char(&rows, '[');
	for (size_t i = 0; i < n; i++)
		strbuf_addf(&rows, "%s[%lld,\"{\\\"n\\\":%zu}\"]", i ? "," : "", (long long)costs[i], i);
	strbuf_add_char(&rows, ']');
	kept = arena_copy(arena, strbuf_slice(&rows));
	assert_false(rows.failed || arena->failed);
	strbuf_release(&rows);
	return kept;
}

/* ---- what is wrong ---- */

/* clang-format off */

#define ITEMS "hx_batch_item i WHERE i.batch = b.subject AND i.n < b.total"
#define N(what) "(SELECT count(*) FROM " ITEMS " AND " what ")"
#define SUM(what) "(SELECT coalesce(sum(i.charged), 0) FROM " ITEMS " AND " what ")"
#define BATCHES " FROM hx_batch b JOIN hx_subject s ON s.id = b.subject JOIN hx_account a ON a.subject = b.account" \
	" WHERE b.account = ?1 AND "
#define ENTRIES(reasons) "(SELECT coalesce(sum(amount), 0) FROM hx_ledger WHERE account = ?1 AND reason IN (" reasons "))"
#define WRONG(words, where) "SELECT '" words "'" where " UNION ALL "
#define OF_BATCH(words, when) WRONG(words, BATCHES "(" when ")")

static const struct db_stmt stmt_wrong = {
	.name = "tally_wrong",
	.sql =
	WRONG("the balance is not the sum of the ledger",
	      " FROM hx_account WHERE subject = ?1 AND balance <> (SELECT sum(amount) FROM hx_ledger WHERE account = ?1)")
	WRONG("seq has a gap", " FROM hx_account WHERE subject = ?1 AND (seq <> (SELECT count(*) FROM hx_ledger WHERE account = ?1)"
	      " OR seq <> (SELECT max(seq) FROM hx_ledger WHERE account = ?1))")
	WRONG("an entry does not follow the one before", " FROM hx_ledger l LEFT JOIN hx_ledger p ON p.account = l.account"
	      " AND p.seq = l.seq - 1 WHERE l.account = ?1 AND l.balance <> coalesce(p.balance, 0) + l.amount")
	WRONG("charged is not what the ledger says", " FROM hx_account WHERE subject = ?1 AND " ENTRIES("'charge', 'return'")
	      " <> -(SELECT coalesce(sum(charged), 0) FROM hx_batch WHERE account = ?1)")
	WRONG("refunded is not what the ledger says", " FROM hx_account WHERE subject = ?1 AND " ENTRIES("'refund'")
	      " <> (SELECT coalesce(sum(refunded), 0) FROM hx_batch WHERE account = ?1)")
	OF_BATCH("charged is not that of the items", "b.charged <> " SUM("true"))
	OF_BATCH("refunded is not the charge of the cancelled", "b.refunded <> " SUM("i.decision = 'cancelled'"))
	OF_BATCH("succeeded", "b.succeeded <> " N("i.status = 'SUCCEEDED'"))
	OF_BATCH("failed", "b.failed <> " N("i.status = 'FAILED'"))
	OF_BATCH("unknown", "b.unknown <> " N("i.status = 'UNKNOWN'"))
	OF_BATCH("accepted", "b.accepted <> " N("i.decision = 'accepted'"))
	OF_BATCH("cancelled", "b.cancelled <> " N("i.decision = 'cancelled'"))
	OF_BATCH("late", "b.late <> " N("i.late IS NOT NULL"))
	OF_BATCH("an item that was never begun is behind next_n", N("(i.attempt > 0) <> (i.n < b.next_n)") " > 0")
	OF_BATCH("there are not as many items as total says", N("true") " <> b.total")
	OF_BATCH("a charge does not fit the status", N("i.charged <> CASE WHEN i.status IN ('RUNNING', 'SUCCEEDED', 'UNKNOWN')"
		 " OR (i.status = 'PENDING' AND i.doubt = 1) THEN i.cost ELSE 0 END") " > 0")
	OF_BATCH("accepted without success", N("i.decision = 'accepted' AND i.status <> 'SUCCEEDED'") " > 0")
	OF_BATCH("cancelled beyond the cursor", N("i.decision = 'cancelled' AND i.n >= b.flipped_to") " > 0")
	OF_BATCH("undecided before the cursor", N("i.decision IS NULL AND i.n < b.flipped_to") " > 0")
	OF_BATCH("cancelled and RUNNING", N("i.decision = 'cancelled' AND i.status = 'RUNNING'") " > 0")
	OF_BATCH("an item of a later holder", N("i.fence > s.fence") " > 0")
	OF_BATCH("CANCELLED, and not all are decided", "s.status = 'CANCELLED' AND b.cancelled + b.accepted <> b.total")
	OF_BATCH("COMPLETED, and refunded or cancelled", "s.status = 'COMPLETED' AND (b.refunded <> 0 OR b.cancelled <> 0"
		 " OR b.cancel_requested <> 0)")
	OF_BATCH("COMPLETED with open items", "s.status = 'COMPLETED' AND " N("i.status IN ('PENDING', 'RUNNING')") " > 0")
	OF_BATCH("CANCELLING without its flag", "s.status IN ('CANCELLING', 'CANCELLED') AND b.cancel_requested = 0")
	OF_BATCH("nobody will ever look at it", "s.status NOT IN ('PENDING', 'COMPLETED', 'CANCELLED', 'FAILED') AND s.owner IS NULL"
		 " AND b.due_at IS NULL AND NOT (s.status = 'OUT_OF_CREDIT' AND b.needs > a.balance)")
	OF_BATCH("due while somebody holds it", "s.owner IS NOT NULL AND b.due_at IS NOT NULL")
	OF_BATCH("owned at rest", "s.owner IS NOT NULL AND s.status NOT IN ('LOADING', 'RUNNING', 'CANCELLING')")
	OF_BATCH("due at its end", "s.status IN ('PENDING', 'COMPLETED', 'CANCELLED', 'FAILED') AND b.due_at IS NOT NULL")
	OF_BATCH("it needs something, and is not out of credit", "b.needs IS NOT NULL AND s.status <> 'OUT_OF_CREDIT'")
	OF_BATCH("completed_at", "(b.completed_at IS NOT NULL) <> (s.status IN ('COMPLETED', 'CANCELLED', 'FAILED'))")
	"SELECT 'a negative balance' FROM hx_account WHERE subject = ?1 AND balance < 0",
	.in = "i",
	.out = "t",
};

/* clang-format on */

static bool run(struct db *db, struct unit *unit, struct unit_result *result, struct arena *arena, struct strbuf *out)
{
	struct hx_error err = {0};

	if (db_run_unit(db, unit, result, arena, &err) == HX_OK)
		return true;
	strbuf_addf(out, "the store: %s\n", err.detail);
	return false;
}

const char *tally_wrong(struct db *db, int64_t account, struct arena *arena)
{
	struct unit *unit = arena_alloc(arena, sizeof *unit);
	struct unit_result *result = arena_zalloc(arena, sizeof *result);
	struct strbuf words;
	struct slice kept;

	strbuf_init(&words, 65536);
	unit_init(unit, /* op= */ 0);
	UNIT_ADD(unit, UNIT_ANY, &stmt_wrong, db_int(account));
	if (run(db, unit, result, arena, &words))
		for (size_t i = 0; i < result->rows[0].n; i++)
			strbuf_addf(&words, "%.*s\n", SLICE_ARGS(db_cell(&result->rows[0], i, 0)->s));
	strbuf_add_char(&words, '\0');
	kept = arena_copy(arena, strbuf_slice(&words));
	strbuf_release(&words);
	return kept.n > 1 ? kept.p : NULL;
}

/* ---- what there is ---- */

/* clang-format off */

#define SIDE(time) "CASE WHEN " time " IS NULL THEN 'none' WHEN " time " > hx_now_ms() THEN 'live' ELSE 'past' END"
/* ?2: exact */
#define TIME(time) "CASE WHEN ?2 = 1 THEN CAST(coalesce(" time ", -1) AS text) ELSE " SIDE(time) " END"
#define OF_ACCOUNT " FROM hx_batch b JOIN hx_subject s ON s.id = b.subject WHERE b.account = ?1 ORDER BY b.subject"

static const struct db_stmt stmts[] = {
	{.name = "tally_account",
	 .sql = "SELECT 'account', balance, seq FROM hx_account WHERE subject = ?1 AND ?2 >= 0",
	 .in = "ii", .out = "tii"},
	{.name = "tally_ledger",
	 .sql = "SELECT 'entry', seq, amount, key, reason, balance, op FROM hx_ledger WHERE account = ?1 AND ?2 >= 0 ORDER BY seq",
	 .in = "ii", .out = "tiittii"},
	{.name = "tally_subject",
	 .sql = "SELECT 'batch', s.id, s.status, s.version, s.fence, s.op, s.owner, s.seq, s.head, " TIME("s.until") OF_ACCOUNT,
	 .in = "ii", .out = "titiiitibt"},
	{.name = "tally_batch",
	 .sql = "SELECT 'counts', b.total, b.next_n, b.succeeded, b.failed, b.unknown, b.accepted, b.cancelled, b.charged,"
		" b.refunded, b.late, b.flipped_to, b.cleanups" OF_ACCOUNT " LIMIT ?2 + 1000",
	 .in = "ii", .out = "tiiiiiiiiiiii"},
	{.name = "tally_batch_more",
	 .sql = "SELECT 'row', b.batch_key, b.cancel_requested, b.needs, b.error, " TIME("b.due_at") ", " TIME("b.loaded_at") ", "
		TIME("b.started_at") ", " TIME("b.completed_at") ", (SELECT count(*) FROM hx_history h WHERE h.subject = b.subject)"
		OF_ACCOUNT,
	 .in = "ii", .out = "ttiittttti"},
	{.name = "tally_items",
	 .sql = "SELECT 'item', i.batch, i.n, i.status, i.decision, i.cost, i.charged, i.attempt, i.failures, i.doubt, i.fence,"
		" i.moved, i.op, " TIME("i.due_at") ", i.input, i.output, i.late, i.error"
		" FROM hx_batch_item i JOIN hx_batch b ON b.subject = i.batch WHERE b.account = ?1 ORDER BY i.batch, i.n",
	 .in = "ii", .out = "tiittiiiiiiiittttt"},
	/* The jobs of a test are those of its batches. */
	{.name = "tally_jobs",
	 .sql = "SELECT 'job', j.subject, s.status, j.action, j.effect_key, j.payload FROM hx_job j JOIN hx_subject s ON s.id = j.subject"
		" WHERE j.workspace = 'w' || ?1 AND ?2 >= 0 ORDER BY j.subject",
	 .in = "ii", .out = "titttt"},
};

/* clang-format on */

#define STMTS_N (sizeof stmts / sizeof *stmts)

static void write_cell(const struct db_value *v, struct strbuf *out)
{
	switch (v->type) {
	case DB_NULL:
		strbuf_add_str(out, " -");
		break;
	case DB_INT:
		strbuf_addf(out, " %lld", (long long)v->i);
		break;
	case DB_TEXT:
		strbuf_addf(out, " %.*s", SLICE_ARGS(v->s));
		break;
	case DB_BLOB:
		for (size_t i = 0; i < 4 && i < v->s.n; i++)
			strbuf_addf(out, "%s%02x", i ? "" : " ", (unsigned char)v->s.p[i]);
		break;
	}
}

bool tally_write(struct db *db, int64_t account, enum tally_how how, struct arena *arena, struct strbuf *out)
{
	struct unit *unit = arena_alloc(arena, sizeof *unit);
	struct unit_result *result = arena_zalloc(arena, sizeof *result);

	unit_init(unit, /* op= */ 0);
	for (size_t i = 0; i < STMTS_N; i++)
		UNIT_ADD(unit, UNIT_ANY, &stmts[i], db_int(account), db_int(how == TALLY_EXACT));
	if (!run(db, unit, result, arena, out))
		return false;
	for (size_t i = 0; i < STMTS_N; i++)
		for (size_t row = 0; row < result->rows[i].n; row++) {
			for (size_t c = 0; c < result->rows[i].columns; c++)
				write_cell(db_cell(&result->rows[i], row, c), out);
			strbuf_add_char(out, '\n');
		}
	return true;
}
