/*
 * An index of all members of a checked document, on every level, built in one pass and lying on an arena.
 *
 * It is what the scanner leaves out because it takes memory: 48 bytes per member, and the names that have
 * escapes once more, decoded. With it, "does any object have a name twice" and "all objects in sorted order" are
 * linear in the text plus n log n in the names, on any input: 100,000 members in one object, 64 nested ones, or
 * names that share long beginnings. There is no hash to attack and no level is read twice.
 *
 * The records stand in the order of the text, so what is inside of a member's value comes right after it:
 *
 *   {"a": {"x": 1, "y": 2}, "b": [{"z": 3}]}       a  x  y  b  z
 *                                                  ^  ^     next of a is b, next of x is y;
 *                                                  |  first of its object: after it (object_after) comes b
 *                                                  first of its object: after it comes the end
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/name_list.h"

struct json_member {
	struct name_link link; /* the decoded name; next is the next member of the same object */
	const char *at;        /* the quote of its name in the text */
	/* Only in the first member of an object (in the order of the text), else NULL: */
	const char *object_end;           /* the place after the object's } */
	struct json_member *object_after; /* the record after the last one that is inside of the object */
};

struct json_members {
	struct json_member *all;
	size_t count;
};

/* HX_TOO_LARGE or HX_NO_MEMORY when the arena is at its end. The records borrow the document. */
enum hx_code json_members_index(struct json document, struct arena *a, struct hx_error *err,
				struct json_members *ret_members) HX_MUST_CHECK;
/* The members of the object whose first one this is, from now on linked in the order of their names (stable). */
struct json_member *json_members_sort(struct json_member *first);
/* Where the value of a member begins. end is the end of the document. */
const char *json_member_value(const struct json_member *member, const char *end);
static inline struct json_member *json_member_next(const struct json_member *member)
{
	return (struct json_member *)member->link.next;
}

/*
 * Refuses a document in which an object has the same name twice, also in two spellings ("a" and "\u0061"):
 * HX_VALIDATION_ERROR, the detail giving the name and the line and column of both. If several names are double,
 * it names one of them. The arena is only used as scratch, bounded by about 50 bytes per member and the names.
 */
enum hx_code json_check_unique(struct json document, struct arena *scratch, struct hx_error *err) HX_MUST_CHECK;
