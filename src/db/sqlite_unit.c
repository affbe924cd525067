/*
 * Units of work on SQLite, one after the other, in row form. Called by sqlite.c, and by the lane as the driver's execute.
 *
 * A plain unit needs no savepoint: what loses it is its first line, which then has changed nothing. Each of the others needs one, in
 * case it loses late, after it has changed something. But a savepoint costs a copy of every page that is changed in it, and few lose
 * late. So where the transaction is theirs alone they go without:
 *
 *   BEGIN · unit · unit · unit (loses late) · ROLLBACK · BEGIN · unit · unit · unit, each in a savepoint · COMMIT
 *
 * and so do, for a while, those that come after it: who loses late often does so again.
 */
#include <strings.h>

#include "db/sqlite.h"

#define SQL_BYTES_MAX 16384
#define CAREFUL_UNITS 4096
#define UNITS_AT_A_STRETCH 8 /* of some 10 us each */
#define TALLIES_MAX 32       /* different ones; with one more, those that there are so far are written */

/* ---- statements ---- */

/* " SELECT ?1, …" of an INSERT, where that is one row out of no table; NULL: it is none. */
static const char *one_row(const char *sql)
{
	static const char *const others[] = {" FROM ", " WHERE ", "(SELECT ", " ON CONFLICT ", " RETURNING "};
	const char *select = strstr(sql, " SELECT ");

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strstr(sql, others[i]))
			return NULL;
	return select;
}

/*
 * SQLite's form of a statement. An error in it rolls the whole transaction back (sqlite_execute), so it need not
 * be able to undo itself alone: OR FAIL spares it a journal of its own, which was a fifth of a transition's time; and so does
 * VALUES in the place of a SELECT, which might have many rows.
 * A user's statement (it is foreign, or has parameters of inferred type) is left as it is: it may have an OR of its own.
 */
static void expand(const struct db_stmt *stmt, struct strbuf *out)
{
	static const char *const openings[][2] = {{"UPDATE ", "UPDATE OR FAIL "}, {"INSERT ", "INSERT OR FAIL "}};
	const char *row = NULL;
	size_t cut = 0;
	LOCAL_STRBUF(sql, SQL_BYTES_MAX);

	stmt_expand(stmt, STMT_SQLITE, &sql);
	if (stmt->links && stmt->out[0])
		sql.n = (size_t)(strstr(sql.p, " RETURNING ") - sql.p);
	for (size_t i = 0; i < sizeof openings / sizeof *openings && !cut; i++)
		if (!stmt->foreign && !strchr(stmt->in, 's') &&
		    strncmp(sql.p, openings[i][0], strlen(openings[i][0])) == 0 &&
		    strncasecmp(sql.p + strlen(openings[i][0]), "OR ", 3) != 0) {
			strbuf_add_str(out, openings[i][1]);
			cut = strlen(openings[i][0]);
			row = i == 1 ? one_row(sql.p) : NULL;
		}
	strbuf_add(out, sql.p + cut, (row ? (size_t)(row - sql.p) : sql.n) - cut);
	if (row)
		strbuf_addf(out, " VALUES (%s)", row + strlen(" SELECT "));
	ASSERT(!sql.failed && !out->failed);
}

void sqlite_forget_prepared(struct sqlite_db *s)
{
	for (size_t i = 0; i < STMT_SLOTS; i++)
		sqlite3_finalize(s->slots[i].prepared);
	memset(s->slots, 0, sizeof s->slots);
	s->slots_used = 0;
}

static enum hx_code prepared(struct sqlite_db *s, const struct db_stmt *stmt, sqlite3_stmt **ret, struct hx_error *err)
{
	const size_t first = ((uintptr_t)stmt >> 4) % STMT_SLOTS;
	size_t i = first;

	while (s->slots[i].key && s->slots[i].key != stmt)
		i = (i + 1) % STMT_SLOTS;
	if (!s->slots[i].key) {
		/* Workflows bring statements of their own: there is no end to them. */
		if (s->slots_used == STMT_SLOTS / 2) {
			sqlite_forget_prepared(s);
			i = first;
		}
		LOCAL_STRBUF(sql, SQL_BYTES_MAX);
		expand(stmt, &sql);
		int rc = sqlite3_prepare_v3(s->handle, sql.p, (int)sql.n + 1, SQLITE_PREPARE_PERSISTENT,
					    &s->slots[i].prepared, NULL);

		if (rc)
			return sqlite_failed(s, rc, stmt->name, err);
		s->slots[i].key = stmt;
		s->slots_used++;
	}
	*ret = s->slots[i].prepared;
	return HX_OK;
}

