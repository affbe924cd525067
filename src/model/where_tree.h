/* What where.c makes and where_holds.c walks. Chains are lists and not nests, so WHERE_DEPTH_MAX bounds the recursion. */
#pragma once

#include "model/where.h"

enum where_node_op { WHERE_TEST, WHERE_NOT, WHERE_AND, WHERE_OR };

struct where_node {
	enum where_node_op op;
	const struct where_test *test;
	struct where_node *first; /* what is joined, or turned round */
	struct where_node *next;  /* of the same parent */
};
