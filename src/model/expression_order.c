/*
 * The order of values: by type, then by value, as expression.h has it. Objects are sorted by their names first, whatever their
 * order in the text; that is what `work` has to pay for.
 */
#include "base/json_number.h"
#include "base/json_walk.h"
#include "base/name_list.h"
#include "model/expression_eval.h"

#define MEMBER_WORK 64 /* of a member in each round of sorting */

struct member {
	struct name_link link;
	struct json value;
};

static struct member *member_next(const struct member *member)
{
	return (struct member *)member->link.next;
}

/* Of several members of one name only the first stays. */
static void drop_doubles(struct name_link *sorted)
{
	struct name_link *twice;

	for (; (twice = name_list_duplicate(sorted)); sorted = twice)
		twice->next = twice->next->next;
}

/* The logarithm of the count, rounded down: a single member costs nothing. */
static size_t sort_rounds(size_t count)
{
	size_t rounds = 0;

	for (; count > 1; count /= 2)
		rounds++;
	return rounds;
}

/* The members by their names, in the scratch arena; NULL is the empty list. */
static bool sorted_members(struct evaluation *e, struct json object, struct member **ret)
{
	struct json_iter it = json_iter_of(object);
	struct name_link *first = NULL, **tail = &first;
	struct json name, value;
	size_t count = 0;

	while (json_iter_member(&it, &name, &value)) {
		struct member *member = evaluation_alloc(e, sizeof *member);

		if (!member)
			return false;
		*member = (struct member){.value = value};
		if (!evaluation_string(e, name, &member->link.name))
			return false;
		*tail = &member->link;
		tail = &member->link.next;
		count++;
	}
	if (!evaluation_spend(e, object.raw.n + count * MEMBER_WORK * sort_rounds(count)))
		return false;
	first = name_list_sort(first);
	drop_doubles(first);
	*ret = (struct member *)first;
	return true;
}

static int rank(struct json value)
{
	enum json_type type = json_type(value);

	/* null false true number … */
	return type == JSON_NULL ? 0 : type == JSON_BOOL ? 1 + json_bool(value) : (int)type + 1;
}

static bool compare_strings(struct evaluation *e, struct json a, struct json b, int *ret_order)
{
	struct slice left, right;

	if (!evaluation_string(e, a, &left) || !evaluation_string(e, b, &right))
		return false;
	*ret_order = slice_compare(left, right);
	return true;
}

static bool compare_arrays(struct evaluation *e, struct json a, struct json b, int *ret_order)
{
	struct json_iter left = json_iter_of(a), right = json_iter_of(b);
	struct json x, y;

	for (*ret_order = 0; *ret_order == 0;) {
		bool more = json_iter_element(&left, &x);
		bool more_right = json_iter_element(&right, &y);

		*ret_order = more - more_right;
		if (!more || !more_right)
			break;
		if (!evaluation_compare(e, x, y, ret_order))
			return false;
	}
	return true;
}

static int compare_names(const struct member *a, const struct member *b)
{
	int order = 0;

	for (; a && b && order == 0; a = member_next(a), b = member_next(b))
		order = slice_compare(a->link.name, b->link.name);
	return order ? order : (a != NULL) - (b != NULL);
}

static bool compare_objects(struct evaluation *e, struct json a, struct json b, int *ret_order)
{
	struct member *left, *right;

	if (!sorted_members(e, a, &left) || !sorted_members(e, b, &right))
		return false;
	*ret_order = compare_names(left, right);
	/* Equal names: both lists are of the same length. */
	for (; left && *ret_order == 0; left = member_next(left), right = member_next(right))
		if (!evaluation_compare(e, left->value, right->value, ret_order))
			return false;
	return true;
}

bool evaluation_compare(struct evaluation *e, struct json a, struct json b, int *ret_order)
{
	enum json_type type = json_type(a);

	*ret_order = rank(a) - rank(b);
	if (*ret_order != 0 || type == JSON_NULL || type == JSON_BOOL)
		return true;
	if (!evaluation_spend(e, EVALUATION_NODE_WORK + a.raw.n + b.raw.n))
		return false;
	if (slice_eq(a.raw, b.raw))
		return true;
	if (type == JSON_STRING)
		return compare_strings(e, a, b, ret_order);
	if (type == JSON_ARRAY)
		return compare_arrays(e, a, b, ret_order);
	if (type == JSON_OBJECT)
		return compare_objects(e, a, b, ret_order);

	struct json_number left = json_number_of(a), right = json_number_of(b);

	*ret_order = json_number_compare(&left, &right);
	return true;
}
