/* See attention.h. One text lists and counts, so that what is counted is what is listed. */
#include "flow/attention.h"

#include "flow/function.h"

const char *const attention_kinds[] = {
	"held_claim",    "unknown_step",  "failed_compensation", "failed_run",    "approval",
	"paused_run",    "parked_job",    "parked_after_effect", "unknown_items", "stuck_teardown",
	"late_schedule", "held_function", "unpolled_function",   "held_request",  NULL};

/* clang-format off */

/* The conditions repeat those of the indexes in 0019_attention and 0027_paused, word by word, or they would not be used. A CROSS
 * JOIN is one that SQLite begins with its first table: otherwise it would go through all entities of the workspace. */
#define CLAIMS(where, most) \
	"SELECT 'held_claim' AS kind, s.id AS subject, e.workflow AS workflow, e.name AS name, s.status AS status," \
	" s.updated_at AS since, e.claim_step AS step, CAST(NULL AS text) AS detail, s.version AS version" \
	" FROM hx_subject s CROSS JOIN hx_entity e WHERE e.subject = s.id AND s.owner IS NOT NULL AND s.owner = 'held'" \
	where("e", " OR e.workspace = ''") most
#define RUNS(where, most) \
	"SELECT CASE WHEN s.status = 'FAILED' THEN 'failed_run' WHEN r.awaits LIKE 'approval %' THEN 'approval'" \
	" WHEN s.status = 'CANCELLING' AND coalesce(r.step_status, '') <> 'UNKNOWN' THEN 'failed_compensation'" \
	" WHEN r.definition_version = 0 AND coalesce(r.step_status, '') <> 'UNKNOWN' THEN 'held_function' ELSE 'unknown_step' END," \
	" s.id, r.workflow, '', s.status, s.updated_at," \
	" CASE WHEN r.awaits LIKE 'approval %' THEN substr(r.awaits, 10) END, r.error, s.version" \
	" FROM hx_run r JOIN hx_subject s ON s.id = r.subject" \
	" WHERE r.expired = 0 AND r.restarted_by IS NULL AND (r.awaits = 'person' OR r.awaits LIKE 'approval %' OR (r.completed_at IS NOT NULL AND r.step_status = 'FAILED'))" \
	" AND (r.completed_at IS NULL OR s.status = 'FAILED') AND (s.status <> 'PAUSED' OR r.awaits = 'person')" \
	where("r", "") most
#define PAUSED(where, most) \
	"SELECT 'paused_run', s.id, r.workflow, '', s.status, s.updated_at, CAST(NULL AS text), CAST(NULL AS text), s.version" \
	" FROM hx_subject s CROSS JOIN hx_run r WHERE r.subject = s.id AND s.status = 'PAUSED' AND s.kind = " ATTENTION_RUNS \
	" AND s.owner IS NULL AND coalesce(r.awaits, '') <> 'person'" \
	" AND NOT EXISTS (SELECT 1 FROM hx_job j WHERE j.subject = r.job)" \
	where("r", "") most
#define PAUSED_FUNCTIONS(where, most) \
	"SELECT 'paused_run', s.id, r.workflow, '', s.status, s.updated_at, CAST(NULL AS text), CAST(NULL AS text), s.version" \
	" FROM hx_subject s CROSS JOIN hx_run r WHERE r.subject = s.id AND s.status = 'PAUSED' AND s.kind = " ATTENTION_FUNCTIONS \
	" AND s.owner IS NULL AND coalesce(r.awaits, '') <> 'person'" \
	where("r", "") most
/* A turn is due for two minutes, and nobody polls for its version: polls are written down once a minute. */
#define UNPOLLED(where, most) \
	"SELECT 'unpolled_function', f.subject, f.name, '', s.status, f.turn_at, f.version, CAST(NULL AS text), s.version" \
	" FROM hx_function f JOIN hx_subject s ON s.id = f.subject WHERE f.turn_at IS NOT NULL AND f.turn_at < (SELECT hx_now_ms()) - 120000" \
	" AND NOT EXISTS (SELECT 1 FROM hx_function_poll p WHERE p.workspace = f.workspace AND p.name = f.name" \
	" AND (f.version IS NULL OR p.version = f.version) AND p.at > (SELECT hx_now_ms()) - 120000)" \
	where("f", "") most
