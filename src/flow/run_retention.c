/*
 * Retention of runs: what was finished long enough ago is stripped, one run in one unit.
 *
 *   run        stays, with its key: expired = 1, without input, output, error, trace and requester
 *   subject    stays, with the head of the history: the last word on rows that are gone
 *   run_step, run_event, history with its notes, and of a function its row and its journal   go
 *
 * How long is said by the configuration for all runs, or by its own definition for those of a function: then it is the time in keep_until
 * that counts, and nothing else. When such a run goes, the time of its children has come as well.
 *
 * A run that somebody retries or cancels at the same moment: both units hold the subject still, so one of them comes first.
 * The retry first: the run is not finished any more, and the verdict is lost. This first: the version has risen, and whoever
 * decided on what it had read before loses.
 */
#include "flow/attribute.h"
#include "flow/run.h"
#include "flow/run_count.h"
#include "flow/singleton.h"

/* A line is a guard. */
/* A tree goes from its root on: a child when its parent has gone. */
#define OF_NO_TREE                                                                                                     \
	" AND (parent IS NULL OR EXISTS (SELECT 1 FROM hx_run p WHERE p.subject = hx_run.parent AND p.expired = 1))"

DB_STMT(stmt_scan_expired, "run_scan_expired", "ii", "i",
	SCAN_ENDED("hx_run", " AND expired = 0 AND keep_until IS NULL" OF_NO_TREE));

DB_STMT(stmt_scan_kept, "run_scan_kept", "ii", "i",
	SCAN_PAST("hx_run", "keep_until", " AND ?1 > 0 AND expired = 0 AND completed_at IS NOT NULL"));

/* ?2: -1, by its own time alone. */
DB_STMT(stmt_expire, "run_expire", "ii", "i",
	"UPDATE hx_run SET expired = 1, input = '{}', output = NULL, error = NULL, trace = NULL, requester = '',"
	" attributes = NULL{from}"
	" WHERE subject = ?1"
	" AND expired = 0"
	" AND (keep_until <= hx_now_ms()" /* mutant: kept-too-short -> " AND (keep_until > 0" */
	" OR (keep_until IS NULL AND ?2 >= 0 AND completed_at <= hx_now_ms() - ?2"
	OF_NO_TREE /* mutant: tree-torn */
	"))"
	" AND EXISTS (SELECT 1 FROM hx_subject s WHERE s.id = ?1 AND " SUBJECT_IS_OVER ")"
	" RETURNING {ord}subject");

DB_STMT(stmt_kept_children, "run_expire_children", "i", "",
	"UPDATE hx_run SET keep_until = hx_now_ms(){from} WHERE parent = ?1 AND expired = 0"
	" AND EXISTS (SELECT 1 FROM hx_run p WHERE p.subject = ?1 AND p.keep_until IS NOT NULL)");

DB_STMT_DROP(stmt_drop_steps, "run_expire_steps", "hx_run_step", "run");
DB_STMT_DROP(stmt_drop_events, "run_expire_events", "hx_run_event", "run");
DB_STMT_DROP(stmt_drop_function, "run_expire_function", "hx_function", "subject");
DB_STMT_DROP(stmt_drop_entries, "run_expire_entries", "hx_entry", "run");
DB_STMT_DROP(stmt_drop_notes, "run_expire_notes", "hx_note", "subject");

void run_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_scan_expired, db_int(age_ms), db_int(limit));
}

void run_scan_kept(struct unit *unit, int64_t age_ms, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_scan_kept, db_int(age_ms), db_int(limit));
}

void run_expire_kept(struct unit *unit, int64_t subject, int64_t age_ms UNUSED)
{
	run_expire(unit, subject, /* age_ms= */ -1);
}

void run_expire(struct unit *unit, int64_t subject, int64_t age_ms)
{
	unit_touch(unit, subject);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_expire, db_int(subject), db_int(age_ms));
	UNIT_ADD(unit, UNIT_ANY, &stmt_kept_children, db_int(subject)); /* mutant: children-kept-for-ever */
	run_count_expired(unit, subject);                               /* mutant: expired-counted */
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop_steps, db_int(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop_events, db_int(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop_function, db_int(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop_entries, db_int(subject));
	subject_strip(unit, subject);
	singleton_forget(unit, subject);
	attributes_drop(unit, subject); /* mutant: expired-found */
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop_notes, db_int(subject));
}
