/* The sketch in its places, as SVG: ways first, figures over them. See graph_sketch.h. */
#include "model/graph_sketch.h"

#define RADIUS 7
#define BASE_LINE 12 /* of a line of words, from its top */

struct painter {
	const struct sketch *s;
	struct strbuf *out;
};

/* ---- ways ---- */

static const char *line_paint(enum link_look look)
{
	return look == LINK_REVERT ? "fill=\"none\" stroke=\"" SVG_REVERT "\" stroke-dasharray=\"4 3\""
				   : "fill=\"none\" stroke=\"" SVG_LINE "\" stroke-width=\"1.5\"";
}

static const char *line_colour(enum link_look look)
{
	return look == LINK_REVERT ? SVG_REVERT : SVG_LINE;
}

static void add_line(struct strbuf *out, int x, int from_y, int to_y, enum link_look look)
{
	strbuf_addf(out, "<path d=\"M%d %dV%d\" %s/>\n", x, from_y, to_y, line_paint(look));
}

/* From above to below, whichever way it is gone: bends in the gaps, straight through the ranks. */
static void paint_link(const struct painter *p, size_t i)
{
	const struct layout *l = &p->s->layout;
	const struct layout_edge *e = &l->edges[i];
	const struct link *link = &p->s->links[i];
	const struct layout_node *upper = &l->nodes[e->way == LAYOUT_UP ? e->to : e->from];
	const struct layout_node *lower = &l->nodes[e->way == LAYOUT_UP ? e->from : e->to];
	const struct layout_segment *s = &l->segments[e->first];

	strbuf_addf(p->out, "<path d=\"M%d %d", s->upper_x, upper->y + upper->height);
	for (size_t k = 0; k < e->n; k++, s++) {
		int from_y = l->rank_bottom[upper->rank + (int)k], to_y = l->rank_top[upper->rank + (int)k + 1];

		if (s->upper_x != s->lower_x)
			strbuf_addf(p->out, "V%dC%d %d %d %d %d %d", from_y, s->upper_x, (from_y + to_y) / 2,
				    s->lower_x, (from_y + to_y) / 2, s->lower_x, to_y);
	}
	strbuf_addf(p->out, "V%d\" %s/>\n", lower->y, line_paint(link->look));
	if (link->head && e->way == LAYOUT_UP)
		svg_head(p->out, l->segments[e->first].upper_x, upper->y + upper->height, SVG_UP,
			 line_colour(link->look));
	else if (link->head)
		svg_head(p->out, s[-1].lower_x, lower->y, SVG_DOWN, line_colour(link->look));
}

/* ---- words ---- */

static void paint_line(const struct painter *p, int x, int y, const struct figure_line *line)
{
	svg_text(p->out, x, y, line->face, line->text);
	if (line->note)
		svg_text(p->out, x + figure_note_dx(line), y, SVG_NOTE, line->note);
}

static void paint_lines(const struct painter *p, int x, int y, const struct figure_lines *lines)
{
	for (const struct figure_line *line = lines->first; line; line = line->next, y += FIGURE_LINE_HEIGHT)
		paint_line(p, x, y + BASE_LINE, line);
}

/* Tags at x, each with a dotted way to it from from_x. */
static void paint_tags(const struct painter *p, int from_x, int x, int y, const struct figure_lines *tags)
{
	for (const struct figure_line *tag = tags->first; tag; tag = tag->next, y += FIGURE_TAG_STEP) {
		int middle = y + FIGURE_TAG_HEIGHT / 2;

		strbuf_addf(p->out,
			    "<path d=\"M%d %dH%d\" fill=\"none\" stroke=\"" SVG_EFFECT
			    "\" stroke-dasharray=\"2 2\"/>\n",
			    from_x, middle, x);
		svg_head(p->out, x, middle, SVG_RIGHT, SVG_EFFECT);
		svg_box(p->out, x, y, figure_tag_width(tag), FIGURE_TAG_HEIGHT, FIGURE_TAG_HEIGHT / 2, SVG_TAG);
		paint_line(p, x + FIGURE_TAG_PADDING, middle + 4, tag);
	}
}

/* ---- statuses ---- */

static const char *status_paint(enum figure_look look)
{
	switch (look) {
	case LOOK_INITIAL:
		return SVG_BEGIN " stroke-width=\"1.5\"";
	case LOOK_TERMINAL:
		return SVG_END;
	case LOOK_CLAIM:
		return SVG_CLAIM;
	case LOOK_STRAY:
		return SVG_STRAY;
	default:
		return SVG_PLAIN;
	}
}

