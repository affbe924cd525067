/*
 * A definition of kind run as a sketch: a card for each step, one below the other, from a dot to the end. A condition has
 * two ways, both of them down. What undoes a step hangs off its card.
 */
#include "base/duration.h"
#include "base/utf8.h"
#include "model/expression_tree.h"
#include "model/graph_sketch.h"
#include "model/run_definition.h"

#define EXPRESSION_COLUMNS 44
#define EXPRESSION_LINES 3
#define PART_BYTES_MAX 200

struct drawing {
	const struct run_definition *d;
	struct sketch *s;
	bool *reached; /* steps, and the end */
};

/* ---- words ---- */

/* As much as goes on a line, up to a blank if there is one late enough; the blank is dropped. */
static struct slice take_line(struct slice *rest)
{
	struct slice line = *rest;
	size_t taken;

	if (line.n > EXPRESSION_COLUMNS)
		line.n = utf8_cut(slice_of(rest->p, EXPRESSION_COLUMNS));
	taken = line.n;
	for (size_t n = line.n; n > line.n / 2 && taken < rest->n; n--)
		if (rest->p[n - 1] == ' ') {
			taken = n;
			line.n = n - 1;
			break;
		}
	*rest = slice_of(rest->p + taken, rest->n - taken);
	return line;
}

/* "input: {sku: .input.sku}", on a few lines; what is longer ends with "…". */
static void say_expression(const struct drawing *d, struct figure *f, const char *what, const struct expression *e)
{
	struct slice rest = e->text;

	for (int n = 1; rest.n > 0 && n <= EXPRESSION_LINES; n++) {
		struct slice line = take_line(&rest);

		sketch_say(d->s, &f->lines, SVG_CODE, "%s%.*s%s", n == 1 ? what : "", SLICE_ARGS(line),
			   rest.n > 0 && n == EXPRESSION_LINES ? "…" : "");
	}
}

/* "within 24h, or the run fails" */
static void say_timeout(const struct drawing *d, struct figure *f, const struct run_step *step)
{
	if (step->timeout_ms > 0)
		sketch_say(d->s, &f->lines, SVG_NOTE,
			   step->goes_on_timed_out ? "within %s, or it goes on without" : "within %s, or it fails",
			   duration_text(step->timeout_ms).text);
}

static void say_task(const struct drawing *d, struct figure *f, const struct run_step *step)
{
	sketch_say_action(d->s, &f->lines, step->action);
	sketch_say_retry(d->s, &f->lines, &step->retry);
	sketch_say_unknown(d->s, &f->lines, step->action, step->on_unknown);
	if (step->input)
		say_expression(d, f, "input: ", step->input);
	if (step->compensate)
		sketch_say_action(d->s, &f->tags, step->compensate);
}

static void say_wait(const struct drawing *d, struct figure *f, const struct run_step *step)
{
	if (step->until)
		say_expression(d, f, "until: ", step->until);
	else
		sketch_say(d->s, &f->lines, SVG_TEXT, "for %s", duration_text(step->for_ms).text);
	say_timeout(d, f, step);
}

/* "pack: pick, box" */
static void say_part(const struct drawing *d, struct figure *f, const struct run_part *part)
{
	LOCAL_STRBUF(text, PART_BYTES_MAX);

	for (size_t i = 0; i < part->definition->steps_n; i++)
		strbuf_addf(&text, "%s%s", i ? ", " : "", part->definition->steps[i].name);
	sketch_say(d->s, &f->lines, SVG_TEXT, "%s%s%s%s", part->branch ? part->branch : "", part->branch ? ": " : "",
		   text.p ? text.p : "", text.failed ? "…" : "");
}

static void say_map(const struct drawing *d, struct figure *f, const struct run_step *step)
{
	say_expression(d, f, "over: ", step->over);
	if (step->workflow)
		sketch_say(d->s, &f->lines, SVG_TEXT, "runs %s for each", step->workflow);
	else
		sketch_say_action(d->s, &f->lines, step->parts[0].definition->steps[0].action);
	sketch_say(d->s, &f->lines, SVG_NOTE, "%lld at a time, %s", (long long)step->concurrency,
		   step->collects ? "failures are collected" : "one that fails ends it");
}

static void say_repeat(const struct drawing *d, struct figure *f, const struct run_step *step)
{
	say_part(d, f, &step->parts[0]);
	say_expression(d, f, "until: ", step->until);
	sketch_say(d->s, &f->lines, SVG_NOTE, "at most %lld times%s%s", (long long)step->iterations_max,
		   step->every_ms ? ", every " : "", step->every_ms ? duration_text(step->every_ms).text : "");
}

static void say_parallel(const struct drawing *d, struct figure *f, const struct run_step *step)
{
	for (size_t i = 0; i < step->parts_n; i++)
		say_part(d, f, &step->parts[i]);
	sketch_say(d->s, &f->lines, SVG_NOTE, step->joins_any ? "the first that is done counts" : "all of them");
}

