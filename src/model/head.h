/*
 * What definitions of all kinds have: the way from text to object, the name, kind, module and actions; and the refusal of
 * fields that belong to another kind. Whoever wrote such a field believed in something that does not happen.
 */
#pragma once

#include "model/action_parse.h"
#include "model/workflow.h"

struct head {
	const char *name;
	const char *module; /* meta.module, default: the name */
	const char *file;
	struct slice text;       /* the definition as written */
	struct user_table table; /* of an entity: meta.table */
	struct action_list actions;
	struct user_rules rules;
	const struct trial_world *world; /* NULL: none */
};

/* The same members of a definition of any kind. */
#define HEAD_OF(head)                                                                                                  \
	.name = (head)->name, .module = (head)->module, .file = (head)->file, .text = (head)->text,                    \
	.actions_n = (head)->actions.n, .actions = (head)->actions.items, .rules = (head)->rules,                      \
	.world = (head)->world

/*
 * The rest of a definition, from its root, an object. The reader has the actions, its arena is the definition's, and `scratch` is
 * gone afterwards. *ret stays NULL where the arena has failed.
 */
typedef void head_read_fn(const struct reader *r, const struct json_node *root, const struct head *head,
			  struct arena *scratch, const void **ret_definition);
/*
 * Reads one definition of that kind, whose fields on top level these are. One that says no kind is taken for one of it, so that
 * all its faults are seen. All findings are added, in the order of their lines; NULL: there is an error among them.
 */
const void *head_read(const char *kind, const struct field *fields, const char *file, struct slice text,
		      struct arena *arena, struct findings *findings, head_read_fn *read);

/* Refuses a member that has no field here, naming the kinds of definition that have it, or the nearest of those that are. */
field_refuse_fn head_refuse;

/* All fields that definitions of a kind have, but those of their actions. */
extern const struct field entity_fields[], step_fields[];  /* workflow.c, step.c */
extern const struct field run_fields[], run_step_fields[]; /* run_definition.c, run_step.c */
extern const struct field batch_fields[];                  /* batch_definition.c */
extern const struct field function_fields[];               /* function_definition.c */
