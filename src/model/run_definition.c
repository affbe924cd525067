/*
 * A definition of kind run from its text; see run_draft.h for the way there. The tree and everything else that only
 * the parser needs is scratch; what the definition keeps is copied.
 */
#include "model/run_definition.h"

#include "base/excerpt.h"
#include "model/definition_text.h"
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

/* Which kind of definition has a field of this name; NULL: none but run. */
static const char *kind_with_field(struct slice name)
{
	static const char *const of_entity[] = {"status_types",     "initial_status", "table",
						"columns",          "step_id",        "step_key",
						"status",           "claim_state",    "successful_claim_state",
						"successful_state", "validation",     "success_after_effect"};
	static const char *const of_batch[] = {"item_action", "cleanup_action", "done_after_effect", "concurrency",
					       "cancel_check_every"};

	for (size_t i = 0; i < sizeof of_entity / sizeof of_entity[0]; i++)
		if (slice_is(name, of_entity[i]))
			return "entity";
	for (size_t i = 0; i < sizeof of_batch / sizeof of_batch[0]; i++)
		if (slice_is(name, of_batch[i]))
			return "batch";
	return NULL;
}

void run_draft_refuse_field(const struct reader *r, const struct json_node *member, const char *const *known)
{
	const char *kind = kind_with_field(member->name);

	if (kind)
		reader_report(r, member->name_at.line, "unknown field",
			      "\"%s\" belongs to definitions of kind %s, and this is one of kind run",
			      excerpt_of(member->name).text, kind);
	else
		reader_report(r, member->name_at.line, "unknown field", "\"%s\"; did you mean \"%s\"?",
			      excerpt_of(member->name).text, reader_nearest(r, member->name, known));
}

static void check_known(const struct reader *r, const struct json_node *object, const char *const *known)
{
	json_node_for_each(member, object)
	{
		size_t i = 0;

		while (known[i] && !slice_is(member->name, known[i]))
			i++;
		if (!known[i])
			run_draft_refuse_field(r, member, known);
	}
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

/* A definition without a kind is read on as one of this kind, so that all its faults are seen. */
static bool is_run(const struct run_draft *d)
{
	static const char *const kinds[] = {"entity", "run", "batch", NULL};
	const struct json_node *node = reader_required(&d->r, d->root, "kind");
	int kind = 0;

	if (!node)
		return true;
	if (!reader_choice(&d->r, node, "kind", kinds, &kind))
		return false;
	if (strcmp(kinds[kind], "run") == 0)
		return true;
	reader_report(&d->r, node->at.line, "kind", "this is a definition of kind %s, not run", kinds[kind]);
	return false;
}

static void read_meta(const struct run_draft *d, const struct json_node *meta)
{
	static const char *const known[] = {"module", NULL};
	struct reader r = d->r;

	r.where = "meta";
	d->definition->module = d->definition->name;
	if (!reader_object(&d->r, meta, "meta"))
		return;
	check_known(&r, meta, known);
	(void)reader_name(&r, json_node_member(meta, "module"), "module", &d->definition->module); /* reported there */
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

	check_known(&d->r, d->root, known);
	read_meta(d, json_node_member(d->root, "meta"));
	(void)reader_duration(&d->r, json_node_member(d->root, "lease"), "lease", &definition->lease_ms);
	definition->output = run_draft_expression(&d->r, json_node_member(d->root, "output"), "output");
	actions_parse(&d->r, json_node_member(d->root, "actions"), &d->actions);
	definition->actions = d->actions.items;
	definition->actions_n = d->actions.n;
	if (read_steps(d, reader_required(&d->r, d->root, "steps")))
		(void)run_draft_paths(d); /* a failed arena is seen at the end */
}

static void read_definition(struct run_draft *d, const char *file, struct slice text)
{
	d->root = definition_text_read(&d->r, text, d->scratch);
	d->definition = d->root ? arena_zalloc(d->r.arena, sizeof *d->definition) : NULL;
	if (!d->definition)
		return;
	d->definition->file = reader_keep(&d->r, slice_str(file));
	d->definition->text = arena_copy(d->r.arena, text);
	if (reader_name(&d->r, reader_required(&d->r, d->root, "workflow"), "workflow", &d->definition->name))
		d->r.place.workflow = d->definition->name;
	if (is_run(d))
		read_run(d);
}

void run_definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
			  const struct run_definition **ret)
{
	struct arena scratch;
	struct run_draft d = {.r = {.findings = findings, .arena = arena, .place.file = file}, .scratch = &scratch};
	struct finding **from = findings->last;
	size_t errors = findings->errors;

	arena_init(&scratch, DEFINITION_SCRATCH_BYTES_MAX);
	read_definition(&d, file, text);
	definition_text_done(&d.r, &scratch, from);
	*ret = findings->errors == errors ? d.definition : NULL;
}
