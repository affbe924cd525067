/*
 * A definition of kind entity as a sketch: a status is a box, a step an arrow from its status to its successful_state,
 * and the claim sits on the arrow.
 *
 * Where requesters differ in what a step does for them, it has an arrow for each difference, at most STEP_ARROWS_MAX; the
 * last of these then says how many more requesters there are. A step leads down, unless it leads back to a status from
 * which its own one is reached (found depth first, from the initial status, in the order of the text): then it leads up.
 */
#include <string.h>

#include "base/duration.h"
#include "model/graph_sketch.h"
#include "model/lookup.h"

#define STEP_ARROWS_MAX 8
#define NAMES_MAX 8 /* of requesters, in one place */
#define NAMES_COLUMNS 36
#define LINKS_PER_ARROW 3

enum { NOT_A_FIGURE = -1 };

/* What a step does for some of its requesters, alike for all of them. */
struct arrow {
	const struct step *step;
	const struct step_view *view; /* NULL: nobody may fire it */
	bool views[WORKFLOW_REQUESTERS_MAX + 1];
	size_t left_out; /* requesters for whom there was no further arrow */
	size_t from, to; /* statuses, by their place in the index */
	enum figure_course course;
};

struct status {
	int figure;
	bool on_an_arrow; /* as a claim */
	bool reached;
	size_t arrows_first, arrows_n;
	enum { NEW, OPEN, DONE } walked;
	size_t next; /* of its arrows, while it is open */
};

struct drawing {
	const struct workflow *w;
	struct sketch *s;
	struct arena *arena;
	size_t arrows_n;
	struct arrow *arrows; /* by `from`, then in the order of the text */
	struct status *statuses;
};

static size_t number_of(const struct drawing *d, const char *status)
{
	return (size_t)(index_status(d->w->index, slice_str(status)) - d->w->index->statuses);
}

/* ---- arrows ---- */

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool alike(const struct step_view *a, const struct step_view *b)
{
	return same(a->successful_state, b->successful_state) && same(a->claim_into, b->claim_into) &&
	       same(a->revert_to, b->revert_to) && a->action == b->action && a->validation == b->validation &&
	       a->after_effects_n == b->after_effects_n &&
	       memcmp(a->after_effects, b->after_effects, a->after_effects_n * sizeof a->after_effects[0]) == 0 &&
	       a->entry_lock_ms == b->entry_lock_ms && a->lease_ms == b->lease_ms && a->on_unknown == b->on_unknown;
}

/* The arrow that a view belongs to, of those that the step has so far; NULL: it needs one of its own. */
static struct arrow *find_arrow(struct arrow *first, size_t n, const struct step_view *view)
{
	for (size_t i = 0; i < n; i++)
		if (alike(first[i].view, view))
			return &first[i];
	return NULL;
}

static void find_arrows_of_step(struct drawing *d, const struct step *step)
{
	struct arrow *first = &d->arrows[d->arrows_n];
	size_t n = 0;

	for (size_t v = 0; v <= d->w->requesters_n; v++) {
		const struct step_view *view = &step->views[v];
		struct arrow *arrow = view->allowed ? find_arrow(first, n, view) : NULL;

		if (!view->allowed)
			continue;
		if (!arrow && n == STEP_ARROWS_MAX) {
			first[n - 1].left_out++;
			continue;
		}
		if (!arrow) {
			arrow = &first[n++];
			*arrow = (struct arrow){.step = step, .view = view};
		}
		arrow->views[v] = true;
	}
	if (n == 0)
		first[n++] = (struct arrow){.step = step};
	d->arrows_n += n;
}

/* Of each status its arrows side by side. */
static void group_arrows(struct drawing *d, const struct arrow *found)
{
	size_t first = 0;

	for (size_t i = 0; i < d->arrows_n; i++)
		d->statuses[found[i].from].arrows_n++;
	for (size_t i = 0; i < d->w->index->statuses_n; i++) {
		d->statuses[i].arrows_first = first;
		first += d->statuses[i].arrows_n;
		d->statuses[i].arrows_n = 0;
	}
	for (size_t i = 0; i < d->arrows_n; i++) {
		struct status *status = &d->statuses[found[i].from];

		d->arrows[status->arrows_first + status->arrows_n++] = found[i];
	}
}

