/*
 * The pass over all accounts and their ledgers, as the one over histories: two streams side by side, as far as both were read.
 *
 * An entry that the engine made for a batch is named by its key: /batch_ID/N/charge/ATTEMPT, or return, or refund. After each
 * slice a second unit looks their markers up (a refund's key has the first of the items that it flipped, and the most attempts
 * that one of them had). That is another moment, but a later one: items are never taken away (but by
 * retention, which the batch then says), their price never changes, and attempts only rise.
 */
#include <stdio.h>

#include "base/excerpt.h"
#include "base/id.h"
#include "flow/audit_parts.h"
#include "flow/batch.h"

DB_STMT(stmt_accounts, "audit_accounts_read", "ii", "itii",
	"SELECT subject, name, balance, seq FROM hx_account WHERE subject >= ?1 ORDER BY subject LIMIT ?2");
enum { ACCOUNT, NAME, BALANCE, SEQ };

DB_STMT(stmt_entries, "audit_entries", "iiii", "iiitti",
	"SELECT account, seq, amount, key, reason, balance FROM hx_ledger"
	" WHERE (account, seq) > (?1, ?3) AND account <= coalesce((SELECT subject FROM hx_account WHERE subject >= ?1"
	" ORDER BY subject LIMIT 1 OFFSET ?2 - 1), 9223372036854775807) ORDER BY account, seq LIMIT ?4");
enum { ENTRY_ACCOUNT, ENTRY_SEQ, ENTRY_AMOUNT, ENTRY_KEY, ENTRY_REASON, ENTRY_BALANCE };

/* ?1: [[batch, n, account, items from n on that it may be about], …]. A row for each, in their order. */
#define MARKERS(n, width)                                                                                              \
	"b.account, b.total, b.expired, b.cancel_requested, i.cost, (SELECT max(m.attempt) FROM hx_batch_item m"       \
	" WHERE m.batch = b.subject AND m.n >= " n " AND m.n < " n " + " width "), a.name"
DB_STMT(stmt_markers, "audit_markers", "t", "iiiiiit",
	"SELECT " MARKERS("json_extract(x.value, '$[1]')", "json_extract(x.value, '$[3]')") " FROM json_each(?1) x LEFT JOIN hx_batch b ON b.subject = json_extract(x.value, '$[0]')"
	" LEFT JOIN hx_batch_item i ON i.batch = b.subject AND i.n = json_extract(x.value, '$[1]')"
	" LEFT JOIN hx_account a ON a.subject = json_extract(x.value, '$[2]') ORDER BY x.key",
	.pg_sql = "SELECT " MARKERS("(x.r->>1)::bigint", "(x.r->>3)::bigint") " FROM json_array_elements(?1::json) WITH ORDINALITY AS x(r, place)"
		  " LEFT JOIN hx_batch b ON b.subject = (x.r->>0)::bigint"
		  " LEFT JOIN hx_batch_item i ON i.batch = b.subject AND i.n = (x.r->>1)::bigint"
		  " LEFT JOIN hx_account a ON a.subject = (x.r->>2)::bigint ORDER BY x.place");
enum { OF_ACCOUNT, OF_TOTAL, OF_EXPIRED, OF_FLAG, OF_COST, OF_ATTEMPT, OF_NAME };

static void ledgers_ask(struct auditor *a, struct unit *unit)
{
	struct db_value from = db_int(a->key);

	if (a->looks_up) {
		UNIT_ADD(unit, UNIT_ANY, &stmt_markers, db_text(strbuf_slice(&a->list)));
		return;
	}
	UNIT_ADD(unit, UNIT_ANY, &stmt_accounts, from, db_int(AUDIT_SUBJECTS_SLICE));
	UNIT_ADD(unit, UNIT_ANY, &stmt_entries, from, db_int(AUDIT_SUBJECTS_SLICE), db_int(a->seq),
		 db_int(AUDIT_ENTRIES_SLICE));
}

/* ---- an entry ---- */

static void note_marker(struct auditor *a, const struct audit_entry *entry)
{
	ASSERT(a->entries_n < AUDIT_ENTRIES_SLICE);
	strbuf_addf(&a->list, "%s[%lld,%lld,%lld,%d]", a->entries_n ? "," : "[", (long long)entry->batch,
		    (long long)entry->n, (long long)entry->account, entry->kind == ENTRY_REFUND ? BATCH_SLICE : 1);
	a->entries[a->entries_n++] = *entry;
}

static bool follow_entry(struct auditor *a, const struct db_value *row)
{
	struct audit_entry_row entry = {
		.account = row[ENTRY_ACCOUNT].i,
		.seq = row[ENTRY_SEQ].i,
		.amount = row[ENTRY_AMOUNT].i,
		.balance = row[ENTRY_BALANCE].i,
		.key = row[ENTRY_KEY].s,
		.reason = row[ENTRY_REASON].s,
	};
	struct audit_place place = {entry.account, "ledger entry", entry.seq};
	struct audit_entry read;

	if (!audit_entry_follows(&entry, &place, a->chain.last.seq, a->balance, &a->finding) ||
	    !audit_entry_read(&entry, &place, &read, &a->finding))
		return false;
	if (read.of_batch)
		note_marker(a, &read);
	a->chain.last.seq = entry.seq;
	a->balance = entry.balance;
	a->counts.entries++;
	return true;
}

