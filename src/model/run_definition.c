/*
 * A definition of kind run from its text; see run_draft.h for the way there. The tree and everything else that only
 * the parser needs is scratch; what the definition keeps is copied.
 */
#include "model/run_definition.h"

#include "model/head.h"
#include "model/lookup.h"
#include "model/run_draft.h"

static int compare_name(const void *name, const void *step)
{
	return slice_compare(*(const struct slice *)name, slice_str((*(const struct run_step *const *)step)->name));
}

const struct run_step *run_definition_step(const struct run_definition *definition, struct slice name)
{
	const struct run_step *const *found = lookup(&name, definition->steps_by_name, definition->steps_n,
						     sizeof *found, compare_name);

	return found ? *found : NULL;
}

void run_draft_expression(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	const struct expression *expression = NULL;
	struct hx_error err;

	if (!reader_string(r, node, field->name))
		return;
	if (expression_parse(node->string, r->arena, &err, &expression) == HX_OK &&
	    expression_check_roots(expression, &err) == HX_OK)
		*(const struct expression **)ret = expression;
	else
		reader_report(r, node->at.line, "expression", "%s: %s", field->name, err.detail);
}

/* clang-format off */
const struct field run_fields[] = {
	{"workflow", FIELD_KNOWN},
	{"kind",     FIELD_KNOWN},
	{"meta",     FIELD_KNOWN},
	{"actions",  FIELD_KNOWN},
	{"steps",    FIELD_KNOWN},
	{"output",   FIELD_EXPRESSION(struct run_definition, output)},
	{"lease",    FIELD_LEASE(struct run_definition, lease_ms)},
	{0}};
/* clang-format on */

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

static void read_run(const struct reader *r, const struct json_node *root, const struct head *head,
		     struct arena *scratch, const void **ret_definition)
{
	struct run_definition *definition = arena_alloc(r->arena, sizeof *definition);
	struct run_draft d = {.r = *r, .scratch = scratch, .definition = definition, .root = root};

	if (!definition)
		return;
	*definition = (struct run_definition){HEAD_OF(head)};
	fields_take(r, root, run_fields, FIELDS_HERE, definition);
	if (read_steps(&d, reader_required(r, root, "steps")))
		(void)run_draft_paths(&d); /* a failed arena is seen at the end */
	*ret_definition = definition;
}

void run_definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
			  const struct run_definition **ret)
{
	*ret = head_read("run", run_fields, file, text, arena, findings, read_run);
}
