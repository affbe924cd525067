/* See entity_table.h. */
#include "flow/entity_table.h"

#include <ctype.h>
#include <strings.h>

#include "flow/entity.h"
#include "model/user_table.h"

#define SQL_BYTES_MAX 8192

DB_STMT(stmt_columns, "table_columns", "t", "tt",
	"SELECT name, type FROM pragma_table_info(substr(?1, instr(?1, '.') + 1), 'main')",
	.pg_sql = "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a"
	" WHERE a.attrelid = to_regclass((SELECT string_agg(quote_ident(part), '.' ORDER BY n)"
	" FROM unnest(string_to_array(?1, '.')) WITH ORDINALITY AS x(part, n))) AND a.attnum > 0 AND NOT a.attisdropped");

/*
 * The shadow follows the user's row, whose update in the same unit was the verdict.
 *   ?1 to   ?2 from   ?3 version of the user's row before   ?4 op   ?5 at   ?6 node   ?7 id   ?8 lease
 */
#define FOLLOW(fence)                                                                                                  \
	"UPDATE hx_subject SET status = ?1, version = ?3 + 1, op = ?4, updated_at = ?5, seq = seq + 1,"                \
	" head = hx_link(head, id, seq + 1, ?2, ?1, ?3 + 1, " fence ", ?4, ?5, ?6)"

DB_STMT(stmt_follow, "shadow_follow", "ttiiiti", "iii",
	FOLLOW("fence") ", owner = NULL, until = NULL, effort = effort + 1, doubt = 0{from} WHERE id = ?7 RETURNING {ord}version, fence, effort");

DB_STMT(stmt_follow_claim, "shadow_claim", "ttiiitiiiti", "iii",
	FOLLOW("fence + 1") ", owner = ?6, fence = fence + 1, until = hx_now_ms() + ?8{from} WHERE id = ?7"
	ENTITY_SAME_EFFORT /* mutant: table-claim-effort -> " AND ?9 >= 0" */
	ENTITY_NO_OTHER_CALL /* mutant: table-claim-over-call -> " AND ?10 <> '' AND ?11 >= 0" */
	" RETURNING {ord}version, fence, effort");

/* ---- the live schema ---- */

void entity_table_ask_columns(struct unit *unit, const struct workflow *workflow)
{
	UNIT_ADD(unit, UNIT_ANY, &stmt_columns, db_str(workflow->table.table));
}

static bool type_has(struct slice type, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= type.n; i++)
		if (strncasecmp(type.p + i, word, n) == 0)
			return true;
	return false;
}

static bool is_integer(struct slice type)
{
	return type_has(type, "int");
}

static bool is_text(struct slice type)
{
	return type_has(type, "text") || type_has(type, "char");
}

static const struct db_value *type_of(const struct db_rows *columns, const char *name)
{
	for (size_t i = 0; i < columns->n; i++)
		if (slice_is(db_cell(columns, i, 0)->s, name))
			return db_cell(columns, i, 1);
	return NULL;
}

struct column_rule {
	const char *role, *name;
	const char *wanted;
	bool (*fits)(struct slice type);
};

static bool fits_id(struct slice type)
{
	return is_integer(type) || is_text(type) || type_has(type, "uuid");
}

static bool fits_time(struct slice type)
{
	return is_integer(type) || is_text(type) || type_has(type, "time");
}

static void complain(struct findings *findings, const struct workflow *w, const char *format, const char *a,
		     const char *b)
{
	findings_add(
		findings,
		(struct finding){
			.severity = FINDING_ERROR, .file = w->file, .line = 1, .workflow = w->name, .rule = "table"},
		format, a, b);
}

/* Ours are changed by guarded writes of ours alone. */
static bool is_ours(const struct user_table *t)
{
	return strncasecmp(user_table_name(t), "hx_", 3) == 0;
}

/* SQLite has one file, and calls it "main". */
static bool has_schema(const struct user_table *t, bool postgres)
{
	struct slice schema = user_table_schema(t);

	return postgres || !schema.n || (schema.n == 4 && strncasecmp(schema.p, "main", 4) == 0);
}

