/*
 * A strict reader of the XML that pictures are made of: one element around all, every tag closed in its order, attributes
 * quoted and none twice, no bare & or <, no entity but &#N;, nothing but characters that XML has. Beyond that it allows only
 * the elements and attributes of a picture without scripts, styles, links or anything from outside, and keeps every text
 * with the place where it stands.
 */
#ifndef HX_TEST_SVG_READER_H
#define HX_TEST_SVG_READER_H

#include "base/utf8.h"
#include "definition.h"
#include "model/graph_svg.h"

#define SVG_DEPTH_MAX 8
#define SVG_ATTRIBUTES_MAX 16
#define SVG_TEXTS_MAX 200000
#define SVG_VALUE_BYTES (1 << 16)

struct svg_text_at {
	int x, y, width, size; /* x: its left end; y: the base line */
	const char *text;      /* decoded */
};

struct svg_attribute {
	char name[32];
	char value[SVG_VALUE_BYTES];
};

struct svg_reader {
	const char *at;
	int width, height;
	size_t elements;
	size_t attributes_n;
	struct svg_attribute attributes[SVG_ATTRIBUTES_MAX];
	int depth;
	int dx[SVG_DEPTH_MAX], dy[SVG_DEPTH_MAX]; /* of the groups around */
	size_t texts_n;
	struct svg_text_at *texts;
};

static inline void svg_fail(const struct svg_reader *r, const char *what)
{
	fail_msg("%s, at: %.60s", what, r->at);
}

static inline bool svg_is(struct svg_reader *r, const char *text)
{
	if (strncmp(r->at, text, strlen(text)) != 0)
		return false;
	r->at += strlen(text);
	return true;
}

static inline void svg_want(struct svg_reader *r, const char *text)
{
	if (!svg_is(r, text))
		svg_fail(r, text);
}

