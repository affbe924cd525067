/* See batch_json.h. */
#include "api/batch_json.h"

#include "api/row_json.h"

#define AT(field) .at = offsetof(struct batch_row, field)
/* clang-format off */
#define COUNT(_, column, member) ROW_SAME(INT, member),
#define ITEM(kind, field) {#field, ROW_##kind, .at = offsetof(struct batch_item_row, field)}
/* clang-format on */

static void add_pending(struct strbuf *text, const void *row)
{
	json_more_int(text, "pending", batch_pending(row));
}

/* clang-format off */
static const struct row_member batch_members[] = {
	{"id", ROW_ID, AT(subject), .prefix = "batch"},
	ROW_SAME(TEXT, workflow),
	{"definitionVersion", ROW_INT, AT(definition_version)},
	{"account", ROW_TEXT, AT(account_name)},
	ROW_SAME(DATA, data),
	ROW_SAME(ATTRIBUTES, attributes),
	ROW_SAME(WORD, status),
	ROW_SAME(INT, version),
	{"cancelRequested", ROW_BOOL, AT(cancel_requested)},
	ROW_SAME(INT, total),
	{"pending", ROW_OWN, .add = add_pending},
	ROW_SAME(INT, running),
	BATCH_COUNTS(COUNT, _)
	ROW_SAME(COUNT, needs),
	ROW_SAME(TEXT, error),
	{"idempotencyKey", ROW_TEXT, AT(key)},
	ROW_LIFE,
	{"dueAt", ROW_TIME, AT(due_at)},
	{.name = NULL},
};
/* clang-format on */

static const struct row_member item_members[] = {
	ITEM(INT, n),       ITEM(WORD, status), ITEM(TEXT, decision), ITEM(INT, cost),
	ITEM(INT, charged), ITEM(INT, attempt), ITEM(JSON, input),    ITEM(JSON, output),
	ITEM(JSON, late),   ITEM(TEXT, error),  {.name = NULL},
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
	row_json_object(text, item_members, item);
}
