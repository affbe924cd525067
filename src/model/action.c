/*
 * Actions as a definition declares them. One table has the fields, and which kinds they belong to; a field of another kind
 * is refused like an unknown one, because whoever wrote it believed in something that does not happen.
 */
#include "model/action.h"

#include <stdio.h>

#include "base/excerpt.h"
#include "model/action_parse.h"
#include "model/head.h"
#include "model/lookup.h"
#include "model/sql_text.h"
#include "model/url.h"
#include "model/workflow.h"

#define ARGV_MAX 64
#define ARGUMENT_BYTES_MAX 4096
#define IN_FLIGHT_MAX 10000
#define WHERE_BYTES 80

#define NAME_OF(kind, name, ...) name,
static const char *const kind_names[] = {ACTION_KINDS(NAME_OF) NULL};

#define DEFAULTS_OF(kind, name, by, effect, timeout_ms) {by, effect, timeout_ms},
static const struct {
	enum action_by by;
	enum action_effect effect;
	int64_t timeout_ms;
} kinds[] = {ACTION_KINDS(DEFAULTS_OF)};

static const char *const effect_names[] = {"idempotent", "keyed", "transactional", "claimed", NULL};

const char *action_kind_name(enum action_kind kind)
{
	return kind_names[kind];
}

enum action_by action_kind_by(enum action_kind kind)
{
	return kinds[kind].by;
}

bool action_is_inside(const struct action *action)
{
	return kinds[action->kind].by == BY_UNIT;
}

bool action_is_outside(const struct action *action)
{
	return kinds[action->kind].by == BY_PORT || action_is_for_workers(action);
}

bool action_is_for_workers(const struct action *action)
{
	return kinds[action->kind].by == BY_WORKER;
}