static inline void svg_name(struct svg_reader *r, char *ret, size_t size)
{
	size_t n = strspn(r->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");

	if (n == 0 || n >= size)
		svg_fail(r, "a name is missing or too long");
	memcpy(ret, r->at, n);
	ret[n] = '\0';
	r->at += n;
}

/* One character of content, decoded. */
static inline unsigned svg_character(struct svg_reader *r, char ret[4])
{
	unsigned n = utf8_sequence(r->at, r->at + strnlen(r->at, 4));
	uint32_t code = n ? utf8_decode(r->at, n) : 0;

	if (code == '&') {
		char *end;
		unsigned long number = strncmp(r->at, "&#", 2) == 0 ? strtoul(r->at + 2, &end, 10) : 0;

		if (number == 0 || *end != ';')
			svg_fail(r, "an & that begins no number");
		r->at = end + 1;
		return utf8_encode((uint32_t)number, ret);
	}
	if (code == '<' || (code < 32 && code != '\n') || code == 0xfffe || code == 0xffff)
		svg_fail(r, "a character that must not stand here");
	memcpy(ret, r->at, n);
	r->at += n;
	return n;
}

static inline void svg_content(struct svg_reader *r, char end, char *ret, size_t size)
{
	size_t n = 0;

	while (*r->at != end) {
		char bytes[4];
		unsigned length = svg_character(r, bytes);

		if (n + length >= size)
			svg_fail(r, "too long");
		memcpy(ret + n, bytes, length);
		n += length;
	}
	ret[n] = '\0';
}

static inline const char *svg_attribute(const struct svg_reader *r, const char *name)
{
	for (size_t i = 0; i < r->attributes_n; i++)
		if (strcmp(r->attributes[i].name, name) == 0)
			return r->attributes[i].value;
	return NULL;
}

static inline int svg_number(const struct svg_reader *r, const char *name)
{
	const char *value = svg_attribute(r, name);

	if (!value)
		svg_fail(r, name);
	return atoi(value);
}

static inline bool svg_listed(const char *name, const char *list)
{
	char padded[48];

	snprintf(padded, sizeof padded, " %s ", name);
	return strstr(list, padded) != NULL;
}

static inline void svg_attributes(struct svg_reader *r)
{
	static const char allowed[] =
		" xmlns version width height viewBox role aria-labelledby id x y cx cy r rx d fill "
		"stroke stroke-width stroke-dasharray font-size font-weight font-family text-anchor "
		"transform ";

	r->attributes_n = 0;
	while (svg_is(r, " ")) {
		struct svg_attribute *a = &r->attributes[r->attributes_n];
		char name[32];

		svg_name(r, name, sizeof name);
		if (svg_attribute(r, name) || !svg_listed(name, allowed) || r->attributes_n + 1 == SVG_ATTRIBUTES_MAX)
			svg_fail(r, name);
		memcpy(a->name, name, sizeof name);
		svg_want(r, "=\"");
		svg_content(r, '"', a->value, sizeof a->value);
		svg_want(r, "\"");
		assert_null(strstr(a->value, "url("));
		r->attributes_n++;
	}
}

static inline void svg_keep_text(struct svg_reader *r, const char *text)
{
	static const int sizes[] = {[SVG_TITLE] = 18, [SVG_NAME] = 13, [SVG_TEXT] = 12, [SVG_NOTE] = 11};
	bool code = svg_attribute(r, "font-family") != NULL;
	struct svg_text_at *t = &r->texts[r->texts_n++];
	enum svg_face face = SVG_TITLE;

	assert_true(r->texts_n < SVG_TEXTS_MAX);
	t->size = svg_number(r, "font-size");
	while (face < SVG_NOTE && sizes[face] != t->size)
		face++;
	t->width = svg_text_width(text, code ? SVG_CODE : face);
	t->x = svg_number(r, "x") - (svg_attribute(r, "text-anchor") ? t->width / 2 : 0);
	t->y = svg_number(r, "y");
	for (int i = 0; i < r->depth; i++) {
		t->x += r->dx[i];
		t->y += r->dy[i];
	}
	t->text = arena_copy(&arena, slice_str(text)).p;
}

static inline void svg_element(struct svg_reader *r);

static inline void svg_children(struct svg_reader *r, const char *name)
{
	const char *transform = svg_attribute(r, "transform");

	assert_true(r->depth < SVG_DEPTH_MAX);
	r->dx[r->depth] = r->dy[r->depth] = 0;
	if (transform)
		assert_int_equal(sscanf(transform, "translate(%d %d)", &r->dx[r->depth], &r->dy[r->depth]), 2);
	r->depth++;
	for (;;) {
		r->at += strspn(r->at, "\n");
		if (strncmp(r->at, "</", 2) == 0)
			break;
		svg_element(r);
	}
	r->depth--;
	svg_want(r, "</");
	svg_want(r, name);
	svg_want(r, ">");
}

static inline void svg_element(struct svg_reader *r)
{
	static char text[SVG_VALUE_BYTES];
	char name[16];

	svg_want(r, "<");
	svg_name(r, name, sizeof name);
	if (!svg_listed(name, " svg title desc g rect path circle text "))
		svg_fail(r, name);
	assert_int_equal(strcmp(name, "svg") == 0, r->elements++ == 0);
	svg_attributes(r);
	if (svg_is(r, "/>"))
		return;
	svg_want(r, ">");
	if (svg_listed(name, " svg g ")) {
		if (r->elements == 1) {
			r->width = svg_number(r, "width");
			r->height = svg_number(r, "height");
			assert_string_equal(svg_attribute(r, "role"), "img");
		}
		svg_children(r, name);
		return;
	}
	assert_true(svg_listed(name, " title desc text "));
	svg_content(r, '<', text, sizeof text);
	if (strcmp(name, "text") == 0)
		svg_keep_text(r, text);
	svg_want(r, "</");
	svg_want(r, name);
	svg_want(r, ">");
}

/* The texts live in the arena of the tests. */
static inline void svg_read(struct svg_reader *r, struct slice svg)
{
	assert_int_equal(strlen(svg.p), svg.n);
	*r = (struct svg_reader){.at = svg.p};
	r->texts = arena_alloc(&arena, SVG_TEXTS_MAX * sizeof *r->texts);
	assert_non_null(r->texts);
	svg_element(r);
	r->at += strspn(r->at, "\n");
	if (*r->at)
		svg_fail(r, "something stands behind the picture");
}

static inline bool svg_has_text(const struct svg_reader *r, const char *text)
{
	for (size_t i = 0; i < r->texts_n; i++)
		if (strcmp(r->texts[i].text, text) == 0)
			return true;
	return false;
}

static inline bool svg_overlap(const struct svg_text_at *a, const struct svg_text_at *b)
{
	return a->x < b->x + b->width && b->x < a->x + a->width && a->y - a->size * 3 / 4 < b->y &&
	       b->y - b->size * 3 / 4 < a->y;
}

static int svg_by_y(const void *a, const void *b)
{
	const struct svg_text_at *x = a, *y = b;

	return (x->y > y->y) - (x->y < y->y);
}

/* No text lies on another one or leaves the picture. */
static inline void svg_assert_readable(struct svg_reader *r)
{
	qsort(r->texts, r->texts_n, sizeof *r->texts, svg_by_y);
	for (size_t i = 0; i < r->texts_n; i++) {
		const struct svg_text_at *t = &r->texts[i];

		if (t->x < 0 || t->x + t->width > r->width || t->y - t->size < 0 || t->y + t->size / 3 > r->height)
			fail_msg("\"%s\" leaves the picture", t->text);
		for (size_t k = i + 1; k < r->texts_n && r->texts[k].y < t->y + 20; k++)
			if (svg_overlap(t, &r->texts[k]))
				fail_msg("\"%s\" and \"%s\" overlap", t->text, r->texts[k].text);
	}
}

#endif
