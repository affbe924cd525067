/* See lookup.h and workflow.h. Everything is a binary search over what was sorted once. */
#include "model/lookup.h"

#include <stdlib.h>

void *lookup(const void *key, const void *sorted, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	return n ? bsearch(key, sorted, n, size, compare) : NULL;
}

static int compare_statuses(const void *a, const void *b)
{
	return slice_compare(((const struct status_entry *)a)->name, ((const struct status_entry *)b)->name);
}

struct workflow_index *index_new(struct arena *a, const struct slice *statuses, size_t n)
{
	struct workflow_index *index = arena_zalloc(a, sizeof *index);
	struct status_entry *entries = arena_zalloc(a, n * sizeof *entries);

	if (!index || !entries)
		return NULL;
	for (size_t i = 0; i < n; i++)
		entries[i] = (struct status_entry){.name = statuses[i], .text = statuses[i].p};
	if (n)
		qsort(entries, n, sizeof *entries, compare_statuses);
	index->statuses_n = n;
	index->statuses = entries;
	return index;
}

struct status_entry *index_status(const struct workflow_index *index, struct slice name)
{
	const struct status_entry wanted = {.name = name};

	return lookup(&wanted, index->statuses, index->statuses_n, sizeof wanted, compare_statuses);
}

int step_compare(const struct step *a, const struct step *b)
{
	int order = strcmp(a->step_key, b->step_key);

	return order ? order : strcmp(a->status, b->status);
}

static int compare_steps(const void *a, const void *b)
{
	const struct step *x = *(const struct step *const *)a, *y = *(const struct step *const *)b;
	int order = step_compare(x, y);

	return order ? order : (x > y) - (x < y); /* one array: the order of the text */
}

bool index_steps(struct workflow_index *index, struct arena *a, const struct step *steps, size_t n)
{
	index->steps = arena_alloc(a, n * sizeof(struct step *));
	if (!index->steps)
		return false;
	for (size_t i = 0; i < n; i++)
		if (steps[i].step_key && steps[i].status)
			index->steps[index->steps_n++] = &steps[i];
	if (index->steps_n)
		qsort(index->steps, index->steps_n, sizeof(struct step *), compare_steps);
	return true;
}

/* The first step that is not before (key, status). */
static size_t lower_bound(const struct workflow_index *index, struct slice key, struct slice status)
{
	size_t low = 0, high = index->steps_n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct step *step = index->steps[middle];
		int order = slice_compare(slice_str(step->step_key), key);

		if (order == 0)
			order = slice_compare(slice_str(step->status), status);
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct step *workflow_step(const struct workflow *w, struct slice step_key, struct slice status,
				 struct slice requester)
{
	const struct step *of_others = NULL;

	for (size_t at = lower_bound(w->index, step_key, status); at < w->index->steps_n; at++) {
		const struct step *step = w->index->steps[at];
		enum view_start start = workflow_view(w, step, requester)->start;

		if (!slice_is(step_key, step->step_key) || !slice_is(status, step->status))
			break;
		if (start == STARTS_HERE)
			return step;
		if (start == STARTS_NOWHERE)
			of_others = step;
	}
	return of_others;
}

bool workflow_has_step(const struct workflow *w, struct slice step_key)
{
	size_t at = lower_bound(w->index, step_key, slice_of("", 0));

	return at < w->index->steps_n && slice_is(step_key, w->index->steps[at]->step_key);
}

static int compare_name(const void *name, const void *requester)
{
	return slice_compare(*(const struct slice *)name, slice_str(*(const char *const *)requester));
}

const struct step_view *workflow_view(const struct workflow *w, const struct step *step, struct slice requester)
{
	const char *const *found = lookup(&requester, w->requesters, w->requesters_n, sizeof *found, compare_name);

	return &step->views[found ? (size_t)(found - w->requesters) : w->requesters_n];
}

const char *workflow_view_name(const struct workflow *w, size_t view)
{
	return view < w->requesters_n ? w->requesters[view] : "anyone else";
}

bool workflow_has_status(const struct workflow *w, struct slice status)
{
	return index_status(w->index, status);
}

bool workflow_is_claim_status(const struct workflow *w, struct slice status)
{
	return workflow_revert_of(w, status);
}

const char *workflow_revert_of(const struct workflow *w, struct slice claim_into)
{
	const struct status_entry *entry = index_status(w->index, claim_into);

	return entry ? entry->revert_to : NULL;
}
