/* See table.h. */
#include "cli/table.h"

#include <locale.h>
#include <wchar.h>

#include "base/excerpt.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/utf8.h"

#define CELL_BYTES_MAX (16u << 20) /* a value of 1 MiB, every byte of it escaped */
#define GAP 2

struct table_cells {
	struct table_cells *next;
	const char *colour; /* of the first cell; NULL: none */
	struct slice cells[TABLE_COLUMNS_MAX];
};

void text_add_shown(struct strbuf *out, struct slice text)
{
	while (text.n > 0) {
		char piece[EXCERPT_PIECE_BYTES];
		unsigned n = excerpt_take(&text, /* quoted= */ false, piece);

		strbuf_add(out, piece, n);
	}
}

struct slice text_of_member(struct json object, const char *name, struct arena *arena)
{
	struct json value;

	if (!json_find(object, slice_str(name), &value) || json_type(value) == JSON_NULL)
		return slice_of("", 0);
	return json_type(value) == JSON_STRING ? json_string_decode(value, arena) : value.raw;
}

bool text_member_is_true(struct json object, const char *name)
{
	struct json value;

	return json_find(object, slice_str(name), &value) && slice_is(value.raw, "true");
}

struct json text_items(struct json answer)
{
	struct json items = json_trust(slice_str("[]"));

	(void)json_find(answer, slice_str("items"), &items); /* absent: none */
	return items;
}

enum hx_code text_print_line(struct strbuf *line, struct hx_error *err)
{
	enum hx_code code = line->failed ? strbuf_error(line, err) : HX_OK;

	if (!code)
		puts(line->p);
	strbuf_release(line);
	return code;
}

void text_print_more(struct json answer, struct arena *arena, FILE *out)
{
	struct slice cursor = text_of_member(answer, "cursor", arena);

	if (cursor.n == 0)
		return;
	LOCAL_STRBUF(shown, CELL_BYTES_MAX);
	text_add_shown(&shown, cursor);
	fprintf(out, "there are more: --cursor '%s'\n", shown.p);
}

/* ---- how wide a text is ---- */

/* Takes one character from the front of what shown() has made: how many columns it has. 日 has two, a combining accent none. */
static size_t take_columns(struct slice *text)
{
	unsigned n = utf8_sequence(text->p, text->p + text->n);
	int width = wcwidth((wchar_t)utf8_decode(text->p, n));

	*text = slice_of(text->p + n, text->n - n);
	return width < 0 ? 1 : (size_t)width; /* one that the library does not know yet, or has no locale for */
}

/*
 * wcwidth() knows the characters of a locale, and the program has none of its own: whatever the user's is, we write UTF-8.
 * Set while a table is added to and printed; commands have one thread.
 */
static locale_t enter_utf8(void)
{
	static locale_t utf8;

	if (!utf8)
		utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	return uselocale(utf8);
}

static size_t columns(struct slice text)
{
	size_t n = 0;

	while (text.n > 0)
		n += take_columns(&text);
	return n;
}

void table_init(struct table *table, struct arena *arena, size_t columns_n)
{
	ASSERT(columns_n <= TABLE_COLUMNS_MAX);
	*table = (struct table){.arena = arena, .columns_n = columns_n};
	table->last = &table->first;
}

static struct slice shown(struct slice text, struct arena *arena)
{
	struct slice copy;
	LOCAL_STRBUF(sb, CELL_BYTES_MAX);

	text_add_shown(&sb, text);
	copy = arena_copy(arena, strbuf_slice(&sb));
	arena->failed |= sb.failed;
	return copy;
}

/* What cannot be seen need not be kept: of a value of a MiB a line shows a few words. One character more tells of the cut. */
static struct slice beginning(struct slice text, size_t line_max)
{
	enum { CHARACTER_BYTES_MAX = 4 };
	size_t most = (line_max + 1) * CHARACTER_BYTES_MAX;

	return line_max == 0 || text.n <= most ? text : slice_of(text.p, utf8_cut(slice_of(text.p, most)));
}

void table_add(struct table *table, const struct slice cells[])
{
	struct table_cells *row = arena_zalloc(table->arena, sizeof *row);
	locale_t before;

	if (!row)
		return;
	before = enter_utf8();
	for (size_t i = 0; i < table->columns_n; i++) {
		size_t width;

		row->cells[i] = shown(beginning(cells[i], table->line_max), table->arena);
		width = columns(row->cells[i]);
		if (width > table->widths[i])
			table->widths[i] = width;
	}
	uselocale(before);
	*table->last = row;
	table->last = &row->next;
	table->added = row;
}

void table_add_named(struct table *table, const char *name, struct slice text)
{
	if (text.n > 0)
		TABLE_ADD(table, slice_str(name), text);
}

void table_colour(struct table *table, const char *colour)
{
	if (table->added)
		table->added->colour = colour;
}

/* The bytes that fit into so many columns. */
static size_t fitting(struct slice text, size_t room)
{
	struct slice rest = text;
	size_t bytes = 0, n = 0;

	while (rest.n > 0 && (n += take_columns(&rest)) <= room)
		bytes = text.n - rest.n;
	return bytes;
}

/* As much of a cell as there is room for; a cut takes a column, too. */
static void print_cell(struct slice text, size_t room, const char *colour, FILE *out)
{
	bool cut = columns(text) > room;

	if (colour)
		fprintf(out, "\033[%sm", colour);
	fprintf(out, "%.*s%s", (int)(cut ? fitting(text, room ? room - 1 : 0) : text.n), text.p,
		cut && room ? "…" : "");
	if (colour)
		fputs("\033[0m", out);
}

/* Nothing is padded after the last cell that says something. */
static void print_row(const struct table *table, const struct table_cells *row, FILE *out)
{
	size_t n = table->columns_n, column = 0;

	while (n > 0 && row->cells[n - 1].n == 0)
		n--;
	for (size_t i = 0; i < n; i++) {
		int pad = i + 1 < n ? (int)(table->widths[i] - columns(row->cells[i])) + GAP : 0;
		size_t room = !table->line_max ? SIZE_MAX : table->line_max > column ? table->line_max - column : 0;

		print_cell(row->cells[i], room, table->coloured && i == 0 ? row->colour : NULL, out);
		fprintf(out, "%*s", pad, "");
		column += table->widths[i] + GAP;
	}
	fputc('\n', out);
}

enum hx_code table_print(const struct table *table, FILE *out, struct hx_error *err)
{
	locale_t before;

	if (table->arena->failed)
		return arena_error(table->arena, err);
	before = enter_utf8();
	for (const struct table_cells *row = table->first; row; row = row->next)
		print_row(table, row, out);
	uselocale(before);
	return HX_OK;
}
