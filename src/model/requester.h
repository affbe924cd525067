/*
 * A step field as it is written: one value for all requesters, or a map by requester with "default" for the rest.
 *
 *   "action": "Close"                              Close for all
 *   "action": {"admin": "Close"}                   Close for admin, nothing for anyone else
 *   "action": {"admin": "Close", "default": "Ask"} Close for admin, Ask for anyone else
 *   "action": {}                                   nothing for anyone
 *
 * No field has an object for its value, so an object is always such a map.
 */
#pragma once

#include "model/reader.h"
#include "model/workflow.h"

#define REQUESTER_DEFAULT "default"

/* The value that holds for this requester, NULL: none. A requester whose p is NULL is anyone else. */
const struct json_node *requester_value(const struct json_node *field, struct slice requester);
/* The map has an entry of exactly this name. */
bool requester_is_named(const struct json_node *field, struct slice requester);

/* The names of all maps of a workflow, sorted. */
struct requesters {
	size_t n;
	struct slice names[WORKFLOW_REQUESTERS_MAX];
	bool too_many; /* reported */
};

/* Adds the names of one field, which may be NULL or no map. Bad names and one too many are reported. */
void requesters_add(struct requesters *set, const struct reader *r, const struct json_node *field);

/* "admin, clerk, anyone else" of the views that are set; at most 8 by name. views[set->n] is anyone else. */
#define REQUESTER_LIST_BYTES 640
void requester_list(const struct workflow *w, const bool *views, char ret_text[REQUESTER_LIST_BYTES]);
