/* The texts of a batch's calls. See batch.h. */
#include "base/id.h"
#include "base/json_string.h"
#include "base/trace.h"
#include "flow/batch.h"

#define TEXT_BYTES_MAX (16u << 20)

struct slice batch_item_key(int64_t subject, int64_t n, const char *suffix, int64_t number, struct arena *arena)
{
	LOCAL_STRBUF(key, TEXT_BYTES_MAX);

	strbuf_addf(&key, "%s/%lld", id_text("batch", subject).text, (long long)n);
	if (suffix)
		strbuf_addf(&key, "/%s/%lld", suffix, (long long)number);
	return arena_keep(arena, &key);
}

struct slice batch_done_key(int64_t subject, const char *action, struct arena *arena)
{
	LOCAL_STRBUF(key, TEXT_BYTES_MAX);

	strbuf_addf(&key, "%s/done/%s", id_text("batch", subject).text, action);
	return arena_keep(arena, &key);
}

/* After the opening brace. */
static void add_head(const struct batch_hold *hold, const char *step, struct strbuf *body)
{
	strbuf_add_str(body, "\"workflow\":");
	json_quote(slice_str(hold->machine->definition->name), body);
	strbuf_addf(body, ",\"id\":\"%s\",\"step\":\"%s\",\"requester\":", id_text("batch", hold->subject).text, step);
	json_quote(hold->requester, body);
}

struct slice batch_call_body(const struct batch_hold *hold, const char *step, const struct batch_call_item *item,
			     struct arena *arena)
{
	struct slice input = item->input.p ? item->input : slice_str("null");
	LOCAL_STRBUF(body, TEXT_BYTES_MAX);

	strbuf_add_char(&body, '{');
	add_head(hold, step, &body);
	strbuf_add_str(&body, ",\"input\":");
	strbuf_add_slice(&body, input);
	strbuf_add_str(&body, ",\"data\":");
	strbuf_add_slice(&body, hold->data.p ? hold->data : slice_str("{}"));
	strbuf_addf(&body, ",\"item\":{\"n\":%lld,\"input\":", (long long)item->n);
	strbuf_add_slice(&body, input);
	strbuf_add_str(&body, ",\"output\":");
	strbuf_add_slice(&body, item->output.p ? item->output : slice_str("null"));
	strbuf_add_char(&body, '}');
	if (item->about.p) {
		strbuf_add_str(&body, ",\"key\":");
		json_quote(item->about, &body);
	}
	strbuf_add_char(&body, '}');
	return arena_keep(arena, &body);
}

struct slice batch_totals(const struct batch_hold *hold, const struct batch_row *row, const char *to, int64_t version,
			  struct arena *arena)
{
	LOCAL_STRBUF(body, TEXT_BYTES_MAX);

	strbuf_add_char(&body, '{');
	trace_add_members(hold->trace, &body);
	add_head(hold, "done", &body);
	strbuf_addf(&body, ",\"from\":\"%s\",\"to\":\"%s\",\"version\":%lld,\"output\":{\"total\":%lld", row->status,
		    to, (long long)version, (long long)row->total);
	strbuf_addf(&body, ",\"succeeded\":%lld,\"failed\":%lld,\"unknown\":%lld", (long long)row->succeeded,
		    (long long)row->failed, (long long)row->unknown);
	strbuf_addf(&body, ",\"accepted\":%lld,\"cancelled\":%lld", (long long)row->accepted,
		    (long long)row->cancelled);
	strbuf_addf(&body, ",\"charged\":%lld,\"refunded\":%lld}}", (long long)row->charged, (long long)row->refunded);
	return arena_keep(arena, &body);
}
