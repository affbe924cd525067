/*
 * Lists of steps inside a step. Each is a draft of its own and becomes a definition of its own, which has all but its steps from the
 * one around it: the actions, the lease, the name.
 */
#include "base/excerpt.h"
#include "base/strbuf.h"
#include "model/run_draft.h"

/* "poll", "both/pack"; inside another part with that one's scope before it. */
static const char *scope_of(const struct run_draft *d, const char *step, const char *branch)
{
	const char *outer = d->definition->scope;
	LOCAL_STRBUF(text, RUN_SCOPE_BYTES_MAX);

	strbuf_addf(&text, "%s%s%s%s%s", outer ? outer : "", outer ? "/" : "", step, branch ? "/" : "",
		    branch ? branch : "");
	return text.failed ? NULL : arena_copy(d->r.arena, strbuf_slice(&text)).p;
}

/* An empty part of step i. NULL: an arena is full, or it is nested too deep, which is reported. */
static struct run_definition *part_new(struct run_draft *d, size_t i, const struct json_node *node, const char *branch)
{
	struct run_definition *part = arena_alloc(d->r.arena, sizeof *part);
	struct reader r = run_draft_reader(d, i);

	if (!part || !d->steps[i].name)
		return NULL;
	*part = *d->definition;
	part->steps = NULL;
	part->steps_n = 0;
	part->steps_by_name = NULL;
	part->output = NULL;
	part->compensates = false;
	part->failure_effects_n = 0;
	part->timeout_ms = 0;
	part->sees_around = d->steps[i].type != RUN_MAP;
	part->scope = scope_of(d, d->steps[i].name, branch);
	if (!part->scope && !d->r.arena->failed)
		reader_report(&r, node->at.line, "size",
			      "the names of the steps around it have more than %d bytes together", RUN_SCOPE_BYTES_MAX);
	return part->scope ? part : NULL;
}

static void read_part(struct run_draft *d, size_t i, const struct json_node *list, const char *branch,
		      struct run_part *ret)
{
	struct run_source *source = &d->sources[i];
	struct run_definition *part = part_new(d, i, list, branch);
	struct run_draft *draft = &source->parts[source->parts_n];

	if (!part)
		return;
	*draft = (struct run_draft){.r = run_draft_reader(d, i),
				    .scratch = d->scratch,
				    .definition = part,
				    .root = d->root,
				    .all_n = d->all_n,
				    .outer = d,
				    .outer_position = i};
	source->parts_n += run_draft_steps(draft, list);
	*ret = (struct run_part){branch, part};
}

/* Room for the one part of step i. */
static struct run_part *part_room(struct run_draft *d, size_t i)
{
	struct run_part *part = arena_zalloc(d->r.arena, sizeof *part);

	d->sources[i].parts = arena_zalloc(d->scratch, sizeof *d->sources[i].parts);
	d->steps[i].parts = part;
	return d->sources[i].parts ? part : NULL;
}

static const char *branch_name(const struct reader *r, const struct json_node *list)
{
	if (name_is_valid(list->name))
		return reader_keep(r, list->name);
	reader_report(r, list->name_at.line, "name",
		      "a branch is called \"%s\"; a name has 1 to %d bytes of letters, digits, '_', '.' and '-'",
		      excerpt_of(list->name).text, WORKFLOW_NAME_MAX);
	return NULL;
}

static void read_branches(struct run_draft *d, size_t i, const struct json_node *branches)
{
	struct reader r = run_draft_reader(d, i);
	struct run_part *parts = reader_map(&r, branches, "branches", RUN_BRANCHES_MAX, sizeof *parts);

	d->sources[i].parts = parts ? arena_zalloc(d->scratch, branches->count * sizeof *d->sources[i].parts) : NULL;
	if (!d->sources[i].parts)
		return;
	d->steps[i].parts = parts;
	json_node_for_each(list, branches)
	{
		const char *branch = branch_name(&r, list);

		if (branch)
			read_part(d, i, list, branch, &parts[d->steps[i].parts_n++]);
	}
	if (branches->count == 0)
		reader_report(&r, branches->at.line, "size", "branches is empty");
}

static void read_body(struct run_draft *d, size_t i, const struct json_node *list)
{
	struct run_part *parts = list ? part_room(d, i) : NULL;

	if (!parts)
		return;
	read_part(d, i, list, /* branch= */ NULL, parts);
	d->steps[i].parts_n = 1;
}

/* Each item is a run with one task, which has what the map says of it. Its input is the whole input of that run. */
static void make_task(struct run_draft *d, size_t i, const struct json_node *node)
{
	struct run_part *parts = part_room(d, i);
	struct run_definition *part = parts ? part_new(d, i, node, /* branch= */ NULL) : NULL;
	struct run_step *task = arena_alloc(d->r.arena, sizeof *task), *map = &d->steps[i];
	const struct run_step **by_name = arena_alloc(d->r.arena, sizeof *by_name);

	if (!part || !task || !by_name)
		return;
	*task = (struct run_step){.name = map->name,
				  .type = RUN_TASK,
				  .line = map->line,
				  .timeout_ms = map->timeout_ms,
				  .goes_on_timed_out = map->goes_on_timed_out,
				  .action = map->action,
				  .compensate = map->compensate,
				  .retry = map->retry,
				  .lease_ms = map->lease_ms,
				  .on_unknown = map->on_unknown,
				  .unknown_on_5xx = map->unknown_on_5xx};
	*by_name = task;
	part->steps = task;
	part->steps_n = 1;
	part->steps_by_name = by_name;
	parts[0] = (struct run_part){NULL, part};
	map->parts_n = 1;
	map->action = map->compensate = NULL; /* the children's, not the run's own */
}

void run_draft_parts(struct run_draft *d, size_t i, const struct json_node *node)
{
	struct reader r = run_draft_reader(d, i);

	if (d->steps[i].type == RUN_PARALLEL)
		read_branches(d, i, reader_required(&r, node, "branches"));
	else if (d->steps[i].type == RUN_REPEAT)
		read_body(d, i, reader_required(&r, node, "steps"));
	else if (d->steps[i].type == RUN_MAP && d->steps[i].action)
		make_task(d, i, node);
}
