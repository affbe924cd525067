/*
 * A set of ids (any numbers but 0) with a ceiling, each with a number along: what is under way and whose it is, what is to be told.
 * Adding, finding and removing take the same short time however many there are. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct id_slot {
	int64_t id; /* 0: empty */
	uint64_t along;
};

struct id_set {
	size_t n;
	size_t max;
	size_t mask; /* slots − 1; at least half of the slots are empty */
	struct id_slot *slots;
};

/* At most `max` ids. HX_NO_MEMORY. */
enum hx_code id_set_init(struct id_set *set, size_t max) HX_MUST_CHECK;
/* Safe on a zeroed struct. */
void id_set_release(struct id_set *set);
bool id_set_has(const struct id_set *set, int64_t id);
/* False: it is in the set already, or the set is full. The number along is 0. */
bool id_set_add(struct id_set *set, int64_t id);
/* The number along, until something is removed. NULL: it is not in the set. */
uint64_t *id_set_along(const struct id_set *set, int64_t id);
/* False: it is not in the set. */
bool id_set_remove(struct id_set *set, int64_t id);
/* Empties it into `ids`, which has room for `max`, in no order; returns how many there were. */
size_t id_set_take(struct id_set *set, int64_t ids[]);
