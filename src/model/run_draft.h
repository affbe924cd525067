/*
 * A definition of kind run while it is being read. Lives for one run_definition_parse().
 *
 *   run_definition.c   top level
 *   run_step.c         the fields of each step, and what must hold between those of one step
 *   run_path.c         the steps among each other: names, jumps, what is reached, what an expression can see
 */
#pragma once

#include "model/action_parse.h"
#include "model/run_definition.h"

struct run_source {
	const struct json_node *node;
	const char *label;  /* the name, or "#3" where that is not usable */
	bool may_jump_away; /* where it goes to could not be read; that is reported */
};

struct run_draft {
	struct reader r; /* its arena is the definition's */
	struct arena *scratch;
	struct run_definition *definition;
	struct run_step *steps;       /* those of the definition */
	struct run_source *sources;   /* one per step */
	const struct json_node *root; /* an object */
};

/* The reader whose findings name step i. */
struct reader run_draft_reader(const struct run_draft *d, size_t i);
field_read_fn run_draft_expression;
#define FIELD_EXPRESSION(S, member) FIELD_OWN_AT(S, member, const struct expression *, run_draft_expression)

/* run_step.c: reads step i from the node; reports all but what is between steps. */
void run_draft_step(struct run_draft *d, size_t i, const struct json_node *node);
/* run_path.c: once all steps are read. False: an arena has failed. */
bool run_draft_paths(struct run_draft *d);
