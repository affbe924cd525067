/* See graph_picture.h: the frame around the drawing, that is its title, its legend, and what it leaves out. */
#include "model/graph_picture.h"

#include "base/json_write.h"
#include "model/graph_sketch.h"
#include "model/text.h"

#define ARENA_BYTES_MAX (256u << 20)
#define MARGIN 24
#define TITLE_HEIGHT 60
#define LEGEND_ROW 30
#define LEGEND_GAP 24
#define LEGEND_SIGN 48
#define UNUSED_COLUMNS 100

struct picture {
	const struct definition *d;
	struct sketch sketch;
	struct arena arena;
	const char *subtitle;
	struct figure_lines unused; /* actions that nothing calls */
	int width, height;
};

/* ---- legend ---- */

enum legend {
	LEGEND_INITIAL,
	LEGEND_TERMINAL,
	LEGEND_CLAIM,
	LEGEND_REVERT,
	LEGEND_TAG,
	LEGEND_CUT,
	LEGEND_STRAY,
	LEGENDS
};

static const char *const legend_words[] = {
	[LEGEND_INITIAL] = "where it begins",
	[LEGEND_TERMINAL] = "where it ends",
	[LEGEND_CLAIM] = "claim: one holder at a time",
	[LEGEND_REVERT] = "reverted: it failed, or its holder was lost",
	[LEGEND_TAG] = "after-effect, after the commit",
	[LEGEND_CUT] = "goes on there",
	[LEGEND_STRAY] = "nothing reaches it",
};

static const char *words_of(const struct picture *p, enum legend entry)
{
	return entry == LEGEND_TAG && p->d->run ? "undoes its step on cancel, in reverse order" : legend_words[entry];
}

static bool has_look(const struct picture *p, enum figure_look look)
{
	for (size_t i = 0; i < p->sketch.layout.nodes_n; i++)
		if (p->sketch.figures[i].look == look)
			return true;
	return false;
}

static bool has_legend(const struct picture *p, enum legend entry)
{
	const struct figure *figures = p->sketch.figures;
	bool found = false;

	for (size_t i = 0; i < p->sketch.layout.nodes_n && !found; i++)
		found = (entry == LEGEND_CLAIM && figures[i].claim) || (entry == LEGEND_TAG && figures[i].tags.n > 0) ||
			(entry == LEGEND_CUT && figures[i].leads_to);
	for (size_t i = 0; i < p->sketch.layout.edges_n && !found; i++)
		found = entry == LEGEND_REVERT && p->sketch.links[i].look == LINK_REVERT;
	return found || (entry == LEGEND_INITIAL && has_look(p, LOOK_INITIAL)) ||
	       (entry == LEGEND_TERMINAL && has_look(p, LOOK_TERMINAL)) ||
	       (entry == LEGEND_STRAY && has_look(p, LOOK_STRAY));
}

static void paint_sample(enum legend entry, int x, int y, struct strbuf *out)
{
	const char *const paints[] = {
		[LEGEND_INITIAL] = SVG_BEGIN, [LEGEND_TERMINAL] = SVG_END, [LEGEND_CLAIM] = SVG_CLAIM,
		[LEGEND_TAG] = SVG_TAG,       [LEGEND_CUT] = SVG_STRAY,    [LEGEND_STRAY] = SVG_STRAY};

	if (entry == LEGEND_REVERT) {
		strbuf_addf(out,
			    "<path d=\"M%d %dH%d\" fill=\"none\" stroke=\"" SVG_REVERT
			    "\" stroke-dasharray=\"4 3\"/>\n",
			    x, y, x + LEGEND_SIGN - 12);
		svg_head(out, x + LEGEND_SIGN - 10, y, SVG_RIGHT, SVG_REVERT);
		return;
	}
	svg_box(out, x, y - 8, LEGEND_SIGN - 10, 16, entry == LEGEND_CLAIM || entry == LEGEND_TAG ? 8 : 4,
		paints[entry]);
	if (entry == LEGEND_TERMINAL)
		svg_box(out, x + 2, y - 6, LEGEND_SIGN - 14, 12, 3, SVG_END_INNER);
}

