/*
 * A definition of either kind, and what must hold between several. Its text is read by the parser of the kind that it
 * says it has; one that says none, or one that is not known, is told so by the parser of entities.
 *
 *   kind `entity`   model/workflow.h
 *   kind `run`      model/run_definition.h
 */
#ifndef HX_MODEL_DEFINITION_H
#define HX_MODEL_DEFINITION_H

#include "model/config.h"
#include "model/run_definition.h"

/* What both kinds have, and the one that it is. Immutable. */
struct definition {
	const char *kind; /* "entity" or "run" */
	const char *name;
	const char *module;
	const char *file;
	struct slice text; /* as written */
	size_t steps_n;
	size_t actions_n;
	const struct action *actions;
	const struct workflow *entity;    /* NULL: it is a run */
	const struct run_definition *run; /* NULL: it is an entity */
};

/*
 * Parses one definition. All findings are added, not the first alone; *ret is NULL when there is an error among
 * them. The definition lives in *arena.
 */
void definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		      const struct definition **ret);
/*
 * Rules over several definitions: names are unique over all kinds, and workflows_check(). With a configuration also
 * coverage_check(); NULL: that is not asked.
 */
void definition_set_check(const struct definition *const *definitions, size_t n, const struct config *config,
			  struct findings *findings);

#endif