/* ---- both streams ---- */

static void name_it(struct auditor *a, struct slice name)
{
	snprintf(a->finding.subject, AUDIT_NAME_BYTES, "account:%.*s", SLICE_ARGS(name));
}

static bool audit_ledgers_judge(struct auditor *a, const struct db_value *account)
{
	struct audit_place place = {.id = account[ACCOUNT].i};

	a->counts.accounts++;
	return audit_equal(&a->finding, &place, "seq", a->chain.last.seq, account[SEQ].i) &&
	       audit_equal(&a->finding, &place, "balance", a->balance, account[BALANCE].i);
}

static bool audit_ledgers_walk(struct auditor *a, struct audit_streams *all, size_t i, bool *ret_whole)
{
	const struct db_value *account = db_cell(all->heads, i, 0);
	int64_t id = account[ACCOUNT].i;
	bool fine;

	if (a->chain.last.subject != id) {
		audit_chain_start(&a->chain, id);
		a->balance = 0;
	}
	fine = audit_belongs(a, all, &id);
	while (fine && all->at < all->rows->n && db_cell(all->rows, all->at, ENTRY_ACCOUNT)->i == id)
		fine = follow_entry(a, db_cell(all->rows, all->at++, 0));
	*ret_whole = all->at < all->rows->n || !all->cut;
	if (fine && *ret_whole)
		fine = audit_ledgers_judge(a, account);
	if (a->finding.there && a->finding.id == id)
		name_it(a, account[NAME].s);
	return fine;
}

/* ---- markers ---- */

static const char *const reasons[] = {[ENTRY_CHARGE] = "charge", [ENTRY_RETURN] = "return", [ENTRY_REFUND] = "refund"};

static bool marker_fits(struct audit_finding *f, const struct audit_entry *entry, const struct db_value *row)
{
	struct audit_place place = {entry->account, "ledger entry", entry->seq};
	bool stripped = cell_int(&row[OF_EXPIRED]) != 0, there = row[OF_COST].type != DB_NULL;
	char text[EXCERPT_BYTES_MAX + 1];
	struct slice key;

	snprintf(text, sizeof text, "/%s/%lld/%s/%lld", id_text("batch", entry->batch).text, (long long)entry->n,
		 reasons[entry->kind], (long long)entry->attempt);
	key = slice_str(text);
	if (!audit_holds(f, &place, row[OF_ACCOUNT].type != DB_NULL && row[OF_ACCOUNT].i == entry->account, "marker",
			 "a batch of this account", key) ||
	    !audit_holds(f, &place, entry->n < row[OF_TOTAL].i && (there || stripped), "marker",
			 "an item of the batch that its key names", key) ||
	    !audit_holds(f, &place, entry->kind != ENTRY_REFUND || row[OF_FLAG].i == 1, "marker",
			 "a batch whose cancel was requested", key))
		return false;
	if (stripped)
		return true;
	return audit_holds(f, &place, entry->attempt >= 1 && entry->attempt <= row[OF_ATTEMPT].i, "marker",
			   "an attempt that the item has had", key) &&
	       (entry->kind == ENTRY_REFUND ||
		audit_equal(f, &place, "amount", entry->kind == ENTRY_CHARGE ? -row[OF_COST].i : row[OF_COST].i,
			    entry->amount));
}

static bool take_markers(struct auditor *a, const struct unit_result *result)
{
	const struct db_rows *rows = &result->rows[0];

	ASSERT(rows->n == a->entries_n);
	for (size_t i = 0; i < rows->n; i++)
		if (!marker_fits(&a->finding, &a->entries[i], db_cell(rows, i, 0))) {
			name_it(a, db_cell(rows, i, OF_NAME)->s);
			return false;
		}
	a->looks_up = false;
	return a->more;
}

static bool ledgers_take(struct auditor *a, const struct unit_result *result)
{
	struct audit_streams all = {
		.heads = &result->rows[0],
		.rows = &result->rows[1],
		.cut = result->rows[1].n == AUDIT_ENTRIES_SLICE,
		.row = "ledger entry",
		.head = "account",
		.wanted = "the account of this entry",
	};

	if (a->looks_up)
		return take_markers(a, result);
	if (a->key == INT64_MIN)
		audit_chain_start(&a->chain, 0);
	a->entries_n = 0;
	strbuf_reset(&a->list);
	a->more = audit_walk(a, &all, audit_ledgers_walk);
	a->looks_up = !a->finding.there && a->entries_n > 0;
	if (a->looks_up)
		strbuf_add_char(&a->list, ']');
	ASSERT(!a->list.failed); /* 512 pairs of numbers */
	return !a->finding.there && (a->looks_up || a->more);
}

const struct audit_pass audit_ledgers = {.name = "ledgers", .ask = ledgers_ask, .take = ledgers_take};
