/* The table of routes, and what all handlers share. */
#include "http/api.h"

#include <stdio.h>

#include "base/excerpt.h"
#include "base/hash.h"
#include "base/json_members.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "engine/definitions.h"
#include "http/api_gate.h"
#include "http/auth.h"
#include "model/nearest.h"

static const struct route routes[] = {
	{"POST", "/api/v1/entities/{workflow}", api_entity_create, ROUTE_EXECUTE, "Creates an entity."},
	{"GET", "/api/v1/entities/{workflow}", api_entity_list, ROUTE_READ, "Lists entities, by status."},
	{"GET", "/api/v1/entities/{workflow}/{id}", api_entity_show, ROUTE_READ, "Shows an entity."},
	{"POST", "/api/v1/entities/{workflow}/{id}/steps/{step}", api_entity_fire, ROUTE_EXECUTE, "Fires a step."},
	{"POST", "/api/v1/entities/{workflow}/{id}/steps/{step}/resolve", api_entity_resolve, ROUTE_EXECUTE,
	 "Says what became of a claim that is held for a person."},
	{"GET", "/api/v1/history/{subject}", api_history, ROUTE_READ, "Tells the history of a subject."},
	{"GET", "/api/v1/definitions", api_definition_list, ROUTE_READ, "Lists the workflows in force."},
	{"PUT", "/api/v1/definitions/{name}", api_definition_put, ROUTE_ADMIN, "Puts a new version of a workflow."},
	{"POST", "/api/v1/modules/{module}/sweep", api_module_sweep, ROUTE_ADMIN, "Sweeps the claims of a module."},
	{"POST", "/api/v1/workflow-runs", api_run_create, ROUTE_EXECUTE, "Starts a run, once for each key."},
	{"GET", "/api/v1/workflow-runs", api_run_list, ROUTE_READ, "Lists runs, the newest first."},
	{"GET", "/api/v1/workflow-runs/{id}", api_run_show, ROUTE_READ, "Shows a run, or waits for its end."},
	{"POST", "/api/v1/workflow-runs/{id}/cancel", api_run_cancel, ROUTE_EXECUTE, "Cancels a run and compensates."},
	{"POST", "/api/v1/workflow-runs/{id}/retry", api_run_retry, ROUTE_EXECUTE, "Tries a failed step again."},
	{"POST", "/api/v1/workflow-runs/{id}/pause", api_run_pause, ROUTE_EXECUTE, "Begins no further step."},
	{"POST", "/api/v1/workflow-runs/{id}/resume", api_run_resume, ROUTE_EXECUTE, "Goes on after a pause."},
	{"POST", "/api/v1/workflow-runs/{id}/events/{event}", api_run_event, ROUTE_EXECUTE, "Sends a run an event."},
	{"POST", "/api/v1/workflow-runs/{id}/approvals/{step}", api_run_approve, ROUTE_EXECUTE,
	 "Decides an approval that a run waits for."},
	{"POST", "/api/v1/workflow-runs/{id}/steps/{step}/resolve", api_run_resolve, ROUTE_EXECUTE,
	 "Says what became of a step that is UNKNOWN."},
	{"POST", "/api/v1/jobs", api_job_push, ROUTE_EXECUTE, "Pushes one job, or many."},
	{"GET", "/api/v1/jobs", api_job_list, ROUTE_READ, "Lists jobs, by status and queue."},
	{"POST", "/api/v1/jobs/claim", api_job_claim, ROUTE_EXECUTE, "Claims due jobs, waiting for some if need be."},
	{"GET", "/api/v1/jobs/{id}", api_job_show, ROUTE_READ, "Shows a job."},
	{"POST", "/api/v1/jobs/{id}/heartbeat", api_job_heartbeat, ROUTE_EXECUTE, "Keeps the claim on a job."},
	{"POST", "/api/v1/jobs/{id}/complete", api_job_complete, ROUTE_EXECUTE, "Says that a job is done."},
	{"POST", "/api/v1/jobs/{id}/fail", api_job_fail, ROUTE_EXECUTE, "Says that a job was not done."},
	{"POST", "/api/v1/jobs/{id}/redrive", api_job_redrive, ROUTE_EXECUTE, "Gives a parked job another try."},
	{"POST", "/api/v1/batches", api_batch_create, ROUTE_EXECUTE, "Creates a batch with its items."},
	{"GET", "/api/v1/batches", api_batch_list, ROUTE_READ, "Lists batches, the newest first."},
	{"GET", "/api/v1/batches/{id}", api_batch_show, ROUTE_READ, "Shows a batch, or waits for its end."},
	{"POST", "/api/v1/batches/{id}/items", api_batch_add_items, ROUTE_EXECUTE, "Adds items to a held batch."},
	{"GET", "/api/v1/batches/{id}/items", api_batch_items, ROUTE_READ, "Lists the items of a batch."},
	{"POST", "/api/v1/batches/{id}/start", api_batch_start, ROUTE_EXECUTE, "Starts a held batch."},
	{"POST", "/api/v1/batches/{id}/cancel", api_batch_cancel, ROUTE_EXECUTE, "Cancels a batch and refunds it."},
	{"POST", "/api/v1/batches/{id}/items/{n}/accept", api_batch_accept, ROUTE_EXECUTE, "Accepts an item."},
	{"POST", "/api/v1/batches/{id}/items/{n}/resolve", api_batch_resolve, ROUTE_EXECUTE,
	 "Says what became of an item that is UNKNOWN."},
	{"POST", "/api/v1/accounts", api_account_create, ROUTE_ADMIN, "Opens an account."},
	{"GET", "/api/v1/accounts/{id}", api_account_show, ROUTE_READ, "Shows an account."},
	{"GET", "/api/v1/accounts/{id}/ledger", api_account_ledger, ROUTE_READ, "Lists what made its balance."},
	{"POST", "/api/v1/accounts/{id}/credit", api_account_credit, ROUTE_ADMIN, "Credits it, once for each key."},
	{"GET", "/api/v1/why/{id}", api_why, ROUTE_READ, "Says what a subject is waiting for."},
	{"GET", "/healthz", api_healthz, ROUTE_PUBLIC, "The process is alive."},
	{"GET", "/readyz", api_readyz, ROUTE_PUBLIC, "The engine takes work."},
	{"GET", "/metrics", api_metrics, ROUTE_READ, "Numbers for Prometheus."},
};

