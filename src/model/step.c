/*
 * The steps of a definition. Every field but step_id and step_key may be a map by requester. It is read twice: once per entry as
 * it is written, which reports what is wrong with it a single time, and then once per requester, silently, into that
 * requester's view.
 *
 * Where the status is such a map, the step becomes one for each status in it, each with the views of the requesters who start
 * there. Nobody behind this file has to know.
 */
#include <stdio.h>

#include "base/excerpt.h"
#include "model/attempt.h"
#include "model/draft.h"
#include "model/text.h"

typedef void read_fn(const struct draft *d, const struct reader *r, const struct json_node *node,
		     struct step_view *view);

static struct suggestion suggest_status(const struct draft *d, const struct reader *r, struct slice name)
{
	const char *names[WORKFLOW_STATUSES_MAX + 1];

	memcpy(names, d->w->statuses, d->w->statuses_n * sizeof names[0]);
	names[d->w->statuses_n] = NULL;
	return reader_suggest(r, name, names);
}

const char *draft_status(const struct draft *d, const struct reader *r, const struct json_node *node, const char *what)
{
	if (!reader_string(r, node, what))
		return NULL;

	const struct status_entry *entry = index_status(d->index, node->string);

	if (entry)
		return entry->text;
	if (d->w->statuses_n > 0 && r->findings)
		reader_report(r, node->at.line, "reference", "%s \"%s\" is not in status_types%s", what,
			      excerpt_of(node->string).text, suggest_status(d, r, node->string).text);
	return NULL;
}

static void read_successful_state(const struct draft *d, const struct reader *r, const struct json_node *node,
				  struct step_view *view)
{
	view->successful_state = draft_status(d, r, node, "successful_state");
}

static bool is_text(const struct json_node *node)
{
	return node->type == JSON_STRING && node->string.n > 0;
}

enum claim_form claim_form(const struct json_node *node, struct slice *ret_into, struct slice *ret_revert)
{
	if (!node)
		return CLAIM_ABSENT;
	if (node->type == JSON_NULL)
		return CLAIM_NULL;
	if (node->type != JSON_ARRAY || node->count != 2 || !is_text(node->first) || !is_text(node->first->next))
		return CLAIM_MALFORMED;
	*ret_into = node->first->string;
	*ret_revert = node->first->next->string;
	return CLAIM_PAIR;
}

/* Says nothing: what is wrong with a claim is what the rules are about. */
static void read_claim(const struct draft *d, const struct reader *r, const struct json_node *node,
		       struct step_view *view)
{
	const struct status_entry *into, *revert;
	struct slice into_name, revert_name;

	(void)r;
	if (claim_form(node, &into_name, &revert_name) != CLAIM_PAIR)
		return;
	into = index_status(d->index, into_name);
	revert = index_status(d->index, revert_name);
	if (!into || !revert)
		return;
	view->claim_into = into->text;
	view->revert_to = revert->text;
	view->claim_line = node->at.line;
}

static void read_action(const struct draft *d, const struct reader *r, const struct json_node *node,
			struct step_view *view)
{
	view->action = action_reference(r, node, "action", &d->actions);
}

/* A sql action is part of the finish: too late to validate, too early to be an after-effect. */
static bool refuse_sql(const struct reader *r, const struct json_node *node, const struct action *action,
		       const char *what, const char *why)
{
	if (!action || action->kind != ACTION_SQL)
		return false;
	reader_report(r, node->at.line, "value", "%s: %s is a sql action, which runs in the unit of the finish; %s",
		      what, action->name, why);
	return true;
}

static void read_validation(const struct draft *d, const struct reader *r, const struct json_node *node,
			    struct step_view *view)
{
	view->validation = action_reference(r, node, "validation", &d->actions);
	(void)refuse_sql(r, node, view->validation, "validation", "a validation comes before the action");
}

static void read_after_effects(const struct draft *d, const struct reader *r, const struct json_node *node,
			       struct step_view *view)
{
	static const char what[] = "success_after_effect";

	if (!reader_array(r, node, what, 0, STEP_AFTER_EFFECTS_MAX))
		return;
	json_node_for_each(element, node)
	{
		const struct action *action = action_reference(r, element, what, &d->actions);

		if (action && !refuse_sql(r, element, action, what, "an after-effect comes behind the commit"))
			action_add_once(r, element, what, action, view->after_effects, &view->after_effects_n);
	}
}

static void read_entry_lock(const struct draft *d, const struct reader *r, const struct json_node *node,
			    struct step_view *view)
{
	(void)d;
	(void)reader_duration(r, node, "entry_lock", &view->entry_lock_ms); /* reported there */
}

static void read_lease(const struct draft *d, const struct reader *r, const struct json_node *node,
		       struct step_view *view)
{
	(void)d;
	(void)reader_lease(r, node, "lease", &view->lease_ms); /* reported there */
}

static void read_on_unknown(const struct draft *d, const struct reader *r, const struct json_node *node,
			    struct step_view *view)
{
	static const char *const names[] = {"revert", "retry", "probe", "hold", NULL};
	int choice;

