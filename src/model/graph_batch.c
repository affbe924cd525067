/*
 * A definition of kind batch as a sketch: the life of an item, which is the same for all of them but for the actions that
 * are called and how often (flow/batch.h has the whole of it), and beside it what a cancel does and how the batch ends.
 */
#include <inttypes.h>

#include "base/duration.h"
#include "model/batch_definition.h"
#include "model/graph_sketch.h"

#define FIGURES_MAX 32
#define LINKS_MAX 48
#define END_RANK 4 /* that of UNKNOWN */

struct drawing {
	const struct batch_definition *d;
	struct sketch *s;
};

static size_t add_status(const struct drawing *d, enum figure_look look, const char *name)
{
	return sketch_add(d->s, FIGURE_STATUS, look, name);
}

/* An arrow between two statuses; its figure, for its words, which does not move. */
static struct figure *add_arrow(const struct drawing *d, size_t from, size_t to, enum figure_course course,
				const char *name)
{
	size_t figure = sketch_add(d->s, FIGURE_ARROW, LOOK_PLAIN, name);
	enum layout_way way = course == COURSE_UP ? LAYOUT_UP : LAYOUT_DOWN;

	d->s->figures[figure].course = course;
	d->s->layout.nodes[figure].low = course == COURSE_UP;
	sketch_link(d->s, from, figure, way, (struct link){.look = LINK_MAIN, .to_port = PORT_MAIN});
	sketch_link(d->s, figure, to, way, (struct link){.look = LINK_MAIN, .from_port = PORT_MAIN, .head = true});
	return &d->s->figures[figure];
}

static void draw_item(const struct drawing *d)
{
	size_t pending = add_status(d, LOOK_INITIAL, "PENDING"), running = add_status(d, LOOK_CLAIM, "RUNNING");
	size_t succeeded = add_status(d, LOOK_PLAIN, "SUCCEEDED"), unknown = add_status(d, LOOK_PLAIN, "UNKNOWN");
	size_t failed = add_status(d, LOOK_TERMINAL, "FAILED"), accepted = add_status(d, LOOK_TERMINAL, "accepted");
	struct figure *f = add_arrow(d, pending, running, COURSE_DOWN, "start");

	sketch_say(d->s, &f->lines, SVG_NOTE, "its cost is debited in the same write");
	sketch_say(d->s, &f->lines, SVG_NOTE, "%" PRId64 " at a time", d->d->concurrency);
	f = add_arrow(d, running, pending, COURSE_UP, "fails, attempts left");
	sketch_say(d->s, &f->lines, SVG_NOTE, "what it was charged is returned");
	sketch_say_retry(d->s, &f->lines, &d->d->retry);
	f = add_arrow(d, running, succeeded, COURSE_DOWN, "done");
	sketch_say_action(d->s, &f->lines, d->d->item_action);
	if (action_has_timeout(d->d->item_action))
		sketch_say(d->s, &f->lines, SVG_NOTE, "within %s",
			   duration_text(d->d->timeout_ms ? d->d->timeout_ms : d->d->item_action->timeout_ms).text);
	f = add_arrow(d, running, unknown, COURSE_DOWN, "nobody knows");
	sketch_say_unknown(d->s, &f->lines, d->d->item_action, d->d->on_unknown);
	sketch_say(d->s, &f->lines, SVG_NOTE, "at last: stays charged");
	f = add_arrow(d, running, failed, COURSE_DOWN, "fails, none left");
	sketch_say(d->s, &f->lines, SVG_NOTE, "what it was charged is returned");
	f = add_arrow(d, unknown, succeeded, COURSE_DOWN, "resolve: done");
	sketch_say(d->s, &f->lines, SVG_NOTE, "by a person");
	f = add_arrow(d, unknown, failed, COURSE_DOWN, "resolve: not done");
	sketch_say(d->s, &f->lines, SVG_NOTE, "by a person; returned");
	f = add_arrow(d, succeeded, accepted, COURSE_DOWN, "accept");
	sketch_say(d->s, &f->lines, SVG_NOTE, "by a caller");
	sketch_say(d->s, &f->lines, SVG_NOTE, "no cancel takes it away");
}

/* The status that it ends in. */
static size_t draw_cancel(const struct drawing *d)
{
	size_t any = add_status(d, LOOK_PLAIN, "any item, undecided");
	size_t cancelled = add_status(d, LOOK_TERMINAL, "cancelled");
	struct figure *f = add_arrow(d, any, cancelled, COURSE_DOWN, "cancel of the batch");

	f->claim = "CANCELLING";
	sketch_say(d->s, &f->lines, SVG_NOTE, "from then on none is begun");
	sketch_say(d->s, &f->behind, SVG_NOTE,
		   d->d->item_action->void_action ? "1. its key is voided, where in doubt"
						  : "1. (no void: a late effect is only seen)");
	if (d->d->item_action->void_action)
		sketch_say_action(d->s, &f->behind, d->d->item_action->void_action);
	sketch_say(d->s, &f->behind, SVG_NOTE, "2. what it is charged is refunded");
	sketch_say(d->s, &f->behind, SVG_NOTE,
		   d->d->cleanup_action ? "3. what it has left is deleted" : "3. (nothing to clean up)");
	if (d->d->cleanup_action)
		sketch_say_action(d->s, &f->behind, d->d->cleanup_action);
	return cancelled;
}

/* In the same column, and where the item has a status too. */
static void draw_end(const struct drawing *d, size_t above)
{
	size_t all = add_status(d, LOOK_PLAIN, "all items ended or cancelled");
	size_t over = add_status(d, LOOK_TERMINAL, "COMPLETED or CANCELLED");
	struct figure *f = add_arrow(d, all, over, COURSE_DOWN, "end of the batch");

	d->s->layout.nodes[all].rank = END_RANK;
	sketch_link(d->s, above, all, LAYOUT_DOWN, (struct link){.look = LINK_HIDDEN});
	sketch_say(d->s, &f->lines, SVG_NOTE, "one of the two, with the final totals");
	for (size_t i = 0; i < d->d->after_effects_n; i++)
		sketch_say_action(d->s, &f->tags, d->d->after_effects[i]);
}

bool sketch_batch(const struct batch_definition *definition, struct arena *arena, struct sketch *s)
{
	const struct drawing d = {definition, s};

	if (!sketch_init(s, arena, FIGURES_MAX, LINKS_MAX))
		return false;
	draw_item(&d);
	draw_end(&d, draw_cancel(&d));
	return true;
}
