/* Who is let in, and what all handlers share. */
#include "api/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/api_gate.h"
#include "api/api_test_clock.h"
#include "api/auth.h"
#include "base/excerpt.h"
#include "base/json_members.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/trace.h"
#include "engine/definitions.h"
#include "model/nearest.h"
#include "model/text.h"
#include "serve/inner.h"
#include "wire/charset.h"

/* A misspelt filter that is ignored would list everything. */
static bool query_known(struct http_call *call)
{
	const char *known[ROUTE_QUERIES_MAX + 1] = {0};

	for (size_t i = 0; call->route->query && call->route->query[i].name; i++) {
		ASSERT(i < ROUTE_QUERIES_MAX);
		known[i] = call->route->query[i].name;
	}
	for (size_t i = 0; i < call->query.n; i++)
		if (!api_word_checked(call, call->query.params[i].name, known, "query parameter", HX_VALIDATION_ERROR))
			return false;
	return true;
}

/* Read as if it were plain, a body that is not would be told to be broken JSON. */
static bool encoding_known(struct http_call *call)
{
	struct wire_fields fields = call->request->wire.head.fields;
	size_t n;
	const struct wire_field *encoding = wire_find(fields, "Content-Encoding", &n);

	if (!encoding || (n == 1 && slice_is_nocase(encoding->value, "identity")))
		return true;
	http_respond_problem(call->exchange,
			     &(struct problem){
				     .code = HX_UNSUPPORTED_ENCODING,
				     .detail = slice_str("send the body as it is, without Content-Encoding"),
				     .field = {slice_str("Accept-Encoding"), slice_str("identity")},
			     });
	return false;
}

/* Whoever asks has names that the store can hold, whatever is asked. */
static bool admit_named(struct http_call *call)
{
	return api_name_checked(call, api_workspace(call), "the workspace") &&
	       api_name_checked(call, api_requester(call), "the requester") && query_known(call) &&
	       encoding_known(call);
}

static void api_go_on(struct http_call *call)
{
	if (admit_named(call))
		call_admitted(call);
}

/* The program itself asks, and says on whose behalf. */
static bool admit_inner(struct http_call *call, const struct http_inner *inner)
{
	call->scope = ROUTE_ADMIN;
	call->workspace = arena_copy(call->arena, inner->workspace);
	call->requester = arena_copy(call->arena, inner->requester);
	return admit_named(call);
}

static bool api_admit(struct http_call *call)
{
	const struct http_inner *inner = http_exchange_inner(call->exchange);

	if (inner && call->route->scope != ROUTE_PUBLIC)
		return admit_inner(call, inner);
	return call->route->scope == ROUTE_PUBLIC || (auth_admit(call, api_go_on) && admit_named(call));
}

static bool guard(struct http_call *call)
{
	return call->route->scope == ROUTE_PUBLIC || api_gate_admit(call);
}

struct router *api_router_new(struct api *api)
{
	size_t n;
	const struct route *table = api->test_clock ? api_routes_with_clock(&n) : api_routes_served(&n);
	struct router *router = router_new(table, n, api_admit, api);

	if (router)
		router_set_guard(router, guard);
	return router;
}

struct api *api_of(const struct http_call *call)
{
	return call->context;
}

const struct engine_parts *api_parts(const struct http_call *call)
{
	return engine_parts(api_of(call)->engine);
}

bool api_is_awaited(const struct http_call *call)
{
	return !http_exchange_gone(call->exchange) && atomic_load(&api_of(call)->ready);
}

bool api_refuse(struct http_call *call, enum hx_code code, const char *detail)
{
	http_respond_code(call->exchange, code, detail);
	return false;
}

bool api_invalid(struct http_call *call, const char *format, ...)
{
	struct hx_error err;
	char words[2 * sizeof err.detail];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	error_set(&err, HX_VALIDATION_ERROR, "%s", words); /* which cuts between characters */
	return api_refuse(call, HX_VALIDATION_ERROR, err.detail);
}

struct slice api_workspace(const struct http_call *call)
{
	return call->workspace;
}

struct slice api_requester(const struct http_call *call)
{
	return call->requester;
}

/* Fields of one name are one list. Nothing when it is too long, or there is no memory. */
static struct slice joined_fields(const struct http_call *call, const char *name)
{
	struct wire_fields fields = call->request->wire.head.fields;
	LOCAL_STRBUF(text, TRACE_STATE_BYTES_MAX + 1);
	for (size_t i = 0; i < fields.n; i++)
		if (slice_eq_nocase(fields.at[i].name, slice_str(name))) {
			strbuf_add_str(&text, text.n ? "," : "");
			strbuf_add_slice(&text, fields.at[i].value);
		}
	return text.failed ? slice_of(NULL, 0) : arena_copy(call->arena, strbuf_slice(&text));
}

