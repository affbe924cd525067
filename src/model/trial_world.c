/* See trial_world.h. */
#include "model/trial_world.h"

#include <strings.h>

#include "base/json_walk.h"
#include "model/fields.h"
#include "model/load.h"

static const char *const may_names[MAYS_N + 1] = {
	"done", "failed", "rejected", "failed_after", "timeout", "timeout_after", "late", NULL,
};

const char *trial_may_name(enum trial_may may)
{
	return may_names[may];
}

static void read_may(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct trial_service_said *service = ret;

	if (!reader_array(r, node, field->name, 1, MAYS_N))
		return;
	json_node_for_each(word, node)
	{
		int may;

		if (reader_choice(r, word, field->name, may_names, &may))
			service->may |= 1u << may;
	}
}

static void read_dedupes(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct trial_service_said *service = ret;

	service->dedupes_said = reader_bool(r, node, field->name, &service->dedupes);
}

/* The tree goes with the reading; what it returns stays. */
static struct json keep_json(const struct reader *r, const struct json_node *node)
{
	return json_trust(arena_copy(r->arena, node->value.raw));
}

static void read_returns(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	(void)field;
	((struct trial_service_said *)ret)->returns = keep_json(r, node);
}

static const struct field tells_fields[] = {
	{"workflow", FIELD_NAME(struct trial_service_said, tells)},
	{"event", FIELD_NAME(struct trial_service_said, event)},
	{"step", FIELD_NAME(struct trial_service_said, event)}, /* each kind has but one of them */
	{0},
};

static void read_tells(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	if (reader_object(r, node, field->name) && reader_required(r, node, "workflow"))
		fields_read(r, node, tells_fields, ret);
}

static const struct field service_fields[] = {
	{"may", FIELD_OWN(read_may)},
	{"dedupes", FIELD_OWN(read_dedupes)},
	{"guesses", FIELD_BOOL(struct trial_service_said, guesses)},
	{"voids", FIELD_BOOL(struct trial_service_said, voids)},
	{"returns", FIELD_OWN(read_returns)},
	{"tells", FIELD_OWN(read_tells)},
	{0},
};

static void read_services(const struct reader *outer, const struct json_node *node, const struct field *field,
			  void *ret)
{
	struct trial_world *world = ret;
	struct trial_service_said *services = reader_map(outer, node, field->name, TRIAL_SERVICES_MAX,
							 sizeof *services);
	struct reader r = *outer;
	size_t n = 0;

	if (!services)
		return;
	json_node_for_each(member, node)
	{
		struct trial_service_said *service = &services[n++];
		char where[100];

		snprintf(where, sizeof where, "service %s", excerpt_of(member->name).text);
		r.where = where;
		service->name = reader_keep(&r, member->name);
		service->line = member->name_at.line;
		if (reader_object(&r, member, "a service"))
			fields_read(&r, member, service_fields, service);
	}
	world->services_n = n;
	world->services = services;
}

static void read_inputs(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct trial_world *world = ret;

	if (!reader_array(r, node, field->name, 1, TRIAL_INPUTS_MAX))
		return;
	json_node_for_each(input, node) world->inputs[world->inputs_n++] = keep_json(r, input);
}

static void read_events(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	if (reader_object(r, node, field->name))
		((struct trial_world *)ret)->events = keep_json(r, node);
}

/* It is run by whoever explores, the server too: so it makes or fills a table, is one, and has nothing to do with tables of ours. */
static bool makes_a_table(const char *sql)
{
	static const char *const begins[] = {"CREATE TABLE ", "CREATE UNIQUE INDEX ", "INSERT INTO "};
	bool begins_so = false;

	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		begins_so |= strncasecmp(sql, begins[i], strlen(begins[i])) == 0;
	return begins_so && !strchr(sql, ';') && !strcasestr(sql, "hx_");
}

static void read_tables(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct trial_world *world = ret;

	if (!reader_array(r, node, field->name, 1, TRIAL_TABLES_MAX))
		return;
	json_node_for_each(table, node)
	{
		const char *sql;

		if (!reader_text(r, table, field->name, TRIAL_TABLE_BYTES_MAX, &sql))
			continue;
		if (!makes_a_table(sql))
			reader_report(
				r, table->at.line, "table",
				"it is one CREATE TABLE, CREATE UNIQUE INDEX or INSERT INTO, without a semicolon");
		world->tables[world->tables_n++] = sql;
	}
}

