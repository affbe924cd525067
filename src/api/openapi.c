/*
 * See openapi.h. The document is written once, from front to back:
 *
 *   openapi, info, servers, security, tags      openapi.json
 *   paths ── one item for each pattern          api_routes.c
 *              └─ one operation for each method: parameters, requestBody, responses
 *   components                                  openapi.json, and lists of the program's own: codes, statuses, reasons
 *
 * What a route can answer is its own list and what stands in front of it: who is let in (auth.h), the names and the query
 * (api.c), the Idempotency-Key (api_gate.h), the store. openapi_can_answer() says which, and is the one place that does.
 */
#include "api/openapi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"
#include "base/hash.h"
#include "base/json_walk.h"
#include "flow/api_key.h"
#include "flow/batch_item.h"
#include "flow/job.h"
#include "flow/run.h"
#include "flow/why.h"

#define SCHEMA(name) "{\"$ref\":\"#/components/schemas/" name "\"}"
#define HEADER(name) "\"" name "\":{\"$ref\":\"#/components/headers/" name "\"}"
#define PARAMETER(name) "{\"$ref\":\"#/components/parameters/" name "\"}"

/* The text of a member of openapi.json; every name that is asked for is there, and a test has seen them all. */
static struct json words_of(struct json words, const char *member)
{
	struct json value;
	bool found = json_find(words, slice_str(member), &value);

	ASSERT(found);
	return value;
}

static bool mutates(const struct route *route)
{
	return strcmp(route->method, "GET") != 0;
}

/* ---- what it can answer ---- */

static bool is_own(const struct route *route, enum hx_code code)
{
	for (size_t i = 0; route->errors && route->errors[i]; i++)
		if (route->errors[i] == code)
			return true;
	return false;
}

bool openapi_can_answer(const struct route *route, enum hx_code code)
{
	if (route->scope == ROUTE_PUBLIC)
		return is_own(route, code);
	switch (code) {
	case HX_VALIDATION_ERROR:
	case HX_UNAUTHENTICATED:
	case HX_FORBIDDEN:
	case HX_TOO_LARGE: /* the answer, where it is not what was sent */
	case HX_NO_MEMORY:
	case HX_INTERNAL:
	case HX_DATA_ERROR:
	case HX_STORE_UNAVAILABLE:
	case HX_BUSY:
	case HX_STOPPING:
		return true;
	case HX_KEY_INVALID:
	case HX_IN_FLIGHT:
	case HX_RESPONSE_NOT_STORED:
	case HX_CALLER_MISMATCH:
	case HX_FINGERPRINT_MISMATCH:
	case HX_RECORD_DAMAGED:
	case HX_OUTCOME_UNKNOWN:
		return mutates(route);
	case HX_NOT_FOUND: /* what is put need not be there before */
		return (strchr(route->pattern, '{') && strcmp(route->method, "PUT") != 0) || is_own(route, code);
	default:
		return is_own(route, code);
	}
}

static void add_list_comma(struct strbuf *text)
{
	char last = text->n ? text->p[text->n - 1] : '\0';

	if (last != '[' && last != '{')
		strbuf_add_char(text, ',');
}

static void add_headers(struct strbuf *text, const struct route *route, int status)
{
	strbuf_add_str(text, ",\"headers\":{");
	if (status == 409 || status == 503)
		strbuf_add_str(text, HEADER("Retry-After"));
	if (status == 401 && route->scope != ROUTE_PUBLIC)
		strbuf_add_str(text, HEADER("WWW-Authenticate"));
	if (status < 400 && route->etag) {
		add_list_comma(text);
		strbuf_add_str(text, HEADER("ETag"));
	}
	if (mutates(route) && route->scope != ROUTE_PUBLIC && (status < 400 || status == 409 || status == 422)) {
		add_list_comma(text);
		strbuf_add_str(text, HEADER("Idempotency-Status"));
	}
	if (mutates(route) && route->scope != ROUTE_PUBLIC && status < 400)
		strbuf_add_str(text, "," HEADER("Idempotency-Replayed"));
	strbuf_add_char(text, '}');
}

/* What openapi.json says about this part of a route, without quotes; otherwise what is always said. */
static void add_words(struct strbuf *text, struct json words, const char *part, const char *otherwise)
{
	struct json own;

	if (json_find(words, slice_str(part), &own))
		strbuf_add(text, own.raw.p + 1, own.raw.n - 2);
	else
		strbuf_add_str(text, otherwise);
}

