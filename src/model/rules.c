/*
 * The rules of claim_state, over every step as every requester sees it (the contract numbers them):
 *
 *   1  a claim is an array of two non-empty strings, [claim_into, revert_to]
 *   2  both are in status_types
 *   3  they differ                              otherwise releasing would be no change
 *   4  claim_into is not the step's status      the second caller would pass too
 *   5  claim_into is not the successful_state   the finish would be no change
 *   6  one claim_into has one revert_to         a janitor sees only the status, and must know where it goes back
 *   7  effect "claimed" needs a claim           unless that requester's claim is null: serialised elsewhere
 *   8  claim_into is nobody's status, successful_state or initial_status     a claim is left by its holder alone
 *
 * A definition with requesters says the same thing for many of them at once. So what is wrong with a step is first
 * gathered as remarks, and equal ones become one finding that lists the requesters.
 *
 * Nothing here is worse than linear in the number of views, but for the remarks of a single step.
 */
#include <stdio.h>

#include "base/excerpt.h"
#include "model/draft.h"

#define REMARK_BYTES 512

struct remark {
	const char *rule;
	size_t line;
	const char *text;
	bool views[WORKFLOW_REQUESTERS_MAX + 1];
	struct remark *next;
};

/* Where a status is used, as far as a rule has to ask: by one step, and by one more that is not the same. */
struct uses {
	const struct step *source[2];
	const struct step *target[2];
};

struct rules {
	struct draft *d;
	struct uses *uses; /* one per entry of the index */
	size_t step, view; /* what is looked at now */
	struct remark *remarks;
};

static void remark(struct rules *x, const char *rule, size_t line, const char *format, ...) HX_PRINTF(4, 5);

static struct remark **find_remark(struct rules *x, const char *rule, size_t line, const char *text)
{
	struct remark **at = &x->remarks;

	while (*at && !((*at)->rule == rule && (*at)->line == line && strcmp((*at)->text, text) == 0))
		at = &(*at)->next;
	return at;
}

static void remark(struct rules *x, const char *rule, size_t line, const char *format, ...)
{
	char text[REMARK_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);

	struct remark **at = find_remark(x, rule, line, text);

	if (!*at) {
		struct remark *new = arena_zalloc(x->d->scratch, sizeof *new);

		if (!new)
			return; /* workflow_parse() reports the arena */
		new->rule = rule;
		new->line = line;
		new->text = arena_copy(x->d->scratch, slice_str(text)).p;
		if (!new->text)
			return;
		*at = new;
	}
	(*at)->views[x->view] = true;
}

static void report_remarks(struct rules *x)
{
	struct reader r = draft_step_reader(x->d, x->step);
	char requesters[REQUESTER_LIST_BYTES];

	for (const struct remark *m = x->remarks; m; m = m->next) {
		requester_list(x->d->w, m->views, requesters);
		r.place.requester = requesters;
		reader_report(&r, m->line, m->rule, "%s", m->text);
	}
	x->remarks = NULL;
}

/* ---- rules over one claim ---- */

static void check_known_statuses(struct rules *x, const struct json_node *claim)
{
	static const char *const what[] = {"claim_into", "revert_to"};
	const struct json_node *node = claim->first;

	for (size_t i = 0; i < 2; i++, node = node->next)
		if (x->d->w->statuses_n > 0 && !index_status(x->d->index, node->string))
			remark(x, "rule 2", node->at.line, "%s \"%s\" is not in status_types", what[i],
			       excerpt_of(node->string).text);
}

static void check_differences(struct rules *x, const struct json_node *claim, struct slice into, struct slice revert)
{
	const struct json_node *state = draft_value(x->d, x->step, STEP_SUCCESSFUL_STATE, x->view);
	const char *status = x->d->steps[x->step].status;

	if (slice_eq(into, revert))
		remark(x, "rule 3", claim->at.line, "claim_into and revert_to are both \"%s\"", excerpt_of(into).text);
	if (status && slice_is(into, status))
		remark(x, "rule 4", claim->at.line,
		       "claim_into \"%s\" is the step's own status, so a second caller would pass too",
		       excerpt_of(into).text);
	if (state && state->type == JSON_STRING && slice_eq(into, state->string))
		remark(x, "rule 5", claim->at.line,
		       "claim_into \"%s\" is the successful_state, so the finish would change nothing",
		       excerpt_of(into).text);
}

