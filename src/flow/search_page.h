/*
 * One page of what a search finds: a task that only reads.
 *
 *   START ─┬▶ PROBING ─▶ WALKING ◀─┐ the slice has brought too few, and there are more: at most SEARCH_SLICES_MAX times
 *          └▶ WALKING ─────────────┘
 *               └▶ SHOWING: the rows themselves, read by their ids ─▶ DONE
 *
 * A page may be short, with a cursor all the same: it has looked at as much as a page may. Between the walk and the rows something
 * may change: what is shown is what is there by then, and what has expired is left out.
 */
#pragma once

#include "base/arena.h"
#include "flow/search.h"
#include "task/task.h"

#define SEARCH_SLICES_MAX 8

struct search_page {
	struct task task;
	struct search search;
	int64_t limit;
	struct arena *arena;
	/* Adds the line that reads these rows; ids: JSON. */
	void (*read)(struct unit *unit, struct slice workspace, struct slice ids);
	/* The rows, in whatever order; row_of says which is which. */
	void (*show)(struct search_page *page, const struct db_rows *rows);
	/* What it has found. */
	int64_t *ids;
	size_t ids_n;
	bool more;                        /* there is a next page */
	struct search_place next;         /* where it begins */
	const struct where_test *unknown; /* with HX_BAD_QUERY: the name that is nowhere */
	/* private */
	struct slice text; /* the ids */
	unsigned slices;
};

/* With search, limit, arena, read and show set. */
void search_page_init(struct search_page *page);
/* The row of ids[n], whose id is in this column; rows->n: it is not there any more. */
size_t search_page_row(const struct search_page *page, const struct db_rows *rows, size_t column, size_t n);
