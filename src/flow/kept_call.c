/* Statements of kept calls. See kept_call.h. */
#include "flow/kept_call.h"

#define INTO_KEPT                                                                                                      \
	"INSERT INTO hx_kept_call (subject, step, effort, from_status, requester, input, data, address, version, open, op)"

/* clang-format off */

/* p: what stands before the number of a parameter. The data is that of the entity as it was read: its version says so, or it is the user's own. */
#define BEGUN(p, from)                                                                                                 \
	INTO_KEPT " SELECT s.id, " p "2, " p "6, " p "5, " p "3, " p "4, e.data, " p "7, " p "8, 1, " p "9"             \
	" FROM " from "hx_subject s JOIN hx_entity e ON e.subject = s.id WHERE s.id = " p "1"                          \
	" AND s.effort = " p "6" /* mutant: note-effort */                                                             \
	" AND (" p "10 = 0 OR s.version = " p "10)" /* mutant: note-over-data -> " AND " p "10 >= 0" */                \
	" AND s.fence = " p "11" /* mutant: note-over-claim -> " AND " p "11 >= 0" */                                  \
	" AND NOT EXISTS (SELECT 1 FROM hx_kept_call o WHERE o.subject = s.id AND o.step = " p "2"                      \
	" AND o.effort >= " p "12)" /* mutant: note-unseen -> " AND o.effort > " p "12 + 1000)" */                     \
	" ON CONFLICT (subject, step, effort)" ONE_CALL
#define ONE_CALL \
	" DO NOTHING" /* mutant: note-over-another -> " DO UPDATE SET open = hx_kept_call.open + 1" */

DB_STMT(stmt_note, "kept_call_note", "ittttitiiiii", "",
	BEGUN("?", ""),
	.set_sql = "WITH won AS (" BEGUN("u.p", "{u}, ") " RETURNING subject) SELECT u.ord FROM won JOIN {u} ON won.subject = u.p1",
	.counted = true);

DB_STMT(stmt_again, "kept_call_again", "ittttitiiti", "",
	"UPDATE hx_kept_call SET requester = ?3, input = ?4, from_status = ?5, address = ?7, version = ?8, op = ?9, data = ?10,"
	" open = open + 1{from} WHERE subject = ?1 AND step = ?2"
	" AND effort = ?6" /* mutant: again-answered -> " AND ?6 >= 0" */
	" AND coalesce(version, ?11) = ?11", /* mutant: again-another -> " AND ?11 > 0", */
	.counted = true);

DB_STMT(stmt_look_up, "kept_call_look_up", "ii", "i",
	"SELECT {ord}subject FROM hx_kept_call{join} WHERE subject = ?1 AND op = ?2");

/* Of the claim that the caller has read, whoever has put it away before. */
#define OF_THIS_CLAIM " AND fence = ?2"
DB_STMT(stmt_put_away, "kept_call_put_away", "ii", "",
	INTO_KEPT " SELECT e.subject, e.claim_step, e.claim_effort, e.claim_from, e.claim_requester, e.claim_input, e.data, e.claim_address,"
	" e.claim_version, 1, NULL FROM hx_entity e JOIN hx_subject s ON s.id = e.subject WHERE e.subject = ?1"
	" AND e.claim_effort IS NOT NULL"
	OF_THIS_CLAIM /* mutant: put-away-another -> " AND ?2 >= 0" */
	" ON CONFLICT (subject, step, effort) DO NOTHING");
DB_STMT(stmt_unclaimed, "kept_call_away", "ii", "",
	"UPDATE hx_entity SET claim_effort = NULL{from} WHERE subject = ?1 AND EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = ?1"
	" AND s.fence = ?2)");
DB_STMT(stmt_settle, "kept_call_settle", "ii", "",
	"UPDATE hx_subject SET doubt = 0{from} WHERE id = ?1 AND fence = ?2 AND owner IS NULL");

DB_STMT(stmt_forget, "kept_call_forget", "iti", "",
	"DELETE FROM hx_kept_call WHERE subject = ?1 AND step = ?2"
	" AND effort = ?3" /* mutant: forget-another -> " AND ?3 >= 0" */
	, .set_sql = "DELETE FROM hx_kept_call k USING {u} WHERE k.subject = u.p1 AND k.step = u.p2 AND k.effort = u.p3");

/* The next effect of the step is another one. To count once too often does no harm. */
DB_STMT(stmt_answered, "kept_call_answered", "ii", "",
	"UPDATE hx_subject SET effort = effort + 1{from} WHERE id = ?1"
	" AND effort = ?2" /* mutant: answered-effort -> " AND ?2 >= 0" */
);
/* The claim that is noted has another key, or none any more: it was put away, while its holder is still noted in a table of the user's. */
#define OF_NO_CLAIM \
	" OR e.claim_effort IS NULL OR e.claim_effort <> ?3 OR e.claim_step <> ?2"
DB_STMT(stmt_over, "kept_call_over", "itii", "",
	"DELETE FROM hx_kept_call WHERE subject = ?1 AND step = ?2 AND effort = ?3"
	" AND open <= ?4" /* mutant: failed-alone -> " AND ?4 >= 0" */
	" AND EXISTS (SELECT 1 FROM hx_subject s JOIN hx_entity e ON e.subject = s.id WHERE s.id = ?1"
	" AND (s.doubt = 0" OF_NO_CLAIM ")" /* mutant: answered-in-doubt */
	" AND (s.owner IS NULL" OF_NO_CLAIM ")" /* mutant: answered-owner */
	")");

/* clang-format on */

void kept_call_note(struct unit *unit, int64_t op, int64_t subject, const struct entity_sent *call)
{
	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_note, db_int(subject), db_text(call->step), db_text(call->requester),
		 db_text(call->input), db_str(call->from), db_int(call->effort), db_text(call->address),
		 db_int(call->version), db_int(op), db_int(call->at_version), db_int(call->fence),
		 db_int(entity_call_unseen(call)));
}

void kept_call_again(struct unit *unit, int64_t op, int64_t subject, const struct entity_sent *call)
{
	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_again, db_int(subject), db_text(call->step), db_text(call->requester),
		 db_text(call->input), db_str(call->from), db_int(call->effort), db_text(call->address),
		 db_int(call->version), op == KEPT_BY_CLAIM ? db_null() : db_int(op), db_text(call->data),
		 db_int(call->kept_version));
}

void kept_call_look_up(struct unit *unit, int64_t op, int64_t subject)
{
	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_ANY, &stmt_look_up, db_int(subject), db_int(op));
}

void kept_call_put_away(struct unit *unit, int64_t subject, int64_t fence)
{
	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_ANY, &stmt_put_away, db_int(subject), db_int(fence));
	UNIT_ADD(unit, UNIT_ANY, &stmt_unclaimed, db_int(subject), db_int(fence));
	UNIT_ADD(unit, UNIT_ANY, &stmt_settle, db_int(subject), db_int(fence));
}

void kept_call_forget(struct unit *unit, int64_t subject, int64_t effort, struct slice step)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_forget, db_int(subject), db_text(step), db_int(effort));
}

void kept_call_answered(struct unit *unit, int64_t subject, int64_t effort, struct slice step, bool alone)
{
	int64_t open_max = alone ? 1 : INT64_MAX;

	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_ANY, &stmt_answered, db_int(subject), db_int(effort));
	UNIT_ADD(unit, UNIT_ANY, &stmt_over, db_int(subject), db_text(step), db_int(effort), db_int(open_max));
}