static bool is_answered_with(const struct route *route, int code, int status)
{
	return hx_code_http_status(code) == status && openapi_can_answer(route, code);
}

/* All codes of one status; none: nothing is added. */
static void add_problem(struct strbuf *text, const struct route *route, struct json words, int status)
{
	int code = HX_OK + 1;

	while (code < HX_CODE_COUNT && !is_answered_with(route, code, status))
		code++;
	if (code == HX_CODE_COUNT)
		return;
	LOCAL_STRBUF(names, 1000);
	strbuf_addf(text, ",\"%d\":{\"description\":\"", status);
	for (; code < HX_CODE_COUNT; code++) {
		if (!is_answered_with(route, code, status))
			continue;
		strbuf_addf(text, "%s`%s`: ", names.n ? " · " : "", hx_code_name(code));
		add_words(text, words, hx_code_name(code), hx_code_text(code));
		strbuf_addf(&names, "%s\"%s\"", names.n ? "," : "", hx_code_name(code));
	}
	strbuf_add_char(text, '"');
	add_headers(text, route, status);
	strbuf_addf(text, ",\"content\":{\"application/problem+json\":{\"schema\":{\"allOf\":[" SCHEMA("Problem"));
	strbuf_addf(text, ",{\"properties\":{\"status\":{\"const\":%d},\"code\":{\"enum\":[%s]}}}]}}}}", status,
		    names.p);
	text->failed |= names.failed;
}

static const char *status_words(int status)
{
	return status == 201 ? "It was created." : "Done.";
}

static const char *media_type_of(const char *schema)
{
	return strcmp(schema, "Text") == 0      ? "text/plain"
	       : strcmp(schema, "Picture") == 0 ? "image/svg+xml"
						: "application/json";
}

static void add_answer(struct strbuf *text, const struct route *route, struct json words,
		       const struct route_answer *answer)
{
	char status[16];

	snprintf(status, sizeof status, "%d", answer->status);
	strbuf_addf(text, "\"%s\":{\"description\":\"", status);
	add_words(text, words, status, status_words(answer->status));
	strbuf_add_char(text, '"');
	add_headers(text, route, answer->status);
	if (answer->schema)
		strbuf_addf(text, ",\"content\":{\"%s\":{\"schema\":" SCHEMA("%s") "}}", media_type_of(answer->schema),
			    answer->schema);
	strbuf_add_char(text, '}');
}

static void add_responses(struct strbuf *text, const struct route *route, struct json words)
{
	strbuf_add_str(text, ",\"responses\":{");
	for (size_t i = 0; i < ROUTE_ANSWERS_MAX && route->answers[i].status; i++) {
		add_list_comma(text);
		add_answer(text, route, words, &route->answers[i]);
	}
	for (int status = 400; status < 600; status++)
		add_problem(text, route, words, status);
	strbuf_add_str(text, ",\"default\":{\"$ref\":\"#/components/responses/Refused\"}}");
}

/* ---- what it takes ---- */

/* Of {id} and the like; those that are not here are names. */
static const char *path_schema(const struct route *route, struct slice name)
{
	if (slice_is(name, "n"))
		return "ItemNumber";
	return slice_is(name, "subject") || strstr(route->pattern, "/why/") ? "Subject" : "Name";
}

static void add_path_parameters(struct strbuf *text, const struct route *route)
{
	for (const char *at = strchr(route->pattern, '{'); at; at = strchr(at, '{')) {
		const char *end = strchr(++at, '}');
		struct slice name = slice_of(at, (size_t)(end - at));

		add_list_comma(text);
		strbuf_addf(text, "{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"schema\":" SCHEMA("%s") "}",
			    (int)name.n, name.p, path_schema(route, name));
	}
}

static void add_parameters(struct strbuf *text, const struct route *route)
{
	strbuf_add_str(text, ",\"parameters\":[");
	add_path_parameters(text, route);
	for (size_t i = 0; route->query && route->query[i].name; i++) {
		add_list_comma(text);
		strbuf_addf(text, "{\"name\":\"%s\",\"in\":\"query\",\"schema\":" SCHEMA("%s") "}",
			    route->query[i].name, route->query[i].schema);
	}
	if (route->scope != ROUTE_PUBLIC) {
		add_list_comma(text);
		strbuf_add_str(text, PARAMETER("Workspace") "," PARAMETER("Requester"));
	}
	if (mutates(route) && route->scope != ROUTE_PUBLIC)
		strbuf_add_str(
			text, "," PARAMETER("IdempotencyKey") "," PARAMETER("Traceparent") "," PARAMETER("Tracestate"));
	strbuf_add_char(text, ']');
}

