/* See definition.h. */
#include "model/definition.h"

#include <stdlib.h>

#include "base/json_string.h"
#include "base/json_walk.h"

/* Only looks: whatever is wrong with the text is said by the parser that is chosen. */
static bool says_run(struct slice text)
{
	struct json document, kind;

	return text.n <= WORKFLOW_TEXT_BYTES_MAX && json_check(text, /* err= */ NULL, &document) == HX_OK &&
	       json_type(document) == JSON_OBJECT && json_find(document, slice_str("kind"), &kind) &&
	       json_type(kind) == JSON_STRING && json_string_is(kind, slice_str("run"));
}

static const struct definition *of_run(const struct run_definition *run, struct arena *arena)
{
	struct definition *definition = run ? arena_alloc(arena, sizeof *definition) : NULL;

	if (definition)
		*definition = (struct definition){
			.kind = "run",
			.name = run->name,
			.module = run->module,
			.file = run->file,
			.text = run->text,
			.steps_n = run->steps_n,
			.actions_n = run->actions_n,
			.actions = run->actions,
			.run = run,
		};
	return definition;
}

static const struct definition *of_entity(const struct workflow *entity, struct arena *arena)
{
	struct definition *definition = entity ? arena_alloc(arena, sizeof *definition) : NULL;

	if (definition)
		*definition = (struct definition){
			.kind = "entity",
			.name = entity->name,
			.module = entity->module,
			.file = entity->file,
			.text = entity->text,
			.steps_n = entity->steps_n,
			.actions_n = entity->actions_n,
			.actions = entity->actions,
			.entity = entity,
		};
	return definition;
}

void definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		      const struct definition **ret)
{
	const struct run_definition *run = NULL;
	const struct workflow *entity = NULL;
	size_t errors = findings->errors;

	if (says_run(text)) {
		run_definition_parse(file, text, arena, findings, &run);
		*ret = of_run(run, arena);
	} else {
		workflow_parse(file, text, arena, findings, &entity);
		*ret = of_entity(entity, arena);
	}
	if (!*ret && findings->errors == errors)
		findings_add(findings, (struct finding){.severity = FINDING_ERROR, .file = file, .rule = "limit"},
			     "no memory for this definition");
}

/* ---- several ---- */

struct numbered {
	const struct definition *definition;
	size_t i; /* its place in the list that was given */
};

static int by_name(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	int order = strcmp(x->definition->name, y->definition->name);

	return order ? order : (x->i > y->i) - (x->i < y->i);
}

static void check_names(struct numbered *list, size_t n, struct findings *findings)
{
	if (n)
		qsort(list, n, sizeof *list, by_name);
	for (size_t i = 1; i < n; i++) {
		const struct definition *d = list[i].definition, *before = list[i - 1].definition;
		struct finding finding = {.severity = FINDING_ERROR,
					  .file = d->file,
					  .line = 1,
					  .workflow = d->name,
					  .rule = "duplicate"};

		if (strcmp(d->name, before->name) == 0)
			findings_add(findings, finding, "workflow %s is also defined in %s", d->name, before->file);
	}
}

void definition_set_check(const struct definition *const *definitions, size_t n, const struct config *config,
			  struct findings *findings)
{
	struct numbered *list = arena_alloc(findings->arena, n * sizeof *list);
	const struct workflow **entities = arena_alloc(findings->arena, n * sizeof *entities);
	size_t entities_n = 0;

	if (!list || !entities) {
		findings_add(findings, (struct finding){.severity = FINDING_ERROR, .rule = "limit"},
			     "no memory to check %zu definitions", n);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		list[i] = (struct numbered){definitions[i], i};
		if (definitions[i]->entity)
			entities[entities_n++] = definitions[i]->entity;
	}
	check_names(list, n, findings);
	workflows_check(entities, entities_n, findings);
	if (config)
		coverage_check(entities, entities_n, config, findings);
}
