/*
 * A group of units on PostgreSQL: as few trips as the verdicts allow.
 *
 *   trip 1   BEGIN · lock the subjects, sorted, and note the xid · first lines of all plain units · what does whole units at once
 *            (unit_together)
 *            ── the verdicts are read ──
 *   trip 2   the later lines of the plain units that are still in, line after line; those that their statement
 *            carried in its set form (a change of status carries its history row) are done already; where no verdict
 *            is waited for they go with the first trip, and of a group that only reads so does the end of its transaction
 *   then     every other unit by itself, and those that were not won together, in row form under a savepoint: a trip up to each VERDICT or MUST; in the
 *            order of their subjects
 *
 * Within a trip the n-th lines of all units go together ("a phase"): those of one statement as one execution
 * in set form, which returns with each row the ordinal of the unit that it belongs to. The later lines of a
 * plain unit decide nothing, so there is no need to wait between them. (Guarding them by the new version and
 * fence instead of waiting for the verdicts would be wrong: a loser computes the same numbers.)
 *
 * The locks are a statement of their own and not a CTE of the first line. READ COMMITTED takes one snapshot
 * per statement, so whatever runs after the locks sees all that their former holders committed; inside one
 * statement the snapshot would be older than the lock, and a line that reads (look_up, history) would see the
 * past. They are taken in the order of the ids, the same on every node; peers go in the order of their
 * statements' names, so that rows without a subject are met in one order too.
 *
 * In a transaction with a limit (driver.h) every trip begins with what is left of it, for statements and for locks, and has one
 * statement of the user's at most: the server counts for each statement anew. At the end the deferred constraints are checked,
 * under the same limit. The COMMIT has none: a server that is told to leave off while it waits for its standby says that
 * all is well.
 *
 * Invariant: at most one unit of a subject per group that runs line by line in set form: there a row that is hit twice is changed
 * once, and the second unit would be told that it lost to nobody. (But for those that share it: unit_share().) Serial units (unit.h) may be many: each statement that does whole
 * units says what comes out as if they came one after the other, and has a snapshot of its own, after the one before it; so has
 * each line of those that run by themselves. None of them shares a subject with one in set form.
 */
#include <stdio.h>
#include <stdlib.h>

#include "db/postgres.h"
#include "db/postgres_guard.h"

#define SET_BYTES_MAX (8u << 20) /* one set execution; more goes in several */

DB_STMT(stmt_begin, "begin", "", "", "BEGIN");
/* The spelling that PostgreSQL 12 knows too; from 13 on it is pg_current_xact_id(). */
DB_STMT(stmt_xid, "xid", "", "i", "SELECT txid_current()");
DB_STMT(stmt_lock, "lock_subjects", "i", "i", "",
	.set_sql = "SELECT txid_current() FROM (SELECT count(*) FROM"
		   " (SELECT FROM hx_subject WHERE id = ANY($1) ORDER BY id FOR UPDATE) AS held) AS counted");
DB_STMT(stmt_limit, "limit", "t", "",
	"SELECT set_config('statement_timeout', ?1, true), set_config('lock_timeout', ?1, true)");
DB_STMT(stmt_check, "check_deferred", "", "", "SET CONSTRAINTS ALL IMMEDIATE");
DB_STMT(stmt_no_limit, "no_limit", "", "", "SET LOCAL statement_timeout = 0");
DB_STMT(stmt_savepoint, "savepoint", "", "", "SAVEPOINT hx_unit");
DB_STMT(stmt_undo, "undo", "", "", "ROLLBACK TO hx_unit");
DB_STMT(stmt_keep, "keep", "", "", "RELEASE hx_unit");
DB_STMT(stmt_end, "end", "", "", "ROLLBACK"); /* of one that only reads: as in pg_commit */

struct group {
	struct pg *pg;
	struct unit *const *units;
	size_t n;
	struct unit_result *results;
	struct arena *arena;
	struct hx_error *err;
	bool *done; /* won together */
};

