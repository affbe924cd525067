/*
 * The statements of subject.h. Each guard stands on a line of its own: tests/mutants removes them one by
 * one (the lines marked "mutant:") and the simulator must notice.
 */
#include "base/hash.h"
#include "base/utf8.h"
#include "flow/slot.h"
#include "flow/subject_change.h"

/* The history row of a change of status in the same unit: the subject's row as it is after that. */
#define AS_IT_IS                                                                                                       \
	INTO_HISTORY " SELECT id, seq, ?2, status, version, fence, op, ?3, updated_at, head FROM hx_subject{join}"     \
		     " WHERE id = ?1"
const struct db_stmt subject_history = {.name = "subject_history", .sql = AS_IT_IS, .in = "itt", .out = ""};
/* The same for the first row of a new subject. On PostgreSQL its creation has written that already. */
DB_STMT(stmt_first, "subject_first", "itt", "", AS_IT_IS, .pg_sql = "");

/* The same on SQLite right after a change, of what hx_link() was told: see `links` in db/stmt.h. */
const struct db_stmt subject_link = {
	.name = "subject_link",
	.sql = INTO_HISTORY " SELECT ?7, ?8, ?2, ?1, ?9, ?10, ?4, ?6, ?5, ?11",
	.in = "ttiiitiiiib",
	.out = "",
};

/* A line is a guard. */
DB_STMT(stmt_insert, "subject_insert", "iitiit", "",
	INTO_SUBJECT NEW_SUBJECT("?1", "?2", "?3", "?4", "?5", "?6"),
	.pg_sql = MAKE_SUBJECTS(NEW_SUBJECT("?1", "?2", "?3", "?4", "?5", "?6"), "?6", ""),
	.set_sql = MAKE_SUBJECTS(NEW_SUBJECT("u.p1", "u.p2", "u.p3", "u.p4", "u.p5", "u.p6"), "u.p6", " FROM {u}"));

DB_STMT(stmt_transition, "subject_transition", "ttiiiti", "ii",
	CHANGE_FORMS(CHANGE("fence") ANSWERED
		     "{from} WHERE id = ?7"
		     " AND status = ?2" /* mutant: transition-status */
		     " AND version = ?3" /* mutant: transition-version */
		     " AND owner IS NULL", /* mutant: transition-owner -> , */
		     "version, fence"));

DB_STMT(stmt_claim, "subject_claim", "ttiiitii", "ii",
	CHANGE_FORMS(CHANGE("fence + 1")
		     ", owner = ?6, fence = fence + 1, until = hx_now_ms() + ?8"
		     "{from} WHERE id = ?7"
		     " AND status = ?2" /* mutant: claim-status */
		     " AND version = ?3", /* mutant: claim-version -> , */
		     "version, fence"));

DB_STMT(stmt_finish, "subject_finish", "ttiiiti", "ii",
	.fenced = true,
	CHANGE_FORMS(CHANGE("fence") FREED ANSWERED
		     "{from} WHERE id = ?7"
		     " AND fence = ?3" /* mutant: finish-fence */
		     " AND status = ?2", /* mutant: finish-status -> , */
		     "version, fence"));

DB_STMT(stmt_release, "subject_release", "ttiiitii", "ii",
	.fenced = true,
	CHANGE_FORMS(CHANGE("fence") FREED
		     ", effort = effort + CASE WHEN ?8 = 1 THEN 1 ELSE 0 END" /* mutant: release-effort -> ", effort = effort + 1" */
		     ", doubt = CASE WHEN ?8 = 1 THEN 0 WHEN ?8 = 2 THEN 1 ELSE doubt END" /* mutant: release-doubt */
		     "{from} WHERE id = ?7"
		     " AND fence = ?3" /* mutant: release-fence */
		     " AND status = ?2", /* mutant: release-status -> , */
		     "version, fence"));

DB_STMT(stmt_revert, "subject_revert", "ttiiiti", "ii",
	.fenced = true,
	CHANGE_FORMS(CHANGE("fence") FREED
		     ", doubt = 1" /* mutant: doubt-after-revert */
		     "{from} WHERE id = ?7"
		     " AND until <= hx_now_ms()" /* mutant: revert-until */
		     " AND fence = ?3" /* mutant: revert-fence */
		     " AND status = ?2", /* mutant: revert-status -> , */
		     "version, fence"));

