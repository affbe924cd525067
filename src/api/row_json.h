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
	ROW_ID,    /* with a prefix; where there is none (of a struct: 0), the member is left out */
	ROW_BOOL,
	ROW_SHA256,     /* in hex */
	ROW_DATA,       /* as it is; where there is none, the member is left out */
	ROW_ATTRIBUTES, /* the same, of what is kept (model/attributes.h) */
	ROW_OWN,        /* only of a struct: the noun writes it itself */
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
/* The whole object. */
void row_json_object(struct strbuf *text, const struct row_member members[], const void *row);

/* Of a struct, whose file says by AT(field) where it is: a member that is called as its field; and the times that most have. */
/* clang-format off */
#define ROW_SAME(kind, field) {#field, ROW_##kind, AT(field)}
#define ROW_LIFE {"createdAt", ROW_TIME, AT(created_at)}, {"startedAt", ROW_TIME, AT(started_at)}, {"completedAt", ROW_TIME, AT(completed_at)}
/* clang-format on */
