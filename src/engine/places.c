/* See places.h. */
#include "engine/places.h"

enum hx_code places_init(struct places *places, size_t max)
{
	*places = (struct places){.max = max};
	return id_set_init(&places->held, max);
}

void places_release(struct places *places)
{
	id_set_release(&places->held);
}

static bool has_too_many(const struct places *places, uint64_t held)
{
	size_t is_free = places->max - places->taken;

	return held >= is_free; /* mutant: a-workspace-alone -> return is_free == 0; */
}

bool places_may_take(const struct places *places, uint64_t tenant)
{
	const uint64_t *held = id_set_along(&places->held, (int64_t)tenant);

	return !has_too_many(places, held ? *held : 0);
}

bool places_take(struct places *places, uint64_t tenant)
{
	if (!places_may_take(places, tenant))
		return false;
	(void)id_set_add(&places->held, (int64_t)tenant); /* it may have some */
	++*id_set_along(&places->held, (int64_t)tenant);
	places->taken++;
	return true;
}

void places_give_back(struct places *places, uint64_t tenant)
{
	uint64_t *held = id_set_along(&places->held, (int64_t)tenant);

	ASSERT(held && *held && places->taken);
	places->taken--;
	if (--*held == 0)
		(void)id_set_remove(&places->held, (int64_t)tenant); /* it is there */
}

size_t places_full(const struct places *places, uint64_t full[], size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i <= places->held.mask && n < max; i++) {
		const struct id_slot *slot = &places->held.slots[i];

		if (slot->id && has_too_many(places, slot->along))
			full[n++] = (uint64_t)slot->id;
	}
	return n;
}
