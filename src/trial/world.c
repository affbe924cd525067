/* See world.h. */
#include "trial/world.h"

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

static const struct field service_fields[] = {
	{"may", FIELD_OWN(read_may)},
	{"dedupes", FIELD_OWN(read_dedupes)},
	{"guesses", FIELD_BOOL(struct trial_service_said, guesses)},
	{"voids", FIELD_BOOL(struct trial_service_said, voids)},
	{"returns", FIELD_OWN(read_returns)},
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

/* ---- rules ---- */

const char *const trial_rule_kinds[RULE_KINDS_N + 1] = {"never", "always", "ends", "sometimes", NULL};
static const char *const rule_roots[] = {"status", "doubt", "steps", "ledger", NULL};

static void read_rule(const struct reader *r, const struct json_node *node, struct trial_rule_said *rule, size_t *n)
{
	unsigned said = 0;

	for (unsigned kind = 0; kind < RULE_KINDS_N; kind++) {
		const struct json_node *member = json_node_member(node, trial_rule_kinds[kind]);

		if (!member)
			continue;
		said++;
		rule->kind = kind;
		rule->line = member->at.line;
		rule->text = member->type == JSON_STRING ? reader_keep(r, member->string) : NULL;
		reader_expression(r, member, trial_rule_kinds[kind], rule_roots, &rule->expression);
	}
	if (said != 1)
		reader_report(r, node->at.line, "rule", "it is one of never, always, ends and sometimes");
	*n += said == 1 && rule->expression;
}

static const struct field rule_fields[] = {
	{"never", FIELD_KNOWN},
	{"always", FIELD_KNOWN},
	{"ends", FIELD_KNOWN},
	{"sometimes", FIELD_KNOWN},
	{"workflow", FIELD_NAME(struct trial_rule_said, workflow)},
	{0},
};

static void read_rules(const struct reader *outer, const struct json_node *node, const struct field *field, void *ret)
{
	struct trial_world *world = ret;
	struct trial_rule_said *rules = reader_list(outer, node, field->name, 1, TRIAL_RULES_MAX, sizeof *rules);
	struct reader r = *outer;
	size_t n = 0;

	if (!rules)
		return;
	r.where = "rules";
	json_node_for_each(rule, node)
	{
		if (!reader_object(&r, rule, "a rule"))
			continue;
		rules[n] = (struct trial_rule_said){0};
		fields_read(&r, rule, rule_fields, &rules[n]);
		read_rule(&r, rule, &rules[n], &n);
	}
	world->rules_n = n;
	world->rules = rules;
}

static const struct field world_fields[] = {
	{"inputs", FIELD_OWN(read_inputs)},
	{"services", FIELD_OWN(read_services)},
	{"rules", FIELD_OWN(read_rules)},
	{0},
};

static void read_world(const struct reader *r, const struct json_node *root, void *ret)
{
	if (reader_object(r, root, "a world"))
		fields_read(r, root, world_fields, ret);
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
	for (size_t i = 0; i < world->services_n; i++)
		if (world->services[i].name && strcmp(world->services[i].name, action) == 0)
			return &world->services[i];
	return NULL;
}

#define KNOWN_MAX 1000

/* What there is to be named. */
struct known {
	const struct reader *r;
	size_t line;
	const char *actions[KNOWN_MAX + 1], *workflows[KNOWN_MAX + 1];
};

static void want_known(const struct reader *r, size_t line, const char *const *known, const char *what,
		       struct slice name)
{
	for (size_t i = 0; known[i]; i++)
		if (slice_is(name, known[i]))
			return;
	reader_report(r, line, "name", "no definition has %s \"%s\"%s", what, excerpt_of(name).text,
		      reader_suggest(r, name, known).text);
}

static void use_of_rule(void *context, struct slice root, struct slice name, size_t column)
{
	const struct known *known = context;

	(void)column;
	if (slice_is(root, "ledger"))
		want_known(known->r, known->line, known->actions, "an action", name);
}

static void fill_known(const struct definition_set *set, struct known *known)
{
	size_t actions = 0, workflows = 0;

	for (size_t i = 0; i < set->n && workflows < KNOWN_MAX; i++) {
		known->workflows[workflows++] = set->items[i]->name;
		for (size_t a = 0; a < set->items[i]->actions_n && actions < KNOWN_MAX; a++)
			known->actions[actions++] = set->items[i]->actions[a].name;
	}
}

void trial_world_check(const struct trial_world *world, const struct definition_set *set, struct findings *findings)
{
	struct reader r = {.findings = findings, .arena = findings->arena, .place = {.file = world->file}};
	struct known known = {.r = &r};

	fill_known(set, &known);
	for (size_t i = 0; i < world->services_n; i++)
		want_known(&r, world->services[i].line, known.actions, "an action", slice_str(world->services[i].name));
	for (size_t i = 0; i < world->rules_n; i++) {
		known.line = world->rules[i].line;
		expression_each_use(world->rules[i].expression, use_of_rule, &known);
		if (world->rules[i].workflow)
			want_known(&r, known.line, known.workflows, "a workflow", slice_str(world->rules[i].workflow));
	}
}
