/* See request.h. */
#include "act/request.h"

#include <stdio.h>
#include <strings.h>

#include "base/excerpt.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/json_write.h"

#define SCRATCH_BYTES_MAX (128u << 20)
#define REPLY_HEAD_BYTES_MAX 65536
#define NAME_BYTES_MAX 1024 /* of a parameter, with the brackets of what it stands in */

struct maker {
	const struct job *job;
	struct arena *arena;
	struct strbuf document; /* what the expressions see; made when the first one is asked */
	struct strbuf value;    /* what the last one gave */
	struct arena scratch;
	struct hx_error *err;
	enum hx_code code; /* of the first failure */
};

static bool request_refuse(struct maker *m, const char *what, const char *why)
{
	if (!m->code)
		m->code = error_set(m->err, HX_CONFIG_ERROR, "%s: %s", what, why);
	return false;
}

/* ---- values ---- */

/* The envelope, and after what it says itself, the key of the call and its data by the name that runs have for it. */
static void write_document(struct maker *m)
{
	struct slice body = m->job->call.input;
	struct json data = json_trust(slice_str("{}"));

	(void)json_find(json_trust(body), slice_str("data"), &data);
	strbuf_add(&m->document, body.p, body.n - 1);
	json_more_text(&m->document, "key", m->job->call.key);
	json_more_json(&m->document, "state", data.raw);
	strbuf_add_char(&m->document, '}');
}

/* Valid until the next one is asked for. */
static bool evaluate(struct maker *m, const struct expression *expression, const char *what, struct json *ret)
{
	struct expression_env env;
	struct hx_error why;

	if (m->code)
		return false;
	if (m->document.n == 0)
		write_document(m);
	if (m->document.failed)
		return request_refuse(m, what, "the body of the call is too large");
	env = (struct expression_env){.whole = json_trust(strbuf_slice(&m->document))};
	strbuf_reset(&m->value);
	if (expression_eval(expression, &env, &m->scratch, &why, &m->value))
		return request_refuse(m, what, why.detail);
	*ret = json_trust(strbuf_slice(&m->value));
	return true;
}

/* What a string says, a number and a truth as they are written. False: it is none of these, or memory is out. */
static bool scalar(struct maker *m, struct json value, struct slice *ret_text)
{
	enum json_type type = json_type(value);

	if (type == JSON_STRING)
		*ret_text = json_string_view(value, m->arena);
	else if (type == JSON_NUMBER || type == JSON_BOOL)
		*ret_text = value.raw;
	else
		return false;
	return ret_text->p != NULL;
}

static bool has_control(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
			return true;
	return false;
}

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

static void add_encoded(struct strbuf *out, struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (is_unreserved(text.p[i]))
			strbuf_add_char(out, text.p[i]);
		else
			strbuf_addf(out, "%%%02X", (unsigned char)text.p[i]);
}

/* ---- parameters: of a query, of a form ---- */

struct parameters {
	struct maker *m;
	const char *what;
	bool lines; /* control characters may be in it: of a form */
	struct strbuf *out;
	size_t begin; /* where in it they begin */
};

static bool add_parameter(struct parameters *p, struct slice name, struct slice value)
{
	if (!p->lines && (has_control(value) || has_control(name)))
		return request_refuse(p->m, p->what, "a value holds a control character");
	if (p->out->n > p->begin)
		strbuf_add_char(p->out, '&');
	add_encoded(p->out, name);
	strbuf_add_char(p->out, '=');
	add_encoded(p->out, value);
	return true;
}

static bool add_parameters(struct parameters *p, struct slice name, struct json value, size_t depth);

/* name[member] */
static bool add_inner(struct parameters *p, struct slice name, struct slice member, struct json value, size_t depth)
{
	bool good;

	LOCAL_STRBUF(inner, NAME_BYTES_MAX);
	strbuf_add_slice(&inner, name);
	strbuf_add_str(&inner, name.n ? "[" : "");
	strbuf_add_slice(&inner, member);
	strbuf_add_str(&inner, name.n ? "]" : "");
	good = inner.failed ? request_refuse(p->m, p->what, "the name of a value is too long")
			    : add_parameters(p, strbuf_slice(&inner), value, depth + 1);
	return good;
}

static bool add_members(struct parameters *p, struct slice name, struct json object, size_t depth)
{
	struct json_iter it = json_iter_of(object);
	struct json member, value;

	while (json_iter_member(&it, &member, &value)) {
		struct slice word = json_string_view(member, p->m->arena);

		if (!word.p || !add_inner(p, name, word, value, depth))
			return request_refuse(p->m, p->what, "too much memory is needed");
	}
	return true;
}

