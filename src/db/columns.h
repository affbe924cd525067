/*
 * A row of the store as a struct: one list says of each column its name, its kind, the member that it becomes, and its SQL.
 * So a new column is one line.
 *
 *   #define NOUN_FIELDS(X) X(NOUN_SUBJECT, INT, subject, "n.subject") …
 *
 *   enum { NOUN_FIELDS(COLUMN_NAME) NOUN_COLUMNS };     the places of the columns
 *   NOUN_FIELDS(COLUMN_SQL), NOUN_FIELDS(COLUMN_OUT)    their SQL, a comma after each, and their letters (db_stmt.out)
 *   NOUN_FIELDS(COLUMN_TAKE)                            statements: the cells of one row (`cells`) into *row, texts in `arena`
 *
 *   INT          int64_t; NULL becomes 0
 *   INDEX        int64_t; NULL becomes -1
 *   FLAG         bool: it is not 0
 *   THERE        bool: it is not NULL
 *   TEXT         struct slice; NULL becomes one without p
 *   OTHER_INT    whoever takes the row reads it by hand; has no member
 *   OTHER_TEXT   the same of a text
 */
#pragma once

#include "base/arena.h"
#include "db/unit.h"

#define COLUMN_NAME(column, kind, member, sql) column,
#define COLUMN_SQL(column, kind, member, sql) sql ", "
#define COLUMN_OUT(column, kind, member, sql) COLUMN_OUT_##kind
#define COLUMN_TAKE(column, kind, member, sql) COLUMN_TAKE_##kind(row->member, &cells[column])

#define COLUMN_OUT_INT "i"
#define COLUMN_OUT_INDEX "i"
#define COLUMN_OUT_FLAG "i"
#define COLUMN_OUT_THERE "i"
#define COLUMN_OUT_TEXT "t"
#define COLUMN_OUT_OTHER_INT "i"
#define COLUMN_OUT_OTHER_TEXT "t"

#define COLUMN_TAKE_INT(to, cell) to = cell_int(cell);
#define COLUMN_TAKE_INDEX(to, cell) to = (cell)->type == DB_NULL ? -1 : (cell)->i;
#define COLUMN_TAKE_FLAG(to, cell) to = cell_int(cell) != 0;
#define COLUMN_TAKE_THERE(to, cell) to = (cell)->type != DB_NULL;
#define COLUMN_TAKE_TEXT(to, cell) to = cell_text(cell, arena);
#define COLUMN_TAKE_OTHER_INT(to, cell)
#define COLUMN_TAKE_OTHER_TEXT(to, cell)

static inline int64_t cell_int(const struct db_value *cell)
{
	return cell->type == DB_NULL ? 0 : cell->i;
}

static inline struct slice cell_text(const struct db_value *cell, struct arena *arena)
{
	return cell->type == DB_NULL ? slice_of(NULL, 0) : arena_copy(arena, cell->s);
}