/* The first use of a claim_into in the text decides; every other one that reverts elsewhere is reported. */
static void check_one_revert(struct rules *x, const struct step_view *view)
{
	struct status_entry *entry = index_status(x->d->index, slice_str(view->claim_into));

	if (!entry->revert_to) {
		entry->revert_to = view->revert_to;
		entry->claim_step = &x->d->steps[x->step];
		entry->claim_view = x->view;
		return;
	}
	if (strcmp(entry->revert_to, view->revert_to) == 0)
		return;

	size_t first = (size_t)(entry->claim_step - x->d->steps);

	remark(x, "rule 6", view->claim_line,
	       "claim_into \"%s\" reverts to \"%s\" here and to \"%s\" in step %s, requester %s, line %zu; "
	       "a janitor could not tell which",
	       excerpt_of(entry->name).text, view->revert_to, entry->revert_to, x->d->sources[first].label,
	       workflow_view_name(x->d->w, entry->claim_view), entry->claim_step->views[entry->claim_view].claim_line);
}

static const struct step *other_than(const struct step *const pair[2], const struct step *step)
{
	return pair[0] != step ? pair[0] : pair[1];
}

/* A use by this very step, or for this very requester, is rule 4 or 5 and not said again. */
static void check_claim_alone(struct rules *x, const struct step_view *view)
{
	const struct draft *d = x->d;
	const struct step *step = &d->steps[x->step];
	const struct uses *uses = &x->uses[index_status(d->index, slice_str(view->claim_into)) - d->index->statuses];
	const struct step *source = other_than(uses->source, step), *target = other_than(uses->target, step);

	if (!target && uses->target[0] == step &&
	    !(view->successful_state && strcmp(view->successful_state, view->claim_into) == 0))
		target = step;
	if (source)
		remark(x, "rule 8", view->claim_line, "claim_into \"%s\" is the status of step %s, line %zu",
		       view->claim_into, d->sources[source - d->steps].label, source->line);
	if (target)
		remark(x, "rule 8", view->claim_line, "claim_into \"%s\" is a successful_state of step %s, line %zu",
		       view->claim_into, d->sources[target - d->steps].label, target->line);
	if (d->w->initial_status && strcmp(view->claim_into, d->w->initial_status) == 0)
		remark(x, "rule 8", view->claim_line, "claim_into \"%s\" is the initial_status", view->claim_into);
}

static void check_is_for_someone(struct rules *x, const struct json_node *claim)
{
	const struct draft *d = x->d;
	const struct json_node *const *fields = d->sources[x->step].fields;

	if (x->view == d->requesters.n || draft_value(d, x->step, STEP_SUCCESSFUL_STATE, x->view))
		return;
	if (requester_is_named(fields[STEP_CLAIM], d->requesters.names[x->view]))
		remark(x, "claim", claim->at.line,
		       "a claim is written for a requester who has no successful_state and so may not fire the step");
}

static void check_claim(struct rules *x, const struct json_node *claim, struct slice into, struct slice revert)
{
	const struct step_view *view = &x->d->steps[x->step].views[x->view];

	check_known_statuses(x, claim);
	check_differences(x, claim, into, revert);
	check_is_for_someone(x, claim);
	if (view->claim_into) {
		check_one_revert(x, view);
		check_claim_alone(x, view);
	}
}

/* ---- rules over the rest of a view ---- */

static void check_effect(struct rules *x, const struct action *action, enum step_field field)
{
	if (action && action->effect == EFFECT_CLAIMED)
		remark(x, "rule 7", draft_value(x->d, x->step, field, x->view)->at.line,
		       "action %s has effect claimed and there is no claim; declare a claim_state, or write it as null "
		       "where it is serialised elsewhere",
		       excerpt_of(slice_str(action->name)).text);
}

