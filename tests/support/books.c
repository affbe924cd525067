/* See books.h. */
#include "support/books.h"

#include <pthread.h>
#include <search.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/audit.h"
#include "support/await.h"
#include "support/client.h"

#define ROWS_BYTES_MAX (512u << 20)
#define PAUSE_MS_MIN 2
#define PAUSE_MS_MAX 20

/* ---- one moment ---- */

/* clang-format off */
/* A batch's id as text, which is how the ledger's keys name it: '/batch_…/…' (base/id.h). */
#define DIGIT(shift) \
	"substr('0123456789abcdefghjkmnpqrstvwxyz', CAST((b.subject >> " #shift ") & 31 AS int) + 1, 1)"
#define BATCH_TEXT \
	"'batch_' || " DIGIT(60) " || " DIGIT(55) " || " DIGIT(50) " || " DIGIT(45) " || " DIGIT(40) " || " DIGIT(35) \
	" || " DIGIT(30) " || " DIGIT(25) " || " DIGIT(20) " || " DIGIT(15) " || " DIGIT(10) " || " DIGIT(5) " || " DIGIT(0)
#define NAMES "names AS MATERIALIZED (SELECT b.subject, " BATCH_TEXT " AS id FROM hx_batch b)"
#define COUNT(condition) "sum(CASE WHEN " condition " THEN 1 ELSE 0 END)"
#define SUM_IF(condition, what) "sum(CASE WHEN " condition " THEN " what " ELSE 0 END)"
#define NUMBER(what) "CAST(coalesce(" what ", 0) AS bigint)"

static const struct db_stmt stmt_books = {
	.name = "books",
	.sql = "WITH " NAMES ", items AS (SELECT i.batch, count(*) AS n,"
	       COUNT("i.status = 'SUCCEEDED'") " AS succeeded,"
	       COUNT("i.status = 'FAILED'") " AS failed,"
	       COUNT("i.status = 'UNKNOWN'") " AS unknown,"
	       COUNT("i.decision = 'accepted'") " AS accepted,"
	       COUNT("i.decision = 'cancelled'") " AS cancelled,"
	       " sum(i.charged) AS charged,"
	       SUM_IF("i.decision = 'cancelled'", "i.charged") " AS refunded,"
	       COUNT("i.late IS NOT NULL") " AS late,"
	       COUNT("i.decision IS NULL AND i.status IN ('PENDING', 'RUNNING')") " AS still_open,"
	       " sum(i.attempt) AS attempts,"
	       COUNT("i.charged NOT IN (0, i.cost)"
	             " OR i.decision IS NULL AND i.status = 'RUNNING' AND i.charged <> i.cost"
	             " OR i.decision IS NULL AND i.status = 'PENDING' AND i.doubt <> 1 AND i.charged <> 0"
	             " OR i.status = 'FAILED' AND i.charged <> 0"
	             " OR i.status = 'SUCCEEDED' AND i.charged <> i.cost"
	             " OR i.attempt = 0 AND i.charged <> 0") " AS odd"
	       " FROM hx_batch_item i JOIN hx_batch b ON b.subject = i.batch WHERE i.n < b.total GROUP BY i.batch),"
	       " entries AS (SELECT substr(key, 2, 19) AS id,"
	       SUM_IF("reason = 'charge'", "-amount") " AS charges,"
	       SUM_IF("reason = 'return'", "amount") " AS returns,"
	       SUM_IF("reason = 'refund'", "amount") " AS refunds,"
	       COUNT("reason = 'refund'") " AS refund_entries"
	       " FROM hx_ledger WHERE reason IN ('charge', 'return', 'refund') GROUP BY substr(key, 2, 19)),"
	       " sums AS (SELECT account, sum(amount) AS amount FROM hx_ledger GROUP BY account)"
	       " SELECT b.subject, s.status, b.cancel_requested, b.total, b.next_n, b.succeeded, b.failed, b.unknown,"
	       " b.accepted, b.cancelled, b.charged, b.refunded, b.late,"
	       NUMBER("i.n") "," NUMBER("i.succeeded") "," NUMBER("i.failed") "," NUMBER("i.unknown") ","
	       NUMBER("i.accepted") "," NUMBER("i.cancelled") "," NUMBER("i.charged") "," NUMBER("i.refunded") ","
	       NUMBER("i.late") "," NUMBER("i.still_open") "," NUMBER("i.attempts") "," NUMBER("i.odd") ","
	       NUMBER("e.charges") "," NUMBER("e.returns") "," NUMBER("e.refunds") "," NUMBER("e.refund_entries") ","
	       " a.balance," NUMBER("l.amount")
	       " FROM hx_batch b JOIN hx_subject s ON s.id = b.subject JOIN hx_account a ON a.subject = b.account"
	       " LEFT JOIN sums l ON l.account = b.account LEFT JOIN items i ON i.batch = b.subject"
	       " JOIN names m ON m.subject = b.subject LEFT JOIN entries e ON e.id = m.id WHERE b.expired = ?1",
	.in = "i",
	.out = "itiiiiiiiiiiiiiiiiiiiiiiiiiiiii",
};

