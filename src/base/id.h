/*
 * Ids: 63 bits, ordered by time, made without asking anybody, so that they serve as INTEGER PRIMARY KEY.
 *
 *   62                          22 21       12 11         0
 *   | milliseconds since 2024-01 | node number | counter    |
 *        41 bits, until 2093        10 bits       12 bits
 *
 * Outside they are text: a readable prefix and 13 characters of Crockford base 32, `run_01h9…`, which sort as
 * the numbers do. An id is a name, not a secret.
 *
 * One source never gives the same id twice, also when the clock stands still or jumps back: it then runs
 * ahead of the clock. Two sources with the same node number can collide (nodes lease theirs, flow/node_lease.h; a gate draws
 * its own at random), so an insert still has to look at its row count.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/slice.h"

#define ID_NODE_MAX 1023u
#define ID_PREFIX_MAX 8
/* After an id its source gives the next number, unless the counter is full: then it goes on in the next millisecond. The sum
 * alone would be an id of the next node's. */
#define ID_COUNTER_N 4096
#define ID_CARRY ((1 << 22) - ID_COUNTER_N)
#define ID_TEXT_BYTES (ID_PREFIX_MAX + 1 + 13 + 1)

struct id_source {
	int64_t last; /* milliseconds and counter of the last id, node bits zero */
	uint32_t node;
};

/* Not thread-safe: one source per lane. */
void id_source_init(struct id_source *source, uint32_t node);
/* A random node number, from the system's entropy. */
uint32_t id_random_node(void);
int64_t id_next(struct id_source *source, struct wall_time now);

/* "run" and 5 give "run_0000000000005". The prefix is at most ID_PREFIX_MAX characters. */
void id_format(const char *prefix, int64_t id, char text[ID_TEXT_BYTES]);
/* The same where it is said: id_text("run", 5).text lives as long as the expression that it stands in. */
struct id_text {
	char text[ID_TEXT_BYTES];
};
static inline struct id_text id_text(const char *prefix, int64_t id)
{
	struct id_text t = {0};

	id_format(prefix, id, t.text);
	return t;
}
/* False if the prefix is another, or the rest is not exactly 13 characters of a 63-bit number. */
bool id_parse(const char *prefix, struct slice text, int64_t *ret_id);
