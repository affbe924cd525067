/*
 * A definition from its text to a workflow; see draft.h for the way there. The tree and everything else that only the
 * parser needs is scratch; what the workflow keeps is copied.
 */
#include "model/workflow.h"

#include "base/excerpt.h"
#include "model/draft.h"
#include "model/head.h"

static void check_status_duplicates(const struct draft *d)
{
	const struct status_entry *entries = d->index->statuses;

	for (size_t i = 1; i < d->index->statuses_n; i++)
		if (slice_eq(entries[i - 1].name, entries[i].name))
			reader_report(&d->r, d->status_types->at.line, "duplicate", "status_types: \"%s\" stands twice",
				      excerpt_of(entries[i].name).text);
}

/* Also a status with a bad name becomes known, so that the steps that use it are not blamed too. */
static const char *workflow_read_status(const struct draft *d, const struct json_node *node)
{
	const char *text = NULL;

	if (!reader_name(&d->r, node, "a status", &text) && node->type == JSON_STRING)
		text = reader_keep(&d->r, node->string);
	return text;
}

static bool read_statuses(struct draft *d)
{
	bool readable = reader_array(&d->r, d->status_types, "status_types", 1, WORKFLOW_STATUSES_MAX);
	size_t max = readable ? d->status_types->count : 0;
	struct slice *names = arena_alloc(d->scratch, max * sizeof *names);
	const char **texts = arena_alloc(d->r.arena, max * sizeof *texts);
	size_t n = 0;

	if (!names || !texts)
		return false;
	if (readable) {
		json_node_for_each(node, d->status_types)
		{
			texts[n] = workflow_read_status(d, node);
			names[n] = slice_str(texts[n]);
			n += texts[n] != NULL;
		}
	}
	d->w->statuses = texts;
	d->w->statuses_n = n;
	d->index = index_new(d->r.arena, names, n);
	if (d->index)
		check_status_duplicates(d);
	return d->index;
}

static bool read_steps(struct draft *d, const struct json_node *node)
{
	bool readable = reader_array(&d->r, node, "steps", 0, WORKFLOW_STEPS_MAX);
	size_t n = 0, i = 0;

	if (node && node->type == JSON_ARRAY)
		json_node_for_each(step, node) n += draft_step_statuses_max(step);
	if (readable && n > WORKFLOW_STEPS_MAX && n > node->count) {
		reader_report(&d->r, node->at.line, "limit",
			      "steps: with one for each status in a map there are up to %zu, and at most %d", n,
			      WORKFLOW_STEPS_MAX);
		return false;
	}
	d->steps = arena_zalloc(d->r.arena, n * sizeof *d->steps);
	d->sources = arena_zalloc(d->scratch, n * sizeof *d->sources);
	if (!d->steps || !d->sources)
		return false;
	if (n > 0)
		json_node_for_each(step, node) i += draft_step_read(d, i, step);
	d->w->steps = d->steps;
	d->w->steps_n = i;
	return index_steps(d->index, d->r.arena, d->steps, i);
}

static bool keep_requesters(struct draft *d)
{
	const char **names = arena_alloc(d->r.arena, d->requesters.n * sizeof *names);

	if (!names)
		return false;
	for (size_t i = 0; i < d->requesters.n; i++)
		names[i] = reader_keep(&d->r, d->requesters.names[i]);
	d->w->requesters = names;
	d->w->requesters_n = d->requesters.n;
	return !d->r.arena->failed;
}

static bool build_views(struct draft *d)
{
	for (size_t i = 0; i < d->w->steps_n; i++)
		if (!draft_step_views(d, i))
			return false;
	return true;
}

/* clang-format off */
const struct field entity_fields[] = {
	{"workflow",       FIELD_KNOWN},
	{"kind",           FIELD_KNOWN},
	{"meta",           FIELD_KNOWN},
	{"status_types",   FIELD_KNOWN},
	{"initial_status", FIELD_KNOWN},
	{"attributes",     FIELD_KNOWN},
	{"actions",        FIELD_KNOWN},
	{"steps",          FIELD_KNOWN},
	{"rules",          FIELD_KNOWN}, /* of head.c */
	{"world",          FIELD_KNOWN},
	{0}};
/* clang-format on */

static void read_attributes(struct draft *d, const struct json_node *node)
{
	if (node)
		attributes_read(&d->r, node, WHERE_ENTITY, attribute_data_roots, &d->w->attributes);
}

/* One after the other: steps name statuses and actions, and what holds between steps needs all of them. */
static void read_parts(struct draft *d, const struct json_node *root)
{
	d->status_types = reader_required(&d->r, root, "status_types");
	if (!read_statuses(d))
		return;
	d->w->initial_status = draft_status(&d->r, reader_required(&d->r, root, "initial_status"), "initial_status");
	read_attributes(d, json_node_member(root, "attributes"));
	if (!read_steps(d, reader_required(&d->r, root, "steps")) || !keep_requesters(d) || !build_views(d))
		return;
	draft_check_duplicates(d);
	draft_check_rules(d);
	draft_check_reach(d);
	d->w->index = d->index;
}

static void read_entity(const struct reader *r, const struct json_node *root, const struct head *head,
			struct arena *scratch, const void **ret_definition)
{
	struct draft d = {.r = *r, .scratch = scratch, .w = arena_alloc(r->arena, sizeof *d.w)};

	if (!d.w)
		return;
	*d.w = (struct workflow){HEAD_OF(head), .table = head->table};
	d.r.draft = &d;
	read_parts(&d, root);
	*ret_definition = d.w;
}

void workflow_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		    const struct workflow **ret)
{
	*ret = head_read("entity", entity_fields, file, text, arena, findings, read_entity);
}
