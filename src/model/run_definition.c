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

/* The first word of a scope, which is then without it. */
static struct slice take_word(struct slice *scope)
{
	const char *slash = memchr(scope->p, '/', scope->n);
	size_t n = slash ? (size_t)(slash - scope->p) : scope->n, taken = slash ? n + 1 : n;
	struct slice word = slice_of(scope->p, n);

	*scope = slice_of(scope->p + taken, scope->n - taken);
	return word;
}

static const struct run_part *part_of(const struct run_step *step, struct slice *scope)
{
	struct slice branch;

	if (!step || step->parts_n == 0)
		return NULL;
	if (step->type != RUN_PARALLEL)
		return &step->parts[0];
	branch = take_word(scope);
	for (size_t i = 0; i < step->parts_n; i++)
		if (slice_is(branch, step->parts[i].branch))
			return &step->parts[i];
	return NULL;
}

const struct run_definition *run_definition_part(const struct run_definition *definition, struct slice scope)
{
	while (definition && scope.n > 0) {
		struct slice name = take_word(&scope);
		const struct run_part *part = part_of(run_definition_step(definition, name), &scope);

		definition = part ? part->definition : NULL;
	}
	return definition;
}

struct run_place run_definition_search(const struct run_definition *definition,
				       bool (*fits)(const struct run_step *step, struct slice name), struct slice name)
{
	for (size_t i = definition->steps_n; i-- > 0;) {
		const struct run_step *step = &definition->steps[i];

		if (fits(step, name))
			return (struct run_place){step, definition->scope, i};
		for (size_t k = step->parts_n; k-- > 0;) {
			struct run_place place = run_definition_search(step->parts[k].definition, fits, name);

			if (place.step)
				return (struct run_place){place.step, place.scope, i};
		}
	}
	return (struct run_place){0};
}

void run_draft_expression(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	reader_expression(r, node, field->name, expression_run_roots, ret);
}

void run_draft_item_expression(const struct reader *r, const struct json_node *node, const struct field *field,
			       void *ret)
{
	reader_expression(r, node, field->name, expression_item_roots, ret);
}

static void read_failure_effects(const struct reader *r, const struct json_node *node, const struct field *field,
				 void *ret)
{
	struct run_definition *definition = ret;

	action_read_effects(r, node, field->name, action_refuse_uncalled, definition->failure_effects,
			    &definition->failure_effects_n);
}

const char *const run_on_failure[] = {"hold", "compensate", NULL};

/* clang-format off */
const struct field run_fields[] = {
	{"workflow", FIELD_KNOWN},
	{"kind",     FIELD_KNOWN},
	{"meta",     FIELD_KNOWN},
	{"actions",  FIELD_KNOWN},
	{"steps",    FIELD_KNOWN},
	{"rules",    FIELD_KNOWN}, /* of head.c */
	{"world",    FIELD_KNOWN},
	{"output",   FIELD_EXPRESSION(struct run_definition, output)},
	{"lease",    FIELD_LEASE(struct run_definition, lease_ms)},
	{"timeout",  FIELD_DURATION(struct run_definition, timeout_ms)},
	{"on_failure", FIELD_CHOICE(struct run_definition, compensates, run_on_failure)},
	{"failure_after_effect", FIELD_OWN(read_failure_effects)},
	{"attributes", FIELD_ATTRIBUTES(struct run_definition, WHERE_RUN, expression_run_roots)},
	{"limits",   FIELD_OWN_AT(struct run_definition, limits, struct limits, limits_read)},
	{0}};
/* clang-format on */

bool run_draft_steps(struct run_draft *d, const struct json_node *node)
{
	bool readable = reader_array(&d->r, node, "steps", 1, WORKFLOW_STEPS_MAX);
	size_t n = readable ? node->count : 0;
	size_t i = 0;

	if (*d->all_n <= WORKFLOW_STEPS_MAX && *d->all_n + n > WORKFLOW_STEPS_MAX && d->outer)
		reader_report(&d->r, node->at.line, "size", "with those in other parts there are more than %d steps",
			      WORKFLOW_STEPS_MAX);
	*d->all_n += n;

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
	size_t all_n = 0;
	struct run_draft d = {.r = *r, .scratch = scratch, .definition = definition, .root = root, .all_n = &all_n};

	if (!definition)
		return;
	*definition = (struct run_definition){HEAD_OF(head)};
	fields_take(r, root, run_fields, FIELDS_HERE, definition);
	if (run_draft_steps(&d, reader_required(r, root, "steps")))
		(void)run_draft_paths(&d); /* a failed arena is seen at the end */
	*ret_definition = definition;
}

void run_definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
			  const struct run_definition **ret)
{
	*ret = head_read("run", run_fields, file, text, arena, findings, read_run);
}
