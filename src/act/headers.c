/* See headers.h. */
#include "act/headers.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "base/excerpt.h"
#include "base/trace.h"
#include "model/header.h"

#define OWN_FIELDS_MAX 10

struct builder {
	struct wire_field *fields;
	size_t n;
	struct arena *arena;
	struct strbuf value; /* the one that is being filled in */
	struct hx_error *err;
	enum hx_code code; /* of the first failure */
};

static bool has_control(struct slice value)
{
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return true;
	}
	return false;
}

static void headers_add(struct builder *b, const char *name, struct slice value)
{
	struct slice field = slice_str(name);

	if (b->code)
		return;
	if (has_control(value)) {
		b->code = error_set(b->err, HX_CONFIG_ERROR, "header %s: its value holds a control character", name);
		return;
	}
	if (field.n + value.n > HEADER_LINE_BYTES_MAX) {
		b->code = error_set(b->err, HX_CONFIG_ERROR, "header %s is too long", name);
		return;
	}
	b->fields[b->n++] = (struct wire_field){field, value};
}

static void add_int(struct builder *b, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, value);
	headers_add(b, name, arena_copy(b->arena, slice_str(text)));
}

static void add_own(struct builder *b, const struct job *job)
{
	const struct act_call *call = &job->call;

	if (call->key.n)
		headers_add(b, "Idempotency-Key", call->key);
	add_int(b, "Hapax-Fence", act_fence(call));
	add_int(b, "Hapax-Attempt", call->attempt);
	if (call->traceparent.n)
		headers_add(b, "traceparent", trace_parent(call->traceparent));
	if (trace_state(call->traceparent).n)
		headers_add(b, "tracestate", trace_state(call->traceparent));
}

static bool has_reference(const struct action_header *header)
{
	return header->value && strstr(header->value, "${") != NULL;
}

/* Its value, with what it refers to. */
static struct slice headers_fill(struct builder *b, const struct action_header *header, struct secrets *secrets)
{
	struct hx_error why;

	if (!has_reference(header))
		return slice_str(header->value);
	strbuf_reset(&b->value);
	b->code = secrets_fill(secrets, header->value, &b->value, &why);
	if (b->code)
		error_set(b->err, b->code, "header %s: %s", excerpt_of(slice_str(header->name)).text, why.detail);
	return arena_copy(b->arena, strbuf_slice(&b->value));
}

static bool is_host(struct slice name)
{
	return name.n == 4 && strncasecmp(name.p, "Host", 4) == 0;
}

/* What is computed may be somebody else's words: they do not choose who is meant. */
static bool may_be_declared(struct builder *b, struct slice name, bool computed)
{
	bool token = header_name_is_token(name);

	if (!b->code && (!token || header_name_is_reserved(name) || (computed && is_host(name))))
		b->code = error_set(b->err, HX_CONFIG_ERROR, "header %s: %s", excerpt_of(name).text,
				    token ? "it is written by the engine" : "that is no name");
	return !b->code;
}

/* What an expression gave is never filled in: it may be somebody else's words. */
static void add_declared(struct builder *b, const struct action_header *header, struct slice computed,
			 struct secrets *secrets)
{
	if ((header->from && !computed.p) || !may_be_declared(b, slice_str(header->name), header->from != NULL))
		return;
	headers_add(b, header->name, header->from ? computed : headers_fill(b, header, secrets));
}

static bool declares(const struct action *action, const struct request *request, const char *name)
{
	for (size_t i = 0; i < action->request.headers_n; i++)
		if (strcasecmp(action->request.headers[i].name, name) == 0)
			return true;
	return wire_find(request->more, name, NULL) != NULL;
}

/* What an action may say in its own words. */
static void add_defaults(struct builder *b, const struct action *action, const struct request *request,
			 struct slice host)
{
	const struct {
		const char *name;
		struct slice value;
	} defaults[] = {
		{"Host", host},
		{"User-Agent", slice_str("hapax/" HX_VERSION)},
		{"Content-Type", slice_str(request->content_type ? request->content_type : "")},
		{"Accept", slice_str("application/json")},
	};

	for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
		if (defaults[i].value.n && !declares(action, request, defaults[i].name))
			headers_add(b, defaults[i].name, defaults[i].value);
}

static void wipe(struct strbuf *sb)
{
	if (sb->capacity)
		explicit_bzero(sb->p, sb->capacity);
	strbuf_release(sb);
}

static void add_request(struct builder *b, const struct action *action, const struct request *request,
			struct secrets *secrets)
{
	for (size_t i = 0; i < action->request.headers_n; i++)
		add_declared(b, &action->request.headers[i], request->values ? request->values[i] : slice_of(NULL, 0),
			     secrets);
	for (size_t i = 0; i < request->more.n; i++)
		if (may_be_declared(b, request->more.at[i].name, /* computed= */ true))
			headers_add(b, request->more.at[i].name.p, request->more.at[i].value);
	if (request->body.n || slice_is(request->method, "POST") || slice_is(request->method, "PUT") ||
	    slice_is(request->method, "PATCH"))
		add_int(b, "Content-Length", (int64_t)request->body.n);
}

enum hx_code headers_build(const struct job *job, const struct request *request, struct slice host,
			   struct secrets *secrets, struct arena *arena, struct wire_fields *ret_fields,
			   struct hx_error *err)
{
	const struct action *action = job->action;
	struct builder b = {.arena = arena, .err = err};

	b.fields = arena_alloc(arena,
			       (action->request.headers_n + request->more.n + OWN_FIELDS_MAX) * sizeof *b.fields);
	if (!b.fields)
		return error_set(err, HX_NO_MEMORY, "out of memory");
	strbuf_init(&b.value, HEADER_LINE_BYTES_MAX);
	add_defaults(&b, action, request, host);
	add_own(&b, job);
	add_request(&b, action, request, secrets);
	wipe(&b.value);
	if (!b.code && arena->failed)
		b.code = error_set(err, HX_NO_MEMORY, "out of memory");
	*ret_fields = (struct wire_fields){b.fields, b.n};
	if (b.code)
		headers_wipe(action, *ret_fields);
	return b.code;
}

/* Looked for by name and not by place: a call that was refused has only some of them. */
void headers_wipe(const struct action *action, struct wire_fields fields)
{
	const struct action_request *shape = &action->request;

	for (size_t i = 0; i < shape->headers_n; i++)
		for (size_t j = 0; has_reference(&shape->headers[i]) && j < fields.n; j++)
			if (fields.at[j].name.p == shape->headers[i].name)
				explicit_bzero((char *)(uintptr_t)fields.at[j].value.p, fields.at[j].value.n);
}