/* The units whose line runs in one execution: `unit` holds their indices; the ordinal is the place in it + 1. */
struct share {
	struct group *group;
	unsigned line;
	size_t n;
	const size_t *unit;
	bool whole; /* not a line of them, but all */
};

/* Units of one phase with the same statement, all of which have the line after it that it carries, or none. */
struct peers {
	const struct db_stmt *stmt;
	bool carrying;
	bool counts; /* some line of it decides: its rows must be told apart */
	size_t n;
	size_t *unit;
};

static enum hx_code too_large(struct hx_error *err)
{
	return error_set(err, HX_TOO_LARGE, "postgres: the group is too large for its memory");
}

/* ---- answers ---- */

static void postgres_group_judge(struct group *b, size_t unit, unsigned line, size_t rows_n)
{
	enum unit_rule rule = b->units[unit]->lines[line].rule;

	if (rows_n > 0 || rule == UNIT_ANY)
		return;
	b->results[unit].verdict = rule == UNIT_VERDICT ? UNIT_LOST : UNIT_REFUSED;
	b->results[unit].line = (int)line;
}

static void fill_row(const PGresult *res, int row, int skip, const struct db_stmt *stmt, struct db_value *cells,
		     struct arena *arena)
{
	for (int c = 0; stmt->out[c]; c++)
		cells[c] = pg_cell(res, row, skip + c, stmt->out[c], arena);
}

static enum hx_code take_row(void *context, const struct db_stmt *stmt, const PGresult *res, struct hx_error *err)
{
	const struct share *share = context;
	struct group *b = share->group;
	size_t n = (size_t)PQntuples(res), columns = strlen(stmt->out);
	struct db_value *cells = n && columns ? arena_alloc(b->arena, n * columns * sizeof *cells) : NULL;
	enum hx_code code = columns ? pg_check_columns(res, stmt, /* skip= */ 0, err) : HX_OK;

	if (!columns && PQnfields(res)) { /* a user's SELECT or RETURNING: its rows only count */
		postgres_group_judge(b, share->unit[0], share->line, n);
		return HX_OK;
	}
	for (size_t row = 0; row < n && cells && !code; row++)
		fill_row(res, (int)row, /* skip= */ 0, stmt, cells + row * columns, b->arena);
	if (b->arena->failed)
		return too_large(err);
	b->results[share->unit[0]].rows[share->line] = (struct db_rows){n, columns, cells};
	/* PQcmdTuples() takes the result as not const, and only reads it. */
	postgres_group_judge(b, share->unit[0], share->line,
			     columns ? n : strtoull(PQcmdTuples((PGresult *)res), NULL, 10));
	return code;
}

/* How many rows each unit has: starts[k] becomes the place of unit k's first row, starts[n] the end. */
static enum hx_code count_rows(const struct share *share, const struct db_stmt *stmt, const PGresult *res,
			       size_t starts[], struct hx_error *err)
{
	for (int row = 0; row < PQntuples(res); row++) {
		int64_t ord = pg_cell_int(res, row, 0);

		if (ord < 1 || (size_t)ord > share->n)
			return error_set(err, HX_INTERNAL, "%s: its set form returns no ordinal", stmt->name);
		starts[ord]++;
	}
	for (size_t k = 0; k < share->n; k++)
		starts[k + 1] += starts[k];
	return HX_OK;
}

static enum hx_code take_set(void *context, const struct db_stmt *stmt, const PGresult *res, struct hx_error *err)
{
	const struct share *share = context;
	struct group *b = share->group;
	size_t n = (size_t)PQntuples(res), columns = strlen(stmt->out);
	enum hx_code code = pg_check_columns(res, stmt, /* skip= */ 1, err);

	if (code || (!columns && !stmt->counted))
		return code;

	size_t *starts = arena_zalloc(b->arena, (share->n + 1) * sizeof *starts);
	size_t *filled = arena_zalloc(b->arena, share->n * sizeof *filled);
	struct db_value *cells = arena_alloc(b->arena, n * columns * sizeof *cells);