static void read_rules(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	(void)field;
	user_rules_read(r, node, /* workflow= */ NULL, &((struct trial_world *)ret)->rules);
}

/* Where a world stands. */
#define IN_FILE FIELDS_HERE
#define IN_DEFINITION 2u

static const struct field world_fields[] = {
	{"inputs", FIELD_OWN(read_inputs)},
	{"events", FIELD_OWN(read_events)},
	{"services", FIELD_OWN(read_services)},
	{"tables", FIELD_OWN(read_tables)},
	{"rules", .of = IN_FILE, FIELD_OWN(read_rules)}, /* a definition has them beside its world */
	{0},
};

static void read_world(const struct reader *r, const struct json_node *root, void *ret)
{
	if (reader_object(r, root, "a world"))
		fields_read(r, root, world_fields, ret);
}

const struct trial_world *trial_world_read(const struct reader *outer, const struct json_node *node,
					   const char *const *actions)
{
	struct trial_world *world = node ? arena_zalloc(outer->arena, sizeof *world) : NULL;
	struct reader r = *outer;

	if (!world || !reader_object(outer, node, "world"))
		return NULL;
	r.where = "world";
	world->file = reader_keep(outer, slice_str(outer->place.file));
	fields_check(&r, node, world_fields, IN_DEFINITION, field_refuse);
	fields_take(&r, node, world_fields, IN_DEFINITION, world);
	for (size_t i = 0; i < world->services_n; i++)
		user_rules_want(&r, world->services[i].line, actions, "an action", slice_str(world->services[i].name));
	return world;
}

void trial_world_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
		       struct trial_world *ret)
{
	struct reader r = {.findings = findings, .arena = arena, .place = {.file = file}};

	*ret = (struct trial_world){0};
	if (!reader_configuration(&r, text, read_world, ret, &ret->file))
		*ret = (struct trial_world){0};
}

const struct trial_service_said *trial_world_service(const struct trial_world *world, const char *action)
{
	for (size_t i = 0; world && i < world->services_n; i++)
		if (world->services[i].name && strcmp(world->services[i].name, action) == 0)
			return &world->services[i];
	return NULL;
}

struct json trial_world_event(const struct trial_world *world, const char *event)
{
	struct json data;

	if (world->events.raw.p && json_find(world->events, slice_str(event), &data))
		return data;
	return json_trust(slice_str("{}"));
}

#define KNOWN_MAX 1000

/* What there is to be named. */
struct known {
	const char *actions[KNOWN_MAX + 1], *workflows[KNOWN_MAX + 1];
};

static void fill_known(const struct definition_set *set, struct known *known)
{
	size_t actions = 0, workflows = 0;

	for (size_t i = 0; i < set->n && workflows < KNOWN_MAX; i++) {
		known->workflows[workflows++] = set->items[i]->name;
		for (size_t a = 0; a < set->items[i]->actions_n && actions < KNOWN_MAX; a++)
			known->actions[actions++] = set->items[i]->actions[a].name;
	}
}

/* A step is the only thing that can be told to an entity. */
static void check_told(const struct reader *r, const struct trial_service_said *s, const struct definition_set *set)
{
	struct known known = {0};

	for (size_t i = 0; i < set->n; i++) {
		const struct workflow *w = strcmp(set->items[i]->name, s->tells) == 0 ? set->items[i]->entity : NULL;

		for (size_t k = 0; w && k < w->steps_n && k < KNOWN_MAX; k++)
			known.actions[k] = w->steps[k].step_key;
		if (w)
			user_rules_want(r, s->line, known.actions, "a step", slice_str(s->event ? s->event : ""));
	}
}

void trial_world_check(const struct trial_world *world, const struct definition_set *set, struct findings *findings)
{
	struct reader r = {.findings = findings, .arena = findings->arena, .place = {.file = world->file}};
	struct known known = {0};

	fill_known(set, &known);
	for (size_t i = 0; i < world->services_n; i++) {
		user_rules_want(&r, world->services[i].line, known.actions, "an action",
				slice_str(world->services[i].name));
		if (!world->services[i].tells)
			continue;
		user_rules_want(&r, world->services[i].line, known.workflows, "a workflow",
				slice_str(world->services[i].tells));
		check_told(&r, &world->services[i], set);
	}
	user_rules_check(&r, &world->rules, known.actions);
	for (size_t i = 0; i < world->rules.n; i++)
		if (world->rules.items[i].workflow)
			user_rules_want(&r, world->rules.items[i].line, known.workflows, "a workflow",
					slice_str(world->rules.items[i].workflow));
}
