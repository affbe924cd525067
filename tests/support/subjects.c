/* See subjects.h. */
#include "support/subjects.h"

#include "flow/subject_change.h"

/* clang-format off */

static const struct db_stmt stmt_create = {
	.name = "subject_create",
	.sql = INTO_SUBJECT NEW_SUBJECT("?1", "?2", "?3", "?4", "?5", "?6") " WHERE true"
	       " ON CONFLICT DO NOTHING"
	       " RETURNING id",
	.set_sql = "WITH made AS (" INTO_SUBJECT NEW_SUBJECT("p1", "p2", "p3", "p4", "p5", "p6")
		   " FROM {u} ORDER BY p1 ON CONFLICT DO NOTHING RETURNING id, op)"
		   " SELECT u.ord, made.id FROM made JOIN {u} ON made.id = u.p1 AND made.op = u.p4",
	.in = "iitiit",
	.out = "i",
};

static const struct db_stmt stmt_read_history = {
	.name = "subject_read_history",
	.sql = "SELECT seq, from_status, to_status, version, fence, op, node, at, hash FROM hx_history"
	       " WHERE subject = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
	.in = "iii",
	.out = "ittiiitib",
};

static const struct db_stmt stmt_read_head = {
	.name = "subject_read_head",
	.sql = "SELECT {ord}seq, head FROM hx_subject{join} WHERE id = ?1",
	.in = "i",
	.out = "ib",
};

/* clang-format on */

void subject_create(struct unit *unit, const struct stamp *stamp, int64_t subject, int64_t kind, const char *status)
{
	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_create, db_int(subject), db_int(kind), db_str(status), db_int(stamp->op),
		 db_int(stamp->at.ms), db_str(stamp->node));
	subject_add_history(unit, stamp, subject, "");
	unit_wake(unit, subject);
}

void subject_read_history(struct unit *unit, int64_t subject, int64_t after, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_history, db_int(subject), db_int(after), db_int(limit));
}

void subject_read_head(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_head, db_int(subject));
}
