/* The statements of bulk.h. */
#include "flow/bulk.h"

#include "db/columns.h"
#include "flow/batch.h"
#include "flow/due_watch.h"
#include "flow/job.h"
#include "flow/run.h"

/* clang-format off */

#define LEASE_SQL "5000" /* BULK_LEASE_MS */
#define ROW "subject, workspace, requester, bulk_key, verb, kind, condition, arguments, state, after_id, selected, created_at, completed_at, expired"
#define ROW_OUT "itttttttt" "iiiii"

enum { SUBJECT, WORKSPACE, REQUESTER, KEY, VERB, KIND, CONDITION, ARGUMENTS, STATE, AFTER_ID, SELECTED, CREATED_AT, COMPLETED_AT, EXPIRED, COUNTS };

DB_STMT(stmt_create, "bulk_create", "ittttttti", "",
	"INSERT INTO hx_bulk (subject, workspace, requester, bulk_key, verb, kind, condition, arguments, state, due_at, created_at)"
	" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'SELECTING', hx_now_ms() + " LEASE_SQL ", ?9)"
	" ON CONFLICT (workspace, bulk_key) WHERE bulk_key IS NOT NULL DO NOTHING");

DB_STMT(stmt_read, "bulk_read", "it", ROW_OUT,
	"SELECT " ROW " FROM hx_bulk WHERE subject = ?1 AND (?2 = '' OR workspace = ?2)");

#define COUNT_OF(word) ", (SELECT count(*) FROM hx_bulk_item i WHERE i.bulk = ?1 AND i.result = '" word "')"

DB_STMT(stmt_read_counted, "bulk_read_counted", "it", ROW_OUT "iiiii",
	"SELECT " ROW COUNT_OF(BULK_DONE) COUNT_OF(BULK_UNCHANGED) COUNT_OF(BULK_REFUSED) COUNT_OF(BULK_SKIPPED)
	COUNT_OF(BULK_ITEM_CANCELLED) " FROM hx_bulk WHERE subject = ?1 AND (?2 = '' OR workspace = ?2)");

DB_STMT(stmt_read_key, "bulk_read_key", "tt", ROW_OUT,
	"SELECT " ROW " FROM hx_bulk WHERE workspace = ?1 AND bulk_key = ?2");

/* The function is volatile on PostgreSQL: bare, it would be a filter over all that are due some time. */
DUE_SOURCE_PLAIN(bulk_due_source, "bulk", "hx_bulk", .name = "bulks", .topic = BULK_TOPIC, .poll_ms = 1000);

DB_STMT(stmt_take, "bulk_take", "i", "",
	"UPDATE hx_bulk SET due_at = hx_now_ms() + " LEASE_SQL " WHERE subject = ?1 AND due_at <= hx_now_ms()");

DB_STMT(stmt_renew, "bulk_renew", "i", "",
	"UPDATE hx_bulk SET due_at = hx_now_ms() + " LEASE_SQL " WHERE subject = ?1 AND due_at IS NOT NULL AND state <> 'CANCELLING'");

/* A line is a guard. */
DB_STMT(stmt_freeze, "bulk_freeze", "iiiii", "",
	"UPDATE hx_bulk SET after_id = ?3, selected = selected + ?4, state = CASE WHEN ?5 = 1 THEN 'RUNNING' ELSE state END,"
	" due_at = hx_now_ms() + CASE WHEN ?5 = 1 THEN 0 ELSE " LEASE_SQL " END WHERE subject = ?1"
	" AND after_id = ?2" /* mutant: bulk-selected-twice -> " AND ?2 >= 0" */
	" AND state = 'SELECTING'" /* mutant: bulk-selects-on */
);

DB_STMT(stmt_items, "bulk_items", "iit", "",
	"INSERT INTO hx_bulk_item (bulk, n, subject) SELECT ?1, ?2 + key, value FROM json_each(?3)",
	.pg_sql = "INSERT INTO hx_bulk_item (bulk, n, subject) SELECT ?1, ?2 + ord - 1, value::bigint"
	          " FROM json_array_elements_text(?3::json) WITH ORDINALITY AS q(value, ord)");

DB_STMT(stmt_open, "bulk_open", "iiii", "ii",
	"SELECT n, subject FROM hx_bulk_item WHERE bulk = ?1 AND result IS NULL AND n > ?2 AND n % ?4 = ?3 ORDER BY n LIMIT 8"); /* BULK_PAGE */

DB_STMT(stmt_ended, "bulk_item_ended", "iitt", "",
	"UPDATE hx_bulk_item SET result = ?3, code = ?4 WHERE bulk = ?1 AND n = ?2"
	" AND result IS NULL" /* mutant: bulk-item-twice */
);

