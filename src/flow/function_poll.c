/*
 * Who polls for what: a row for each name and version, in the workspace of whoever polls. It is all that makes a name known (function.h),
 * so anybody with a key of scope `worker` writes here: a workspace has FUNCTION_POLLS_MAX of them, and retention takes those that nobody
 * has polled for as long as a name counts.
 *
 * The bound is asked before new names are written, and of new names alone: who polls for what is known goes on at it. Two that come at
 * the same moment may both pass, so it is exceeded by as many as come at once, each with FUNCTION_POLLED_MAX; never by what comes later.
 */
#include "flow/function.h"

#define POLLS_MAX_SQL "20000"  /* FUNCTION_POLLS_MAX */
#define EXPIRED_MAX_SQL "1000" /* so many go in one unit */

/* clang-format off */

#define FULL " (SELECT count(*) FROM (SELECT 1 FROM hx_function_poll p WHERE p.workspace = ?1 LIMIT " POLLS_MAX_SQL ") AS known) >= " POLLS_MAX_SQL
#define UNKNOWN(rows, name, version)                                                                                   \
	"EXISTS (SELECT 1 FROM " rows " WHERE NOT EXISTS (SELECT 1 FROM hx_function_poll p WHERE p.workspace = ?1 AND p.name = " name  \
	" AND p.version = " version "))"

/* A row: there is room for these. ?2: rows [name, version] */
DB_STMT(stmt_room, "function_poll_room", "tt", "i",
	"SELECT 1 WHERE NOT " UNKNOWN("json_each(?2) v", "json_extract(v.value, '$[0]')", "json_extract(v.value, '$[1]')") " OR NOT" FULL,
	.pg_sql = "SELECT 1::bigint WHERE NOT " UNKNOWN("json_array_elements(?2::json) AS t(r)", "r->>0", "r->>1") " OR NOT" FULL);

/* Written once a minute at most. */
#define REFRESH " ON CONFLICT (workspace, name, version) DO UPDATE SET at = excluded.at WHERE hx_function_poll.at < excluded.at - 60000"
DB_STMT(stmt_poll, "function_poll", "tt", "",
	"INSERT INTO hx_function_poll (workspace, name, version, at) SELECT ?1, json_extract(value, '$[0]'), json_extract(value, '$[1]'),"
	" hx_now_ms() FROM json_each(?2) WHERE true" REFRESH,
	/* A row that is met is locked, and everybody who polls for that name would wait for it: those that are young are not met. */
	.pg_sql = "INSERT INTO hx_function_poll (workspace, name, version, at) SELECT DISTINCT ?1, r->>0, r->>1, (SELECT hx_now_ms())"
		  " FROM json_array_elements(?2::json) AS t(r) WHERE NOT EXISTS (SELECT 1 FROM hx_function_poll p WHERE p.workspace = ?1"
		  " AND p.name = r->>0 AND p.version = r->>1 AND p.at >= (SELECT hx_now_ms()) - 60000) ORDER BY 2, 3" REFRESH);

/* One row, if there is anything: whoever takes it deletes the oldest. ?2: 0, or any number */
DB_STMT(stmt_scan_expired, "function_poll_scan_expired", "ii", "i",
	"SELECT CAST(1 AS bigint) WHERE ?2 > 0 AND EXISTS (SELECT 1 FROM hx_function_poll WHERE at <= (SELECT hx_now_ms()) - ?1)");

/* The time is asked again of each row: somebody may have polled since it was found. */
DB_STMT(stmt_expire, "function_poll_expire", "i", "",
	"DELETE FROM hx_function_poll WHERE (workspace, name, version) IN (SELECT o.workspace, o.name, o.version FROM hx_function_poll o"
	" WHERE o.at <= (SELECT hx_now_ms()) - ?1 ORDER BY o.at LIMIT " EXPIRED_MAX_SQL ") AND at <= (SELECT hx_now_ms()) - ?1");

/* clang-format on */

_Static_assert(FUNCTION_POLLS_MAX == 20000, "as the statements have it");

void function_poll(struct unit *unit, struct slice workspace, struct slice rows)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_room, db_text(workspace), db_text(rows)); /* mutant: polls-unbounded */
	UNIT_ADD(unit, UNIT_ANY, &stmt_poll, db_text(workspace), db_text(rows));
}

void function_poll_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_scan_expired, db_int(age_ms), db_int(limit));
}

void function_poll_expire(struct unit *unit, int64_t subject UNUSED, int64_t age_ms)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_expire, db_int(age_ms));
}
