/*
 * A drawing before it has a place: figures with their words, and links between them. One file for each kind of definition
 * makes a sketch (graph_entity.c, graph_run.c, graph_batch.c); graph_sketch.c measures its figures, graph_paint.c paints
 * them.
 *
 *   status   ┌──────┐  plain, initial (with a dot that leads to it), terminal (double), claim (dashed), stray (dotted)
 *            └──────┘
 *   arrow    │ close      name and lines
 *            │ admin
 *         ┌┄┄▼┄┄┄┄┄┐      its claim, if it has one; the way back runs to the left of the way there
 *         └┄┄┬┄┄┄┄┄┘
 *            │ Close      what happens after it
 *            ├▸(Mail)     tags: what hangs off
 *            ▼            The way of an arrow that goes up is the same from below; a loop turns back to where it came from.
 *   card     ┌──────────┐
 *            │ name     │┄▸(tag)    with a sign of what it is; a condition is pointed, and two ways leave it
 *            └──────────┘
 */
#pragma once

#include "model/attempt.h"
#include "model/graph_layout.h"
#include "model/graph_svg.h"

#define FIGURE_LINE_HEIGHT 16
#define FIGURE_TAG_HEIGHT 22
#define FIGURE_TAG_STEP 26
#define FIGURE_CLAIM_HEIGHT 28
#define FIGURE_STATUS_HEIGHT 34
#define FIGURE_DOT_WIDTH 34   /* of an initial status, before its box */
#define FIGURE_TAG_GAP 34     /* from a card to what hangs off it */
#define FIGURE_FORK_HEIGHT 20 /* of the words at which the ways of a condition begin */
#define FIGURE_FORK_DX 52     /* of these words from the middle */
#define FIGURE_LOOP_HEIGHT 16

enum figure_shape { FIGURE_STATUS, FIGURE_ARROW, FIGURE_CARD };
enum figure_look {
	LOOK_PLAIN,
	LOOK_INITIAL,
	LOOK_TERMINAL,
	LOOK_CLAIM,
	LOOK_STRAY,
	/* of cards */
	LOOK_TASK,
	LOOK_WAIT,
	LOOK_EVENT,
	LOOK_APPROVAL,
	LOOK_CONDITION,
	LOOK_CHILD,
};
/* Of an arrow. BLOCKED: it leads nowhere. */
enum figure_course { COURSE_DOWN, COURSE_UP, COURSE_LOOP, COURSE_BLOCKED };

struct figure_line {
	enum svg_face face;
	const char *text;
	const char *note; /* beside it; NULL: none */
	struct figure_line *next;
};

struct figure_lines {
	struct figure_line *first, **last;
	int n;
};

struct figure {
	enum figure_shape shape;
	enum figure_look look;
	enum figure_course course;
	const char *name;
	const char *note; /* beside the name of a card; NULL: none */
	struct figure_lines lines;
	struct figure_lines behind; /* of an arrow */
	struct figure_lines tags;   /* text and note of each */
	const char *claim;          /* of an arrow; NULL: none */
	const char *leads_to;       /* of an arrow whose link was cut; NULL: its link is drawn */
	/* Measured: from its left upper corner. */
	int box_dx, box_width; /* of the status, of the claim, of the card itself */
	int text_dx, main_dx, revert_dx, loop_dx;
	int lines_y, claim_y, behind_y, tags_y, leads_y;
};

/* Where on a figure a link begins or ends. */
enum link_port { PORT_ANYWHERE, PORT_MAIN, PORT_REVERT, PORT_LOOP, PORT_THEN, PORT_ELSE };
/* HIDDEN: only for the order of things. */
enum link_look { LINK_MAIN, LINK_REVERT, LINK_HIDDEN };

struct link {
	enum link_look look;
	enum link_port from_port, to_port;
	bool head;
	const char *word; /* with which a link that was cut is told: "then"; NULL: none */
};

struct sketch {
	struct layout layout; /* nodes and edges are the figures and links of the same numbers */
	struct figure *figures;
	struct link *links;
	size_t figures_max, links_max;
};

/* False: the arena has failed. More than was said is never added. */
bool sketch_init(struct sketch *s, struct arena *arena, size_t figures_max, size_t links_max) HX_MUST_CHECK;
/* The name is not copied. */
size_t sketch_add(struct sketch *s, enum figure_shape shape, enum figure_look look, const char *name);
void sketch_link(struct sketch *s, size_t from, size_t to, enum layout_way way, struct link link);

/* A line of words, made in the arena. Where there is no memory for it the arena has failed, which is looked at later. */
void sketch_say(struct sketch *s, struct figure_lines *lines, enum svg_face face, const char *format, ...)
	HX_PRINTF(4, 5);
/* "CloseBilling", and beside it "http, claimed". */
void sketch_say_action(struct sketch *s, struct figure_lines *lines, const struct action *action);

/* What follows when nobody knows whether it was done; nothing where that is always known. */
void sketch_say_unknown(struct sketch *s, struct figure_lines *lines, const struct action *action,
			enum on_unknown on_unknown);
/* "5 attempts, 1s to 5m apart" */
void sketch_say_retry(struct sketch *s, struct figure_lines *lines, const struct run_retry *retry);

/* How wide a tag is; where in a line the note begins. */
int figure_tag_width(const struct figure_line *tag);
int figure_note_dx(const struct figure_line *line);
#define FIGURE_TAG_PADDING 9

/* Ranks, sizes, places. False: the arena has failed. */
bool sketch_lay_out(struct sketch *s) HX_MUST_CHECK;
/* graph_paint.c: all of it, at its places. */
void sketch_paint(const struct sketch *s, struct strbuf *out);

/* What there is to draw of a definition. False: the arena has failed. */
struct run_definition;
struct batch_definition;
bool sketch_entity(const struct workflow *w, struct arena *arena, struct sketch *s) HX_MUST_CHECK;
bool sketch_run(const struct run_definition *d, struct arena *arena, struct sketch *s) HX_MUST_CHECK;
bool sketch_batch(const struct batch_definition *d, struct arena *arena, struct sketch *s) HX_MUST_CHECK;