/* Items whose own entries in the ledger are not what they are charged. */
#define ITEM_ENTRIES(n) \
	"WITH " NAMES " SELECT count(*) FROM (SELECT x.batch, x.n FROM" \
	" (SELECT i.batch, i.n, i.charged AS amount FROM hx_batch b JOIN hx_batch_item i ON i.batch = b.subject AND i.n < b.total" \
	" WHERE b.expired = ?1 UNION ALL SELECT m.subject, " n ", l.amount FROM hx_ledger l" \
	" JOIN names m ON m.id = substr(l.key, 2, 19) WHERE l.reason IN ('charge', 'return')) x" \
	" GROUP BY x.batch, x.n HAVING sum(x.amount) <> 0) y"
static const struct db_stmt stmt_item_entries = {
	.name = "books_item_entries",
	.sql = ITEM_ENTRIES("CAST(substr(l.key, 22) AS INTEGER)"),
	.pg_sql = ITEM_ENTRIES("CAST(split_part(l.key, '/', 3) AS bigint)"),
	.in = "i",
	.out = "i",
};

static const struct db_stmt stmt_items = {
	.name = "books_items",
	.sql = "SELECT i.batch, i.n, i.status, coalesce(i.decision, ''), i.attempt, i.charged"
	       " FROM hx_batch b JOIN hx_batch_item i ON i.batch = b.subject AND i.n < b.total WHERE b.expired = ?1",
	.in = "i",
	.out = "iittii",
};

/* For whoever wonders why something has not ended. */
static const struct db_stmt stmt_open = {
	.name = "books_open",
	.sql = "SELECT b.subject, s.status || ' version ' || s.version || ' fence ' || s.fence || ' owner ' ||"
	       " coalesce(s.owner, '-') || ' lease ' || coalesce(CAST(s.until - hx_now_ms() AS text), '-') || ' ms, due in ' ||"
	       " coalesce(CAST(b.due_at - hx_now_ms() AS text), '-') || ' ms, flag ' || b.cancel_requested || ', next ' ||"
	       " b.next_n || ' of ' || b.total || ', flipped ' || b.flipped_to || ', needs ' || coalesce(CAST(b.needs AS text),"
	       " '-') || ' of ' || a.balance || ', cleanups ' || b.cleanups || ', error ' || coalesce(b.error, '-')"
	       " FROM hx_batch b JOIN hx_subject s ON s.id = b.subject JOIN hx_account a ON a.subject = b.account"
	       " WHERE s.status NOT IN ('COMPLETED', 'CANCELLED', 'FAILED') AND b.expired = ?1 ORDER BY b.subject LIMIT 20",
	.in = "i",
	.out = "it",
};
/* clang-format on */

