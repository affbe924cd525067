/*
 * See nearest.h. The distance is Damerau's in its restricted form: one for a character put in, left out, replaced
 * or swapped with its neighbour. Capitals count half as different as other letters would, so that "claimState" and
 * "Lease" find their snake. Only the first NAME_BYTES of a name are looked at: the work per known name is bounded.
 */
#include "model/nearest.h"

#include <stdint.h>
#include <stdio.h>

#include "base/excerpt.h"

#define NAME_BYTES 64
#define LISTED_MAX 10
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

/* Two edits, or half of the longer name (a whole name in capitals is that); and something of it has to stay. */
static bool is_near(unsigned d, size_t longer)
{
	return d < longer * WHOLE && d <= (longer > 3 ? longer + 1 : 2 * WHOLE);
}

const char *nearest_name(struct slice name, const char *const *known)
{
	struct slice wanted = beginning(name);
	const char *nearest = NULL;
	unsigned best = UINT32_MAX;

	for (; *known; known++) {
		struct slice other = beginning(slice_str(*known));
		unsigned d = distance(wanted, other, best);

		if (d < best && is_near(d, wanted.n > other.n ? wanted.n : other.n)) {
			best = d;
			nearest = *known;
		}
	}
	return nearest;
}

/* All of them, or nothing: a list that is cut off would say that there are no others. */
static void list_known(const char *const *known, const char *before, const char *after, struct suggestion *ret)
{
	const char *between = known[0] && known[1] ? "; there are " : "; there is ";
	size_t used = 0;

	for (size_t i = 0; known[i]; i++, between = ", ") {
		int n = snprintf(ret->text + used, sizeof ret->text - used, "%s%s%s%s", between, before,
				 excerpt_of(slice_str(known[i])).text, after);

		used += (size_t)n;
		if (i == LISTED_MAX || used >= sizeof ret->text) {
			ret->text[0] = '\0';
			return;
		}
	}
}

struct suggestion nearest_words(struct slice name, const char *const *known, const char *before, const char *after)
{
	const char *nearest = nearest_name(name, known);
	struct suggestion suggestion = {""};

	if (nearest)
		snprintf(suggestion.text, sizeof suggestion.text, "; did you mean %s%s%s?", before,
			 excerpt_of(slice_str(nearest)).text, after);
	else
		list_known(known, before, after, &suggestion);
	return suggestion;
}
