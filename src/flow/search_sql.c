/*
 * The statements of searches. Each walks one range of one index, as far as a slice goes, in a query of its own: what is joined to
 * that has no more rows than the slice, so no statistics lead a planner to begin at the other end. Bounds are whole keys (flow/page.h),
 * and the length of a slice stands in the text, because a planner guesses a tenth of the table for a length that it does not know.
 */
#include "flow/page.h"
#include "flow/search_parts.h"

/* clang-format off */

#define KEY "a.workspace, a.kind, a.name, a.value, a.subject"
#define KEY_DOWN "a.workspace DESC, a.kind DESC, a.name DESC, a.value DESC, a.subject DESC"
/* ?1 workspace  ?2 kind  ?3 name  ?4 ?5 above  ?6 ?7 below */
#define ABOVE "(" KEY ") > (?1, ?2, ?3, ?4, ?5)"
#define BELOW "(" KEY ") < (?1, ?2, ?3, ?6, ?7)"
/* At most so many entries of the range, from one end to the other: as the slices of flow/page.h. */
#define ENTRIES(from, to, near, order, most)                                                                           \
	"(SELECT a.subject AS subject, a.value AS value FROM {postgres}(SELECT " KEY " FROM {end}hx_attribute a WHERE " from     \
	"{sqlite} AND " to "{end}{postgres} AND a.workspace " near " ?1{end} ORDER BY " order " LIMIT " most                \
	"{postgres}) AS a WHERE " to "{end})"
#define ENTRIES_UP(most) ENTRIES(ABOVE, BELOW, "<=", KEY, most)
#define ENTRIES_DOWN(most) ENTRIES(BELOW, ABOVE, ">=", KEY_DOWN, most)

DB_STMT(stmt_count, "search_count", "tittiti", "i", "SELECT count(*) FROM " ENTRIES_UP(SEARCH_GATHER_SQL) " AS few");

DB_STMT(stmt_name, "search_name", "tit", "i",
	"SELECT 1 FROM hx_attribute a WHERE a.workspace = ?1 AND a.kind = ?2 AND a.name = ?3 LIMIT 1");

#define NO_INT "CAST(NULL AS bigint)" /* a bare one is a text on PostgreSQL */
#define FOUND_OUT "itttttttiiiiiiitt"

#define WALKED(columns, joins, entries) "SELECT " columns ", f.value FROM " entries(SEARCH_SLICE_SQL) " AS f" joins
#define GATHERED(columns, joins) "SELECT " columns ", NULL FROM " ENTRIES_UP(SEARCH_GATHER_SQL) " AS f" joins
/* In the order of another attribute, ?8, after (?9, ?10). */
#define GATHERED_BY(columns, joins, after)                                                                              \
	"SELECT " columns ", o.value FROM " ENTRIES_UP(SEARCH_GATHER_SQL) " AS f JOIN hx_attribute o ON o.subject = f.subject"    \
	" AND o.name = ?8" joins " WHERE (o.value, f.subject) " after " (?9, ?10)"
#define LISTED(columns, joins, of) "SELECT " columns ", NULL FROM " of " AS f" joins
#define BY_VALUE " ORDER BY f.value, f.subject"
#define BY_VALUE_DOWN " ORDER BY f.value DESC, f.subject DESC"
#define BY_OTHER " ORDER BY o.value, f.subject"
#define BY_OTHER_DOWN " ORDER BY o.value DESC, f.subject DESC"
#define BY_ID " ORDER BY f.subject"
#define BY_ID_DOWN " ORDER BY f.subject DESC"
#define AFTER_UP " WHERE f.subject > ?8"
#define AFTER_DOWN " WHERE f.subject < ?8"
#define FIRST_OF " LIMIT " SEARCH_SLICE_SQL

/*
 * Only what is not expired is counted and shown. Where something is left out of a slice it comes out shorter, as if it
 * were the last one; so the attributes of what expires are deleted in the same unit.
 */
