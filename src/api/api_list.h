/*
 * One page of a list, read beside the lanes:
 *
 *   GET …?FILTERS&limit=&cursor= ─▶ {"items": [one object for each row], "cursor": where the next page begins, or null}
 *
 * A list is what its filters are, the unit that reads one row more than are shown, and what a row shows. The cursor is that of
 * the last row of its page. A route whose handler is api_list_start() has its list as `of`; no list needs a handler of its own but
 * those that look something up first (api_list_new()).
 */
#pragma once

#include "api/api.h"
#include "api/row_json.h"

#define API_LIST_FILTERS_MAX 4

/* A parameter of the query, and where in the api_query it goes. */
struct api_filter {
	const char *name;
	size_t at;                /* of a struct slice; with `flag`, of a bool; of an id, of an int64_t */
	bool flag;                /* true or false */
	const char *const *words; /* it is one of these, which end with NULL; NULL: any text */
	const char *what;         /* "status of runs" */
	const char *prefix;       /* of an id, which is a number there; NULL: it is none */
};

/* clang-format off */
#define FILTER_AT(query_name, member, ...)      {query_name, .at = offsetof(struct api_query, member), __VA_ARGS__}
#define FILTER_TEXT(query_name, member)         FILTER_AT(query_name, member, )
#define FILTER_FLAG(query_name, member)         FILTER_AT(query_name, member, .flag = true)
#define FILTER_WORD(query_name, member, known, known_as)    FILTER_AT(query_name, member, .words = known, .what = known_as)
#define FILTER_ID(query_name, member, id_prefix)            FILTER_AT(query_name, member, .prefix = id_prefix)
/* clang-format on */

/* What a cursor is, and where in the api_query it goes. */
enum api_cursor {
	CURSOR_TEXT,   /* after */
	CURSOR_NUMBER, /* number; from 1 on */
	CURSOR_ID,     /* subject, with a prefix */
	CURSOR_PLACE,  /* number and subject: two columns, for an order that one does not tell */
};

struct api_list {
	void (*build)(struct api_query *query, struct unit *unit);
	struct api_filter filters[API_LIST_FILTERS_MAX + 1];
	size_t line; /* of the unit, where the rows are */
	enum api_cursor cursor;
	size_t column, column_subject; /* of the cursor; the latter of CURSOR_PLACE alone */
	const char *prefix;            /* of CURSOR_ID */
	int64_t start;                 /* where a list without a cursor begins, in numbers */
	bool at_next;                  /* the cursor is that of the row with which the next page begins */
	size_t slice_line; /* where it is said how far a page has looked, if the unit has that line (flow/page.h); 0: all the way */
	size_t bytes_max; /* the page ends with the row that passes it; 0: none does */
	/* NULL, or what is wrong with the unit's answer. It sets the detail. */
	enum hx_code (*check)(struct api_query *query, const struct unit_result *result);
	/* Of a list of what something has: its id, from the path. False after answering. It goes into `subject`. */
	bool (*owner)(struct http_call *call, int64_t *ret_subject);
	const char *owner_name;          /* or its name, which is this parameter of the path; into `name` */
	const struct api_search *search; /* NULL: where and order are no parameters of it */
	/* What a row shows: its members, or, with NULL, the object that is written here. */
	const struct row_member *members;
	void (*add)(struct api_query *query, const struct db_rows *rows, size_t i);
};

/* Of a list by id, the newest first; and of one that may be long, whose pages are looked for in slices, with where and order. */
#define LIST_BY_ID(prefix_, column_) .cursor = CURSOR_ID, .prefix = prefix_, .column = column_, .start = INT64_MAX
#define LIST_SEARCHED(prefix_, column_, search_) LIST_BY_ID(prefix_, column_), .slice_line = 1, .search = search_

/* Its limit and its filters, into the query. False after answering. */
bool api_list_read(struct http_call *call, const struct api_list *list, struct api_query *query);
/* Reads the query of the call. NULL after answering; else what more the unit needs is set, and api_query_read() follows. */
struct api_query *api_list_new(struct http_call *call, const struct api_list *list);
/* A handler: without more. */
void api_list_start(struct http_call *call);