static void take_row(const struct db_rows *rows, size_t at, struct books_row *ret)
{
	const struct db_value *cell = db_cell(rows, at, 0);
	int64_t *const numbers[] = {
		&ret->total,          &ret->next_n,         &ret->succeeded,      &ret->failed,
		&ret->unknown,        &ret->accepted,       &ret->cancelled,      &ret->charged,
		&ret->refunded,       &ret->late,           &ret->items.n,        &ret->items.succeeded,
		&ret->items.failed,   &ret->items.unknown,  &ret->items.accepted, &ret->items.cancelled,
		&ret->items.charged,  &ret->items.refunded, &ret->items.late,     &ret->items.open,
		&ret->items.attempts, &ret->items.odd,      &ret->charges,        &ret->returns,
		&ret->refunds,        &ret->refund_entries, &ret->balance,        &ret->ledger,
	};

	ret->subject = cell[0].i;
	id_format("batch", ret->subject, ret->id);
	snprintf(ret->status, sizeof ret->status, "%.*s", (int)cell[1].s.n, cell[1].s.p);
	ret->flagged = cell[2].i != 0;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		*numbers[i] = cell[3 + i].i;
}

static enum hx_code ask(struct db *db, const struct db_stmt *stmt, struct arena *arena, struct db_rows *ret_rows,
			struct hx_error *err)
{
	struct unit_result result;
	struct unit unit;
	enum hx_code code;

	unit_init(&unit, /* op= */ 0);
	UNIT_ADD(&unit, UNIT_ANY, stmt, db_int(0));
	code = db_run_unit(db, &unit, &result, arena, err);
	if (!code)
		*ret_rows = result.rows[0];
	return code;
}

bool books_read(struct db *db, struct books_row **ret_rows, size_t *ret_n, struct hx_error *err)
{
	struct arena arena;
	struct db_rows rows;
	bool read;

	arena_init(&arena, ROWS_BYTES_MAX);
	read = ask(db, &stmt_books, &arena, &rows, err) == HX_OK;
	if (read) {
		*ret_n = rows.n;
		*ret_rows = calloc(rows.n + 1, sizeof **ret_rows);
		for (size_t i = 0; i < rows.n; i++)
			take_row(&rows, i, *ret_rows + i);
	}
	arena_release(&arena);
	return read;
}

struct db *books_open(const struct store *store)
{
	char url[600];
	struct db_options options = {.url = url, .clock = clock_system(), .read_only = true};
	struct hx_error err = {0};
	struct db *db = NULL;

	/* PostgreSQL knows nothing yet of tables that were empty a moment ago, and plans for a single row. */
	snprintf(url, sizeof url, "%s%s", store->url,
		 store->kind == STORE_POSTGRES ? "%20-cjit%3Doff%20-cenable_nestloop%3Doff" : "");
	if (db_open(&options, &db, &err) != HX_OK)
		fail_msg("the observer: %s", err.detail);
	return db;
}

static bool is(const struct books_row *row, const char *status)
{
	return strcmp(row->status, status) == 0;
}

static bool has_ended(const struct books_row *row)
{
	return is(row, "COMPLETED") || is(row, "CANCELLED") || is(row, "FAILED");
}

static const char *wrong_money(const struct books_row *row)
{
	if (row->balance != row->ledger)
		return "the balance is not the sum of the ledger";
	if (row->charged != row->items.charged)
		return "charged is not the sum of its items";
	if (row->charged != row->charges - row->returns)
		return "charged is not what the ledger says";
	if (row->refunded != row->items.refunded)
		return "refunded is not the sum of its cancelled items";
	if (row->refunded != row->refunds)
		return "refunded is not what the ledger says";
	return row->items.odd ? "the charge of an item does not fit its status" : NULL;
}

static const char *wrong_counts(const struct books_row *row)
{
	if (!is(row, "LOADING") && row->items.n != row->total)
		return "not all of its items are there";
	if (row->succeeded != row->items.succeeded || row->failed != row->items.failed ||
	    row->unknown != row->items.unknown || row->accepted != row->items.accepted ||
	    row->cancelled != row->items.cancelled)
		return "its counts are not those of its items";
	return row->late < row->items.late ? "fewer late successes than its items have" : NULL;
}

static const char *wrong_end(const struct books_row *row)
{
	if (is(row, "COMPLETED") && (row->refunded || row->cancelled || row->flagged || row->items.open))
		return "COMPLETED, and cancelled or refunded too, or not done";
	if (is(row, "CANCELLED") && (!row->flagged || row->cancelled + row->accepted != row->total))
		return "CANCELLED before every item is decided";
	if (is(row, "FAILED") && (row->total || row->charges))
		return "FAILED, and it was acknowledged or charged";
	if (row->cancelled && !is(row, "CANCELLING") && !is(row, "CANCELLED"))
		return "items are cancelled, the batch is not";
	return NULL;
}

