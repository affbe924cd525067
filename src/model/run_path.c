/*
 * The steps of a run definition among each other. They stand in the order in which they are carried out, and a jump
 * goes forwards only; so one pass from the first step to the last knows which steps are reached, and a step can see
 * what stands before it and is reached.
 *
 * Where a jump could not be read, it may lead anywhere after it: one fault is not the reason of warnings.
 *
 * A part is walked after the list around it, whose state it sees as that is when its step begins. What a body has saved is there
 * when it is carried out again, and in the list around it from then on.
 */
#include <stdlib.h>

#include "base/excerpt.h"
#include "model/head.h"
#include "model/run_draft.h"

/* A name and the step that it comes from, by name and position. Names may stand twice. */
struct entry {
	const char *name;
	size_t position;
	const struct run_draft *list; /* of names of all lists: the one that it stands in, and the line */
	size_t line;
};

struct names {
	size_t n;
	struct entry *entries;
};

struct paths {
	struct run_draft *d;
	struct names steps;
	struct names saved;        /* save_as of the steps that are reached */
	bool *reached;             /* one per step */
	const struct paths *outer; /* of the list around it; NULL: there is none */
};

static int run_path_by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->position > y->position) - (x->position < y->position);
}

static void names_add(struct names *names, const char *name, size_t position)
{
	if (name)
		names->entries[names->n++] = (struct entry){.name = name, .position = position};
}

static void names_sort(struct names *names)
{
	if (names->n > 0)
		qsort(names->entries, names->n, sizeof names->entries[0], run_path_by_name);
}

