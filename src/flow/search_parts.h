/* What search.c asks for and search_sql.c says in SQL. */
#pragma once

#include "flow/search.h"

/* The columns of every row that is found, of whatever kind; what a kind does not have is NULL. */
enum {
	FOUND_ID,
	FOUND_STATUS,
	FOUND_WORKFLOW,
	FOUND_KEY,
	FOUND_REQUESTER,
	FOUND_ACCOUNT,
	FOUND_QUEUE,
	FOUND_NAME,
	FOUND_PARENT,
	FOUND_CREATED_AT,
	FOUND_STARTED_AT,
	FOUND_COMPLETED_AT,
	FOUND_UPDATED_AT,
	FOUND_TOTAL,
	FOUND_HELD,
	FOUND_ATTRIBUTES,
	FOUND_VALUE, /* that it was found by, of a walk by an attribute */
};

/* A range, or what is left of it. The texts are the search's own: a unit borrows them. */
struct search_bounds {
	struct slice name, from, to;
	int64_t from_id, to_id;
};

/* How many there are in it, up to SEARCH_GATHER_MAX + 1: one row. */
void search_add_count(struct unit *unit, const struct search *s, const struct search_bounds *range);
/* A row, if anything has an attribute of this name. */
void search_add_name(struct unit *unit, const struct search *s, struct slice name);
void search_add_walk(struct unit *unit, const struct search *s, const struct search_bounds *range);
void search_add_gather(struct unit *unit, const struct search *s, const struct search_bounds *range, int64_t after);
/* The same in the order of s->order, after this place in it. */
void search_add_sort(struct unit *unit, const struct search *s, const struct search_bounds *range, struct slice value,
		     int64_t id);
/* By SEARCH_ONE, SEARCH_KEY, SEARCH_WORKFLOW, SEARCH_PARKED or SEARCH_ALL. */
void search_add_list(struct unit *unit, const struct search *s, int64_t after);
