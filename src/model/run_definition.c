/*
 * A definition of kind run from its text; see run_draft.h for the way there. The tree and everything else that only
 * the parser needs is scratch; what the definition keeps is copied.
 */
#include "model/run_definition.h"

#include "model/definition_text.h"
#include "model/head.h"
#include "model/run_draft.h"

const struct run_step *run_definition_step(const struct run_definition *definition, struct slice name)
{
	size_t low = 0, high = definition->steps_n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct run_step *step = definition->steps_by_name[middle];
		int order = slice_compare(name, slice_str(step->name));

		if (order == 0)
			return step;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const struct expression *run_draft_expression(const struct reader *r, const struct json_node *node, const char *what)
{
	const struct expression *expression = NULL;
	struct hx_error err;

	if (!reader_string(r, node, what))
		return NULL;
	if (expression_parse(node->string, r->arena, &err, &expression) == HX_OK &&
	    expression_check_roots(expression, &err) == HX_OK)
		return expression;
	reader_report(r, node->at.line, "expression", "%s: %s", what, err.detail);
	return NULL;
}

static bool read_steps(struct run_draft *d, const struct json_node *node)
{
	bool readable = reader_array(&d->r, node, "steps", 1, WORKFLOW_STEPS_MAX);
	size_t n = readable ? node->count : 0;
	size_t i = 0;

	d->steps = arena_zalloc(d->r.arena, n * sizeof *d->steps);
	d->sources = arena_zalloc(d->scratch, n * sizeof *d->sources);
	if (!d->steps || !d->sources)
		return false;
	d->definition->steps = d->steps;
	d->definition->steps_n = n;
	if (readable)
		json_node_for_each(step, node) run_draft_step(d, i++, step);
	return !d->scratch->failed && !d->r.arena->failed;
}

static void read_run(struct run_draft *d)
{
	static const char *const known[] = {"workflow", "kind", "meta", "actions", "steps", "output", "lease", NULL};
	struct run_definition *definition = d->definition;

	head_known(&d->r, d->root, known);
	(void)reader_lease(&d->r, json_node_member(d->root, "lease"), "lease", &definition->lease_ms);
	definition->output = run_draft_expression(&d->r, json_node_member(d->root, "output"), "output");
	actions_parse(&d->r, json_node_member(d->root, "actions"), &d->actions);
	definition->actions = d->actions.items;
	definition->actions_n = d->actions.n;
	if (read_steps(d, reader_required(&d->r, d->root, "steps")))
		(void)run_draft_paths(d); /* a failed arena is seen at the end */
}

static void read_definition(struct run_draft *d, struct slice text)
{
	struct run_definition *definition;
	struct head head;

	d->root = definition_text_read(&d->r, text, d->scratch);
	d->definition = definition = d->root ? arena_zalloc(d->r.arena, sizeof *d->definition) : NULL;
	if (!definition || !head_read(&d->r, d->root, text, &head))
		return;
	definition->name = head.name;
	definition->module = head.module;
	definition->file = head.file;
	definition->text = head.text;
	read_run(d);
}

void run_definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
			  const struct run_definition **ret)
{
	struct arena scratch;
	struct run_draft d = {.r = {.findings = findings, .arena = arena, .place.file = file, .kind = "run"},
			      .scratch = &scratch};
	struct finding **from = findings->last;
	size_t errors = findings->errors;

	arena_init(&scratch, DEFINITION_SCRATCH_BYTES_MAX);
	read_definition(&d, text);
	definition_text_done(&d.r, &scratch, from);
	*ret = findings->errors == errors ? d.definition : NULL;
}
