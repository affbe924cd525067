/* See user_rule.h. */
#include "model/user_rule.h"

#include "model/fields.h"

const char *const user_rule_kinds[RULE_KINDS_N + 1] = {"never", "always", "ends", "sometimes", NULL};
static const char *const rule_roots[] = {"status", "doubt", "steps", "ledger", "open", "tables", "with", NULL};

/* True: it says what it is, and what it says can be asked. */
static bool read_kind(const struct reader *r, const struct json_node *node, struct user_rule *rule)
{
	unsigned said = 0;

	for (unsigned kind = 0; kind < RULE_KINDS_N; kind++) {
		const struct json_node *member = json_node_member(node, user_rule_kinds[kind]);

		if (!member)
			continue;
		said++;
		rule->kind = kind;
		rule->line = member->at.line;
		rule->text = member->type == JSON_STRING ? reader_keep(r, member->string) : NULL;
		reader_expression(r, member, user_rule_kinds[kind], rule_roots, &rule->expression);
	}
	if (said != 1)
		reader_report(r, node->at.line, "rule", "it is one of never, always, ends and sometimes");
	return said == 1 && rule->expression;
}

/* clang-format off */
static const struct field rule_fields[] = {
	{"never",     FIELD_KNOWN},
	{"always",    FIELD_KNOWN},
	{"ends",      FIELD_KNOWN},
	{"sometimes", FIELD_KNOWN},
	{"workflow",  FIELD_NAME(struct user_rule, workflow)},
	{0}};
/* clang-format on */

void user_rules_read(const struct reader *outer, const struct json_node *node, const char *workflow,
		     struct user_rules *ret)
{
	struct user_rule *rules = node ? reader_list(outer, node, "rules", 1, USER_RULES_MAX, sizeof *rules) : NULL;
	const char *file = rules ? reader_keep(outer, slice_str(outer->place.file)) : NULL;
	struct reader r = *outer;
	size_t n = 0;

	if (!file)
		return;
	r.where = "rules";
	json_node_for_each(rule, node)
	{
		if (!reader_object(&r, rule, "a rule"))
			continue;
		rules[n] = (struct user_rule){.file = file};
		fields_read(&r, rule, rule_fields, &rules[n]);
		if (workflow && rules[n].workflow && strcmp(workflow, rules[n].workflow) != 0)
			reader_report(&r, rule->at.line, "rule", "rules of a definition are about its own workflow, %s",
				      workflow);
		rules[n].workflow = workflow ? workflow : rules[n].workflow;
		n += read_kind(&r, rule, &rules[n]);
	}
	*ret = (struct user_rules){n, rules};
}

void user_rules_want(const struct reader *r, size_t line, const char *const *known, const char *what, struct slice name)
{
	for (size_t i = 0; known[i]; i++)
		if (slice_is(name, known[i]))
			return;
	reader_report(r, line, "name", "no definition has %s \"%s\"%s", what, excerpt_of(name).text,
		      reader_suggest(r, name, known).text);
}

/* What a rule is looked through for. */
struct uses {
	const struct reader *r;
	const char *const *actions;
	size_t line;
};

static void use_of_rule(void *context, struct slice root, struct slice name, size_t column)
{
	const struct uses *uses = context;

	(void)column;
	if (slice_is(root, "ledger"))
		user_rules_want(uses->r, uses->line, uses->actions, "an action", name);
}

void user_rules_check(const struct reader *r, const struct user_rules *rules, const char *const *actions)
{
	struct uses uses = {r, actions, 0};

	for (size_t i = 0; i < rules->n; i++) {
		uses.line = rules->items[i].line;
		expression_each_use(rules->items[i].expression, use_of_rule, &uses);
	}
}
