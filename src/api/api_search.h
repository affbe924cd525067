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

/* What of a list is for searches; its filters, its prefix and what it shows of a row are the same. */
struct api_search {
	enum where_kind of;
	size_t column; /* of the id, in rows that `read` brings */
	void (*read)(struct unit *unit, struct slice workspace, struct slice ids);
	/* Of entities their machine has these. */
	const char *const *statuses;
	int64_t (*kind)(void); /* subject_kind() */
};

/* Does the query have either of the two? */
bool api_search_wanted(const struct http_call *call);
/* Ends with NULL; NULL after answering. */
const char *const *api_statuses(struct http_call *call, const struct workflow *workflow);
/* machine: of entities, theirs; else NULL. */
void api_search(struct http_call *call, const struct api_list *list, const struct entity_machine *machine);

/* The condition. False after answering. */
bool api_where(struct http_call *call, enum where_kind of, const char *const *statuses, struct slice text,
	       const struct where **ret);
/* The attributes that definitions of this kind have, or of entities their workflow. Ends with NULL; NULL after answering. */
const char *const *api_attributes(struct http_call *call, enum where_kind of, const struct workflow *workflow);
/* 400, with the position. Always false. */
bool api_bad_query(struct http_call *call, const struct hx_error *err, size_t column);