static void paint_status(const struct painter *p, const struct figure *f, int x, int y)
{
	int left = x + f->box_dx, middle = y + FIGURE_STATUS_HEIGHT / 2;
	int radius = f->look == LOOK_CLAIM ? FIGURE_STATUS_HEIGHT / 2 : RADIUS;

	if (f->look == LOOK_INITIAL) {
		strbuf_addf(p->out, "<circle cx=\"%d\" cy=\"%d\" r=\"6\" fill=\"" SVG_LINE "\"/>\n", x + 6, middle);
		strbuf_addf(p->out, "<path d=\"M%d %dH%d\" %s/>\n", x + 6, middle, left - 2, line_paint(LINK_MAIN));
		svg_head(p->out, left, middle, SVG_RIGHT, SVG_LINE);
	}
	svg_box(p->out, left, y, f->box_width, FIGURE_STATUS_HEIGHT, radius, status_paint(f->look));
	if (f->look == LOOK_TERMINAL)
		svg_box(p->out, left + 3, y + 3, f->box_width - 6, FIGURE_STATUS_HEIGHT - 6, RADIUS - 3, SVG_END_INNER);
	svg_text_middle(p->out, left + f->box_width / 2, middle + 5, SVG_NAME, f->name);
}

/* ---- arrows ---- */

/* Where the way of an arrow leads when its link is not drawn. */
static void paint_leads(const struct painter *p, const struct figure *f, int x, int y)
{
	int top = y + f->leads_y, width = svg_text_width(f->leads_to, SVG_NAME) + 2 * FIGURE_TAG_PADDING;

	if (f->course == COURSE_UP)
		svg_head(p->out, x + f->main_dx, top + FIGURE_TAG_HEIGHT, SVG_UP, SVG_LINE);
	else
		svg_head(p->out, x + f->main_dx, top, SVG_DOWN, SVG_LINE);
	svg_box(p->out, x + f->main_dx - 8, top, width, FIGURE_TAG_HEIGHT, 3, SVG_STRAY);
	svg_text(p->out, x + f->main_dx - 8 + FIGURE_TAG_PADDING, top + 15, SVG_NAME, f->leads_to);
}

static void paint_claim(const struct painter *p, const struct figure *f, int x, int y)
{
	int top = y + f->claim_y;

	svg_box(p->out, x + f->box_dx, top, f->box_width, FIGURE_CLAIM_HEIGHT, FIGURE_CLAIM_HEIGHT / 2, SVG_CLAIM);
	svg_text_middle(p->out, x + f->box_dx + f->box_width / 2, top + 19, SVG_NAME, f->claim);
	if (f->course == COURSE_UP)
		svg_head(p->out, x + f->main_dx, top + FIGURE_CLAIM_HEIGHT, SVG_UP, SVG_LINE);
	else
		svg_head(p->out, x + f->main_dx, top, SVG_DOWN, SVG_LINE);
}

static void paint_loop(const struct painter *p, const struct figure *f, int x, int top, int bottom)
{
	int turn = bottom - FIGURE_LOOP_HEIGHT;

	strbuf_addf(p->out, "<path d=\"M%d %dC%d %d %d %d %d %dV%d\" %s/>\n", x + f->main_dx, turn, x + f->main_dx,
		    bottom + 4, x + f->loop_dx, bottom + 4, x + f->loop_dx, turn, top, line_paint(LINK_MAIN));
}

static void paint_arrow(const struct painter *p, const struct figure *f, const struct layout_node *node)
{
	int x = node->x, top = node->y, bottom = node->y + node->height, from = top, to = bottom;

	if (f->leads_to && f->course == COURSE_UP)
		from = top + f->leads_y + FIGURE_TAG_HEIGHT;
	else if (f->leads_to)
		to = top + f->leads_y;
	else if (f->course == COURSE_LOOP)
		to = bottom - FIGURE_LOOP_HEIGHT;
	add_line(p->out, x + f->main_dx, from, to, LINK_MAIN);
	if (f->course == COURSE_LOOP)
		paint_loop(p, f, x, top, bottom);
	if (f->course == COURSE_BLOCKED)
		strbuf_addf(p->out, "<path d=\"M%d %dH%d\" %s/>\n", x, bottom, x + 2 * f->main_dx,
			    line_paint(LINK_MAIN));
	if (f->claim)
		paint_claim(p, f, x, top);
	if (f->leads_to)
		paint_leads(p, f, x, top);
	svg_text(p->out, x + f->text_dx, top + f->lines_y + BASE_LINE, SVG_NAME, f->name);
	paint_lines(p, x + f->text_dx, top + f->lines_y + FIGURE_LINE_HEIGHT, &f->lines);
	paint_lines(p, x + f->text_dx, top + f->behind_y, &f->behind);
	paint_tags(p, x + f->main_dx, x + f->text_dx + 4, top + f->tags_y, &f->tags);
}

/* The way back, inside of the arrow: from its claim to the side where the link goes on. */
static void paint_revert(const struct painter *p, const struct layout_edge *e)
{
	const struct figure *f = &p->s->figures[e->from];
	const struct layout_node *node = &p->s->layout.nodes[e->from];
	int claim = node->y + f->claim_y;

	if (e->way == LAYOUT_UP)
		add_line(p->out, node->x + f->revert_dx, node->y, claim, LINK_REVERT);
	else
		add_line(p->out, node->x + f->revert_dx, claim + FIGURE_CLAIM_HEIGHT, node->y + node->height,
			 LINK_REVERT);
}

