/* Reads what action_request.h describes. */
#include "model/action_request.h"

#include <strings.h>

#include "base/json_string.h"
#include "model/action_parse.h"
#include "model/header.h"

static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", NULL};
/* The members of all bodies that a call may have (flow/…_text.c), and two besides. */
static const char *const request_roots[] = {"input",    "data", "state",     "key",   "id",
					    "workflow", "step", "requester", "item",  "from",
					    "output",   "to",   "version",   "error", NULL};
static const char *const reply_roots[] = {"status", "headers", "body", NULL};

bool request_method_is_known(struct slice method)
{
	for (size_t i = 0; methods[i]; i++)
		if (slice_is(method, methods[i]))
			return true;
	return false;
}

/* No expression is a word of capitals alone. */
static bool is_capitals(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] < 'A' || text.p[i] > 'Z')
			return false;
	return text.n > 0;
}

void request_read_method(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct action_request *request = ret;
	int method;

	if (!reader_string(r, node, field->name))
		return;
	if (!is_capitals(node->string))
		reader_parse(r, node, node->string, field->name, request_roots, &request->method_from);
	else if (reader_choice(r, node, field->name, methods, &method))
		request->method = methods[method];
}

/* ---- an object of expressions, as one expression ---- */

/* {"a": ".input.a", "b": {"c": ".key"}, "d": 7} is written as {"a": (.input.a), "b": ({"c": (.key)}), "d": (7)}. */
static void write_members(const struct json_node *node, struct strbuf *text)
{
	if (node->type == JSON_STRING) {
		strbuf_add_slice(text, node->string);
		return;
	}
	if (node->type != JSON_OBJECT) {
		strbuf_add_slice(text, node->value.raw);
		return;
	}
	strbuf_add_char(text, '{');
	json_node_for_each(member, node)
	{
		strbuf_add_str(text, member == node->first ? "" : ",");
		json_quote(member->name, text);
		strbuf_add_str(text, ":(");
		write_members(member, text);
		strbuf_add_char(text, ')');
	}
	strbuf_add_char(text, '}');
}

void request_read_object(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	if (node->type != JSON_OBJECT) {
		reader_expression(r, node, field->name, request_roots, ret);
		return;
	}
	LOCAL_STRBUF(text, EXPRESSION_BYTES_MAX + 1);
	write_members(node, &text);
	if (text.failed)
		reader_report(r, node->at.line, "value", "%s: its expressions have more than %d bytes in all",
			      field->name, EXPRESSION_BYTES_MAX);
	else
		reader_parse(r, node, strbuf_slice(&text), field->name, request_roots, ret);
}

void request_read_output(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	reader_expression(r, node, field->name, reply_roots, ret);
}

/* ---- the path ---- */

/* Where the brace that was opened before this place is closed: brackets and strings in between are the expression's. n: nowhere. */
static size_t closing_brace(struct slice text, size_t at)
{
	size_t open = 1;
	bool quoted = false;

	for (; at < text.n; at++) {
		char c = text.p[at];

		if (quoted && c == '\\')
			at++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && c == '{')
			open++;
		else if (!quoted && c == '}' && --open == 0)
			return at;
	}
	return text.n;
}

/* What may stand in a path: visible ASCII, and no begin of a query or a fragment. */
static bool is_path_text(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] <= ' ' || text.p[i] >= 0x7f || strchr("?#\\}\"<>", text.p[i]))
			return false;
	return true;
}

/* One piece of the template from this place on. Returns where the next one begins; n + 1 after a finding. */
static size_t read_piece(const struct reader *r, const struct json_node *node, size_t at, struct action_piece *piece)
{
	struct slice text = node->string;
	bool literal = text.p[at] != '{';
	size_t begin = at + !literal, end = literal ? at + strcspn(text.p + at, "{") : closing_brace(text, begin);
	struct slice inside = slice_of(text.p + begin, end - begin);

	if (literal ? !is_path_text(inside) : end == text.n) {
		reader_report(
			r, node->at.line, "value", "path: %s",
			literal ? "it has a character that no path has: write {EXPRESSION} for a value, and use \"query\""
				: "a { is never closed");
		return text.n + 1;
	}
	if (literal)
		piece->text = reader_keep(r, inside);
	else
		reader_parse(r, node, inside, "path", request_roots, &piece->from);
	return literal ? end : end + 1;
}

static void read_template(const struct reader *r, const struct json_node *node, struct action_request *request)
{
	struct action_piece *pieces = arena_zalloc(r->arena, REQUEST_PIECES_MAX * sizeof *pieces);
	size_t n = 0;

	for (size_t at = 0; pieces && at < node->string.n; n++) {
		if (n == REQUEST_PIECES_MAX) {
			reader_report(r, node->at.line, "value", "path: it has more than %d pieces",
				      REQUEST_PIECES_MAX);
			return;
		}
		at = read_piece(r, node, at, &pieces[n]);
	}
	request->path = pieces;
	request->path_n = n;
}

/* No expression begins with a slash. */
void request_read_path(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct action_request *request = ret;

	if (!reader_string(r, node, field->name))
		return;
	if (node->string.n && node->string.p[0] == '/')
		read_template(r, node, request);
	else
		reader_parse(r, node, node->string, field->name, request_roots, &request->path_from);
}

/* ---- headers ---- */

static bool header_stands_twice(const struct action_header *headers, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(headers[i].name, name) == 0)
			return true;
	return false;
}

static void read_header(const struct reader *r, const struct json_node *node, struct action_header *headers, size_t *n)
{
	struct action_header header = {.name = reader_keep(r, node->name)};
	bool computed;
	struct hx_error err;

	if (!reader_string(r, node, excerpt_of(node->name).text))
		return;
	/* A value is what it says; one that begins like a path of an expression is that. */
	computed = node->string.n && (node->string.p[0] == '.' || node->string.p[0] == '(');
	if (header_check(node->name, computed ? slice_str("") : node->string, &err) != HX_OK)
		reader_report(r, node->name_at.line, "value", "headers: %s", err.detail);
	else if (header.name && header_stands_twice(headers, *n, header.name))
		reader_report(r, node->name_at.line, "duplicate", "headers: %s stands twice", header.name);
	if (computed)
		reader_parse(r, node, node->string, "headers", request_roots, &header.from);
	else
		header.value = reader_keep(r, node->string);
	if (header.name && (header.value || header.from))
		headers[(*n)++] = header;
	if (!computed && header_has_literal_secret(node->name, node->string))
		reader_warn(r, node->name_at.line, "secret",
			    "headers: %s has its value in the clear, for everybody who may read definitions: write "
			    "${env:NAME} or ${file:PATH}",
			    excerpt_of(node->name).text);
}

void request_read_headers(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct action_request *request = ret;
	struct action_header *headers;

	if (node->type == JSON_STRING) {
		reader_expression(r, node, field->name, request_roots, &request->headers_from);
		return;
	}
	headers = reader_map(r, node, field->name, REQUEST_HEADERS_MAX, sizeof *headers);
	if (!headers)
		return;
	json_node_for_each(member, node) read_header(r, member, headers, &request->headers_n);
	request->headers = headers;
}

void request_check(const struct reader *r, const struct json_node *node, const struct action_request *request)
{
	bool bare = request->method && (strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0);
	const struct json_node *form = json_node_member(node, "form"), *body = json_node_member(node, "body");

	if (form && body)
		reader_report(r, form->name_at.line, "value", "a request has \"body\" or \"form\", not both");
	if (bare && (form || body))
		reader_report(r, (form ? form : body)->name_at.line, "value", "a %s has no body: use \"query\"",
			      request->method);
}