/* Of plain values the name is repeated; objects among them have their number in it. */
static bool add_elements(struct parameters *p, struct slice name, struct json array, size_t depth)
{
	struct json_iter it = json_iter_of(array);
	struct json value;

	for (int i = 0; json_iter_element(&it, &value); i++) {
		bool plain = json_type(value) != JSON_OBJECT && json_type(value) != JSON_ARRAY;
		char number[16];

		snprintf(number, sizeof number, "%d", i);
		if (!(plain ? add_parameters(p, name, value, depth + 1)
			    : add_inner(p, name, slice_str(number), value, depth)))
			return false;
	}
	return true;
}

static bool add_parameters(struct parameters *p, struct slice name, struct json value, size_t depth)
{
	struct slice text;

	ASSERT(depth <= 2 * JSON_DEPTH_MAX);
	if (json_type(value) == JSON_OBJECT)
		return add_members(p, name, value, depth);
	if (depth == 0)
		return request_refuse(p->m, p->what, "it is no object");
	if (json_type(value) == JSON_ARRAY)
		return add_elements(p, name, value, depth);
	if (json_type(value) == JSON_NULL)
		return true; /* nothing was said */
	return scalar(p->m, value, &text) ? add_parameter(p, name, text)
					  : request_refuse(p->m, p->what, "too much memory is needed");
}

/* ---- the address ---- */

/* Values in it are one segment, or a part of one, each. */
static bool request_add_value(struct maker *m, struct json value, struct strbuf *out)
{
	struct slice text;

	if (!scalar(m, value, &text))
		return request_refuse(m, "path", "a value is neither a text nor a number");
	if (text.n == 0 || has_control(text))
		return request_refuse(m, "path", text.n ? "a value holds a control character" : "a value is empty");
	add_encoded(out, text); /* mutant: path-as-it-is -> strbuf_add_slice(out, text); */
	return true;
}

/* Of a text the slashes are its own. */
static bool request_add_text(struct maker *m, struct slice text, struct strbuf *out)
{
	while (text.n && text.p[0] == '/')
		text = slice_of(text.p + 1, text.n - 1);
	for (size_t at = 0; at <= text.n;) {
		const char *slash = at < text.n ? memchr(text.p + at, '/', text.n - at) : NULL;
		struct slice segment = slice_of(text.p + at, slash ? (size_t)(slash - text.p) - at : text.n - at);

		if (has_control(segment))
			return request_refuse(m, "path", "a value holds a control character");
		strbuf_add_char(out, '/');
		add_encoded(out, segment);
		at += segment.n + 1;
	}
	return true;
}

static bool add_computed_path(struct maker *m, const struct expression *from, struct strbuf *out)
{
	struct json value, segment;
	struct json_iter it;
	struct slice text;

	if (!evaluate(m, from, "path", &value))
		return false;
	if (json_type(value) == JSON_STRING)
		return scalar(m, value, &text) ? request_add_text(m, text, out)
					       : request_refuse(m, "path", "too much memory is needed");
	if (json_type(value) != JSON_ARRAY)
		return request_refuse(m, "path", "it is neither a text nor an array of segments");
	it = json_iter_of(value);
	while (json_iter_element(&it, &segment)) {
		strbuf_add_char(out, '/');
		if (!request_add_value(m, segment, out))
			return false;
	}
	return true;
}

static void add_template(struct maker *m, const struct action_request *shape, struct strbuf *out)
{
	struct json value;

	for (size_t i = 0; i < shape->path_n && !m->code; i++)
		if (shape->path[i].text)
			strbuf_add_str(out, shape->path[i].text);
		else if (evaluate(m, shape->path[i].from, "path", &value))
			(void)request_add_value(m, value, out); /* m->code says it */
}

static bool is_dots(struct slice segment)
{
	return slice_is(segment, ".") || slice_is(segment, "..");
}

static void check_segments(struct maker *m, struct slice path)
{
	for (size_t at = 1; at <= path.n;) {
		const char *slash = at < path.n ? memchr(path.p + at, '/', path.n - at) : NULL;
		size_t n = slash ? (size_t)(slash - path.p) - at : path.n - at;

		if (is_dots(slice_of(path.p + at, n)))
			request_refuse(m, "path", "a segment of dots leads elsewhere");
		at += n + 1;
	}
}

