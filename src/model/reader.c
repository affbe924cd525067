/* See reader.h. */
#include "model/reader.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/duration.h"
#include "base/json_number.h"
#include "base/json_walk.h"
#include "model/text.h"
#include "model/workflow.h"

#define LEASE_MS_LEAST 1000
#define CONFIG_VALUES_MAX 20000
#define CONFIG_SCRATCH_BYTES_MAX (16u << 20)

static bool is_name_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
	       c == '-';
}

bool name_is_valid(struct slice name)
{
	if (name.n == 0 || name.n > WORKFLOW_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (!is_name_char(name.p[i]))
			return false;
	return true;
}

static void reader_add(const struct reader *r, enum finding_severity severity, size_t line, const char *rule,
		       const char *format, va_list args)
{
	struct finding finding = r->place;

	if (!r->findings)
		return;
	finding.severity = severity;
	finding.line = line;
	finding.rule = rule;
	if (!r->where) {
		findings_addv(r->findings, finding, format, args);
		return;
	}

	const char *inner = text_vprintf(r->findings->arena, format, args);

	findings_add(r->findings, finding, "%s: %s", r->where, inner ? inner : "");
}

struct suggestion reader_suggest(const struct reader *r, struct slice name, const char *const *known)
{
	if (!r->findings || r->findings->errors + r->findings->warnings >= SUGGESTIONS_MAX)
		return (struct suggestion){""};
	return nearest_words(name, known, "\"", "\"");
}

void reader_report(const struct reader *r, size_t line, const char *rule, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	reader_add(r, FINDING_ERROR, line, rule, format, args);
	va_end(args);
}

void reader_warn(const struct reader *r, size_t line, const char *rule, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	reader_add(r, FINDING_WARNING, line, rule, format, args);
	va_end(args);
}

void reader_report_json(const struct reader *r, const struct hx_error *err)
{
	char *end;
	size_t line = strtoul(err->detail, &end, 10);
	bool placed = err->detail[0] >= '1' && err->detail[0] <= '9' && *end == ':';

	reader_report(r, placed ? line : 0, err->code == HX_TOO_LARGE ? "limit" : "json", "%s%s",
		      placed ? "column " : "", placed ? end + 1 : err->detail);
}

bool reader_configuration(const struct reader *r, struct slice text,
			  void (*read)(const struct reader *r, const struct json_node *root, void *config),
			  void *config, const char **ret_file)
{
	struct finding **from = r->findings->last;
	const struct json_node *root = NULL;
	struct hx_error err;
	LOCAL_ARENA(scratch, CONFIG_SCRATCH_BYTES_MAX);

	if (text.n > CONFIG_BYTES_MAX)
		reader_report(r, 0, "limit", "the configuration has %zu bytes; at most %u", text.n, CONFIG_BYTES_MAX);
	else if (json_tree_parse(text, CONFIG_VALUES_MAX, &scratch, &err, &root) != HX_OK)
		reader_report_json(r, &err);
	else
		read(r, root, config);
	*ret_file = reader_keep(r, slice_str(r->place.file));
	if (r->arena->failed) {
		(void)arena_error(r->arena, &err); /* for its words */
		reader_report(r, 0, "limit", "%s", err.detail);
	}
	findings_sort(r->findings, from);
	return !r->arena->failed;
}

/* "timeout must be a duration, not 5", "url must be a string, not an object" */
static bool refuse_type(const struct reader *r, const struct json_node *node, const char *what, const char *wanted)
{
	bool has_parts = node->type == JSON_ARRAY || node->type == JSON_OBJECT;

	reader_report(r, node->at.line, "type", "%s must be %s, not %s%s", what, wanted, has_parts ? "an " : "",
		      has_parts ? json_type_name(node->type) : excerpt_of(node->value.raw).text);
	return false;
}

bool reader_object(const struct reader *r, const struct json_node *node, const char *what)
{
	if (!node)
		return false;
	return node->type == JSON_OBJECT || refuse_type(r, node, what, "an object");
}

bool reader_array(const struct reader *r, const struct json_node *node, const char *what, size_t min, size_t max)
{
	if (!node)
		return false;
	if (node->type != JSON_ARRAY)
		return refuse_type(r, node, what, "an array");
	if (node->count >= min && node->count <= max)
		return true;
	reader_report(r, node->at.line, "limit", "%s has %zu entries; it must have %zu to %zu", what, node->count, min,
		      max);
	return false;
}

/* One more than there are, so that a list can have an end. */
static void *room_for(const struct reader *r, const struct json_node *node, size_t size)
{
	return arena_zalloc(r->arena, (node->count + 1) * size);
}

void *reader_list(const struct reader *r, const struct json_node *node, const char *what, size_t min, size_t max,
		  size_t size)
{
	return reader_array(r, node, what, min, max) ? room_for(r, node, size) : NULL;
}

void *reader_map(const struct reader *r, const struct json_node *node, const char *what, size_t max, size_t size)
{
	if (!reader_object(r, node, what))
		return NULL;
	if (node->count <= max)
		return room_for(r, node, size);
	reader_report(r, node->at.line, "limit", "%s has %zu entries; at most %zu", what, node->count, max);
	return NULL;
}

const struct json_node *reader_required(const struct reader *r, const struct json_node *object, const char *name)
{
	const struct json_node *member = json_node_member(object, name);

	if (!member)
		reader_report(r, object->at.line, "missing field", "\"%s\" is missing", name);
	return member;
}

bool reader_string(const struct reader *r, const struct json_node *node, const char *what)
{
	if (!node)
		return false;
	return node->type == JSON_STRING || refuse_type(r, node, what, "a string");
}

void reader_parse(const struct reader *r, const struct json_node *node, struct slice text, const char *what,
		  const char *const *roots, const struct expression **ret)
{
	const struct expression *expression = NULL;
	struct hx_error err;

	if (expression_parse(text, r->arena, &err, &expression) == HX_OK &&
	    expression_check_roots(expression, roots, &err) == HX_OK)
		*ret = expression;
	else
		reader_report(r, node->at.line, "expression", "%s: %s", what, err.detail);
}

void reader_expression(const struct reader *r, const struct json_node *node, const char *what, const char *const *roots,
		       const struct expression **ret)
{
	if (reader_string(r, node, what))
		reader_parse(r, node, node->string, what, roots, ret);
}

const char *reader_keep(const struct reader *r, struct slice text)
{
	return arena_copy(r->arena, text).p;
}

static bool keep_into(const struct reader *r, struct slice text, const char **ret)
{
	const char *copy = reader_keep(r, text);

	if (copy)
		*ret = copy;
	return copy;
}

bool reader_text(const struct reader *r, const struct json_node *node, const char *what, size_t max_bytes,
		 const char **ret)
{
	if (!reader_string(r, node, what))
		return false;

	struct slice text = node->string;
	bool clean = text.n > 0 && text.n <= max_bytes;

	for (size_t i = 0; clean && i < text.n; i++)
		clean = (unsigned char)text.p[i] >= 0x20 && text.p[i] != 0x7f;
	if (!clean) {
		reader_report(r, node->at.line, "value",
			      "%s is \"%s\"; it must have 1 to %zu bytes and no control characters", what,
			      excerpt_of(text).text, max_bytes);
		return false;
	}

	return keep_into(r, text, ret);
}

bool reader_name(const struct reader *r, const struct json_node *node, const char *what, const char **ret)
{
	if (!reader_string(r, node, what))
		return false;
	if (!name_is_valid(node->string)) {
		reader_report(r, node->at.line, "name",
			      "%s is \"%s\"; a name has 1 to %d bytes of letters, digits, '_', '.' and '-'", what,
			      excerpt_of(node->string).text, WORKFLOW_NAME_MAX);
		return false;
	}

	return keep_into(r, node->string, ret);
}

bool reader_duration(const struct reader *r, const struct json_node *node, const char *what, int64_t *ret_ms)
{
	struct hx_error err;

	if (!node)
		return false;
	if (node->type != JSON_STRING)
		return refuse_type(r, node, what, "a duration like \"250ms\", \"5s\", \"2m\", \"24h\" or \"7d\"");
	if (duration_parse(what, node->string, &err, ret_ms) == HX_OK)
		return true;
	reader_report(r, node->at.line, "duration", "%s", err.detail);
	return false;
}

bool reader_lease(const struct reader *r, const struct json_node *node, const char *what, int64_t *ret_ms)
{
	if (!reader_duration(r, node, what, ret_ms))
		return false;
	if (*ret_ms < LEASE_MS_LEAST)
		reader_warn(r, node->at.line, "duration",
			    "%s is %" PRId64 "ms, shorter than a second: a busy machine loses it", what, *ret_ms);
	return true;
}

bool reader_int(const struct reader *r, const struct json_node *node, const char *what, int64_t min, int64_t max,
		int64_t *ret)
{
	int64_t value = 0;

	if (!node)
		return false;
	if (node->type != JSON_NUMBER)
		return refuse_type(r, node, what, "a whole number");
	if (json_int64(node->value, NULL, &value) != HX_OK || value < min || value > max) {
		reader_report(r, node->at.line, "value",
			      "%s is %s; it must be a whole number from %" PRId64 " to %" PRId64, what,
			      excerpt_of(node->value.raw).text, min, max);
		return false;
	}
	*ret = value;
	return true;
}

bool reader_bool(const struct reader *r, const struct json_node *node, const char *what, bool *ret)
{
	if (!node)
		return false;
	if (node->type != JSON_BOOL)
		return refuse_type(r, node, what, "true or false");
	*ret = json_bool(node->value);
	return true;
}

bool reader_choice(const struct reader *r, const struct json_node *node, const char *what, const char *const *names,
		   int *ret)
{
	if (!reader_string(r, node, what))
		return false;
	for (int i = 0; names[i]; i++) {
		if (slice_is(node->string, names[i])) {
			*ret = i;
			return true;
		}
	}
	reader_report(r, node->at.line, "value", "%s is \"%s\", which is not known%s", what,
		      excerpt_of(node->string).text, reader_suggest(r, node->string, names).text);
	return false;
}

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* What is said after it is read by who opens it (gate/redis.h). */
static bool is_redis(const char *url)
{
	return has_prefix(url, "redis://") || has_prefix(url, "rediss://") || has_prefix(url, "redis+unix://") ||
	       has_prefix(url, "redis+sentinel://") || has_prefix(url, "rediss+sentinel://");
}

bool reader_store(const struct reader *r, const struct json_node *node, const char *what, bool any, const char **ret)
{
	const char *url = NULL;

	if (!reader_text(r, node, what, READER_PATH_BYTES_MAX, &url))
		return false;
	if ((has_prefix(url, "sqlite:") && url[7]) || has_prefix(url, "postgres://") ||
	    has_prefix(url, "postgresql://") || (any && (strcmp(url, "memory:") == 0 || is_redis(url)))) {
		*ret = url;
		return true;
	}
	reader_report(r, node->at.line, "value", "%s is not a store; write %ssqlite:PATH or postgres://...", what,
		      any ? "memory:, redis://HOST:PORT/DB, " : "");
	return false;
}

bool reader_address(const struct reader *r, const struct json_node *node, const char *what, const char **ret)
{
	const char *text = NULL;

	if (!reader_text(r, node, what, READER_PATH_BYTES_MAX, &text))
		return false;

	const char *colon = strrchr(text, ':');

	if (colon && colon != text && text_is_number_up_to(colon + 1, 65535)) {
		*ret = text;
		return true;
	}
	reader_report(r, node->at.line, "value", "%s is \"%s\"; write it as ADDRESS:PORT", what,
		      excerpt_of(slice_str(text)).text);
	return false;
}

const char *reader_label(const struct json_node *name, size_t i, struct arena *scratch)
{
	return name && name->type == JSON_STRING && name_is_valid(name->string) ? name->string.p
										: text_printf(scratch, "#%zu", i + 1);
}
