/*
 * One evaluation under way, for expression_eval.c, which walks over the expression, and expression_order.c, which compares
 * values. All functions return false, or NULL, after they have set `code`, and then nobody goes on.
 */
#pragma once

#include "model/expression_tree.h"

#define EVALUATION_NODE_WORK 16 /* of a node by itself */

struct evaluation {
	const struct expression *expression;
	const struct expression_env *env;
	struct json env_text; /* once it was needed */
	size_t work;
	struct arena *scratch;
	struct hx_error *err;
	enum hx_code code;
};

/* Takes so many bytes of reading or writing off what is left of EXPRESSION_WORK_MAX. */
bool evaluation_spend(struct evaluation *e, size_t work);
/* In the scratch arena. */
void *evaluation_alloc(struct evaluation *e, size_t size);
/* What a string of JSON says. */
bool evaluation_string(struct evaluation *e, struct json string, struct slice *ret);

/* expression_order.c: below zero, zero or above it, by the order of expression.h. It leaves scratch behind. */
bool evaluation_compare(struct evaluation *e, struct json a, struct json b, int *ret_order);
