/* See headers.h. */
#include "act/headers.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "base/excerpt.h"
#include "base/trace.h"
#include "model/header.h"

struct builder {
	struct curl_slist *list;
	struct strbuf line;
	struct strbuf value;
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

/* libcurl reads "Name:" as "leave this header out"; an empty value is written "Name;". */
static void add(struct builder *b, const char *name, struct slice value)
{
	struct curl_slist *longer;

	if (b->code)
		return;
	if (has_control(value)) {
		b->code = error_set(b->err, HX_CONFIG_ERROR, "header %s: its value holds a control character", name);
		return;
	}
	strbuf_reset(&b->line);
	strbuf_addf(&b->line, "%s%s", name, value.n ? ": " : ";");
	strbuf_add_slice(&b->line, value);
	if (b->line.failed) {
		b->code = error_set(b->err, HX_CONFIG_ERROR, "header %s is too long", name);
		return;
	}
	longer = curl_slist_append(b->list, b->line.p);
	if (longer)
		b->list = longer;
	else
		b->code = error_set(b->err, HX_NO_MEMORY, "out of memory");
}

static void add_int(struct builder *b, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, value);
	add(b, name, slice_str(text));
}

static void add_own(struct builder *b, const struct job *job)
{
	const struct act_call *call = &job->call;

	if (call->key.n)
		add(b, "Idempotency-Key", call->key);
	add_int(b, "Hapax-Fence", act_fence(call));
	add_int(b, "Hapax-Attempt", call->attempt);
	if (call->traceparent.n)
		add(b, "traceparent", trace_parent(call->traceparent));
	if (trace_state(call->traceparent).n)
		add(b, "tracestate", trace_state(call->traceparent));
}

static void add_declared(struct builder *b, const struct action_header *header, struct secrets *secrets)
{
	struct slice name = slice_str(header->name);
	bool token = header_name_is_token(name);
	struct hx_error why;

	if (b->code)
		return;
	if (!token || header_name_is_reserved(name)) {
		b->code = error_set(b->err, HX_CONFIG_ERROR, "header %s: %s", excerpt_of(name).text,
				    token ? "it is written by the engine" : "that is no name");
		return;
	}
	strbuf_reset(&b->value);
	b->code = secrets_fill(secrets, header->value, &b->value, &why);
	if (b->code)
		error_set(b->err, b->code, "header %s: %s", excerpt_of(name).text, why.detail);
	add(b, header->name, strbuf_slice(&b->value));
}

static bool declares(const struct action *action, const char *name)
{
	for (size_t i = 0; i < action->headers_n; i++)
		if (strcasecmp(action->headers[i].name, name) == 0)
			return true;
	return false;
}

/* With "Expect: 100-continue" libcurl would wait a second for large bodies, and send again after a 417. */
static void forbid_expect(struct builder *b)
{
	b->list = curl_slist_append(NULL, "Expect:");
	if (!b->list)
		b->code = error_set(b->err, HX_NO_MEMORY, "out of memory");
}

/* What an action may say in its own words. */
static void add_defaults(struct builder *b, const struct action *action)
{
	static const char json[] = "application/json";

	if (!declares(action, "Content-Type"))
		add(b, "Content-Type", slice_str(json));
	if (!declares(action, "Accept"))
		add(b, "Accept", slice_str(json));
}

static void wipe(struct strbuf *sb)
{
	if (sb->capacity)
		explicit_bzero(sb->p, sb->capacity);
	strbuf_release(sb);
}

enum hx_code headers_build(const struct job *job, struct secrets *secrets, struct curl_slist **ret_headers,
			   struct hx_error *err)
{
	struct builder b = {.err = err};

	strbuf_init(&b.line, HEADER_LINE_BYTES_MAX);
	strbuf_init(&b.value, HEADER_LINE_BYTES_MAX);
	forbid_expect(&b);
	add_defaults(&b, job->action);
	add_own(&b, job);
	for (size_t i = 0; i < job->action->headers_n; i++)
		add_declared(&b, &job->action->headers[i], secrets);
	if (b.code)
		headers_free(b.list);
	else
		*ret_headers = b.list;
	wipe(&b.line);
	wipe(&b.value);
	return b.code;
}

void headers_free(struct curl_slist *headers)
{
	for (struct curl_slist *h = headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(headers);
}
