/* See outcomes.h. */
#include "model/outcomes.h"

#include <stdio.h>

#include "model/fields.h"

#define STATUS_DIGITS 3

static const char *const words[] = {"done", "failed", "rejected", "retry", "unknown", NULL};

static bool is_single(const struct outcome_range *range)
{
	return range->from == range->to;
}

bool outcomes_find(const struct outcomes *outcomes, long status, enum outcome_word *ret_word)
{
	const struct outcome_range *found = NULL;

	for (size_t i = 0; i < outcomes->n; i++) {
		const struct outcome_range *range = &outcomes->ranges[i];

		if (status >= range->from && status <= range->to && (!found || is_single(range)))
			found = range;
	}
	if (found)
		*ret_word = found->word;
	return found != NULL;
}

/* Three digits; false: something else. */
static bool outcomes_read_status(const char *text, long *ret_status)
{
	long status = 0;

	for (size_t i = 0; i < STATUS_DIGITS; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		status = status * 10 + (text[i] - '0');
	}
	*ret_status = status;
	return true;
}

/* "404" or "500-599". */
static bool read_range(struct slice name, struct outcome_range *range)
{
	if (name.n != STATUS_DIGITS && name.n != 2 * STATUS_DIGITS + 1)
		return false;
	if (!outcomes_read_status(name.p, &range->from))
		return false;
	range->to = range->from;
	if (name.n == STATUS_DIGITS)
		return true;
	return name.p[STATUS_DIGITS] == '-' && outcomes_read_status(name.p + STATUS_DIGITS + 1, &range->to) &&
	       range->from < range->to;
}

/* People write 5xx, and mean 500-599. */
static void report_name(const struct reader *r, const struct json_node *member)
{
	struct slice name = member->name;
	char meant[40] = "";

	if (name.n == STATUS_DIGITS && name.p[0] >= '2' && name.p[0] <= '5' && (name.p[1] | 32) == 'x' &&
	    (name.p[2] | 32) == 'x')
		snprintf(meant, sizeof meant, "; did you mean \"%c00-%c99\"?", name.p[0], name.p[0]);
	reader_report(r, member->name_at.line, "outcomes",
		      "\"%s\" is no status: it is one from %d to %d, \"404\", or a range of them, \"500-599\"%s",
		      excerpt_of(name).text, OUTCOMES_STATUS_MIN, OUTCOMES_STATUS_MAX, meant);
}

static void read_one(const struct reader *r, const struct json_node *member, struct outcome_range *ranges, size_t *n)
{
	struct outcome_range range;
	int word;

	if (!read_range(member->name, &range) || range.from < OUTCOMES_STATUS_MIN || range.to > OUTCOMES_STATUS_MAX) {
		report_name(r, member);
		return;
	}
	if (!reader_choice(r, member, excerpt_of(member->name).text, words, &word))
		return;
	range.word = (enum outcome_word)word;
	for (size_t i = 0; i < *n; i++)
		if (!is_single(&ranges[i]) && !is_single(&range) && ranges[i].from <= range.to &&
		    range.from <= ranges[i].to)
			reader_report(r, member->name_at.line, "outcomes",
				      "\"%s\" and \"%ld-%ld\" have statuses in common, and neither counts more",
				      excerpt_of(member->name).text, ranges[i].from, ranges[i].to);
	ranges[(*n)++] = range;
}

void outcomes_read(const struct reader *outer, const struct json_node *node, const struct field *field, void *ret)
{
	struct outcomes *outcomes = ret;
	struct outcome_range *ranges;
	struct reader r = *outer;
	char where[160];
	size_t n = 0;

	if (!reader_object(outer, node, field->name))
		return;
	snprintf(where, sizeof where, "%s: outcomes", outer->where ? outer->where : "");
	r.where = where;
	if (node->count > OUTCOMES_MAX) {
		reader_report(&r, node->at.line, "limit", "it has %zu entries; at most %d", node->count, OUTCOMES_MAX);
		return;
	}
	ranges = arena_alloc(r.arena, node->count * sizeof *ranges);
	if (!ranges)
		return;
	json_node_for_each(member, node) read_one(&r, member, ranges, &n);
	*outcomes = (struct outcomes){n, ranges};
}
