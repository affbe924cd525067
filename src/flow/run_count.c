/* See run_count.h. */
#include "flow/run_count.h"

#define FOLD_SQL "20000" /* changes at once */
#define INTO_MOVED "INSERT INTO hx_run_moved (workspace, workflow, from_status, to_status, n)"

/* clang-format off */

#define OF(status) ", CAST(sum(CASE WHEN c.status = '" status "' THEN c.n ELSE 0 END) AS bigint)"

DB_STMT(stmt_list, "run_count_list", "ttti", "t" "iiiiiiii",
	"SELECT c.workflow" OF("PENDING") OF("RUNNING") OF("WAITING") OF("PAUSED") OF("COMPLETED") OF("FAILED") OF("CANCELLING") OF("CANCELLED")
	" FROM (SELECT workflow, status, n FROM hx_run_count WHERE workspace = ?1"
	" UNION ALL SELECT workflow, to_status, n FROM hx_run_moved WHERE workspace = ?1"
	" UNION ALL SELECT workflow, from_status, -n FROM hx_run_moved WHERE workspace = ?1" /* mutant: left-still-counted */
	") AS c WHERE c.workflow > ?3 AND (?2 = '' OR c.workflow = ?2) AND c.status <> '' GROUP BY c.workflow HAVING sum(c.n) > 0"
	" ORDER BY c.workflow LIMIT ?4");

DB_STMT(stmt_expired, "run_count_expired", "i", "",
	INTO_MOVED " SELECT r.workspace, r.workflow, s.status, '', 1"
	" FROM hx_run r JOIN hx_subject s ON s.id = r.subject{join} WHERE r.subject = ?1");

DB_STMT(stmt_changed, "run_count_changed", "tttti", "",
	INTO_MOVED " VALUES (?1, ?2, ?3, ?4, ?5)",
	.pg_sql = "",
	.tallied = true);

DB_STMT(stmt_changed_of, "run_count_changed_of", "itt", "",
	INTO_MOVED " SELECT workspace, workflow, ?2, ?3, 1 FROM hx_run WHERE subject = ?1",
	.pg_sql = "");

DB_STMT(stmt_made, "run_count_made", "ii", "",
	INTO_MOVED " SELECT r.workspace, r.workflow, '', s.status, count(*) FROM hx_run r JOIN hx_subject s ON s.id = r.subject"
	" WHERE r.parent = ?1 AND s.op = ?2 AND s.seq = 1 GROUP BY r.workspace, r.workflow, s.status",
	.pg_sql = "");

DB_STMT(stmt_scan, "run_count_scan", "ii", "i",
	"SELECT CAST(1 AS bigint) WHERE EXISTS (SELECT 1 FROM hx_run_moved) AND ?1 >= 0 AND ?2 >= 0");

#define SUMS(of)                                                                                                       \
	"SELECT m.workspace, m.workflow, m.status, CAST(sum(m.n) AS bigint) FROM (SELECT workspace, workflow, to_status AS status, n FROM " of  \
	" UNION ALL SELECT workspace, workflow, from_status, -n FROM " of ") AS m WHERE m.status <> ''"                     \
	" GROUP BY m.workspace, m.workflow, m.status ORDER BY m.workspace, m.workflow, m.status"                            \
	" ON CONFLICT (workspace, workflow, status) DO UPDATE SET n = hx_run_count.n + excluded.n"
#define TAKEN "(SELECT * FROM hx_run_moved ORDER BY id LIMIT " FOLD_SQL ") AS taken"

/* On PostgreSQL others may be at it: each takes what nobody has. In one order, so that none waits for another in a ring. */
DB_STMT(stmt_fold, "run_count_fold", "", "",
	"INSERT INTO hx_run_count (workspace, workflow, status, n) " SUMS(TAKEN),
	.pg_sql = "WITH taken AS (DELETE FROM hx_run_moved WHERE id IN (SELECT id FROM hx_run_moved ORDER BY id LIMIT " FOLD_SQL
		  " FOR UPDATE SKIP LOCKED) RETURNING workspace, workflow, from_status, to_status, n)"
		  " INSERT INTO hx_run_count (workspace, workflow, status, n) " SUMS("taken"));

DB_STMT(stmt_folded, "run_count_folded", "", "",
	"DELETE FROM hx_run_moved WHERE id IN (SELECT id FROM hx_run_moved ORDER BY id LIMIT " FOLD_SQL ")",
	.pg_sql = "");

/* clang-format on */

void run_count_changed(struct unit *unit, struct slice workspace, const char *workflow, const char *from,
		       const char *to, int64_t n)
{
	if (strcmp(from, to) != 0)
		UNIT_ADD(unit, UNIT_ANY, &stmt_changed, db_text(workspace), db_str(workflow), db_str(from), db_str(to),
			 db_int(n));
}

void run_count_changed_of(struct unit *unit, int64_t subject, const char *from, const char *to)
{
	if (strcmp(from, to) != 0)
		UNIT_ADD(unit, UNIT_ANY, &stmt_changed_of, db_int(subject), db_str(from), db_str(to));
}

void run_count_made(struct unit *unit, int64_t parent, int64_t op)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_made, db_int(parent), db_int(op));
}

void run_count_list(struct unit *unit, struct slice workspace, struct slice workflow, struct slice after, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_list, db_text(workspace), db_text(workflow), db_text(after), db_int(limit));
}

void run_count_expired(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_expired, db_int(subject));
}

void run_count_scan(struct unit *unit, int64_t age_ms, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_scan, db_int(age_ms), db_int(limit));
}

void run_count_fold(struct unit *unit, int64_t subject UNUSED, int64_t age_ms UNUSED)
{
	unit_add(unit, UNIT_ANY, &stmt_fold, 0, NULL);
	unit_add(unit, UNIT_ANY, &stmt_folded, 0, NULL); /* mutant: folded-twice */
}
