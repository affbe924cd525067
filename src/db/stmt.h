/*
 * A statement: SQL text with a name, parameters and result columns by type, written once for both stores.
 *
 * The text uses ?1 ?2 … for parameters and bare column names, and may hold markers from which the two forms
 * are made:
 *
 *   marker    row form (SQLite, PostgreSQL)   set form (PostgreSQL, one execution for many units)
 *   {from}    nothing                         " FROM unnest($1::int8[], $2::text[], …)
 *                                               WITH ORDINALITY AS u(p1, p2, …, ord)"
 *   {join}    nothing                         ", unnest(…) … AS u(…)"
 *   {u}       (set_sql only)                  "unnest(…) … AS u(…)"
 *   {ord}     nothing                         "u.ord, "
 *   {listN}   a table whose column "value" has the elements of the JSON array ?N
 *   {sqlite}  begins what stands in the text for SQLite alone, {postgres} for PostgreSQL; up to its {end}. One may stand in another
 *   ?N        ?N (SQLite), $N (PostgreSQL)    u.pN
 *
 * Quoted texts are left alone. So `UPDATE t SET a = ?1{from} WHERE id = ?2 RETURNING {ord}b` is both. Where the
 * set form cannot be derived (an INSERT cannot return the ordinal) it is given in `set_sql`, with u.pN and {u}. A
 * statement without markers and without set_sql has only its row form.
 *
 * A statement whose set form also does the work of the line after it names that line's statement in `carries`
 * (PostgreSQL: WITH won AS (UPDATE …), told AS (INSERT … FROM won) SELECT …): one execution and one trip less. In a
 * plain unit that has this line, such a statement always runs in its set form, and the line is passed over; in all
 * other units it runs in its row form. On SQLite see `links`.
 *
 * A few statements need different words in the two stores: `pg_sql` then has those of PostgreSQL, and `sql` is SQLite's
 * alone; either need not use all parameters. An empty text means that there is nothing to do in that store (the other lines of the unit have done it): a
 * line of such a statement, whose rule is ANY, is passed over there and has no rows. On SQLite hx_ids (place, id) is a table
 * in memory, of the connection alone: what one line finds there, those after it use. The last of them empties it.
 *
 * Functions that exist in both stores: hx_now_ms() (the store's clock: the injected one on SQLite,
 * clock_timestamp() on PostgreSQL) and hx_link(…), the hash of a history row (db/link.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/strbuf.h"

#define STMT_PARAMS_MAX 16
#define STMT_COLUMNS_MAX 56
#define STMT_LINK_FIRST 7

enum db_type { DB_NULL, DB_INT, DB_TEXT, DB_BLOB };

struct db_value {
	enum db_type type;
	union {
		int64_t i;
		struct slice s;
	};
};

static inline struct db_value db_int(int64_t i)
{
	return (struct db_value){.type = DB_INT, .i = i};
}

static inline struct db_value db_text(struct slice s)
{
	return (struct db_value){.type = DB_TEXT, .s = s};
}

static inline struct db_value db_str(const char *s)
{
	return (struct db_value){.type = DB_TEXT, .s = slice_str(s)};
}

static inline struct db_value db_blob(struct slice s)
{
	return (struct db_value){.type = DB_BLOB, .s = s};
}

static inline struct db_value db_null(void)
{
	return (struct db_value){.type = DB_NULL};
}

/* NULL where there is no text at all. */
static inline struct db_value db_optional(struct slice s)
{
	return s.p ? db_text(s) : db_null();
}

/* Statements are static constants; a connection prepares each one once and finds it again by its address. */
struct db_stmt {
	const char *name; /* unique in the program, at most 40 characters of [a-z0-9_] */
	const char *in;   /* a letter per parameter: i (int8), t (text), b (bytea); in row forms also s: a whole
				number or text, of the type that the store infers from its place */
	const char *out;  /* a letter per result column, without the ordinal; "" for none */
	const char *sql;
	const char *pg_sql;            /* NULL: the same as sql */
	const char *set_sql;           /* NULL: derived where the text has {from} or {join} */
	const struct db_stmt *carries; /* NULL, or the next line's statement: its work is part of the set form */
	/* NULL, or it changes one row at most, calls hx_link() for that, last for its own head, and returns the row's version and fence.
	 * SQLite then does not ask it: RETURNING makes a table there, for one row, which takes longer than the UPDATE. hx_link() has
	 * been told all of it. And what it `carries` is this there: a text by the first STMT_LINK_FIRST parameters of the change, then
	 * seq, version, fence and hash of its row of history. */
	const struct db_stmt *links;
	bool counted; /* out is "", and yet the rows of each unit are counted in set form: what is derived then
				returns the ordinals, and set_sql must. SQLite and row forms have their count for
				nothing, where RETURNING would cost as much as half an UPDATE */
	bool tallied; /* rows that count something, of SQLite's alone: a line of it, whose rule is ANY, is run at the end of the
				transaction, once for all won units that have the same one, with the sum of their last parameters */
	bool foreign; /* the user's own text, as it stands in a definition; or ours, on a table of the user's: it may not reach what
				is the engine's, by itself or by a view, a trigger or a function */
	bool fenced; /* guarded by a fence: when it loses, a stale holder was kept out (a metric) */
};

/* A statement of this file: its variable, name, in and out; then its text, and whatever else it has, by member. */
#define DB_STMT(variable, name_, in_, out_, ...)                                                                       \
	static const struct db_stmt variable = {.name = name_, .in = in_, .out = out_, __VA_ARGS__}

/* Of a number, for one and for many: takes away the rows of the table that have it in this column. */
#define DB_STMT_DROP(variable, name_, table, column)                                                                   \
	DB_STMT(variable, name_, "i", "", "DELETE FROM " table " WHERE " column " = ?1",                               \
		.set_sql = "DELETE FROM " table " t USING {u} WHERE t." column " = u.p1")

enum stmt_form { STMT_SQLITE, STMT_POSTGRES_ROW, STMT_POSTGRES_SET };

bool stmt_has_set_form(const struct db_stmt *stmt);
/* Is there nothing to do in the store of this form? */
bool stmt_is_empty(const struct db_stmt *stmt, enum stmt_form form);
/* May it change something? Only what begins with SELECT is known not to. */
bool stmt_writes(const struct db_stmt *stmt, enum stmt_form form);
/* Writes the text of the wanted form. Pure; a text that is too long for *out sets out->failed. */
void stmt_expand(const struct db_stmt *stmt, enum stmt_form form, struct strbuf *out);