const char *books_row_wrong(const struct books_row *row)
{
	const char *wrong = wrong_money(row);

	wrong = wrong ? wrong : wrong_counts(row);
	return wrong ? wrong : wrong_end(row);
}

static void tell_row(const struct books_row *row, char *text, size_t bytes)
{
	snprintf(
		text, bytes,
		"%s %s%s: total %lld next %lld | succeeded %lld/%lld failed %lld/%lld unknown %lld/%lld accepted %lld/%lld cancelled "
		"%lld/%lld late %lld/%lld open %lld attempts %lld odd %lld | charged %lld/%lld, ledger %lld-%lld; refunded %lld/%lld, "
		"ledger %lld in %lld; balance %lld, ledger %lld",
		row->id, row->status, row->flagged ? " flagged" : "", (long long)row->total, (long long)row->next_n,
		(long long)row->succeeded, (long long)row->items.succeeded, (long long)row->failed,
		(long long)row->items.failed, (long long)row->unknown, (long long)row->items.unknown,
		(long long)row->accepted, (long long)row->items.accepted, (long long)row->cancelled,
		(long long)row->items.cancelled, (long long)row->late, (long long)row->items.late,
		(long long)row->items.open, (long long)row->items.attempts, (long long)row->items.odd,
		(long long)row->charged, (long long)row->items.charged, (long long)row->charges,
		(long long)row->returns, (long long)row->refunded, (long long)row->items.refunded,
		(long long)row->refunds, (long long)row->refund_entries, (long long)row->balance,
		(long long)row->ledger);
}

/* ---- one moment after the other ---- */

struct books {
	struct db *db;
	pthread_t thread;
	bool watching;
	_Atomic bool stops;
	_Atomic size_t looks;
	size_t unread; /* looks at which the store could not be read */
	void *before;  /* tree of books_row by subject: the last look */
	pthread_mutex_t mutex;
	char wrong[2000]; /* under the mutex; empty: nothing */
	char why_unread[300];
};

static int compare(const void *a, const void *b)
{
	int64_t x = ((const struct books_row *)a)->subject, y = ((const struct books_row *)b)->subject;

	return (x > y) - (x < y);
}

static const char *wrong_ways(const struct books_row *before, const struct books_row *row)
{
	if (has_ended(before) && strcmp(before->status, row->status) != 0)
		return "a terminal status was left";
	if (is(before, "CANCELLING") && !is(row, "CANCELLING") && !is(row, "CANCELLED"))
		return "CANCELLING was left for something else";
	if (before->flagged && !row->flagged)
		return "the cancel request is gone";
	if (before->flagged && row->items.attempts != before->items.attempts)
		return "an item was begun after the cancel request";
	if (before->flagged && row->charges != before->charges)
		return "something was charged after the cancel request";
	return row->refunded < before->refunded || row->cancelled < before->cancelled ? "a refund was taken back"
										      : NULL;
}

static void note_wrong(struct books *books, const char *what, const struct books_row *before,
		       const struct books_row *row)
{
	char was[800], is_now[800];

	tell_row(row, is_now, sizeof is_now);
	if (before)
		tell_row(before, was, sizeof was);
	pthread_mutex_lock(&books->mutex);
	if (!books->wrong[0])
		snprintf(books->wrong, sizeof books->wrong, "%s\n  now: %s%s%s", what, is_now,
			 before ? "\n  was: " : "", before ? was : "");
	pthread_mutex_unlock(&books->mutex);
}

static void look_at(struct books *books, const struct books_row *row)
{
	struct books_row **at = tfind(row, &books->before, compare), *kept = at ? *at : NULL;
	const char *wrong = books_row_wrong(row);

	if (wrong)
		note_wrong(books, wrong, NULL, row);
	else if (kept && (wrong = wrong_ways(kept, row)))
		note_wrong(books, wrong, kept, row);
	if (!kept) {
		kept = malloc(sizeof *kept);
		kept->subject = row->subject;
		tsearch(kept, &books->before, compare);
	}
	*kept = *row;
}

