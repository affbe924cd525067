/*
 * A definition of kind batch from its text. The tree is scratch; what the definition keeps is copied. First every field
 * by itself, then what must hold between them and the actions.
 */
#include "model/batch_definition.h"

#include "base/excerpt.h"
#include "model/head.h"

struct batch_draft {
	const struct reader *r; /* its arena is the definition's */
	struct batch_definition *definition;
	struct action *actions;       /* those of the definition */
	const struct json_node *root; /* an object */
};

static const struct json_node *batch_definition_field_of(const struct batch_draft *d, const char *name)
{
	return json_node_member(d->root, name);
}

/* ---- the fields ---- */

/* An action that the engine calls by itself. */
static void read_called(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	const struct action *action = action_reference(r, node, field->name);

	if (action && !action_refuse_uncalled(r, node, field->name, action))
		*(const struct action **)ret = action;
}

static void read_after_effects(const struct reader *r, const struct json_node *node, const struct field *field,
			       void *ret)
{
	struct batch_definition *definition = ret;

	action_read_effects(r, node, field->name, action_refuse_uncalled, definition->after_effects,
			    &definition->after_effects_n);
}

#define FIELD_CALLED(member) FIELD_OWN_AT(struct batch_definition, member, const struct action *, read_called)

/* clang-format off */
const struct field batch_fields[] = {
	{"workflow",           FIELD_KNOWN},
	{"kind",               FIELD_KNOWN},
	{"meta",               FIELD_KNOWN},
	{"actions",            FIELD_KNOWN},
	{"rules",              FIELD_KNOWN}, /* of head.c */
	{"world",              FIELD_KNOWN},
	{"item_action",        FIELD_CALLED(item_action), .required = true},
	{"cleanup_action",     FIELD_CALLED(cleanup_action)},
	{"done_after_effect",  FIELD_OWN(read_after_effects)},
	{"concurrency",        FIELD_INT(struct batch_definition, concurrency, 1, BATCH_CONCURRENCY_MAX)},
	{"retry",              FIELD_RETRY(struct batch_definition, retry)},
	{"timeout",            FIELD_DURATION(struct batch_definition, timeout_ms)},
	{"lease",              FIELD_LEASE(struct batch_definition, lease_ms)},
	{"on_unknown",         FIELD_ON_UNKNOWN(struct batch_definition, on_unknown)},
	{"on_5xx",             FIELD_ON_5XX(struct batch_definition, unknown_on_5xx)},
	{"attributes",         FIELD_ATTRIBUTES(struct batch_definition, WHERE_BATCH, attribute_data_roots)},
	{"cancel_check_every", FIELD_INT(struct batch_definition, cancel_check_every, 1, BATCH_CANCEL_CHECK_MAX)},
	{0}};
/* clang-format on */

/* ---- what must hold between them ---- */

/* Whoever wrote it believes that its keys are voided. */
static void check_voids(const struct batch_draft *d)
{
	const struct batch_definition *definition = d->definition;

	for (size_t i = 0; i < definition->actions_n; i++) {
		const struct action *action = &definition->actions[i];

		if (action->void_action && action != definition->item_action)
			reader_warn(d->r, action->line, "void",
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

static void check_cleanup(const struct batch_draft *d)
{
	const struct batch_definition *definition = d->definition;
	const struct json_node *node = batch_definition_field_of(d, "cleanup_action");
	const struct action *cleanup = definition->cleanup_action;
	const char *use = cleanup && cleanup->kind == ACTION_HTTP ? other_use(definition, cleanup) : NULL;

	if (!cleanup)
		return;
	d->actions[cleanup - d->actions].gone_is_done = true;
	if (cleanup == definition->item_action)
		reader_report(
			d->r, node->at.line, "value",
			"cleanup_action: %s is the item_action, so that cleaning up would carry out the item again",
			cleanup->name);
	else if (use)
		reader_report(d->r, node->at.line, "value",
			      "cleanup_action: %s is also %s, where 404 and 410 do not count as done: give each an "
			      "action of its own",
			      cleanup->name, use);
	else
		action_warn_claimed(d->r, node, "cleanup_action", cleanup);
}

/* ---- the whole ---- */

static void read_batch(const struct reader *r, const struct json_node *root, const struct head *head,
		       struct arena *scratch UNUSED, const void **ret_definition)
{
	struct batch_definition *definition = arena_alloc(r->arena, sizeof *definition);
	const struct batch_draft d = {r, definition, head->actions.items, root};

	if (!definition)
		return;
	*definition = (struct batch_definition){HEAD_OF(head), .concurrency = BATCH_CONCURRENCY_DEFAULT,
						.cancel_check_every = 1, .retry = run_retry_default};
	fields_take(r, root, batch_fields, FIELDS_HERE, definition);
	check_cleanup(&d);
	if (definition->item_action) {
		attempt_settle_on_unknown(r, batch_definition_field_of(&d, "on_unknown"), definition->item_action,
					  &definition->on_unknown);
		attempt_check_timeout(r, batch_definition_field_of(&d, "timeout"), definition->item_action);
		check_voids(&d);
	}
	*ret_definition = definition;
}

void batch_definition_parse(const char *file, struct slice text, struct arena *arena, struct findings *findings,
			    const struct batch_definition **ret)
{
	*ret = head_read("batch", batch_fields, file, text, arena, findings, read_batch);
}
