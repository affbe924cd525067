/* See audit.h. */
#include "support/audit.h"

#include "flow/audit_chain.h"

#define ROWS_MAX 10000000

/* Not the engine's own reads: these take in all that a transition writes. */
static const struct db_stmt stmt_subject = {
	.name = "test_audit_subject",
	.sql = "SELECT status, version, op, fence, owner, until, updated_at, seq, head FROM hx_subject WHERE id = ?1",
	.in = "i",
	.out = "tiiitiiib",
};
enum { STATUS, VERSION, OP, FENCE, OWNER, UNTIL, UPDATED_AT, SEQ, HEAD };

static const struct db_stmt stmt_history = {
	.name = "test_audit_history",
	.sql = "SELECT seq, from_status, to_status, version, fence, op, node, at, hash FROM hx_history"
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

static struct audit_subject subject_of(int64_t subject, const struct db_rows *rows)
{
	return (struct audit_subject){
		.id = subject,
		.status = db_cell(rows, 0, STATUS)->s,
		.version = db_cell(rows, 0, VERSION)->i,
		.op = db_cell(rows, 0, OP)->i,
		.fence = db_cell(rows, 0, FENCE)->i,
		.owned = db_cell(rows, 0, OWNER)->type != DB_NULL,
		.has_until = db_cell(rows, 0, UNTIL)->type != DB_NULL,
		.at = db_cell(rows, 0, UPDATED_AT)->i,
		.seq = db_cell(rows, 0, SEQ)->i,
		.head = db_cell(rows, 0, HEAD)->s,
	};
}

static bool is_claim(const struct audit *audit, struct slice status)
{
	return audit->claimed && slice_is(status, audit->claimed);
}

/* What only the test knows: which status is a claim. */
static bool fence_fits(const struct audit *audit, const struct audit_chain *chain, const struct history_row *row,
		       struct audit_finding *finding)
{
	struct audit_place place = {row->subject, "history row", row->seq};

	return audit->driven || chain->last.seq == 0 ||
	       audit_equal(finding, &place, "fence", chain->last.fence + is_claim(audit, row->to), row->fence);
}

static bool owner_fits(const struct audit *audit, const struct audit_subject *subject, struct audit_finding *finding)
{
	struct audit_place place = {.id = subject->id};
	bool claimed = is_claim(audit, subject->status);

	return audit_holds(finding, &place, subject->owned == claimed && subject->has_until == claimed, "owner",
			   claimed ? "an owner and a time" : "neither owner nor time", subject->status);
}

static bool is_whole(const struct audit *audit, int64_t id, const struct unit_result *result,
		     struct audit_finding *finding)
{
	const struct audit_noun noun = {.name = "subject", .strides = audit->driven};
	const struct db_rows *rows = &result->rows[1];
	struct audit_subject subject = subject_of(id, &result->rows[0]);
	struct audit_chain chain;
	bool fine = true;

	audit_chain_start(&chain, id);
	for (size_t i = 0; i < rows->n && fine; i++) {
		struct history_row row = row_of(id, rows, i);

		fine = fence_fits(audit, &chain, &row, finding) &&
		       audit_chain_add(&chain, &noun, &row, db_cell(rows, i, 8)->s, finding);
		if (fine && audit->see)
			audit->see(audit->context, &row);
	}
	return fine && audit_chain_end(&chain, &subject, finding) && owner_fits(audit, &subject, finding);
}

static int64_t check(struct audit *audit, int64_t subject, const struct unit_result *result, struct hx_error *err)
{
	struct audit_finding f = {.what = "there is no such subject"};

	if (result->rows[0].n == 1 && is_whole(audit, subject, result, &f))
		return (int64_t)result->rows[1].n;
	(void)error_set(err, HX_PROMISE_BROKEN, "subject %lld, %s %lld: %s: expected %s, found %s", (long long)subject,
			f.row ? f.row : "its row", (long long)f.seq, f.what, f.expected, f.found);
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