	(void)d;
	if (reader_choice(r, node, "on_unknown", names, &choice))
		view->on_unknown = (enum on_unknown)choice;
}

static void read_on_5xx(const struct draft *d, const struct reader *r, const struct json_node *node,
			struct step_view *view)
{
	(void)d;
	attempt_read_on_5xx(r, node, &view->unknown_on_5xx);
}

/* clang-format off */
static const struct {
	const char *name;
	read_fn *read;
} fields[STEP_FIELDS] = {
	[STEP_SUCCESSFUL_STATE] = {"successful_state",     read_successful_state},
	[STEP_CLAIM]            = {"claim_state",          read_claim},
	[STEP_ACTION]           = {"action",               read_action},
	[STEP_VALIDATION]       = {"validation",           read_validation},
	[STEP_AFTER_EFFECT]     = {"success_after_effect", read_after_effects},
	[STEP_ENTRY_LOCK]       = {"entry_lock",           read_entry_lock},
	[STEP_LEASE]            = {"lease",                read_lease},
	[STEP_ON_UNKNOWN]       = {"on_unknown",           read_on_unknown},
	[STEP_ON_5XX]           = {"on_5xx",               read_on_5xx},
};
/* clang-format on */

#define CLAIM_OTHER_NAME "successful_claim_state"

static void check_known(const struct reader *r, const struct json_node *node)
{
	const char *known[STEP_FIELDS + 5] = {"step_id", "step_key", "status", CLAIM_OTHER_NAME};

	for (size_t i = 0; i < STEP_FIELDS; i++)
		known[4 + i] = fields[i].name;
	reader_known(r, node, known);
}

/* One field under two names; both together would hide one of them. */
static const struct json_node *claim_field(const struct reader *r, const struct json_node *node)
{
	const struct json_node *claim = json_node_member(node, "claim_state");
	const struct json_node *other = json_node_member(node, CLAIM_OTHER_NAME);

	if (claim && other)
		reader_report(r, other->name_at.line, "duplicate",
			      "claim_state and successful_claim_state are one field; write one of them");
	return claim ? claim : other;
}

/* Every entry of the field as it is written, with the name that it is written for. */
static void check_entries(const struct draft *d, const struct reader *r, const struct json_node *field, read_fn *read)
{
	struct reader named = *r;

	if (field->type != JSON_OBJECT) {
		read(d, r, field, &(struct step_view){0});
		return;
	}
	json_node_for_each(entry, field)
	{
		named.place.requester = entry->name.p;
		read(d, &named, entry, &(struct step_view){0});
	}
}

struct reader draft_step_reader(const struct draft *d, size_t i)
{
	struct reader r = d->r;

	r.place.step = d->sources[i].label;
	return r;
}

static void read_identity(struct draft *d, size_t i, const struct json_node *node)
{
	struct draft_step *source = &d->sources[i];
	struct step *step = &d->steps[i];
	const struct json_node *key = json_node_member(node, "step_key");

	source->label = key && key->type == JSON_STRING && name_is_valid(key->string)
				? key->string.p
				: text_printf(d->scratch, "#%zu", i + 1);

	struct reader r = draft_step_reader(d, i);

	(void)reader_int(&r, reader_required(&r, node, "step_id"), "step_id", INT64_MIN, INT64_MAX, &step->step_id);
	(void)reader_name(&r, reader_required(&r, node, "step_key"), "step_key", &step->step_key);
	source->status = reader_required(&r, node, "status");
}

/* ---- the status, which is one for all or a map ---- */

static bool has_status(const struct draft *d, size_t first, size_t n, const char *status)
{
	for (size_t i = first; i < first + n; i++)
		if (d->steps[i].status && strcmp(d->steps[i].status, status) == 0)
			return true;
	return false;
}

/* A claim of somebody who starts nowhere would never be made, and whoever wrote it believes that it is. */
static void check_claims_start(const struct draft *d, size_t i)
{
	const struct draft_step *source = &d->sources[i];
	const struct json_node *claim = source->fields[STEP_CLAIM];
	struct reader r = draft_step_reader(d, i);

	if (!claim || claim->type != JSON_OBJECT)
		return;
	json_node_for_each(entry, claim)
	{
		r.place.requester = entry->name.p;
		if (entry->type != JSON_NULL && !requester_value(source->status, entry->name))
			reader_report(
				&r, entry->at.line, "claim",
				"a claim is written for a requester who has no status and so may not fire the step");
	}
}

