/*
 * Where the entries of a decision are found: by what they are called, by their place, and in an order. A journal has 20,000 entries and a
 * call may name as many, so whoever went through all of them for each would hold up a lane for seconds. What was read is sorted once;
 * what a call adds is at the end, a thousand at most. (No table of hashes: a worker that means harm would make them meet.)
 */
#include <stdlib.h>

#include "flow/function_parts.h"

/* Of the code's own entries one has the name and the n; of those about it, one of each kind. */
static int class_of(enum entry_kind kind)
{
	return entry_is_about(kind) ? (int)kind : -1;
}

static int compare_names(const struct function_entry *a, const struct function_entry *b)
{
	int order = (a->n > b->n) - (a->n < b->n);

	if (!order)
		order = class_of(a->kind) - class_of(b->kind);
	return order ? order : slice_compare(a->name, b->name);
}

static int by_name(const void *a, const void *b)
{
	return compare_names(*(struct function_entry *const *)a, *(struct function_entry *const *)b);
}

static int by_place(const void *a, const void *b)
{
	int64_t x = (*(struct function_entry *const *)a)->i, y = (*(struct function_entry *const *)b)->i;

	return (x > y) - (x < y);
}

static int by_seq(const void *a, const void *b)
{
	int64_t x = (*(struct function_entry *const *)a)->seq, y = (*(struct function_entry *const *)b)->seq;

	return (x > y) - (x < y);
}

static int by_time(const void *a, const void *b)
{
	int64_t x = (*(struct function_entry *const *)a)->wake_at, y = (*(struct function_entry *const *)b)->wake_at;

	return x == y ? by_place(a, b) : (x > y) - (x < y);
}

static struct function_entry **sorted(struct function_work *w, int (*order)(const void *, const void *))
{
	struct function_entry **list = arena_alloc(w->arena, (w->n + 1) * sizeof *list);

	if (!list)
		return NULL;
	memcpy(list, w->entries, w->n * sizeof *list);
	qsort(list, w->n, sizeof *list, order);
	return list;
}

void work_index(struct function_work *w)
{
	w->read_n = w->n;
	w->by_name = sorted(w, by_name);
	w->by_place = sorted(w, by_place);
}

static struct function_entry *found(const struct function_entry *wanted, struct function_entry *const *list, size_t n,
				    int (*order)(const void *, const void *))
{
	struct function_entry *const *at = list ? bsearch(&wanted, list, n, sizeof *list, order) : NULL;

	return at ? *at : NULL;
}

struct function_entry *work_find(const struct function_work *w, enum entry_kind kind, struct slice name, int64_t n)
{
	const struct function_entry wanted = {.kind = kind, .name = name, .n = n};

	for (size_t i = w->n; i-- > w->read_n;)
		if (compare_names(w->entries[i], &wanted) == 0)
			return w->entries[i];
	return found(&wanted, w->by_name, w->read_n, by_name);
}

struct function_entry *work_at(const struct function_work *w, int64_t place)
{
	int64_t added = place - w->row.entries_n;

	if (added >= 0)
		return added < (int64_t)(w->n - w->read_n) ? w->entries[w->read_n + (size_t)added] : NULL;
	return found(&(struct function_entry){.i = place}, w->by_place, w->read_n, by_place);
}

/* Those that are so, in this order. */
static struct function_entry **list_of(const struct function_work *w,
				       bool (*is)(const struct function_work *w, const struct function_entry *e),
				       int (*order)(const void *, const void *), size_t *ret_n)
{
	struct function_entry **list = arena_alloc(w->arena, (w->n + 1) * sizeof *list);

	*ret_n = 0;
	for (size_t i = 0; list && i < w->n; i++)
		if (is(w, w->entries[i]))
			list[(*ret_n)++] = w->entries[i];
	if (*ret_n)
		qsort(list, *ret_n, sizeof *list, order);
	return list;
}

static bool is_late(const struct function_work *w, const struct function_entry *e)
{
	return e->state == ENTRY_OPEN && e->wake_at && e->wake_at <= w->row.now;
}

struct function_entry **work_late(const struct function_work *w, size_t *ret_n)
{
	return list_of(w, is_late, by_time, ret_n);
}

static bool is_ended_now(const struct function_work *w UNUSED, const struct function_entry *e)
{
	return e->ends_now && e->state != ENTRY_DROPPED;
}

void work_note_ended(struct function_work *w)
{
	w->ended_now = list_of(w, is_ended_now, by_seq, &w->ended_now_n);
}