static bool find_arrows(struct drawing *d)
{
	size_t max = d->w->steps_n * STEP_ARROWS_MAX;
	struct arrow *found = arena_alloc(d->arena, max * sizeof *found);
	struct arrow *grouped = arena_alloc(d->arena, max * sizeof *grouped);

	if (!found || !grouped)
		return false;
	d->arrows = found;
	for (size_t i = 0; i < d->w->steps_n; i++)
		find_arrows_of_step(d, &d->w->steps[i]);
	for (size_t i = 0; i < d->arrows_n; i++) {
		found[i].from = number_of(d, found[i].step->status);
		if (found[i].view)
			found[i].to = number_of(d, found[i].view->successful_state);
	}
	d->arrows = grouped;
	group_arrows(d, found);
	return true;
}

/* ---- which way they lead ---- */

/* Where an arrow leads, seen from its status, which is open: so is everything that it is reached from. */
static void choose_course(struct drawing *d, struct arrow *arrow)
{
	const struct status *to = &d->statuses[arrow->to];

	if (!arrow->view)
		arrow->course = COURSE_BLOCKED;
	else if (arrow->to == arrow->from)
		arrow->course = COURSE_LOOP;
	else
		arrow->course = to->walked == OPEN ? COURSE_UP : COURSE_DOWN;
}

/* Depth first; `path` has room for all statuses. */
static void walk_from(struct drawing *d, size_t root, size_t *path)
{
	size_t depth = 0;

	if (d->statuses[root].walked != NEW)
		return;
	path[depth++] = root;
	d->statuses[root].walked = OPEN;
	while (depth > 0) {
		struct status *status = &d->statuses[path[depth - 1]];

		if (status->next == status->arrows_n) {
			status->walked = DONE;
			depth--;
			continue;
		}

		struct arrow *arrow = &d->arrows[status->arrows_first + status->next++];

		choose_course(d, arrow);
		if (arrow->course == COURSE_DOWN && d->statuses[arrow->to].walked == NEW) {
			d->statuses[arrow->to].walked = OPEN;
			path[depth++] = arrow->to;
		}
	}
}

static bool graph_entity_walk(struct drawing *d)
{
	size_t *path = arena_alloc(d->arena, d->w->index->statuses_n * sizeof *path);

	if (!path)
		return false;
	walk_from(d, number_of(d, d->w->initial_status), path);
	for (size_t i = 0; i < d->w->statuses_n; i++)
		walk_from(d, number_of(d, d->w->statuses[i]), path);
	return true;
}

/* ---- statuses ---- */

static void mark(struct drawing *d)
{
	d->statuses[number_of(d, d->w->initial_status)].reached = true;
	for (size_t i = 0; i < d->arrows_n; i++) {
		const struct arrow *arrow = &d->arrows[i];

		if (!arrow->view)
			continue;
		if (arrow->course != COURSE_LOOP)
			d->statuses[arrow->to].reached = true;
		if (arrow->view->claim_into) {
			d->statuses[number_of(d, arrow->view->claim_into)].on_an_arrow = true;
			d->statuses[number_of(d, arrow->view->revert_to)].reached = true;
		}
	}
}

static enum figure_look look_of(const struct drawing *d, size_t number)
{
	const struct status *status = &d->statuses[number];

	if (strcmp(d->w->index->statuses[number].text, d->w->initial_status) == 0)
		return LOOK_INITIAL;
	if (!status->reached)
		return LOOK_STRAY;
	return status->arrows_n == 0 ? LOOK_TERMINAL : LOOK_PLAIN;
}

/* A claim has its place on an arrow; but one may also be what another claim reverts to. */
static void add_statuses(struct drawing *d)
{
	for (size_t i = 0; i < d->w->statuses_n; i++) {
		size_t number = number_of(d, d->w->statuses[i]);
		struct status *status = &d->statuses[number];
		bool drawn = !status->on_an_arrow || status->reached;

		status->figure = drawn ? (int)sketch_add(d->s, FIGURE_STATUS, look_of(d, number), d->w->statuses[i])
				       : NOT_A_FIGURE;
		if (drawn)
			d->s->layout.nodes[status->figure].low = look_of(d, number) == LOOK_STRAY;
	}
}

/* ---- words ---- */

/* "by admin, cron", "by anyone", "by anyone but clerk", on as many lines as it takes. */
static void say_requesters(const struct drawing *d, const struct arrow *arrow, struct figure *f)
{
	size_t named = d->w->requesters_n, n = 0, more = 0;
	bool others = arrow->views[named];
	LOCAL_STRBUF(line, 4096);

	strbuf_add_str(&line, others ? "by anyone" : "by ");
	for (size_t v = 0; v < named; v++) {
		if (arrow->views[v] == others)
			continue;
		if (n++ >= NAMES_MAX) {
			more++;
			continue;
		}
		if (n > 1 && line.n + strlen(d->w->requesters[v]) > NAMES_COLUMNS) {
			sketch_say(d->s, &f->lines, SVG_NOTE, "%s,", line.p);
			strbuf_reset(&line);
		} else {
			strbuf_add_str(&line, n > 1 ? ", " : others ? " but " : "");
		}
		strbuf_add_str(&line, d->w->requesters[v]);
	}
	if (more)
		strbuf_addf(&line, " and %zu more", more);
	sketch_say(d->s, &f->lines, SVG_NOTE, "%s", line.p);
}

