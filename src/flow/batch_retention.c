/* See batch_retention.h. */
#include "flow/batch_retention.h"

#include "flow/answer.h"
#include "flow/attribute.h"
#include "flow/batch_parts.h"
#include "task/states.h"

/* A line is a guard. */
DB_STMT(stmt_scan_expired, "batch_scan_expired", "ii", "i",
	SCAN_ENDED("hx_batch", " AND expired < 2"));

DB_STMT(stmt_read_account, "batch_expire_account", "i", "i", "SELECT account FROM hx_batch WHERE subject = ?1");

DB_STMT(stmt_expire, "batch_expire", "ii", "",
	"UPDATE hx_batch SET expired = 1, error = NULL, trace = NULL, requester = '', data = NULL, attributes = NULL WHERE subject = ?1"
	" AND expired < 2"
	" AND completed_at <= hx_now_ms() - ?2"
	" AND EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = ?1 AND " SUBJECT_IS_OVER ")");

/* Also those that a lost loader has left after the total. */
DB_STMT(stmt_drop_items, "batch_expire_items", "ii", "",
	"DELETE FROM hx_batch_item WHERE batch = ?1 AND n IN (SELECT n FROM hx_batch_item WHERE batch = ?1 ORDER BY n LIMIT ?2)");

DB_STMT(stmt_gone, "batch_expire_gone", "i", "i",
	"UPDATE hx_batch SET expired = 2 WHERE subject = ?1"
	" AND NOT EXISTS (SELECT 1 FROM hx_batch_item WHERE batch = ?1) RETURNING subject");

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
	attributes_drop(unit, subject); /* mutant: expired-batch-found */
	subject_strip(unit, subject);
}

/* ---- the task ---- */

enum { EXPIRY_NEW, EXPIRY_READING, EXPIRY_DELETING, EXPIRY_DONE };

static void batch_retention_take_start(struct batch_expiry *e, const struct answer *answer)
{
	e->op = answer->id;
	task_go(&e->task, EXPIRY_READING);
}

/* Lost: another node was first. Unknown: it is found again if need be. */
static bool has_won(struct batch_expiry *e, const struct answer *answer)
{
	e->op = answer->id;
	if (answer->result->verdict == UNIT_FAILED)
		task_end(&e->task, flow_failure(answer->result));
	else if (answer->result->verdict != UNIT_WON)
		task_end(&e->task, answer->result->verdict == UNIT_LOST ? HX_OK : HX_OUTCOME_UNKNOWN);
	return answer->result->verdict == UNIT_WON;
}

static void take_account(struct batch_expiry *e, const struct answer *answer)
{
	const struct db_rows *rows = &answer->result->rows[0];

	if (!has_won(e, answer))
		return;
	if (rows->n == 0) {
		task_end(&e->task, HX_NOT_FOUND);
		return;
	}
	e->account = db_cell(rows, 0, 0)->i;
	task_go(&e->task, EXPIRY_DELETING);
}

static void take_deleted(struct batch_expiry *e, const struct answer *answer)
{
	if (!has_won(e, answer) || answer->result->rows[GONE_LINE].n == 0)
		return;
	e->gone = true;
	task_end(&e->task, HX_OK);
}

TASK_UNIT(build_expiry_read, struct batch_expiry, e, UNIT_ADD(unit, UNIT_ANY, &stmt_read_account, db_int(e->subject)));
TASK_UNIT(build_delete, struct batch_expiry, e, batch_expire(unit, e->subject, e->account, e->age_ms));

static const TASK_STATES(struct batch_expiry) expiry_states[] = {
	[EXPIRY_NEW] = {"new", batch_retention_take_start},
	[EXPIRY_READING] = {"reading", take_account, build_expiry_read},
	[EXPIRY_DELETING] = {"deleting", take_deleted, build_delete},
	[EXPIRY_DONE] = {"done"},
};

TASK_KIND(expiry_kind, "batch expiry", struct batch_expiry, expiry_states, .op = offsetof(struct batch_expiry, op));

void batch_expiry_init(struct batch_expiry *expiry, int64_t subject, int64_t age_ms)
{
	*expiry = (struct batch_expiry){.subject = subject, .age_ms = age_ms};
	task_init(&expiry->task, &expiry_kind, /* topic= */ 0);
}
