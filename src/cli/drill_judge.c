/* What must hold at the end of a schedule: see drill.h. */
#include <stdio.h>

#include "base/json_string.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "cli/drill_parts.h"
#include "trial/own_rules.h"

#define SIGHT_BYTES_MAX (256u << 10)

/* ---- rules of the user's own ---- */

static void add_steps(struct drill_play *p, struct strbuf *out)
{
	struct json steps, step;

	json_more(out, "steps");
	strbuf_add_char(out, '{');
	if (json_find(p->run, slice_str("steps"), &steps))
		for (struct json_iter it = json_iter_of(steps); json_iter_element(&it, &step);) {
			const char *name = drill_member_text(p, step, "name");
			const char *status = drill_member_text(p, step, "status");

			if (name && status)
				json_more_text(out, name, slice_str(status));
		}
	strbuf_add_char(out, '}');
}

/* How often a name has happened: what the ledger counted under it, or else the keys under which a step of that name was done. */
static unsigned happened(const struct drill_play *p, const char *name, size_t length)
{
	unsigned n = 0;

	for (size_t i = 0; i < p->ledger_n; i++)
		n += strlen(p->ledger[i].name) == length && memcmp(p->ledger[i].name, name, length) == 0;
	for (size_t i = 0; i < p->effects_n && !n; i++) {
		const struct drill_effect *e = &p->effects[i];

		if (!e->undo && strncmp(e->name, name, length) == 0 && (e->name[length] == '#' || !e->name[length]))
			n += e->claimed ? e->done : e->done > 0;
	}
	return n;
}

static void add_ledger(struct drill_play *p, struct strbuf *out)
{
	json_more(out, "ledger");
	strbuf_add_char(out, '{');
	for (size_t i = 0; i < p->ledger_n; i++)
		json_more_int(out, p->ledger[i].name, happened(p, p->ledger[i].name, strlen(p->ledger[i].name)));
	for (size_t i = 0; i < p->effects_n; i++) {
		size_t n = strcspn(p->effects[i].name, "#");
		char name[256];

		snprintf(name, sizeof name, "%.*s", (int)n, p->effects[i].name);
		if (!p->effects[i].undo && !p->effects[i].name[n] && p->effects[i].done)
			json_more_int(out, name, happened(p, name, strlen(name)));
	}
	strbuf_add_char(out, '}');
}

void drill_check_own(struct drill_play *p, bool at_end)
{
	const struct user_rules *rules = &p->drill->world->rules;
	LOCAL_ARENA(scratch, 4u << 20);
	LOCAL_STRBUF(sight, SIGHT_BYTES_MAX);
	LOCAL_STRBUF(words, 2000);

	if (!rules->n || !p->status)
		return;
	strbuf_add_char(&sight, '{');
	json_more_text(&sight, "status", slice_str(p->status));
	json_more_bool(&sight, "doubt", false);
	add_steps(p, &sight);
	add_ledger(p, &sight);
	strbuf_add_char(&sight, '}');
	for (size_t i = 0; i < rules->n && !p->broken; i++) {
		bool reached = false;

		if (rules->items[i].workflow && strcmp(rules->items[i].workflow, p->drill->function) != 0)
			continue;
		strbuf_reset(&words);
		if (!own_rule_holds(&rules->items[i], strbuf_slice(&sight), at_end, &scratch, &reached, &words))
			drill_break(p, RULE_NEVER + (enum trial_rule)rules->items[i].kind, NULL, "%s", words.p);
		p->drill->own_reached |= reached ? 1u << i : 0;
	}
}

/* ---- once ---- */

static void remember_repeated(struct drill *d, const struct drill_effect *e)
{
	for (size_t i = 0; i < d->repeated_n; i++)
		if (strcmp(d->repeated[i].name, e->name) == 0 && d->repeated[i].undo == e->undo)
			return;
	if (d->repeated_n == sizeof d->repeated / sizeof *d->repeated)
		return;
	d->repeated[d->repeated_n++] = (struct drill_effect){
		.name = arena_copy(d->arena, slice_str(e->name)).p, .undo = e->undo, .done = e->done};
}

/* Then its service is ours, and tells. */
static bool is_in_ledger(const struct drill_play *p, const struct drill_effect *e)
{
	for (size_t i = 0; i < p->ledger_n; i++)
		if (p->ledger[i].step && strcmp(p->ledger[i].step, e->name) == 0)
			return true;
	return false;
}

