/*
 * A definition of kind batch from its text. The tree is scratch; what the definition keeps is copied. First every field
 * by itself, then what must hold between them and the actions.
 */
#include "model/batch_definition.h"

#include "base/excerpt.h"
#include "model/action_parse.h"
#include "model/definition_text.h"
#include "model/head.h"

struct batch_draft {
	struct reader r; /* its arena is the definition's */
	struct batch_definition *definition;
	struct action_list actions;
	const struct json_node *root; /* an object */
};

static const struct json_node *field(const struct batch_draft *d, const char *name)
{
	return json_node_member(d->root, name);
}

/* ---- the fields ---- */

/* An action that the engine calls by itself. NULL: there is none, or that is reported. */
static const struct action *read_called(const struct batch_draft *d, const struct json_node *node, const char *what)
{
	const struct action *action = action_reference(&d->r, node, what, &d->actions);

	return action && !action_refuse_uncalled(&d->r, node, what, action) ? action : NULL;
}

static void read_after_effects(const struct batch_draft *d)
{
	static const char what[] = "done_after_effect";
	struct batch_definition *definition = d->definition;
	const struct json_node *node = field(d, what);

	if (!reader_array(&d->r, node, what, 0, STEP_AFTER_EFFECTS_MAX))
		return;
	json_node_for_each(element, node)
	{
		const struct action *action = read_called(d, element, what);

		if (action)
			action_add_once(&d->r, element, what, action, definition->after_effects,
					&definition->after_effects_n);
	}
}

static void read_actions(struct batch_draft *d)
{
	struct batch_definition *definition = d->definition;

	actions_parse(&d->r, field(d, "actions"), &d->actions);
	definition->actions = d->actions.items;
	definition->actions_n = d->actions.n;
	definition->item_action = read_called(d, reader_required(&d->r, d->root, "item_action"), "item_action");
	definition->cleanup_action = read_called(d, field(d, "cleanup_action"), "cleanup_action");
	read_after_effects(d);
}

/* What is wrong is reported where it is read, and the value stays the default. */
static void read_values(const struct batch_draft *d)
{
	struct batch_definition *definition = d->definition;
	const struct reader *r = &d->r;

	definition->concurrency = BATCH_CONCURRENCY_DEFAULT;
	definition->cancel_check_every = 1;
	definition->retry = run_retry_default;
	(void)reader_int(r, field(d, "concurrency"), "concurrency", 1, BATCH_CONCURRENCY_MAX, &definition->concurrency);
	(void)reader_int(r, field(d, "cancel_check_every"), "cancel_check_every", 1, BATCH_CANCEL_CHECK_MAX,
			 &definition->cancel_check_every);
	(void)reader_duration(r, field(d, "timeout"), "timeout", &definition->timeout_ms);
	(void)reader_lease(r, field(d, "lease"), "lease", &definition->lease_ms);
	attempt_read_retry(r, field(d, "retry"), &definition->retry);
	attempt_read_on_unknown(r, field(d, "on_unknown"), "an item of a batch", &definition->on_unknown);
	attempt_read_on_5xx(r, field(d, "on_5xx"), &definition->unknown_on_5xx);
}

/* ---- what must hold between them ---- */

static void check_item(const struct batch_draft *d)
{
	const struct json_node *on_unknown = field(d, "on_unknown");
	struct batch_definition *definition = d->definition;
	const struct action *item = definition->item_action;

	attempt_settle_on_unknown(&d->r, on_unknown, item, &definition->on_unknown);
	attempt_check_timeout(&d->r, field(d, "timeout"), item);
}

/* Whoever wrote it believes that its keys are voided. */
static void check_voids(const struct batch_draft *d)
{
	const struct batch_definition *definition = d->definition;

	for (size_t i = 0; i < definition->actions_n; i++) {
		const struct action *action = &definition->actions[i];

		if (action->void_action && action != definition->item_action)
			reader_warn(&d->r, action->line, "void",
				    "action %s: its void is never called: only the keys of items are voided, and "
				    "item_action is %s",
				    excerpt_of(slice_str(action->name)).text, definition->item_action->name);
	}
}

/* What else it is used for; NULL: nothing. There a 404 is no success: a void that is answered so has voided nothing. */
static const char *other_use(const struct batch_definition *definition, const struct action *cleanup)
{
	for (size_t i = 0; i < definition->after_effects_n; i++)
		if (definition->after_effects[i] == cleanup)
			return "a done_after_effect";
	for (size_t i = 0; i < definition->actions_n; i++) {
		if (definition->actions[i].void_action == cleanup)
			return "a void";
		if (definition->actions[i].probe == cleanup)
			return "a probe";
	}
	return NULL;
}

static void check_cleanup(struct batch_draft *d)
{
	const struct batch_definition *definition = d->definition;
	const struct json_node *node = field(d, "cleanup_action");
	const struct action *cleanup = definition->cleanup_action;
	const char *use = cleanup && cleanup->kind == ACTION_HTTP ? other_use(definition, cleanup) : NULL;

	if (!cleanup)
		return;
	d->actions.items[cleanup - d->actions.items].gone_is_done = true;
	if (cleanup == definition->item_action)
		reader_report(
			&d->r, node->at.line, "value",
			"cleanup_action: %s is the item_action, so that cleaning up would carry out the item again",
			cleanup->name);
	else if (use)
		reader_report(&d->r, node->at.line, "value",
			      "cleanup_action: %s is also %s, where 404 and 410 do not count as done: give each an "
			      "action of its own",
			      cleanup->name, use);
	else
		action_warn_claimed(&d->r, node, "cleanup_action", cleanup);
}

/* ---- the whole ---- */

static void read_batch(struct batch_draft *d)
{
	static const char *const known[] = {
		"workflow",    "kind",  "meta",    "actions", "item_action", "cleanup_action", "done_after_effect",
		"concurrency", "retry", "timeout", "lease",   "on_unknown",  "on_5xx",         "cancel_check_every",
		NULL};

	head_known(&d->r, d->root, known);
	read_actions(d);
	read_values(d);
	check_cleanup(d);
	if (d->definition->item_action) {
		check_item(d);
		check_voids(d);
	}
}

static void read_definition(struct batch_draft *d, struct slice text, struct arena *scratch)
{
	struct batch_definition *definition;
	struct head head;

	d->root = definition_text_read(&d->r, text, scratch);
	d->definition = definition = d->root ? arena_zalloc(d->r.arena, sizeof *definition) : NULL;
	if (!definition || !head_read(&d->r, d->root, text, &head))
		return;
	definition->name = head.name;
	definition->module = head.module;
	definition->file = head.file;
	definition->text = head.text;
	read_batch(d);
}

void batch_definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
			    const struct batch_definition **ret)
{
	struct batch_draft d = {.r = {.findings = findings, .arena = arena, .place.file = file, .kind = "batch"}};
	struct finding **from = findings->last;
	size_t errors = findings->errors;
	struct arena scratch;

	arena_init(&scratch, DEFINITION_SCRATCH_BYTES_MAX);
	read_definition(&d, text, &scratch);
	definition_text_done(&d.r, &scratch, from);
	*ret = findings->errors == errors ? d.definition : NULL;
}