static void look(struct books *books)
{
	struct books_row *rows;
	struct hx_error err = {0};
	size_t n;

	if (!books_read(books->db, &rows, &n, &err)) {
		books->unread++;
		snprintf(books->why_unread, sizeof books->why_unread, "%.299s", err.detail);
		return;
	}
	for (size_t i = 0; i < n; i++)
		look_at(books, &rows[i]);
	free(rows);
	atomic_fetch_add(&books->looks, 1);
}

/* Half of the time, or nearly all of it where a look takes long. */
static void *watch(void *context)
{
	struct books *books = context;
	int64_t from_ms, ms;

	while (!atomic_load(&books->stops)) {
		from_ms = await_now_ms();
		look(books);
		ms = await_now_ms() - from_ms + PAUSE_MS_MIN;
		ms = ms < PAUSE_MS_MAX ? ms : PAUSE_MS_MAX;
		nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
	}
	look(books);
	return NULL;
}

struct books *books_watch(const struct store *store)
{
	struct books *books = calloc(1, sizeof *books);

	assert_non_null(books);
	books->db = books_open(store);
	pthread_mutex_init(&books->mutex, NULL);
	assert_int_equal(pthread_create(&books->thread, NULL, watch, books), 0);
	books->watching = true;
	return books;
}

const char *books_wrong(struct books *books)
{
	bool is_wrong;

	pthread_mutex_lock(&books->mutex);
	is_wrong = books->wrong[0] != '\0';
	pthread_mutex_unlock(&books->mutex);
	return is_wrong ? books->wrong : NULL;
}

size_t books_looks(struct books *books)
{
	return atomic_load(&books->looks);
}

static void end_watch(struct books *books)
{
	atomic_store(&books->stops, true);
	if (books->watching)
		pthread_join(books->thread, NULL);
	books->watching = false;
}

size_t books_stop(struct books *books)
{
	end_watch(books);
	if (books_wrong(books))
		fail_msg("%s", books_wrong(books));
	if (books_looks(books) < 2)
		fail_msg("the observer has seen nothing: %s", books->why_unread);
	return books_looks(books);
}

void books_free(struct books *books)
{
	if (!books)
		return;
	end_watch(books);
	db_close(books->db);
	tdestroy(books->before, free);
	pthread_mutex_destroy(&books->mutex);
	free(books);
}

void books_show_open(const struct store *store)
{
	struct db *db = books_open(store);
	struct hx_error err = {0};
	struct db_rows rows = {0};
	struct arena arena;
	char id[ID_TEXT_BYTES];

	arena_init(&arena, ROWS_BYTES_MAX);
	if (ask(db, &stmt_open, &arena, &rows, &err))
		print_message("%s\n", err.detail);
	for (size_t i = 0; i < rows.n; i++) {
		id_format("batch", db_cell(&rows, i, 0)->i, id);
		print_message("%s %.*s\n", id, (int)db_cell(&rows, i, 1)->s.n, db_cell(&rows, i, 1)->s.p);
	}
	arena_release(&arena);
	db_close(db);
}

/* ---- when all is calm ---- */

static void check_histories(const struct store *store, const struct books_row *rows, size_t n)
{
	struct audit audit = {.db = store_open(store), .driven = true};
	struct hx_error err = {0};

	arena_init(&audit.arena, AUDIT_BYTES_MAX);
	for (size_t i = 0; i < n; i++)
		if (audit_subject(&audit, rows[i].subject, &err) < 0)
			fail_msg("%s: %s", rows[i].id, err.detail);
	arena_release(&audit.arena);
	db_close(audit.db);
}

