/*
 * Rows as JSON: what a noun shows of itself is one table of its members, and here is what writes them.
 *
 *	static const struct row_member ledger_entry[] = {
 *		{"seq", ROW_INT, .at = SEQ}, {"key", ROW_TEXT, .at = KEY}, {"time", ROW_TIME, .at = AT}, {.name = NULL},
 *	};
 *
 * A member is a column of rows that were read, or a field of a struct that they were taken into, by its offset. What is not
 * there is null. The order of the table is the order in the text.
 */
#pragma once

#include "base/json_write.h"
#include "db/unit.h"

enum row_kind {
	ROW_TEXT, /* a column; a struct slice, .p NULL: null */
	ROW_NAME, /* the same, but an empty one is null, too */
	ROW_WORD, /* only of a struct: const char * */
	ROW_JSON, /* as it is */
	ROW_INT,
	ROW_COUNT, /* below 0: null */
	ROW_TIME,  /* ms; 0: null */
	ROW_ID,    /* with a prefix; where there is none, the member is left out */
	ROW_BOOL,
	ROW_SHA256, /* in hex */
	ROW_OWN,    /* only of a struct: the noun writes it itself */
};

/* Tables end with one that has no name. */
struct row_member {
	const char *name;
	enum row_kind kind;
	size_t at;                                                /* column, or offset */
	const char *prefix;                                       /* of ROW_ID */
	void (*add)(struct strbuf *text, const void *row_struct); /* of ROW_OWN */
};

/* Members of an object that the caller opens before and closes after. */
void row_json_cells(struct strbuf *text, const struct row_member members[], const struct db_rows *rows, size_t i);
void row_json_struct(struct strbuf *text, const struct row_member members[], const void *row);
