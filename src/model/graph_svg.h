/*
 * The marks of a drawing: text, boxes and arrow heads as SVG 1.1, in whole pixels.
 *
 * Every element carries its own presentation attributes: there is no style sheet, no script and nothing from outside, so
 * that a picture looks the same as a file, as an image and inside of a page that allows none of these. The fonts are two
 * of one breadth, Verdana and DejaVu Sans, which is what makes measuring a text possible without one.
 */
#pragma once

#include "base/strbuf.h"

#define SVG_LINE "#3b4a63"   /* the way through */
#define SVG_REVERT "#a8660f" /* claims, and the way back */
#define SVG_EFFECT "#6b4aa8" /* what hangs off */

#define SVG_PLAIN "fill=\"#eef3fb\" stroke=\"" SVG_LINE "\""
#define SVG_BEGIN "fill=\"#e1f3e5\" stroke=\"#2b7a42\""
#define SVG_END "fill=\"#e6e8ec\" stroke=\"" SVG_LINE "\""
#define SVG_END_INNER "fill=\"none\" stroke=\"" SVG_LINE "\""
#define SVG_CLAIM "fill=\"#fff3d6\" stroke=\"" SVG_REVERT "\" stroke-dasharray=\"5 3\""
#define SVG_TAG "fill=\"#f4effc\" stroke=\"" SVG_EFFECT "\""
#define SVG_PAPER "fill=\"#ffffff\" stroke=\"" SVG_LINE "\""
#define SVG_STRAY "fill=\"#ffffff\" stroke=\"#8a93a3\" stroke-dasharray=\"2 3\""

enum svg_face { SVG_TITLE, SVG_NAME, SVG_TEXT, SVG_NOTE, SVG_CODE };
enum svg_way { SVG_DOWN, SVG_UP, SVG_RIGHT };

/* In pixels; a little more where the font is another one. */
int svg_text_width(const char *text, enum svg_face face);
/* As the content of an element or of an attribute. What XML has no place for becomes U+FFFD. */
void svg_escape(struct strbuf *out, struct slice text);
/* x is where it begins, y its base line. */
void svg_text(struct strbuf *out, int x, int y, enum svg_face face, const char *text);
/* The same with x in the middle of it. */
void svg_text_middle(struct strbuf *out, int x, int y, enum svg_face face, const char *text);
/* paint: attributes, one of the above. */
void svg_box(struct strbuf *out, int x, int y, int width, int height, int radius, const char *paint);
/* The head of an arrow that ends at (x, y). */
void svg_head(struct strbuf *out, int x, int y, enum svg_way way, const char *colour);
