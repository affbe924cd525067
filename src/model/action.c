/*
 * Actions as a definition declares them. One table says which field belongs to which kind; a field of another kind
 * is refused like an unknown one, because whoever wrote it believed in something that does not happen.
 */
#include "model/action.h"

#include <stdio.h>
#include <strings.h>

#include "base/excerpt.h"
#include "model/action_parse.h"
#include "model/head.h"
#include "model/header.h"
#include "model/sql_text.h"
#include "model/url.h"
#include "model/workflow.h"

#define HEADERS_MAX 32
#define ARGV_MAX 64
#define ARGUMENT_BYTES_MAX 4096
#define IN_FLIGHT_MAX 10000
#define WHERE_BYTES 80

static const char *const kind_names[] = {"http", "exec", "sql", "native", "worker", "noop", NULL};
static const char *const effect_names[] = {"idempotent", "keyed", "transactional", "claimed", NULL};

const char *action_kind_name(enum action_kind kind)
{
	return kind_names[kind];
}

const char *action_effect_name(enum action_effect effect)
{
	return effect_names[effect];
}

const struct action *action_absent(const struct action *action)
{
	if (!action)
		return NULL;
	if (action->absent)
		return action;
	if (action->probe && action->probe->absent)
		return action->probe;
	return action->void_action && action->void_action->absent ? action->void_action : NULL;
}

#define KIND(kind) (1u << (kind))
#define ALL (~0u)
#define VOIDABLE (KIND(ACTION_HTTP) | KIND(ACTION_EXEC) | KIND(ACTION_NATIVE))
#define CALLS (KIND(ACTION_HTTP) | KIND(ACTION_EXEC) | KIND(ACTION_NATIVE) | KIND(ACTION_WORKER))

/* clang-format off */
static const struct field {
	const char *name;
	unsigned kinds;
} fields[] = {
	{"kind",          ALL},
	{"effect",        ALL},
	{"timeout",       CALLS | KIND(ACTION_SQL)},
	{"probe",         CALLS},
	{"void",          VOIDABLE}, /* only in a batch */
	{"max_in_flight", CALLS},
	{"url",           KIND(ACTION_HTTP)},
	{"headers",       KIND(ACTION_HTTP)},
	{"outcomes",      KIND(ACTION_HTTP)},
	{"argv",          KIND(ACTION_EXEC)},
	{"statements",    KIND(ACTION_SQL)},
	{"function",      KIND(ACTION_NATIVE)},
	{"queue",         KIND(ACTION_WORKER)},
};
/* clang-format on */

#define FIELD_COUNT (sizeof fields / sizeof fields[0])

static bool belongs_to_definition(const struct reader *r, const struct field *field)
{
	return strcmp(field->name, "void") != 0 || strcmp(r->kind, "batch") == 0;
}

static const struct field *field_named(struct slice name)
{
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (slice_is(name, fields[i].name))
			return &fields[i];
	return NULL;
}

static void check_field(const struct reader *r, const struct json_node *member, unsigned kinds, const char *kind,
			const char *const *fitting)
{
	const struct field *field = field_named(member->name);

	if (!field)
		reader_report(r, member->name_at.line, "unknown field", "\"%s\"%s", excerpt_of(member->name).text,
			      reader_suggest(r, member->name, fitting).text);
	else if (!belongs_to_definition(r, field))
		head_refuse_field(r, member, fitting);
	else if (!(field->kinds & kinds))
		reader_report(r, member->name_at.line, "unknown field",
			      "\"%s\" does not belong to an action of kind %s%s", field->name, kind,
			      reader_suggest(r, member->name, fitting).text);
}

static void check_fields(const struct reader *r, const struct json_node *node, unsigned kinds, const char *kind)
{
	const char *fitting[FIELD_COUNT + 1] = {NULL};
	size_t n = 0;

	for (size_t i = 0; i < FIELD_COUNT; i++)
		if ((fields[i].kinds & kinds) && belongs_to_definition(r, &fields[i]))
			fitting[n++] = fields[i].name;
	json_node_for_each(member, node) check_field(r, member, kinds, kind, fitting);
}

static enum action_effect default_effect(enum action_kind kind)
{
	return kind == ACTION_SQL ? EFFECT_TRANSACTIONAL : kind == ACTION_NOOP ? EFFECT_IDEMPOTENT : EFFECT_CLAIMED;
}