static void check_once(struct drill_play *p)
{
	for (size_t i = 0; i < p->effects_n; i++) {
		const struct drill_effect *e = &p->effects[i];
		const struct trial_service_said *said = trial_world_service(p->drill->world, e->name);
		bool dedupes = said && said->dedupes_said ? said->dedupes : !e->claimed;

		if (e->done < 2)
			continue;
		if (dedupes) {
			if (!is_in_ledger(p, e))
				remember_repeated(p->drill, e);
			continue;
		}
		drill_break(p, RULE_ONCE, e, "%s%s has been executed %u times under one key, %s/%s/…", e->name,
			    e->undo ? " (its undo)" : "", e->done, e->run, e->name);
		p->field = e->claimed ? "onUnknown" : "effect";
		p->why =
			e->claimed && e->retries ? "retry repeats what may have been done, and nobody dedupes"
			: e->claimed
				? "its probe said that it was not done"
				: "keyed says that the service dedupes by the key, and the world says that it does not";
	}
}

/* What a service of HAPAX_LEDGER has done, and how often it does without mishaps. */
static unsigned base_count(const struct drill_base *base, const char *name)
{
	for (size_t i = 0; i < base->ledger_n; i++)
		if (strcmp(base->ledger[i].name, name) == 0)
			return base->ledger[i].n;
	return 0;
}

static struct drill_effect *step_of(struct drill_play *p, const struct drill_ledger *l)
{
	for (size_t i = 0; l->step && i < p->effects_n; i++)
		if (strcmp(p->effects[i].name, l->step) == 0)
			return &p->effects[i];
	return NULL;
}

static void check_ledger(struct drill_play *p, const struct drill_base *base)
{
	for (size_t i = 0; i < p->ledger_n && base->known; i++) {
		const struct drill_ledger *l = &p->ledger[i];
		unsigned n = happened(p, l->name, strlen(l->name)), usual = base_count(base, l->name);
		const struct drill_effect *e;

		if (n <= usual)
			continue;
		e = step_of(p, l);
		drill_break(p, RULE_ONCE, e, "the service %s has done it %u times, and %u without mishaps%s%s", l->name,
			    n, usual, e ? ", step " : "", e ? e->name : "");
		p->field = e ? "effect" : NULL;
		p->why =
			l->key[0] ? "another key for the same decision: the key of a step is the one that it is given"
			: e ? "the step is tried again after a crash, and calls its service without the key that it is given"
			    : "it is called outside of a step, and so once more in each replay";
	}
}

/* ---- the end ---- */

static void check_undone(struct drill_play *p)
{
	unsigned after = 0;

	if (!p->status || strcmp(p->status, "CANCELLED") != 0)
		return;
	for (size_t i = 0; i < p->effects_n; i++) {
		const struct drill_effect *e = &p->effects[i];

		if (e->undo || !e->to_undo || !e->done || strcmp(e->run, p->runs[0]) != 0)
			continue;
		const struct drill_effect *undo = drill_effect_of(p, e->run, e->name, /* undo= */ true);

		if (!undo || !undo->done)
			drill_break(p, RULE_UNDONE, e, "the run is CANCELLED, and %s was done and never undone",
				    e->name);
		else if (after && undo->order > after)
			drill_break(p, RULE_REVERSE, e, "%s was undone after what came before it", e->name);
		after = undo ? undo->order : after;
	}
}

static void note_silent(struct drill *d, const struct drill_effect *e)
{
	if (!d->silent)
		d->silent = arena_copy(d->arena, slice_str(e->name)).p;
}

/*
 * What was done is in the run: as done, or undone, or in doubt. A keyed step has one write, its outcome: if its run is cancelled
 * meanwhile, and its worker is lost, nobody knows of it. That is so by design, and is said.
 */
