/*
 * A bottom-up merge sort: bin[i] holds a sorted run of 2^i links or nothing, and adding a link is like adding 1
 * to a binary number. Earlier links stand in higher bins, so merging "higher bin first" keeps the sort stable.
 */
#include "base/name_list.h"

#define BINS 64 /* more links than 2^64 do not fit into memory */

/* Both sorted; of equal names those of a come first. */
static struct name_link *merge(struct name_link *a, struct name_link *b)
{
	struct name_link *head = NULL;
	struct name_link **tail = &head;

	while (a && b) {
		struct name_link **from = slice_compare(b->name, a->name) < 0 ? &b : &a;

		*tail = *from;
		tail = &(*from)->next;
		*from = *tail;
	}
	*tail = a ? a : b;
	return head;
}

static bool is_sorted(const struct name_link *list)
{
	for (; list && list->next; list = list->next)
		if (slice_compare(list->next->name, list->name) < 0)
			return false;
	return true;
}

struct name_link *name_list_sort(struct name_link *list)
{
	struct name_link *bin[BINS] = {0};
	struct name_link *sorted = NULL;

	if (is_sorted(list))
		return list;
	while (list) {
		struct name_link *run = list;
		unsigned i = 0;

		list = list->next;
		run->next = NULL;
		for (; bin[i]; i++) {
			run = merge(bin[i], run);
			bin[i] = NULL;
		}
		bin[i] = run;
	}
	for (unsigned i = 0; i < BINS; i++)
		if (bin[i])
			sorted = merge(bin[i], sorted);
	return sorted;
}

struct name_link *name_list_duplicate(struct name_link *sorted)
{
	for (; sorted && sorted->next; sorted = sorted->next)
		if (slice_eq(sorted->name, sorted->next->name))
			return sorted;
	return NULL;
}
