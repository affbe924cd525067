/* Jobs, so far the after-effects: list them, give a parked one another try. */
#include "base/id.h"
#include "base/json_string.h"
#include "flow/job.h"
#include "http/api.h"

static void add_text(struct strbuf *text, const char *member, const struct db_value *value)
{
	strbuf_addf(text, ",\"%s\":", member);
	if (value->type == DB_NULL)
		strbuf_add_str(text, "null");
	else
		json_quote(value->s, text);
}

static void add_job(struct strbuf *text, const struct db_rows *rows, size_t i)
{
	char id[ID_TEXT_BYTES];

	id_format("job", db_cell(rows, i, JOB_SUBJECT)->i, id);
	strbuf_addf(text, "{\"id\":\"%s\"", id);
	add_text(text, "queue", db_cell(rows, i, JOB_QUEUE));
	add_text(text, "status", db_cell(rows, i, JOB_STATUS));
	strbuf_addf(text, ",\"attempt\":%lld", (long long)db_cell(rows, i, JOB_ATTEMPT)->i);
	add_text(text, "workflow", db_cell(rows, i, JOB_WORKFLOW));
	add_text(text, "action", db_cell(rows, i, JOB_ACTION));
	add_text(text, "idempotencyKey", db_cell(rows, i, JOB_KEY));
	strbuf_add_str(text, ",\"payload\":");
	strbuf_add_slice(text, db_cell(rows, i, JOB_PAYLOAD)->s);
	add_text(text, "error", db_cell(rows, i, JOB_ERROR));
	strbuf_add_char(text, ',');
	if (db_cell(rows, i, JOB_DUE_AT)->type == DB_NULL)
		strbuf_add_str(text, "\"runAt\":null");
	else
		api_add_time(text, "runAt", db_cell(rows, i, JOB_DUE_AT)->i);
	strbuf_add_char(text, ',');
	api_add_time(text, "updatedAt", db_cell(rows, i, JOB_UPDATED_AT)->i);
	strbuf_add_char(text, '}');
}

/* ---- list ---- */

static void build_list(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;

	job_list(unit, api_workspace(query->call), query->status_wanted, query->subject, query->limit + 1);
}

static enum hx_code answered_list(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;
	const struct db_rows *rows = &result->rows[0];
	size_t n = rows->n > (size_t)query->limit ? (size_t)query->limit : rows->n;
	char cursor[ID_TEXT_BYTES];

	strbuf_add_str(&query->text, "{\"items\":[");
	for (size_t i = 0; i < n; i++) {
		strbuf_add_str(&query->text, i ? "," : "");
		add_job(&query->text, rows, i);
	}
	if (rows->n > n) {
		id_format("job", db_cell(rows, n - 1, JOB_SUBJECT)->i, cursor);
		strbuf_addf(&query->text, "],\"cursor\":\"%s\"}", cursor);
	} else {
		strbuf_add_str(&query->text, "],\"cursor\":null}");
	}
	return HX_OK;
}

void api_job_list(struct http_call *call)
{
	struct slice status = {NULL, 0}, cursor = {NULL, 0};
	struct hx_error err;
	struct api_query *query;
	int64_t limit, after = 0;

	if (!api_query_number(call, "limit", API_PAGE_DEFAULT, API_PAGE_MAX, &limit))
		return;
	if (query_get(&call->query, "status", &err, &status) || query_get(&call->query, "cursor", &err, &cursor)) {
		http_respond_error(call->exchange, &err);
		return;
	}
	if (cursor.n && !id_parse("job", cursor, &after)) {
		http_respond_code(call->exchange, HX_VALIDATION_ERROR, "this is no cursor of this list");
		return;
	}
	query = api_query_new(call, build_list, answered_list);
	if (!query)
		return;
	query->status_wanted = status;
	query->subject = after;
	query->limit = limit;
	api_query_read(query);
}

/* ---- redrive ---- */

static void build_redrive(const struct single *single, struct unit *unit)
{
	const struct api_query *query = single->context;

	job_redrive(unit, &single->stamp, api_workspace(query->call), query->subject);
}

static enum hx_code answered_redrive(struct single *single, const struct unit_result *result)
{
	struct api_query *query = single->context;

	query->detail = "there is no parked job of this id";
	return result->verdict == UNIT_WON ? HX_OK : HX_WRONG_STATUS;
}

static void render_redrive(struct api_query *query)
{
	id_format("job", query->subject, query->id);
	strbuf_addf(&query->text, "{\"id\":\"%s\",\"status\":\"%s\"}", query->id, JOB_AVAILABLE);
}

void api_job_redrive(struct http_call *call)
{
	struct api_query *query;
	int64_t subject;

	if (!id_parse("job", call_param(call, "id"), &subject)) {
		http_respond_code(call->exchange, HX_NOT_FOUND, "there is no such job");
		return;
	}
	query = api_query_new(call, build_redrive, answered_redrive);
	if (!query)
		return;
	query->render = render_redrive;
	query->subject = subject;
	api_query_start(query, (uint64_t)subject);
}
