/* GET /attention: what waits for a person, of every kind, the oldest first (flow/attention.h). */
#include <stdio.h>

#include "api/api.h"
#include "base/id.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "flow/attention.h"

#define CURSOR_BYTES 48

static void build_list(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;
	struct attention_filter filter = {
		.workspace = api_workspace(query->call),
		.kind = query->name,
		.since = query->number,
		.subject = query->subject,
		.limit = query->limit + 1,
	};

	attention_list(unit, &filter);
}

/* How ids of such subjects begin; NULL: an entity, which has a name. */
static const char *prefix_of(struct slice kind)
{
	if (slice_is(kind, "held_claim"))
		return NULL;
	return slice_is(kind, "parked_job") || slice_is(kind, "parked_after_effect") ? "job"
	       : slice_is(kind, "unknown_items") || slice_is(kind, "stuck_teardown") ? "batch"
										     : "run";
}

/* As `hapax why` takes it. */
static void add_id(struct strbuf *text, const char *prefix, const struct db_rows *rows, size_t i)
{
	char id[ID_TEXT_BYTES];
	struct strbuf name;

	if (prefix) {
		id_format(prefix, db_cell(rows, i, ATTENTION_SUBJECT)->i, id);
		strbuf_addf(text, "\"%s\"", id);
		return;
	}
	strbuf_init(&name, 4096);
	strbuf_addf(&name, "entity:%.*s:%.*s", SLICE_ARGS(db_cell(rows, i, ATTENTION_WORKFLOW)->s),
		    SLICE_ARGS(db_cell(rows, i, ATTENTION_NAME)->s));
	json_quote(strbuf_slice(&name), text);
	strbuf_release(&name);
}

static void add_text(struct strbuf *text, const char *member, const struct db_value *value)
{
	strbuf_addf(text, ",\"%s\":", member);
	if (value->type == DB_NULL || value->s.n == 0)
		strbuf_add_str(text, "null");
	else
		json_quote(value->s, text);
}

/* The error of a run says both: at which step, and what. Other errors are as somebody wrote them, whatever they look like. */
static void add_reason(struct strbuf *text, bool of_run, const struct db_value *step, const struct db_value *detail)
{
	struct json error = {0}, where, what;

	if (!of_run || detail->type == DB_NULL || json_check(detail->s, /* err= */ NULL, &error) ||
	    json_type(error) != JSON_OBJECT || !json_find(error, slice_str("message"), &what)) {
		add_text(text, "step", step);
		add_text(text, "detail", detail);
		return;
	}
	if (step->type != DB_NULL || !json_find(error, slice_str("step"), &where))
		add_text(text, "step", step);
	else
		api_more_json(text, "step", where.raw);
	api_more_json(text, "detail", what.raw);
}

static void add_item(struct strbuf *text, const struct db_rows *rows, size_t i)
{
	const char *prefix = prefix_of(db_cell(rows, i, ATTENTION_KIND)->s);

	strbuf_addf(text, "{\"kind\":\"%.*s\",\"id\":", SLICE_ARGS(db_cell(rows, i, ATTENTION_KIND)->s));
	add_id(text, prefix, rows, i);
	add_text(text, "workflow", db_cell(rows, i, ATTENTION_WORKFLOW));
	add_text(text, "status", db_cell(rows, i, ATTENTION_STATUS));
	add_reason(text, prefix && strcmp(prefix, "run") == 0, db_cell(rows, i, ATTENTION_STEP),
		   db_cell(rows, i, ATTENTION_DETAIL));
	api_more_time(text, "since", db_cell(rows, i, ATTENTION_SINCE)->i);
	strbuf_add_char(text, '}');
}

static enum hx_code answered_list(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	const struct db_rows *rows = &result->rows[0];
	size_t n = rows->n > (size_t)query->limit ? (size_t)query->limit : rows->n;
	char cursor[CURSOR_BYTES];
	struct db_value last;

	strbuf_add_str(&query->text, "{\"items\":[");
	for (size_t i = 0; i < n; i++) {
		strbuf_add_str(&query->text, i ? "," : "");
		add_item(&query->text, rows, i);
	}
	if (rows->n > n)
		snprintf(cursor, sizeof cursor, "%lld.%lld", (long long)db_cell(rows, n - 1, ATTENTION_SINCE)->i,
			 (long long)db_cell(rows, n - 1, ATTENTION_SUBJECT)->i);
	last = db_str(rows->n > n ? cursor : "");
	api_end_page(&query->text, rows->n > n ? &last : NULL);
	return HX_OK;
}

static bool read_cursor(struct slice text, int64_t *ret_since, int64_t *ret_subject)
{
	long long since, subject;
	char copy[CURSOR_BYTES];
	int end = 0;

	if (text.n >= sizeof copy)
		return false;
	snprintf(copy, sizeof copy, "%.*s", SLICE_ARGS(text));
	if (sscanf(copy, "%lld.%lld%n", &since, &subject, &end) != 2 || copy[end])
		return false;
	*ret_since = since;
	*ret_subject = subject;
	return true;
}

void api_attention(struct http_call *call)
{
	struct slice kind = {NULL, 0}, cursor = {NULL, 0};
	int64_t limit, since = INT64_MIN, subject = INT64_MIN;
	struct api_query *query;
	struct hx_error err;

	if (!api_query_number(call, "limit", API_PAGE_DEFAULT, API_PAGE_MAX, &limit))
		return;
	if (query_get(&call->query, "kind", &err, &kind) || query_get(&call->query, "cursor", &err, &cursor)) {
		http_respond_error(call->exchange, &err);
		return;
	}
	if (kind.n && !api_word_checked(call, kind, attention_kinds, "kind of what waits", HX_VALIDATION_ERROR))
		return;
	if (cursor.n && !read_cursor(cursor, &since, &subject)) {
		http_respond_code(call->exchange, HX_VALIDATION_ERROR, "this is no cursor of this list");
		return;
	}
	query = api_query_new(call, build_list, answered_list);
	if (!query)
		return;
	query->name = kind;
	query->number = since;
	query->subject = subject;
	query->limit = limit;
	api_query_read(query);
}
