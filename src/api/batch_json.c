/* See batch_json.h. */
#include "api/batch_json.h"

#include "api/row_json.h"

#define AT(field) .at = offsetof(struct batch_row, field)
#define ITEM_AT(field) .at = offsetof(struct batch_item_row, field)

static void add_pending(struct strbuf *text, const void *row)
{
	json_more_int(text, "pending", batch_pending(row));
}

static void add_data(struct strbuf *text, const void *of)
{
	const struct batch_row *row = of;

	if (row->data.p)
		json_more_json(text, "data", row->data);
}

static void add_attributes(struct strbuf *text, const void *of)
{
	const struct batch_row *row = of;

	if (!row->attributes.p)
		return;
	json_more(text, "attributes");
	attributes_json(row->attributes, text);
}

static const struct row_member batch_members[] = {
	{"id", ROW_ID, AT(subject), .prefix = "batch"},
	{"workflow", ROW_TEXT, AT(workflow)},
	{"definitionVersion", ROW_INT, AT(definition_version)},
	{"account", ROW_TEXT, AT(account_name)},
	{"data", ROW_OWN, .add = add_data},
	{"attributes", ROW_OWN, .add = add_attributes},
	{"status", ROW_WORD, AT(status)},
	{"version", ROW_INT, AT(version)},
	{"cancelRequested", ROW_BOOL, AT(cancel_requested)},
	{"total", ROW_INT, AT(total)},
	{"pending", ROW_OWN, .add = add_pending},
	{"running", ROW_INT, AT(running)},
	{"succeeded", ROW_INT, AT(succeeded)},
	{"failed", ROW_INT, AT(failed)},
	{"unknown", ROW_INT, AT(unknown)},
	{"accepted", ROW_INT, AT(accepted)},
	{"cancelled", ROW_INT, AT(cancelled)},
	{"charged", ROW_INT, AT(charged)},
	{"refunded", ROW_INT, AT(refunded)},
	{"late", ROW_INT, AT(late)},
	{"needs", ROW_COUNT, AT(needs)},
	{"error", ROW_TEXT, AT(error)},
	{"idempotencyKey", ROW_TEXT, AT(key)},
	{"createdAt", ROW_TIME, AT(created_at)},
	{"startedAt", ROW_TIME, AT(started_at)},
	{"completedAt", ROW_TIME, AT(completed_at)},
	{"dueAt", ROW_TIME, AT(due_at)},
	{.name = NULL},
};

static const struct row_member item_members[] = {
	{"n", ROW_INT, ITEM_AT(n)},
	{"status", ROW_WORD, ITEM_AT(status)},
	{"decision", ROW_TEXT, ITEM_AT(decision)},
	{"cost", ROW_INT, ITEM_AT(cost)},
	{"charged", ROW_INT, ITEM_AT(charged)},
	{"attempt", ROW_INT, ITEM_AT(attempt)},
	{"input", ROW_JSON, ITEM_AT(input)},
	{"output", ROW_JSON, ITEM_AT(output)},
	{"late", ROW_JSON, ITEM_AT(late)},
	{"error", ROW_TEXT, ITEM_AT(error)},
	{.name = NULL},
};

void batch_json_add(const struct batch_row *row, enum batch_wrap wrap, struct strbuf *text)
{
	strbuf_add_char(text, '{');
	row_json_struct(text, batch_members, row);
	if (wrap != BATCH_AS_IS)
		json_more_bool(text, "created", wrap == BATCH_IS_NEW);
	strbuf_add_char(text, '}');
}

void batch_json_add_item(const struct batch_item_row *item, struct strbuf *text)
{
	strbuf_add_char(text, '{');
	row_json_struct(text, item_members, item);
	strbuf_add_char(text, '}');
}
