/* Jobs: push, show, list, give a parked one another try. What workers do with them is api_job_work.c. */
#include "api/api_list.h"
#include "base/id.h"
#include "base/json_members.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "flow/job_work.h"

bool api_job_id(struct http_call *call, int64_t *ret_subject)
{
	return api_id(call, "job", "there is no such job", ret_subject);
}

/* ---- one job as JSON ---- */

static const struct row_member job_members[] = {
	{"id", ROW_ID, .at = JOB_SUBJECT, .prefix = "job"},
	{"queue", ROW_TEXT, .at = JOB_QUEUE},
	{"status", ROW_TEXT, .at = JOB_STATUS},
	{"attempt", ROW_INT, .at = JOB_ATTEMPT},
	{"priority", ROW_INT, .at = JOB_PRIORITY},
	{"workflow", ROW_TEXT, .at = JOB_WORKFLOW},
	{"action", ROW_TEXT, .at = JOB_ACTION},
	{"run", ROW_ID, .at = JOB_RUN, .prefix = "run"},
	{"key", ROW_TEXT, .at = JOB_USER_KEY},
	{"idempotencyKey", ROW_TEXT, .at = JOB_KEY},
	{"payload", ROW_JSON, .at = JOB_PAYLOAD},
	{"output", ROW_JSON, .at = JOB_OUTPUT},
	{"error", ROW_TEXT, .at = JOB_ERROR},
	{"owner", ROW_TEXT, .at = JOB_OWNER},
	{"leaseUntil", ROW_TIME, .at = JOB_UNTIL},
	{"runAt", ROW_TIME, .at = JOB_DUE_AT},
	{"updatedAt", ROW_TIME, .at = JOB_UPDATED_AT},
	{.name = NULL},
};

/* ---- push ---- */

struct push_call {
	struct api_task task;
	struct job_push push;
};

static bool read_time(struct http_call *call, struct json value, int64_t *ret_ms)
{
	struct hx_error err;
	struct wall_time time = {0};
	enum hx_code code = HX_VALIDATION_ERROR;

	if (json_type(value) == JSON_STRING)
		code = wall_time_parse("runAt", json_string_view(value, call->arena), &err, &time);
	else
		error_set(&err, code, "runAt must be a time of RFC 3339, as a string");
	if (code)
		http_respond_error(call->exchange, &err);
	*ret_ms = time.ms > 0 ? time.ms : 1; /* 0 would mean that there is none; the past is the past */
	return !code;
}

static bool read_item(struct http_call *call, struct json object, struct job_push_item *item)
{
	static const char *const known[] = {"queue", "payload", "key", "runAt", "priority", NULL};
	struct json value;
	struct hx_error err;

	if (json_type(object) != JSON_OBJECT)
		return api_refuse(call, HX_VALIDATION_ERROR, "a job must be a JSON object");
	if (!api_members_known(call, object, known))
		return false;
	if (!json_find(object, slice_str("queue"), &value))
		return api_refuse(call, HX_VALIDATION_ERROR, "queue is missing");
	if (!api_queue_checked(call, value, &item->queue))
		return false;
	if (!api_member(call, object, "payload", JOB_PAYLOAD_BYTES_MAX, "payload is at most 1 MiB", &item->payload))
		return false;
	if (json_find(object, slice_str("key"), &value) && !api_own_key_checked(call, value, "key", &item->key))
		return false;
	if (json_find(object, slice_str("runAt"), &value) && !read_time(call, value, &item->due_at_ms))
		return false;
	if (json_find(object, slice_str("priority"), &value) &&
	    (json_int64(value, &err, &item->priority) || item->priority > JOB_PRIORITY_MAX ||
	     item->priority < -JOB_PRIORITY_MAX))
		return api_refuse(call, HX_VALIDATION_ERROR, "priority is a whole number from -1000 to 1000");
	return true;
}

/* An object is an array of one. */
static struct job_push_item *read_items(struct http_call *call, struct json body, size_t *ret_n)
{
	bool many = json_type(body) == JSON_ARRAY;
	struct json_iter it = json_iter_of(body);
	struct job_push_item *items;
	struct json object = body;