static void read_effect(const struct reader *r, const struct json_node *node, struct action *action)
{
	int effect = (int)default_effect(action->kind);

	(void)reader_choice(r, node, "effect", effect_names, &effect); /* reported there */
	/* Never so for a default, and so never without a node. */
	if ((effect == EFFECT_TRANSACTIONAL) != (action->kind == ACTION_SQL))
		reader_report(r, node->at.line, "effect",
			      "effect %s does not go with kind %s: sql actions, and only they, are transactional",
			      effect_names[effect], action_kind_name(action->kind));
	action->effect = (enum action_effect)effect;
}

static void read_url(const struct reader *r, const struct json_node *node, struct action *action)
{
	struct hx_error err;

	if (!reader_string(r, node, "url"))
		return;
	if (url_check(node->string, &err) != HX_OK)
		reader_report(r, node->at.line, "value", "url %s", err.detail);
	action->url = reader_keep(r, node->string);
}

static bool header_stands_twice(const struct action_header *headers, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(headers[i].name, name) == 0)
			return true;
	return false;
}

static void read_header(const struct reader *r, const struct json_node *node, struct action_header *headers, size_t *n)
{
	struct action_header header = {reader_keep(r, node->name), NULL};
	struct hx_error err;

	if (!reader_string(r, node, excerpt_of(node->name).text))
		return;
	header.value = reader_keep(r, node->string);
	if (header_check(node->name, node->string, &err) != HX_OK)
		reader_report(r, node->name_at.line, "value", "headers: %s", err.detail);
	else if (header.name && header_stands_twice(headers, *n, header.name))
		reader_report(r, node->name_at.line, "duplicate", "headers: %s stands twice", header.name);
	else if (header.name && header.value)
		headers[(*n)++] = header;
	if (header_has_literal_secret(node->name, node->string))
		reader_warn(r, node->name_at.line, "secret",
			    "headers: %s has its value in the clear, for everybody who may read definitions: write "
			    "${env:NAME} or ${file:PATH}",
			    excerpt_of(node->name).text);
}

static void read_headers(const struct reader *r, const struct json_node *node, struct action *action)
{
	struct action_header *headers;

	if (!reader_object(r, node, "headers"))
		return;
	if (node->count > HEADERS_MAX) {
		reader_report(r, node->at.line, "limit", "headers has %zu entries; at most %d", node->count,
			      HEADERS_MAX);
		return;
	}
	headers = arena_alloc(r->arena, node->count * sizeof *headers);
	if (!headers)
		return;
	json_node_for_each(member, node) read_header(r, member, headers, &action->headers_n);
	action->headers = headers;
}

static void read_argv(const struct reader *r, const struct json_node *node, struct action *action)
{
	size_t n = 0;

	if (!reader_array(r, node, "argv", 1, ARGV_MAX))
		return;

	const char **argv = arena_zalloc(r->arena, (node->count + 1) * sizeof *argv);

	if (!argv)
		return;
	json_node_for_each(element, node)
	{
		if (!reader_string(r, element, "an entry of argv"))
			continue;
		if (element->string.n > ARGUMENT_BYTES_MAX || strlen(element->string.p) != element->string.n ||
		    (n == 0 && element->string.n == 0))
			reader_report(r, element->at.line, "value",
				      "argv: an entry has at most %d bytes and no NUL, and the first is a program",
				      ARGUMENT_BYTES_MAX);
		argv[n] = reader_keep(r, element->string);
		n += argv[n] != NULL;
	}
	action->argv = argv;
}

static void read_statement(const struct reader *r, const struct json_node *node, struct action_statement *statement)
{
	static const char *const known[] = {"name", "sql", "must", NULL};
	const struct json_node *sql;
	struct hx_error err;

	if (!reader_object(r, node, "a statement"))
		return;
	reader_known(r, node, known);
	(void)reader_name(r, reader_required(r, node, "name"), "name", &statement->name); /* reported there */
	(void)reader_bool(r, json_node_member(node, "must"), "must", &statement->must);
	sql = reader_required(r, node, "sql");
	if (!reader_string(r, sql, "sql"))
		return;
	if (sql_text_parse(sql->string, r->arena, &err, statement) != HX_OK)
		reader_report(r, sql->at.line, "sql", "statement %s: %s", statement->name ? statement->name : "?",
			      err.detail);
}