/* How many steps it is: each of them is a copy of step i, but for its status. */
static size_t read_statuses_of(struct draft *d, size_t i)
{
	const struct json_node *status = d->sources[i].status;
	struct reader r = draft_step_reader(d, i);
	size_t n = 0;

	if (!status || status->type != JSON_OBJECT) {
		d->steps[i].status = status ? draft_status(d, &r, status, "status") : NULL;
		return 1;
	}
	requesters_add(&d->requesters, &r, status);
	if (status->count == 0)
		reader_report(&r, status->at.line, "value",
			      "status: a map that names nobody; nobody could fire the step");
	check_claims_start(d, i);
	json_node_for_each(entry, status)
	{
		r.place.requester = entry->name.p;

		const char *text = draft_status(d, &r, entry, "status");

		if (!text || has_status(d, i, n, text))
			continue;
		d->sources[i + n] = d->sources[i];
		d->steps[i + n] = d->steps[i];
		d->steps[i + n++].status = text;
	}
	return n ? n : 1;
}

size_t draft_step_statuses_max(const struct json_node *node)
{
	const struct json_node *status = node->type == JSON_OBJECT ? json_node_member(node, "status") : NULL;

	return status && status->type == JSON_OBJECT && status->count ? status->count : 1;
}

static enum view_start start_of(const struct draft *d, size_t i, size_t view)
{
	const struct json_node *status = d->sources[i].status, *value;
	struct slice anyone_else = {NULL, 0};

	if (!status || status->type != JSON_OBJECT)
		return STARTS_HERE;
	value = requester_value(status, view < d->requesters.n ? d->requesters.names[view] : anyone_else);
	if (!value || value->type != JSON_STRING)
		return STARTS_NOWHERE;
	return d->steps[i].status && slice_is(value->string, d->steps[i].status) ? STARTS_HERE : STARTS_ELSEWHERE;
}

size_t draft_step_read(struct draft *d, size_t i, const struct json_node *node)
{
	struct draft_step *source = &d->sources[i];

	source->node = node;
	source->label = text_printf(d->scratch, "#%zu", i + 1);
	d->steps[i].line = node->at.line;

	struct reader r = draft_step_reader(d, i);

	if (!reader_object(&r, node, "a step"))
		return 1;
	read_identity(d, i, node);
	r = draft_step_reader(d, i);
	check_known(&r, node);
	for (size_t f = 0; f < STEP_FIELDS; f++) {
		source->fields[f] = f == STEP_CLAIM ? claim_field(&r, node) : json_node_member(node, fields[f].name);
		if (!source->fields[f])
			continue;
		requesters_add(&d->requesters, &r, source->fields[f]);
		check_entries(d, &r, source->fields[f], fields[f].read);
	}
	(void)reader_required(&r, node, "successful_state");
	return read_statuses_of(d, i);
}

const struct json_node *draft_value(const struct draft *d, size_t i, enum step_field field, size_t view)
{
	struct slice anyone_else = {NULL, 0};

	if (start_of(d, i, view) != STARTS_HERE)
		return NULL;
	return requester_value(d->sources[i].fields[field],
			       view < d->requesters.n ? d->requesters.names[view] : anyone_else);
}

/*
 * What happens after an unknown outcome where on_unknown is not written:
 *
 *                            with a claim     without one
 *   keyed, idempotent        revert           retry
 *   claimed, transactional   revert           hold
 *
 * The contract has two defaults for a keyed or idempotent action under a claim. Revert wins: the seed's promise is
 * that a claim ends within a known time whatever happened, and it costs nothing, because the key of the effect does
 * not change after an unknown outcome, so whoever fires the step again repeats the same effect.
 * Hold without a claim has no status to park in: the caller is told OUTCOME_UNKNOWN, and nothing is repeated.
 */
static enum on_unknown default_on_unknown(const struct step_view *view)
{
	const struct action *action = view->action ? view->action : view->validation;

	if (view->claim_into)
		return UNKNOWN_REVERT;
	if (!action || action->effect == EFFECT_KEYED || action->effect == EFFECT_IDEMPOTENT)
		return UNKNOWN_RETRY;
	return UNKNOWN_HOLD;
}

/* Others have an action for this step, and this requester has none. */
static bool lacks_action(const struct draft *d, size_t i, size_t view)
{
	const struct json_node *field = d->sources[i].fields[STEP_ACTION];

	return field && field->type == JSON_OBJECT && field->count > 0 && !draft_value(d, i, STEP_ACTION, view);
}

bool draft_step_views(struct draft *d, size_t i)
{
	size_t n = d->requesters.n + 1;
	struct step_view *views = arena_zalloc(d->r.arena, n * sizeof *views);
	struct reader silent = d->r;

	if (!views)
		return false;
	silent.findings = NULL;
	for (size_t v = 0; v < n; v++) {
		for (size_t f = 0; f < STEP_FIELDS; f++) {
			const struct json_node *value = draft_value(d, i, (enum step_field)f, v);

			if (value)
				fields[f].read(d, &silent, value, &views[v]);
		}
		views[v].start = start_of(d, i, v);
		views[v].allowed = draft_value(d, i, STEP_SUCCESSFUL_STATE, v) && !lacks_action(d, i, v);
		if (!draft_value(d, i, STEP_ON_UNKNOWN, v))
			views[v].on_unknown = default_on_unknown(&views[v]);
	}
	d->steps[i].views = views;
	return true;
}