	*ret_n = many ? json_count(body) : 1;
	if (*ret_n < 1 || *ret_n > JOB_PUSH_MAX) {
		api_refuse(call, HX_VALIDATION_ERROR, "1 to 1000 jobs may be pushed at once");
		return NULL;
	}
	items = api_alloc(call, *ret_n * sizeof *items);
	for (size_t i = 0; items && i < *ret_n; i++)
		if ((many && !json_iter_element(&it, &object)) || !read_item(call, object, &items[i]))
			return NULL;
	return items;
}

static void write_pushed(const void *of, struct strbuf *text)
{
	const struct job_push *push = of;
	char id[ID_TEXT_BYTES];

	strbuf_add_str(text, "{\"jobs\":[");
	for (size_t i = 0; i < push->n; i++) {
		id_format("job", push->items[i].subject, id);
		strbuf_addf(text, "%s{\"id\":\"%s\",\"created\":%s}", i ? "," : "", id,
			    push->items[i].created ? "true" : "false");
	}
	strbuf_add_str(text, "]}");
}

static void push_done(struct seat *seat, enum hx_code code)
{
	struct push_call *pc = (struct push_call *)seat;

	api_task_end(&pc->task, code, /* detail= */ NULL,
		     &(struct api_told){201, .write = write_pushed, .of = &pc->push});
}

void api_job_push(struct http_call *call)
{
	struct job_push_item *items;
	struct push_call *pc;
	struct hx_error err;
	enum hx_code code;
	struct json body;
	size_t n;

	code = json_check(call->request->body, &err, &body);
	if (!code)
		code = json_check_unique(body, call->arena, &err);
	if (code) {
		http_respond_error(call->exchange, &err);
		return;
	}
	items = read_items(call, body, &n);
	pc = items ? api_task_new(call, sizeof *pc, /* arena_bytes_max= */ 0, push_done) : NULL;
	if (!pc)
		return;
	job_push_init(&pc->push, api_workspace(call), items, n, call->arena);
	api_task_start(&pc->task, &pc->push.task, (uint64_t)(uintptr_t)pc >> 4);
}

/* ---- show and list ---- */

static enum hx_code jobs_answered_show(struct api_query *query, const struct unit_result *result)
{
	query->detail = "there is no such job";
	if (result->rows[0].n == 0)
		return HX_NOT_FOUND;
	query->etag = db_cell(&result->rows[0], 0, JOB_VERSION)->i;
	strbuf_add_char(&query->text, '{');
	row_json_cells(&query->text, job_members, &result->rows[0], 0);
	strbuf_add_char(&query->text, '}');
	return HX_OK;
}

void api_job_show(struct http_call *call)
{
	struct api_query query = {.call = call, .read = job_read_in, .answered = jobs_answered_show};

	if (api_job_id(call, &query.subject))
		api_query_ask(&query, (uint64_t)query.subject);
}

static void jobs_build_list(struct api_query *query, struct unit *unit)
{
	job_list(unit, api_workspace(query->call), query->status_wanted, query->name, query->subject, query->limit + 1);
}

const struct api_list api_job_list = {
	.build = jobs_build_list,
	.filters = {FILTER_WORD("status", status_wanted, job_statuses, "status of jobs"), FILTER_TEXT("queue", name)},
	.cursor = CURSOR_ID,
	.prefix = "job",
	.column = JOB_SUBJECT,
	.slice_line = 1,
	.members = job_members,
};

/* ---- redrive ---- */

static void build_redrive(struct api_query *query, struct unit *unit)
{
	job_redrive(unit, &query->single.stamp, api_workspace(query->call), query->subject);
}

static enum hx_code answered_redrive(struct api_query *query, const struct unit_result *result)
{
	enum hx_code code = job_redriven(result);

	query->detail = job_redrive_detail(code);
	return code;
}

static void render_redrive(struct api_query *query)
{
	id_format("job", query->subject, query->id);
	strbuf_addf(&query->text, "{\"id\":\"%s\",\"status\":\"%s\"}", query->id, JOB_AVAILABLE);
}

void api_job_redrive(struct http_call *call)
{
	struct api_query query = {
		.call = call, .build = build_redrive, .answered = answered_redrive, .render = render_redrive};

	if (api_job_id(call, &query.subject))
		api_query_ask(&query, (uint64_t)query.subject);
}