static int bind(sqlite3_stmt *stmt, int i, const struct db_value *v)
{
	switch (v->type) {
	case DB_NULL:
		return sqlite3_bind_null(stmt, i);
	case DB_INT:
		return sqlite3_bind_int64(stmt, i, v->i);
	case DB_TEXT:
		return sqlite3_bind_text64(stmt, i, v->s.p ? v->s.p : "", v->s.n, SQLITE_STATIC, SQLITE_UTF8);
	case DB_BLOB:
		return sqlite3_bind_blob64(stmt, i, v->s.p ? v->s.p : "", v->s.n, SQLITE_STATIC);
	}
	return SQLITE_MISUSE;
}

static struct db_value column(sqlite3_stmt *stmt, int i, struct arena *arena)
{
	switch (sqlite3_column_type(stmt, i)) {
	case SQLITE_NULL:
		return db_null();
	case SQLITE_INTEGER:
		return db_int(sqlite3_column_int64(stmt, i));
	case SQLITE_TEXT: {
		const void *text = sqlite3_column_text(stmt, i);

		return db_text(arena_copy(arena, slice_of(text, (size_t)sqlite3_column_bytes(stmt, i))));
	}
	default: {
		const void *bytes = sqlite3_column_blob(stmt, i);

		return db_blob(arena_copy(arena, slice_of(bytes, (size_t)sqlite3_column_bytes(stmt, i))));
	}
	}
}

/* Appends the current row, doubling the room; the arena forgets the old copy at its reset. */
static bool take_row(sqlite3_stmt *stmt, struct db_rows *rows, size_t *room, struct arena *arena)
{
	if (rows->n == *room) {
		size_t wanted = *room ? *room * 2 : 1;
		struct db_value *cells = arena_alloc(arena, wanted * rows->columns * sizeof *cells);

		if (!cells)
			return false;
		if (rows->n)
			memcpy(cells, rows->cells, rows->n * rows->columns * sizeof *cells);
		rows->cells = cells;
		*room = wanted;
	}

	struct db_value *cell = (struct db_value *)&rows->cells[rows->n * rows->columns];

	for (size_t c = 0; c < rows->columns; c++)
		cell[c] = column(stmt, (int)c, arena);
	rows->n++;
	return !arena->failed;
}

/* A text that has other words on PostgreSQL may need fewer of them. */
static int params_used(const struct unit_line *line, sqlite3_stmt *stmt)
{
	int n = (int)line->params_n, known = sqlite3_bind_parameter_count(stmt);

	return line->stmt->pg_sql && known < n ? known : n;
}

/* Runs one line and says how many rows it met. */
static enum hx_code run_line(struct sqlite_db *s, const struct unit_line *line, struct db_rows *ret_rows,
			     int64_t *ret_count, struct arena *arena, struct hx_error *err)
{
	sqlite3_stmt *stmt = NULL;
	size_t room = 0;
	int64_t unread = 0;
	enum hx_code code = prepared(s, line->stmt, &stmt, err);
	int rc = SQLITE_OK;

	if (code)
		return code;
	*ret_rows = (struct db_rows){.columns = strlen(line->stmt->out)};
	for (int i = 0; i < params_used(line, stmt) && rc == SQLITE_OK; i++)
		rc = bind(stmt, i + 1, &line->params[i]);
	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(stmt);
		unread += rc == SQLITE_ROW && !ret_rows->columns; /* a user's SELECT: its rows only count */
		if (rc == SQLITE_ROW && ret_rows->columns && !take_row(stmt, ret_rows, &room, arena)) {
			code = error_set(err, HX_TOO_LARGE, "%s: too many rows for one unit", line->stmt->name);
			break;
		}
	}
	if (!code && rc != SQLITE_DONE)
		code = sqlite_failed(s, rc, line->stmt->name, err);
	*ret_count = sqlite3_column_count(stmt) ? (int64_t)ret_rows->n + unread : sqlite3_changes64(s->handle);
	sqlite3_reset(stmt);
	return code;
}

/* What RETURNING would have told. */
static bool tell_linked(const struct sqlite_db *s, const struct db_stmt *stmt, struct db_rows *ret_rows,
			struct arena *arena)
{
	const struct db_value values[] = {db_int(s->linked.version), db_int(s->linked.fence)};
	const size_t columns = strlen(stmt->out);
	struct db_value *cells = columns ? arena_alloc(arena, columns * sizeof *cells) : NULL;

