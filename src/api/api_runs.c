/*
 * Runs: create, show, list.
 *
 * Creating one is a single unit: the run, which its key lets in once, and in front of it the record of the request's
 * Idempotency-Key. Who loses to the run's own key reads the run that is there (insert and see, never look and insert):
 *
 *   unit ─┬ won ───────────────▶ the engine drives it at once ─▶ 201, or wait
 *         ├ lost to the run ───▶ (with an Idempotency-Key: acquire) ─▶ read by its key ─▶ 200, or wait
 *         └ lost to the record ▶ the gate replays, refuses, or lets it try again
 */
#include "api/api_gate.h"
#include "api/api_list.h"
#include "api/api_wait.h"
#include "api/run_json.h"
#include "api/run_wait.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "engine/run_start.h"
#include "wire/loop.h"

/* ---- reading the request ---- */

bool api_key_checked(struct http_call *call, struct json value, const char *what, struct slice *ret_key)
{
	struct slice key = {NULL, 0};

	if (json_type(value) == JSON_STRING)
		key = json_string_decode(value, call->arena);
	if (run_key_is_good(key)) {
		*ret_key = key;
		return true;
	}
	return api_invalid(call, "%s is a string of 1 to %d characters, without U+0000", what, RUN_KEY_CHARACTERS_MAX);
}

static bool read_workflow(struct http_call *call, struct json body, struct slice *ret_name)
{
	struct json value;

	if (!json_find(body, slice_str("definitionId"), &value) || json_type(value) != JSON_STRING)
		return api_refuse(call, HX_VALIDATION_ERROR, "definitionId must be a string: the name of a workflow");
	*ret_name = json_string_view(value, call->arena);
	return ret_name->p || api_refuse(call, HX_BUSY, NULL);
}

/* False after answering. */
static bool read_start(struct http_call *call, struct run_start *start)
{
	static const char *const known[] = {"definitionId", "input", "idempotencyKey", NULL};
	struct run_wanted wanted = {
		.workspace = api_workspace(call),
		.requester = api_requester(call),
		.traceparent = api_traceparent(call),
	};
	struct json body, value, input;
	struct hx_error err;
	enum hx_code code;

	if (!api_body(call, known, &body) || !read_workflow(call, body, &wanted.workflow))
		return false;
	if (json_find(body, slice_str("input"), &input))
		wanted.input = &input;
	code = run_start_init(start, api_of(call)->engine, &wanted, &err);
	if (code == HX_NOT_FOUND)
		api_no_workflow(call, wanted.workflow, "run");
	else if (code)
		http_respond_error(call->exchange, &err);
	if (code)
		return false;
	if (!json_find(body, slice_str("idempotencyKey"), &value))
		return true;
	return api_key_checked(call, value, "idempotencyKey", &start->spec.key) &&
	       (!run_key_is_reserved(start->spec.key) || api_refuse(call, HX_KEY_RESERVED, RUN_KEYS_RESERVED));
}

/* ---- create ---- */

struct creation {
	struct api_query query;  /* the unit that creates */
	struct api_query by_key; /* the one that reads what is there already */
	struct run_start start;
	int64_t wait_ms;
	enum run_wait_wrap wrap; /* of what is there already */
};

static void build_create(struct api_query *query, struct unit *unit)
{
	struct creation *c = (struct creation *)query;

	run_start_build(&c->start, &query->single, unit);
}

static enum hx_code answered_create(struct api_query *query, const struct unit_result *result)
{
	(void)query;
	return run_start_answered(result);
}

static void render_create(struct api_query *query)
{
	struct creation *c = (struct creation *)query;

	c->query.status = 201;
	c->query.etag = 1;
	run_start_take_created(&c->start, &query->single);
	run_wait_wrap(&c->start.row, RUN_CREATED, &query->text);
}

static void build_by_key(struct api_query *query, struct unit *unit)
{
	const struct creation *c = CONTAINER_OF(query, struct creation, by_key);

	run_start_build_find(&c->start, unit);
}

static enum hx_code answered_by_key(struct api_query *query, const struct unit_result *result)
{
	struct creation *c = CONTAINER_OF(query, struct creation, by_key);
	enum hx_code code = run_wait_show_started(&c->start, result, &c->wrap, &c->by_key.text);

	c->by_key.detail = c->start.detail;
	c->by_key.etag = code ? 0 : c->start.row.version;
	return code;
}

static void found_by_key(struct api_query *query, enum hx_code code)
{
	struct creation *c = CONTAINER_OF(query, struct creation, by_key);

	if (!code && c->wait_ms && !run_is_terminal(c->start.row.status))
		api_wait_start(&(struct api_wait){.kind = &run_waits,
						  .call = query->call,
						  .subject = c->start.row.subject,
						  .wait_ms = c->wait_ms,
						  .wrap = c->wrap});
	else
		api_query_tell(query, code);
}