static void read_statements(const struct reader *r, const struct json_node *node, struct action *action)
{
	struct action_statement *statements;
	size_t n = 0;

	if (!reader_array(r, node, "statements", 1, ACTION_STATEMENTS_MAX))
		return;
	statements = arena_zalloc(r->arena, node->count * sizeof *statements);
	if (!statements)
		return;
	json_node_for_each(element, node)
	{
		read_statement(r, element, &statements[n]);
		for (size_t i = 0; i < n && statements[n].name; i++)
			if (statements[i].name && strcmp(statements[i].name, statements[n].name) == 0)
				reader_report(r, element->at.line, "duplicate", "two statements are called %s",
					      statements[n].name);
		n++;
	}
	action->statements = statements;
	action->statements_n = n;
}

static void read_by_kind(const struct reader *r, const struct json_node *node, struct action *action)
{
	switch (action->kind) {
	case ACTION_HTTP:
		read_url(r, reader_required(r, node, "url"), action);
		read_headers(r, json_node_member(node, "headers"), action);
		outcomes_parse(r, json_node_member(node, "outcomes"), &action->outcomes);
		return;
	case ACTION_EXEC:
		read_argv(r, reader_required(r, node, "argv"), action);
		return;
	case ACTION_SQL:
		read_statements(r, reader_required(r, node, "statements"), action);
		return;
	case ACTION_NATIVE:
		(void)reader_name(r, reader_required(r, node, "function"), "function", &action->function);
		return;
	case ACTION_WORKER:
		(void)reader_name(r, reader_required(r, node, "queue"), "queue", &action->queue);
		return;
	case ACTION_NOOP:
		return;
	}
	ASSERT(!"a kind has its fields");
}

static const char *where_of(char where[WHERE_BYTES], struct slice name)
{
	snprintf(where, WHERE_BYTES, "action %s", excerpt_of(name).text);
	return where;
}

static void read_action(const struct reader *outer, const struct json_node *node, struct action *action)
{
	struct reader r = *outer;
	char where[WHERE_BYTES];
	int kind = 0;

	action->name = reader_keep(&r, node->name);
	action->workflow = outer->place.workflow;
	action->timeout_ms = ACTION_TIMEOUT_MS_DEFAULT;
	action->line = node->name_at.line;
	r.where = where_of(where, node->name);
	if (!name_is_valid(node->name))
		reader_report(outer, node->name_at.line, "name",
			      "action \"%s\": a name has 1 to %d bytes of letters, digits, '_', '.' and '-'",
			      excerpt_of(node->name).text, WORKFLOW_NAME_MAX);
	if (!reader_object(&r, node, "an action"))
		return;
	if (!reader_choice(&r, reader_required(&r, node, "kind"), "kind", kind_names, &kind)) {
		check_fields(&r, node, ALL, "unknown");
		return;
	}
	action->kind = (enum action_kind)kind;
	check_fields(&r, node, KIND(kind), kind_names[kind]);
	read_effect(&r, json_node_member(node, "effect"), action);
	if (kind == ACTION_SQL)
		action->timeout_ms = ACTION_SQL_TIMEOUT_MS_DEFAULT;
	(void)reader_duration(&r, json_node_member(node, "timeout"), "timeout", &action->timeout_ms);
	(void)reader_int(&r, json_node_member(node, "max_in_flight"), "max_in_flight", 1, IN_FLIGHT_MAX,
			 &action->max_in_flight);
	read_by_kind(&r, node, action);
}

/* The other action that this one names in the field; NULL: none, or itself, which is reported. */
static const struct action *other_action(const struct reader *r, const struct json_node *node,
					 const struct action_list *list, const struct action *action,
					 const char *why_not_itself)
{
	const struct action *other = node ? action_reference(r, node, node->name.p, list) : NULL;

	if (other != action)
		return other;
	if (other)
		reader_report(r, node->at.line, "value", "%s: an action that %s itself would act again", node->name.p,
			      why_not_itself);
	return NULL;
}

static void link_probe(const struct reader *r, const struct json_node *node, const struct action_list *list,
		       struct action *action)
{
	const struct action *probe = other_action(r, node, list, action, "asks");

