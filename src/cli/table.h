/*
 * Text for people: values of an answer made fit for a terminal, and rows of them in columns.
 *
 *	ID     STATUS    VERSION
 *	inv-1  approved  2
 *
 * Whatever came over the wire is foreign text: control characters are shown, never sent to the terminal.
 */
#pragma once

#include <stdio.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"

#define TABLE_COLUMNS_MAX 10

/* Appends the text with every control character and stray byte written as an escape. */
void text_add_shown(struct strbuf *out, struct slice text);
/* The member of an object as one would read it: a string decoded, null as nothing, the rest as its JSON. */
struct slice text_of_member(struct json object, const char *name, struct arena *arena);

/* Is this member the word true? */
bool text_member_is_true(struct json object, const char *name);

/* The elements of a list's answer; none where there is no such member. */
struct json text_items(struct json answer);
/* Prints what was gathered, as one line, and releases it. */
enum hx_code text_print_line(struct strbuf *line, struct hx_error *err) HX_MUST_CHECK;
/* The line below a page that is not the last one: how to go on. */
void text_print_more(struct json answer, struct arena *arena, FILE *out);

struct table_cells;

/* Everything lies in the arena. */
struct table {
	struct arena *arena;
	size_t columns_n;
	size_t widths[TABLE_COLUMNS_MAX]; /* columns of a terminal */
	size_t line_max;                  /* a longer line is cut, with a … at its end; 0: none is */
	bool coloured;
	struct table_cells *first, *added, **last;
};

void table_init(struct table *table, struct arena *arena, size_t columns_n);
/* One cell for each column; the first row is the headings, if there are any. */
void table_add(struct table *table, const struct slice cells[]);
/* A row of two cells, a name and what is to be said; none if that is nothing. */
void table_add_named(struct table *table, const char *name, struct slice text);
/* The first cell of the row that was added last is in this colour ("32"), if the table is coloured. */
void table_colour(struct table *table, const char *colour);
#define TABLE_ADD(table, ...) table_add(table, (const struct slice[]){__VA_ARGS__})
/* HX_NO_MEMORY and HX_TOO_LARGE print nothing. */
enum hx_code table_print(const struct table *table, FILE *out, struct hx_error *err) HX_MUST_CHECK;