static void read_by_key(void *data)
{
	struct creation *c = data;

	c->by_key = (struct api_query){
		.call = c->query.call, .build = build_by_key, .answered = answered_by_key, .ended = found_by_key};
	api_query_init(&c->by_key);
	api_query_start(&c->by_key, run_start_lane(&c->start));
}

static void created(struct api_query *query, enum hx_code code)
{
	struct creation *c = (struct creation *)query;
	struct api_gate *gate = query->call->gate;
	struct drive *drive = NULL;

	if (code == HX_ALREADY_EXISTS && c->start.spec.key.p) {
		if (gate)
			api_gate_acquire(gate, read_by_key, c);
		else
			read_by_key(c);
		return;
	}
	if (!code)
		drive = runs_created(api_parts(query->call)->runs, &c->start.spec, &c->start.row);
	if (!code && c->wait_ms) {
		if (gate)
			api_gate_tell_more(gate);
		/* First who waits, in the same lane: a run that has ended by then would be waited for until the next look. */
		api_wait_start(&(struct api_wait){
			.kind = &run_waits,
			.call = query->call,
			.subject = c->start.spec.subject,
			.wait_ms = c->wait_ms,
			.wrap = RUN_CREATED,
			.known = &c->start.row,
			.begun = drive != NULL,
		});
	} else {
		api_query_tell(query, code);
	}
	runs_drive(drive); /* the exchange may be gone by now */
}

void api_run_create(struct http_call *call)
{
	struct creation *c = arena_zalloc(call->arena, sizeof *c);

	if (!c) {
		http_respond_code(call->exchange, HX_BUSY, NULL);
		return;
	}
	if (!api_wait_parse(call, &c->wait_ms) || !read_start(call, &c->start))
		return;
	c->query = (struct api_query){
		.call = call,
		.build = build_create,
		.answered = answered_create,
		.render = render_create,
		.ended = created,
	};
	api_query_init(&c->query);
	api_query_start(&c->query, run_start_lane(&c->start));
}

/* ---- show ---- */

bool api_run_id(struct http_call *call, int64_t *ret_subject)
{
	return api_id(call, "run", runs_detail(HX_NOT_FOUND), ret_subject);
}

static void build_show(struct api_query *query, struct unit *unit)
{
	run_read(unit, api_workspace(query->call), query->subject);
}

static enum hx_code answered_show(struct api_query *query, const struct unit_result *result)
{
	struct run_row row;
	enum hx_code code = run_wait_show(query->call, result, RUN_BARE, &query->text, &row);

	query->detail = runs_detail(code);
	query->etag = code ? 0 : row.version;
	return code;
}

void api_run_show(struct http_call *call)
{
	struct api_query query = {.call = call, .build = build_show, .answered = answered_show};
	struct api_wait wait = {.kind = &run_waits, .call = call, .wrap = RUN_BARE};

	if (!api_wait_parse(call, &wait.wait_ms) || !api_run_id(call, &wait.subject))
		return;
	query.subject = wait.subject;
	if (wait.wait_ms)
		api_wait_start(&wait);
	else
		api_query_ask(&query, (uint64_t)query.subject);
}

/* ---- list ---- */

static void build_list(struct api_query *query, struct unit *unit)
{
	struct run_filter filter = {.workspace = api_workspace(query->call),
				    .status = query->status_wanted,
				    .workflow = query->name,
				    .unknown = query->held,
				    .before = query->subject,
				    .limit = query->limit + 1,
				    .parent = query->parent};

	run_list(unit, &filter);
}

static void add_listed(struct api_query *query, const struct db_rows *rows, size_t i)
{
	const struct run_policy *policy = runs_policy(api_parts(query->call)->runs);

	run_json_add_listed(rows, i,
			    policy->machine_of(policy->context, db_cell(rows, i, RUN_WORKFLOW)->s,
					       db_cell(rows, i, RUN_DEFINITION_VERSION)->i),
			    &query->text);
}

void api_run_list(struct http_call *call)
{
	static const struct api_list list = {
		.build = build_list,
		.filters = {FILTER_WORD("status", status_wanted, run_statuses, "status of runs"),
			    FILTER_TEXT("definitionId", name), FILTER_FLAG("unknown", held),
			    FILTER_ID("parent", parent, "run")},
		.cursor = CURSOR_ID,
		.prefix = "run",
		.column = RUN_SUBJECT,
		.start = INT64_MAX,
		.add = add_listed,
	};

	api_list_start(call, &list);
}
