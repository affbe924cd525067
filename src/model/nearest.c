/*
 * See nearest.h. The distance is Damerau's in its restricted form: one for a character put in, left out, replaced
 * or swapped with its neighbour. Capitals count half as different as other letters would, so that "claimState" and
 * "Lease" find their snake. Only the first NAME_BYTES of a name are looked at: the work per known name is bounded.
 */
#include "model/nearest.h"

#include <stdint.h>

#define NAME_BYTES 64
#define WHOLE 2 /* the cost of one edit; a half is 1 */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static unsigned replace_cost(char a, char b)
{
	return a == b ? 0 : lower(a) == lower(b) ? WHOLE / 2 : WHOLE;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* UINT32_MAX when it is certain to be no less than `enough`. */
static unsigned distance(struct slice a, struct slice b, unsigned enough)
{
	unsigned rows[3][NAME_BYTES + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t j = 0; j <= b.n; j++)
		last[j] = (unsigned)j * WHOLE;
	for (size_t i = 1; i <= a.n; i++) {
		unsigned *free_row = before;
		unsigned smallest = (unsigned)i * WHOLE;

		row[0] = smallest;
		for (size_t j = 1; j <= b.n; j++) {
			row[j] = least(last[j], row[j - 1]) + WHOLE;
			row[j] = least(row[j], last[j - 1] + replace_cost(a.p[i - 1], b.p[j - 1]));
			if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
				row[j] = least(row[j], before[j - 2] + WHOLE);
			smallest = least(smallest, row[j]);
		}
		/* A swap may still come from the row before this one, at the price of one edit. */
		if (smallest > WHOLE && smallest - WHOLE >= enough)
			return UINT32_MAX;
		before = last;
		last = row;
		row = free_row;
	}
	return last[b.n];
}

static struct slice beginning(struct slice name)
{
	return slice_of(name.p, name.n < NAME_BYTES ? name.n : NAME_BYTES);
}

const char *nearest_name(struct slice name, const char *const *known)
{
	const char *nearest = NULL;
	unsigned best = UINT32_MAX;

	for (; *known; known++) {
		unsigned d = distance(beginning(name), beginning(slice_str(*known)), best);

		if (d < best) {
			best = d;
			nearest = *known;
		}
	}
	return nearest;
}