	ASSERT(columns <= sizeof values / sizeof *values);
	if (!cells)
		return columns == 0;
	memcpy(cells, values, columns * sizeof *cells);
	*ret_rows = (struct db_rows){.n = 1, .columns = columns, .cells = cells};
	return true;
}

/* The row of history of the change that has just been made by `changed`. */
static enum hx_code add_link(struct sqlite_db *s, const struct unit_line *changed, struct arena *arena,
			     struct hx_error *err)
{
	struct unit_line line = {.stmt = changed->stmt->links, .params_n = STMT_LINK_FIRST};
	struct db_rows rows;
	int64_t count;

	memcpy(line.params, changed->params, STMT_LINK_FIRST * sizeof *line.params);
	line.params[line.params_n++] = db_int(s->linked.seq);
	line.params[line.params_n++] = db_int(s->linked.version);
	line.params[line.params_n++] = db_int(s->linked.fence);
	line.params[line.params_n++] = db_blob(slice_of(s->linked.hash, sizeof s->linked.hash));
	return run_line(s, &line, &rows, &count, arena, err);
}

/* A line that links has changed its row. *i goes on to what it carries, which is then done, too. */
static enum hx_code after_change(struct sqlite_db *s, const struct unit *unit, unsigned *i, struct db_rows *ret_rows,
				 struct arena *arena, struct hx_error *err)
{
	const struct unit_line *line = &unit->lines[*i];

	if (!tell_linked(s, line->stmt, ret_rows, arena))
		return error_set(err, HX_TOO_LARGE, "%s: no memory for its row", line->stmt->name);
	if (!unit_carries(unit, *i))
		return HX_OK;
	++*i;
	return add_link(s, line, arena, err);
}

static enum hx_code run_lines(struct sqlite_db *s, const struct unit *unit, struct unit_result *result,
			      struct arena *arena, struct hx_error *err)
{
	for (unsigned i = 0; i < unit->lines_n; i++) {
		const struct unit_line *line = &unit->lines[i];
		int64_t count = 0;
		enum hx_code code;

		if (stmt_is_empty(line->stmt, STMT_SQLITE) || line->stmt->tallied)
			continue;
		s->guard = (struct sqlite_guard){.foreign = line->stmt->foreign};
		code = run_line(s, line, &result->rows[i], &count, arena, err);
		s->guard.foreign = false;
		if (code)
			return code;
		if (count == 0 && line->rule != UNIT_ANY) {
			result->verdict = line->rule == UNIT_VERDICT ? UNIT_LOST : UNIT_REFUSED;
			result->line = (int)i;
			return HX_OK; /* mutant: lost-not-skipped */
		}
		if (line->stmt->links && count > 0)
			code = after_change(s, unit, &i, &result->rows[i], arena, err);
		if (code)
			return code;
	}
	return HX_OK;
}

/* A line of the user's takes its time, and is not done twice. */
static bool has_foreign(const struct unit *unit)
{
	for (unsigned i = 0; i < unit->lines_n; i++)
		if (unit->lines[i].stmt->foreign)
			return true;
	return false;
}

static enum hx_code end_savepoint(struct sqlite_db *s, const struct unit_result *result, struct hx_error *err)
{
	int rc = result->verdict != UNIT_WON ? sqlite_step_fixed(s->undo) : SQLITE_OK;

	if (!rc)
		rc = sqlite_step_fixed(s->keep);
	return rc ? sqlite_failed(s, rc, "end of savepoint", err) : HX_OK;
}

/* *ret_late: it has lost after it had changed something, which is there yet. */
static enum hx_code run_unit(struct sqlite_db *s, const struct unit *unit, struct unit_result *result,
			     struct arena *arena, struct hx_error *err, bool *ret_late)
{
	bool plain = unit_is_plain(unit);
	bool careful = !plain && (!s->db.whole || s->careful_n || has_foreign(unit));
	int rc = careful ? sqlite_step_fixed(s->savepoint) : SQLITE_OK;
	int64_t changes = sqlite3_total_changes64(s->handle);
	enum hx_code code;
	bool late;

	if (rc)
		return sqlite_failed(s, rc, "savepoint", err);
	result->verdict = UNIT_WON;
	result->line = -1;
	memset(result->rows, 0, unit->lines_n * sizeof *result->rows);
	code = run_lines(s, unit, result, arena, err);
	late = !code && !plain && result->verdict != UNIT_WON && sqlite3_total_changes64(s->handle) != changes;
	if (late)
		s->careful_n = CAREFUL_UNITS;
	else if (careful && s->careful_n)
		s->careful_n--;
	*ret_late = late && !careful; /* mutant: late-loss-stays -> *ret_late = false; */
	return code || !careful ? code : end_savepoint(s, result, err);
}

