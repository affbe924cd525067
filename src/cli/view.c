/* See view.h. */
#include "cli/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "cli/terminal.h"
#include "model/text.h"

#define TEXT_BYTES_MAX (64u << 20)
#define RECORD_SHOWN_BYTES 16 /* as in the log; enough to tell one from another */

/* ---- one member ---- */

static bool find_one(struct json from, struct slice name, struct json *ret)
{
	struct json_iter it = json_iter_of(from);
	struct json element;

	if (json_type(from) != JSON_ARRAY)
		return json_find(from, name, ret);
	for (int i = atoi(name.p); i >= 0; i--)
		if (!json_iter_element(&it, &element))
			return false;
	*ret = element;
	return true;
}

/* Follows "claim/step". False: it is not there, or null. */
static bool view_find(struct json from, struct slice path, struct json *ret)
{
	while (path.n > 0) {
		const char *slash = memchr(path.p, '/', path.n);
		size_t n = slash ? (size_t)(slash - path.p) : path.n;

		if (!find_one(from, slice_of(path.p, n), &from))
			return false;
		n += slash != NULL;
		path = slice_of(path.p + n, path.n - n);
	}
	*ret = from;
	return json_type(from) != JSON_NULL;
}

/* "charged-refunded" */
static int64_t sum(struct json object, struct slice terms)
{
	const char *end = terms.p + terms.n;
	int64_t total = 0;

	for (const char *at = terms.p; at < end;) {
		int sign = *at == '-' ? -1 : 1;
		const char *name = at + (*at == '-' || *at == '+');
		struct json value;
		int64_t n;

		for (at = name; at < end && *at != '+' && *at != '-'; at++)
			;
		if (view_find(object, slice_of(name, (size_t)(at - name)), &value) &&
		    json_int64(value, /* err= */ NULL, &n) == HX_OK)
			total += sign * n;
	}
	return total;
}

/* ---- forms ---- */

static struct slice plain(struct json value, struct arena *arena)
{
	return json_type(value) == JSON_STRING ? json_string_decode(value, arena) : value.raw;
}

static struct slice printed(const char *text)
{
	return text ? slice_str(text) : slice_of("", 0);
}

/* As JSON: there a text and a number differ. */
static struct slice as_raw(struct json value, struct arena *arena UNUSED)
{
	return value.raw;
}

static struct slice as_short(struct json value, struct arena *arena)
{
	struct slice text = plain(value, arena);

	return slice_of(text.p, text.n < RECORD_SHOWN_BYTES ? text.n : RECORD_SHOWN_BYTES);
}

/* "12s" of milliseconds; nothing where none are left. */
static struct slice as_left(struct json value, struct arena *arena)
{
	int64_t ms;

	if (json_type(value) != JSON_NUMBER || json_int64(value, /* err= */ NULL, &ms) || ms <= 0)
		return slice_of("", 0);
	return arena_copy(arena, slice_str(duration_text(ms < 1000 ? ms : ms / 1000 * 1000).text));
}

/* "1.250" of milliseconds. */
static struct slice as_seconds(struct json value, struct arena *arena)
{
	int64_t ms;

	if (json_int64(value, /* err= */ NULL, &ms))
		return slice_of("", 0);
	return printed(text_printf(arena, "%lld.%03lld", (long long)ms / 1000, (long long)ms % 1000));
}

/* {"endpoint":true,"header:X-Region":"eu"} as "endpoint, header:X-Region=eu"; nothing at all is "global". */
static struct slice as_scope(struct json scope, struct arena *arena)
{
	struct json_iter it = json_iter_of(scope);
	struct json name, value;

	if (json_type(scope) != JSON_OBJECT)
		return slice_of("", 0);
	LOCAL_STRBUF(words, TEXT_BYTES_MAX);
	while (json_iter_member(&it, &name, &value)) {
		if (json_type(value) == JSON_BOOL && !slice_is(value.raw, "true"))
			continue;
		strbuf_add_str(&words, words.n ? ", " : "");
		strbuf_add_slice(&words, json_string_view(name, arena));
		if (json_type(value) == JSON_STRING)
			strbuf_addf(&words, "=%.*s", SLICE_ARGS(json_string_view(value, arena)));
	}
	return arena_copy(arena, words.n ? strbuf_slice(&words) : slice_str("global"));
}

