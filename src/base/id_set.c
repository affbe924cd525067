/* Open addressing with linear probing; a removal closes its gap, so that there are no tombstones to search through. */
#include "base/id_set.h"

#include <stdlib.h>
#include <string.h>

enum hx_code id_set_init(struct id_set *set, size_t max)
{
	size_t slots = 2;

	ASSERT(max > 0);
	while (slots < 2 * max)
		slots *= 2;
	*set = (struct id_set){.max = max, .mask = slots - 1, .slots = calloc(slots, sizeof *set->slots)};
	return set->slots ? HX_OK : HX_NO_MEMORY;
}

void id_set_release(struct id_set *set)
{
	free(set->slots);
	*set = (struct id_set){0};
}

static size_t home(const struct id_set *set, int64_t id)
{
	return (size_t)(((uint64_t)id * 0x9e3779b97f4a7c15u) >> 32) & set->mask;
}

/* Where it is, or the empty slot where it would go. */
static size_t id_set_find(const struct id_set *set, int64_t id)
{
	size_t i = home(set, id);

	ASSERT(id != 0);
	while (set->slots[i].id && set->slots[i].id != id)
		i = (i + 1) & set->mask;
	return i;
}

bool id_set_has(const struct id_set *set, int64_t id)
{
	return set->slots[id_set_find(set, id)].id == id;
}

bool id_set_add(struct id_set *set, int64_t id)
{
	size_t i = id_set_find(set, id);

	if (set->slots[i].id || set->n == set->max)
		return false;
	set->slots[i] = (struct id_slot){.id = id};
	set->n++;
	return true;
}

uint64_t *id_set_along(const struct id_set *set, int64_t id)
{
	struct id_slot *slot = &set->slots[id_set_find(set, id)];

	return slot->id ? &slot->along : NULL;
}

bool id_set_remove(struct id_set *set, int64_t id)
{
	size_t gap = id_set_find(set, id);

	if (!set->slots[gap].id)
		return false;
	/* Whoever probed past the gap on the way to its slot moves into it. */
	for (size_t i = (gap + 1) & set->mask; set->slots[i].id; i = (i + 1) & set->mask)
		if (((i - home(set, set->slots[i].id)) & set->mask) >= ((i - gap) & set->mask)) {
			set->slots[gap] = set->slots[i];
			gap = i;
		}
	set->slots[gap] = (struct id_slot){0};
	set->n--;
	return true;
}

size_t id_set_take(struct id_set *set, int64_t ids[])
{
	size_t n = 0;

	for (size_t i = 0; i <= set->mask; i++)
		if (set->slots[i].id)
			ids[n++] = set->slots[i].id;
	memset(set->slots, 0, (set->mask + 1) * sizeof *set->slots);
	set->n = 0;
	return n;
}