/* One beside the other, on a further row where the picture is narrow; NULL: only how many rows that takes. */
static int lay_legend(const struct picture *p, int y, struct strbuf *out)
{
	int x = MARGIN, rows = 0;

	for (enum legend entry = 0; entry < LEGENDS; entry++) {
		int width = LEGEND_SIGN + svg_text_width(words_of(p, entry), SVG_NOTE);

		if (!has_legend(p, entry))
			continue;
		if (rows == 0 || x + width > p->width - MARGIN) {
			x = MARGIN;
			rows++;
		}
		if (out) {
			paint_sample(entry, x, y + (rows - 1) * LEGEND_ROW, out);
			svg_text(out, x + LEGEND_SIGN, y + (rows - 1) * LEGEND_ROW + 4, SVG_NOTE, words_of(p, entry));
		}
		x += width + LEGEND_GAP;
	}
	return rows;
}

/* ---- what is not in it ---- */

static bool lines_name(const struct figure_lines *lines, const char *name)
{
	for (const struct figure_line *line = lines->first; line; line = line->next)
		if (line->text == name)
			return true;
	return false;
}

/* A figure that calls an action says its name, and not a copy of it. */
static bool is_called(const struct sketch *s, const struct action *action)
{
	for (size_t i = 0; i < s->layout.nodes_n; i++)
		if (lines_name(&s->figures[i].lines, action->name) || lines_name(&s->figures[i].behind, action->name) ||
		    lines_name(&s->figures[i].tags, action->name))
			return true;
	return false;
}

static void say_unused(struct picture *p)
{
	p->unused.last = &p->unused.first;
	LOCAL_STRBUF(line, 4096);
	for (size_t i = 0; i < p->d->actions_n; i++) {
		if (is_called(&p->sketch, &p->d->actions[i]))
			continue;
		strbuf_addf(&line, "%s%s",
			    line.n        ? ", "
			    : p->unused.n ? ""
					  : "Actions that are not called here: ",
			    p->d->actions[i].name);
		if (line.n > UNUSED_COLUMNS) {
			sketch_say(&p->sketch, &p->unused, SVG_NOTE, "%s,", line.p);
			strbuf_reset(&line);
		}
	}
	if (line.n)
		sketch_say(&p->sketch, &p->unused, SVG_NOTE, "%s", line.p);
}

/* ---- the frame ---- */

static bool make_sketch(struct picture *p)
{
	if (p->d->entity)
		return sketch_entity(p->d->entity, &p->arena, &p->sketch);
	if (p->d->run || p->d->function)
		return sketch_run(p->d->run ? p->d->run : p->d->function, &p->arena, &p->sketch);
	return sketch_batch(p->d->batch, &p->arena, &p->sketch);
}

static const char *subtitle_of(struct picture *p)
{
	const struct workflow *w = p->d->entity;

	if (p->d->run)
		return text_printf(&p->arena, "run of %zu steps, module %s", p->d->steps_n, p->d->module);
	if (p->d->function)
		return text_printf(&p->arena, "function, module %s: its steps are code", p->d->module);
	if (p->d->batch)
		return text_printf(&p->arena, "batch, module %s: the life of an item, what a cancel does, the end",
				   p->d->module);
	return text_printf(&p->arena, "entity, module %s%s%s: %zu statuses, %zu steps", w->module,
			   w->table.table ? ", table " : "", w->table.table ? w->table.table : "", w->statuses_n,
			   w->steps_n);
}

static int max_of(int a, int b)
{
	return a > b ? a : b;
}

static void measure(struct picture *p)
{
	int width = max_of(svg_text_width(p->d->name, SVG_TITLE), svg_text_width(p->subtitle, SVG_NOTE));

	for (const struct figure_line *line = p->unused.first; line; line = line->next)
		width = max_of(width, svg_text_width(line->text, SVG_NOTE));
	p->width = max_of(width, p->sketch.layout.width) + 2 * MARGIN;
	p->height = MARGIN + TITLE_HEIGHT + p->sketch.layout.height + MARGIN + lay_legend(p, 0, NULL) * LEGEND_ROW +
		    p->unused.n * FIGURE_LINE_HEIGHT + MARGIN;
}