	if (b->arena->failed)
		return too_large(err);
	code = count_rows(share, stmt, res, starts, err);
	for (size_t row = 0; row < n && !code; row++) {
		size_t k = (size_t)pg_cell_int(res, (int)row, 0) - 1;
		size_t place = starts[k] + filled[k]++;

		fill_row(res, (int)row, /* skip= */ 1, stmt, cells + place * columns, b->arena);
	}
	if (!code && b->arena->failed)
		code = too_large(err);
	for (size_t k = 0; k < share->n && !code; k++) {
		b->results[share->unit[k]].rows[share->line] = (struct db_rows){
			columns ? filled[k] : 0, columns, columns && filled[k] ? cells + starts[k] * columns : NULL};
		if (share->whole)
			b->done[share->unit[k]] = filled[k] > 0;
		else
			postgres_group_judge(b, share->unit[k], share->line, filled[k]);
	}
	return code;
}

static enum hx_code take_xid(void *context, const struct db_stmt *stmt UNUSED, const PGresult *res,
			     struct hx_error *err UNUSED)
{
	struct pg *pg = context;

	pg->xid = pg_cell_int(res, 0, 0);
	memcpy(pg->xid_history, pg->history, sizeof pg->xid_history);
	return HX_OK;
}

/* ---- the head of a group ---- */

static int by_id(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* A subject that a unit names. */
struct named {
	int64_t id;
	bool serial, shared;
};

static void send_locks(struct group *b, struct pg_trip *trip, size_t n)
{
	struct named *all = arena_alloc(b->arena, n * sizeof *all);
	size_t different_n = 0;

	if (!all) {
		trip->code = too_large(b->err);
		return;
	}
	n = 0;
	for (size_t i = 0; i < b->n; i++)
		for (unsigned s = 0; s < b->units[i]->subjects_n; s++)
			if (!(b->units[i]->apart >> s & 1))
				all[n++] = (struct named){b->units[i]->subjects[s], unit_is_serial(b->units[i]),
							  b->units[i]->shared >> s & 1};
	qsort(all, n, sizeof *all, by_id);
	pg_array_start(&b->pg->arrays[0], 'i');
	for (size_t i = 0; i < n; i++) {
		struct db_value id = db_int(all[i].id);

		if (i > 0 && all[i].id == all[i - 1].id) {
			ASSERT((all[i].serial && all[i - 1].serial) || (all[i].shared && all[i - 1].shared));
			continue;
		}
		pg_array_add(&b->pg->arrays[0], &id);
		different_n++;
	}
	pg_array_end(&b->pg->arrays[0], different_n);
	pg_trip_set(trip, &stmt_lock, take_xid, b->pg);
}

/* Locks alone leave nothing behind to be in doubt about. */
static bool writes(const struct group *b)
{
	for (size_t i = 0; i < b->n; i++)
		for (unsigned line = 0; line < b->units[i]->lines_n; line++)
			if (stmt_writes(b->units[i]->lines[line].stmt, STMT_POSTGRES_ROW))
				return true;
	return false;
}

static bool has_foreign(const struct group *b)
{
	for (size_t i = 0; i < b->n; i++)
		for (unsigned line = 0; line < b->units[i]->lines_n; line++)
			if (b->units[i]->lines[line].stmt->foreign)
				return true;
	return false;
}

/* Local to the transaction, and gone with a savepoint that is undone: so it is said in every trip. */
static void send_limit(struct group *b, struct pg_trip *trip)
{
	char left[24];
	struct db_value param;

	if (!b->pg->db.limit.ns || trip->code)
		return;
	snprintf(left, sizeof left, "%lld", (long long)pg_limit_left_ms(b->pg));
	param = db_str(left);
	pg_trip_row(trip, &stmt_limit, &param, /* take= */ NULL, NULL);
}

static void send_head(struct group *b, struct pg_trip *trip)
{
	size_t locks_n = 0;

	for (size_t i = 0; i < b->n && !b->pg->read_only; i++)
		locks_n += b->units[i]->subjects_n - (unsigned)__builtin_popcount(b->units[i]->apart);
	if (PQtransactionStatus(b->pg->conn) == PQTRANS_IDLE) {
		b->pg->wrote = b->pg->foreign = false;
		b->pg->xid = 0;
		pg_trip_row(trip, &stmt_begin, /* params= */ NULL, /* take= */ NULL, NULL);
		pg_guard_head(trip, b->pg);
	}
	b->pg->wrote |= writes(b);
	b->pg->foreign |= has_foreign(b);
	send_limit(b, trip);
	if (locks_n)
		send_locks(b, trip, locks_n);
	else if (!b->pg->xid && b->pg->wrote)
		pg_trip_row(trip, &stmt_xid, /* params= */ NULL, take_xid, b->pg);
}

/* ---- phases ---- */

static struct share *share_new(struct group *b, unsigned line, const size_t *unit, size_t n)
{
	struct share *share = arena_alloc(b->arena, sizeof *share);

	if (share)
		*share = (struct share){.group = b, .line = line, .n = n, .unit = unit};
	return share;
}

static void send_line(struct group *b, struct pg_trip *trip, unsigned line, const size_t *unit)
{
	struct share *share = share_new(b, line, unit, 1);
	const struct unit_line *l = &b->units[*unit]->lines[line];

	if (share && !trip->code)
		pg_trip_row(trip, l->stmt, l->params, take_row, share);
	else if (!trip->code)
		trip->code = too_large(b->err);
}

static size_t bytes_of(const struct unit_line *line)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < line->params_n; i++)
		bytes += line->params[i].type == DB_TEXT || line->params[i].type == DB_BLOB ? line->params[i].s.n : 8;
	return bytes;
}