static void check_silence(struct drill_play *p)
{
	bool cancelled = strcmp(p->status, "CANCELLED") == 0;
	LOCAL_STRBUF(steps, SIGHT_BYTES_MAX);
	struct json all, one;

	strbuf_add_char(&steps, '{');
	add_steps(p, &steps);
	strbuf_add_char(&steps, '}');
	if (!json_find(json_trust(strbuf_slice(&steps)), slice_str("steps"), &all))
		return;
	for (size_t i = 0; i < p->effects_n; i++) {
		const struct drill_effect *e = &p->effects[i];

		if (!e->done || e->undo || strcmp(e->run, p->runs[0]) != 0 || json_find(all, slice_str(e->name), &one))
			continue;
		if (cancelled && !e->begun_ever)
			note_silent(p->drill, e);
		else
			drill_break(p, RULE_SILENCE, e, "%s was executed, and the run knows nothing of it", e->name);
	}
}

/* The names of what was done, in the order of their first coming. */
static const char *done_effects(struct drill_play *p)
{
	LOCAL_STRBUF(out, 65536);

	for (size_t i = 0; i < p->effects_n; i++)
		if (p->effects[i].done)
			strbuf_addf(&out, "%s%s%s", out.n ? ", " : "", p->effects[i].name,
				    p->effects[i].undo ? " undone" : "");
	return arena_keep(&p->arena, &out).p;
}

static const char *output_of(struct drill_play *p)
{
	struct json output;
	LOCAL_STRBUF(text, 65536);

	if (json_find(p->run, slice_str("output"), &output))
		strbuf_add_slice(&text, slice_of(output.raw.p, output.raw.n < 60000 ? output.raw.n : 60000));
	return drill_plain(p, text.p);
}

static void check_same(struct drill_play *p, const struct drill_base *base)
{
	const char *effects = done_effects(p), *output = output_of(p);

	if (!base->known || p->schedule->people == PEOPLE_CANCEL)
		return;
	if (strcmp(p->status, base->status) != 0)
		drill_break(p, RULE_SAME, NULL, "it has ended as %s, and as %s without mishaps", p->status,
			    base->status);
	else if (base->steady && strcmp(effects, base->effects) != 0)
		drill_break(p, RULE_SAME, NULL, "what was executed is %s, and without mishaps %s", effects,
			    base->effects);
	else if (base->steady && strcmp(output, base->output) != 0)
		drill_break(p, RULE_SAME, NULL, "its output is %.300s, and without mishaps %.300s", output,
			    base->output);
}

static const char *kept(struct drill_play *p, const char *text)
{
	return arena_copy(p->drill->arena, slice_str(text)).p;
}

/* The first schedule of each kind of people is what others are compared with; a second one without cuts says whether it is steady. */
static void learn(struct drill_play *p, struct drill_base *base)
{
	const char *effects = done_effects(p), *output = output_of(p);

	if (base->known) {
		base->steady = strcmp(base->effects, effects) == 0 && strcmp(base->output, output) == 0;
		return;
	}
	*base = (struct drill_base){
		.known = true, .status = kept(p, p->status), .effects = kept(p, effects), .output = kept(p, output)};
	for (size_t i = 0; i < p->ledger_n && base->ledger_n < 32; i++)
		if (!base_count(base, p->ledger[i].name)) {
			base->ledger[base->ledger_n].name = kept(p, p->ledger[i].name);
			base->ledger[base->ledger_n++].n = happened(p, p->ledger[i].name, strlen(p->ledger[i].name));
		}
}

void drill_judge(struct drill_play *p)
{
	struct drill_base *base = &p->drill->bases[p->schedule->people];
	const struct drill_base *willing = &p->drill->bases[PEOPLE_WILLING];
	bool waits = p->schedule->people == PEOPLE_SILENT && p->asked_n;

	if (p->broken)
		return;
	check_once(p);
	if (p->schedule->cuts_n || p->schedule->people == PEOPLE_CANCEL)
		check_ledger(p, p->schedule->people == PEOPLE_CANCEL ? willing : base);
	if (p->broken)
		return;
	if (!p->ended && !waits)
		drill_break(p, RULE_STUCK, NULL, "nothing goes on any more, and the run is %s",
			    p->status ? p->status : "not there");
	if (!p->status)
		p->status = "not there";
	check_undone(p);
	if (p->ended)
		check_silence(p);
	drill_check_own(p, /* at_end= */ true);
	if (p->broken)
		return;
	if (p->schedule->cuts_n)
		check_same(p, base);
	else if (p->schedule->people != PEOPLE_CANCEL)
		learn(p, base);
}
