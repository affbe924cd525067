/* See table.h. */
#include "cli/table.h"

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
	struct strbuf shown;

	if (cursor.n == 0)
		return;
	strbuf_init(&shown, CELL_BYTES_MAX);
	text_add_shown(&shown, cursor);
	fprintf(out, "there are more: --cursor '%s'\n", shown.p);
	strbuf_release(&shown);
}

/* Characters, not bytes: a byte of UTF-8 that goes on with one is not counted. */
static size_t characters(struct slice text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++)
		n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
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
	struct strbuf sb;
	struct slice copy;

	strbuf_init(&sb, CELL_BYTES_MAX);
	text_add_shown(&sb, text);
	copy = arena_copy(arena, strbuf_slice(&sb));
	arena->failed |= sb.failed;
	strbuf_release(&sb);
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

	if (!row)
		return;
	for (size_t i = 0; i < table->columns_n; i++) {
		size_t width;

		row->cells[i] = shown(beginning(cells[i], table->line_max), table->arena);
		width = characters(row->cells[i]);
		if (width > table->widths[i])
			table->widths[i] = width;
	}
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

/* As much of a cell as fits into so many characters. */
static void print_cell(struct slice text, size_t room, const char *colour, FILE *out)
{
	size_t n = 0, at = 0;
	bool cut = characters(text) > room;

	while (cut && at < text.n && n + 1 < room) {
		at += utf8_length_by_lead((unsigned char)text.p[at]);
		n++;
	}
	if (colour)
		fprintf(out, "\033[%sm", colour);
	fprintf(out, "%.*s%s", (int)(cut ? at : text.n), text.p, cut && room ? "…" : "");
	if (colour)
		fputs("\033[0m", out);
}

/* Nothing is padded behind the last cell that says something. */
static void print_row(const struct table *table, const struct table_cells *row, FILE *out)
{
	size_t n = table->columns_n, column = 0;

	while (n > 0 && row->cells[n - 1].n == 0)
		n--;
	for (size_t i = 0; i < n; i++) {
		int pad = i + 1 < n ? (int)(table->widths[i] - characters(row->cells[i])) + GAP : 0;
		size_t room = !table->line_max ? SIZE_MAX : table->line_max > column ? table->line_max - column : 0;

		print_cell(row->cells[i], room, table->coloured && i == 0 ? row->colour : NULL, out);
		fprintf(out, "%*s", pad, "");
		column += table->widths[i] + GAP;
	}
	fputc('\n', out);
}

enum hx_code table_print(const struct table *table, FILE *out, struct hx_error *err)
{
	if (table->arena->failed)
		return arena_error(table->arena, err);
	for (const struct table_cells *row = table->first; row; row = row->next)
		print_row(table, row, out);
	return HX_OK;
}