static void send_set(struct group *b, struct pg_trip *trip, unsigned line, const size_t *unit, size_t n)
{
	const struct db_stmt *stmt = b->units[*unit]->lines[line].stmt;
	struct share *share = share_new(b, line, unit, n);

	for (unsigned p = 0; stmt->in[p]; p++) {
		pg_array_start(&b->pg->arrays[p], stmt->in[p]);
		for (size_t k = 0; k < n; k++)
			pg_array_add(&b->pg->arrays[p], &b->units[unit[k]]->lines[line].params[p]);
		pg_array_end(&b->pg->arrays[p], n);
	}
	if (share && !trip->code)
		pg_trip_set(trip, stmt, take_set, share);
	else if (!trip->code)
		trip->code = too_large(b->err);
}

/* In slices of at most SET_BYTES_MAX, of at least one unit each. */
static void send_peers(struct group *b, struct pg_trip *trip, const struct peers *peers, unsigned line)
{
	bool has_set = stmt_has_set_form(peers->stmt) &&
		       (peers->stmt->out[0] || peers->stmt->counted || !peers->counts) &&
		       peers->carrying == (peers->stmt->carries != NULL);

	for (size_t from = 0, to; from < peers->n && !trip->code; from = to) {
		size_t bytes = bytes_of(&b->units[peers->unit[from]]->lines[line]);

		for (to = from + 1; to < peers->n && has_set; to++) {
			bytes += bytes_of(&b->units[peers->unit[to]]->lines[line]);
			if (bytes > SET_BYTES_MAX)
				break;
		}
		if (to - from > 1 || peers->carrying)
			send_set(b, trip, line, peers->unit + from, to - from);
		else
			send_line(b, trip, line, peers->unit + from);
	}
}

static int postgres_group_by_name(const void *a, const void *b)
{
	const struct peers *x = a, *y = b;
	int order = strcmp(x->stmt->name, y->stmt->name);

	return order ? order : (int)x->carrying - (int)y->carrying;
}

