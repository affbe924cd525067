/* See graph_sketch.h: building a sketch, and how much room its figures take. */
#include "model/graph_sketch.h"

#include <inttypes.h>

#include "base/duration.h"
#include "model/text.h"

#define STATUS_WIDTH_MIN 96
#define STATUS_PADDING 18
#define PORT_MARGIN 16
#define PORT_ROOM 14 /* a status is so much wider for each way that touches it */
#define ARROW_PADDING 3
#define CARD_PADDING 11
#define CARD_SIGN_WIDTH 26
#define CARD_POINT_WIDTH 18
#define CONDITION_WIDTH_MIN 190
#define NOTE_GAP 8

bool sketch_init(struct sketch *s, struct arena *arena, size_t figures_max, size_t links_max)
{
	*s = (struct sketch){.layout = {.arena = arena}, .figures_max = figures_max, .links_max = links_max};
	s->figures = arena_zalloc(arena, figures_max * sizeof *s->figures);
	s->links = arena_zalloc(arena, links_max * sizeof *s->links);
	s->layout.nodes = arena_zalloc(arena, figures_max * sizeof *s->layout.nodes);
	s->layout.edges = arena_zalloc(arena, links_max * sizeof *s->layout.edges);
	return !arena->failed;
}

size_t sketch_add(struct sketch *s, enum figure_shape shape, enum figure_look look, const char *name)
{
	size_t i = s->layout.nodes_n++;
	struct figure *f = &s->figures[i];

	ASSERT(i < s->figures_max);
	*f = (struct figure){.shape = shape, .look = look, .name = name};
	f->lines.last = &f->lines.first;
	f->behind.last = &f->behind.first;
	f->tags.last = &f->tags.first;
	return i;
}

void sketch_link(struct sketch *s, size_t from, size_t to, enum layout_way way, struct link link)
{
	size_t i = s->layout.edges_n++;

	ASSERT(i < s->links_max);
	s->links[i] = link;
	s->layout.edges[i] = (struct layout_edge){.from = from, .to = to, .way = way};
}

static struct figure_line *add_line(struct sketch *s, struct figure_lines *lines, enum svg_face face, const char *text)
{
	struct figure_line *line = text ? arena_alloc(s->layout.arena, sizeof *line) : NULL;

	if (!line)
		return NULL;
	*line = (struct figure_line){.face = face, .text = text};
	*lines->last = line;
	lines->last = &line->next;
	lines->n++;
	return line;
}

void sketch_say(struct sketch *s, struct figure_lines *lines, enum svg_face face, const char *format, ...)
{
	const char *text;
	va_list args;

	va_start(args, format);
	text = text_vprintf(s->layout.arena, format, args);
	va_end(args);
	(void)add_line(s, lines, face, text); /* the arena remembers that it failed */
}

void sketch_say_action(struct sketch *s, struct figure_lines *lines, const struct action *action)
{
	struct figure_line *line = add_line(s, lines, SVG_TEXT, action->name);

	if (line)
		line->note = text_printf(s->layout.arena, "%s, %s", action_kind_name(action->kind),
					 action_effect_name(action->effect));
}

void sketch_say_unknown(struct sketch *s, struct figure_lines *lines, const struct action *action,
			enum on_unknown on_unknown)
{
	static const char *const names[] = {[UNKNOWN_REVERT] = "revert",
					    [UNKNOWN_RETRY] = "try again, same key",
					    [UNKNOWN_PROBE] = "ask",
					    [UNKNOWN_HOLD] = "hold for a person"};

	if (!action_is_outside(action))
		return;
	sketch_say(s, lines, SVG_NOTE, "if unknown: %s", names[on_unknown]);
	if (on_unknown == UNKNOWN_PROBE)
		sketch_say_action(s, lines, action->probe);
}

void sketch_say_retry(struct sketch *s, struct figure_lines *lines, const struct run_retry *retry)
{
	if (retry->max_attempts == 1)
		sketch_say(s, lines, SVG_NOTE, "one attempt");
	else
		sketch_say(s, lines, SVG_NOTE, "%" PRId64 " attempts, %s to %s apart", retry->max_attempts,
			   duration_text(retry->initial_ms).text, duration_text(retry->max_ms).text);
}

/* ---- sizes ---- */

static int max_of(int a, int b)
{
	return a > b ? a : b;
}

int figure_note_dx(const struct figure_line *line)
{
	return svg_text_width(line->text, line->face) + NOTE_GAP;
}