#define WALKS_OF(name, columns, joins, table, base)                                                                    \
	DB_STMT(name##_walk_up, #name "_walk_up", "tittiti", FOUND_OUT, WALKED(columns, joins, ENTRIES_UP) BY_VALUE);         \
	DB_STMT(name##_walk_down, #name "_walk_down", "tittiti", FOUND_OUT, WALKED(columns, joins, ENTRIES_DOWN) BY_VALUE_DOWN); \
	DB_STMT(name##_gather_up, #name "_gather_up", "tittitii", FOUND_OUT,                                                  \
		GATHERED(columns, joins) AFTER_UP BY_ID FIRST_OF);                                                             \
	DB_STMT(name##_gather_down, #name "_gather_down", "tittitii", FOUND_OUT,                                              \
		GATHERED(columns, joins) AFTER_DOWN BY_ID_DOWN FIRST_OF);                                                      \
	DB_STMT(name##_sort_up, #name "_sort_up", "tittititti", FOUND_OUT,                                                    \
		GATHERED_BY(columns, joins, ">") BY_OTHER FIRST_OF);                                                           \
	DB_STMT(name##_sort_down, #name "_sort_down", "tittititti", FOUND_OUT,                                                \
		GATHERED_BY(columns, joins, "<") BY_OTHER_DOWN FIRST_OF);                                                      \
	DB_STMT(name##_workflow_up, #name "_workflow_up", "tit", FOUND_OUT,                                                   \
		LISTED(columns, joins, SLICE_UP(table, "r", LEAD_WORKFLOW, "?1, ?3", "?2", base, WORKFLOW_UP, SEARCH_SLICE_SQL, "")) BY_ID); \
	DB_STMT(name##_workflow_down, #name "_workflow_down", "tit", FOUND_OUT,                                               \
		LISTED(columns, joins, SLICE_DOWN(table, "r", LEAD_WORKFLOW, "?1, ?3", "?2", base, WORKFLOW_DOWN, SEARCH_SLICE_SQL, "")) BY_ID_DOWN); \
	ONE_OF(name, columns, joins, table, base)

#define ONE_OF(name, columns, joins, table, base)                                                                      \
	DB_STMT(name##_one, #name "_one", "ti", FOUND_OUT,                                                                    \
		"SELECT " columns ", NULL FROM (SELECT r.subject FROM " table " r WHERE r.subject = ?2 AND r.workspace = ?1" \
		base ") AS f" joins)

#define ALL_UP_OF(name, columns, joins, table, base)                                                                   \
	DB_STMT(name##_all_up, #name "_all_up", "ti", FOUND_OUT,                                                              \
		LISTED(columns, joins, SLICE_UP(table, "r", LEAD_ALL, "?1", "?2", base, ALL_UP, SEARCH_SLICE_SQL, "")) BY_ID)

/* Those of all workflows, where a list has them. */
#define ALL_OF(name, columns, joins, table, base)                                                                      \
	WALKS_OF(name, columns, joins, table, base);                                                                          \
	ALL_UP_OF(name, columns, joins, table, base);                                                                         \
	DB_STMT(name##_all_down, #name "_all_down", "ti", FOUND_OUT,                                                          \
		LISTED(columns, joins, SLICE_DOWN(table, "r", LEAD_ALL, "?1", "?2", base, ALL_DOWN, SEARCH_SLICE_SQL, "")) BY_ID_DOWN)

#define RUN_FOUND                                                                                                      \
	"f.subject, s.status, r.workflow, r.run_key, r.requester, NULL, NULL, NULL, r.parent, r.created_at, r.started_at,"       \
	" r.completed_at, s.updated_at, " NO_INT ", " NO_INT ", r.attributes"
#define RUN_JOINS " JOIN hx_run r ON r.subject = f.subject JOIN hx_subject s ON s.id = f.subject"

#define NOT_EXPIRED " AND r.expired = 0"

ALL_OF(search_run, RUN_FOUND, RUN_JOINS, "hx_run", NOT_EXPIRED);

DB_STMT(search_run_key, "search_run_key", "tt", FOUND_OUT,
	"SELECT " RUN_FOUND ", NULL FROM (SELECT r.subject FROM hx_run r WHERE r.workspace = ?1 AND r.run_key = ?2 AND r.expired = 0)"
	" AS f" RUN_JOINS);

#define BATCH_FOUND                                                                                                    \
	"f.subject, s.status, r.workflow, r.batch_key, r.requester, (SELECT c.name FROM hx_account c WHERE c.subject = r.account),"  \
	" NULL, NULL, " NO_INT ", r.created_at, r.started_at, r.completed_at, s.updated_at, r.total, " NO_INT ", r.attributes"
#define BATCH_JOINS " JOIN hx_batch r ON r.subject = f.subject JOIN hx_subject s ON s.id = f.subject"

ALL_OF(search_batch, BATCH_FOUND, BATCH_JOINS, "hx_batch", NOT_EXPIRED);

DB_STMT(search_batch_key, "search_batch_key", "tt", FOUND_OUT,
	"SELECT " BATCH_FOUND ", NULL FROM (SELECT r.subject FROM hx_batch r WHERE r.workspace = ?1 AND r.batch_key = ?2"
	" AND r.expired = 0) AS f" BATCH_JOINS);

/* Of jobs: all of them, or those that are parked. */
#define JOB_FOUND                                                                                                      \
	"f.subject, s.status, r.workflow, r.job_key, NULL, NULL, r.queue, NULL, " NO_INT ", " NO_INT ", " NO_INT ", " NO_INT         \
	", s.updated_at, " NO_INT ", " NO_INT ", NULL"
#define JOB_JOINS " JOIN hx_job r ON r.subject = f.subject JOIN hx_subject s ON s.id = f.subject"
#define PARKED " AND r.ended_at IS NOT NULL AND r.error IS NOT NULL"

ALL_UP_OF(search_job, JOB_FOUND, JOB_JOINS, "hx_job", "");
ALL_UP_OF(search_job_parked, JOB_FOUND, JOB_JOINS, "hx_job", PARKED);
ONE_OF(search_job, JOB_FOUND, JOB_JOINS, "hx_job", "");

/* Their id is the name; when one was made is what its history begins with. */
#define ENTITY_FOUND                                                                                                   \
	"f.subject, s.status, r.workflow, NULL, NULL, NULL, NULL, r.name, " NO_INT ", (SELECT h.at FROM hx_history h WHERE h.subject = f.subject"  \
	" AND h.seq = 1), " NO_INT ", " NO_INT ", s.updated_at, " NO_INT ", CAST(CASE WHEN s.owner = 'held' THEN 1 ELSE 0 END AS bigint),"  \
	" r.attributes"
#define ENTITY_JOINS " JOIN hx_entity r ON r.subject = f.subject JOIN hx_subject s ON s.id = f.subject"

WALKS_OF(search_entity, ENTITY_FOUND, ENTITY_JOINS, "hx_entity", "");

DB_STMT(search_entity_key, "search_entity_key", "ttt", FOUND_OUT,
	"SELECT " ENTITY_FOUND ", NULL FROM (SELECT r.subject FROM hx_entity r WHERE r.workspace = ?1 AND r.workflow = ?3"
	" AND r.name = ?2) AS f" ENTITY_JOINS);

/* clang-format on */

struct search_sql {
	const struct db_stmt *walk[2], *gather[2], *sort[2], *workflow[2]; /* down, up */
	const struct db_stmt *one, *key;
	const struct db_stmt *all[2];    /* not of entities: their searches are of one workflow */
	const struct db_stmt *parked[2]; /* of jobs, which are only walked upwards */
};

#define WALKS_SQL(name)                                                                                                \
	.walk = {&name##_walk_down, &name##_walk_up}, .gather = {&name##_gather_down, &name##_gather_up},              \
	.sort = {&name##_sort_down, &name##_sort_up}, .workflow = {&name##_workflow_down, &name##_workflow_up},        \
	.one = &name##_one, .key = &name##_key
#define ALL_SQL(name) WALKS_SQL(name), .all = {&name##_all_down, &name##_all_up}

static const struct search_sql all_kinds[] = {
	[WHERE_RUN] = {ALL_SQL(search_run)},
	[WHERE_BATCH] = {ALL_SQL(search_batch)},
	[WHERE_ENTITY] = {WALKS_SQL(search_entity)},
	[WHERE_JOB] = {.one = &search_job_one,
		       .all = {NULL, &search_job_all_up},
		       .parked = {NULL, &search_job_parked_all_up}},
};

#define RANGE_OF(s, range)                                                                                             \
	db_text((s)->workspace), db_int((s)->kind), db_text((range)->name), db_text((range)->from),                    \
		db_int((range)->from_id), db_text((range)->to), db_int((range)->to_id)

void search_add_count(struct unit *unit, const struct search *s, const struct search_bounds *range)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_count, RANGE_OF(s, range));
}

void search_add_name(struct unit *unit, const struct search *s, struct slice name)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_name, db_text(s->workspace), db_int(s->kind), db_text(name));
}