/* ---- what is counted ---- */

/* A line, of which others may be the same but for their last parameter, and the sum of these. */
struct tally {
	const struct unit_line *line;
	int64_t sum;
};

struct tallies {
	size_t n;
	struct tally list[TALLIES_MAX];
};

static bool is_same_value(const struct db_value *a, const struct db_value *b)
{
	if (a->type != b->type || a->type == DB_NULL)
		return a->type == b->type;
	return a->type == DB_INT ? a->i == b->i : slice_eq(a->s, b->s);
}

static bool is_same_but_last(const struct unit_line *a, const struct unit_line *b)
{
	if (a->stmt != b->stmt)
		return false;
	for (unsigned i = 0; i + 1 < a->params_n; i++)
		if (!is_same_value(&a->params[i], &b->params[i]))
			return false;
	return true;
}

static enum hx_code write_tallies(struct sqlite_db *s, struct tallies *t, struct arena *arena, struct hx_error *err)
{
	enum hx_code code = HX_OK;

	for (size_t i = 0; i < t->n && !code; i++) {
		struct unit_line line = *t->list[i].line;
		struct db_rows rows;
		int64_t count;

		line.params[line.params_n - 1].i = t->list[i].sum;
		code = run_line(s, &line, &rows, &count, arena, err);
	}
	t->n = 0;
	return code;
}

static enum hx_code tally_line(struct sqlite_db *s, struct tallies *t, const struct unit_line *line,
			       struct arena *arena, struct hx_error *err)
{
	int64_t number = line->params[line->params_n - 1].i;
	enum hx_code code = HX_OK;
	size_t i = 0;

	while (i < t->n && !is_same_but_last(t->list[i].line, line))
		i++;
	if (i < t->n) {
		t->list[i].sum += number;
		return HX_OK;
	}
	if (t->n == TALLIES_MAX)
		code = write_tallies(s, t, arena, err);
	t->list[t->n++] = (struct tally){line, number};
	return code;
}

static enum hx_code tally_units(struct sqlite_db *s, struct unit *const units[], size_t n,
				const struct unit_result results[], struct arena *arena, struct hx_error *err)
{
	struct tallies tallies;
	enum hx_code code = HX_OK;

	tallies.n = 0;
	for (size_t i = 0; i < n; i++)
		for (unsigned l = 0; l < units[i]->lines_n && !code; l++)
			if (units[i]->lines[l].stmt->tallied &&
			    results[i].verdict == UNIT_WON) /* mutant: lost-yet-tallied -> 1) */
				code = tally_line(s, &tallies, &units[i]->lines[l], arena, err);
	return code ? code : write_tallies(s, &tallies, arena, err);
}

/* ---- all of a transaction ---- */

/* *ret_late: one of them has lost too late. */
static enum hx_code run_units(struct sqlite_db *s, struct unit *const units[], size_t n, struct unit_result results[],
			      struct arena *arena, struct hx_error *err, bool *ret_late)
{
	*ret_late = false;
	for (size_t i = 0; i < n && !*ret_late; i++) {
		enum hx_code code = run_unit(s, units[i], &results[i], arena, err, ret_late);

		if (code)
			return code;
		if (i % UNITS_AT_A_STRETCH == UNITS_AT_A_STRETCH - 1 && s->db.between)
			s->db.between(s->db.told_context);
	}
	return HX_OK;
}

static enum hx_code begin_again(struct db *db, struct hx_error *err)
{
	struct mono_time limit = db->limit;

	sqlite_rollback(db);
	db->limit = limit;
	return sqlite_begin(db, err);
}

enum hx_code sqlite_execute(struct db *db, struct unit *const units[], size_t n, struct unit_result results[],
			    struct arena *arena, struct hx_error *err)
{
	struct arena_mark mark = arena_mark(arena);
	bool late;
	enum hx_code code = run_units(sqlite_self(db), units, n, results, arena, err, &late);

	if (late) {
		arena_rewind(arena, mark);
		code = begin_again(db, err);
		if (!code)
			code = run_units(sqlite_self(db), units, n, results, arena, err, &late);
	}
	ASSERT(code || !late);
	if (!code)
		code = tally_units(sqlite_self(db), units, n, results, arena, err);
	if (code)
		sqlite_rollback(db);
	return code;
}