#define JOBS(where, most) \
	"SELECT CASE WHEN j.queue = 'after-effects' THEN 'parked_after_effect' ELSE 'parked_job' END, j.subject, j.workflow, '', s.status," \
	" j.ended_at, CASE WHEN j.action = '' THEN j.queue ELSE j.action END, j.error, s.version" \
	" FROM hx_job j CROSS JOIN hx_subject s WHERE s.id = j.subject AND j.ended_at IS NOT NULL AND j.error IS NOT NULL AND j.run IS NULL" \
	" AND s.status = 'PARKED'" \
	where("j", "") most
#define BATCHES(where, most) \
	"SELECT CASE WHEN s.status = 'CANCELLING' THEN 'stuck_teardown' ELSE 'unknown_items' END, b.subject, b.workflow, '', s.status," \
	" s.updated_at, CAST(NULL AS text), b.error, s.version" \
	" FROM hx_batch b JOIN hx_subject s ON s.id = b.subject WHERE b.expired = 0 AND (b.unknown > 0 OR b.cleanups > 0)" \
	" AND ((s.status = 'CANCELLING' AND b.cleanups > 0 AND s.owner IS NULL) OR (s.status NOT IN ('CANCELLING', 'CANCELLED', 'FAILED') AND b.unknown > 0))" \
	where("b", "") most

/* Its slot, not due_at: one that cannot be started is put off again and again, by a minute at most (SCHEDULE_REST_MS_MAX), which is what
 * the index is asked. What has a jitter may be due that much after its slot: it is not known here how much, and an hour is given to it. */
#define SCHEDULES(where, most) \
	"SELECT 'late_schedule', c.subject, '', '', s.status, coalesce(c.slot_at, c.due_at), c.name, CAST(NULL AS text), s.version" \
	" FROM hx_schedule c JOIN hx_subject s ON s.id = c.subject WHERE c.due_at <= (SELECT hx_now_ms()) + 60000" \
	" AND coalesce(c.slot_at, c.due_at) < (SELECT hx_now_ms()) - CASE WHEN c.due_at < (SELECT hx_now_ms()) - 60000" \
	" OR c.text LIKE '%\"jitter\":null,\"from\":%' THEN 60000 ELSE 3660000 END" \
	where("c", "") most

/* The condition of hx_gate_record_held, and the moment as one value: see gate/record_look.c. */
#define REQUESTS(where, most) \
	"SELECT 'held_request', g.id, '', '', 'held', g.until, CAST(NULL AS text), CAST(NULL AS text), 1" \
	" FROM hx_gate_record g WHERE g.held = 1 AND g.status = 1 AND g.until <= (SELECT hx_now_ms())" most

/* Not by the index of a workspace, which has all of its runs: the sum is one that no index knows. */
#define OF_WORKSPACE(table, more) " AND (" table ".workspace || '' = ?1" more ")"
#define OF_ALL(table, more) ""

#define OF_ONE \
	CLAIMS(OF_WORKSPACE, "") " UNION ALL " RUNS(OF_WORKSPACE, "") " UNION ALL " PAUSED(OF_WORKSPACE, "") " UNION ALL " \
	PAUSED_FUNCTIONS(OF_WORKSPACE, "") " UNION ALL " UNPOLLED(OF_WORKSPACE, "") " UNION ALL " \
	JOBS(OF_WORKSPACE, "") " UNION ALL " BATCHES(OF_WORKSPACE, "") " UNION ALL " SCHEDULES(OF_WORKSPACE, "") " UNION ALL " \
	REQUESTS(OF_WORKSPACE, " AND ?6 = 1")

