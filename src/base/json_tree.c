/*
 * See json_tree.h. The scanner has accepted the text before the first node is made, so the builder only walks.
 * It descends by recursion, which the scanner has bounded to JSON_DEPTH_MAX, and meets every byte once: the
 * position is carried along from node to node instead of being counted from the start each time.
 */
#include "base/json_tree.h"

#include "base/excerpt.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/utf8.h"

_Static_assert(offsetof(struct json_node, link) == 0, "a link is cast back to its node");

struct builder {
	const char *end;
	struct arena *arena;
	size_t nodes_left;
	const char *located; /* the place that `at` describes */
	struct json_position at;
	struct hx_error *err;
	enum hx_code code; /* HX_OK until something went wrong */
};

/* The position of p, which is not in front of the last place asked for. */
static struct json_position locate(struct builder *b, const char *p)
{
	ASSERT(p >= b->located);
	for (; b->located < p; b->located++) {
		if (*b->located == '\n')
			b->at = (struct json_position){b->at.line + 1, 1};
		else if (!utf8_continues((unsigned char)*b->located))
			b->at.column++;
	}
	return b->at;
}

static struct json_node *node_new(struct builder *b, const char *p)
{
	struct json_node *node = NULL;

	if (b->nodes_left == 0) {
		struct json_position at = locate(b, p);

		b->code = error_set(b->err, HX_TOO_LARGE, "%zu:%zu: there are too many values in this text", at.line,
				    at.column);
		return NULL;
	}
	b->nodes_left--;
	node = arena_zalloc(b->arena, sizeof *node);
	if (!node)
		b->code = arena_error(b->arena, b->err);
	return node;
}

static struct slice json_tree_decode(struct builder *b, struct json string)
{
	struct slice text = json_string_decode(string, b->arena);

	if (!text.p)
		b->code = arena_error(b->arena, b->err);
	return text;
}

/* Sorts the children of an object for json_node_member(), and refuses a name that is there twice. */
static void sort_members(struct builder *b, struct json_node *object)
{
	struct name_link *link = NULL;
	struct name_link **tail = &link;

	for (const struct json_node *child = object->first; child; child = child->next) {
		*tail = (struct name_link *)&child->link;
		tail = &(*tail)->next;
	}
	link = name_list_sort(link);

	struct json_node *twice = (struct json_node *)name_list_duplicate(link);

	if (twice) {
		const struct json_node *again = (const struct json_node *)twice->link.next;

		b->code = error_set(b->err, HX_VALIDATION_ERROR,
				    "%zu:%zu: the member \"%s\" is there already, at %zu:%zu", again->name_at.line,
				    again->name_at.column, excerpt_of(again->name).text, twice->name_at.line,
				    twice->name_at.column);
		return;
	}
	object->sorted = arena_alloc(b->arena, object->count * sizeof(struct json_node *));
	if (!object->sorted) {
		b->code = arena_error(b->arena, b->err);
		return;
	}
	for (size_t i = 0; link; link = link->next)
		object->sorted[i++] = (const struct json_node *)link;
}

static struct json_node *build_value(struct builder *b, const char *p);

/* A member from the quote of its name on. */
static struct json_node *build_member(struct builder *b, const char *p)
{
	const char *name_end = json_string_end(p, b->end);
	struct json_position name_at = locate(b, p);
	struct slice name = json_tree_decode(b, (struct json){slice_of(p, (size_t)(name_end - p))});
	const char *colon = json_space_end(name_end, b->end);
	struct json_node *node = NULL;

	if (b->code == HX_OK)
		node = build_value(b, json_space_end(colon + 1, b->end));
	if (node) {
		node->name = node->link.name = name;
		node->name_at = name_at;
	}
	return node;
}

/* Children up to the closing bracket; the node then covers that too. */
static void build_children(struct builder *b, struct json_node *parent)
{
	const char *start = parent->value.raw.p;
	const char *p = json_space_end(start + 1, b->end);
	const struct json_node **tail = &parent->first;

	while (*p != '}' && *p != ']') {
		struct json_node *child = parent->type == JSON_OBJECT ? build_member(b, p) : build_value(b, p);

		if (!child)
			return;
		*tail = child;
		tail = &child->next;
		parent->count++;
		p = json_space_end(child->value.raw.p + child->value.raw.n, b->end);
		if (*p == ',')
			p = json_space_end(p + 1, b->end);
	}
	parent->value.raw.n = (size_t)(p + 1 - start);
	if (parent->type == JSON_OBJECT)
		sort_members(b, parent);
}

/* NULL once something went wrong; b->code then says what. */
static struct json_node *build_value(struct builder *b, const char *p)
{
	struct json_node *node = node_new(b, p);

	if (!node)
		return NULL;
	node->at = locate(b, p);
	node->value.raw = slice_of(p, 1);
	node->type = json_type(node->value);
	if (node->type == JSON_ARRAY || node->type == JSON_OBJECT)
		build_children(b, node);
	else
		node->value.raw.n = (size_t)(json_value_end(p, b->end) - p);
	if (b->code == HX_OK && node->type == JSON_STRING)
		node->string = json_tree_decode(b, node->value);
	return b->code == HX_OK ? node : NULL;
}

enum hx_code json_tree_parse(struct slice text, size_t nodes_max, struct arena *a, struct hx_error *err,
			     const struct json_node **ret_root)
{
	struct builder b = {.arena = a, .nodes_left = nodes_max, .at = {1, 1}, .err = err, .code = HX_OK};
	struct json document;
	enum hx_code code = json_check(text, err, &document);

	if (code != HX_OK)
		return code;

	struct slice copy = arena_copy(a, text);

	if (!copy.p)
		return arena_error(a, err);
	b.located = copy.p;
	b.end = copy.p + copy.n;

	const struct json_node *root = build_value(&b, copy.p + (document.raw.p - text.p));

	if (root)
		*ret_root = root;
	return b.code;
}

const struct json_node *json_node_member_slice(const struct json_node *node, struct slice name)
{
	size_t low = 0;
	size_t high = node && node->type == JSON_OBJECT ? node->count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = slice_compare(name, node->sorted[middle]->name);

		if (order == 0)
			return node->sorted[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const struct json_node *json_node_member(const struct json_node *node, const char *name)
{
	return json_node_member_slice(node, slice_str(name));
}

enum hx_code json_node_int64(const struct json_node *node, struct hx_error *err, int64_t *ret_value)
{
	struct hx_error inner;
	enum hx_code code = json_int64(node->value, &inner, ret_value);

	if (code != HX_OK)
		return error_set(err, code, "%zu:%zu: %s", node->at.line, node->at.column, inner.detail);
	return HX_OK;
}