DB_STMT(stmt_take_over, "subject_take_over", "ttiiitii", "ii",
	.fenced = true,
	CHANGE_FORMS(CHANGE("fence + 1")
		     ", owner = ?6, fence = fence + 1, until = hx_now_ms() + ?8"
		     "{from} WHERE id = ?7"
		     " AND until <= hx_now_ms()" /* mutant: take-over-until */
		     " AND fence = ?3" /* mutant: take-over-fence */
		     " AND status = ?2", /* mutant: take-over-status -> , */
		     "version, fence"));

/* ?8 transitions, ?9 lease, ?10 doubt. */
#define HELD_FOR                                                                                                       \
	", owner = CASE WHEN ?9 > 0 THEN ?6 END, until = CASE WHEN ?9 > 0 THEN hx_now_ms() + ?9 END, doubt = ?10"

/*
 * ?11: CHILD_TOLD if the writer has read that its parent wants it to fail. Otherwise a run that is to fail loses here,
 * and is read again.
 */
#define UNLESS_TO_FAIL                                                                                                 \
	" AND (?11 = 2 OR NOT EXISTS (SELECT 1 FROM hx_run r WHERE r.subject = ?7 AND r.asked = 'fail'))" /* mutant: child-goes-on -> " AND ?11 > 0" */

/* clang-format off */
#define SEIZE(more)                                                                                                    \
	CHANGE_FORMS(CHANGE_BY("?8", "fence + 1") HELD_FOR                                                             \
		     ", fence = fence + 1"                                                                             \
		     "{from} WHERE id = ?7"                                                                            \
		     " AND (owner IS NULL OR until <= hx_now_ms())" /* mutant: seize-until */                          \
		     " AND version = ?3" /* mutant: seize-version */                                                   \
		     " AND status = ?2" /* mutant: seize-status */                                                     \
		     more, "version, fence")
DB_STMT(stmt_seize, "subject_seize", "ttiiitiiii", "ii", SEIZE(""));
DB_STMT(stmt_seize_child, "subject_seize_child", "ttiiitiiiii", "ii", SEIZE(UNLESS_TO_FAIL));

/*
 * One that is held by whoever makes it: its row as it is after both changes, and both rows of history. ?3 is the kind. Of PostgreSQL all
 * in one statement.
 */
#define LINK_MADE(p) "hx_link(NULL, " p "7, 1, '', " p "2, 1, 0, " p "4, " p "5, " p "6)"
#define INTO_HELD "INSERT INTO hx_subject (id, kind, status, version, op, fence, updated_at, seq, head, owner, until)"
#define MAKE_HELD(p, from)                                                                                             \
	"WITH made (id, kind, was, status, version, op, at, node, until, first) AS (SELECT " p "7, " p "3, " p "2, " p "1, 1 + " p "8, " \
	p "4, " p "5, " p "6, hx_now_ms() + " p "9, " LINK_MADE(p) from "),"                                            \
	" held AS (SELECT made.*, hx_link(first, id, 2, was, status, version, 1, op, at, node) AS head FROM made),"    \
	" subjects AS (" INTO_HELD " SELECT id, kind, status, version, op, 1, at, 2, head, node, until FROM held) " INTO_HISTORY       \
	" SELECT id, 1, '', was, 1, 0, op, node, at, first FROM held"                                                  \
	" UNION ALL SELECT id, 2, was, status, version, 1, op, node, at, head FROM held"
DB_STMT(stmt_insert_held, "subject_insert_held", "ttiiitiii", "",
	INTO_HELD " SELECT ?7, ?3, ?1, 1 + ?8, ?4, 1, ?5, 2,"
	" hx_link(" LINK_MADE("?") ", ?7, 2, ?2, ?1, 1 + ?8, 1, ?4, ?5, ?6), ?6, hx_now_ms() + ?9",
	.pg_sql = MAKE_HELD("?", ""), .set_sql = MAKE_HELD("u.p", " FROM {u}"),
	.carries = &stmt_first, .links = &subject_link);
DB_STMT(stmt_made_held, "subject_made_held", "ttiiitiii", "",
	INTO_HISTORY " SELECT ?7, 1, '', ?2, 1, 0, ?4, ?6, ?5, " LINK_MADE("?"), .pg_sql = "");

#define ADVANCE(change, more)                                                                                          \
	CHANGE_FORMS(change                                                                                            \
		     "{from} WHERE id = ?7"                                                                            \
		     " AND fence = ?3" /* mutant: advance-fence */                                                     \
		     " AND status = ?2" /* mutant: advance-status */                                                   \
		     " AND owner IS NOT NULL" /* mutant: advance-owner */                                              \
		     more, "version, fence")
