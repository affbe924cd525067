/* See batch_json.h. */
#include "api/batch_json.h"

#include "api/api.h"
#include "base/id.h"

static void add_counts(const struct batch_row *row, struct strbuf *text)
{
	api_more_int(text, "total", row->total);
	api_more_int(text, "pending", batch_pending(row));
	api_more_int(text, "running", row->running);
	api_more_int(text, "succeeded", row->succeeded);
	api_more_int(text, "failed", row->failed);
	api_more_int(text, "unknown", row->unknown);
	api_more_int(text, "accepted", row->accepted);
	api_more_int(text, "cancelled", row->cancelled);
	api_more_int(text, "charged", row->charged);
	api_more_int(text, "refunded", row->refunded);
	api_more_int(text, "late", row->late);
}

void batch_json_add(const struct batch_row *row, enum batch_wrap wrap, struct strbuf *text)
{
	char id[ID_TEXT_BYTES];

	id_format("batch", row->subject, id);
	strbuf_addf(text, "{\"id\":\"%s\"", id);
	api_more_text(text, "workflow", row->workflow);
	api_more_int(text, "definitionVersion", row->definition_version);
	api_more_text(text, "account", row->account_name);
	api_more_text(text, "status", slice_str(row->status));
	api_more_int(text, "version", row->version);
	api_more_json(text, "cancelRequested", slice_str(row->cancel_requested ? "true" : "false"));
	add_counts(row, text);
	if (row->needs >= 0)
		api_more_int(text, "needs", row->needs);
	else
		api_more_json(text, "needs", slice_of(NULL, 0));
	api_more_text(text, "error", row->error);
	api_more_text(text, "idempotencyKey", row->key);
	api_more_time(text, "createdAt", row->created_at);
	api_more_time(text, "startedAt", row->started_at);
	api_more_time(text, "completedAt", row->completed_at);
	api_more_time(text, "dueAt", row->due_at);
	if (wrap != BATCH_AS_IS)
		api_more_json(text, "created", slice_str(wrap == BATCH_IS_NEW ? "true" : "false"));
	strbuf_add_char(text, '}');
}

void batch_json_add_item(const struct batch_item_row *item, struct strbuf *text)
{
	strbuf_addf(text, "{\"n\":%lld", (long long)item->n);
	api_more_text(text, "status", slice_str(item->status));
	api_more_text(text, "decision", item->decision);
	api_more_int(text, "cost", item->cost);
	api_more_int(text, "charged", item->charged);
	api_more_int(text, "attempt", item->attempt);
	api_more_json(text, "input", item->input);
	api_more_json(text, "output", item->output);
	api_more_json(text, "late", item->late);
	api_more_text(text, "error", item->error);
	strbuf_add_char(text, '}');
}
