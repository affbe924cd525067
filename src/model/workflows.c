/*
 * What must hold between workflows: those on one table of the user agree about its claim statuses. There one row is moved by several workflows, so rules 6 and 8 are asked again over all of them:
 * a janitor must know one revert_to, and no step of a neighbour may start or end in somebody's claim.
 */
#include <stdlib.h>

#include "model/lookup.h"
#include "model/user_table.h"

static struct finding place_of(const struct workflow *w, const struct step *step, const char *rule)
{
	return (struct finding){.severity = FINDING_ERROR,
				.file = w->file,
				.line = step ? step->line : 1,
				.workflow = w->name,
				.step = step ? step->step_key : NULL,
				.rule = rule};
}

struct numbered {
	const struct workflow *workflow;
	size_t i; /* its place in the list that was given */
};

static int by_table(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	int order = user_table_compare(&x->workflow->table, &y->workflow->table);

	return order ? order : (x->i > y->i) - (x->i < y->i);
}

/* A status in one of the workflows on a table. */
struct shared {
	const struct workflow *workflow;
	const struct status_entry *entry;
	size_t i; /* the place of the workflow in the list that was given */
};

static int by_status(const void *a, const void *b)
{
	const struct shared *x = a, *y = b;
	int order = slice_compare(x->entry->name, y->entry->name);

	return order ? order : (x->i > y->i) - (x->i < y->i);
}

/* `claim` is a claim status of its workflow; `other` is the same status in a neighbour. */
static void check_pair(const struct shared *claim, const struct shared *other, struct findings *findings)
{
	const struct status_entry *c = claim->entry, *o = other->entry;
	const struct step *use = o->source ? o->source : o->target;
	bool initial = strcmp(other->workflow->initial_status, c->text) == 0;
	struct finding finding = place_of(claim->workflow, c->claim_step, NULL);

	finding.line = c->claim_step->views[c->claim_view].claim_line;
	finding.requester = workflow_view_name(claim->workflow, c->claim_view);
	if (o->revert_to && strcmp(c->revert_to, o->revert_to) != 0) {
		finding.rule = "rule 6";
		findings_add(findings, finding,
			     "claim_into \"%s\" reverts to \"%s\" here and to \"%s\" in workflow %s, step %s (%s:%zu), "
			     "on the same table %s",
			     c->text, c->revert_to, o->revert_to, other->workflow->name, o->claim_step->step_key,
			     other->workflow->file, o->claim_step->line, claim->workflow->table.table);
	}
	finding.rule = "rule 8";
	if (use)
		findings_add(findings, finding,
			     "claim_into \"%s\" is a %s of workflow %s, step %s (%s:%zu), on the same "
			     "table %s",
			     c->text, o->source ? "status" : "successful_state", other->workflow->name, use->step_key,
			     other->workflow->file, use->line, claim->workflow->table.table);
	if (initial)
		findings_add(findings, finding,
			     "claim_into \"%s\" is the initial_status of workflow %s (%s), on the same "
			     "table %s",
			     c->text, other->workflow->name, other->workflow->file, claim->workflow->table.table);
}

/*
 * One status in all workflows of a table: the first claim is held against all others, and every later claim only
 * against that first one. A conflict is named at least once, and the work stays linear.
 */
static void check_run(const struct shared *run, size_t n, struct findings *findings)
{
	size_t first = 0;

	while (first < n && !run[first].entry->revert_to)
		first++;
	for (size_t i = 0; first < n && i < n; i++)
		if (i != first)
			check_pair(&run[first], &run[i], findings);
}

static void check_table(const struct numbered *list, size_t n, struct findings *findings)
{
	struct shared *all;
	size_t total = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		total += list[i].workflow->index->statuses_n;
	all = arena_alloc(findings->arena, total * sizeof *all);
	if (!all) {
		findings_add(findings, place_of(list[0].workflow, NULL, "limit"), "no memory for this table");
		return;
	}
	for (size_t i = 0; i < n; i++)
		for (size_t s = 0; s < list[i].workflow->index->statuses_n; s++)
			all[at++] = (struct shared){list[i].workflow, &list[i].workflow->index->statuses[s], list[i].i};
	qsort(all, total, sizeof *all, by_status);
	for (size_t i = 0; i < total; i += n) {
		for (n = 1; i + n < total && slice_eq(all[i].entry->name, all[i + n].entry->name); n++)
			;
		check_run(&all[i], n, findings);
	}
}

static void check_tables(struct numbered *list, size_t n, struct findings *findings)
{
	size_t on_tables = 0;

	for (size_t i = 0; i < n; i++)
		if (list[i].workflow->table.table)
			list[on_tables++] = list[i];
	if (on_tables)
		qsort(list, on_tables, sizeof *list, by_table);
	for (size_t i = 0; i < on_tables;) {
		size_t group = 1;

		while (i + group < on_tables &&
		       user_table_is_same(&list[i].workflow->table, &list[i + group].workflow->table))
			group++;
		if (group > 1)
			check_table(&list[i], group, findings);
		i += group;
	}
}

void workflows_check(const struct workflow *const *workflows, size_t n, struct findings *findings)
{
	struct numbered *list = arena_alloc(findings->arena, n * sizeof *list);

	if (!list) {
		findings_add(findings, (struct finding){.severity = FINDING_ERROR, .rule = "limit"},
			     "no memory to check %zu workflows", n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		list[i] = (struct numbered){workflows[i], i};
	check_tables(list, n, findings);
}