/* Taking a claim over raises the shadow's version alone, so the finish would not find the user's row any more. */
static bool wants_probe(const struct workflow *w)
{
	for (size_t i = 0; i < w->steps_n; i++)
		for (size_t v = 0; v <= w->requesters_n; v++)
			if (w->steps[i].views[v].on_unknown == UNKNOWN_PROBE)
				return true;
	return false;
}

/* Its data is the user's. */
static bool saves(const struct workflow *w)
{
	for (size_t i = 0; i < w->steps_n; i++)
		for (size_t v = 0; v <= w->requesters_n; v++)
			if (w->steps[i].views[v].save_as)
				return true;
	return false;
}

static bool may_serve(const struct workflow *w, bool postgres, struct findings *findings)
{
	const struct user_table *t = &w->table;

	if (is_ours(t))
		complain(findings, w, "the table \"%s\" is the engine's own%s", t->table, "");
	if (!has_schema(t, postgres))
		complain(findings, w, "the table \"%s\": an SQLite store has no schema but main; write \"%s\"",
			 t->table, user_table_name(t));
	if (wants_probe(w))
		complain(findings, w, "on_unknown \"probe\" does not go with a table of your own%s%s", "", "");
	if (saves(w))
		complain(findings, w, "save_as does not go with a table of your own%s%s", "", "");
	if (w->attributes.n)
		complain(findings, w, "attributes do not go with a table of your own: it has columns%s%s", "", "");
	return !is_ours(t) && has_schema(t, postgres) && !wants_probe(w) && !saves(w) && !w->attributes.n;
}

static bool columns_fit(const struct workflow *w, const struct db_rows *columns, struct findings *findings)
{
	const struct column_rule rules[] = {
		{"id", w->table.id, "an integer, text or uuid", fits_id},
		{"status", w->table.status, "text", is_text},
		{"version", w->table.version, "an integer", is_integer},
		{"updated_at", w->table.updated_at, "an integer, text or a timestamp", fits_time},
	};
	bool fit = columns->n > 0;

	if (!fit)
		complain(findings, w, "there is no table \"%s\" in the store%s", w->table.table, "");
	for (size_t i = 0; i < sizeof rules / sizeof *rules && columns->n; i++) {
		const struct db_value *type = type_of(columns, rules[i].name);

		if (!type)
			complain(findings, w, "the table \"%s\" has no column \"%s\"", w->table.table, rules[i].name);
		else if (!rules[i].fits(type->s))
			complain(findings, w, "the column \"%s\" is not %s", rules[i].name, rules[i].wanted);
		fit &= type && rules[i].fits(type->s);
	}
	return fit;
}

static enum table_time time_of(struct slice type, bool postgres)
{
	if (is_integer(type))
		return TABLE_TIME_MS;
	return postgres && type_has(type, "time") ? TABLE_TIME_TIMESTAMP : TABLE_TIME_TEXT;
}

/* ---- the statements ---- */

/* "name", or "schema"."name" of a table: no name has a quote or another dot in it (user_table.c). */
static void add_quoted(struct strbuf *sb, const char *name)
{
	strbuf_add_char(sb, '"');
	for (; *name; name++)
		if (*name == '.')
			strbuf_add_str(sb, "\".\"");
		else
			strbuf_add_char(sb, *name);
	strbuf_add_char(sb, '"');
}

/* Writes %T %I %S %V %U for the table and its columns, quoted; other text as it is. */
static void add_pattern(struct strbuf *sb, const struct user_table *t, const char *pattern)
{
	for (; *pattern; pattern++) {
		if (*pattern != '%') {
			strbuf_add_char(sb, *pattern);
			continue;
		}
		pattern++;
		add_quoted(sb, *pattern == 'T'   ? t->table
			       : *pattern == 'I' ? t->id
			       : *pattern == 'S' ? t->status
			       : *pattern == 'V' ? t->version
						 : t->updated_at);
	}
}