/* It may be left out where {} is as good: an object, of which nothing is required. */
static bool is_required(struct json schema)
{
	struct json value;

	return json_find(schema, slice_str("required"), &value) || !json_find(schema, slice_str("properties"), &value);
}

static void add_body(struct strbuf *text, const struct route *route, struct json schemas)
{
	if (route->body)
		strbuf_addf(text,
			    ",\"requestBody\":{\"required\":%s,\"content\":{\"application/json\":{\"schema\":" SCHEMA(
				    "%s") "}}}",
			    is_required(words_of(schemas, route->body)) ? "true" : "false", route->body);
}

/* ---- operations ---- */

/* The noun after /api/v1/; what has none is about the server. */
static struct slice tag_of(const struct route *route)
{
	static const char front[] = "/api/v1/";
	const char *noun = route->pattern + sizeof front - 1;

	if (strncmp(route->pattern, front, sizeof front - 1) != 0 || strchr(noun, '.'))
		return slice_str("server");
	return slice_of(noun, strcspn(noun, "/"));
}

#define BY_KEY "ByKey"

/* What is said of a run by its id holds by its key. */
static struct json operation_words(struct json words, const struct route *route, bool *ret_by_key)
{
	struct slice id = slice_str(route->id);
	struct json own;
	bool found;

	*ret_by_key = id.n > sizeof BY_KEY - 1 && strcmp(id.p + id.n - (sizeof BY_KEY - 1), BY_KEY) == 0;
	found = json_find(words, slice_of(id.p, id.n - (*ret_by_key ? sizeof BY_KEY - 1 : 0)), &own);
	ASSERT(found);
	return own;
}

static void add_operation(struct strbuf *text, const struct route *route, struct json words)
{
	bool by_key;
	struct json own = operation_words(words_of(words, "operations"), route, &by_key), description;
	struct slice tag = tag_of(route);

	ASSERT(route->id && route->answers[0].status);
	add_list_comma(text);
	strbuf_addf(text, "\"%s\":{\"operationId\":\"%s\",\"summary\":\"%s\",\"tags\":[\"%.*s\"]",
		    strcmp(route->method, "GET") == 0      ? "get"
		    : strcmp(route->method, "PUT") == 0    ? "put"
		    : strcmp(route->method, "DELETE") == 0 ? "delete"
							   : "post",
		    route->id, route->summary, (int)tag.n, tag.p);
	if (by_key) {
		strbuf_add_str(
			text,
			",\"description\":\"By workflow and key, the key percent-encoded; or with `?key=`, and without "
			"that segment. Otherwise as with the id.\"");
	} else if (json_find(own, slice_str("description"), &description)) {
		strbuf_add_str(text, ",\"description\":");
		strbuf_add_slice(text, description.raw);
	}
	if (route->scope == ROUTE_PUBLIC)
		strbuf_add_str(text, ",\"security\":[]");
	else
		strbuf_addf(text, ",\"x-hapax-scope\":\"%s\"", api_key_scope_name((enum api_key_scope)route->scope));
	add_parameters(text, route);
	add_body(text, route, words_of(words, "schemas"));
	add_responses(text, route, own);
	strbuf_add_char(text, '}');
}

static bool is_first(const struct route routes[], size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (strcmp(routes[i].pattern, routes[at].pattern) == 0)
			return false;
	return true;
}

static void add_paths(struct strbuf *text, const struct route routes[], size_t n, struct json words)
{
	strbuf_add_str(text, ",\n\"paths\":{");
	for (size_t i = 0; i < n; i++) {
		if (!is_first(routes, i))
			continue;
		add_list_comma(text);
		strbuf_addf(text, "\n\"%s\":{", routes[i].pattern);
		for (size_t j = i; j < n; j++)
			if (strcmp(routes[i].pattern, routes[j].pattern) == 0)
				add_operation(text, &routes[j], words);
		strbuf_add_char(text, '}');
	}
	strbuf_add_char(text, '}');
}

/* ---- the rest ---- */