DB_STMT(stmt_close_some, "bulk_close_some", "i", "",
	"UPDATE hx_bulk_item SET result = 'cancelled' WHERE bulk = ?1 AND n IN (SELECT o.n FROM hx_bulk_item o WHERE o.bulk = ?1"
	" AND o.result IS NULL ORDER BY o.n LIMIT 5000) AND result IS NULL AND EXISTS (SELECT 1 FROM hx_bulk b WHERE b.subject = ?1"
	" AND b.state = 'CANCELLING')"); /* BULK_CANCEL_SLICE */

DB_STMT(stmt_finish, "bulk_finish", "ii", "",
	"UPDATE hx_bulk SET state = CASE state WHEN 'CANCELLING' THEN 'CANCELLED' ELSE 'COMPLETED' END, completed_at = ?2, due_at = NULL"
	" WHERE subject = ?1 AND state IN ('RUNNING', 'CANCELLING')"
	" AND NOT EXISTS (SELECT 1 FROM hx_bulk_item i WHERE i.bulk = ?1 AND i.result IS NULL)"); /* mutant: bulk-over-too-early -> " AND 1 = 1"); */

DB_STMT(stmt_again, "bulk_again", "i", "", "UPDATE hx_bulk SET due_at = hx_now_ms() + 200 WHERE subject = ?1 AND due_at IS NOT NULL");

DB_STMT(stmt_cancel, "bulk_cancel", "it", "",
	"UPDATE hx_bulk SET state = 'CANCELLING', due_at = hx_now_ms() WHERE subject = ?1 AND workspace = ?2"
	" AND state IN ('SELECTING', 'RUNNING')");

DB_STMT(stmt_scan_expired, "bulk_scan_expired", "ii", "i",
	SCAN_ENDED("hx_bulk", " AND expired < 2"));

DB_STMT(stmt_expire, "bulk_expire", "ii", "",
	"UPDATE hx_bulk SET expired = 1, condition = '', arguments = '{}', requester = '' WHERE subject = ?1"
	" AND expired < 2"
	" AND completed_at <= hx_now_ms() - ?2"); /* mutant: bulk-expired-early -> " AND ?2 >= 0"); */

DB_STMT(stmt_drop_items, "bulk_expire_items", "i", "",
	"DELETE FROM hx_bulk_item WHERE bulk = ?1 AND n IN (SELECT o.n FROM hx_bulk_item o WHERE o.bulk = ?1 ORDER BY o.n LIMIT 5000)");

#define EMPTY " AND NOT EXISTS (SELECT 1 FROM hx_bulk_item i WHERE i.bulk = ?1)"
DB_STMT(stmt_gone, "bulk_expire_gone", "i", "", "UPDATE hx_bulk SET expired = 2 WHERE subject = ?1 AND bulk_key IS NOT NULL" EMPTY);
DB_STMT(stmt_drop, "bulk_expire_drop", "i", "",
	"DELETE FROM hx_bulk WHERE subject = ?1"
	" AND bulk_key IS NULL" /* mutant: bulk-key-forgotten */
	EMPTY);

DB_STMT(stmt_list, "bulk_list_items", "itii", "iitttt",
	"SELECT i.n, i.subject, i.result, i.code, e.workflow, e.name FROM hx_bulk_item i LEFT JOIN hx_entity e ON e.subject = i.subject"
	" WHERE i.bulk = ?1 AND i.n >= ?3 AND EXISTS (SELECT 1 FROM hx_bulk b WHERE b.subject = ?1 AND b.workspace = ?2) ORDER BY i.n LIMIT ?4");

/* clang-format on */

_Static_assert(BULK_LEASE_MS == 5000 && BULK_PAGE == 8 && BULK_CANCEL_SLICE == 5000, "as the statements have it");

const char *const bulk_kinds[] = {"run", "batch", "entity", "job", NULL};

const struct bulk_noun *bulk_noun(struct slice kind)
{
	static const char *const of_runs[] = {"cancel", "retry", "resume", "resolve", "signal", "migrate", NULL},
				 *const of_batches[] = {"cancel", "start", NULL},
				 *const of_entities[] = {"resolve", NULL}, *const of_jobs[] = {"redrive", NULL};
	static const struct bulk_noun nouns[] = {
		{"run", WHERE_RUN, run_statuses, of_runs, run_kind},
		{"batch", WHERE_BATCH, batch_statuses, of_batches, batch_kind},
		{"entity", WHERE_ENTITY, NULL, of_entities, NULL},
		{"job", WHERE_JOB, job_statuses, of_jobs, job_kind},
	};

	for (size_t i = 0; i < sizeof nouns / sizeof *nouns; i++)
		if (slice_is(kind, nouns[i].kind))
			return &nouns[i];
	return NULL;
}