static void say_duration(const struct drawing *d, struct figure *f, const char *what, int64_t ms)
{
	if (ms == 0)
		return;
	sketch_say(d->s, &f->lines, SVG_NOTE, "%s %s", what, duration_text(ms).text);
}

static void say_what_is_done(const struct drawing *d, const struct step_view *view, struct figure *f)
{
	if (view->validation) {
		sketch_say(d->s, &f->behind, SVG_NOTE, "validated by");
		sketch_say_action(d->s, &f->behind, view->validation);
		if (view->action)
			sketch_say(d->s, &f->behind, SVG_NOTE, "then");
	}
	if (view->action)
		sketch_say_action(d->s, &f->behind, view->action);
	if (view->action && view->action->effect == EFFECT_CLAIMED && !view->claim_into)
		sketch_say(d->s, &f->behind, SVG_NOTE, "knowingly without a claim");
	if (view->action || view->validation)
		sketch_say_unknown(d->s, &f->behind, view->action ? view->action : view->validation, view->on_unknown);
	for (size_t i = 0; i < view->after_effects_n; i++)
		sketch_say_action(d->s, &f->tags, view->after_effects[i]);
}

static void say_arrow(const struct drawing *d, const struct arrow *arrow, struct figure *f)
{
	if (!arrow->view) {
		sketch_say(d->s, &f->lines, SVG_NOTE, "nobody may fire it");
		return;
	}
	say_requesters(d, arrow, f);
	if (arrow->left_out)
		sketch_say(d->s, &f->lines, SVG_NOTE, "(%zu more requesters in other ways)", arrow->left_out);
	say_duration(d, f, "entry lock", arrow->view->entry_lock_ms);
	say_duration(d, f, "lease", arrow->view->lease_ms);
	say_what_is_done(d, arrow->view, f);
}

/* ---- arrows as figures ---- */

static void link_arrow(const struct drawing *d, const struct arrow *arrow, size_t figure)
{
	size_t from = (size_t)d->statuses[arrow->from].figure;
	enum layout_way way = arrow->course == COURSE_UP ? LAYOUT_UP : LAYOUT_DOWN;

	sketch_link(d->s, from, figure, way, (struct link){.look = LINK_MAIN, .to_port = PORT_MAIN});
	if (!arrow->view)
		return;
	if (arrow->course == COURSE_LOOP)
		sketch_link(d->s, figure, from, LAYOUT_LOOSE,
			    (struct link){.look = LINK_MAIN, .from_port = PORT_LOOP, .head = true});
	else
		sketch_link(d->s, figure, (size_t)d->statuses[arrow->to].figure, way,
			    (struct link){.look = LINK_MAIN, .from_port = PORT_MAIN, .head = true});
	if (arrow->view->claim_into)
		sketch_link(d->s, figure, (size_t)d->statuses[number_of(d, arrow->view->revert_to)].figure,
			    LAYOUT_LOOSE,
			    (struct link){
				    .look = LINK_REVERT, .from_port = PORT_REVERT, .head = true, .word = "reverts to"});
}

static void add_arrow(const struct drawing *d, const struct arrow *arrow)
{
	size_t figure = sketch_add(d->s, FIGURE_ARROW, LOOK_PLAIN, arrow->step->step_key);
	struct figure *f = &d->s->figures[figure];

	f->course = arrow->course;
	f->claim = arrow->view ? arrow->view->claim_into : NULL;
	d->s->layout.nodes[figure].low = arrow->course == COURSE_UP || look_of(d, arrow->from) == LOOK_STRAY;
	say_arrow(d, arrow, f);
	link_arrow(d, arrow, figure);
}

bool sketch_entity(const struct workflow *w, struct arena *arena, struct sketch *s)
{
	struct drawing d = {.w = w, .s = s, .arena = arena};

	d.statuses = arena_zalloc(arena, w->index->statuses_n * sizeof *d.statuses);
	if (!d.statuses || !find_arrows(&d) || !graph_entity_walk(&d) ||
	    !sketch_init(s, arena, w->statuses_n + d.arrows_n, d.arrows_n * LINKS_PER_ARROW))
		return false;
	mark(&d);
	add_statuses(&d);
	for (size_t i = 0; i < d.arrows_n; i++)
		add_arrow(&d, &d.arrows[i]);
	return true;
}