#define ADVANCES CHANGE_BY("?8", "fence") HELD_FOR
/* The holder goes on, in the same status. Neither column is written: to SQLite, that would be a change of what its indexes look at. */
#define GOES_ON CHANGE_OF("", "?8", "fence") ", until = hx_now_ms() + ?9, doubt = ?10"
DB_STMT(stmt_advance, "subject_advance", "ttiiitiiii", "ii", .fenced = true, ADVANCE(ADVANCES, ""));
DB_STMT(stmt_advance_child, "subject_advance_child", "ttiiitiiiii", "ii", .fenced = true, ADVANCE(ADVANCES, UNLESS_TO_FAIL));
DB_STMT(stmt_go_on, "subject_go_on", "ttiiitiiii", "ii", .fenced = true, ADVANCE(GOES_ON, ""));
DB_STMT(stmt_go_on_child, "subject_go_on_child", "ttiiitiiiii", "ii", .fenced = true, ADVANCE(GOES_ON, UNLESS_TO_FAIL));
/* clang-format on */

DB_STMT(stmt_shift, "subject_shift", "ttiiitii", "ii",
	CHANGE_FORMS(CHANGE("fence")
		     ", doubt = CASE WHEN ?8 = 1 THEN 0 ELSE doubt END" /* mutant: shift-settles -> ", doubt = 0 * ?8" */
		     "{from} WHERE id = ?7"
		     " AND (version = ?3" /* mutant: shift-version -> " AND (?3 >= 0" */
		     " OR (?3 < 0 AND owner IS NULL)" /* mutant: shift-unheld -> " OR ?3 < 0" */
		     " OR (?3 = 0 AND owner IS NOT NULL))" /* mutant: shift-owner -> " OR ?3 = 0)" */
		     " AND status = ?2", /* mutant: shift-status -> , */
		     "version, fence"));

DB_STMT(stmt_withdraw, "subject_withdraw", "ttiiiti", "ii",
	CHANGE_FORMS(CHANGE("fence") FREED
		     ", doubt = CASE WHEN owner IS NULL THEN doubt ELSE 1 END" /* mutant: withdraw-doubt */
		     "{from} WHERE id = ?7"
		     " AND version = ?3" /* mutant: withdraw-version */
		     " AND status = ?2", /* mutant: withdraw-status -> , */
		     "version, fence"));

DB_STMT(stmt_hold, "subject_hold", "iii", "i",
	"UPDATE hx_subject SET until = 9223372036854775807, owner = 'held'"
	"{from} WHERE id = ?2"
	" AND owner IS NOT NULL" /* mutant: hold-owner */
	" AND (?3 = 0 OR until <= hx_now_ms())" /* mutant: hold-past -> " AND ?3 >= 0" */
	" AND fence = ?1" /* mutant: hold-fence */
	" RETURNING {ord}fence",
	.fenced = true);

/* Neither held nor nobody's (NULL): a beat that comes late must not give a held claim an end again. */
DB_STMT(stmt_heartbeat, "subject_heartbeat", "iii", "i",
	"UPDATE hx_subject SET until = hx_now_ms() + ?2"
	"{from} WHERE id = ?3"
	" AND owner <> 'held'" /* mutant: heartbeat-held */
	" AND fence = ?1" /* mutant: heartbeat-fence */
	" RETURNING {ord}fence",
	.fenced = true);

/* The sequence number is that of the change before it in the unit. */
DB_STMT(stmt_note, "subject_note", "ittttt", "",
	"INSERT INTO hx_note (subject, seq, step, requester, reason, by_whom, output)"
	" SELECT id, seq, ?2, ?3, ?4, ?5, ?6 FROM hx_subject{join} WHERE id = ?1");

DB_STMT(stmt_is_at, "subject_is_at", "ii", "i",
	"SELECT id FROM hx_subject WHERE id = ?1"
	" AND version = ?2" /* mutant: bulk-of-another -> " AND ?2 >= 0" */
);

DB_STMT(stmt_read, "subject_read", "i", "tiiiii",
	"SELECT {ord}status, version, fence, until, effort, doubt FROM hx_subject{join} WHERE id = ?1");

DB_STMT(stmt_look_up, "subject_look_up", "ii", "ii",
	"SELECT {ord}version, fence FROM hx_history{join} WHERE subject = ?1"
	" AND op = ?2" /* mutant: look-up-op -> " AND ?2 > 0" */
);

DB_STMT(stmt_scan_stuck, "subject_scan_stuck", "ii", "iiti",
	"SELECT id, kind, status, fence FROM hx_subject"
	" WHERE owner IS NOT NULL AND until <= hx_now_ms() AND id > ?1 ORDER BY id LIMIT ?2");