void search_add_walk(struct unit *unit, const struct search *s, const struct search_bounds *range)
{
	UNIT_ADD(unit, UNIT_ANY, all_kinds[s->of].walk[s->up], RANGE_OF(s, range));
}

void search_add_gather(struct unit *unit, const struct search *s, const struct search_bounds *range, int64_t after)
{
	UNIT_ADD(unit, UNIT_ANY, all_kinds[s->of].gather[s->up], RANGE_OF(s, range), db_int(after));
}

void search_add_sort(struct unit *unit, const struct search *s, const struct search_bounds *range, struct slice value,
		     int64_t id)
{
	UNIT_ADD(unit, UNIT_ANY, all_kinds[s->of].sort[s->up], RANGE_OF(s, range), db_text(s->order), db_text(value),
		 db_int(id));
}

void search_add_list(struct unit *unit, const struct search *s, int64_t after)
{
	const struct search_sql *sql = &all_kinds[s->of];
	struct db_value in = db_text(s->workspace);

	if (s->by == SEARCH_ONE)
		UNIT_ADD(unit, UNIT_ANY, sql->one, in, db_int(s->one));
	else if (s->by == SEARCH_KEY && s->of == WHERE_ENTITY)
		UNIT_ADD(unit, UNIT_ANY, sql->key, in, db_text(s->key), db_text(s->workflow));
	else if (s->by == SEARCH_KEY)
		UNIT_ADD(unit, UNIT_ANY, sql->key, in, db_text(s->key));
	else if (s->by == SEARCH_WORKFLOW)
		UNIT_ADD(unit, UNIT_ANY, sql->workflow[s->up], in, db_int(after), db_text(s->workflow));
	else
		UNIT_ADD(unit, UNIT_ANY, s->by == SEARCH_PARKED ? sql->parked[s->up] : sql->all[s->up], in,
			 db_int(after));
}

void search_read_one(struct unit *unit, enum where_kind kind, struct slice workspace, int64_t id)
{
	UNIT_ADD(unit, UNIT_ANY, all_kinds[kind].one, db_text(workspace), db_int(id));
}