/* The names of two elements of one page must differ, and that of a definition is unique. */
static void paint_head(const struct picture *p, struct strbuf *out)
{
	const char *name = p->d->name;

	strbuf_addf(out,
		    "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" height=\"%d\" "
		    "viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"hapax-title-",
		    p->width, p->height, p->width, p->height);
	svg_escape(out, slice_str(name));
	strbuf_add_str(out, " hapax-desc-");
	svg_escape(out, slice_str(name));
	strbuf_add_str(out, "\">\n<title id=\"hapax-title-");
	svg_escape(out, slice_str(name));
	strbuf_add_str(out, "\">workflow ");
	svg_escape(out, slice_str(name));
	strbuf_add_str(out, "</title>\n<desc id=\"hapax-desc-");
	svg_escape(out, slice_str(name));
	strbuf_add_str(out, "\">");
	svg_escape(out, slice_str(p->subtitle));
	strbuf_add_str(out, "</desc>\n");
}

static void paint(const struct picture *p, struct strbuf *out)
{
	int y = MARGIN + TITLE_HEIGHT + p->sketch.layout.height + MARGIN + 8;

	paint_head(p, out);
	strbuf_addf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", p->width, p->height);
	strbuf_add_str(out, "<g font-family=\"Verdana, 'DejaVu Sans', sans-serif\" fill=\"#1c2430\">\n");
	svg_text(out, MARGIN, MARGIN + 16, SVG_TITLE, p->d->name);
	svg_text(out, MARGIN, MARGIN + 36, SVG_NOTE, p->subtitle);
	strbuf_addf(out, "<g transform=\"translate(%d %d)\">\n", (p->width - p->sketch.layout.width) / 2,
		    MARGIN + TITLE_HEIGHT);
	sketch_paint(&p->sketch, out);
	strbuf_add_str(out, "</g>\n");
	y += lay_legend(p, y, out) * LEGEND_ROW;
	for (const struct figure_line *line = p->unused.first; line; line = line->next, y += FIGURE_LINE_HEIGHT)
		svg_text(out, MARGIN, y, SVG_NOTE, line->text);
	strbuf_add_str(out, "</g>\n</svg>\n");
}

/* Where the figures are that a status or a step has, and the claims on the way. */
static void place(struct strbuf *out, const char *name, int x, int y, int width, int height)
{
	strbuf_add_str(out, out->n && out->p[out->n - 1] == '[' ? "{" : ",{");
	json_more_word(out, "name", name);
	json_more_int(out, "x", x);
	json_more_int(out, "y", y);
	json_more_int(out, "width", width);
	json_more_int(out, "height", height);
	strbuf_add_char(out, '}');
}

static void tell_places(const struct picture *p, struct strbuf *out)
{
	const struct layout *l = &p->sketch.layout;
	int left = (p->width - l->width) / 2, top = MARGIN + TITLE_HEIGHT;

	strbuf_addf(out, "{\"width\":%d,\"height\":%d,\"places\":[", p->width, p->height);
	for (size_t i = 0; i < l->nodes_n; i++) {
		const struct figure *f = &p->sketch.figures[i];
		int x = left + l->nodes[i].x, y = top + l->nodes[i].y;

		if (f->shape == FIGURE_STATUS)
			place(out, f->name, x + f->box_dx, y, f->box_width, FIGURE_STATUS_HEIGHT);
		else if (f->shape == FIGURE_CARD)
			place(out, f->name, x, y, f->box_width, l->nodes[i].height);
		else if (f->claim)
			place(out, f->claim, x + f->box_dx, y + f->claim_y, f->box_width, FIGURE_CLAIM_HEIGHT);
	}
	strbuf_add_str(out, "]}");
}

static enum hx_code draw(const struct definition *definition, void (*with)(const struct picture *p, struct strbuf *out),
			 struct strbuf *out, struct hx_error *err)
{
	struct picture p = {.d = definition};
	enum hx_code code = HX_OK;

	arena_init(&p.arena, ARENA_BYTES_MAX);
	p.subtitle = subtitle_of(&p);
	if (!p.arena.failed && make_sketch(&p) && sketch_lay_out(&p.sketch)) {
		say_unused(&p);
		measure(&p);
		with(&p, out);
	}
	if (p.arena.failed)
		code = arena_error(&p.arena, err);
	else if (out->failed)
		code = strbuf_error(out, err);
	arena_release(&p.arena);
	return code;
}

enum hx_code graph_picture(const struct definition *definition, struct strbuf *out, struct hx_error *err)
{
	return draw(definition, paint, out, err);
}

enum hx_code graph_places(const struct definition *definition, struct strbuf *out, struct hx_error *err)
{
	return draw(definition, tell_places, out, err);
}
