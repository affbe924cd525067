/*
 * A list that is searched: `where` and `order` beside its filters. One page is a task of the readers (flow/search_page.h).
 *
 *   GET …?where=customer == "c-1" and total >= 100&order=-createdAt ─▶ as the list, or 400 BAD_QUERY with the position in `where`
 *
 * The cursor is the id of the last row, as in the list; in the order of an attribute ID.VALUE.
 */
#pragma once

#include "api/api_list.h"
#include "flow/search_page.h"

struct api_search {
	enum where_kind of;
	const char *const *statuses;
	const struct api_list *list; /* its filters and its prefix */
	size_t column;               /* of the id, in rows that `read` brings */
	void (*read)(struct unit *unit, struct slice workspace, struct slice ids);
	void (*add)(const struct api_search *how, struct http_call *call, const struct db_rows *rows, size_t i,
		    struct strbuf *text);
	const struct workflow *workflow; /* of entities: theirs; else NULL */
};

/* Does the query have either of the two? */
bool api_search_wanted(const struct http_call *call);
/* kind: subject_kind(). */
void api_search(struct http_call *call, const struct api_search *how, int64_t kind);

/* The condition. False after answering. */
bool api_where(struct http_call *call, enum where_kind of, const char *const *statuses, struct slice text,
	       const struct where **ret);
/* The attributes that definitions of this kind have, or of entities their workflow. Ends with NULL; NULL after answering. */
const char *const *api_attributes(struct http_call *call, enum where_kind of, const struct workflow *workflow);
/* 400, with the position. Always false. */
bool api_bad_query(struct http_call *call, const struct hx_error *err, size_t column);
