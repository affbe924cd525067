/*
 * A definition of any kind, and what must hold between several. Its text is read by the parser of the kind that it
 * says it has; one that says none, or one that is not known, is told so by the parser of entities.
 *
 *   kind `entity`   model/workflow.h
 *   kind `run`      model/run_definition.h
 *   kind `batch`    model/batch_definition.h
 *   kind `function` model/function_definition.c
 */
#pragma once

#include "model/batch_definition.h"
#include "model/config.h"
#include "model/run_definition.h"

/* What all kinds have, and the one that it is: of the last four, one is not NULL. Immutable. */
struct definition {
	const char *kind; /* "entity", "run", "batch" or "function" */
	const char *name;
	const char *module;
	const char *file;
	struct slice text; /* as written */
	size_t steps_n;    /* 0: a batch has none, nor has a function */
	size_t actions_n;
	const struct action *actions;
	struct user_rules rules;         /* of the user's own, about this workflow */
	const struct trial_world *world; /* that it is explored in; NULL: none is said */
	const struct workflow *entity;
	const struct run_definition *run;
	const struct batch_definition *batch;
	const struct run_definition *function;
};

/*
 * Parses one definition. All findings are added, not the first alone; *ret is NULL when there is an error among
 * them. The definition lives in *arena.
 */
void definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		      const struct definition **ret);
/* A finding about it, without its text yet. Line 0: of none of its lines. */
struct finding definition_finding(const struct definition *definition, enum finding_severity severity, size_t line,
				  const char *rule);
/*
 * Rules over several definitions: names are unique over all kinds, and workflows_check(). With a configuration also
 * coverage_check(); NULL: that is not asked.
 */
void definition_set_check(const struct definition *const *definitions, size_t n, const struct config *config,
			  struct findings *findings);