	/* Nor a worker's: whoever asks waits for the answer then and there. */
	if (probe && (!(KIND(probe->kind) & CALLS) || probe->kind == ACTION_WORKER))
		reader_report(r, node->at.line, "value", "probe: %s is of kind %s, which answers no question",
			      probe->name, action_kind_name(probe->kind));
	action->probe = probe;
}

static void link_void(const struct reader *r, const struct json_node *node, const struct action_list *list,
		      struct action *action)
{
	action->void_action = other_action(r, node, list, action, "voids");
	if (action->void_action && !action_refuse_uncalled(r, node, "void", action->void_action))
		action_warn_claimed(r, node, "void", action->void_action);
}

/* Once all are read, because the other one may stand behind the action that it belongs to. */
static void link_others(const struct reader *outer, const struct json_node *node, const struct action_list *list,
			struct action *action)
{
	struct reader r = *outer;
	char where[WHERE_BYTES];

	r.where = where_of(where, node->name);
	if (KIND(action->kind) & CALLS)
		link_probe(&r, json_node_member(node, "probe"), list, action);
	if ((KIND(action->kind) & VOIDABLE) && strcmp(r.kind, "batch") == 0) /* elsewhere it is refused */
		link_void(&r, json_node_member(node, "void"), list, action);
}

void actions_parse(const struct reader *r, const struct json_node *node, struct action_list *ret)
{
	struct action *actions;

	*ret = (struct action_list){0, NULL};
	if (!reader_object(r, node, "actions"))
		return;
	actions = arena_zalloc(r->arena, node->count * sizeof *actions);
	if (!actions)
		return;
	for (size_t i = 0; i < node->count; i++)
		read_action(r, node->sorted[i], &actions[i]);
	if (r->arena->failed)
		return;
	*ret = (struct action_list){node->count, actions};
	for (size_t i = 0; i < node->count; i++)
		link_others(r, node->sorted[i], ret, &actions[i]);
}

const struct action *action_named(const struct action_list *list, struct slice name)
{
	size_t low = 0, high = list->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = slice_compare(name, slice_str(list->items[middle].name));

		if (order == 0)
			return &list->items[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

struct suggestion action_suggest(const struct reader *r, const struct action_list *list, struct slice name)
{
	const char *names[WORKFLOW_ACTIONS_MAX + 1] = {NULL};

	for (size_t i = 0; i < list->n && i < WORKFLOW_ACTIONS_MAX; i++)
		names[i] = list->items[i].name;
	return reader_suggest(r, name, names);
}

const struct action *action_reference(const struct reader *r, const struct json_node *node, const char *what,
				      const struct action_list *list)
{
	if (!reader_string(r, node, what))
		return NULL;

	const struct action *action = action_named(list, node->string);

	if (!action && r->findings)
		reader_report(r, node->at.line, "reference", "%s: there is no action \"%s\"%s", what,
			      excerpt_of(node->string).text, action_suggest(r, list, node->string).text);
	return action;
}

void action_add_once(const struct reader *r, const struct json_node *node, const char *what,
		     const struct action *action, const struct action **list, size_t *n)
{
	for (size_t i = 0; i < *n; i++) {
		if (list[i] == action) {
			reader_report(r, node->at.line, "duplicate", "%s names %s twice", what, action->name);
			return;
		}
	}
	list[(*n)++] = action;
}

bool action_refuse_uncalled(const struct reader *r, const struct json_node *node, const char *what,
			    const struct action *action)
{
	if (action->kind != ACTION_SQL && action->kind != ACTION_WORKER)
		return false;
	reader_report(r, node->at.line, "value",
		      "%s: %s is of kind %s; in this version it is carried out by the engine itself, "
		      "so it must be of kind http, exec, native or noop",
		      what, action->name, action_kind_name(action->kind));
	return true;
}

void action_warn_claimed(const struct reader *r, const struct json_node *node, const char *what,
			 const struct action *action)
{
	if (action->effect == EFFECT_CLAIMED)
		reader_warn(r, node->at.line, "effect",
			    "%s: %s is called again whenever nobody knows whether it was done; "
			    "if twice is as good as once, say so: its effect is idempotent or keyed",
			    what, action->name);
}