/* The url's path without a slash at its end, then the action's; the url's query, then the action's. */
static struct slice make_target(struct maker *m, const struct action_request *shape, struct slice target)
{
	const char *mark = memchr(target.p, '?', target.n);
	size_t path_n = mark ? (size_t)(mark - target.p) : target.n;
	bool longer = shape->path_n || shape->path_from;
	struct json value;
	struct strbuf out;

	strbuf_init(&out, REQUEST_TARGET_BYTES_MAX);
	strbuf_add(&out, target.p, longer && target.p[path_n - 1] == '/' ? path_n - 1 : path_n);
	if (shape->path_from)
		(void)add_computed_path(m, shape->path_from, &out); /* m->code says it */
	else
		add_template(m, shape, &out);
	strbuf_add_str(&out, out.n ? "" : "/");
	check_segments(m, strbuf_slice(&out)); /* mutant: path-of-dots */
	strbuf_add(&out, target.p + path_n, target.n - path_n);
	if (shape->query && evaluate(m, shape->query, "query", &value)) {
		struct parameters p = {.m = m, .what = "query", .out = &out};

		strbuf_add_char(&out, mark ? '&' : '?');
		p.begin = out.n;
		(void)add_parameters(&p, slice_str(""), value, 0); /* likewise */
		if (out.n == p.begin)
			out.n--;
	}
	if (out.failed)
		request_refuse(m, "the address", "it is too long");
	return arena_keep(m->arena, &out);
}

/* ---- method, body, headers ---- */

static struct slice make_method(struct maker *m, const struct action_request *shape)
{
	struct slice method = slice_str(shape->method ? shape->method : "POST");
	struct json value;

	if (!shape->method_from || !evaluate(m, shape->method_from, "method", &value))
		return method;
	if (!scalar(m, value, &method) || !request_method_is_known(method))
		request_refuse(m, "method", "it is none of GET, HEAD, POST, PUT, PATCH and DELETE");
	return arena_copy(m->arena, method);
}

static void make_form(struct maker *m, const struct expression *form, struct strbuf *made, struct request *request)
{
	struct json value;
	struct parameters p = {.m = m, .what = "form", .lines = true, .out = made};

	if (evaluate(m, form, "form", &value))
		(void)add_parameters(&p, slice_str(""), value, 0); /* m->code says it */
	request->content_type = "application/x-www-form-urlencoded";
	request->body = strbuf_slice(made);
}

/* Whoever only asks, or deletes, sends no envelope; null is no body. */
static void make_body(struct maker *m, const struct action_request *shape, struct strbuf *made, struct request *request)
{
	bool asks = slice_is(request->method, "GET") || slice_is(request->method, "HEAD");
	bool bare = asks || slice_is(request->method, "DELETE");
	struct json value;

	if (asks)
		return;
	if (shape->form) {
		make_form(m, shape->form, made, request);
	} else if (shape->body) {
		if (!evaluate(m, shape->body, "body", &value) || json_type(value) == JSON_NULL)
			return;
		strbuf_add_slice(made, value.raw);
		request->content_type = "application/json";
		request->body = strbuf_slice(made);
	} else if (!bare) {
		request->content_type = "application/json";
		request->body = m->job->call.input;
	}
	if (made->failed)
		request_refuse(m, "body", "it is too long");
}

static void make_values(struct maker *m, const struct action_request *shape, struct request *request)
{
	struct slice *values = arena_zalloc(m->arena, (shape->headers_n + 1) * sizeof *values);
	struct json value;
	struct slice text;

	for (size_t i = 0; values && i < shape->headers_n; i++) {
		if (!shape->headers[i].from || !evaluate(m, shape->headers[i].from, shape->headers[i].name, &value) ||
		    json_type(value) == JSON_NULL)
			continue;
		if (scalar(m, value, &text))
			values[i] = arena_copy(m->arena, text);
		else
			request_refuse(m, shape->headers[i].name, "its value is neither a text nor a number");
	}
	request->values = values;
}

static void make_more(struct maker *m, const struct expression *from, struct request *request)
{
	struct wire_field *fields = arena_alloc(m->arena, REQUEST_HEADERS_MAX * sizeof *fields);
	struct json_iter it;
	struct json object, name, value;
	size_t n = 0;

	if (!fields || !evaluate(m, from, "headers", &object))
		return;
	if (json_type(object) != JSON_OBJECT)
		request_refuse(m, "headers", "it is no object");
	it = json_iter_of(object);
	while (!m->code && json_iter_member(&it, &name, &value)) {
		struct wire_field field = {.name = json_string_decode(name, m->arena)};

		if (json_type(value) == JSON_NULL)
			continue;
		if (n == REQUEST_HEADERS_MAX || !scalar(m, value, &field.value)) {
			request_refuse(m, "headers", "there are too many, or a value is neither a text nor a number");
			return;
		}
		field.value = arena_copy(m->arena, field.value);
		fields[n++] = field;
	}
	request->more = (struct wire_fields){fields, n};
}

