/* See audit.h. */
#include "support/audit.h"

#include "base/hash.h"

#define ROWS_MAX 10000000
#define LINK_BYTES_MAX 4096

/* Not the engine's own reads: these take in all that a transition writes. */
static const struct db_stmt stmt_subject = {
	.name = "audit_subject",
	.sql = "SELECT status, version, op, fence, owner, until, updated_at, seq, head FROM subject WHERE id = ?1",
	.in = "i",
	.out = "tiiitiiib",
};
enum { STATUS, VERSION, OP, FENCE, OWNER, UNTIL, UPDATED_AT, SEQ, HEAD };

static const struct db_stmt stmt_history = {
	.name = "audit_history",
	.sql = "SELECT seq, from_status, to_status, version, fence, op, node, at, hash FROM history"
	       " WHERE subject = ?1 ORDER BY seq LIMIT ?2",
	.in = "ii",
	.out = "ittiiitib",
};

static struct history_row row_of(int64_t subject, const struct db_rows *rows, size_t i)
{
	return (struct history_row){
		.subject = subject,
		.seq = db_cell(rows, i, 0)->i,
		.from = db_cell(rows, i, 1)->s,
		.to = db_cell(rows, i, 2)->s,
		.version = db_cell(rows, i, 3)->i,
		.fence = db_cell(rows, i, 4)->i,
		.op = db_cell(rows, i, 5)->i,
		.node = db_cell(rows, i, 6)->s,
		.at = db_cell(rows, i, 7)->i,
	};
}

static const char *wrong_first(const struct history_row *row)
{
	if (row->seq != 1 || row->version != 1)
		return "it does not begin at 1";
	return row->from.n || row->fence ? "it does not begin with a creation" : NULL;
}

static const char *wrong_stride(const struct history_row *before, const struct history_row *row)
{
	if (row->version <= before->version)
		return "the version did not rise";
	return row->fence < before->fence || row->fence > before->fence + 1 ? "the fence fell, or leapt" : NULL;
}

static const char *wrong_next(const struct audit *audit, const struct history_row *before,
			      const struct history_row *row)
{
	bool claims = audit->claimed && slice_is(row->to, audit->claimed);

	if (row->seq != before->seq + 1)
		return "a gap";
	if (!slice_eq(row->from, before->to))
		return "it does not start where the row before ended";
	if (audit->driven)
		return wrong_stride(before, row);
	if (row->version != before->version + 1)
		return "the version did not rise by one";
	if (row->fence != before->fence + claims)
		return claims ? "a claim whose fence did not rise by one" : "the fence changed without a claim";
	return NULL;
}

/* The hash of the row, given the one before; ret_hash may be the same memory. */
static void link_hash(const struct history_row *row, struct slice before, uint8_t ret_hash[SHA256_BYTES])
{
	struct strbuf text;

	strbuf_init(&text, LINK_BYTES_MAX);
	history_link_text(row, &text);
	ASSERT(!text.failed);
	sha256_pair(before, strbuf_slice(&text), ret_hash);
	strbuf_release(&text);
}

static const char *wrong_subject(const struct audit *audit, const struct db_rows *subject,
				 const struct history_row *last, const uint8_t head[SHA256_BYTES])
{
	bool claimed = audit->claimed && slice_is(last->to, audit->claimed);

	if (!slice_eq(db_cell(subject, 0, STATUS)->s, last->to))
		return "its status is not the last one of the history";
	if (db_cell(subject, 0, VERSION)->i != last->version || db_cell(subject, 0, SEQ)->i != last->seq ||
	    db_cell(subject, 0, OP)->i != last->op || db_cell(subject, 0, FENCE)->i != last->fence ||
	    db_cell(subject, 0, UPDATED_AT)->i != last->at)
		return "version, seq, op, fence or time is not that of its last history row";
	if (!slice_eq(db_cell(subject, 0, HEAD)->s, slice_of(head, SHA256_BYTES)))
		return "its head is not the end of the chain";
	if ((db_cell(subject, 0, OWNER)->type != DB_NULL) != claimed ||
	    (db_cell(subject, 0, UNTIL)->type != DB_NULL) != claimed)
		return "owner and until do not fit its status";
	return NULL;
}

static int64_t check(struct audit *audit, int64_t subject, const struct unit_result *result, struct hx_error *err)
{
	const struct db_rows *rows = &result->rows[1];
	struct history_row before, row = {0};
	uint8_t head[SHA256_BYTES];
	const char *wrong = result->rows[0].n != 1 ? "there is no such subject" : rows->n == 0 ? "no history" : NULL;
	size_t i;

	for (i = 0; i < rows->n && !wrong; i++) {
		before = row;
		row = row_of(subject, rows, i);
		wrong = i == 0 ? wrong_first(&row) : wrong_next(audit, &before, &row);
		link_hash(&row, slice_of(head, i ? sizeof head : 0), head);
		if (!wrong && !slice_eq(db_cell(rows, i, 8)->s, slice_of(head, sizeof head)))
			wrong = "the chain is broken";
		if (!wrong && audit->see)
			audit->see(audit->context, &row);
	}
	if (!wrong)
		wrong = wrong_subject(audit, &result->rows[0], &row, head);
	if (!wrong)
		return (int64_t)rows->n;
	(void)error_set(err, HX_DATA_ERROR, "subject %lld, history row %zu of %zu: %s", (long long)subject, i, rows->n,
			wrong);
	return -1;
}

int64_t audit_subject(struct audit *audit, int64_t subject, struct hx_error *err)
{
	struct unit unit;
	struct unit_result result;

	arena_reset(&audit->arena);
	unit_init(&unit, /* op= */ 0);
	unit_touch(&unit, subject); /* on PostgreSQL both lines then see the same moment */
	UNIT_ADD(&unit, UNIT_ANY, &stmt_subject, db_int(subject));
	UNIT_ADD(&unit, UNIT_ANY, &stmt_history, db_int(subject), db_int(ROWS_MAX));
	if (db_run_unit(audit->db, &unit, &result, &audit->arena, err) != HX_OK)
		return -1;
	return check(audit, subject, &result, err);
}