static void add_word(struct strbuf *text, struct json words, const char *member)
{
	strbuf_addf(text, "%s\"%s\":", text->p[text->n - 1] == '{' ? "" : ",\n", member);
	strbuf_add_slice(text, words_of(words, member).raw);
}

static void add_enum(struct strbuf *text, const char *name, const char *const values[])
{
	strbuf_addf(text, "\"%s\":{\"type\":\"string\",\"enum\":[", name);
	for (size_t i = 0; values[i]; i++)
		strbuf_addf(text, "%s\"%s\"", i ? "," : "", values[i]);
	strbuf_add_str(text, "]},\n");
}

static void add_codes(struct strbuf *text)
{
	const char *names[HX_CODE_COUNT] = {0};
	size_t n = 0;

	for (int code = HX_OK + 1; code < HX_CODE_COUNT; code++)
		if (code == HX_INTERNAL || strcmp(hx_code_name(code), "INTERNAL") != 0) /* or it is nobody's */
			names[n++] = hx_code_name(code);
	add_enum(text, "Code", names);
}

static void add_reasons(struct strbuf *text)
{
	const char *names[WHY_REASONS_N + 1] = {0};

	for (int reason = 0; reason < WHY_REASONS_N; reason++)
		names[reason] = why_reason_name(reason);
	add_enum(text, "Reason", names);
}

/* The schemas as they are written, and in front of them those that are lists of the program's own. */
static void add_schemas(struct strbuf *text, struct slice written)
{
	strbuf_add_str(text, ",\n\"schemas\":{");
	add_codes(text);
	add_reasons(text);
	add_enum(text, "RunStatus", run_statuses);
	add_enum(text, "JobStatus", job_statuses);
	add_enum(text, "BatchStatus", batch_statuses);
	add_enum(text, "ItemStatus", item_statuses);
	add_enum(text, "ItemDecision", item_decisions);
	strbuf_add(text, written.p + 1, written.n - 1);
}

static void add_components(struct strbuf *text, struct json words)
{
	strbuf_add_str(text, ",\n\"components\":{");
	add_word(text, words, "securitySchemes");
	add_word(text, words, "parameters");
	add_word(text, words, "headers");
	add_word(text, words, "responses");
	add_schemas(text, words_of(words, "schemas").raw);
	strbuf_add_char(text, '}');
}

void openapi_write(const struct route routes[], size_t n, struct strbuf *text)
{
	char *all = packed_text(&openapi_words);
	struct json words;
	enum hx_code code = json_check(slice_str(all), /* err= */ NULL, &words);

	ASSERT(!code);
	strbuf_addf(text, "{\"openapi\":\"3.1.0\",\n\"info\":{\"title\":\"Hapax\",\"version\":\"%s\"", HX_VERSION);
	add_word(text, words, "description");
	strbuf_add_char(text, '}');
	add_word(text, words, "servers");
	add_word(text, words, "security");
	add_word(text, words, "tags");
	add_paths(text, routes, n, words);
	add_components(text, words);
	strbuf_add_str(text, "}\n");
	free(all);
}

/* ---- serving it ---- */

/* All that it is made of is part of the program, so there is one of it: written at the first question, for good. */
static struct strbuf document;
static char document_etag[32];

static void write_document(void)
{
	size_t n;
	const struct route *routes = api_routes(&n);

	strbuf_init(&document, OPENAPI_BYTES_MAX);
	openapi_write(routes, n, &document);
	snprintf(document_etag, sizeof document_etag, "\"%016llx\"",
		 (unsigned long long)hash_bytes(1, document.p, document.n));
}

void api_openapi(struct http_call *call)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct wire_field fields[2];
	const struct wire_field *known;
	size_t n;

	pthread_once(&once, write_document);
	if (document.failed) {
		http_respond_code(call->exchange, HX_NO_MEMORY, /* detail= */ NULL);
		return;
	}
	known = wire_find(call->request->wire.head.fields, "If-None-Match", &n);
	fields[0] = (struct wire_field){slice_str("Content-Type"), slice_str("application/json")};
	fields[1] = (struct wire_field){slice_str("ETag"), slice_str(document_etag)};
	http_respond(call->exchange, &(struct http_answer){
					     .status = known && slice_is(known->value, document_etag) ? 304 : 200,
					     .fields = {fields, 2},
					     .body = strbuf_slice(&document),
				     });
}