static bool is_plain(const struct action_request *shape)
{
	return !shape->method && !shape->method_from && !shape->path_n && !shape->path_from && !shape->query &&
	       !shape->body && !shape->form && !shape->headers_from;
}

static bool has_computed_header(const struct action_request *shape)
{
	for (size_t i = 0; i < shape->headers_n; i++)
		if (shape->headers[i].from)
			return true;
	return false;
}

static void request_make(struct maker *m, const struct action_request *shape, struct slice target, struct strbuf *made,
			 struct request *request)
{
	request->method = make_method(m, shape);
	request->target = make_target(m, shape, target);
	make_body(m, shape, made, request);
	make_values(m, shape, request);
	if (shape->headers_from)
		make_more(m, shape->headers_from, request);
	if (!m->code && (m->arena->failed || made->failed))
		m->code = error_set(m->err, HX_NO_MEMORY, "out of memory");
}

enum hx_code request_build(const struct job *job, struct slice target, struct arena *arena, struct strbuf *made,
			   struct request *ret_request, struct hx_error *err)
{
	const struct action_request *shape = &job->action->request;
	struct maker m = {.job = job, .arena = arena, .err = err};

	*ret_request = (struct request){.method = slice_str("POST"),
					.target = target,
					.body = job->call.input,
					.content_type = "application/json"};
	if (is_plain(shape) && !has_computed_header(shape))
		return HX_OK;
	*ret_request = (struct request){0};
	strbuf_init(&m.document, REQUEST_BODY_BYTES_MAX);
	strbuf_init(&m.value, REQUEST_BODY_BYTES_MAX);
	arena_init(&m.scratch, SCRATCH_BYTES_MAX);
	request_make(&m, shape, target, made, ret_request);
	arena_release(&m.scratch);
	strbuf_release(&m.value);
	strbuf_release(&m.document);
	return m.code;
}

/* ---- the reply ---- */

static struct slice lower(struct slice name, char text[static 64])
{
	size_t n = name.n < 64 ? name.n : 64;

	for (size_t i = 0; i < n; i++)
		text[i] = name.p[i] >= 'A' && name.p[i] <= 'Z' ? (char)(name.p[i] | 0x20) : name.p[i];
	return slice_of(text, n);
}

static bool is_same_name(struct slice a, struct slice b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

static void write_field(struct wire_fields fields, size_t i, struct strbuf *out)
{
	char name[64];

	LOCAL_STRBUF(value, REPLY_HEAD_BYTES_MAX);
	for (size_t k = i; k < fields.n; k++) {
		if (!is_same_name(fields.at[k].name, fields.at[i].name))
			continue;
		strbuf_add_str(&value, value.n ? ", " : "");
		strbuf_add_slice(&value, fields.at[k].value);
	}
	json_quote(lower(fields.at[i].name, name), out);
	strbuf_add_char(out, ':');
	json_quote(strbuf_slice(&value), out);
}

void request_write_reply(long status, struct wire_fields fields, struct slice body, struct strbuf *out)
{
	strbuf_addf(out, "{\"status\":%ld,\"headers\":{", status);
	for (size_t i = 0; i < fields.n; i++) {
		bool again = false;

		for (size_t k = 0; k < i && !again; k++)
			again = is_same_name(fields.at[k].name, fields.at[i].name);
		if (again)
			continue;
		strbuf_add_str(out, i ? "," : "");
		write_field(fields, i, out);
	}
	strbuf_add_str(out, "},\"body\":");
	strbuf_add_slice(out, body);
	strbuf_add_char(out, '}');
}

enum hx_code request_output(const struct expression *output, struct slice reply, struct strbuf *made,
			    struct hx_error *err)
{
	struct expression_env env = {.whole = json_trust(reply)};
	enum hx_code code;

	LOCAL_ARENA(scratch, SCRATCH_BYTES_MAX);
	code = expression_eval(output, &env, &scratch, err, made);
	return code ? error_set(err, HX_CONFIG_ERROR, "output: %s", excerpt_of(slice_str(err->detail)).text) : HX_OK;
}
