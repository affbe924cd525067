/* See graph_svg.h. */
#include "model/graph_svg.h"

#include "base/utf8.h"

#define HEAD_LENGTH 8
#define HEAD_HALF 4

static const struct {
	int size;
	bool bold;
	const char *attributes;
} faces[] = {
	[SVG_TITLE] = {18, true, "font-size=\"18\" font-weight=\"bold\""},
	[SVG_NAME] = {13, true, "font-size=\"13\" font-weight=\"bold\""},
	[SVG_TEXT] = {12, false, "font-size=\"12\""},
	[SVG_NOTE] = {11, false, "font-size=\"11\" fill=\"#566071\""},
	[SVG_CODE] = {11, false, "font-size=\"11\" font-family=\"Menlo, 'DejaVu Sans Mono', monospace\""},
};

/* Of the printable ASCII characters, in hundredths of the font's size. */
static const unsigned char widths[] = {
	32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
	64, 64, 34, 34, 84, 84, 84, 53, 99, 68, 69, 70, 77, 63, 58, 77, 75, 40, 45, 66, 56, 86, 75, 79,
	60, 79, 69, 68, 61, 73, 68, 99, 69, 61, 69, 45, 45, 45, 84, 63, 63, 61, 63, 55, 63, 62, 35, 63,
	63, 28, 34, 58, 28, 97, 63, 61, 63, 63, 42, 52, 39, 63, 59, 82, 59, 59, 53, 64, 45, 64, 84,
};
_Static_assert(sizeof widths == 127 - 32, "one for each");

enum { MONO_WIDTH = 61, BOLD_MORE = 8, FOREIGN_WIDTH = 70, WIDE_WIDTH = 105, WIDE_FROM = 0x1100 };

static int width_of(uint32_t code, enum svg_face face)
{
	if (code >= WIDE_FROM)
		return WIDE_WIDTH;
	if (face == SVG_CODE)
		return MONO_WIDTH;
	return (code >= 32 && code < 127 ? widths[code - 32] : FOREIGN_WIDTH) + (faces[face].bold ? BOLD_MORE : 0);
}

/* One character from the front; what is not UTF-8 or not allowed in XML is U+FFFD. */
static uint32_t take_character(struct slice *text)
{
	unsigned n = utf8_sequence(text->p, text->p + text->n);
	uint32_t code = n ? utf8_decode(text->p, n) : 0;
	bool allowed = code >= 32 ? code != 0xfffe && code != 0xffff : code == '\t' || code == '\n';

	*text = slice_of(text->p + (n ? n : 1), text->n - (n ? n : 1));
	return allowed ? code : 0xfffd;
}

int svg_text_width(const char *text, enum svg_face face)
{
	struct slice rest = slice_str(text);
	int sum = 0;

	while (rest.n > 0)
		sum += width_of(take_character(&rest), face);
	return (sum * faces[face].size + 99) / 100;
}

void svg_escape(struct strbuf *out, struct slice text)
{
	while (text.n > 0) {
		uint32_t code = take_character(&text);
		char bytes[4];

		if (code == '&' || code == '<' || code == '>' || code == '"')
			strbuf_addf(out, "&#%u;", (unsigned)code);
		else
			strbuf_add(out, bytes, utf8_encode(code, bytes));
	}
}

static void graph_svg_add_text(struct strbuf *out, int x, int y, enum svg_face face, const char *anchor,
			       const char *text)
{
	strbuf_addf(out, "<text x=\"%d\" y=\"%d\" %s%s>", x, y, faces[face].attributes, anchor);
	svg_escape(out, slice_str(text));
	strbuf_add_str(out, "</text>\n");
}

void svg_text(struct strbuf *out, int x, int y, enum svg_face face, const char *text)
{
	graph_svg_add_text(out, x, y, face, "", text);
}

void svg_text_middle(struct strbuf *out, int x, int y, enum svg_face face, const char *text)
{
	graph_svg_add_text(out, x, y, face, " text-anchor=\"middle\"", text);
}

void svg_box(struct strbuf *out, int x, int y, int width, int height, int radius, const char *paint)
{
	strbuf_addf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\" %s/>\n", x, y, width, height,
		    radius, paint);
}

void svg_head(struct strbuf *out, int x, int y, enum svg_way way, const char *colour)
{
	const int back = way == SVG_UP ? HEAD_LENGTH : -HEAD_LENGTH;

	if (way == SVG_RIGHT)
		strbuf_addf(out, "<path d=\"M%d %dL%d %dL%d %dZ\" fill=\"%s\"/>\n", x, y, x + back, y - HEAD_HALF,
			    x + back, y + HEAD_HALF, colour);
	else
		strbuf_addf(out, "<path d=\"M%d %dL%d %dL%d %dZ\" fill=\"%s\"/>\n", x, y, x - HEAD_HALF, y + back,
			    x + HEAD_HALF, y + back, colour);
}
