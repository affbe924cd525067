/*
 * What an example does (example.h), as clicks and fires of the cast: each of its whens has its place there. Which hook a service tells is
 * looked up here, in the world that the example is carried out in.
 */
#include <stdio.h>

#include "trial/parts.h"

#define OF_A_FIRE 0x80u /* places of fires come after those of all clicks */

/* Which of clicks and fires a when is. */
int trial_scripted(const struct trial *t, unsigned when)
{
	unsigned place = t->places[when];

	return (int)(place & OF_A_FIRE ? t->clicks_n + (place & ~OF_A_FIRE) : place);
}

static void script_fire(struct trial *t, const struct example_when *when, const char *key)
{
	const struct trial_member *m = &t->members[when->subject];
	const struct workflow *w = m->machine->of->entity;
	size_t i = 0;

	while (i + 1 < w->steps_n && strcmp(w->steps[i].step_key, key) != 0)
		i++;
	trial_add_fire(t, m, m->machine, &w->steps[i], when->as ? when->as : "default");
	if (when->input.raw.p)
		t->fires[t->fires_n - 1].rq.input = when->input;
}

static void script_event(struct trial *t, const struct example_when *when, size_t i, const char *event)
{
	struct slice data = when->data.raw.p ? when->data.raw : slice_str("{}");
	char id[EXAMPLE_TEXT_MAX + 1];

	snprintf(id, sizeof id, "event-%zu", i + 1);
	if (when->id)
		snprintf(id, sizeof id, "%s", when->id);
	trial_add_click(t, 1,
			(struct run_verb_request){.kind = RUN_EVENT,
						  .subject = TRIAL_SUBJECT + when->subject,
						  .name = slice_str(event),
						  .event_id = arena_copy(t->arena, slice_str(id)),
						  .data = data},
			trial_words_of(t, "sends the event %s", event));
}

static void script_click(struct trial *t, const struct example_when *when)
{
	const char *decided = when->approve ? when->approve : when->reject;
	struct run_verb_request rq = {.kind = RUN_CANCEL, .subject = TRIAL_SUBJECT + when->subject};

	if (decided) {
		rq.kind = RUN_APPROVE;
		rq.name = slice_str(decided);
		rq.data = slice_str(when->approve ? "{\"decision\":\"approve\"}" : "{\"decision\":\"reject\"}");
	}
	trial_add_click(t, 1, rq,
			decided ? trial_words_of(t, when->approve ? "approves %s" : "rejects %s", decided)
				: "cancels the run");
}

static void script_act(struct trial *t, const struct example_when *when, size_t i)
{
	t->places[i] = (unsigned char)(when->credit   ? BATCH_PAYS
				       : when->cancel ? BATCH_CANCELS
						      : BATCH_ACCEPTS + (unsigned)when->accept);
	t->pays = when->credit ? when->credit : t->pays;
}

const struct trial_service *trial_teller_of(const struct trial *t, const char *action)
{
	for (size_t i = 0; i < t->services_n; i++)
		if (t->services[i].tells && strcmp(t->services[i].action->name, action) == 0)
			return &t->services[i];
	return NULL;
}

static void script_tell(struct trial *t, struct example_when *when, size_t i)
{
	const struct trial_service *s = trial_teller_of(t, when->tell);

	while (s && when->subject < t->members_n && strcmp(t->members[when->subject].machine->of->name, s->tells) != 0)
		when->subject++;
	if (!s || when->subject == t->members_n)
		when->subject = 0; /* nobody: which is told when it comes to that */
	else if (t->members[when->subject].machine->entity)
		script_fire(t, when, s->event);
	else if (s->event)
		script_event(t, when, i, s->event);
}

unsigned trial_script(struct trial *t, const struct example *example)
{
	unsigned begins = 0;

	t->scripted = true;
	t->fires_n = t->clicks_n = 0;
	t->begun = 0; /* what lives on is there */
	for (size_t i = 0; i < t->members_n; i++) {
		t->begun |= (unsigned)(t->members[i].machine->entity != NULL) << i;
		begins |= (unsigned)!trial_awaits_hook(t, &t->members[i], /* event= */ NULL) << i;
	}
	for (size_t i = 0; i < example->whens_n; i++) {
		struct example_when *when = (struct example_when *)(uintptr_t)&example->whens[i];
		size_t fires = t->fires_n;

		t->places[i] = (unsigned char)t->clicks_n;
		if (when->tell)
			script_tell(t, when, i);
		else if (when->start)
			begins &= ~(1u << when->subject);
		else if (when->fire)
			script_fire(t, when, when->fire);
		else if (when->event)
			script_event(t, when, i, when->event);
		else if (t->machine->batch)
			script_act(t, when, i);
		else if (!when->wait_ms && !when->land)
			script_click(t, when);
		if (t->fires_n > fires)
			t->places[i] = OF_A_FIRE | (unsigned char)fires;
	}
	return begins;
}
