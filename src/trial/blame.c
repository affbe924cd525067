/* What let a rule be broken: the line and the field of a definition, or what was assumed of a service (docs/guarantees.md). */
#include <stdio.h>

#include "trial/parts.h"

/* The line after `from` and before `to` (0: the end) that has this field; 0: none has. */
static size_t line_of_field(struct slice text, size_t from, size_t to, const char *field)
{
	char quoted[80];
	size_t line = 1;
	const char *p = text.p, *end = text.p + text.n;

	snprintf(quoted, sizeof quoted, "\"%s\"", field);
	while (p < end && (!to || line < to)) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((stop ? stop : end) - p);

		if (line >= from && memmem(p, n, quoted, strlen(quoted)))
			return line;
		p += n + 1;
		line++;
	}
	return 0;
}

static size_t next_line(const struct trial_caller *c)
{
	size_t next = 0;

	if (c->of->entity) {
		for (size_t i = 0; i < c->of->entity->steps_n; i++) {
			size_t line = c->of->entity->steps[i].line;

			next = line > c->line && (!next || line < next) ? line : next;
		}
	} else if (c->of->run) {
		for (size_t i = 0; i < c->of->run->steps_n; i++) {
			size_t line = c->of->run->steps[i].line;

			next = line > c->line && (!next || line < next) ? line : next;
		}
	}
	return next;
}

static const struct step_view *view_of(const struct trial_caller *c)
{
	const struct workflow *w = c->of->entity;

	for (size_t i = 0; w && i < w->steps_n; i++)
		for (size_t v = 0; v <= w->requesters_n && strcmp(w->steps[i].step_key, c->step) == 0; v++)
			if (w->steps[i].views[v].action == c->service->action)
				return &w->steps[i].views[v];
	return NULL;
}

static enum on_unknown on_unknown_of(const struct trial_caller *c)
{
	const struct step_view *view = c->run_step ? NULL : view_of(c);

	if (c->of->batch)
		return c->of->batch->on_unknown;
	return c->run_step ? c->run_step->on_unknown : view ? view->on_unknown : UNKNOWN_HOLD;
}

/* The probe that a step asks; NULL: none. */
static const struct trial_service *probe_of(const struct trial *t, const struct trial_caller *c)
{
	for (size_t i = 0; i < t->services_n; i++)
		if (t->services[i].action == c->service->action->probe)
			return &t->services[i];
	return NULL;
}

static void blame_field(struct trial_story *s, const struct trial_caller *c, const char *field, const char *why)
{
	size_t line = line_of_field(c->of->text, c->line, next_line(c), field);

	s->field = field;
	s->line = line ? line : c->line;
	s->why = why;
}

static void blame_action(struct trial_story *s, const struct trial_caller *c, const char *why, const char *assumption)
{
	s->field = "effect";
	s->line = c->service->action->line;
	s->why = why;
	s->assumption = assumption;
}

static void blame_once(const struct trial *t, struct trial_story *s, const struct trial_caller *c)
{
	const struct trial_service *probe = probe_of(t, c);

	if (c->service->action->effect == EFFECT_KEYED) {
		blame_action(
			s, c,
			"the definition says keyed, and the world says that this service does not dedupe by its key",
			"A5");
		return;
	}
	switch (on_unknown_of(c)) {
	case UNKNOWN_REVERT:
		blame_field(
			s, c, "on_unknown",
			"revert (the default with a claim) lets whoever fires it again repeat what may have been done");
		break;
	case UNKNOWN_RETRY:
		blame_field(s, c, "on_unknown",
			    "retry repeats what may have been done, and the service does not dedupe");
		break;
	case UNKNOWN_PROBE:
		blame_field(s, c, "on_unknown", "the probe said not_done of what was done after that");
		s->assumption = probe && probe->guesses ? "A6" : NULL;
		break;
	case UNKNOWN_HOLD:
		blame_field(s, c, "claim_state",
			    "without a claim two callers act at once, and the service does not dedupe");
		break;
	}
}

static void blame_silence(struct trial_story *s, const struct trial_caller *c)
{
	const struct step_view *view = c->run_step ? NULL : view_of(c);

	if (c->seen & 1u << MAY_FAILED_AFTER)
		blame_field(s, c, "on_5xx",
			    "what the service says has failed is believed, and it may fail after it has acted");
	else if (view && !view->claim_into)
		blame_field(s, c, "claim_state", "without a claim another step moves it on while this one acts");
	else
		blame_field(s, c, "on_unknown", "what may have been done is given up");
}

/* Of two versions: the step as the new one has it, which has no way back; NULL: it has one, or does not have the step. */
static const struct run_step *undo_lost(const struct trial *t, const struct trial_caller *c)
{
	const struct run_definition *d = t->machine->next ? t->machine->next->of->run : NULL;

	for (size_t i = 0; d && i < d->steps_n; i++)
		if (strcmp(d->steps[i].name, c->step) == 0 && !d->steps[i].compensate)
			return &d->steps[i];
	return NULL;
}

static void blame_undone(const struct trial *t, struct trial_story *s, const struct trial_caller *c)
{
	const struct run_step *lost = undo_lost(t, c);

	if (lost) {
		s->file = t->machine->next->of->file;
		s->line = lost->line;
		s->field = "compensate";
		s->why = "the new version does not undo what the old one has done";
	} else if (c->of->batch) {
		blame_field(s, c, "void", "without a void what comes late is done after its money was given back");
	} else if (c->run_step && on_unknown_of(c) == UNKNOWN_PROBE) {
		blame_field(s, c, "on_unknown", "the probe said not_done of what was done after that");
		s->assumption = "A6";
	} else {
		blame_field(s, c, "compensate", "it is undone while an earlier call may still happen");
	}
}

void trial_blame(struct trial *t, struct trial_story *s)
{
	const struct trial_caller *c = t->broken_caller >= 0 ? &t->callers[t->broken_caller] : NULL;

	s->file = t->machine->of->file;
	s->workflow = t->machine->of->name;
	if (t->broken_said) {
		s->file = t->broken_said->file;
		s->line = t->broken_said->line;
		s->field = user_rule_kinds[t->broken_said->kind];
		s->why = t->broken_said->text;
	}
	if (!c)
		return;
	s->file = c->of->file;
	s->line = c->line;
	s->workflow = c->of->name;
	s->step = c->step;
	s->action = c->service ? c->service->action->name : NULL;
	switch (s->rule) {
	case RULE_ONCE:
		blame_once(t, s, c);
		break;
	case RULE_SILENCE:
		blame_silence(s, c);
		break;
	case RULE_UNDONE:
	case RULE_REVERSE:
		blame_undone(t, s, c);
		break;
	default:
		break;
	}
}
