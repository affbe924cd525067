/*
 * A definition from its text to a workflow; see draft.h for the way there.
 *
 * The counts that are limited are looked at before a tree is built: a million statuses are answered by counting
 * them, not by keeping them. The tree and everything else that only the parser needs is scratch; what the workflow
 * keeps is copied.
 */
#include "model/workflow.h"

#include "base/excerpt.h"
#include "base/json_walk.h"
#include "model/draft.h"
#include "model/user_table.h"

/* The text, its tree at about 200 bytes a value, and the work on it. */
#define SCRATCH_BYTES_MAX (192u << 20)

static size_t count_of(struct json container)
{
	struct json_iter it = json_iter_of(container);
	struct json name, value;
	size_t n = 0;

	if (json_type(container) == JSON_OBJECT)
		while (json_iter_member(&it, &name, &value))
			n++;
	else if (json_type(container) == JSON_ARRAY)
		while (json_iter_element(&it, &value))
			n++;
	return n;
}

/* True: the text is JSON, and small enough in all that counts. */
static bool check_size(const struct reader *r, struct slice text)
{
	static const struct {
		const char *name;
		size_t max;
	} limits[] = {{"status_types", WORKFLOW_STATUSES_MAX},
		      {"steps", WORKFLOW_STEPS_MAX},
		      {"actions", WORKFLOW_ACTIONS_MAX}};
	struct json document, part;
	struct hx_error err;
	bool fits = true;

	if (text.n > WORKFLOW_TEXT_BYTES_MAX) {
		reader_report(r, 0, "limit", "the definition has %zu bytes; at most %u", text.n,
			      WORKFLOW_TEXT_BYTES_MAX);
		return false;
	}
	if (json_check(text, &err, &document) != HX_OK) {
		reader_report_json(r, &err);
		return false;
	}
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		size_t n = json_find(document, slice_str(limits[i].name), &part) ? count_of(part) : 0;

		if (n <= limits[i].max)
			continue;
		reader_report(r, json_locate(text, (size_t)(part.raw.p - text.p)).line, "limit",
			      "%s has %zu entries; at most %zu", limits[i].name, n, limits[i].max);
		fits = false;
	}
	return fits;
}

/* A definition without a kind is read on as if it had the only one there is, so that all its faults are seen. */
static bool is_entity(const struct draft *d, const struct json_node *root)
{
	static const char *const kinds[] = {"entity", "run", "batch", NULL};
	const struct json_node *node = reader_required(&d->r, root, "kind");
	int kind = 0;

	if (!node)
		return true;
	if (!reader_choice(&d->r, node, "kind", kinds, &kind))
		return false;
	if (kind != 0)
		reader_report(&d->r, node->at.line, "kind", "this version knows only kind entity, not yet %s",
			      kinds[kind]);
	return kind == 0;
}

static void read_meta(struct draft *d, const struct json_node *meta)
{
	static const char *const known[] = {"module", "table", "columns", NULL};
	struct reader r = d->r;

	r.where = "meta";
	d->w->module = d->w->name;
	if (!reader_object(&d->r, meta, "meta"))
		return;
	reader_known(&r, meta, known);
	(void)reader_name(&r, json_node_member(meta, "module"), "module", &d->w->module); /* reported there */
	user_table_read(&r, meta, &d->w->table);
}

static void check_status_duplicates(const struct draft *d)
{
	const struct status_entry *entries = d->index->statuses;

	for (size_t i = 1; i < d->index->statuses_n; i++)
		if (slice_eq(entries[i - 1].name, entries[i].name))
			reader_report(&d->r, d->status_types->at.line, "duplicate", "status_types: \"%s\" stands twice",
				      excerpt_of(entries[i].name).text);
}

/* Also a status with a bad name becomes known, so that the steps that use it are not blamed too. */
static const char *read_status(const struct draft *d, const struct json_node *node)
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
			texts[n] = read_status(d, node);
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
	size_t n = node && node->type == JSON_ARRAY ? node->count : 0;
	size_t i = 0;

	(void)reader_array(&d->r, node, "steps", 0, WORKFLOW_STEPS_MAX); /* reported there */
	d->steps = arena_zalloc(d->r.arena, n * sizeof *d->steps);
	d->sources = arena_zalloc(d->scratch, n * sizeof *d->sources);
	if (!d->steps || !d->sources)
		return false;
	if (n > 0)
		json_node_for_each(step, node) draft_step_read(d, i++, step);
	d->w->steps = d->steps;
	d->w->steps_n = n;
	return index_steps(d->index, d->r.arena, d->steps, n);
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

static void read_entity(struct draft *d, const struct json_node *root)
{
	static const char *const known[] = {"workflow",       "kind",    "meta",  "status_types",
					    "initial_status", "actions", "steps", NULL};

	reader_known(&d->r, root, known);
	read_meta(d, json_node_member(root, "meta"));
	d->status_types = reader_required(&d->r, root, "status_types");
	if (!read_statuses(d))
		return;
	d->w->initial_status = draft_status(d, &d->r, reader_required(&d->r, root, "initial_status"), "initial_status");
	actions_parse(&d->r, json_node_member(root, "actions"), &d->actions);
	d->w->actions = d->actions.items;
	d->w->actions_n = d->actions.n;
	if (!read_steps(d, reader_required(&d->r, root, "steps")) || !keep_requesters(d) || !build_views(d))
		return;
	draft_check_duplicates(d);
	draft_check_rules(d);
	draft_check_reach(d);
	d->w->index = d->index;
}

static void read_definition(struct draft *d, const char *file, struct slice text)
{
	const struct json_node *root = NULL;
	struct hx_error err;

	if (!check_size(&d->r, text))
		return;
	if (json_tree_parse(text, WORKFLOW_JSON_VALUES_MAX, d->scratch, &err, &root) != HX_OK) {
		reader_report_json(&d->r, &err);
		return;
	}
	d->w = arena_zalloc(d->r.arena, sizeof *d->w);
	if (!d->w || !reader_object(&d->r, root, "a definition"))
		return;
	d->w->file = reader_keep(&d->r, slice_str(file));
	d->w->text = arena_copy(d->r.arena, text);
	if (reader_name(&d->r, reader_required(&d->r, root, "workflow"), "workflow", &d->w->name))
		d->r.place.workflow = d->w->name;
	if (is_entity(d, root))
		read_entity(d, root);
}

void workflow_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		    const struct workflow **ret)
{
	struct arena scratch;
	struct draft d = {.r = {.findings = findings, .arena = arena, .place.file = file}, .scratch = &scratch};
	struct finding **from = findings->last;
	size_t errors = findings->errors;

	arena_init(&scratch, SCRATCH_BYTES_MAX);
	read_definition(&d, file, text);
	if (scratch.failed || arena->failed) {
		struct hx_error err;

		(void)arena_error(arena->failed ? arena : &scratch, &err); /* for its words */
		reader_report(&d.r, 0, "limit", "%s", err.detail);
	}
	findings_sort(findings, from);
	arena_release(&scratch);
	*ret = findings->errors == errors ? d.w : NULL;
}