static void check_item(struct artifacts *artifacts, const struct db_value *cell)
{
	bool succeeded = slice_is(cell[2].s, "SUCCEEDED"), cancelled = slice_is(cell[3].s, "cancelled");
	bool open = slice_is(cell[2].s, "UNKNOWN") && !cancelled;
	struct artifact artifact = {0};
	char id[ID_TEXT_BYTES], key[64];

	id_format("batch", cell[0].i, id);
	snprintf(key, sizeof key, "%s/%lld", id, (long long)cell[1].i);
	(void)artifacts_find(artifacts, key, &artifact); /* one that was never heard of is not there */
	if (!open && artifact.there != (succeeded && !cancelled))
		fail_msg(
			"%s is %.*s %.*s, charged %lld, attempt %lld; its artifact is %s (made %d, voided %d, %zu calls, %zu late,"
			" %zu refused, %zu deletes)",
			key, (int)cell[2].s.n, cell[2].s.p, (int)cell[3].s.n, cell[3].s.p, (long long)cell[5].i,
			(long long)cell[4].i, artifact.there ? "there" : "not there", artifact.made, artifact.voided,
			artifact.calls, artifact.late_calls, artifact.refused, artifact.deletes);
	if ((int64_t)artifact.calls > cell[4].i)
		fail_msg("%s: %zu calls in %lld attempts", key, artifact.calls, (long long)cell[4].i);
}

static void check_items(struct db *db, struct artifacts *artifacts)
{
	struct hx_error err = {0};
	struct db_rows rows;
	struct arena arena;

	arena_init(&arena, ROWS_BYTES_MAX);
	if (ask(db, &stmt_item_entries, &arena, &rows, &err))
		fail_msg("%s", err.detail);
	if (db_cell(&rows, 0, 0)->i)
		fail_msg("%lld items are not charged what their entries in the ledger say",
			 (long long)db_cell(&rows, 0, 0)->i);
	if (artifacts && ask(db, &stmt_items, &arena, &rows, &err))
		fail_msg("%s", err.detail);
	for (size_t i = 0; artifacts && i < rows.n; i++)
		check_item(artifacts, db_cell(&rows, i, 0));
	arena_release(&arena);
}

/* The totals that were told at the end are those that are there. */
static void check_told(struct artifacts *artifacts, const struct books_row *row)
{
	char told[SERVICE_BODY_BYTES];
	struct reply reply = {.status = 200, .body = told};

	artifacts_told(artifacts, row->id, told, sizeof told);
	if (!told[0])
		fail_msg("the end of %s was not told", row->id);
	reply.body_n = strlen(told);
	assert_string_equal(reply_text(&reply, "to"), row->status);
	assert_int_equal(reply_int(&reply, "output.total"), row->total);
	assert_int_equal(reply_int(&reply, "output.cancelled"), row->cancelled);
	assert_int_equal(reply_int(&reply, "output.charged"), row->charged);
	assert_int_equal(reply_int(&reply, "output.refunded"), row->refunded);
}

static void check_row(const struct books_row *row, struct artifacts *artifacts, struct books_sum *sum)
{
	const char *wrong = books_row_wrong(row);
	char text[800];

	tell_row(row, text, sizeof text);
	if (!wrong && !has_ended(row))
		wrong = "it has not ended";
	if (wrong)
		fail_msg("%s: %s", wrong, text);
	sum->failed += is(row, "FAILED");
	if (is(row, "FAILED"))
		return;
	if (artifacts)
		check_told(artifacts, row);
	sum->batches++;
	sum->completed += is(row, "COMPLETED");
	sum->cancelled += is(row, "CANCELLED");
	sum->items += (size_t)row->total;
	sum->late += (size_t)row->late;
	sum->charged += row->charged;
	sum->refunded += row->refunded;
}

void books_check(const struct store *store, struct artifacts *artifacts, struct books_sum *ret_sum)
{
	struct db *db = books_open(store);
	struct hx_error err = {0};
	struct books_row *rows;
	size_t n;

	*ret_sum = (struct books_sum){0};
	if (!books_read(db, &rows, &n, &err))
		fail_msg("%s", err.detail);
	for (size_t i = 0; i < n; i++)
		check_row(&rows[i], artifacts, ret_sum);
	check_items(db, artifacts);
	check_histories(store, rows, n);
	free(rows);
	db_close(db);
	if (artifacts && artifacts_wrong(artifacts))
		fail_msg("%s", artifacts_wrong(artifacts));
}
