/* See requester.h. */
#include "model/requester.h"

#include <stdio.h>

#include "base/excerpt.h"

#define LISTED_MAX 8

const struct json_node *requester_value(const struct json_node *field, struct slice requester)
{
	const struct json_node *value = NULL;

	if (!field || field->type != JSON_OBJECT)
		return field;
	if (requester.p)
		value = json_node_member_slice(field, requester);
	return value ? value : json_node_member(field, REQUESTER_DEFAULT);
}

bool requester_is_named(const struct json_node *field, struct slice requester)
{
	return requester.p && json_node_member_slice(field, requester);
}

/* Where the name is, or where it belongs. */
static size_t position_of(const struct requesters *set, struct slice name, bool *ret_there)
{
	size_t low = 0, high = set->n;

	*ret_there = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = slice_compare(name, set->names[middle]);

		if (order == 0)
			*ret_there = true;
		if (order <= 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void requester_add_name(struct requesters *set, const struct reader *r, const struct json_node *entry)
{
	bool there;
	size_t at = position_of(set, entry->name, &there);

	if (there || slice_is(entry->name, REQUESTER_DEFAULT))
		return;
	if (!name_is_valid(entry->name)) {
		reader_report(r, entry->name_at.line, "name",
			      "requester \"%s\": a name has 1 to %d bytes of letters, digits, '_', '.' and '-'",
			      excerpt_of(entry->name).text, WORKFLOW_NAME_MAX);
		return;
	}
	if (set->n == WORKFLOW_REQUESTERS_MAX) {
		if (!set->too_many)
			reader_report(r, entry->name_at.line, "limit",
				      "requester \"%s\" is one too many: the maps of a workflow name at most %d",
				      excerpt_of(entry->name).text, WORKFLOW_REQUESTERS_MAX);
		set->too_many = true;
		return;
	}
	memmove(&set->names[at + 1], &set->names[at], (set->n - at) * sizeof set->names[0]);
	set->names[at] = entry->name;
	set->n++;
}

void requesters_add(struct requesters *set, const struct reader *r, const struct json_node *field)
{
	if (!field || field->type != JSON_OBJECT)
		return;
	json_node_for_each(entry, field) requester_add_name(set, r, entry);
}

void requester_list(const struct workflow *w, const bool *views, char ret_text[REQUESTER_LIST_BYTES])
{
	size_t listed = 0, more = 0;
	int at = 0;

	_Static_assert(LISTED_MAX * (WORKFLOW_NAME_MAX + 2) + 32 < REQUESTER_LIST_BYTES, "all names fit");
	ret_text[0] = '\0';
	for (size_t i = 0; i <= w->requesters_n; i++) {
		if (!views[i])
			continue;
		if (listed++ >= LISTED_MAX)
			more++;
		else
			at += snprintf(ret_text + at, REQUESTER_LIST_BYTES - (size_t)at, "%s%s", at ? ", " : "",
				       workflow_view_name(w, i));
	}
	if (more)
		snprintf(ret_text + at, REQUESTER_LIST_BYTES - (size_t)at, " and %zu more", more);
}