bool action_has_timeout(const struct action *action)
{
	return kinds[action->kind].by != BY_NOBODY;
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

static void read_effect(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct action *action = ret;
	int effect = (int)action->effect;

	(void)reader_choice(r, node, field->name, effect_names, &effect); /* reported there */
	/* Never so for a default. */
	if ((effect == EFFECT_TRANSACTIONAL) != action_is_inside(action))
		reader_report(r, node->at.line, "effect",
			      "effect %s does not go with kind %s: sql actions, and only they, are transactional",
			      effect_names[effect], action_kind_name(action->kind));
	action->effect = (enum action_effect)effect;
}

static void read_url(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct action *action = ret;
	struct hx_error err;

	if (!reader_string(r, node, field->name))
		return;
	if (url_check(node->string, &err) != HX_OK)
		reader_report(r, node->at.line, "value", "url %s", err.detail);
	action->url = reader_keep(r, node->string);
}

static void read_argv(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct action *action = ret;
	const char **argv = reader_list(r, node, field->name, 1, ARGV_MAX, sizeof *argv);
	size_t n = 0;

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

static void read_sql(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct action_statement *statement = ret;
	struct hx_error err;

	if (!reader_string(r, node, field->name))
		return;
	if (sql_text_parse(node->string, r->arena, &err, statement) != HX_OK)
		reader_report(r, node->at.line, "sql", "statement %s: %s", statement->name ? statement->name : "?",
			      err.detail);
}

static const struct field statement_fields[] = {{"name", FIELD_NAME(struct action_statement, name), .required = true},
						{"sql", FIELD_OWN(read_sql), .required = true},
						{"must", FIELD_BOOL(struct action_statement, must)},
						{0}};

static void read_statements(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct action *action = ret;
	struct action_statement *statements;
	size_t n = 0;

	statements = reader_list(r, node, field->name, 1, ACTION_STATEMENTS_MAX, sizeof *statements);
	if (!statements)
		return;
	json_node_for_each(element, node)
	{
		if (reader_object(r, element, "a statement"))
			fields_read(r, element, statement_fields, &statements[n]);
		for (size_t i = 0; i < n && statements[n].name; i++)
			if (statements[i].name && strcmp(statements[i].name, statements[n].name) == 0)
				reader_report(r, element->at.line, "duplicate", "two statements are called %s",
					      statements[n].name);
		n++;
	}
	action->statements = statements;
	action->statements_n = n;
}

/* ---- an action ---- */

#define KIND(kind) (1u << (kind))
/* The kinds that these carry out. */
#define OF_PORT(kind, name, by, ...) | ((by) == BY_PORT ? KIND(ACTION_##kind) : 0)
#define OF_WORKER(kind, name, by, ...) | ((by) == BY_WORKER ? KIND(ACTION_##kind) : 0)
#define OF_UNIT(kind, name, by, ...) | ((by) == BY_UNIT ? KIND(ACTION_##kind) : 0)
#define CALLED (0u ACTION_KINDS(OF_PORT))
#define OUTSIDE (CALLED ACTION_KINDS(OF_WORKER))
#define TIMED (OUTSIDE ACTION_KINDS(OF_UNIT))
/* The same kinds in a batch, for what belongs to its actions alone. */
#define IN_BATCH(kinds) ((kinds) << 8)
#define OUT_OF_BATCH 0xffu
_Static_assert(ACTION_KINDS_N <= 8, "the kinds in a batch have bits of their own");

#define FIELD_REQUEST(member, function) FIELD_OWN_AT(struct action, member, struct action_request, function)
#define FIELD_PIECE(piece, function) FIELD_OWN_AT(struct action, request.piece, const struct expression *, function)

/* clang-format off */
static const struct field action_fields[] = {
	{"kind",          FIELD_KNOWN},
	{"effect",        FIELD_OWN(read_effect)},
	{"timeout",       .of = TIMED,                   FIELD_DURATION(struct action, timeout_ms)},
	{"probe",         .of = OUTSIDE,                 FIELD_KNOWN},
	{"void",          .of = IN_BATCH(CALLED),        FIELD_KNOWN},
	{"max_in_flight", .of = OUTSIDE,                 FIELD_INT(struct action, max_in_flight, 1, IN_FLIGHT_MAX)},
	{"limits",        .of = CALLED,                  FIELD_OWN_AT(struct action, limits, struct limits, limits_read_of_action)},
	{"url",           .of = KIND(ACTION_HTTP),       FIELD_OWN(read_url), .required = true},
	{"method",        .of = KIND(ACTION_HTTP),       FIELD_REQUEST(request, request_read_method)},
	{"path",          .of = KIND(ACTION_HTTP),       FIELD_REQUEST(request, request_read_path)},
	{"query",         .of = KIND(ACTION_HTTP),       FIELD_PIECE(query, request_read_object)},
	{"headers",       .of = KIND(ACTION_HTTP),       FIELD_REQUEST(request, request_read_headers)},
	{"body",          .of = KIND(ACTION_HTTP),       FIELD_PIECE(body, request_read_object)},
	{"form",          .of = KIND(ACTION_HTTP),       FIELD_PIECE(form, request_read_object)},
	{"output",        .of = KIND(ACTION_HTTP),       FIELD_PIECE(output, request_read_output)},
	{"outcomes",      .of = KIND(ACTION_HTTP),       FIELD_OWN_AT(struct action, outcomes, struct outcomes, outcomes_read)},
	{"argv",          .of = KIND(ACTION_EXEC),       FIELD_OWN(read_argv), .required = true},
	{"statements",    .of = KIND(ACTION_SQL),        FIELD_OWN(read_statements), .required = true},
	{"function",      .of = KIND(ACTION_NATIVE),     FIELD_NAME(struct action, function), .required = true},
	{"queue",         .of = KIND(ACTION_WORKER),     FIELD_NAME(struct action, queue), .required = true},
	{0}};
/* clang-format on */

static bool is_batch(const struct reader *r)
{
	return strcmp(r->kind, "batch") == 0;
}

static void refuse_field(const struct reader *r, const struct json_node *member, const struct field *misplaced,
			 unsigned of, const char *const *fitting)
{
	if (!misplaced)
		field_refuse(r, member, misplaced, of, fitting);
	else if (!(misplaced->of & OUT_OF_BATCH) && !is_batch(r))
		head_refuse(r, member, misplaced, of, fitting);
	else
		reader_report(r, member->name_at.line, "unknown field",
			      "\"%s\" does not belong to an action of kind %s%s", misplaced->name,
			      kind_names[__builtin_ctz(of)], reader_suggest(r, member->name, fitting).text);
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
	unsigned of;
	int kind = 0;

	action->name = reader_keep(&r, node->name);
	action->workflow = outer->place.workflow;
	action->line = node->name_at.line;
	r.where = where_of(where, node->name);
	if (!name_is_valid(node->name))
		reader_report(outer, node->name_at.line, "name",
			      "action \"%s\": a name has 1 to %d bytes of letters, digits, '_', '.' and '-'",
			      excerpt_of(node->name).text, WORKFLOW_NAME_MAX);
	if (!reader_object(&r, node, "an action"))
		return;
	if (!reader_choice(&r, reader_required(&r, node, "kind"), "kind", kind_names, &kind)) {
		fields_check(&r, node, action_fields, is_batch(&r) ? FIELDS_ANYWHERE : OUT_OF_BATCH, refuse_field);
		return;
	}
	action->kind = (enum action_kind)kind;
	action->effect = kinds[kind].effect;
	action->timeout_ms = kinds[kind].timeout_ms;
	of = KIND(kind) | (is_batch(&r) ? IN_BATCH(KIND(kind)) : 0);
	fields_check(&r, node, action_fields, of, refuse_field);
	fields_take(&r, node, action_fields, of, action);
	request_check(&r, node, &action->request);
}

/* The other action that this one names in the field; NULL: none, or itself, which is reported. */
static const struct action *other_action(const struct reader *r, const struct json_node *node,
					 const struct action *action, const char *why_not_itself)
{
	const struct action *other = node ? action_reference(r, node, node->name.p) : NULL;

	if (other != action)
		return other;
	if (other)
		reader_report(r, node->at.line, "value", "%s: an action that %s itself would act again", node->name.p,
			      why_not_itself);
	return NULL;
}

static void link_probe(const struct reader *r, const struct json_node *node, struct action *action)
{
	const struct action *probe = other_action(r, node, action, "asks");

	/* Nor a worker's: whoever asks waits for the answer then and there. */
	if (probe && !(KIND(probe->kind) & CALLED))
		reader_report(r, node->at.line, "value", "probe: %s is of kind %s, which answers no question",
			      probe->name, action_kind_name(probe->kind));
	if (probe)
		(void)action_refuse_limited(r, node, "probe", probe, "who asks what became of a call is not counted");
	action->probe = probe;
}

static void link_void(const struct reader *r, const struct json_node *node, struct action *action)
{
	action->void_action = other_action(r, node, action, "voids");
	if (action->void_action && !action_refuse_uncalled(r, node, "void", action->void_action))
		action_warn_claimed(r, node, "void", action->void_action);
}

/* Once all are read, because the other one may stand after the action that it belongs to. */
static void link_others(const struct reader *outer, const struct json_node *node, struct action *action)
{
	struct reader r = *outer;
	char where[WHERE_BYTES];

	r.where = where_of(where, node->name);
	if (KIND(action->kind) & OUTSIDE)
		link_probe(&r, json_node_member(node, "probe"), action);
	if ((KIND(action->kind) & CALLED) && is_batch(&r)) /* elsewhere it is refused */
		link_void(&r, json_node_member(node, "void"), action);
}

void actions_parse(const struct reader *outer, const struct json_node *node, struct action_list *ret)
{
	struct reader r = *outer;
	struct action *actions;

	*ret = (struct action_list){0, NULL};
	if (!reader_object(&r, node, "actions"))
		return;
	actions = arena_zalloc(r.arena, node->count * sizeof *actions);
	if (!actions)
		return;
	for (size_t i = 0; i < node->count; i++)
		read_action(&r, node->sorted[i], &actions[i]);
	if (r.arena->failed)
		return;
	*ret = (struct action_list){node->count, actions};
	r.actions = ret;
	for (size_t i = 0; i < node->count; i++)
		link_others(&r, node->sorted[i], &actions[i]);
}

static int compare_name(const void *name, const void *action)
{
	return slice_compare(*(const struct slice *)name, slice_str(((const struct action *)action)->name));
}

const struct action *action_named(const struct action_list *list, struct slice name)
{
	return lookup(&name, list->items, list->n, sizeof *list->items, compare_name);
}

struct suggestion action_suggest(const struct reader *r, const struct action_list *list, struct slice name)
{
	const char *names[WORKFLOW_ACTIONS_MAX + 1] = {NULL};

	for (size_t i = 0; i < list->n && i < WORKFLOW_ACTIONS_MAX; i++)
		names[i] = list->items[i].name;
	return reader_suggest(r, name, names);
}

const struct action *action_reference(const struct reader *r, const struct json_node *node, const char *what)
{
	if (!reader_string(r, node, what))
		return NULL;

	const struct action *action = action_named(r->actions, node->string);

	if (!action && r->findings)
		reader_report(r, node->at.line, "reference", "%s: there is no action \"%s\"%s", what,
			      excerpt_of(node->string).text, action_suggest(r, r->actions, node->string).text);
	return action;
}

void action_read(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	*(const struct action **)ret = action_reference(r, node, field->name);
}

/* None of them twice. */
static void add_once(const struct reader *r, const struct json_node *node, const char *what,
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

void action_read_effects(const struct reader *r, const struct json_node *node, const char *what,
			 action_refuse_fn *refuse, const struct action **list, size_t *n)
{
	if (!reader_array(r, node, what, 0, STEP_AFTER_EFFECTS_MAX))
		return;
	json_node_for_each(element, node)
	{
		const struct action *action = action_reference(r, element, what);

		if (action && !refuse(r, element, what, action))
			add_once(r, element, what, action, list, n);
	}
}

bool action_refuse_uncalled(const struct reader *r, const struct json_node *node, const char *what,
			    const struct action *action)
{
	if (!action_is_inside(action) && !action_is_for_workers(action))
		return false;
	reader_report(r, node->at.line, "value",
		      "%s: %s is of kind %s; in this version it is carried out by the engine itself, "
		      "so it must be of kind http, exec, native or noop",
		      what, action->name, action_kind_name(action->kind));
	return true;
}

bool action_refuse_limited(const struct reader *r, const struct json_node *node, const char *what,
			   const struct action *action, const char *why)
{
	if (!limits_are_set(&action->limits))
		return false;
	reader_report(r, node->at.line, "value", "%s: %s has limits, and %s", what, action->name, why);
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
