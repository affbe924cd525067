/* What a condition says of one subject: pure, without memory, at most WHERE_TESTS_MAX + WHERE_VALUES_MAX comparisons. */
#include "base/json_string.h"
#include "base/json_walk.h"
#include "model/where_tree.h"

/* Six bytes are the longest escape of a character that stands in a text of ours; what is longer no store of ours has written. */
#define ATTRIBUTE_ROOM (6 * SORTABLE_BYTES_MAX)

/* What the subject has there: a text that sorts, in two pieces. */
struct where_cell {
	char tag; /* '\0': nothing */
	struct slice rest;
	char room[ATTRIBUTE_ROOM];
};

static void cell_of_attribute(const struct where_subject *subject, struct slice name, struct where_cell *cell)
{
	struct slice text = {NULL, 0};
	struct json value;

	if (subject->attributes.raw.p && json_find(subject->attributes, name, &value) &&
	    json_type(value) == JSON_STRING)
		text = json_string_view_in(value, cell->room, sizeof cell->room);
	if (!text.n)
		return;
	cell->tag = text.p[0];
	cell->rest = slice_from(text, 1);
}

static void cell_of(const struct where_test *test, const struct where_subject *subject, struct where_cell *cell)
{
	const char *member = (const char *)subject + test->member;

	cell->tag = '\0';
	if (test->type == WHERE_ATTRIBUTE) {
		cell_of_attribute(subject, test->name, cell);
	} else if (test->type == WHERE_STRING) {
		cell->rest = *(const struct slice *)(const void *)member;
		cell->tag = cell->rest.p ? SORTABLE_STRING : '\0';
	} else if (test->type == WHERE_NUMBER) {
		struct slice text = sortable_int64(*(const int64_t *)(const void *)member, cell->room);

		cell->tag = text.p[0];
		cell->rest = slice_from(text, 1);
	} else {
		cell->tag = SORTABLE_BOOL;
		cell->rest = slice_str(*(const bool *)(const void *)member ? "1" : "0");
	}
}

static bool in_order(enum where_op op, int order)
{
	switch (op) {
	case WHERE_LT:
		return order < 0;
	case WHERE_LE:
		return order <= 0;
	case WHERE_GT:
		return order > 0;
	default:
		return order >= 0;
	}
}

static bool text_passes(enum where_op op, const struct where_cell *cell, struct slice value)
{
	struct slice rest = value.p ? slice_from(value, 1) : value;

	if (op == WHERE_EQ && (!value.p || !cell->tag))
		return !value.p && !cell->tag;
	if (!value.p || value.p[0] != cell->tag) /* mutant: where-types -> if (!value.p) */
		return false;
	if (op == WHERE_EQ)
		return slice_eq(cell->rest, rest);
	if (op == WHERE_STARTS)
		return cell->rest.n >= rest.n && slice_eq(slice_of(cell->rest.p, rest.n), rest);
	return in_order(op, slice_compare(cell->rest, rest));
}

/* A time or an id; null is 0, and has no order. */
static bool number_passes(enum where_op op, int64_t number, int64_t value)
{
	if (op == WHERE_EQ)
		return number == value;
	return number && value && in_order(op, (number > value) - (number < value));
}

static bool test_passes(const struct where_test *test, const struct where_subject *subject)
{
	bool is_text = test->type != WHERE_TIME && test->type != WHERE_ID;
	enum where_op op = test->op == WHERE_NE || test->op == WHERE_IN ? WHERE_EQ : test->op;
	bool any = false;
	struct where_cell cell;

	if (is_text)
		cell_of(test, subject, &cell);
	for (size_t i = 0; i < test->values_n && !any; i++) {
		const struct where_value *value = &test->values[i];

		if (is_text)
			any = text_passes(op, &cell, value->sortable);
		else
			any = number_passes(op, *(const int64_t *)(const void *)((const char *)subject + test->member),
					    value->number);
	}
	return any != (test->op == WHERE_NE);
}

static bool node_holds(const struct where_node *node, const struct where_subject *subject)
{
	if (node->op == WHERE_TEST)
		return test_passes(node->test, subject);
	if (node->op == WHERE_NOT)
		return !node_holds(node->first, subject);
	for (const struct where_node *child = node->first; child; child = child->next)
		if (node_holds(child, subject) == (node->op == WHERE_OR))
			return node->op == WHERE_OR;
	return node->op == WHERE_AND;
}

bool where_holds(const struct where *where, const struct where_subject *subject)
{
	return node_holds(where->root, subject);
}

static size_t collect(const struct where_node *node, const struct where_test *out[WHERE_CONJUNCTS_MAX], size_t n)
{
	if (node->op == WHERE_TEST && n < WHERE_CONJUNCTS_MAX)
		out[n++] = node->test;
	for (const struct where_node *child = node->op == WHERE_AND ? node->first : NULL; child; child = child->next)
		n = collect(child, out, n);
	return n;
}

size_t where_conjuncts(const struct where *where, const struct where_test *out[WHERE_CONJUNCTS_MAX])
{
	return collect(where->root, out, 0);
}