static struct peers *peers_of(struct peers lots[], size_t *n, const struct unit *unit, unsigned line)
{
	const struct db_stmt *stmt = unit->lines[line].stmt;
	bool carrying = unit_carries(unit, line);

	for (size_t g = 0; g < *n; g++)
		if (lots[g].stmt == stmt && lots[g].carrying == carrying)
			return &lots[g];
	lots[*n] = (struct peers){.stmt = stmt, .carrying = carrying};
	return &lots[(*n)++];
}

static bool runs_in_sets(const struct unit *unit)
{
	return unit_is_plain(unit) && !unit->together;
}

static bool takes_part(const struct group *b, size_t i, unsigned line)
{
	return line < b->units[i]->lines_n && b->results[i].verdict == UNIT_WON && runs_in_sets(b->units[i]) &&
	       !stmt_is_empty(b->units[i]->lines[line].stmt, STMT_POSTGRES_ROW) &&
	       !(line > 0 && unit_carries(b->units[i], line - 1));
}

/* The first line from `line` on that some unit still has to run, or UNIT_LINES_MAX. */
static unsigned next_phase(const struct group *b, unsigned line)
{
	for (; line < UNIT_LINES_MAX; line++)
		for (size_t i = 0; i < b->n; i++)
			if (takes_part(b, i, line))
				return line;
	return line;
}

/* Sends the line of all plain units that are still in. */
static void send_phase(struct group *b, struct pg_trip *trip, unsigned line)
{
	struct peers *lots = arena_alloc(b->arena, b->n * sizeof *lots);
	size_t *members = arena_alloc(b->arena, b->n * sizeof *members);
	size_t lots_n = 0;

	if (!lots || !members) {
		trip->code = too_large(b->err);
		return;
	}
	for (size_t i = 0; i < b->n; i++) {
		if (takes_part(b, i, line)) {
			struct peers *peers = peers_of(lots, &lots_n, b->units[i], line);

			peers->n++;
			peers->counts |= b->units[i]->lines[line].rule != UNIT_ANY;
		}
	}
	qsort(lots, lots_n, sizeof *lots, postgres_group_by_name);
	for (size_t g = 0; g < lots_n; g++) {
		lots[g].unit = members;
		members += lots[g].n;
		lots[g].n = 0;
	}
	for (size_t i = 0; i < b->n; i++) {
		if (takes_part(b, i, line)) {
			struct peers *peers = peers_of(lots, &lots_n, b->units[i], line);

			peers->unit[peers->n++] = i;
		}
	}
	for (size_t g = 0; g < lots_n; g++)
		send_peers(b, trip, &lots[g], line);
}

/* ---- whole units at once ---- */

static size_t bytes_together(const struct unit *unit)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < unit->together_n; i++)
		bytes += unit->together_params[i].type >= DB_TEXT ? unit->together_params[i].s.n : 8;
	return bytes;
}

static void send_whole(struct group *b, struct pg_trip *trip, const size_t *unit, size_t n)
{
	const struct unit *first = b->units[*unit];
	struct share *share = share_new(b, first->together_rows, unit, n);

	for (unsigned p = 0; p < first->together_n; p++) {
		pg_array_start(&b->pg->arrays[p], first->together->in[p]);
		for (size_t k = 0; k < n; k++)
			pg_array_add(&b->pg->arrays[p], &b->units[unit[k]]->together_params[p]);
		pg_array_end(&b->pg->arrays[p], n);
	}
	if (share)
		share->whole = true;
	else
		trip->code = too_large(b->err);
	if (!trip->code)
		pg_trip_set(trip, first->together, take_set, share);
}

static int by_together(const void *a, const void *b, void *context)
{
	const struct group *group = context;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int order = strcmp(group->units[x]->together->name, group->units[y]->together->name);

	return order ? order : (x > y) - (x < y);
}