const struct route *api_routes(size_t *ret_n)
{
	*ret_n = sizeof routes / sizeof *routes;
	return routes;
}

/* Whoever asks has names that the store can hold, whatever is asked. */
static bool admit_named(struct http_call *call)
{
	return api_name_checked(call, api_workspace(call), "the workspace") &&
	       api_name_checked(call, api_requester(call), "the requester") && api_gate_admit(call);
}

static void go_on(struct http_call *call)
{
	if (admit_named(call))
		call->route->handle(call);
}

static bool admit(struct http_call *call)
{
	return call->route->scope == ROUTE_PUBLIC || (auth_admit(call, go_on) && admit_named(call));
}

struct router *api_router_new(struct api *api)
{
	size_t n;
	const struct route *table = api_routes(&n);

	return router_new(table, n, admit, api);
}

struct api *api_of(const struct http_call *call)
{
	return call->context;
}

bool api_is_awaited(const struct http_call *call)
{
	return !http_exchange_gone(call->exchange) && atomic_load(&api_of(call)->ready);
}

struct slice api_workspace(const struct http_call *call)
{
	return call->workspace;
}

struct slice api_requester(const struct http_call *call)
{
	return call->requester;
}

/* 00-TRACE-PARENT-FLAGS, in lower-case hex. */
static bool is_traceparent(struct slice text)
{
	for (size_t i = 0; i < text.n; i++) {
		bool dash = i == 2 || i == 35 || i == 52;
		bool hex = (text.p[i] >= '0' && text.p[i] <= '9') || (text.p[i] >= 'a' && text.p[i] <= 'f');

		if (dash ? text.p[i] != '-' : !hex)
			return false;
	}
	return text.n == 55;
}

struct slice api_traceparent(const struct http_call *call)
{
	size_t n;
	const struct wire_field *trace = wire_find(call->request->wire.head.fields, "traceparent", &n);

