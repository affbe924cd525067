/*
 * A read-only tree of a JSON text, every node with its line and column: for definitions and configuration, where
 * each message has to name the place. (Payloads are not parsed into trees; see json_walk.h.)
 *
 * The arena owns everything, the text included: the caller's copy may go. Nodes are never changed after
 * json_tree_parse(), so any number of threads may read them.
 */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/name_list.h"

struct json_node {
	struct name_link link; /* only for the parser; read `name` */
	enum json_type type;
	struct json value;               /* the text of the node as it was written */
	struct json_position at;         /* where that begins */
	struct slice string;             /* of a string: decoded, with a NUL after it */
	struct slice name;               /* of a member: decoded, with a NUL after it; otherwise p is NULL */
	struct json_position name_at;    /* of a member: where its name begins */
	size_t count;                    /* of an array or object: the number of children */
	const struct json_node *first;   /* of an array or object: its first child in the order of the text */
	const struct json_node *next;    /* the next child of the same parent */
	const struct json_node **sorted; /* of an object: its children by name */
};

/*
 * Checks the text and builds the tree. HX_VALIDATION_ERROR for text that json_check() refuses and for a name that
 * stands twice in one object, the detail beginning with "LINE:COLUMN: "; HX_TOO_LARGE for more than nodes_max
 * values or a full arena; HX_NO_MEMORY.
 */
enum hx_code json_tree_parse(struct slice text, size_t nodes_max, struct arena *a, struct hx_error *err,
			     const struct json_node **ret_root) HX_MUST_CHECK;

/* The member of that decoded name, by binary search. NULL if there is none, or the node is NULL or not an object. */
const struct json_node *json_node_member(const struct json_node *node, const char *name);
const struct json_node *json_node_member_slice(const struct json_node *node, struct slice name);

/* json_int64() with the position in front of the detail. */
enum hx_code json_node_int64(const struct json_node *node, struct hx_error *err, int64_t *ret_value) HX_MUST_CHECK;

/* Walks over the children of an array or object; over nothing for other nodes. */
#define json_node_for_each(child, node) for (const struct json_node *child = (node)->first; child; child = child->next)
