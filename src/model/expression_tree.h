/*
 * What expression.c makes, and expression_eval.c and expression_uses.c walk.
 *
 * Chains are lists and not nests: `a or b or c` is one node with three children, `.a.b[0]` one node with three
 * steps. So only brackets make the tree deeper, at most five nodes for each, and EXPRESSION_DEPTH_MAX bounds every
 * recursion over it.
 */
#pragma once

#include <stdint.h>

#include "model/expression.h"

enum expression_op {
	OP_DOT,
	OP_LITERAL, /* literal; for a string also name */
	OP_PATH,    /* steps, from `first`, or from `.` where that is NULL */
	OP_PIPE,    /* children, two or more: */
	OP_ALTERNATIVE,
	OP_OR,
	OP_AND,
	OP_EQ, /* two children: */
	OP_NE,
	OP_LT,
	OP_LE,
	OP_GT,
	OP_GE,
	OP_NOT,
	OP_LENGTH,
	OP_HAS,    /* one child */
	OP_ARRAY,  /* children */
	OP_OBJECT, /* children, each with a key */
};

struct expression_step {
	struct slice name; /* decoded; p is NULL for an index */
	int64_t index;
	size_t start, end; /* its place in the text */
	const struct expression_step *next;
};

struct expression_node {
	enum expression_op op;
	size_t start; /* where it begins in the text */
	size_t count; /* of children */
	bool keys_computed;
	struct json literal;
	struct slice name; /* the literal string, decoded */
	const struct expression_step *steps;
	struct expression_node *first, *last; /* children */
	struct expression_node *next;         /* the next child of the same parent */
	const struct expression_node *key;    /* of a child of an object: a literal string, or computed */
};

struct expression {
	struct slice text;
	const struct expression_node *root;
};

#define EXPRESSION_ROOTS                                                                                               \
	{                                                                                                              \
		"input", "state", "steps", "item", "index", NULL                                                       \
	}

/* Which character of the text that byte begins, from 1: for messages. */
size_t expression_column(struct slice text, size_t at);