	return trace && n == 1 && is_traceparent(trace->value) ? trace->value : slice_of(NULL, 0);
}

/* ---- what is not there ---- */

struct names {
	const char *kind;
	size_t n;
	const char *known[DEFINITIONS_MAX + 1];
};

static void add_name(void *context, const struct machine *machine)
{
	struct names *names = context;

	if (strcmp(machine->definition->kind, names->kind) == 0 && names->n < DEFINITIONS_MAX)
		names->known[names->n++] = machine->definition->name;
}

void api_no_workflow(struct http_call *call, struct slice name, const char *kind)
{
	struct names names = {.kind = kind};
	const char *nearest;
	char detail[240];

	engine_each_machine(api_of(call)->engine, add_name, &names);
	nearest = nearest_name(name, names.known);
	snprintf(detail, sizeof detail, "no workflow \"%s\"%s%s%s", excerpt_of(name).text,
		 nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
	http_respond_code(call->exchange, HX_NOT_FOUND, detail);
}

const struct entity_machine *api_machine_named(const struct http_call *call, struct slice name)
{
	const struct entity_machine *machine = engine_machine(api_of(call)->engine, name);

	return machine && machine->table && !slice_is(api_workspace(call), "default") ? NULL : machine;
}

const struct entity_machine *api_machine(struct http_call *call)
{
	struct slice name = call_param(call, "workflow");
	const struct entity_machine *machine = api_machine_named(call, name);

	if (!machine)
		api_no_workflow(call, name, "entity");
	return machine;
}

/* ---- reading requests ---- */

bool api_name_checked(struct http_call *call, struct slice name, const char *what)
{
	struct hx_error err;

	if (entity_name_is_good(name))
		return true;
	error_set(&err, HX_VALIDATION_ERROR, "%s is 1 to %d bytes of UTF-8 without control characters, not \"%s\"",
		  what, ENTITY_NAME_MAX, excerpt_of(name).text);
	http_respond_error(call->exchange, &err);
	return false;
}

static bool is_known(struct json name, const char *const known[])
{
	for (size_t i = 0; known[i]; i++)
		if (json_string_is(name, slice_str(known[i])))
			return true;
	return false;
}

bool api_members_known(struct http_call *call, struct json object, const char *const known[])
{
	struct json_iter it = json_iter_of(object);
	struct json name, value;

	while (json_iter_member(&it, &name, &value))
		if (!is_known(name, known)) {
			char detail[240];

			snprintf(detail, sizeof detail, "unknown member %s", excerpt_of(name.raw).text);
			http_respond_code(call->exchange, HX_VALIDATION_ERROR, detail);
			return false;
		}
	return true;
}

bool api_body(struct http_call *call, const char *const known[], struct json *ret_object)
{
	struct slice body = call->request->body.n ? call->request->body : slice_str("{}");
	struct hx_error err;
	enum hx_code code = json_check(body, &err, ret_object);

	if (!code && json_type(*ret_object) != JSON_OBJECT)
		code = error_set(&err, HX_VALIDATION_ERROR, "the body must be a JSON object");
	if (!code)
		code = json_check_unique(*ret_object, call->arena, &err);
	if (code) {
		err.code = code;
		http_respond_error(call->exchange, &err);
		return false;
	}
	return api_members_known(call, *ret_object, known);
}

bool api_is_counted(struct json value, int64_t min, int64_t max, int64_t *ret_number)
{
	for (size_t i = 0; i < value.raw.n; i++)
		if (value.raw.p[i] < '0' || value.raw.p[i] > '9')
			return false;
	return json_type(value) == JSON_NUMBER && json_int64(value, /* err= */ NULL, ret_number) == HX_OK &&
	       *ret_number >= min && *ret_number <= max;
}

bool api_version(struct http_call *call, struct json body, int64_t *ret_version)
{
	struct json value;
	struct hx_error err;

	*ret_version = 0;
	if (!json_find(body, slice_str("version"), &value))
		return true;
	if (json_int64(value, &err, ret_version) == HX_OK && *ret_version >= 1)
		return true;
	http_respond_code(call->exchange, HX_VALIDATION_ERROR, "version is a whole number from 1 on");
	return false;
}

bool api_either(struct http_call *call, struct json body, const char *member, const char *yes, const char *no,
		bool *ret_yes)
{
	struct hx_error err;
	struct json value;
	bool is_text = json_find(body, slice_str(member), &value) && json_type(value) == JSON_STRING;

	*ret_yes = is_text && json_string_is(value, slice_str(yes));
	if (*ret_yes || (is_text && json_string_is(value, slice_str(no))))
		return true;
	error_set(&err, HX_VALIDATION_ERROR, "%s is \"%s\" or \"%s\"", member, yes, no);
	http_respond_error(call->exchange, &err);
	return false;
}

bool api_query_number(struct http_call *call, const char *name, int64_t otherwise, int64_t max, int64_t *ret_number)
{
	struct slice text = {NULL, 0};
	struct hx_error err;
	struct json number;
	enum hx_code code = query_get(&call->query, name, &err, &text);

	*ret_number = otherwise;
	if (!code && !text.p)
		return true;
	if (!code)
		code = json_check(text, &err, &number);
	if (!code)
		code = json_type(number) == JSON_NUMBER ? json_int64(number, &err, ret_number) : HX_VALIDATION_ERROR;
	if (!code && *ret_number >= 1 && *ret_number <= max)
		return true;
	error_set(&err, HX_VALIDATION_ERROR, "%s is a whole number from 1 to %lld", name, (long long)max);
	http_respond_error(call->exchange, &err);
	return false;
}

/* ---- answering ---- */

void api_json_init(struct api_json *json, int status, struct slice text, int64_t etag_version)
{
	json->fields[0] = (struct wire_field){slice_str("Content-Type"), slice_str("application/json")};
	json->answer = (struct http_answer){.status = status, .fields = {json->fields, 1}, .body = text};
	if (etag_version) {
		snprintf(json->etag, sizeof json->etag, "\"%lld\"", (long long)etag_version);
		json->fields[1] = (struct wire_field){slice_str("ETag"), slice_str(json->etag)};
		json->answer.fields.n = 2;
	}
}

void api_respond_json(struct http_call *call, int status, struct strbuf *text, int64_t etag_version)
{
	struct api_json json;

	if (text->failed) {
		/* Behind a key it is told for what it is: the work was done, and must not be let go. */
		http_respond_code(call->exchange, call->gate ? HX_RESPONSE_NOT_STORED : HX_TOO_LARGE,
				  "the answer would be too large");
		return;
	}
	api_json_init(&json, status, strbuf_slice(text), etag_version);
	http_respond(call->exchange, &json.answer);
}

uint64_t api_entity_hash(struct slice workspace, const char *workflow, struct slice name)
{
	uint64_t hash = hash_bytes(1, workspace.p, workspace.n);

	hash = hash_bytes(hash, workflow, strlen(workflow));
	return hash_bytes(hash, name.p, name.n);
}

void api_add_time(struct strbuf *text, const char *member, int64_t ms)
{
	char time[WALL_TIME_TEXT_BYTES];

	wall_time_format((struct wall_time){ms}, time);
	strbuf_addf(text, "\"%s\":\"%s\"", member, time);
}

void api_more_json(struct strbuf *text, const char *member, struct slice json)
{
	strbuf_addf(text, ",\"%s\":", member);
	strbuf_add_slice(text, json.p ? json : slice_str("null"));
}

void api_more_text(struct strbuf *text, const char *member, struct slice value)
{
	strbuf_addf(text, ",\"%s\":", member);
	if (value.p)
		json_quote(value, text);
	else
		strbuf_add_str(text, "null");
}

void api_more_time(struct strbuf *text, const char *member, int64_t ms)
{
	if (ms) {
		strbuf_add_char(text, ',');
		api_add_time(text, member, ms);
	} else {
		strbuf_addf(text, ",\"%s\":null", member);
	}
}

void api_more_int(struct strbuf *text, const char *member, int64_t number)
{
	strbuf_addf(text, ",\"%s\":%lld", member, (long long)number);
}
