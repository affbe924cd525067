/*
 * Functions that a definition names and this program does not have. `hapax serve` has none at all, and yet it is the way to a store
 * that an embedding program has left: so it takes what the store has into force, does everything but calling those functions, and
 * leaves what needs one to a program that has it.
 *
 *   a step of an entity   is refused before it claims               (flow/entity_step.c)
 *   a run, a batch        is not claimed; a run may be cancelled where no compensation needs one   (flow/run_drive.c, batch_lead.c)
 *   an after-effect       is not claimed                             (flow/job.c)
 *
 * The feeders leave runs and after-effects out of what they look for, so that what waits for another program hides nobody's work and
 * costs nothing. The lists are texts for those statements, never changed once they are published. See definition_change.h.
 */
#include "engine/definition_change.h"
#include "flow/hook.h"

#define LEFT_BYTES_MAX (4u << 20)

void natives_mark_absent(const struct natives *natives, const struct definition *definition)
{
	for (size_t i = 0; natives && i < definition->actions_n; i++) {
		/* Constant for everybody who sees it; nobody has yet. */
		struct action *action = (struct action *)&definition->actions[i];

		action->absent = action->kind == ACTION_NATIVE && !natives_find(natives, action->function);
	}
}

/* Without natives nobody can tell. */
void change_check_natives(const struct definitions *defs, const struct definition *definition, bool is_new,
			  struct findings *findings)
{
	bool refused = is_new || defs->natives_all;

	for (size_t i = 0; defs->natives && i < definition->actions_n; i++) {
		const struct action *action = &definition->actions[i];
		struct finding finding = definition_finding(definition, refused ? FINDING_ERROR : FINDING_WARNING,
							    action->line, "native");

		if (action->kind == ACTION_NATIVE && !natives_find(defs->natives, action->function))
			findings_add(findings, finding, "action %s: no function \"%s\" is registered%s", action->name,
				     action->function,
				     refused ? "" : " here: what needs it is left to the program that has it");
	}
}

/* ---- what is left to others ---- */

static struct slice list_of(_Atomic(const char *) const *list)
{
	const char *text = atomic_load((_Atomic(const char *) *)list);

	return slice_str(text ? text : "[]");
}

struct slice definitions_left_runs(const struct definitions *defs)
{
	return list_of(&defs->left_runs);
}

struct slice definitions_left_jobs(const struct definitions *defs)
{
	return list_of(&defs->left_jobs);
}

/* What cannot be kept is found, looked at and left alone all the same. */
static void publish(struct definitions *defs, _Atomic(const char *) *list, struct strbuf *text)
{
	const char *kept = NULL;

	strbuf_add_char(text, ']');
	if (!text->failed && !slice_eq(strbuf_slice(text), list_of(list)))
		kept = arena_copy(&defs->arena, strbuf_slice(text)).p;
	if (kept)
		atomic_store(list, kept);
	strbuf_release(text);
}

static bool lacks_any(const struct definition *definition)
{
	for (size_t i = 0; i < definition->actions_n; i++)
		if (definition->actions[i].absent)
			return true;
	return false;
}

void natives_leave_run(struct definitions *defs, const struct machine *machine)
{
	struct slice before = list_of(&defs->left_runs);
	struct strbuf text;

	if (!machine->run || !lacks_any(machine->definition))
		return;
	strbuf_init(&text, LEFT_BYTES_MAX);
	strbuf_add(&text, before.p, before.n - 1);
	strbuf_addf(&text, "%s\"%s@%lld\"", before.n > 2 ? "," : "", machine->definition->name,
		    (long long)machine->version);
	publish(defs, &defs->left_runs, &text);
}

void natives_leave_jobs(struct definitions *defs)
{
	struct strbuf text;

	strbuf_init(&text, LEFT_BYTES_MAX);
	strbuf_add_char(&text, '[');
	if (!natives_find(defs->natives, HOOK_FIRE_FUNCTION))
		strbuf_add_str(&text, "\"/" HOOK_FIRE_ACTION "\"");
	for (size_t i = 0; i < defs->n; i++) {
		const struct definition *definition = defs->current[i]->definition;

		for (size_t k = 0; k < definition->actions_n; k++)
			if (definition->actions[k].absent)
				strbuf_addf(&text, "%s\"%s/%s\"", text.n > 1 ? "," : "", definition->name,
					    definition->actions[k].name);
	}
	publish(defs, &defs->left_jobs, &text);
}