/* An attribute in whole units: 10^18 and more are one, and so are all below 1 (base/sortable.h has its parts). */
#define EXPONENT "CAST(CAST(substr(a.value, 3, 10) AS BIGINT) - 5000000000 AS INTEGER)"
#define UNITS \
	"CASE WHEN a.value IS NULL OR substr(a.value, 1, 2) <> 'n2' OR substr(a.value, 3, 10) <= '5000000000' THEN 0" \
	" WHEN substr(a.value, 3, 10) > '5000000018' THEN 1000000000000000000" \
	" ELSE CAST(substr(substr(a.value, 13) || '000000000000000000', 1, " EXPONENT ") AS BIGINT) END"
#define MONEY "coalesce((SELECT b.charged - b.refunded FROM hx_batch b WHERE b.subject = x.subject), " UNITS ")"
#define AMOUNT " LEFT JOIN hx_attribute a ON a.subject = x.subject AND a.name = 'amount' AND x.kind NOT IN ('held_request', 'unknown_items', 'stuck_teardown')"

/* Of a function: its steps are entries of its journal. */
#define STEP \
	"coalesce(x.step, CASE WHEN x.kind = 'unknown_step' THEN (SELECT " ENTRY_NAME_SQL \
	" FROM hx_entry e WHERE e.run = x.subject AND e.ended = 0 AND e.state = 'unknown' ORDER BY e.i LIMIT 1) END)"

/* What a row shows besides is looked up for those of the page alone. */
#define PAGE_OF(order, rows) \
	"SELECT x.kind, x.subject, x.workflow, x.name, x.status, x.since, " STEP ", x.detail, x.version, x.place, " MONEY ", a.value," \
	" g.id, g.key, g.status, g.held, g.endpoint, g.created_at, g.until - (SELECT hx_now_ms()), g.token, 0, g.about, g.key_text FROM (" rows \
	" ORDER BY " order " LIMIT ?5) x" AMOUNT \
	" LEFT JOIN hx_gate_record g ON g.id = x.subject AND x.kind = 'held_request' ORDER BY x.place, x.subject"
#define PAGE_IN "ttiiii"
#define PAGE_OUT "titttittiiitibiibiibibb"
#define AFTER(place) " WHERE (?2 = '' OR kind = ?2) AND (" place " > ?3 OR (" place " = ?3 AND subject > ?4))"

DB_STMT(stmt_list, "attention_list", PAGE_IN, PAGE_OUT,
	PAGE_OF("since, subject", "SELECT y.*, since AS place FROM (" OF_ONE ") y" AFTER("since")));

DB_STMT(stmt_list_money, "attention_list_money", PAGE_IN, PAGE_OUT,
	PAGE_OF("place, subject", "SELECT z.* FROM (SELECT x.*, -(" MONEY ") AS place FROM (" OF_ONE ") x" AMOUNT ") z" AFTER("place")));

DB_STMT(stmt_count, "attention_count", "ii", "ttii",
	COUNT_BY_NAME("workflow", "min", "since", "", "SELECT * FROM ("
	CLAIMS(OF_ALL, " LIMIT ?1") ") c UNION ALL SELECT * FROM (" RUNS(OF_ALL, " LIMIT ?1") ") r UNION ALL SELECT * FROM ("
	PAUSED_FUNCTIONS(OF_ALL, " LIMIT ?1") ") q UNION ALL SELECT * FROM (" UNPOLLED(OF_ALL, " LIMIT ?1") ") u UNION ALL SELECT * FROM ("
	PAUSED(OF_ALL, " LIMIT ?1") ") p UNION ALL SELECT * FROM (" JOBS(OF_ALL, " LIMIT ?1") ") j UNION ALL SELECT * FROM (" BATCHES(OF_ALL, " LIMIT ?1") ") b UNION ALL SELECT * FROM (" SCHEDULES(OF_ALL, " LIMIT ?1") ") c"));

/* clang-format on */

void attention_list(struct unit *unit, const struct attention_filter *filter)
{
	UNIT_ADD(unit, UNIT_ANY, filter->by_money ? &stmt_list_money : &stmt_list, db_text(filter->workspace),
		 db_text(filter->kind), db_int(filter->place), db_int(filter->subject), db_int(filter->limit),
		 db_int(filter->operator_asks));
}

void attention_count(struct unit *unit, int64_t most, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_count, db_int(most), db_int(limit));
}