/* The first step in the text with this name; NULL: none. */
static const struct entry *names_find(const struct names *names, struct slice name)
{
	size_t low = 0, high = names->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (slice_compare(slice_str(names->entries[middle].name), name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < names->n && slice_is(name, names->entries[low].name) ? &names->entries[low] : NULL;
}

static struct suggestion suggest(const struct reader *r, const struct names *names, struct slice name)
{
	const char *known[WORKFLOW_STEPS_MAX + 1];

	for (size_t i = 0; i < names->n; i++)
		known[i] = names->entries[i].name;
	known[names->n] = NULL;
	return reader_suggest(r, name, known);
}

/* ---- names ---- */

static void check_duplicates(const struct paths *p)
{
	for (size_t i = 1; i < p->steps.n; i++) {
		const struct entry *entry = &p->steps.entries[i], *before = entry - 1;
		struct reader r = run_draft_reader(p->d, entry->position);

		if (strcmp(entry->name, before->name) == 0)
			reader_report(&r, p->d->steps[entry->position].line, "duplicate",
				      "the step in line %zu is called \"%s\" too", p->d->steps[before->position].line,
				      entry->name);
	}
}

static bool index_steps(struct paths *p)
{
	size_t n = p->d->definition->steps_n;
	const struct run_step **sorted = arena_alloc(p->d->r.arena, n * sizeof(struct run_step *));

	p->steps.entries = arena_alloc(p->d->scratch, n * sizeof p->steps.entries[0]);
	if (!p->steps.entries || !sorted)
		return false;
	for (size_t i = 0; i < n; i++)
		names_add(&p->steps, p->d->steps[i].name, i);
	names_sort(&p->steps);
	for (size_t i = 0; i < p->steps.n; i++)
		sorted[i] = &p->d->steps[p->steps.entries[i].position];
	p->d->definition->steps_by_name = sorted; /* fewer than steps_n only where that is an error */
	return true;
}

/* ---- jumps ---- */

static bool link_jump(const struct paths *p, size_t from, const char *field, size_t *ret_position)
{
	const struct json_node *node = json_node_member(p->d->sources[from].node, field);
	struct reader r = run_draft_reader(p->d, from);
	const struct entry *to;

	*ret_position = from + 1;
	if (!node)
		return true;
	if (!reader_string(&r, node, field))
		return false;
	if (slice_is(node->string, RUN_END_NAME)) {
		*ret_position = p->d->definition->steps_n;
		return true;
	}
	to = names_find(&p->steps, node->string);
	if (to && to->position > from) {
		*ret_position = to->position;
		return true;
	}
	if (to)
		reader_report(&r, node->at.line, "jump",
			      "%s: \"%s\" is not after this step; a jump back would carry out a step that is done",
			      field, to->name);
	else
		reader_report(&r, node->at.line, "reference", "%s: there is no step \"%s\"%s", field,
			      excerpt_of(node->string).text, suggest(&r, &p->steps, node->string).text);
	return false;
}

static void link_condition(const struct paths *p, size_t i)
{
	struct run_step *step = &p->d->steps[i];
	struct reader r = run_draft_reader(p->d, i);
	bool then_known = link_jump(p, i, "then", &step->then_position);
	bool else_known = link_jump(p, i, "else", &step->else_position);

	p->d->sources[i].may_jump_away = !then_known || !else_known;
	if (then_known && else_known && step->then_position == step->else_position)
		reader_warn(&r, step->line, "jump", "then and else lead to the same place: nothing is decided here");
}

/* ---- what is reached ---- */

static void mark_reached(struct paths *p)
{
	const struct run_step *steps = p->d->steps;
	size_t n = p->d->definition->steps_n;

	p->reached[0] = true;
	for (size_t i = 0; i < n; i++) {
		bool jumps = steps[i].type == RUN_CONDITION;
		bool anywhere = p->d->sources[i].may_jump_away;

		for (size_t to = i + 1; p->reached[i] && to < n; to++)
			p->reached[to] |= anywhere ||
					  (jumps ? to == steps[i].then_position || to == steps[i].else_position
						 : to == i + 1);
	}
}

static void check_reached(const struct paths *p)
{
	for (size_t i = 0; i < p->d->definition->steps_n; i++) {
		struct reader r = run_draft_reader(p->d, i);

		if (!p->reached[i])
			reader_warn(&r, p->d->steps[i].line, "unreached",
				    "nothing reaches this step: every way jumps over it");
	}
}

/* ---- what an expression can see ---- */

struct sight {
	const struct paths *paths;
	struct reader r;
	size_t position; /* of the step that looks; for the output, after the last */
	size_t line;
	const char *field;
};

/* Will a body have saved it that is carried out again, or a list around this one? */
static bool is_saved_around(const struct paths *p, struct slice name)
{
	for (; p->outer; p = p->outer) {
		size_t at = p->d->outer_position;
		bool body = p->outer->d->steps[at].type == RUN_REPEAT;
		const struct entry *saved = names_find(&p->outer->saved, name);

		if ((body && names_find(&p->saved, name)) || (saved && saved->position < at + body))
			return true;
	}
	return false;
}

static void check_state(const struct sight *s, struct slice name, size_t column)
{
	const struct paths *p = s->paths;
	const struct entry *saved = names_find(&p->saved, name);

	if ((!saved || saved->position >= s->position) && is_saved_around(p, name))
		return;
	if (!saved)
		reader_warn(&s->r, s->line, "reference", "%s: column %zu: no step has save_as \"%s\"%s", s->field,
			    column, excerpt_of(name).text, suggest(&s->r, &p->saved, name).text);
	else if (saved->position >= s->position)
		reader_warn(&s->r, s->line, "reference", "%s: column %zu: step %s, which saves %s, is not done by then",
			    s->field, column, p->d->sources[saved->position].label, saved->name);
}

static void check_steps(const struct sight *s, struct slice name, size_t column)
{
	const struct paths *p = s->paths;
	const struct entry *step = names_find(&p->steps, name);

	if (!step)
		reader_warn(&s->r, s->line, "reference", "%s: column %zu: there is no step \"%s\"%s", s->field, column,
			    excerpt_of(name).text, suggest(&s->r, &p->steps, name).text);
	else if (step->position >= s->position || !p->reached[step->position])
		reader_warn(&s->r, s->line, "reference", "%s: column %zu: step %s is not done by then", s->field,
			    column, step->name);
}

static void check_use(void *context, struct slice root, struct slice name, size_t column)
{
	const struct sight *s = context;

	if (slice_is(root, "state"))
		check_state(s, name, column);
	else if (slice_is(root, "steps"))
		check_steps(s, name, column);
}

static void check_sight(const struct paths *p, size_t position, const struct json_node *object, const char *field,
			const struct expression *expression)
{
	bool of_step = position < p->d->definition->steps_n;
	struct sight s = {p, of_step ? run_draft_reader(p->d, position) : p->d->r, position, 0, field};

	if (!expression)
		return;
	s.line = json_node_member(object, field)->at.line;
	expression_each_use(expression, check_use, &s);
}

/* What the step saves, and what the steps of its bodies do. */
static void add_saved(struct names *names, const struct run_step *step, size_t position)
{
	names_add(names, step->save_as, position);
	for (size_t i = 0; step->type == RUN_REPEAT && i < step->parts_n; i++) {
		const struct run_definition *body = step->parts[i].definition;

		for (size_t k = 0; body && k < body->steps_n; k++)
			add_saved(names, &body->steps[k], position);
	}
}

static bool index_saved(struct paths *p)
{
	size_t n = p->d->definition->steps_n;

	p->saved.entries = arena_alloc(p->d->scratch, *p->d->all_n * sizeof p->saved.entries[0]);
	if (!p->saved.entries)
		return false;
	for (size_t i = 0; i < n; i++)
		if (p->reached[i])
			add_saved(&p->saved, &p->d->steps[i], i);
	names_sort(&p->saved);
	return true;
}

static const struct expression *expression_at(const struct run_step *step, const struct field *field)
{
	return *(const struct expression *const *)((const char *)step + field->offset);
}

static void check_sights(const struct paths *p)
{
	size_t n = p->d->definition->steps_n;

	for (size_t i = 0; i < n; i++) {
		const struct json_node *node = p->d->sources[i].node;

		for (const struct field *f = run_step_fields; f->name; f++)
			if (f->own == run_draft_expression || f->own == run_draft_item_expression)
				check_sight(p, i, node, f->name, expression_at(&p->d->steps[i], f));
		/* A repeat asks after its body. */
		check_sight(p, i + (p->d->steps[i].type == RUN_REPEAT), node, "until", p->d->steps[i].until);
	}
	check_sight(p, n, p->d->root, "output", p->d->definition->output);
}

/* ---- parts ---- */

/* No other list of the definition has a step of this name before. `whole` is sorted, and has those of all lists. */
static void check_across(const struct run_draft *d, const struct names *whole)
{
	for (size_t i = 0; i < d->definition->steps_n; i++) {
		const struct run_step *step = &d->steps[i];
		const struct entry *first = step->name ? names_find(whole, slice_str(step->name)) : NULL;
		struct reader r = run_draft_reader(d, i);

		if (first && first->list != d)
			reader_report(&r, step->line, "duplicate", "the step in line %zu is called \"%s\" too",
				      first->line, step->name);
		for (size_t k = 0; k < d->sources[i].parts_n; k++)
			check_across(&d->sources[i].parts[k], whole);
	}
}

/* In the order of the text, which is not that of the lines: all of it may stand in one. */
static void gather_names(const struct run_draft *d, struct names *whole)
{
	for (size_t i = 0; i < d->definition->steps_n; i++) {
		const struct run_step *step = &d->steps[i];

		if (step->name)
			whole->entries[whole->n] = (struct entry){step->name, whole->n, d, step->line};
		whole->n += step->name != NULL;
		for (size_t k = 0; k < d->sources[i].parts_n; k++)
			gather_names(&d->sources[i].parts[k], whole);
	}
}

static bool check_names(const struct run_draft *d)
{
	struct names whole = {.entries = arena_alloc(d->scratch, *d->all_n * sizeof whole.entries[0])};

	if (!whole.entries)
		return false;
	gather_names(d, &whole);
	names_sort(&whole);
	check_across(d, &whole);
	return true;
}

static bool run_path_walk(struct run_draft *d, const struct paths *outer);

static bool walk_parts(const struct paths *p)
{
	for (size_t i = 0; i < p->d->definition->steps_n; i++)
		for (size_t k = 0; k < p->d->sources[i].parts_n; k++)
			if (!run_path_walk(&p->d->sources[i].parts[k], p))
				return false;
	return true;
}

static bool run_path_walk(struct run_draft *d, const struct paths *outer)
{
	struct paths p = {.d = d, .outer = outer};

	if (d->definition->steps_n == 0)
		return true;
	p.reached = arena_zalloc(d->scratch, d->definition->steps_n * sizeof p.reached[0]);
	if (!p.reached || !index_steps(&p))
		return false;
	check_duplicates(&p);
	for (size_t i = 0; i < d->definition->steps_n; i++)
		if (d->steps[i].type == RUN_CONDITION)
			link_condition(&p, i);
	mark_reached(&p);
	check_reached(&p);
	if (!index_saved(&p))
		return false;
	check_sights(&p);
	return walk_parts(&p);
}

bool run_draft_paths(struct run_draft *d)
{
	return run_path_walk(d, /* outer= */ NULL) && check_names(d);
}
