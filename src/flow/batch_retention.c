/* See batch_retention.h. */
#include "flow/batch_retention.h"

#include "flow/answer.h"
#include "flow/batch_parts.h"

/* A line is a guard. */
/* clang-format off */

DB_STMT(stmt_scan_expired, "batch_scan_expired", "ii", "i",
	/* The function is volatile on PostgreSQL: bare, it would be a filter over all batches that have ended. */
	.sql = "SELECT subject FROM hx_batch WHERE completed_at <= (SELECT hx_now_ms()) - ?1 AND expired < 2"
	       " ORDER BY completed_at LIMIT ?2");

DB_STMT(stmt_read_account, "batch_expire_account", "i", "i",
	"SELECT account FROM hx_batch WHERE subject = ?1");

DB_STMT(stmt_expire, "batch_expire", "ii", "",
	"UPDATE hx_batch SET expired = 1, error = NULL, trace = NULL, requester = '' WHERE subject = ?1"
	" AND expired < 2"
	" AND completed_at <= hx_now_ms() - ?2"
	" AND EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = ?1 AND s.status IN ('COMPLETED', 'FAILED', 'CANCELLED'))");

/* Also those that a lost loader has left behind the total. */
DB_STMT(stmt_drop_items, "batch_expire_items", "ii", "",
	"DELETE FROM hx_batch_item WHERE batch = ?1"
	" AND n IN (SELECT n FROM hx_batch_item WHERE batch = ?1 ORDER BY n LIMIT ?2)");

DB_STMT(stmt_gone, "batch_expire_gone", "i", "i",
	"UPDATE hx_batch SET expired = 2 WHERE subject = ?1"
	" AND NOT EXISTS (SELECT 1 FROM hx_batch_item WHERE batch = ?1)"
	" RETURNING subject");

/* Whoever decided on what it had read before loses. */
DB_STMT(stmt_outdate, "batch_expire_outdate", "i", "",
	"UPDATE hx_subject SET version = version + 1 WHERE id = ?1");

DB_STMT(stmt_drop_history, "batch_expire_history", "i", "",
	"DELETE FROM hx_history WHERE subject = ?1");

/* clang-format on */

#define GONE_LINE 2

void batch_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_scan_expired, db_int(age_ms), db_int(limit));
}

void batch_expire(struct unit *unit, int64_t subject, int64_t account, int64_t age_ms)
{
	batch_touch(unit, subject, account);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_expire, db_int(subject), db_int(age_ms));
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop_items, db_int(subject), db_int(BATCH_SLICE));
	UNIT_ADD(unit, UNIT_ANY, &stmt_gone, db_int(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_outdate, db_int(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop_history, db_int(subject));
}

static void finish(struct batch_expiry *e, enum hx_code code)
{
	e->code = code;
	e->at = EXPIRY_DONE;
}

static void take_account(struct batch_expiry *e, const struct unit_result *result)
{
	if (result->rows[0].n == 0) {
		finish(e, HX_NOT_FOUND);
		return;
	}
	e->account = db_cell(&result->rows[0], 0, 0)->i;
	e->at = EXPIRY_DELETING;
}

static void take(struct task *task, const struct answer *answer)
{
	struct batch_expiry *e = (struct batch_expiry *)task;

	e->op = answer->id;
	if (e->at == EXPIRY_NEW) {
		e->at = EXPIRY_READING;
	} else if (answer->result->verdict == UNIT_FAILED) {
		finish(e, flow_failure(answer->result));
	} else if (answer->result->verdict != UNIT_WON) {
		/* Lost: another node was first. Unknown: it is found again if need be. */
		finish(e, answer->result->verdict == UNIT_LOST ? HX_OK : HX_OUTCOME_UNKNOWN);
	} else if (e->at == EXPIRY_READING) {
		take_account(e, answer->result);
	} else if (answer->result->rows[GONE_LINE].n) {
		e->gone = true;
		finish(e, HX_OK);
	}
}

static void ask(const struct task *task, struct ask *ask)
{
	const struct batch_expiry *e = (const struct batch_expiry *)task;

	if (e->at == EXPIRY_DONE) {
		ask->kind = ASK_DONE;
		ask->code = e->code;
		return;
	}
	ask->kind = ASK_COMMIT;
	unit_init(ask->unit, e->op);
	if (e->at == EXPIRY_READING)
		UNIT_ADD(ask->unit, UNIT_ANY, &stmt_read_account, db_int(e->subject));
	else
		batch_expire(ask->unit, e->subject, e->account, e->age_ms);
}

static const char *where(const struct task *task)
{
	static const char *const names[] = {"new", "reading", "deleting", "done"};

	return names[((const struct batch_expiry *)task)->at];
}

static const struct task_kind kind = {
	.name = "batch expiry",
	.size = sizeof(struct batch_expiry),
	.take = take,
	.ask = ask,
	.where = where,
};

void batch_expiry_init(struct batch_expiry *expiry, int64_t subject, int64_t age_ms)
{
	*expiry = (struct batch_expiry){.subject = subject, .age_ms = age_ms};
	task_init(&expiry->task, &kind, /* topic= */ 0);
}
