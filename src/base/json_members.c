/*
 * See json_members.h. Two passes over the text: one counts the members, so that the records are one array and
 * "the record after" is an address; the other fills them in. The second descends by recursion, which the
 * scanner has bounded to JSON_DEPTH_MAX.
 */
#include "base/json_members.h"

#include <stdint.h>

#include "base/excerpt.h"
#include "base/json_string.h"
#include "base/json_walk.h"

_Static_assert(offsetof(struct json_member, link) == 0, "a link is cast back to its member");

struct indexer {
	const char *end;
	struct arena *arena;
	struct json_member *at; /* the next record to fill */
};

static size_t count_members(struct json document)
{
	const char *p = document.raw.p;
	const char *end = p + document.raw.n;
	size_t count = 0;

	while (p < end) {
		if (*p == '"') {
			p = json_string_end(p, end);
			continue;
		}
		count += *p == ':';
		p++;
	}
	return count;
}

static const char *index_value(struct indexer *ix, const char *p, unsigned depth);

/* p is at the value of an object's next member, or at whatever stands after it; returns the next name or the }. */
static const char *behind_value(const struct indexer *ix, const char *p)
{
	p = json_space_end(p, ix->end);
	return p < ix->end && *p == ',' ? json_space_end(p + 1, ix->end) : p;
}

static const char *index_object(struct indexer *ix, const char *p, unsigned depth)
{
	struct json_member *first = NULL;
	struct name_link **tail = NULL;

	p = json_space_end(p + 1, ix->end);
	while (p < ix->end && *p != '}') {
		struct json_member *m = ix->at++;
		const char *name_end = json_string_end(p, ix->end);
		struct json name = {slice_of(p, (size_t)(name_end - p))};

		*m = (struct json_member){.link.name = json_string_view(name, ix->arena), .at = p};
		if (tail)
			*tail = &m->link;
		tail = &m->link.next;
		first = first ? first : m;
		p = behind_value(ix, index_value(ix, json_member_value(m, ix->end), depth));
	}
	p = p < ix->end ? p + 1 : p;
	if (first) {
		first->object_end = p;
		first->object_after = ix->at;
	}
	return p;
}

static const char *index_value(struct indexer *ix, const char *p, unsigned depth)
{
	ASSERT(depth <= JSON_DEPTH_MAX);
	if (p < ix->end && *p == '{')
		return index_object(ix, p, depth + 1);
	if (p == ix->end || *p != '[')
		return json_value_end(p, ix->end);
	p = json_space_end(p + 1, ix->end);
	while (p < ix->end && *p != ']')
		p = behind_value(ix, index_value(ix, p, depth + 1));
	return p < ix->end ? p + 1 : p;
}

const char *json_member_value(const struct json_member *member, const char *end)
{
	const char *colon = json_space_end(json_string_end(member->at, end), end);

	return colon < end ? json_space_end(colon + 1, end) : end;
}

enum hx_code json_members_index(struct json document, struct arena *a, struct hx_error *err,
				struct json_members *ret_members)
{
	struct json_members members = {.count = count_members(document)};
	struct indexer ix = {.end = document.raw.p + document.raw.n, .arena = a};

	/* No overflow: the text has at least four bytes per member, and it is in memory already. */
	members.all = arena_alloc(a, members.count * sizeof *members.all);
	if (!members.all)
		return arena_error(a, err);
	ix.at = members.all;
	(void)index_value(&ix, document.raw.p, 0); /* it ends at ix.end */
	if (a->failed)
		return arena_error(a, err);
	ASSERT(ix.at == members.all + members.count);
	*ret_members = members;
	return HX_OK;
}

struct json_member *json_members_sort(struct json_member *first)
{
	return (struct json_member *)name_list_sort(&first->link);
}

static enum hx_code refuse_duplicate(struct json document, const struct json_member *member, struct hx_error *err)
{
	const struct json_member *again = json_member_next(member);
	struct json_position one = json_locate(document.raw, (size_t)(member->at - document.raw.p));
	struct json_position two = json_locate(document.raw, (size_t)(again->at - document.raw.p));

	return error_set(err, HX_VALIDATION_ERROR, "%zu:%zu: the member \"%s\" is there already, at %zu:%zu", two.line,
			 two.column, excerpt_of(member->link.name).text, one.line, one.column);
}

enum hx_code json_check_unique(struct json document, struct arena *scratch, struct hx_error *err)
{
	struct json_members members;
	enum hx_code code = json_members_index(document, scratch, err, &members);

	for (size_t i = 0; code == HX_OK && i < members.count; i++) {
		if (!members.all[i].object_end)
			continue;

		struct name_link *sorted = name_list_sort(&members.all[i].link);
		struct name_link *twice = name_list_duplicate(sorted);

		if (twice)
			code = refuse_duplicate(document, (struct json_member *)twice, err);
	}
	return code;
}