DB_STMT(stmt_end_claims, "subject_end_claims", "i", "",
	"UPDATE hx_subject SET until = hx_now_ms() WHERE owner IS NOT NULL AND until > hx_now_ms()"
	" AND kind = ?1" /* mutant: end-claims-kind -> " AND ?1 > 0" */
	SLOT_NONE_HELD /* mutant: alone-with-a-slot */
);

DB_STMT(stmt_last_seen, "subject_last_seen", "", "i",
	"SELECT max(updated_at) - hx_now_ms() FROM hx_subject WHERE owner IS NOT NULL AND owner <> 'held'");

DB_STMT(stmt_advance_claims, "subject_advance_claims", "i", "",
	"UPDATE hx_subject SET until = until - ?1 WHERE owner IS NOT NULL AND until > hx_now_ms()"
	" AND owner <> 'held'" /* mutant: advance-claims-held */
);

DB_STMT(stmt_outdate, "strip_outdate", "i", "",
	"UPDATE hx_subject SET version = version + 1{from} WHERE id = ?1");

DB_STMT_DROP(stmt_drop_history, "strip_history", "hx_history", "subject");

void subject_assert_valid(int64_t version UNUSED, int64_t fence UNUSED, const struct db_value *owner UNUSED,
			  const struct db_value *until UNUSED)
{
	DEBUG_ASSERT(version >= 1);
	DEBUG_ASSERT(fence >= 0);
	DEBUG_ASSERT((owner->type == DB_NULL) == (until->type == DB_NULL));
	DEBUG_ASSERT(owner->type == DB_NULL || fence >= 1); /* the claim gave it */
}

/* Before a change is written: who makes it, of what, from where to where. */
static void assert_change(const struct stamp *stamp UNUSED, const struct move *move UNUSED)
{
	DEBUG_ASSERT(move->subject != 0);
	DEBUG_ASSERT(move->from && move->from[0] && move->to && move->to[0]);
	DEBUG_ASSERT(stamp->node != NULL);
}

void subject_add_history(struct unit *unit, const struct stamp *stamp, int64_t subject, const char *from)
{
	UNIT_ADD(unit, UNIT_ANY, &subject_history, db_int(subject), db_str(from), db_str(stamp->node));
}

void subject_add_note(struct unit *unit, int64_t subject, const struct history_note *note)
{
	struct slice reason = note->reason;

	if (reason.n > NOTE_REASON_MAX)
		reason.n = utf8_cut(slice_of(reason.p, NOTE_REASON_MAX));
	UNIT_ADD(unit, UNIT_ANY, &stmt_note, db_int(subject), db_optional(note->step), db_optional(note->requester),
		 db_optional(reason), db_optional(note->by),
		 note->output.n <= NOTE_OUTPUT_MAX ? db_optional(note->output) : db_null());
}

/* What a change has beside the seven that all have, in the order of its statement's parameters. */
struct extras {
	int64_t first, second, third, fourth;
};

/* The guarded write, its history row in the same unit, and a wake for whoever watches the subject. */
static void add_change(struct unit *unit, const struct db_stmt *stmt, const struct stamp *stamp,
		       const struct move *move, int64_t guard, struct extras extras)
{
	const struct db_value params[] = {db_str(move->to),      db_str(move->from),   db_int(guard),
					  db_int(stamp->op),     db_int(stamp->at.ms), db_str(stamp->node),
					  db_int(move->subject), db_int(extras.first), db_int(extras.second),
					  db_int(extras.third),  db_int(extras.fourth)};

	assert_change(stamp, move);
	unit_touch(unit, move->subject);
	unit_add(unit, UNIT_VERDICT, stmt, (unsigned)strlen(stmt->in), params);
	subject_add_history(unit, stamp, move->subject, move->from); /* mutant: history-outside-unit */
	unit_wake(unit, move->subject);                              /* mutant: change-wakes-nobody */
}

void subject_insert(struct unit *unit, const struct stamp *stamp, int64_t subject, int64_t kind, const char *status)
{
	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_ANY, &stmt_insert, db_int(subject), db_int(kind), db_str(status), db_int(stamp->op),
		 db_int(stamp->at.ms), db_str(stamp->node));
	UNIT_ADD(unit, UNIT_ANY, &stmt_first, db_int(subject), db_str(""), db_str(stamp->node));
}