struct slice api_traceparent(const struct http_call *call)
{
	size_t n;
	const struct wire_field *parent = wire_find(call->request->wire.head.fields, "traceparent", &n);

	struct slice trace = slice_of(NULL, 0);
	char made[TRACE_PARENT_BYTES];

	if (parent && n == 1)
		trace = trace_of(parent->value, joined_fields(call, "tracestate"), call->arena);
	return trace.n ? trace : arena_copy(call->arena, trace_new(made));
}

void *api_alloc(struct http_call *call, size_t bytes)
{
	void *memory = arena_zalloc(call->arena, bytes);

	if (!memory)
		http_respond_code(call->exchange, HX_BUSY, NULL);
	return memory;
}

/* ---- what is not there ---- */

struct names {
	struct slice wanted;
	const char *kind;       /* NULL: any */
	const char *other_kind; /* of the workflow that has the very name; NULL: none has */
	size_t n;
	const char *known[DEFINITIONS_MAX + 1];
};

static void api_add_name(void *context, const struct machine *machine)
{
	const struct definition *definition = machine->definition;
	struct names *names = context;

	if ((!names->kind || strcmp(definition->kind, names->kind) == 0) && names->n < DEFINITIONS_MAX)
		names->known[names->n++] = definition->name;
	else if (slice_is(names->wanted, definition->name))
		names->other_kind = definition->kind;
}

static const char *no_such(struct http_call *call, const char *what, struct slice name, const char *const known[])
{
	return text_printf(call->arena, "no %s \"%s\"%s", what, excerpt_of(name).text,
			   nearest_words(name, known, "\"", "\"").text);
}

const char *api_no_workflow_words(struct http_call *call, struct slice name, const char *kind)
{
	struct names names = {.wanted = name, .kind = kind};

	definitions_each(api_parts(call)->definitions, api_add_name, &names);
	if (names.other_kind)
		return text_printf(call->arena, "the workflow \"%s\" is of kind %s, and this is for those of kind %s",
				   excerpt_of(name).text, names.other_kind, kind);
	return no_such(call, "workflow", name, names.known);
}

void api_no_workflow(struct http_call *call, struct slice name, const char *kind)
{
	http_respond_code(call->exchange, HX_NOT_FOUND, api_no_workflow_words(call, name, kind));
}

bool api_word_checked(struct http_call *call, struct slice word, const char *const known[], const char *what,
		      enum hx_code code)
{
	return slice_in(word, known) || api_refuse(call, code, no_such(call, what, word, known));
}

const struct entity_machine *api_machine_named(const struct http_call *call, struct slice name)
{
	const struct entity_machine *machine = definitions_find(api_parts(call)->definitions, name);

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
	if (entity_name_is_good(name))
		return true;
	return api_invalid(call, "%s is 1 to %d bytes of UTF-8 without control characters, not \"%s\"", what,
			   ENTITY_NAME_MAX, excerpt_of(name).text);
}

bool api_id(struct http_call *call, const char *prefix, const char *detail, int64_t *ret_subject)
{
	return id_parse(prefix, call_param(call, "id"), ret_subject) || api_refuse(call, HX_NOT_FOUND, detail);
}

static bool is_known(struct json name, const char *const known[])
{
	for (size_t i = 0; known[i]; i++)
		if (json_string_is(name, slice_str(known[i])))
			return true;
	return false;
}

static void refuse_member(struct http_call *call, struct slice name, const char *const known[])
{
	LOCAL_STRBUF(detail, 1000);
	strbuf_addf(&detail, "unknown member %s; known are", excerpt_of(name).text);
	for (size_t i = 0; known[i]; i++)
		strbuf_addf(&detail, "%s %s", i ? "," : "", known[i]);
	strbuf_add_str(&detail, known[0] ? "" : " none");
	http_respond_code(call->exchange, HX_VALIDATION_ERROR, detail.p);
}