/* Those of one statement in one execution, in the order in which they came; in slices as send_peers. */
static void send_together(struct group *b, struct pg_trip *trip)
{
	size_t *all = arena_alloc(b->arena, b->n * sizeof *all), n = 0;

	if (!all) {
		trip->code = too_large(b->err);
		return;
	}
	for (size_t i = 0; i < b->n; i++)
		if (b->units[i]->together)
			all[n++] = i;
	qsort_r(all, n, sizeof *all, by_together, b);
	for (size_t from = 0, to; from < n && !trip->code; from = to) {
		const struct db_stmt *stmt = b->units[all[from]]->together;
		size_t bytes = bytes_together(b->units[all[from]]);

		for (to = from + 1; to < n && b->units[all[to]]->together == stmt; to++) {
			bytes += bytes_together(b->units[all[to]]);
			if (bytes > SET_BYTES_MAX)
				break;
		}
		send_whole(b, trip, all + from, to - from);
	}
}

/* No line waits for the verdict of another. */
static bool nobody_waits(const struct group *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (runs_in_sets(b->units[i]) && b->units[i]->lines_n && b->units[i]->lines[0].rule != UNIT_ANY)
			return false;
	return true;
}

/* All of it are lines in sets, and none writes: it goes in one trip, the end of its transaction included. */
static bool only_looks(const struct group *b)
{
	bool idle = b->pg->conn && PQtransactionStatus(b->pg->conn) == PQTRANS_IDLE;

	for (size_t i = 0; i < b->n; i++)
		if (!runs_in_sets(b->units[i]) || !b->units[i]->lines_n)
			return false;
	return idle && b->pg->db.whole && !b->pg->db.limit.ns && !writes(b);
}

/* The lines after the first, of all plain units that are still in. */
static void send_later(struct group *b, struct pg_trip *trip)
{
	for (unsigned line = next_phase(b, 1); line < UNIT_LINES_MAX && !trip->code; line = next_phase(b, line + 1))
		send_phase(b, trip, line);
}

static enum hx_code run_plain(struct group *b)
{
	bool at_once = nobody_waits(b), looks = at_once && only_looks(b);
	struct pg_trip trip;
	enum hx_code code;

	pg_trip_start(&trip, b->pg, b->arena, b->err);
	if (!trip.code) {
		send_head(b, &trip);
		send_together(b, &trip);
		send_phase(b, &trip, 0);
	}
	if (at_once)
		send_later(b, &trip);
	if (looks && !trip.code)
		pg_trip_row(&trip, &stmt_end, /* params= */ NULL, /* take= */ NULL, NULL);
	code = pg_trip_finish(&trip);
	if (code || at_once || next_phase(b, 1) == UNIT_LINES_MAX)
		return code;

	pg_trip_start(&trip, b->pg, b->arena, b->err);
	send_limit(b, &trip);
	send_later(b, &trip);
	return pg_trip_finish(&trip);
}

/* ---- units that can lose after their first line ---- */

static void send_guarded(struct group *b, struct pg_trip *trip, unsigned line, const size_t *unit)
{
	bool foreign = b->units[*unit]->lines[line].stmt->foreign;

	if (foreign)
		pg_guard_begin(trip, b->pg);
	send_line(b, trip, line, unit);
	if (foreign)
		pg_guard_end(trip, b->pg);
}

/* *open says whether a savepoint of an earlier unit still has to be released; it is taken along. */
static enum hx_code run_under_savepoint(struct group *b, size_t i, bool *open)
{
	const struct unit *unit = b->units[i];
	size_t *self = arena_alloc(b->arena, sizeof *self);
	unsigned line = 0;
	struct pg_trip trip;