void entity_table_count_sql(const struct user_table *t, bool postgres, struct strbuf *out)
{
	add_pattern(
		out, t,
		postgres ? "SELECT x.status, count(*) FROM (SELECT %S AS status FROM %T WHERE %S IN (SELECT value FROM"
			   " json_array_elements_text(?1::json) AS q(value)) LIMIT ?2) x GROUP BY x.status"
			   " ORDER BY x.status"
			 : "SELECT x.status, count(*) FROM (SELECT %S AS status FROM %T WHERE %S IN (SELECT value FROM"
			   " json_each(?1)) LIMIT ?2) x GROUP BY x.status ORDER BY x.status");
}

static void entity_table_make(struct db_stmt *stmt, const char *name, const char *in, const char *out,
			      const struct user_table *t, const char *pattern, struct arena *arena)
{
	LOCAL_STRBUF(sb, SQL_BYTES_MAX);

	add_pattern(&sb, t, pattern);
	*stmt = (struct db_stmt){.name = name, .sql = arena_keep(arena, &sb).p, .in = in, .out = out};
}

#define FIELDS                                                                                                         \
	"SELECT e.subject, u.%S, CAST(u.%V AS BIGINT), s.fence, s.effort, s.owner, s.until,"                           \
	" coalesce(s.updated_at, 0), '{}', CAST(u.%I AS TEXT), '', coalesce(s.doubt, 0), NULL,"                        \
	" e.claim_step, e.claim_from, e.claim_requester, e.claim_input, e.claim_effort, e.claim_address, e.claim_version"
#define FROM                                                                                                           \
	" FROM %T u LEFT JOIN hx_entity e ON e.workspace = '' AND e.workflow = ?1 AND e.name = CAST(u.%I AS TEXT)"     \
	" LEFT JOIN hx_subject s ON s.id = e.subject"
#define SELECT FIELDS FROM

/* ?1 to ?2 from ?3 version ?4 time ?5 id: in the types that the columns have. */
#define UPDATE(time)                                                                                                   \
	"UPDATE %T SET %S = ?1, %V = %V + 1, %U = " time " WHERE %I = ?5"                                              \
	" AND %S = ?2" /* mutant: table-status */                                                                      \
	" AND %V = ?3" /* mutant: table-version */                                                                     \
	" RETURNING CAST(%V AS BIGINT)"

/*
 * Out of a claim the fence of the shadow is the guard: the user may have raised the version meanwhile, as every
 * writer must, and the step still has to end. ?3 is not looked at.
 */
#define LEAVE(time)                                                                                                    \
	"UPDATE %T SET %S = ?1, %V = %V + 1, %U = " time " WHERE %I = ?5"                                              \
	" AND %S = ?2" /* mutant: table-leave-status */                                                                \
	" RETURNING CAST(%V AS BIGINT)"

#define AS_TIMESTAMP "to_timestamp(CAST(?4 AS double precision) / 1000)"

const struct entity_table *entity_table_new(const struct workflow *workflow, const struct db_rows *columns,
					    bool postgres, struct arena *arena, struct findings *findings)
{
	const struct user_table *t = &workflow->table;
	struct entity_table *table;
	bool stamped;

	if (!may_serve(workflow, postgres, findings) || !columns_fit(workflow, columns, findings))
		return NULL;
	table = arena_zalloc(arena, sizeof *table);
	if (!table)
		return NULL;
	table->time = time_of(type_of(columns, t->updated_at)->s, postgres);
	entity_table_make(&table->read, "table_read", "tst", ENTITY_OUT, t,
			  FIELDS ", " KEPT_CALL_COLUMNS FROM KEPT_CALL_JOIN("?3") " WHERE u.%I = ?2" KEPT_CALL_ORDER,
			  arena);
	entity_table_make(
		&table->list, "table_list", "ttii", ENTITY_LIST_OUT, t,
		SELECT " WHERE (?2 = '' OR u.%S = ?2) AND (?3 = 0 OR s.owner = 'held') ORDER BY u.%I LIMIT ?4", arena);
	entity_table_make(
		&table->list_after, "table_list_after", "ttiis", ENTITY_LIST_OUT, t,
		SELECT
		" WHERE (?2 = '' OR u.%S = ?2) AND (?3 = 0 OR s.owner = 'held') AND u.%I > ?5 ORDER BY u.%I LIMIT ?4",
		arena);
	stamped = table->time == TABLE_TIME_TIMESTAMP;
	entity_table_make(&table->transition, "table_transition", "ttiss", "i", t,
			  stamped ? UPDATE(AS_TIMESTAMP) : UPDATE("?4"), arena);
	entity_table_make(&table->leave, "table_leave", "ttiss", "i", t, stamped ? LEAVE(AS_TIMESTAMP) : LEAVE("?4"),
			  arena);
	table->transition.foreign = table->leave.foreign = true; /* the user's triggers run with them */
	return arena->failed ? NULL : table;
}

