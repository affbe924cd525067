/* Batches: show, wait, list, list items. How they come to be is api_batch_load.c, what callers do to them api_batch_verbs.c. */
#include "api/api.h"
#include "api/api_wait.h"
#include "api/batch_wait.h"
#include "base/id.h"

#define ROW_BYTES_MAX (1u << 20)
#define PAGE_BYTES_MAX (16u << 20) /* a page of items ends with the one that passes it */
#define ITEM_BYTES_MAX (16u << 20)

static bool refuse(struct http_call *call, enum hx_code code, const char *detail)
{
	http_respond_code(call->exchange, code, detail);
	return false;
}

bool api_batch_id(struct http_call *call, int64_t *ret_subject)
{
	return id_parse("batch", call_param(call, "id"), ret_subject) ||
	       refuse(call, HX_NOT_FOUND, batch_detail(HX_NOT_FOUND));
}

/* ---- show ---- */

void api_batch_show(struct http_call *call)
{
	int64_t subject, wait_ms;

	if (api_wait_parse(call, &wait_ms) && api_batch_id(call, &subject))
		batch_wait_start(call, subject, wait_ms, BATCH_AS_IS, /* created= */ NULL);
}

/* ---- lists ---- */

static void build_list(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;
	struct batch_filter filter = {
		.workspace = api_workspace(query->call),
		.status = query->status_wanted,
		.workflow = query->name,
		.before = query->subject,
		.limit = query->limit + 1,
	};

	batch_list(unit, &filter);
}

static enum hx_code answered_list(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	const struct db_rows *rows = &result->rows[0];
	size_t n = rows->n > (size_t)query->limit ? (size_t)query->limit : rows->n;
	struct batch_row row;
	struct arena arena;
	char cursor[ID_TEXT_BYTES];

	arena_init(&arena, ROW_BYTES_MAX);
	strbuf_add_str(&query->text, "{\"items\":[");
	for (size_t i = 0; i < n; i++) {
		arena_reset(&arena);
		batch_row_take(rows, i, /* policy= */ NULL, &arena, &row);
		strbuf_add_str(&query->text, i ? "," : "");
		batch_json_add(&row, BATCH_AS_IS, &query->text);
	}
	arena_release(&arena);
	if (rows->n > n) {
		id_format("batch", db_cell(rows, n - 1, BATCH_SUBJECT)->i, cursor);
		strbuf_addf(&query->text, "],\"cursor\":\"%s\"}", cursor);
	} else {
		strbuf_add_str(&query->text, "],\"cursor\":null}");
	}
	return HX_OK;
}

void api_batch_list(struct http_call *call)
{
	struct slice status = {NULL, 0}, workflow = {NULL, 0}, cursor = {NULL, 0};
	int64_t limit, before = INT64_MAX;
	struct api_query *query;
	struct hx_error err;

	if (!api_query_number(call, "limit", API_PAGE_DEFAULT, API_PAGE_MAX, &limit))
		return;
	if (query_get(&call->query, "status", &err, &status) || query_get(&call->query, "workflow", &err, &workflow) ||
	    query_get(&call->query, "cursor", &err, &cursor)) {
		http_respond_error(call->exchange, &err);
		return;
	}
	if ((status.n && !api_word_checked(call, status, batch_statuses, "status of batches", HX_VALIDATION_ERROR)) ||
	    (cursor.n && !id_parse("batch", cursor, &before) &&
	     !refuse(call, HX_VALIDATION_ERROR, "this is no cursor of this list")))
		return;
	query = api_query_new(call, build_list, answered_list);
	if (!query)
		return;
	query->status_wanted = status;
	query->name = workflow;
	query->subject = before;
	query->limit = limit;
	api_query_read(query);
}

enum { LINE_BATCH, LINE_ITEMS };

static void build_items(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;

	batch_read(unit, api_workspace(query->call), query->subject);
	item_list(unit, query->subject, query->status_wanted, query->name, query->number, query->limit + 1);
}

static enum hx_code find_batch(const struct db_rows *rows)
{
	if (rows->n == 0)
		return HX_NOT_FOUND;
	return db_cell(rows, 0, BATCH_EXPIRED)->i ? HX_RUN_EXPIRED : HX_OK;
}

/* At most n of them, fewer when they are large; returns how many. */
static size_t add_items(const struct db_rows *rows, size_t n, struct strbuf *text)
{
	struct batch_item_row item;
	struct arena arena;
	size_t i = 0;

	arena_init(&arena, ITEM_BYTES_MAX);
	for (; i < n && text->n < PAGE_BYTES_MAX; i++) {
		arena_reset(&arena);
		batch_item_row_take(rows, i, &arena, &item);
		strbuf_add_str(text, i ? "," : "");
		batch_json_add_item(&item, text);
	}
	arena_release(&arena);
	return i;
}

/* A cursor is the next n, which is never 0. */
static enum hx_code answered_items(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	const struct db_rows *rows = &result->rows[LINE_ITEMS];
	size_t n = rows->n > (size_t)query->limit ? (size_t)query->limit : rows->n;
	enum hx_code code = find_batch(&result->rows[LINE_BATCH]);

	query->detail = batch_detail(code);
	if (code)
		return code;
	strbuf_add_str(&query->text, "{\"items\":[");
	n = add_items(rows, n, &query->text);
	api_end_page(&query->text, rows->n > n ? db_cell(rows, n, ITEM_N) : NULL);
	return HX_OK;
}

void api_batch_items(struct http_call *call)
{
	struct slice status = {NULL, 0}, decision = {NULL, 0};
	int64_t limit, next, subject;
	struct api_query *query;
	struct hx_error err;

	if (!api_batch_id(call, &subject) || !api_query_number(call, "limit", API_PAGE_DEFAULT, API_PAGE_MAX, &limit) ||
	    !api_query_number(call, "cursor", 0, INT64_MAX, &next))
		return;
	if (query_get(&call->query, "status", &err, &status) || query_get(&call->query, "decision", &err, &decision)) {
		http_respond_error(call->exchange, &err);
		return;
	}
	if ((status.n && !api_word_checked(call, status, item_statuses, "status of items", HX_VALIDATION_ERROR)) ||
	    (decision.n && !api_word_checked(call, decision, item_decisions, "decision", HX_VALIDATION_ERROR)))
		return;
	query = api_query_new(call, build_items, answered_items);
	if (!query)
		return;
	query->subject = subject;
	query->status_wanted = status;
	query->name = decision;
	query->number = next - 1;
	query->limit = limit;
	api_query_read(query);
}