static void say_step(const struct drawing *d, struct figure *f, const struct run_step *step)
{
	switch (step->type) {
	case RUN_TASK:
		say_task(d, f, step);
		break;
	case RUN_WAIT:
		say_wait(d, f, step);
		break;
	case RUN_EXTERNAL_EVENT:
		sketch_say(d->s, &f->lines, SVG_TEXT, "event %s", step->event);
		say_timeout(d, f, step);
		break;
	case RUN_APPROVAL:
		sketch_say(d->s, &f->lines, SVG_TEXT, "a person approves");
		sketch_say(d->s, &f->lines, SVG_NOTE, "a rejection fails the run");
		say_timeout(d, f, step);
		break;
	case RUN_CONDITION:
		say_expression(d, f, "when: ", step->when);
		break;
	case RUN_CHILD:
		sketch_say(d->s, &f->lines, SVG_TEXT, "runs %s", step->workflow);
		if (step->input)
			say_expression(d, f, "input: ", step->input);
		break;
	case RUN_MAP:
		say_map(d, f, step);
		break;
	case RUN_PARALLEL:
		say_parallel(d, f, step);
		break;
	case RUN_REPEAT:
		say_repeat(d, f, step);
		break;
	}
	if (step->save_as)
		sketch_say(d->s, &f->lines, SVG_NOTE, "saved as .state.%s", step->save_as);
	if (!d->reached[step->position])
		sketch_say(d->s, &f->lines, SVG_NOTE, "nothing leads here");
}

/* ---- figures ---- */

enum { START, FIRST_STEP };

static void find_reached(const struct drawing *d)
{
	d->reached[0] = true;
	for (size_t i = 0; i < d->d->steps_n; i++) {
		const struct run_step *step = &d->d->steps[i];
		bool chooses = step->type == RUN_CONDITION;

		if (!d->reached[i])
			continue;
		d->reached[chooses ? step->then_position : i + 1] = true;
		d->reached[chooses ? step->else_position : i + 1] = true;
	}
}

#define LOOK_OF(type, name, look) look,

static void add_step(const struct drawing *d, const struct run_step *step)
{
	static const enum figure_look looks[] = {RUN_STEP_TYPES(LOOK_OF)};
	size_t figure = sketch_add(d->s, FIGURE_CARD, looks[step->type], step->name);

	d->s->figures[figure].note = run_step_type_name(step->type);
	say_step(d, &d->s->figures[figure], step);
}

static void link_step(const struct drawing *d, const struct run_step *step)
{
	const struct link way = {.look = LINK_MAIN, .from_port = PORT_MAIN, .head = true};
	const struct link then = {.look = LINK_MAIN, .from_port = PORT_THEN, .head = true, .word = "then"};
	const struct link otherwise = {.look = LINK_MAIN, .from_port = PORT_ELSE, .head = true, .word = "else"};
	size_t figure = FIRST_STEP + step->position;

	if (step->type == RUN_CONDITION) {
		sketch_link(d->s, figure, FIRST_STEP + step->then_position, LAYOUT_DOWN, then);
		sketch_link(d->s, figure, FIRST_STEP + step->else_position, LAYOUT_DOWN, otherwise);
	} else {
		sketch_link(d->s, figure, figure + 1, LAYOUT_DOWN, way);
	}
	if (!d->reached[step->position]) /* below the one before it, although nothing leads there */
		sketch_link(d->s, figure - 1, figure, LAYOUT_DOWN,
			    (struct link){.look = LINK_HIDDEN, .from_port = PORT_MAIN});
}

/* What the whole run has to expect. */
static void say_whole(const struct drawing *d, struct figure *f)
{
	char text[DURATION_TEXT_BYTES];

	if (d->d->output)
		say_expression(d, f, "output: ", d->d->output);
	duration_format(d->d->timeout_ms, text);
	if (d->d->timeout_ms)
		sketch_say(d->s, &f->lines, SVG_NOTE, "within %s, or it fails", text);
	if (d->d->compensates)
		sketch_say(d->s, &f->lines, SVG_NOTE, "a failure undoes it");
	for (size_t i = 0; i < d->d->failure_effects_n; i++)
		sketch_say(d->s, &f->lines, SVG_NOTE, "a failure is told to %s", d->d->failure_effects[i]->name);
}

bool sketch_run(const struct run_definition *definition, struct arena *arena, struct sketch *s)
{
	struct drawing d = {.d = definition, .s = s};
	size_t end, n = definition->steps_n;

	d.reached = arena_zalloc(arena, (n + 1) * sizeof *d.reached);
	if (!d.reached || !sketch_init(s, arena, n + 2, 3 * n + 1))
		return false;
	find_reached(&d);
	(void)sketch_add(s, FIGURE_STATUS, LOOK_INITIAL, "start");
	for (size_t i = 0; i < n; i++)
		add_step(&d, &definition->steps[i]);
	end = sketch_add(s, FIGURE_CARD, LOOK_TERMINAL, "COMPLETED");
	say_whole(&d, &s->figures[end]);
	sketch_link(s, START, FIRST_STEP, LAYOUT_DOWN, (struct link){.look = LINK_MAIN, .head = true});
	for (size_t i = 0; i < n; i++)
		link_step(&d, &definition->steps[i]);
	return true;
}