/* ---- units ---- */

/* RFC 3339 where the column is text, milliseconds otherwise. */
static struct db_value time_value(const struct stamp *stamp, const struct table_row *row)
{
	return row->table->time == TABLE_TIME_TEXT ? db_text(row->time_text) : db_int(stamp->at.ms);
}

static void add_update(struct unit *unit, enum unit_rule rule, const struct db_stmt *stmt, const struct stamp *stamp,
		       const struct table_row *row, const struct move *move)
{
	unit_limit(unit, ENTITY_TABLE_LIMIT_MS);
	UNIT_ADD(unit, rule, stmt, db_str(move->to), db_str(move->from), db_int(row->version), time_value(stamp, row),
		 db_text(row->id));
}

void entity_table_transition(struct unit *unit, const struct stamp *stamp, const struct table_row *row,
			     const struct move *move)
{
	unit_touch(unit, move->subject);
	add_update(unit, UNIT_VERDICT, &row->table->transition, stamp, row, move);
	UNIT_ADD(unit, UNIT_ANY, &stmt_follow, db_str(move->to), db_str(move->from), db_int(row->version),
		 db_int(stamp->op), db_int(stamp->at.ms), db_str(stamp->node), db_int(move->subject));
	subject_add_history(unit, stamp, move->subject, move->from);
	unit_wake(unit, move->subject);
}

void entity_table_claim(struct unit *unit, const struct stamp *stamp, const struct table_row *row,
			const struct move *move, int64_t lease_ms, const struct entity_sent *call)
{
	unit_touch(unit, move->subject);
	add_update(unit, UNIT_VERDICT, &row->table->transition, stamp, row, move);
	UNIT_ADD(unit, UNIT_VERDICT, &stmt_follow_claim, db_str(move->to), db_str(move->from), db_int(row->version),
		 db_int(stamp->op), db_int(stamp->at.ms), db_str(stamp->node), db_int(move->subject), db_int(lease_ms),
		 ENTITY_CALL_VALUES(call));
	subject_add_history(unit, stamp, move->subject, move->from);
	unit_wake(unit, move->subject);
}

void entity_table_finish(struct unit *unit, const struct stamp *stamp, const struct table_row *row,
			 const struct move *move, int64_t fence)
{
	subject_finish(unit, stamp, move, fence);
	add_update(unit, UNIT_VERDICT, &row->table->leave, stamp, row, move);
}

void entity_table_release(struct unit *unit, const struct stamp *stamp, const struct table_row *row,
			  const struct move *move, int64_t fence, bool answered)
{
	subject_release(unit, stamp, move, fence, answered);
	add_update(unit, UNIT_VERDICT, &row->table->leave, stamp, row, move);
}

void entity_table_revert(struct unit *unit, const struct stamp *stamp, const struct table_row *row,
			 const struct move *move, int64_t fence)
{
	subject_revert(unit, stamp, move, fence);
	add_update(unit, UNIT_ANY, &row->table->leave, stamp, row, move);
}