void subject_insert_held(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t kind,
			 const struct stride *stride)
{
	const struct db_value params[] = {db_str(move->to),      db_str(move->from),          db_int(kind),
					  db_int(stamp->op),     db_int(stamp->at.ms),        db_str(stamp->node),
					  db_int(move->subject), db_int(stride->transitions), db_int(stride->lease_ms)};
	const unsigned n = sizeof params / sizeof params[0];

	assert_change(stamp, move);
	DEBUG_ASSERT(stride->lease_ms > 0 && !stride->doubt && !stride->child);
	unit_touch(unit, move->subject);
	unit_add(unit, UNIT_ANY, &stmt_made_held, n, params);
	unit_add(unit, UNIT_ANY, &stmt_insert_held, n, params);
	UNIT_ADD(unit, UNIT_ANY, &stmt_first, db_int(move->subject), db_str(move->from), db_str(stamp->node));
}

void subject_transition(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t version)
{
	add_change(unit, &stmt_transition, stamp, move, version, (struct extras){0});
}

void subject_claim(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t version,
		   int64_t lease_ms)
{
	add_change(unit, &stmt_claim, stamp, move, version, (struct extras){.first = lease_ms});
}

void subject_take_over(struct unit *unit, const struct stamp *stamp, int64_t subject, const char *status, int64_t fence,
		       int64_t lease_ms)
{
	struct move stay = {subject, status, status};

	add_change(unit, &stmt_take_over, stamp, &stay, fence, (struct extras){.first = lease_ms});
}

static struct extras extras_of(const struct stride *stride)
{
	return (struct extras){stride->transitions, stride->lease_ms, stride->doubt, stride->child};
}

void subject_seize(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t version,
		   const struct stride *stride)
{
	add_change(unit, stride->child ? &stmt_seize_child : &stmt_seize, stamp, move, version, extras_of(stride));
}

void subject_advance(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t fence,
		     const struct stride *stride)
{
	bool goes_on = stride->lease_ms > 0 && strcmp(move->from, move->to) == 0;
	const struct db_stmt *stmt = goes_on ? &stmt_go_on : &stmt_advance;

	if (stride->child)
		stmt = goes_on ? &stmt_go_on_child : &stmt_advance_child;
	add_change(unit, stmt, stamp, move, fence, extras_of(stride));
}

void subject_shift(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t version, bool settles)
{
	add_change(unit, &stmt_shift, stamp, move, version, (struct extras){.first = settles});
}

void subject_withdraw(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t version)
{
	add_change(unit, &stmt_withdraw, stamp, move, version, (struct extras){0});
}

void subject_hold(struct unit *unit, int64_t subject, int64_t fence, bool if_past)
{
	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_hold, db_int(fence), db_int(subject), db_int(if_past));
	unit_wake(unit, subject);
}

void subject_finish(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t fence)
{
	add_change(unit, &stmt_finish, stamp, move, fence, (struct extras){0});
}

void subject_release(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t fence,
		     enum released released)
{
	add_change(unit, &stmt_release, stamp, move, fence, (struct extras){.first = released});
}

void subject_revert(struct unit *unit, const struct stamp *stamp, const struct move *move, int64_t fence)
{
	add_change(unit, &stmt_revert, stamp, move, fence, (struct extras){0});
}

void subject_heartbeat(struct unit *unit, int64_t subject, int64_t fence, int64_t lease_ms)
{
	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_heartbeat, db_int(fence), db_int(lease_ms), db_int(subject));
}

void subject_read(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read, db_int(subject));
}

void subject_is_at(struct unit *unit, int64_t subject, int64_t version)
{
	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_is_at, db_int(subject), db_int(version));
}

void subject_look_up(struct unit *unit, int64_t subject, int64_t op)
{
	unit_touch(unit, subject); /* mutant: look-up-unlocked */
	UNIT_ADD(unit, UNIT_ANY, &stmt_look_up, db_int(subject), db_int(op));
	unit_wake(unit, subject); /* mutant: look-up-wakes-nobody */
}

void subject_strip(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_outdate, db_int(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop_history, db_int(subject));
}

void subject_scan_stuck(struct unit *unit, int64_t after, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_scan_stuck, db_int(after), db_int(limit));
}

void subject_end_claims(struct unit *unit, int64_t kind)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_end_claims, db_int(kind));
}

void subject_last_seen(struct unit *unit)
{
	unit_add(unit, UNIT_ANY, &stmt_last_seen, 0, NULL);
}

void subject_advance_claims(struct unit *unit, int64_t by_ms)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_advance_claims, db_int(by_ms));
}

int64_t subject_kind(const char *prefix, const char *name)
{
	uint8_t digest[SHA256_BYTES];
	uint64_t kind = 0;

	sha256_pair(slice_str(prefix), slice_str(name), digest);
	for (int i = 0; i < 8; i++)
		kind = kind << 8 | digest[i];
	return (int64_t)(kind >> 1);
}
