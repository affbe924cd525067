/* See api_list.h. */
#include "api/api_list.h"

#include <stdio.h>

#include "api/api_search.h"
#include "base/id.h"
#include "base/json_string.h"
#include "flow/page.h"

#define PLACE_BYTES 48

/* ---- the query ---- */

static bool refuse_cursor(struct http_call *call)
{
	return api_refuse(call, HX_VALIDATION_ERROR, "this is no cursor of this list");
}

static bool read_place(struct slice text, struct api_query *query)
{
	long long number, subject;
	char copy[PLACE_BYTES];
	int end = 0;

	if (text.n >= sizeof copy)
		return false;
	snprintf(copy, sizeof copy, "%.*s", SLICE_ARGS(text));
	if (sscanf(copy, "%lld.%lld%n", &number, &subject, &end) != 2 || copy[end])
		return false;
	query->number = number;
	query->subject = subject;
	return true;
}

static bool read_cursor(struct http_call *call, const struct api_list *list, struct api_query *query)
{
	struct slice text = {NULL, 0};
	struct hx_error err;

	query->number = query->subject = list->start;
	if (list->cursor == CURSOR_NUMBER)
		return api_query_number(call, "cursor", list->start, INT64_MAX, &query->number);
	if (query_get(&call->query, "cursor", &err, &text)) {
		http_respond_error(call->exchange, &err);
		return false;
	}
	if (!text.n)
		return true;
	query->after = text;
	return list->cursor == CURSOR_TEXT ||
	       (list->cursor == CURSOR_ID ? id_parse(list->prefix, text, &query->subject) : read_place(text, query)) ||
	       refuse_cursor(call);
}

static bool read_flag(struct http_call *call, const struct api_filter *filter, struct slice text, bool *ret_flag)
{
	*ret_flag = slice_is(text, "true");
	if (!text.n || *ret_flag || slice_is(text, "false"))
		return true;
	return api_invalid(call, "%s is true or false", filter->name);
}

static bool read_filter(struct http_call *call, const struct api_filter *filter, struct api_query *query)
{
	char *at = (char *)query + filter->at;
	struct slice text = {NULL, 0};
	struct hx_error err;

	if (query_get(&call->query, filter->name, &err, &text)) {
		http_respond_error(call->exchange, &err);
		return false;
	}
	if (filter->flag)
		return read_flag(call, filter, text, (bool *)at);
	if (filter->prefix)
		return !text.n || id_parse(filter->prefix, text, (int64_t *)at) ||
		       api_invalid(call, "%s is not the id of a %s", filter->name, filter->prefix);
	*(struct slice *)at = text;
	return !text.n || !filter->words ||
	       api_word_checked(call, text, filter->words, filter->what, HX_VALIDATION_ERROR);
}

/* ---- the page ---- */

static void add_cursor_at(struct strbuf *text, const struct api_list *list, const struct db_value *value)
{
	json_more(text, "cursor");
	if (list->cursor == CURSOR_TEXT) {
		json_quote(value->s, text);
		return;
	}
	if (list->cursor == CURSOR_ID) {
		char id[ID_TEXT_BYTES];

		id_format(list->prefix, value->i, id);
		strbuf_addf(text, "\"%s\"", id);
		return;
	}
	strbuf_addf(text, "\"%lld\"", (long long)value->i);
}

static void add_cursor(struct strbuf *text, const struct api_list *list, const struct db_rows *rows, size_t i)
{
	const struct db_value *value = db_cell(rows, i, list->column);

	if (list->cursor != CURSOR_PLACE) {
		add_cursor_at(text, list, value);
		return;
	}
	json_more(text, "cursor");
	strbuf_addf(text, "\"%lld.%lld\"", (long long)value->i, (long long)db_cell(rows, i, list->column_subject)->i);
}

/* The page has shown all that its slice has, and there are rows after the slice: NULL, if not so. */
static const struct db_value *slice_end(const struct api_query *query, const struct unit_result *result)
{
	const struct db_rows *slice = &result->rows[query->list->slice_line];

	if (!query->sliced || slice->n == 0 || db_cell(slice, 0, SLICE_N)->i < LIST_SLICE)
		return NULL;
	return db_cell(slice, 0, SLICE_END);
}

static void list_add_row(struct api_query *query, const struct db_rows *rows, size_t i)
{
	strbuf_add_str(&query->text, i ? "," : "");
	if (query->list->members) {
		strbuf_add_char(&query->text, '{');
		row_json_cells(&query->text, query->list->members, rows, i);
		strbuf_add_char(&query->text, '}');
	} else {
		query->list->add(query, rows, i);
	}
}

static enum hx_code list_answered(struct api_query *query, const struct unit_result *result)
{
	const struct api_list *list = query->list;
	const struct db_rows *rows = &result->rows[list->line];
	size_t most = rows->n > (size_t)query->limit ? (size_t)query->limit : rows->n, n = 0;
	enum hx_code code = list->check ? list->check(query, result) : HX_OK;

	if (code)
		return code;
	strbuf_add_str(&query->text, "{\"items\":[");
	while (n < most && (!list->bytes_max || query->text.n < list->bytes_max))
		list_add_row(query, rows, n++);
	strbuf_add_char(&query->text, ']');
	if (rows->n > n)
		add_cursor(&query->text, list, rows, list->at_next ? n : n - 1);
	else if (slice_end(query, result))
		add_cursor_at(&query->text, list, slice_end(query, result));
	else
		json_more_json(&query->text, "cursor", slice_of(NULL, 0));
	strbuf_add_char(&query->text, '}');
	return HX_OK;
}

static void build_page(struct api_query *query, struct unit *unit)
{
	query->list->build(query, unit);
	query->sliced = query->list->slice_line && unit->lines_n > query->list->slice_line;
}

bool api_list_read(struct http_call *call, const struct api_list *list, struct api_query *query)
{
	if (!api_query_number(call, "limit", API_PAGE_DEFAULT, API_PAGE_MAX, &query->limit))
		return false;
	for (const struct api_filter *filter = list->filters; filter->name; filter++)
		if (!read_filter(call, filter, query))
			return false;
	return true;
}

struct api_query *api_list_new(struct http_call *call, const struct api_list *list)
{
	struct api_query *query = api_query_new(
		&(struct api_query){.call = call, .build = build_page, .answered = list_answered, .list = list});

	return query && api_list_read(call, list, query) && read_cursor(call, list, query) ? query : NULL;
}

void api_list_start(struct http_call *call)
{
	const struct api_list *list = call->route->of;
	struct api_query *query;
	int64_t subject = 0;

	if (list->search && api_search_wanted(call)) {
		api_search(call, list, /* machine= */ NULL);
		return;
	}
	if (list->owner && !list->owner(call, &subject))
		return;
	query = api_list_new(call, list);
	if (!query)
		return;
	if (list->owner)
		query->subject = subject;
	if (list->owner_name)
		query->name = call_param(call, list->owner_name);
	api_query_read(query);
}
