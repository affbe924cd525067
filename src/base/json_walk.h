/*
 * Reading checked JSON in place: the elements of an array, the members of an object, one member by its name.
 *
 *	struct json_iter it = json_iter_of(value);
 *	struct json name, member;
 *
 *	while (json_iter_member(&it, &name, &member))
 *		...
 *
 * Nothing is allocated and nothing is remembered: json_find() reads the object from its start each time, and a
 * walk over all levels reads each byte once per level it lies in. For a few members of a request that is the
 * fastest way; to visit everything in a large document use json_members.h or json_tree.h.
 *
 * The values must come from json_check(). On other text the answers mean nothing, but no byte outside of it is
 * read and every loop ends.
 */
#pragma once

#include <stdint.h>

#include "base/json.h"

struct json_iter {
	const char *p; /* before the next element or member */
	const char *end;
};

/* A value that is neither array nor object iterates like an empty one. */
struct json_iter json_iter_of(struct json container);
/* False at the end; *ret_value is then untouched. Only for arrays. */
bool json_iter_element(struct json_iter *it, struct json *ret_value);
/* The same for objects. The name is a JSON string, in its quotes. */
bool json_iter_member(struct json_iter *it, struct json *ret_name, struct json *ret_value);

/* How many elements an array or members an object has; of anything else 0. */
size_t json_count(struct json container);

/*
 * The member whose decoded name this is, the first if there are several. False if there is none or the value is
 * not an object; *ret_value is then untouched.
 */
bool json_find(struct json object, struct slice name, struct json *ret_value);

/* Needs a boolean. */
bool json_bool(struct json value);

/*
 * Steps over well-formed text, for the walkers of this folder. Each takes a place and the end, p <= end, and
 * returns a place after it, at most the end.
 */

static inline const char *json_space_end(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	return p;
}

/*
 * Most of a document is the inside of strings, which is looked through in words of eight. The first byte that `marks` marks, or
 * where the last whole word ends; it has to mark the lowest of those that are looked for, and which others means nothing. Where
 * the lowest byte of a word is not its first in memory, it is the beginning of that word.
 */
static inline __attribute__((always_inline)) const char *json_until(const char *p, const char *end,
								    uint64_t (*marks)(uint64_t word))
{
	for (uint64_t word, hit; end - p >= 8; p += 8) {
		memcpy(&word, p, 8);
		hit = marks(word);
		if (hit)
			return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? p + (__builtin_ctzll(hit) >> 3) : p;
	}
	return p;
}

/* p is at the opening quote; the result is after the closing one. */
const char *json_string_end(const char *p, const char *end);
/* p is at the first byte of any value. */
const char *json_value_end(const char *p, const char *end);
