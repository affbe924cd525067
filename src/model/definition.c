/* See definition.h. */
#include "model/definition.h"

#include <stdlib.h>

#include "base/json_string.h"
#include "base/json_walk.h"

/* What the text says its kind is; "": nothing. Only looks: what is wrong is said by the parser that is chosen. */
static struct json said_kind(struct slice text)
{
	struct json document, kind;

	if (text.n <= WORKFLOW_TEXT_BYTES_MAX && json_check(text, /* err= */ NULL, &document) == HX_OK &&
	    json_type(document) == JSON_OBJECT && json_find(document, slice_str("kind"), &kind) &&
	    json_type(kind) == JSON_STRING)
		return kind;
	return json_trust(slice_str("\"\""));
}

/* What all kinds have, under the same names. */
#define DEFINITION_OF(kind_, of)                                                                                       \
	.kind = (kind_), .name = (of)->name, .module = (of)->module, .file = (of)->file, .text = (of)->text,           \
	.actions_n = (of)->actions_n, .actions = (of)->actions, .rules = (of)->rules, .world = (of)->world

/* False: it has errors. */
static bool parse_kind(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		       struct definition *ret)
{
	struct json kind = said_kind(text);
	const struct workflow *entity = NULL;
	const struct run_definition *run = NULL;
	const struct batch_definition *batch = NULL;
	const struct run_definition *function = NULL;

	if (json_string_is(kind, slice_str("run"))) {
		run_definition_parse(file, text, arena, findings, &run);
		if (run)
			*ret = (struct definition){DEFINITION_OF("run", run), .steps_n = run->steps_n, .run = run};
	} else if (json_string_is(kind, slice_str("batch"))) {
		batch_definition_parse(file, text, arena, findings, &batch);
		if (batch)
			*ret = (struct definition){DEFINITION_OF("batch", batch), .batch = batch};
	} else if (json_string_is(kind, slice_str("function"))) {
		function_definition_parse(file, text, arena, findings, &function);
		if (function)
			*ret = (struct definition){DEFINITION_OF("function", function), .function = function};
	} else {
		workflow_parse(file, text, arena, findings, &entity);
		if (entity)
			*ret = (struct definition){DEFINITION_OF("entity", entity), .steps_n = entity->steps_n,
						   .entity = entity};
	}
	return run || batch || function || entity;
}

void definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		      const struct definition **ret)
{
	size_t errors = findings->errors;
	struct definition parsed, *definition = NULL;

	if (parse_kind(file, text, arena, findings, &parsed))
		definition = arena_alloc(arena, sizeof *definition);
	if (definition)
		*definition = parsed;
	else if (findings->errors == errors)
		findings_add(findings, (struct finding){.severity = FINDING_ERROR, .file = file, .rule = "limit"},
			     "no memory for this definition");
	*ret = definition;
}

/* ---- several ---- */

struct numbered {
	const struct definition *definition;
	size_t i; /* its place in the list that was given */
};

static int definition_by_name(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	int order = strcmp(x->definition->name, y->definition->name);

	return order ? order : (x->i > y->i) - (x->i < y->i);
}

struct finding definition_finding(const struct definition *d, enum finding_severity severity, size_t line,
				  const char *rule)
{
	return (struct finding){.severity = severity, .file = d->file, .line = line, .workflow = d->name, .rule = rule};
}

static void check_names(struct numbered *list, size_t n, struct findings *findings)
{
	if (n)
		qsort(list, n, sizeof *list, definition_by_name);
	for (size_t i = 1; i < n; i++) {
		const struct definition *d = list[i].definition, *before = list[i - 1].definition;

		if (strcmp(d->name, before->name) == 0)
			findings_add(findings, definition_finding(d, FINDING_ERROR, 1, "duplicate"),
				     "workflow %s is also defined in %s", d->name, before->file);
	}
}

/* What the configuration has switched off fails at every call: better said before the first. */
static void check_exec(const struct definition *d, const struct config *config, struct findings *findings)
{
	for (size_t i = 0; i < d->actions_n && !config->exec_enabled; i++)
		if (d->actions[i].kind == ACTION_EXEC)
			findings_add(findings, definition_finding(d, FINDING_WARNING, d->actions[i].line, "exec"),
				     "action %s will fail: add \"exec\": {\"enabled\": true} to the configuration",
				     d->actions[i].name);
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
	if (!config)
		return;
	for (size_t i = 0; i < n; i++)
		check_exec(definitions[i], config, findings);
	coverage_check(entities, entities_n, config, findings);
}