static int figure_line_width(const struct figure_line *line)
{
	return line->note ? figure_note_dx(line) + svg_text_width(line->note, SVG_NOTE)
			  : svg_text_width(line->text, line->face);
}

int figure_tag_width(const struct figure_line *tag)
{
	return figure_line_width(tag) + 2 * FIGURE_TAG_PADDING;
}

static int lines_width(const struct figure_lines *lines)
{
	int width = 0;

	for (const struct figure_line *line = lines->first; line; line = line->next)
		width = max_of(width, figure_line_width(line));
	return width;
}

static void measure_status(struct figure *f, struct layout_node *node, int ways)
{
	int width = svg_text_width(f->name, SVG_NAME) + 2 * STATUS_PADDING;

	f->box_dx = f->look == LOOK_INITIAL ? FIGURE_DOT_WIDTH : 0;
	f->box_width = max_of(max_of(width, STATUS_WIDTH_MIN), 2 * PORT_MARGIN + ways * PORT_ROOM);
	node->width = f->box_dx + f->box_width;
	node->height = FIGURE_STATUS_HEIGHT;
	node->align = LAYOUT_MIDDLE;
	node->ports_from = f->box_dx + PORT_MARGIN;
	node->ports_to = node->width - PORT_MARGIN;
}

/* One part of an arrow below the other, in the order of the way; *y moves on. */
static void stack_lines(struct figure *f, int *y)
{
	f->lines_y = *y;
	*y += FIGURE_LINE_HEIGHT * (f->lines.n + 1);
}

static void stack_claim(struct figure *f, int *y)
{
	f->claim_y = *y + 10;
	*y += f->claim ? FIGURE_CLAIM_HEIGHT + 18 : 0;
}

static void stack_behind(struct figure *f, int *y)
{
	f->behind_y = *y;
	*y += FIGURE_LINE_HEIGHT * f->behind.n;
}

static void stack_tags(struct figure *f, int *y)
{
	f->tags_y = *y + 4;
	*y += f->tags.n ? FIGURE_TAG_STEP * f->tags.n + 4 : 0;
}

static void stack_leads(struct figure *f, int *y)
{
	f->leads_y = *y + (f->course == COURSE_UP ? 0 : 12);
	*y += f->leads_to ? FIGURE_TAG_HEIGHT + 14 : 0;
}

/* Against the way where that goes up through a claim; without one, all words are read from above. */
static int stack(struct figure *f)
{
	typedef void stack_fn(struct figure *, int *);
	enum { PARTS = 5 };
	static stack_fn *const down[PARTS] = {stack_lines, stack_claim, stack_behind, stack_tags, stack_leads};
	static stack_fn *const up[PARTS] = {stack_leads, stack_tags, stack_behind, stack_claim, stack_lines};
	static stack_fn *const up_unclaimed[PARTS] = {stack_leads, stack_lines, stack_claim, stack_behind, stack_tags};
	stack_fn *const *parts = f->course != COURSE_UP ? down : f->claim ? up : up_unclaimed;
	int y = ARROW_PADDING;

	for (int i = 0; i < PARTS; i++)
		parts[i](f, &y);
	return y + ARROW_PADDING + (f->course == COURSE_LOOP ? FIGURE_LOOP_HEIGHT : 0);
}

static void measure_arrow(struct figure *f, struct layout_node *node)
{
	int claim = f->claim ? svg_text_width(f->claim, SVG_NAME) + 2 * STATUS_PADDING : 0;
	int leads = f->leads_to ? svg_text_width(f->leads_to, SVG_NAME) + 2 * FIGURE_TAG_PADDING : 0;
	int words = max_of(svg_text_width(f->name, SVG_NAME), max_of(lines_width(&f->lines), lines_width(&f->behind)));
	int tags = f->tags.n ? lines_width(&f->tags) + 2 * FIGURE_TAG_PADDING + 4 : 0;

	f->loop_dx = 4;
	f->box_dx = f->course == COURSE_LOOP ? 18 : 0;
	f->box_width = max_of(claim, f->claim ? STATUS_WIDTH_MIN : 0);
	f->revert_dx = f->box_dx + 14;
	f->main_dx = f->box_dx + (f->claim ? 34 : 8);
	f->text_dx = f->main_dx + 12;
	node->width = max_of(f->text_dx + max_of(words, max_of(tags, leads)), f->box_dx + f->box_width);
	node->height = stack(f);
	node->align = f->course == COURSE_UP ? LAYOUT_BOTTOM : LAYOUT_TOP;
	node->ports_from = node->ports_to = f->main_dx;
}

