/* Batches: show, wait, list, list items. How they come to be is api_batch_load.c, what callers do to them api_batch_verbs.c. */
#include "api/api_list.h"
#include "api/api_search.h"
#include "api/api_wait.h"
#include "api/batch_wait.h"

#define ROW_BYTES_MAX (1u << 20)
#define PAGE_BYTES_MAX (16u << 20) /* a page of items ends with the one that passes it */
#define ITEM_BYTES_MAX (16u << 20)

bool api_batch_id(struct http_call *call, int64_t *ret_subject)
{
	return api_id(call, "batch", batch_detail(HX_NOT_FOUND), ret_subject);
}

/* ---- show ---- */

void api_batch_show(struct http_call *call)
{
	struct api_wait wait = {.kind = &batch_waits, .call = call, .wrap = BATCH_AS_IS};

	if (api_wait_parse(call, &wait.wait_ms) && api_batch_id(call, &wait.subject))
		api_wait_start(&wait);
}

/* ---- lists ---- */

static void batches_build_list(struct api_query *query, struct unit *unit)
{
	batch_list(unit, &(struct batch_filter){api_workspace(query->call), query->status_wanted, query->name,
						query->subject, query->limit + 1});
}

static void add_batch(struct api_query *query, const struct db_rows *rows, size_t i)
{
	struct batch_row row;

	LOCAL_ARENA(arena, ROW_BYTES_MAX);
	batch_row_take(rows, i, /* policy= */ NULL, &arena, &row);
	batch_json_add(&row, BATCH_AS_IS, &query->text);
}

static const struct api_search search = {WHERE_BATCH, BATCH_SUBJECT, batch_list_these, batch_statuses, batch_kind};
const struct api_list api_batch_list = {
	.build = batches_build_list,
	.filters = {FILTER_WORD("status", status_wanted, batch_statuses, "status of batches"),
		    FILTER_TEXT("workflow", name)},
	LIST_SEARCHED("batch", BATCH_SUBJECT, &search),
	.add = add_batch,
};

enum { LINE_BATCH, LINE_ITEMS, LINE_SLICE };

static void build_items(struct api_query *query, struct unit *unit)
{
	batch_read(unit, api_workspace(query->call), query->subject);
	item_list(unit, query->subject, query->status_wanted, query->name, query->number - 1, query->limit + 1);
}

static enum hx_code check_batch(struct api_query *query, const struct unit_result *result)
{
	const struct db_rows *rows = &result->rows[LINE_BATCH];
	enum hx_code code = rows->n == 0 ? HX_NOT_FOUND : db_cell(rows, 0, BATCH_EXPIRED)->i ? HX_RUN_EXPIRED : HX_OK;

	query->detail = batch_detail(code);
	return code;
}

static void batches_add_item(struct api_query *query, const struct db_rows *rows, size_t i)
{
	struct batch_item_row item;

	LOCAL_ARENA(arena, ITEM_BYTES_MAX);
	batch_item_row_take(rows, i, &arena, &item);
	batch_json_add_item(&item, &query->text);
}

/* A cursor is the next n, which is never 0. */
const struct api_list api_batch_items = {
	.build = build_items,
	.filters = {FILTER_WORD("status", status_wanted, item_statuses, "status of items"),
		    FILTER_WORD("decision", name, item_decisions, "decision")},
	.owner = api_batch_id,
	.line = LINE_ITEMS,
	.slice_line = LINE_SLICE,
	.cursor = CURSOR_NUMBER,
	.column = ITEM_N,
	.at_next = true,
	.bytes_max = PAGE_BYTES_MAX,
	.check = check_batch,
	.add = batches_add_item,
};
