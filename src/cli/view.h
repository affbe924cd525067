/*
 * How a result, one JSON value, is put into words: as data, in the table of verbs.
 *
 *	LINE("{id}: balance {balance}")                          alice: balance 1020
 *
 *	FIELDS({"account", "{id}"}, {"balance", "{balance}"})    account  alice
 *	                                                         balance  1020
 *
 *	LIST({"ID", "{id}"}, {"BALANCE", "{balance}"})           ID     BALANCE
 *	                                                         alice  1020
 *
 * A text is as it stands, but for these:
 *
 *	{status}             the member: a string decoded, null as nothing, the rest as its JSON
 *	{claim/step}         a member of a member; a number is a place in an array, {jobs/0/id}
 *	{charged-refunded}   numbers added up; one that is not there is 0. {+total}: a number, if only 0
 *	{output:raw}         in another form, see forms[] in view.c
 *	{?held} {!created}   nothing; says something if the member does, and is not false or 0 (if it is false)
 *	{status=FAILED}      nothing; says something if the member is that
 *	[, {decision}]       only if the first member named in it says something
 *	[{key}|{id}|none]    the first part of which that is so; one that names no member always is
 *
 * Rows of FIELDS that say nothing are left out. Whatever came over the wire is foreign text, and shown as table.h does.
 */
#pragma once

#include "cli/client.h"
#include "cli/table.h"

enum view_shape {
	VIEW_LINE,
	VIEW_FIELDS,
	VIEW_ROW,   /* a list of the one object */
	VIEW_LIST,  /* of the `items` */
	VIEW_WHOLE, /* every member that says something, under its own name */
	VIEW_OTHER, /* by its function */
};

struct view_cell {
	const char *name; /* of the row or column */
	const char *text;
};

struct view {
	enum view_shape shape;
	bool cut;                      /* what does not fit on the terminal's line is left out */
	const struct view_cell *cells; /* the last has no name */
	enum hx_code (*print)(struct client *client, struct json answer, struct hx_error *err);
};

/* For tables and other constants of a file: one that is written in a function is gone when its block is. */
/* clang-format off */
#define CELLS(...)      ((const struct view_cell[]){__VA_ARGS__, {NULL, NULL}})
#define LINE(text)      (&(const struct view){VIEW_LINE, .cells = CELLS({"", text})})
#define FIELDS(...)     (&(const struct view){VIEW_FIELDS, .cells = CELLS(__VA_ARGS__)})
#define ONE_ROW(...)    (&(const struct view){VIEW_ROW, .cells = CELLS(__VA_ARGS__)})
#define LIST(...)       (&(const struct view){VIEW_LIST, .cells = CELLS(__VA_ARGS__)})
#define CUT_LIST(...)   (&(const struct view){VIEW_LIST, .cut = true, .cells = CELLS(__VA_ARGS__)})
#define WHOLE           (&(const struct view){.shape = VIEW_WHOLE})
#define PRINTED_BY(f)   (&(const struct view){VIEW_OTHER, .print = f})
/* clang-format on */

/* Adds the words to *out, control characters shown. */
void view_add(struct strbuf *out, const char *text, struct json object, struct arena *arena);
/* The same as a text in the arena or in the object, not shown yet; empty where there is no memory, which the arena remembers. */
struct slice view_text(const char *text, struct json object, struct arena *arena);
/* Prints all of it to standard output. `client` is for views with a function; NULL: there is none. */
enum hx_code view_print(const struct view *view, struct client *client, struct arena *arena, struct json answer,
			struct hx_error *err) HX_MUST_CHECK;
