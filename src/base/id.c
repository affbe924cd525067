/* See id.h for the layout. */
#include "base/id.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"

#define EPOCH_MS 1704067200000LL /* 2024-01-01T00:00:00Z */
#define NODE_BITS 10
#define COUNTER_BITS 12
#define DIGITS 13
#define MS_COUNT ((int64_t)1 << 41)

_Static_assert(ID_COUNTER_N == 1 << COUNTER_BITS && ID_CARRY == (1 << (NODE_BITS + COUNTER_BITS)) - ID_COUNTER_N,
	       "a full counter, and its millisecond");

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

void id_source_init(struct id_source *source, uint32_t node)
{
	ASSERT(node <= ID_NODE_MAX);
	*source = (struct id_source){.node = node};
}

uint32_t id_random_node(void)
{
	uint16_t n = 0;

	/* 2 bytes never block once the machine has booted; a failure leaves 0, a valid number. */
	(void)!getrandom(&n, sizeof n, 0);
	return n & ID_NODE_MAX;
}

int64_t id_next(struct id_source *source, struct wall_time now)
{
	/* A clock after 2093 has no room for its milliseconds: stopping beats ids that sort backwards. */
	ASSERT(now.ms < EPOCH_MS + MS_COUNT);

	int64_t at = now.ms > EPOCH_MS ? (now.ms - EPOCH_MS) << COUNTER_BITS : 0;

	source->last = at > source->last ? at : source->last + 1;

	int64_t ms = source->last >> COUNTER_BITS;
	int64_t counter = source->last & ((1 << COUNTER_BITS) - 1);

	ASSERT(ms < MS_COUNT);
	return ms << (NODE_BITS + COUNTER_BITS) | (int64_t)source->node << COUNTER_BITS | counter;
}

void id_format(const char *prefix, int64_t id, char text[ID_TEXT_BYTES])
{
	char digits[DIGITS + 1] = {0};
	uint64_t rest = (uint64_t)id;

	ASSERT(id >= 0 && strlen(prefix) <= ID_PREFIX_MAX);
	for (int i = DIGITS - 1; i >= 0; i--, rest >>= 5)
		digits[i] = alphabet[rest & 31];
	text = stpcpy(text, prefix);
	*text++ = '_';
	memcpy(text, digits, sizeof digits);
}

bool id_parse(const char *prefix, struct slice text, int64_t *ret_id)
{
	size_t skip = strlen(prefix) + 1;
	uint64_t id = 0;

	if (text.n != skip + DIGITS || memcmp(text.p, prefix, skip - 1) != 0 || text.p[skip - 1] != '_')
		return false;
	for (size_t i = skip; i < text.n; i++) {
		const char *digit = text.p[i] ? strchr(alphabet, text.p[i]) : NULL;

		if (!digit)
			return false;
		id = id << 5 | (uint64_t)(digit - alphabet);
	}
	/* 13 digits hold 65 bits: only one spelling of each number, so the first digit must be small. */
	if (text.p[skip] > '7' || id > INT64_MAX)
		return false;
	*ret_id = (int64_t)id;
	return true;
}
