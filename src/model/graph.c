/*
 * The steps of a definition among each other: which one is there twice, and which statuses none of them reaches.
 *
 * A status is reached when it is the initial_status or when a step that somebody may fire leads to it from another
 * one: as its successful_state, as its claim or as the status that a claim reverts to. A status that nothing leaves
 * is simply terminal.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "model/draft.h"

static int compare_ids(const void *a, const void *b)
{
	const struct step *x = *(const struct step *const *)a, *y = *(const struct step *const *)b;

	if (x->step_id != y->step_id)
		return x->step_id < y->step_id ? -1 : 1;
	return (x > y) - (x < y); /* one array: the order of the text */
}

static bool has_id(const struct draft *d, size_t i)
{
	const struct json_node *id = json_node_member(d->sources[i].node, "step_id");
	int64_t value;

	return id && json_node_int64(id, NULL, &value) == HX_OK;
}

static void check_ids(const struct draft *d)
{
	const struct step **by_id = arena_alloc(d->scratch, d->w->steps_n * sizeof *by_id);
	size_t n = 0;

	if (!by_id)
		return;
	for (size_t i = 0; i < d->w->steps_n; i++)
		if (has_id(d, i))
			by_id[n++] = &d->steps[i];
	if (n)
		qsort(by_id, n, sizeof *by_id, compare_ids);
	for (size_t i = 1; i < n; i++) {
		size_t step = (size_t)(by_id[i] - d->steps), before = (size_t)(by_id[i - 1] - d->steps);
		struct reader r = draft_step_reader(d, step);

		if (by_id[i]->step_id == by_id[i - 1]->step_id && d->sources[step].node != d->sources[before].node)
			reader_report(&r, by_id[i]->line, "duplicate",
				      "step_id %" PRId64 " is also that of the step in line %zu", by_id[i]->step_id,
				      by_id[i - 1]->line);
	}
}

/* Whose step of this key and status it is, by view: for each requester there is one. */
struct owners {
	const struct step *of[WORKFLOW_REQUESTERS_MAX + 1];
};

static void own(const struct draft *d, struct owners *owners, const struct step *step)
{
	struct reader r = draft_step_reader(d, (size_t)(step - d->steps));
	const struct step *before = NULL;

	for (size_t v = 0; v <= d->requesters.n; v++) {
		if (step->views[v].start != STARTS_HERE)
			continue;
		if (owners->of[v] && !before) {
			before = owners->of[v];
			r.place.requester = v < d->requesters.n ? d->w->requesters[v] : NULL;
		}
		owners->of[v] = step;
	}
	if (before)
		reader_report(&r, step->line, "duplicate",
			      "step_key \"%s\" from status \"%s\" is also that of the step in line %zu", step->step_key,
			      step->status, before->line);
}

static void check_keys(const struct draft *d)
{
	const struct workflow_index *index = d->index;
	struct owners owners = {0};

	for (size_t i = 0; i < index->steps_n; i++) {
		if (i && step_compare(index->steps[i], index->steps[i - 1]) != 0)
			owners = (struct owners){0};
		own(d, &owners, index->steps[i]);
	}
}

void draft_check_duplicates(const struct draft *d)
{
	check_ids(d);
	check_keys(d);
}

static void mark(const struct draft *d, bool *reached, const char *status, const char *from)
{
	const struct status_entry *entry = status ? index_status(d->index, slice_str(status)) : NULL;

	if (entry && !(from && strcmp(status, from) == 0))
		reached[entry - d->index->statuses] = true;
}

static void mark_step(const struct draft *d, bool *reached, const struct step *step)
{
	for (size_t v = 0; v <= d->requesters.n; v++) {
		const struct step_view *view = &step->views[v];

		if (!view->allowed)
			continue;
		mark(d, reached, view->successful_state, step->status);
		mark(d, reached, view->claim_into, step->status);
		mark(d, reached, view->revert_to, step->status);
	}
}

void draft_check_reach(const struct draft *d)
{
	bool *reached = arena_zalloc(d->scratch, d->index->statuses_n * sizeof *reached);

	if (!reached)
		return;
	mark(d, reached, d->w->initial_status, /* from= */ NULL);
	for (size_t i = 0; i < d->w->steps_n; i++)
		mark_step(d, reached, &d->steps[i]);
	if (!d->status_types)
		return;
	json_node_for_each(node, d->status_types)
	{
		const struct status_entry *entry = node->type == JSON_STRING ? index_status(d->index, node->string)
									     : NULL;

		if (entry && !reached[entry - d->index->statuses])
			reader_warn(&d->r, node->at.line, "unreached", "nothing reaches status \"%s\"", entry->text);
	}
}