static const struct form {
	const char *name;
	struct slice (*words)(struct json value, struct arena *arena);
} forms[] = {
	{"raw", as_raw}, {"short", as_short}, {"left", as_left}, {"seconds", as_seconds}, {"scope", as_scope},
};

static struct slice in_form(struct json value, struct slice form, struct arena *arena)
{
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (slice_is(form, forms[i].name))
			return forms[i].words(value, arena);
	ASSERT(form.n == 0); /* one that the table of verbs has misspelt */
	return plain(value, arena);
}

/* ---- a text ---- */

static bool is_sum(struct slice name)
{
	return memchr(name.p, '+', name.n) || memchr(name.p, '-', name.n);
}

/* "?held", "!created", "status=FAILED": does that hold? */
static bool holds(struct slice name, struct json object, struct arena *arena)
{
	const char *equals = memchr(name.p, '=', name.n);
	struct slice rest = slice_of(name.p + 1, name.n - 1);
	struct json value;

	if (equals)
		return view_find(object, slice_of(name.p, (size_t)(equals - name.p)), &value) &&
		       slice_eq(plain(value, arena), slice_of(equals + 1, (size_t)(name.p + name.n - equals - 1)));
	if (name.p[0] == '?' && is_sum(rest))
		return sum(object, rest) != 0;
	if (!view_find(object, rest, &value))
		return false;
	if (name.p[0] == '!')
		return slice_is(value.raw, "false");
	return !slice_is(value.raw, "false") && !slice_is(value.raw, "0");
}

/* What stands for "{…}", without the braces; *ret_says: does it say something? */
static struct slice view_resolve(struct slice name, struct json object, struct arena *arena, bool *ret_says)
{
	struct slice form = slice_of("", 0), words = form;
	const char *colon = memchr(name.p, ':', name.n);
	struct json value;

	if (name.p[0] == '?' || name.p[0] == '!' || memchr(name.p, '=', name.n)) {
		*ret_says = holds(name, object, arena);
		return words;
	}
	if (is_sum(name)) {
		int64_t n = sum(object, name);

		*ret_says = n != 0;
		return printed(text_printf(arena, "%lld", (long long)n));
	}
	if (colon) {
		form = slice_of(colon + 1, (size_t)(name.p + name.n - colon - 1));
		name.n = (size_t)(colon - name.p);
	}
	if (view_find(object, name, &value))
		words = in_form(value, form, arena);
	*ret_says = words.n > 0;
	return words;
}

/* The name between the braces that `at` begins with. */
static struct slice name_at(const char *at)
{
	return slice_of(at + 1, strcspn(at, "}") - 1);
}

/* The end of a part of a group: the | or ] that belongs to it. */
static const char *part_end(const char *at)
{
	for (int depth = 0; depth > 0 || (*at != '|' && *at != ']'); at++) {
		ASSERT(*at); /* a group that the table of verbs has not closed */
		depth += (*at == '[') - (*at == ']');
	}
	return at;
}

static bool part_holds(const char *from, const char *end, struct json object, struct arena *arena)
{
	const char *brace = memchr(from, '{', (size_t)(end - from));
	bool says = true;

	if (brace)
		(void)view_resolve(name_at(brace), object, arena, &says);
	return says;
}

static void add_span(struct strbuf *out, const char *at, const char *end, struct json object, struct arena *arena);

/* "[…|…]": returns what stands after it. */
static const char *add_group(struct strbuf *out, const char *at, struct json object, struct arena *arena)
{
	bool added = false;

	do {
		const char *from = at + 1, *end = part_end(from);

		if (!added && part_holds(from, end, object, arena)) {
			add_span(out, from, end, object, arena);
			added = true;
		}
		at = end;
	} while (*at == '|');
	return at + 1;
}

