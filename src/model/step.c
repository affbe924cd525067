/*
 * The steps of a definition. Every field but step_id and step_key may be a map by requester. It is read twice: once per entry as
 * it is written, which reports what is wrong with it a single time, and then once per requester, silently, into that
 * requester's view.
 *
 * Where the status is such a map, the step becomes one for each status in it, each with the views of the requesters who start
 * there. Nobody beyond this file has to know.
 */

#include "base/excerpt.h"
#include "model/attempt.h"
#include "model/draft.h"
#include "model/head.h"

static struct suggestion suggest_status(const struct draft *d, const struct reader *r, struct slice name)
{
	const char *names[WORKFLOW_STATUSES_MAX + 1];

	memcpy(names, d->w->statuses, d->w->statuses_n * sizeof names[0]);
	names[d->w->statuses_n] = NULL;
	return reader_suggest(r, name, names);
}

const char *draft_status(const struct reader *r, const struct json_node *node, const char *what)
{
	const struct draft *d = r->draft;
	const struct status_entry *entry;

	if (!reader_string(r, node, what))
		return NULL;
	entry = index_status(d->index, node->string);
	if (entry)
		return entry->text;
	if (d->w->statuses_n > 0 && r->findings)
		reader_report(r, node->at.line, "reference", "%s \"%s\" is not in status_types%s", what,
			      excerpt_of(node->string).text, suggest_status(d, r, node->string).text);
	return NULL;
}

static void step_read_status(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	*(const char **)ret = draft_status(r, node, field->name);
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
static void read_claim(const struct reader *r, const struct json_node *node, const struct field *field UNUSED,
		       void *ret)
{
	const struct draft *d = r->draft;
	const struct status_entry *into, *revert;
	struct slice into_name, revert_name;
	struct step_view *view = ret;

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

/* A sql action is part of the finish: too late to validate, too early to be an after-effect. */
static bool refuse_sql(const struct reader *r, const struct json_node *node, const char *what, const char *why,
		       const struct action *action)
{
	if (!action || !action_is_inside(action))
		return false;
	reader_report(r, node->at.line, "value", "%s: %s is a sql action, which runs in the unit of the finish; %s",
		      what, action->name, why);
	return true;
}

static void read_action(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct step_view *view = ret;

	view->action = action_reference(r, node, field->name);
}

static void read_validation(const struct reader *r, const struct json_node *node, const struct field *field, void *ret)
{
	struct step_view *view = ret;

	view->validation = action_reference(r, node, field->name);
	(void)refuse_sql(r, node, field->name, "a validation comes before the action", view->validation);
	if (view->validation)
		(void)action_refuse_limited(
			r, node, field->name, view->validation,
			"a validation is not counted: it is the action's slot that the claim takes");
}

static bool refuse_sql_effect(const struct reader *r, const struct json_node *node, const char *what,
			      const struct action *action)
{
	return refuse_sql(r, node, what, "an after-effect comes after the commit", action);
}

static void read_after_effects(const struct reader *r, const struct json_node *node, const struct field *field,
			       void *ret)
{
	struct step_view *view = ret;

	action_read_effects(r, node, field->name, refuse_sql_effect, view->after_effects, &view->after_effects_n);
}

static const char *const on_unknown_names[] = {[UNKNOWN_REVERT] = "revert",
					       [UNKNOWN_RETRY] = "retry",
					       [UNKNOWN_PROBE] = "probe",
					       [UNKNOWN_HOLD] = "hold",
					       NULL};

#define CLAIM_OTHER_NAME "successful_claim_state"

/* clang-format off */
const struct field step_fields[] = {
	[STEP_SUCCESSFUL_STATE] = {"successful_state", FIELD_OWN_AT(struct step_view, successful_state, const char *, step_read_status)},
	[STEP_CLAIM]            = {"claim_state",      FIELD_OWN(read_claim)},
	[STEP_ACTION]           = {"action",           FIELD_OWN(read_action)},
	[STEP_VALIDATION]       = {"validation",       FIELD_OWN(read_validation)},
	[STEP_ON_UNKNOWN]       = {"on_unknown",       FIELD_CHOICE(struct step_view, on_unknown, on_unknown_names)},
	{"success_after_effect", FIELD_OWN(read_after_effects)},
	{"save_as",              FIELD_NAME(struct step_view, save_as)},
	{"entry_lock",           FIELD_DURATION(struct step_view, entry_lock_ms)},
	{"lease",                FIELD_LEASE(struct step_view, lease_ms)},
	{"on_5xx",               FIELD_ON_5XX(struct step_view, unknown_on_5xx)},
	/* From here on none is a map by requester (but the status, which is more than that): these are read by themselves. */
	{"step_id",              FIELD_KNOWN},
	{"step_key",             FIELD_KNOWN},
	{"status",               FIELD_KNOWN},
	{CLAIM_OTHER_NAME,       FIELD_KNOWN},
	{0}};
/* clang-format on */

_Static_assert(sizeof step_fields / sizeof step_fields[0] <= STEP_FIELDS_MAX, "a draft has room for all");

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
static void check_entries(const struct reader *r, const struct json_node *node, const struct field *field)
{
	struct reader named = *r;

	if (node->type != JSON_OBJECT) {
		field_read(r, node, field, &(struct step_view){0});
		return;
	}
	json_node_for_each(entry, node)
	{
		named.place.requester = entry->name.p;
		field_read(&named, entry, field, &(struct step_view){0});
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
		d->steps[i].status = status ? draft_status(&r, status, "status") : NULL;
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

		const char *text = draft_status(&r, entry, "status");

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
	source->label = reader_label(json_node_member(node, "step_key"), i, d->scratch);
	d->steps[i].line = node->at.line;

	struct reader r = draft_step_reader(d, i);

	if (!reader_object(&r, node, "a step"))
		return 1;
	read_identity(d, i, node);
	fields_check(&r, node, step_fields, FIELDS_HERE, field_refuse);
	for (size_t f = 0; step_fields[f].kind != FIELD_IS_KNOWN; f++) {
		source->fields[f] = f == STEP_CLAIM ? claim_field(&r, node)
						    : json_node_member(node, step_fields[f].name);
		if (!source->fields[f])
			continue;
		requesters_add(&d->requesters, &r, source->fields[f]);
		check_entries(&r, source->fields[f], &step_fields[f]);
	}
	(void)reader_required(&r, node, "successful_state");
	return read_statuses_of(d, i);
}

const struct json_node *draft_value(const struct draft *d, size_t i, size_t field, size_t view)
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
		for (size_t f = 0; step_fields[f].kind != FIELD_IS_KNOWN; f++)
			field_read(&silent, draft_value(d, i, f, v), &step_fields[f], &views[v]);
		views[v].start = start_of(d, i, v);
		views[v].allowed = draft_value(d, i, STEP_SUCCESSFUL_STATE, v) && !lacks_action(d, i, v);
		if (!draft_value(d, i, STEP_ON_UNKNOWN, v))
			views[v].on_unknown = default_on_unknown(&views[v]);
	}
	d->steps[i].views = views;
	return true;
}