	if (!self)
		return too_large(b->err);
	*self = i;
	while (line < unit->lines_n && b->results[i].verdict == UNIT_WON) {
		enum unit_rule rule = UNIT_ANY;
		enum hx_code code;

		pg_trip_start(&trip, b->pg, b->arena, b->err);
		if (line == 0 && *open)
			pg_trip_row(&trip, &stmt_keep, /* params= */ NULL, /* take= */ NULL, NULL);
		if (line == 0)
			pg_trip_row(&trip, &stmt_savepoint, /* params= */ NULL, /* take= */ NULL, NULL);
		send_limit(b, &trip);
		for (bool foreign = false; line < unit->lines_n && rule == UNIT_ANY; line++) {
			if (foreign && b->pg->db.limit.ns)
				break; /* what it leaves of the limit has to be seen first */
			foreign = unit->lines[line].stmt->foreign;
			rule = unit->lines[line].rule;
			if (!stmt_is_empty(unit->lines[line].stmt, STMT_POSTGRES_ROW))
				send_guarded(b, &trip, line, self);
		}
		code = pg_trip_finish(&trip);
		if (code)
			return code;
		*open = true;
	}
	if (b->results[i].verdict == UNIT_WON)
		return HX_OK;
	pg_trip_start(&trip, b->pg, b->arena, b->err);
	pg_trip_row(&trip, &stmt_undo, /* params= */ NULL, /* take= */ NULL, NULL);
	return pg_trip_finish(&trip);
}

struct place {
	int64_t subject; /* the least of the unit's */
	size_t unit;
};

static int by_subject(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = by_id(&x->subject, &y->subject);

	return order ? order : (x->unit > y->unit) - (x->unit < y->unit);
}

/*
 * In the order of their subjects, the same on every node: what they insert under a key of the user's is not locked by
 * then, and two nodes that meet the same keys in different orders would wait for each other.
 */
static enum hx_code run_others(struct group *b)
{
	struct place *places = arena_alloc(b->arena, b->n * sizeof *places);
	enum hx_code code = places ? HX_OK : too_large(b->err);
	bool open = false;
	size_t n = 0;

	for (size_t i = 0; i < b->n && !code; i++) {
		const struct unit *unit = b->units[i];

		if (runs_in_sets(unit) || b->done[i])
			continue;
		places[n] = (struct place){INT64_MAX, i};
		for (unsigned s = 0; s < unit->subjects_n; s++)
			if (unit->subjects[s] < places[n].subject)
				places[n].subject = unit->subjects[s];
		n++;
	}
	if (n)
		qsort(places, n, sizeof *places, by_subject);
	for (size_t i = 0; i < n && !code; i++)
		code = run_under_savepoint(b, places[i].unit, &open);
	return code;
}

static enum hx_code check_deferred(struct group *b)
{
	struct pg_trip trip;

	pg_trip_start(&trip, b->pg, b->arena, b->err);
	send_limit(b, &trip);
	pg_guard_begin(&trip, b->pg);
	pg_trip_row(&trip, &stmt_check, /* params= */ NULL, /* take= */ NULL, NULL);
	pg_guard_end(&trip, b->pg); /* the triggers of the user's that have waited for it */
	pg_trip_row(&trip, &stmt_no_limit, /* params= */ NULL, /* take= */ NULL, NULL);
	return pg_trip_finish(&trip);
}

enum hx_code pg_execute(struct db *db, struct unit *const units[], size_t n, struct unit_result results[],
			struct arena *arena, struct hx_error *err)
{
	struct group b = {(struct pg *)db, units, n, results, arena, err, arena_zalloc(arena, n * sizeof *b.done)};
	enum hx_code code = n && !b.done ? too_large(err) : HX_OK;

	for (size_t i = 0; i < n; i++) {
		results[i].verdict = UNIT_WON;
		results[i].line = -1;
		memset(results[i].rows, 0, units[i]->lines_n * sizeof *results[i].rows);
	}
	if (n && !code)
		code = run_plain(&b);
	if (n && !code)
		code = run_others(&b);
	if (n && !code && b.pg->db.limit.ns)
		code = check_deferred(&b);
	if (code)
		pg_rollback(db);
	if (b.pg->guard.spoilt && b.pg->conn)
		pg_lose(b.pg);
	return code;
}
