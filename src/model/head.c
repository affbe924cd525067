/* See head.h. */
#include "model/head.h"

#include <stdio.h>

#include "base/excerpt.h"
#include "model/definition_text.h"
#include "model/user_table.h"

static const char *const kind_names[] = {"entity", "run", "batch", "function", NULL};

#define KINDS (sizeof kind_names / sizeof kind_names[0] - 1)
#define ENTITY 1u /* a bit for each of kind_names[] */
#define RUN 2u
#define BATCH 4u
#define FUNCTION 8u

/* ---- fields of other kinds ---- */

static const struct field meta_fields[] = {
	{"module", FIELD_NAME(struct head, module)},
	{"table", .of = ENTITY, FIELD_OWN_AT(struct head, table, struct user_table, user_table_read)},
	{"columns", .of = ENTITY, FIELD_OWN_AT(struct head, table, struct user_table, user_table_read_columns)},
	{0}};
static const struct field batch_action_fields[] = {{"void", FIELD_KNOWN}, {0}};

static const struct {
	unsigned kinds;
	const struct field *fields;
} tables[] = {{ENTITY, entity_fields}, {ENTITY, step_fields},        {RUN, run_fields},          {RUN, run_step_fields},
	      {BATCH, batch_fields},   {BATCH, batch_action_fields}, {FUNCTION, function_fields}};

/* A name that could have been meant as one of every kind is better answered by the nearest. */
static bool says_little(struct slice name)
{
	return slice_is(name, "name") || slice_is(name, "type") || slice_is(name, "action");
}

static unsigned kinds_with_field(struct slice name)
{
	const struct field *of_meta = field_named(meta_fields, name);
	unsigned kinds = of_meta ? of_meta->of : 0;

	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		if (field_named(tables[i].fields, name))
			kinds |= tables[i].kinds;
	return says_little(name) ? 0 : kinds;
}

static unsigned kind_bit(const char *kind)
{
	for (size_t i = 0; i < KINDS; i++)
		if (strcmp(kind_names[i], kind) == 0)
			return 1u << i;
	ASSERT(!"the reader of a definition knows its kind");
	return 0;
}

void head_refuse(const struct reader *r, const struct json_node *member, const struct field *misplaced, unsigned of,
		 const char *const *fitting)
{
	unsigned owners = kinds_with_field(member->name);
	char words[64] = "";
	size_t n = 0;

	if (!owners || (owners & kind_bit(r->kind))) {
		field_refuse(r, member, misplaced, of, fitting);
		return;
	}
	for (size_t i = 0; i < KINDS; i++)
		if (owners & (1u << i))
			n += (size_t)snprintf(words + n, sizeof words - n, "%s%s", n ? " or " : "", kind_names[i]);
	reader_report(r, member->name_at.line, "unknown field",
		      "\"%s\" belongs to definitions of kind %s, and this is one of kind %s",
		      excerpt_of(member->name).text, words, r->kind);
}

/* ---- the head ---- */

static bool check_kind(const struct reader *r, const struct json_node *root)
{
	const struct json_node *node = reader_required(r, root, "kind");
	int kind = 0;

	if (!node)
		return true;
	if (!reader_choice(r, node, "kind", kind_names, &kind))
		return false;
	if (strcmp(kind_names[kind], r->kind) == 0)
		return true;
	reader_report(r, node->at.line, "kind", "this is a definition of kind %s, not %s", kind_names[kind], r->kind);
	return false;
}

/* In a definition of kind entity the nearest name is all that is said. */
static void check_members(const struct reader *r, const struct json_node *object, const struct field *fields)
{
	unsigned kind = kind_bit(r->kind);

	fields_check(r, object, fields, kind, kind == ENTITY ? field_refuse : head_refuse);
}

static void read_meta(const struct reader *outer, const struct json_node *meta, struct head *head)
{
	struct reader r = *outer;

	r.where = "meta";
	if (!reader_object(outer, meta, "meta"))
		return;
	check_members(&r, meta, meta_fields);
	fields_take(&r, meta, meta_fields, kind_bit(r.kind), head);
}

/* What only `hapax explore` and `hapax test` look at: both name actions. */
static void read_trial(const struct reader *r, const struct json_node *root, struct head *head)
{
	const struct json_node *rules = json_node_member(root, "rules"), *world = json_node_member(root, "world");
	const char **names = rules || world ? arena_zalloc(r->arena, (head->actions.n + 1) * sizeof *names) : NULL;

	if (!names)
		return;
	for (size_t i = 0; i < head->actions.n; i++)
		names[i] = head->actions.items[i].name;
	user_rules_read(r, rules, head->name, &head->rules);
	user_rules_check(r, &head->rules, names);
	head->world = trial_world_read(r, world, names);
}

/* False: it is of another kind. */
static bool head_read_all(struct reader *r, const struct json_node *root, const struct field *fields, struct slice text,
			  struct head *head)
{
	*head = (struct head){.file = reader_keep(r, slice_str(r->place.file)), .text = arena_copy(r->arena, text)};
	if (reader_name(r, reader_required(r, root, "workflow"), "workflow", &head->name))
		r->place.workflow = head->name;
	if (!check_kind(r, root))
		return false;
	check_members(r, root, fields);
	head->module = head->name;
	read_meta(r, json_node_member(root, "meta"), head);
	actions_parse(r, json_node_member(root, "actions"), &head->actions);
	r->actions = &head->actions;
	read_trial(r, root, head);
	return true;
}

const void *head_read(const char *kind, const struct field *fields, const char *file, struct slice text,
		      struct arena *arena, struct findings *findings, head_read_fn *read)
{
	struct reader r = {.findings = findings, .arena = arena, .place.file = file, .kind = kind};
	struct finding **from = findings->last;
	size_t errors = findings->errors;
	const struct json_node *root;
	const void *definition = NULL;
	struct arena scratch;
	struct head head;

	arena_init(&scratch, DEFINITION_SCRATCH_BYTES_MAX);
	root = definition_text_read(&r, text, &scratch);
	if (root && head_read_all(&r, root, fields, text, &head))
		read(&r, root, &head, &scratch, &definition);
	definition_text_done(&r, &scratch, from);
	return findings->errors == errors ? definition : NULL;
}