static void add_span(struct strbuf *out, const char *at, const char *end, struct json object, struct arena *arena)
{
	bool says;

	while (at < end) {
		size_t n = strcspn(at, "{[");

		if (n > (size_t)(end - at))
			n = (size_t)(end - at);
		strbuf_add(out, at, n);
		at += n;
		if (at == end)
			return;
		if (*at == '[') {
			at = add_group(out, at, object, arena);
			continue;
		}
		text_add_shown(out, view_resolve(name_at(at), object, arena, &says));
		at += name_at(at).n + 2;
	}
}

void view_add(struct strbuf *out, const char *text, struct json object, struct arena *arena)
{
	add_span(out, text, text + strlen(text), object, arena);
}

struct slice view_text(const char *text, struct json object, struct arena *arena)
{
	struct slice kept;
	bool says;

	if (text[0] == '{' && !text[name_at(text).n + 2]) /* the most of them: no copy of it is made */
		return view_resolve(name_at(text), object, arena, &says);
	LOCAL_STRBUF(words, TEXT_BYTES_MAX);
	view_add(&words, text, object, arena);
	arena->failed |= words.failed;
	kept = arena_copy(arena, strbuf_slice(&words));
	return kept.p ? kept : slice_of("", 0);
}

/* ---- all of it ---- */

/* What has nothing of what the line begins with was not the answer to this question. */
static enum hx_code print_line(const struct view *view, struct client *client, struct arena *arena, struct json answer,
			       struct hx_error *err)
{
	const char *text = view->cells[0].text;

	if (client && text[0] == '{' && !part_holds(text, text + strlen(text), answer, arena))
		return error_set(err, HX_BAD_GATEWAY, "%s: there is no %.*s in the answer", client->server,
				 SLICE_ARGS(name_at(text)));
	LOCAL_STRBUF(line, TEXT_BYTES_MAX);
	view_add(&line, text, answer, arena);
	return text_print_line(&line, err);
}

static void add_fields(const struct view *view, struct table *table, struct json object)
{
	for (const struct view_cell *cell = view->cells; cell->name; cell++)
		table_add_named(table, cell->name, view_text(cell->text, object, table->arena));
}

static void add_members(struct table *table, struct json object)
{
	struct json_iter it = json_iter_of(object);
	struct json name, value;

	while (json_iter_member(&it, &name, &value))
		if (json_type(value) != JSON_NULL)
			TABLE_ADD(table, json_string_decode(name, table->arena), plain(value, table->arena));
}

static void view_add_row(const struct view *view, struct table *table, struct json item)
{
	struct slice cells[TABLE_COLUMNS_MAX];

	for (size_t i = 0; i < table->columns_n; i++)
		cells[i] = view_text(view->cells[i].text, item, table->arena);
	table_add(table, cells);
}

static void add_rows(const struct view *view, struct table *table, struct json answer)
{
	struct json_iter it = json_iter_of(text_items(answer));
	struct slice titles[TABLE_COLUMNS_MAX];
	struct json item;

	for (size_t i = 0; i < table->columns_n; i++)
		titles[i] = slice_str(view->cells[i].name);
	table_add(table, titles);
	if (view->shape == VIEW_ROW)
		view_add_row(view, table, answer);
	else
		while (json_iter_element(&it, &item))
			view_add_row(view, table, item);
}

static size_t columns_of(const struct view *view)
{
	size_t n = 0;

	while (view->cells[n].name)
		n++;
	return n;
}

static enum hx_code print_table(const struct view *view, struct arena *arena, struct json answer, struct hx_error *err)
{
	bool has_columns = view->shape == VIEW_LIST || view->shape == VIEW_ROW;
	struct table table;

	table_init(&table, arena, has_columns ? columns_of(view) : 2);
	table.line_max = view->cut ? terminal_columns() : 0;
	if (has_columns)
		add_rows(view, &table, answer);
	else if (view->shape == VIEW_FIELDS)
		add_fields(view, &table, answer);
	else
		add_members(&table, answer);
	return table_print(&table, stdout, err);
}

enum hx_code view_print(const struct view *view, struct client *client, struct arena *arena, struct json answer,
			struct hx_error *err)
{
	if (view->shape == VIEW_OTHER)
		return view->print(client, answer, err);
	if (view->shape == VIEW_LINE)
		return print_line(view, client, arena, answer, err);
	return print_table(view, arena, answer, err);
}