/* ---- cards ---- */

/* Eighteen pixels square, at (x, y). */
static void paint_sign(const struct painter *p, enum figure_look look, int x, int y)
{
	static const char *const signs[] = {
		[LOOK_TASK] = "<path d=\"M3 2L15 9L3 16Z\" fill=\"#2f5fb3\"/>",
		[LOOK_WAIT] =
			"<path d=\"M9 1A8 8 0 1 0 9 17A8 8 0 1 0 9 1M9 4V9L13 11\" fill=\"none\" stroke=\"" SVG_LINE
			"\" stroke-width=\"1.5\"/>",
		[LOOK_EVENT] = "<path d=\"M1 4H17V15H1ZM1 4L9 10L17 4\" fill=\"none\" stroke=\"" SVG_LINE
			       "\" stroke-width=\"1.5\"/>",
		[LOOK_APPROVAL] =
			"<path d=\"M9 1A4 4 0 1 0 9 9A4 4 0 1 0 9 1M1 18C1 8 17 8 17 18Z\" fill=\"#2b7a42\"/>",
		[LOOK_CHILD] = "<path d=\"M2 2H12V12H2ZM6 12V16H16V6H12\" fill=\"none\" stroke=\"#2f5fb3\""
			       " stroke-width=\"1.5\"/>",
	};

	strbuf_addf(p->out, "<g transform=\"translate(%d %d)\">%s</g>\n", x, y, signs[look]);
}

static void paint_fork(const struct painter *p, int x, int y, const char *word)
{
	int width = svg_text_width(word, SVG_NOTE) + 16;

	svg_box(p->out, x - width / 2, y - FIGURE_FORK_HEIGHT, width, FIGURE_FORK_HEIGHT, 4, SVG_PAPER);
	svg_text_middle(p->out, x, y - 6, SVG_NOTE, word);
}

static void paint_condition(const struct painter *p, const struct figure *f, const struct layout_node *node)
{
	int x = node->x, y = node->y, width = f->box_width, bottom = node->height - FIGURE_FORK_HEIGHT / 2;

	strbuf_addf(p->out, "<path d=\"M%d %dH%dL%d %dL%d %dH%dL%d %dZ\" fill=\"#fdf6e7\" stroke=\"" SVG_LINE "\"/>\n",
		    x + 18, y, x + width - 18, x + width, y + bottom / 2, x + width - 18, y + bottom, x + 18, x,
		    y + bottom / 2);
	paint_fork(p, x + f->main_dx - FIGURE_FORK_DX, y + node->height, "then");
	paint_fork(p, x + f->main_dx + FIGURE_FORK_DX, y + node->height, "else");
}

static void paint_card(const struct painter *p, const struct figure *f, const struct layout_node *node)
{
	int x = node->x, y = node->y;

	if (f->look == LOOK_CONDITION)
		paint_condition(p, f, node);
	else
		svg_box(p->out, x, y, f->box_width, node->height, RADIUS,
			f->look >= LOOK_TASK ? SVG_PAPER : status_paint(f->look));
	if (f->look == LOOK_TERMINAL)
		svg_box(p->out, x + 3, y + 3, f->box_width - 6, node->height - 6, RADIUS - 3, SVG_END_INNER);
	if (f->look >= LOOK_TASK && f->look != LOOK_CONDITION)
		paint_sign(p, f->look, x + 10, y + 7);
	paint_line(p, x + f->text_dx, y + f->lines_y + BASE_LINE,
		   &(struct figure_line){.face = SVG_NAME, .text = f->name, .note = f->note});
	paint_lines(p, x + f->text_dx, y + f->lines_y + FIGURE_LINE_HEIGHT, &f->lines);
	paint_tags(p, x + f->box_width, x + f->box_width + FIGURE_TAG_GAP, y + f->tags_y, &f->tags);
}

void sketch_paint(const struct sketch *s, struct strbuf *out)
{
	const struct painter p = {s, out};

	for (size_t i = 0; i < s->layout.edges_n; i++)
		if (s->links[i].look != LINK_HIDDEN && !s->layout.edges[i].cut)
			paint_link(&p, i);
	for (size_t i = 0; i < s->layout.edges_n; i++)
		if (s->links[i].look == LINK_REVERT && !s->layout.edges[i].cut)
			paint_revert(&p, &s->layout.edges[i]);
	for (size_t i = 0; i < s->layout.nodes_n; i++) {
		const struct layout_node *node = &s->layout.nodes[i];

		if (s->figures[i].shape == FIGURE_STATUS)
			paint_status(&p, &s->figures[i], node->x, node->y);
		else if (s->figures[i].shape == FIGURE_ARROW)
			paint_arrow(&p, &s->figures[i], node);
		else
			paint_card(&p, &s->figures[i], node);
	}
}