bool api_members_known(struct http_call *call, struct json object, const char *const known[])
{
	struct json_iter it = json_iter_of(object);
	struct json name, value;

	while (json_iter_member(&it, &name, &value))
		if (!is_known(name, known)) {
			refuse_member(call, name.raw, known);
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
	return (json_int64(value, &err, ret_version) == HX_OK && *ret_version >= 1) ||
	       api_refuse(call, HX_VALIDATION_ERROR, "version is a whole number from 1 on");
}

bool api_either(struct http_call *call, struct json body, const char *member, const char *yes, const char *no,
		bool *ret_yes)
{
	struct json value;
	bool is_text = json_find(body, slice_str(member), &value) && json_type(value) == JSON_STRING;

	*ret_yes = is_text && json_string_is(value, slice_str(yes));
	if (*ret_yes || (is_text && json_string_is(value, slice_str(no))))
		return true;
	return api_invalid(call, "%s is \"%s\" or \"%s\"", member, yes, no);
}

bool api_text(struct http_call *call, struct json body, const char *member, size_t bytes_max, struct slice *text)
{
	struct json value;

	if (!json_find(body, slice_str(member), &value) || json_type(value) == JSON_NULL)
		return true;
	*text = json_type(value) == JSON_STRING ? json_string_decode(value, call->arena) : slice_of(NULL, 0);
	if (text->p && text->n >= 1 && text->n <= bytes_max)
		return true;
	return api_invalid(call, "%s is a string of 1 to %zu bytes", member, bytes_max);
}

bool api_reason(struct http_call *call, struct json body, struct slice *ret_reason)
{
	*ret_reason = slice_of(NULL, 0);
	return api_text(call, body, "reason", NOTE_REASON_MAX, ret_reason);
}

bool api_bool(struct http_call *call, struct json body, const char *member, bool *value)
{
	struct json given;

	if (!json_find(body, slice_str(member), &given))
		return true;
	if (json_type(given) != JSON_BOOL)
		return api_invalid(call, "%s is true or false", member);
	*value = json_bool(given);
	return true;
}

bool api_member(struct http_call *call, struct json body, const char *member, size_t bytes_max, const char *too_large,
		struct slice *ret_json)
{
	struct json value;

	*ret_json = json_find(body, slice_str(member), &value) ? value.raw : slice_str("null");
	return ret_json->n <= bytes_max || api_refuse(call, HX_TOO_LARGE, too_large);
}

bool api_name_member(struct http_call *call, struct json body, const char *member, const char *words,
		     struct slice *ret_name)
{
	struct json value;

	if (!json_find(body, slice_str(member), &value) || json_type(value) != JSON_STRING)
		return api_refuse(call, HX_VALIDATION_ERROR, words);
	*ret_name = json_string_decode(value, call->arena);
	return api_name_checked(call, *ret_name, member);
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
	return api_invalid(call, "%s is a whole number from 1 to %lld", name, (long long)max);
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

void api_respond_json(struct http_call *call, int status, const struct strbuf *text, int64_t etag_version)
{
	struct api_json json;

	if (text->failed) {
		/* After a key it is told for what it is: the work was done, and must not be let go. */
		http_respond_code(call->exchange, call->gate ? HX_RESPONSE_NOT_STORED : HX_TOO_LARGE,
				  "the answer would be too large");
		return;
	}
	api_json_init(&json, status, strbuf_slice(text), etag_version);
	http_respond(call->exchange, &json.answer);
}

void api_answer(struct http_call *call, int status, struct strbuf *text, int64_t etag_version)
{
	api_respond_json(call, status, text, etag_version);
	strbuf_release(text);
}

void api_tell(struct http_call *call, const struct api_told *told)
{
	struct strbuf text;

	strbuf_init(&text, API_TEXT_BYTES_MAX);
	told->write(told->of, &text);
	api_answer(call, told->status, &text, told->etag_version);
}

enum hx_code api_code_of(const struct http_answer *answer)
{
	struct json body, name;

	if (answer->code || answer->status < 400)
		return answer->code;
	if (json_check(answer->body, /* err= */ NULL, &body) || json_type(body) != JSON_OBJECT ||
	    !json_find(body, slice_str("code"), &name))
		return HX_INTERNAL;
	for (int code = HX_OK + 1; code < HX_CODE_COUNT; code++)
		if (json_string_is(name, slice_str(hx_code_name((enum hx_code)code))))
			return (enum hx_code)code;
	return HX_INTERNAL;
}

/* ---- tasks ---- */

void *api_task_alloc(struct http_call *call, size_t bytes, size_t arena_bytes_max,
		     void (*done)(struct seat *seat, enum hx_code code))
{
	struct api_task *t = calloc(1, bytes);

	if (!t)
		return NULL;
	t->call = call;
	t->seat.done = done;
	arena_init(&t->arena, arena_bytes_max);
	return t;
}

void *api_task_new(struct http_call *call, size_t bytes, size_t arena_bytes_max,
		   void (*done)(struct seat *seat, enum hx_code code))
{
	void *t = api_task_alloc(call, bytes, arena_bytes_max, done);

	if (!t)
		http_respond_code(call->exchange, HX_BUSY, NULL);
	return t;
}

void api_task_start(struct api_task *t, struct task *task, uint64_t hash)
{
	enum hx_code code;

	t->seat.task = task;
	code = engine_submit(api_of(t->call)->engine, hash, &t->seat);
	if (code)
		t->seat.done(&t->seat, code);
}

void api_task_free(struct api_task *t)
{
	arena_release(&t->arena);
	free(t);
}

void api_task_end(struct api_task *t, enum hx_code code, const char *detail, const struct api_told *told)
{
	if (code)
		http_respond_code(t->call->exchange, code, detail);
	else
		api_tell(t->call, told);
	api_task_free(t);
}
