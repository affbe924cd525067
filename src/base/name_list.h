/*
 * A list of names that can be sorted where it lies: the link is embedded in whatever has the name, so sorting
 * needs no memory, and merging keeps it at n log n comparisons whatever an attacker sends (a hash table would
 * have to trust its hash, qsort() its pivot).
 */
#pragma once

#include "base/slice.h"

struct name_link {
	struct slice name;
	struct name_link *next;
};

/* Sorts by slice_compare(); equal names keep their order. Returns the new head. NULL is the empty list. */
struct name_link *name_list_sort(struct name_link *list);
/* In a sorted list: the first link that has the same name as the one after it, or NULL. */
struct name_link *name_list_duplicate(struct name_link *sorted);
