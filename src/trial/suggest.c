/*
 * Suggestions that were tried: of the changes that might keep a rule, each is made in the definition as it was read, and everything is
 * explored again with it. Only what came out clean is told. What was changed is put back. All of them together have as many edges as the
 * first exploration was allowed: each its share of what those before it have left.
 *
 * They are tried, and told, in the order in which one would want them: what changes one word before what changes two; of these what costs
 * nobody anything, before what the service has to keep, before what a person has to look at. Who was seen to the end comes before who was not.
 */
#include <stdio.h>

#include "trial/parts.h"

/* Where a definition can be changed; NULL: not there. */
struct places {
	enum on_unknown *on_unknown[WORKFLOW_REQUESTERS_MAX + 1];
	bool *unknown_on_5xx[WORKFLOW_REQUESTERS_MAX + 1];
	size_t n;
	enum action_effect *effect;
};

struct change {
	const char *words, *provided;
	bool of_action; /* the words are about the action, and not the step */
	int on_unknown; /* -1: as it is */
	int effect;     /* the same */
	bool on_5xx;
};

static void find_places(const struct trial_caller *c, struct places *places)
{
	const struct workflow *w = c->of->entity;

	*places = (struct places){.effect = &((struct action *)(uintptr_t)c->service->action)->effect};
	if (c->run_step) {
		struct run_step *step = (struct run_step *)(uintptr_t)c->run_step;

		places->on_unknown[0] = &step->on_unknown;
		places->unknown_on_5xx[0] = &step->unknown_on_5xx;
		places->n = 1;
		return;
	}
	if (c->of->batch) {
		struct batch_definition *batch = (struct batch_definition *)(uintptr_t)c->of->batch;

		places->on_unknown[0] = &batch->on_unknown;
		places->unknown_on_5xx[0] = &batch->unknown_on_5xx;
		places->n = 1;
		return;
	}
	for (size_t i = 0; w && i < w->steps_n; i++)
		for (size_t v = 0; v <= w->requesters_n && strcmp(w->steps[i].step_key, c->step) == 0; v++) {
			struct step_view *view = (struct step_view *)(uintptr_t)&w->steps[i].views[v];

			if (view->action != c->service->action || places->n > WORKFLOW_REQUESTERS_MAX)
				continue;
			places->on_unknown[places->n] = &view->on_unknown;
			places->unknown_on_5xx[places->n++] = &view->unknown_on_5xx;
		}
}

static void put_in(const struct change *change, const struct places *places)
{
	for (size_t i = 0; i < places->n; i++) {
		if (change->on_unknown >= 0)
			*places->on_unknown[i] = (enum on_unknown)change->on_unknown;
		if (change->on_5xx)
			*places->unknown_on_5xx[i] = true;
	}
	if (change->effect >= 0)
		*places->effect = (enum action_effect)change->effect;
}

/* What was there, to be put back. */
struct kept {
	enum on_unknown on_unknown[WORKFLOW_REQUESTERS_MAX + 1];
	bool unknown_on_5xx[WORKFLOW_REQUESTERS_MAX + 1];
	enum action_effect effect;
};

static void keep(const struct places *places, struct kept *kept, bool back)
{
	for (size_t i = 0; i < places->n; i++) {
		if (back) {
			*places->on_unknown[i] = kept->on_unknown[i];
			*places->unknown_on_5xx[i] = kept->unknown_on_5xx[i];
		} else {
			kept->on_unknown[i] = *places->on_unknown[i];
			kept->unknown_on_5xx[i] = *places->unknown_on_5xx[i];
		}
	}
	if (back)
		*places->effect = kept->effect;
	else
		kept->effect = *places->effect;
}

/* Would it change anything? */
static bool is_news(const struct change *change, const struct places *places)
{
	bool news = change->effect >= 0 && *places->effect != (enum action_effect)change->effect;

	for (size_t i = 0; i < places->n; i++)
		news |= (change->on_unknown >= 0 && *places->on_unknown[i] != (enum on_unknown)change->on_unknown) ||
			(change->on_5xx && !*places->unknown_on_5xx[i]);
	return news;
}

struct trying {
	trial_again_fn *again;
	void *context;
	uint64_t edges; /* that are left for all */
	unsigned left;  /* changes, with the one at hand */
};

static void try_change(const struct trial *t, const struct trial_caller *c, const struct change *change,
		       struct trying *trying, struct trial_report *report)
{
	struct trial_report *second = arena_zalloc(t->arena, sizeof *second);
	struct places places;
	struct kept kept;
	char where[WORKFLOW_NAME_MAX + 20];
	size_t at;

	ASSERT(second);
	find_places(c, &places);
	if (!is_news(change, &places) || report->suggestions_n == TRIAL_SUGGESTIONS_MAX)
		return;
	if (t->options->progress)
		t->options->progress(t->options->context, change->words, &report->walked);
	keep(&places, &kept, /* back= */ false);
	put_in(change, &places);
	trying->again(trying->context, trying->edges / trying->left, second);
	trying->edges -= second->walked.edges < trying->edges ? second->walked.edges : trying->edges;
	keep(&places, &kept, /* back= */ true);
	if (second->story || (t->options->is_over && t->options->is_over(t->options->context)))
		return;
	snprintf(where, sizeof where, "%s %s", change->of_action ? "action" : "step",
		 change->of_action ? c->service->action->name : c->step);
	for (at = report->suggestions_n++; at && second->complete && !report->suggestions[at - 1].complete; at--)
		report->suggestions[at] = report->suggestions[at - 1];
	report->suggestions[at] = (struct trial_suggestion){
		.change = change->words,
		.where = arena_copy(t->arena, slice_str(where)).p,
		.file = c->of->file,
		.line = change->of_action ? c->service->action->line : c->line,
		.provided = change->provided,
		.clean = true,
		.complete = second->complete,
	};
}

void trial_suggest(struct trial *t, const struct trial_story *story, trial_again_fn *again, void *context,
		   struct trial_report *report)
{
	static const struct change changes[] = {
		{"on_5xx: unknown", NULL, false, -1, -1, true},
		{"on_unknown: probe", "the probe tells the truth", false, UNKNOWN_PROBE, -1, false},
		{"effect: keyed", "the service dedupes by Idempotency-Key", true, -1, EFFECT_KEYED, false},
		{"on_unknown: hold", NULL, false, UNKNOWN_HOLD, -1, false},
		{"effect: claimed, with on_unknown: hold", NULL, true, UNKNOWN_HOLD, EFFECT_CLAIMED, false},
	};
	const struct trial_caller *c = t->broken_caller >= 0 ? &t->callers[t->broken_caller] : NULL;
	struct trying trying = {again, context, t->options->edges_max, sizeof changes / sizeof *changes};

	if (!c || !c->service || c->role != ROLE_ACTION || story->rule == RULE_ENGINE)
		return;
	for (size_t i = 0; trying.left; i++, trying.left--) {
		if (changes[i].on_unknown == UNKNOWN_PROBE && !c->service->action->probe)
			continue;
		if (changes[i].effect >= 0 && (enum action_effect)changes[i].effect == c->service->action->effect)
			continue;
		try_change(t, c, &changes[i], &trying, report);
	}
}