static void check_on_unknown(struct rules *x, enum claim_form form)
{
	const struct step_view *view = &x->d->steps[x->step].views[x->view];
	const struct json_node *node = draft_value(x->d, x->step, STEP_ON_UNKNOWN, x->view);

	if (!node)
		return;
	if (view->on_unknown == UNKNOWN_REVERT && (form == CLAIM_ABSENT || form == CLAIM_NULL) &&
	    node->type == JSON_STRING && slice_is(node->string, "revert"))
		remark(x, "on_unknown", node->at.line, "revert needs a claim: without one there is nothing to revert");
	if (view->on_unknown != UNKNOWN_PROBE)
		return;
	if (!view->action)
		remark(x, "on_unknown", node->at.line, "probe needs an action to ask about");
	else if (!view->action->probe)
		remark(x, "on_unknown", node->at.line, "probe needs a probe, and action %s declares none",
		       excerpt_of(slice_str(view->action->name)).text);
}

/* A slot is the claim's, and a tick is counted with it (flow/call_limit.h). */
static void check_limits(struct rules *x, enum claim_form form)
{
	const struct step_view *view = &x->d->steps[x->step].views[x->view];
	const struct action *action = view->action;
	size_t line;

	if (!action || !limits_are_set(&action->limits))
		return;
	line = draft_value(x->d, x->step, STEP_ACTION, x->view)->at.line;
	if (form == CLAIM_ABSENT || form == CLAIM_NULL)
		remark(x, "limits", line,
		       "action %s has limits, which are counted with a claim, and there is none; declare a claim_state",
		       excerpt_of(slice_str(action->name)).text);
	if (action->limits.rate.max && view->on_unknown == UNKNOWN_RETRY)
		remark(x, "limits", line,
		       "action %s has a rate, and on_unknown retry calls it again within one claim, which nobody counts; "
		       "say revert, probe or hold",
		       excerpt_of(slice_str(action->name)).text);
}

static void check_view(struct rules *x)
{
	const struct step_view *view = &x->d->steps[x->step].views[x->view];
	const struct json_node *claim = draft_value(x->d, x->step, STEP_CLAIM, x->view);
	struct slice into, revert;
	enum claim_form form = claim_form(claim, &into, &revert);

	if (form == CLAIM_MALFORMED)
		remark(x, "rule 1", claim->at.line,
		       "a claim is an array of two non-empty strings, [claim_into, revert_to]");
	if (form == CLAIM_PAIR)
		check_claim(x, claim, into, revert);
	if (!view->allowed)
		return;
	if (form == CLAIM_ABSENT) {
		check_effect(x, view->action, STEP_ACTION);
		check_effect(x, view->validation, STEP_VALIDATION);
	}
	check_on_unknown(x, form);
	check_limits(x, form);
}

/* ---- all steps ---- */

static void note_use(const struct step *pair[2], const struct step *step)
{
	if (!pair[0])
		pair[0] = step;
	else if (pair[0] != step && !pair[1])
		pair[1] = step;
}

static void note_uses(struct rules *x)
{
	struct draft *d = x->d;

	for (size_t i = 0; i < d->w->steps_n; i++) {
		const struct step *step = &d->steps[i];
		struct status_entry *entry = step->status ? index_status(d->index, slice_str(step->status)) : NULL;

		if (entry) {
			note_use(x->uses[entry - d->index->statuses].source, step);
			entry->source = entry->source ? entry->source : step;
		}
		for (size_t v = 0; v <= d->requesters.n; v++) {
			const char *state = step->views[v].successful_state;

			if (!state)
				continue;
			entry = index_status(d->index, slice_str(state));
			if (!entry)
				continue;
			note_use(x->uses[entry - d->index->statuses].target, step);
			entry->target = entry->target ? entry->target : step;
		}
	}
}

void draft_check_rules(struct draft *d)
{
	struct rules x = {.d = d};

	x.uses = arena_zalloc(d->scratch, d->index->statuses_n * sizeof *x.uses);
	if (!x.uses)
		return;
	note_uses(&x);
	for (x.step = 0; x.step < d->w->steps_n; x.step++) {
		for (x.view = 0; x.view <= d->requesters.n; x.view++)
			check_view(&x);
		report_remarks(&x);
	}
}
