/* See why.h: the rows that its sentences are made of. */
#include "base/id.h"
#include "flow/why.h"

/* in_flight_max bounds all jobs of a queue that are RUNNING and have such a bound. */
#define WHY_JOB                                                                                                                     \
	"SELECT j.subject, s.status, s.owner, s.until, j.queue, j.attempt, j.due_at, j.error, j.in_flight_max,"                     \
	" (SELECT count(*) FROM hx_job k WHERE k.workspace = j.workspace AND k.queue = j.queue"                                     \
	" AND k.in_flight_max > 0 AND k.due_at IS NULL AND k.ended_at IS NULL), j.run, s.fence, hx_now_ms(), j.workflow, j.action," \
	" w.held, w.key, (SELECT count(*) FROM hx_slot h WHERE h.name = w.name AND h.held = 1), " SLOT_BEFORE(                      \
		"w") ","                                                                                                            \
		     " CASE WHEN j.repeatable = 1 THEN j.sent_version END"                                                          \
		     " FROM hx_job j JOIN hx_subject s ON s.id = j.subject"                                                         \
		     " LEFT JOIN hx_slot w ON w.holder = j.subject AND w.held <> 1 WHERE "
#define WHY_JOB_OUT "ittitiitiiiiittitiii"

DB_STMT(stmt_job, "why_job", "ti", WHY_JOB_OUT,
	WHY_JOB "j.workspace = ?1 AND j.subject = ?2");

DB_STMT(stmt_job_of_run, "why_job_of_run", "ti", WHY_JOB_OUT,
	WHY_JOB "j.subject = (SELECT r.job FROM hx_run r WHERE r.workspace = ?1 AND r.subject = ?2)");

/*
 * The ids of after-effects are those that came right after the op of their transition (STEP_AFTER_EFFECTS_MAX, base/id.h). By
 * them they are found without an index of their own, for the last HISTORY_MAX changes of the entity. Any other number near them
 * is an id of another lane: another entity's, perhaps in another workspace.
 */
#define HISTORY_MAX "100"
#define BEHIND(n) "t.op + " n " + (t.op % ?4 + " n ") / ?4 * ?5"

DB_STMT(stmt_effects, "why_effects", "tttiiti", "itt",
	"SELECT j.subject, s.status, j.action FROM (SELECT h.op FROM hx_entity e JOIN hx_history h ON h.subject = e.subject"
	" WHERE e.workspace = ?1 AND e.workflow = ?2 AND e.name = ?3 ORDER BY h.seq DESC LIMIT " HISTORY_MAX ") t"
	" JOIN hx_job j ON j.subject IN (" BEHIND("1") ", " BEHIND("2") ", " BEHIND("3") ", " BEHIND("4") ")"
	" AND j.workspace = ?6 AND j.workflow = ?2"
	" JOIN hx_subject s ON s.id = j.subject WHERE s.status <> 'COMPLETED' ORDER BY j.subject LIMIT ?7");

_Static_assert(STEP_AFTER_EFFECTS_MAX == 4, "as many are looked for");
_Static_assert(sizeof WHY_JOB_OUT - 1 == WHY_CELL_COLUMNS, "one type for each column");

void why_read_job(struct unit *unit, struct slice workspace, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_job, db_text(workspace), db_int(subject));
}

/* How many of its children are open; and down from the first of those, as far as there is one. */
DB_STMT(stmt_child, "why_child", "i", "iitt",
	"WITH RECURSIVE down(subject, deep) AS (SELECT CAST(?1 AS bigint), 0 UNION ALL SELECT (SELECT min(k.subject) FROM hx_run k"
	" WHERE k.parent = d.subject AND k.child = 'open'), d.deep + 1 FROM down d WHERE d.subject IS NOT NULL)"
	" SELECT (SELECT count(*) FROM hx_run k WHERE k.parent = ?1 AND k.child = 'open'), s.id, s.status, r.awaits FROM down d"
	" JOIN hx_subject s ON s.id = d.subject JOIN hx_run r ON r.subject = d.subject WHERE d.deep > 0 ORDER BY d.deep DESC LIMIT 1");

void why_read_run(struct unit *unit, struct slice workspace, int64_t subject)
{
	run_read(unit, workspace, subject);
	ASSERT(unit->lines_n == WHY_LINE_JOB_OF_RUN);
	UNIT_ADD(unit, UNIT_ANY, &stmt_job_of_run, db_text(workspace), db_int(subject));
	ASSERT(unit->lines_n == WHY_LINE_SLOT);
	slot_read_wait(unit, subject);
	ASSERT(unit->lines_n == WHY_LINE_FUNCTION);
	why_read_function(unit, workspace, subject);
	ASSERT(unit->lines_n == WHY_LINE_CHILD);
	UNIT_ADD(unit, UNIT_ANY, &stmt_child, db_int(subject));
}

void why_read_entity(struct unit *unit, const struct entity_ref *ref)
{
	/* What is in a table of the user's has no workspace. */
	struct db_value workspace = ref->machine->table ? db_str("") : db_text(ref->workspace);

	entity_read(unit, ref, slice_str(""));
	ASSERT(unit->lines_n == WHY_LINE_EFFECTS);
	UNIT_ADD(unit, UNIT_ANY, &stmt_effects, workspace, db_str(ref->machine->workflow->name), db_text(ref->name),
		 db_int(ID_COUNTER_N), db_int(ID_CARRY), db_text(ref->workspace), db_int(WHY_EFFECTS_MAX + 1));
}