static void measure_card(struct figure *f, struct layout_node *node)
{
	bool forks = f->look == LOOK_CONDITION;
	const struct figure_line name = {.face = SVG_NAME, .text = f->name, .note = f->note};
	int words = max_of(figure_line_width(&name), lines_width(&f->lines));

	f->text_dx = forks ? CARD_POINT_WIDTH + 8 : CARD_PADDING + (f->look >= LOOK_TASK ? CARD_SIGN_WIDTH : 0);
	f->box_width = f->text_dx + words + (forks ? CARD_POINT_WIDTH + 8 : CARD_PADDING + 4);
	f->box_width = max_of(f->box_width, forks ? CONDITION_WIDTH_MIN : STATUS_WIDTH_MIN);
	f->main_dx = f->box_width / 2;
	f->lines_y = CARD_PADDING - 2;
	f->tags_y = CARD_PADDING;
	node->width = f->box_width;
	if (f->tags.n)
		node->width += FIGURE_TAG_GAP + lines_width(&f->tags) + 2 * FIGURE_TAG_PADDING;
	node->height = 2 * CARD_PADDING - 2 +
		       max_of(FIGURE_LINE_HEIGHT * (f->lines.n + 1), FIGURE_TAG_STEP * f->tags.n - 4) +
		       (forks ? FIGURE_FORK_HEIGHT : 0);
	node->align = LAYOUT_MIDDLE;
	node->ports_from = PORT_MARGIN + 8;
	node->ports_to = f->box_width - PORT_MARGIN - 8;
}

static int port_dx(const struct figure *f, enum link_port port)
{
	switch (port) {
	case PORT_ANYWHERE:
		break;
	case PORT_MAIN:
		return f->main_dx;
	case PORT_REVERT:
		return f->revert_dx;
	case PORT_LOOP:
		return f->loop_dx;
	case PORT_THEN:
		return f->main_dx - FIGURE_FORK_DX;
	case PORT_ELSE:
		return f->main_dx + FIGURE_FORK_DX;
	}
	return LAYOUT_ANYWHERE;
}

/* How many ways touch the busier side of each figure: *ret_ways has two counts for each, above and below. */
static bool count_ways(const struct sketch *s, int **ret_ways)
{
	int *ways = arena_zalloc(s->layout.arena, s->layout.nodes_n * 2 * sizeof *ways);

	for (size_t i = 0; ways && i < s->layout.edges_n; i++) {
		const struct layout_edge *e = &s->layout.edges[i];

		if (e->cut || s->links[i].look == LINK_HIDDEN)
			continue;
		ways[e->from * 2 + (e->way == LAYOUT_DOWN)]++;
		ways[e->to * 2 + (e->way == LAYOUT_UP)]++;
	}
	*ret_ways = ways;
	return ways != NULL;
}

/* Where a way that is not drawn leads is said instead. */
static void tell_cut_ones(struct sketch *s)
{
	for (size_t i = 0; i < s->layout.edges_n; i++) {
		const struct layout_edge *e = &s->layout.edges[i];
		struct figure *from = &s->figures[e->from];
		const char *to = s->figures[e->to].name;

		if (!e->cut || s->links[i].look == LINK_HIDDEN)
			continue;
		if (from->shape == FIGURE_ARROW && s->links[i].look == LINK_MAIN)
			from->leads_to = to;
		else
			sketch_say(s, &from->lines, SVG_NOTE, "%s %s", s->links[i].word ? s->links[i].word : "to", to);
	}
}

bool sketch_lay_out(struct sketch *s)
{
	int *ways;

	if (!layout_rank(&s->layout) || !count_ways(s, &ways))
		return false;
	tell_cut_ones(s);
	for (size_t i = 0; i < s->layout.nodes_n; i++) {
		struct figure *f = &s->figures[i];
		struct layout_node *node = &s->layout.nodes[i];

		if (f->shape == FIGURE_STATUS)
			measure_status(f, node, max_of(ways[2 * i], ways[2 * i + 1]));
		else if (f->shape == FIGURE_ARROW)
			measure_arrow(f, node);
		else
			measure_card(f, node);
	}
	for (size_t i = 0; i < s->layout.edges_n; i++) {
		struct layout_edge *e = &s->layout.edges[i];

		e->from_dx = port_dx(&s->figures[e->from], s->links[i].from_port);
		e->to_dx = port_dx(&s->figures[e->to], s->links[i].to_port);
	}
	return !s->layout.arena->failed && layout_place(&s->layout);
}
