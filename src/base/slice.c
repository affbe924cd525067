/* What of slice.h is not inline. */
#include "base/slice.h"

struct slice slice_cut(struct slice *rest, char at)
{
	const char *found = rest->n ? memchr(rest->p, at, rest->n) : NULL;
	struct slice front = slice_of(rest->p, found ? (size_t)(found - rest->p) : rest->n);

	*rest = found ? slice_from(*rest, front.n + 1) : slice_of(NULL, 0);
	return front;
}

bool slice_in(struct slice s, const char *const list[])
{
	for (; *list; list++)
		if (slice_is(s, *list))
			return true;
	return false;
}

bool slice_eq_nocase(struct slice a, struct slice b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (char_lower(a.p[i]) != char_lower(b.p[i]))
			return false;
	return true;
}

bool slice_in_nocase(struct slice s, const char *const list[])
{
	for (; *list; list++)
		if (slice_is_nocase(s, *list))
			return true;
	return false;
}

bool slice_list_next(struct slice *rest, struct slice *ret_item)
{
	while (rest->n > 0) {
		*ret_item = slice_trim(slice_cut(rest, ','));
		if (ret_item->n > 0)
			return true;
	}
	return false;
}