void bulk_create(struct unit *unit, const struct stamp *stamp, const struct bulk_spec *s)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_create, db_int(s->subject), db_text(s->workspace), db_text(s->requester),
		 db_optional(s->key), db_text(s->verb), db_text(s->kind), db_text(s->condition), db_text(s->arguments),
		 db_int(stamp->at.ms));
}

void bulk_read(struct unit *unit, struct slice workspace, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read, db_int(subject), db_text(workspace.p ? workspace : slice_str("")));
}

void bulk_read_counted(struct unit *unit, struct slice workspace, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_counted, db_int(subject), db_text(workspace));
}

void bulk_read_key(struct unit *unit, struct slice workspace, struct slice key)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_read_key, db_text(workspace), db_text(key));
}

bool bulk_row_take(const struct db_rows *rows, struct arena *arena, struct bulk_row *row)
{
	const struct db_value *cells = rows->cells;

	if (rows->n == 0)
		return false;
	*row = (struct bulk_row){
		.spec = {.subject = cells[SUBJECT].i,
			 .workspace = cell_text(&cells[WORKSPACE], arena),
			 .requester = cell_text(&cells[REQUESTER], arena),
			 .key = cell_text(&cells[KEY], arena),
			 .verb = cell_text(&cells[VERB], arena),
			 .kind = cell_text(&cells[KIND], arena),
			 .condition = cell_text(&cells[CONDITION], arena),
			 .arguments = cell_text(&cells[ARGUMENTS], arena)},
		.state = cell_text(&cells[STATE], arena),
		.after_id = cells[AFTER_ID].i,
		.selected = cells[SELECTED].i,
		.created_at = cells[CREATED_AT].i,
		.completed_at = cell_int(&cells[COMPLETED_AT]),
		.expired = cells[EXPIRED].i != 0,
	};
	if (rows->columns > COUNTS) {
		row->done = cells[COUNTS].i;
		row->unchanged = cells[COUNTS + 1].i;
		row->refused = cells[COUNTS + 2].i;
		row->skipped = cells[COUNTS + 3].i;
		row->cancelled = cells[COUNTS + 4].i;
	}
	return true;
}

void bulk_take(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_take, db_int(subject));
}

void bulk_renew(struct unit *unit, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_renew, db_int(subject));
}

void bulk_freeze(struct unit *unit, const struct bulk_slice *s)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_freeze, db_int(s->subject), db_int(s->from), db_int(s->to), db_int(s->n),
		 db_int(s->last));
	if (s->n)
		UNIT_ADD(unit, UNIT_ANY, &stmt_items, db_int(s->subject), db_int(s->first), db_text(s->ids));
	if (s->last)
		unit_wake(unit, BULK_TOPIC);
}

void bulk_read_open(struct unit *unit, int64_t subject, int64_t after, int64_t hand, int64_t hands)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_open, db_int(subject), db_int(after), db_int(hand), db_int(hands));
}

void bulk_item_ended(struct unit *unit, int64_t bulk, int64_t n, const char *result, struct slice code)
{
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_ended, db_int(bulk), db_int(n), db_str(result), db_optional(code));
}

void bulk_finish(struct unit *unit, const struct stamp *stamp, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_close_some, db_int(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_finish, db_int(subject), db_int(stamp->at.ms));
	UNIT_ADD(unit, UNIT_ANY, &stmt_again, db_int(subject));
	unit_wake(unit, subject_end_topic(subject));
}

void bulk_cancel(struct unit *unit, struct slice workspace, int64_t subject)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_cancel, db_int(subject), db_text(workspace));
	unit_wake(unit, BULK_TOPIC);
}

void bulk_list_items(struct unit *unit, struct slice workspace, int64_t subject, int64_t from, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_list, db_int(subject), db_text(workspace), db_int(from), db_int(limit));
}

void bulk_scan_expired(struct unit *unit, int64_t age_ms, int64_t limit)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_scan_expired, db_int(age_ms), db_int(limit));
}

void bulk_expire(struct unit *unit, int64_t subject, int64_t age_ms)
{
	unit_keep_apart(unit, subject); /* it has no row of a subject */
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_expire, db_int(subject), db_int(age_ms));
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop_items, db_int(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_gone, db_int(subject));
	UNIT_ADD(unit, UNIT_ANY, &stmt_drop, db_int(subject));
}
