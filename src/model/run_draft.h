/*
 * A definition of kind run while it is being read. Lives for one run_definition_parse().
 *
 *   run_definition.c   top level
 *   run_step.c         the fields of each step, and what must hold between those of one step
 *   run_nested.c       lists of steps inside a step, each a draft of its own inside the one around it
 *   run_path.c         the steps among each other: names, jumps, what is reached, what an expression can see
 */
#pragma once

#include "model/action_parse.h"
#include "model/run_definition.h"

struct run_source {
	const struct json_node *node;
	const char *label;  /* the name, or "#3" where that is not usable */
	bool may_jump_away; /* where it goes to could not be read; that is reported */
	size_t parts_n;     /* that could be read */
	struct run_draft *parts;
};

struct run_draft {
	struct reader r; /* its arena is the definition's */
	struct arena *scratch;
	struct run_definition *definition;
	struct run_step *steps;       /* those of the definition */
	struct run_source *sources;   /* one per step */
	const struct json_node *root; /* an object */
	size_t *all_n;                /* steps, in all parts of the definition */
	/* of a part: */
	const struct run_draft *outer; /* NULL: it is the whole */
	size_t outer_position;         /* of the step that it stands in */
};

/* The reader whose findings name step i. */
struct reader run_draft_reader(const struct run_draft *d, size_t i);
field_read_fn run_draft_expression;
field_read_fn run_draft_item_expression; /* it may look at .item and .index, too */
#define FIELD_EXPRESSION(S, member) FIELD_OWN_AT(S, member, const struct expression *, run_draft_expression)

/* run_definition.c: the list of steps. False: an arena has failed. */
bool run_draft_steps(struct run_draft *d, const struct json_node *node);
/* run_step.c: reads step i from the node; reports all but what is between steps. */
void run_draft_step(struct run_draft *d, size_t i, const struct json_node *node);
/* run_nested.c: the parts of step i, whose own fields are read. */
void run_draft_parts(struct run_draft *d, size_t i, const struct json_node *node);
/* run_path.c: once all steps are read. False: an arena has failed. */
bool run_draft_paths(struct run_draft *d);
