/*
 * Which schedules there are, and what they came to: see drill.h.
 *
 *   level 0   nobody is cut: people are willing (twice: is it steady?), reject, say nothing, say it twice, cancel at each call
 *   level n   each schedule of level n - 1, with one cut more, at each call after its last
 *
 * A late call is tried with another worker that goes on until it rests, and then once more for each call that this one had made until
 * then: every way in which two workers can be interleaved around it.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json_string.h"
#include "cli/drill_parts.h"
#include "engine/embed.h"
#include "model/load.h"

#define SCHEDULES_MAX 200000
#define FILE_BYTES_MAX (1u << 20)

/* Schedules that are to be carried out, one level of them. */
struct queue {
	struct drill_schedule *items;
	size_t n, room;
};

static void add(struct queue *q, const struct drill_schedule *s)
{
	if (q->n == q->room && q->n < SCHEDULES_MAX) {
		size_t room = q->room ? 2 * q->room : 256;
		struct drill_schedule *items = realloc(q->items, room * sizeof *items);

		if (!items)
			return;
		q->items = items;
		q->room = room;
	}
	if (q->n < q->room)
		q->items[q->n++] = *s;
}

static bool is_kill(enum drill_cut cut)
{
	return cut == CUT_KILLED_AFTER || cut == CUT_KILLED_BEFORE;
}

static bool is_late(enum drill_cut cut)
{
	return cut == CUT_LATE_AFTER || cut == CUT_LATE_BEFORE;
}

/* One more of this kind, within the bounds? */
static bool may_cut(const struct drill *d, const struct drill_schedule *s, enum drill_cut cut)
{
	const struct trial_options *o = d->options;
	unsigned kills = is_kill(cut), lates = is_late(cut), lost = !kills && !lates;

	for (unsigned i = 0; i < s->cuts_n; i++) {
		kills += is_kill(s->cuts[i].cut);
		lates += is_late(s->cuts[i].cut);
		lost += !is_kill(s->cuts[i].cut) && !is_late(s->cuts[i].cut);
	}
	return s->cuts_n < o->mishaps && s->cuts_n < DRILL_CUTS_MAX && kills <= o->crashes && lates <= o->pauses &&
	       lost <= o->lost && 1 + kills + lates <= DRILL_CAST_MAX;
}

/* The next level: one cut more, at each call after the last one. */
static void add_cuts(const struct drill *d, const struct drill_play *p, struct queue *next)
{
	unsigned last = p->schedule->cuts_n ? p->schedule->cuts[p->schedule->cuts_n - 1].at : 0;

	for (enum drill_cut cut = 0; cut < DRILL_CUTS_N; cut++)
		for (unsigned at = last + 1; at <= p->calls_n && at <= DRILL_CALLS_MAX; at++) {
			struct drill_schedule s = *p->schedule;

			if ((p->is_claim[at - 1] && !(CLAIM_CUTS & 1u << cut)) || !may_cut(d, &s, cut))
				continue;
			s.cuts[s.cuts_n].at = at;
			s.cuts[s.cuts_n].cut = cut;
			s.cuts[s.cuts_n++].beside = 0;
			add(next, &s);
		}
}

/* The same level: where in the other's calls the late one comes. */
static void add_interleavings(const struct drill_play *p, struct queue *q)
{
	const struct drill_schedule *s = p->schedule;
	struct drill_schedule other = *s;

	if (!s->cuts_n || !is_late(s->cuts[s->cuts_n - 1].cut) || s->cuts[s->cuts_n - 1].beside || !p->late.was)
		return;
	for (unsigned i = 1; i < p->late.beside; i++) {
		other.cuts[s->cuts_n - 1].beside = i;
		add(q, &other);
	}
}

/* What people may do otherwise in this function. */
static void add_people(const struct drill_play *p, struct queue *q)
{
	struct drill_schedule s = {.input = p->schedule->input};
	bool events = false, approvals = false;

	for (size_t i = 0; i < p->asked_n; i++) {
		events |= p->asked[i].event != NULL;
		approvals |= p->asked[i].event == NULL;
	}
	s.people = PEOPLE_REJECT;
	if (approvals)
		add(q, &s);
	s.people = PEOPLE_SILENT;
	if (events || approvals)
		add(q, &s);
	s.people = PEOPLE_TWICE;
	if (events)
		add(q, &s);
	s.people = PEOPLE_CANCEL;
	for (s.cancel_at = 1; s.cancel_at <= p->calls_n; s.cancel_at++)
		add(q, &s);
}

/* Another order, and the same one for the same seed. */
static void shuffle(struct queue *q, size_t from, uint64_t seed)
{
	for (size_t i = q->n; seed && i > from + 1; i--) {
		struct drill_schedule one = q->items[i - 1];
		size_t k = from + (size_t)(seed >> 33) % (i - from);

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		q->items[i - 1] = q->items[k];
		q->items[k] = one;
	}
}

/* ---- what was seen ---- */

static void cover(struct drill *d, const struct drill_play *p)
{
	const struct drill_schedule *s = p->schedule;

	if (s->input || s->people != PEOPLE_WILLING)
		return;
	if (!s->cuts_n && !d->labels_n)
		for (unsigned i = 0; i < p->calls_n && i < DRILL_CALLS_MAX; i++) {
			d->labels[d->labels_n++] = arena_copy(d->arena, slice_str(p->labels[i])).p;
			d->may[i] = p->is_claim[i] ? CLAIM_CUTS : (1u << DRILL_CUTS_N) - 1;
		}
	if (s->cuts_n == 1 && s->cuts[0].at <= DRILL_CALLS_MAX && !(is_late(s->cuts[0].cut) && !p->late.was))
		d->seen[s->cuts[0].at - 1] |= 1u << s->cuts[0].cut;
}

/* The story outlives the play. */
static enum hx_code keep_story(struct drill *d, const struct drill_play *p, struct trial_story **ret,
			       struct hx_error *err)
{
	struct trial_story *s = arena_zalloc(d->arena, sizeof *s);
	static const char *const people[PEOPLES_N] = {"", ", people reject", ", people say nothing",
						      ", events come twice", ", cancelled"};
	LOCAL_STRBUF(scenario, 300);

	if (!s)
		return arena_error(d->arena, err);
	*s = p->story;
	for (size_t i = 0; i < s->events_n; i++)
		s->events[i].what = arena_copy(d->arena, slice_str(s->events[i].what)).p;
	for (size_t i = 0; i < s->events_n; i++)
		s->events[i].who = arena_copy(d->arena, slice_str(s->events[i].who)).p;
	strbuf_addf(&scenario, "%s%s", d->function, people[p->schedule->people]);
	s->rule = p->rule;
	s->scenario = arena_copy(d->arena, strbuf_slice(&scenario)).p;
	s->broken = arena_copy(d->arena, slice_str(p->words)).p;
	s->mishaps = p->schedule->cuts_n;
	s->shortest = p->schedule->cuts_n <= 1;
	s->workflow = d->function;
	s->step = p->blamed ? arena_copy(d->arena, slice_str(p->blamed->name)).p : NULL;
	s->field = p->field ? p->field : p->why ? "code" : NULL;
	s->why = p->why;
	*ret = s;
	return d->arena->failed ? arena_error(d->arena, err) : HX_OK;
}

/* ---- walking ---- */

struct walk {
	struct trial_story *story; /* NULL: nothing was found */
	bool complete, honoured;
	unsigned levels; /* so many were walked to their end: none, those without a mishap, those with one more … */
	/* Of what was found: which step, and how it was. */
	bool claimed, retries;
	const char *failed; /* how every schedule ends, if that is no good end */
};

static bool is_spent(const struct drill *d, uint64_t from)
{
	return d->calls - from >= d->options->edges_max / TRIAL_EDGES_A_SECOND * DRILL_CALLS_A_SECOND ||
	       (d->options->is_over && d->options->is_over(d->options->context)) || d->arena->failed;
}

static enum hx_code carry_out(struct drill *d, const struct drill_schedule *s, struct queue *same, struct queue *next,
			      struct walk *w, struct hx_error *err)
{
	struct drill_schedule own = *s; /* the queue moves */
	struct drill_play *p = d->play;
	enum hx_code code = drill_play(d, &own, p, err);

	if (code)
		return code;
	cover(d, p);
	if (d->options->progress)
		d->options->progress(d->options->context, d->function,
				     &(struct explore_report){.states = d->schedules, .edges = d->calls});
	if (p->broken) {
		w->claimed = p->blamed && p->blamed->claimed;
		w->retries = p->blamed && p->blamed->retries;
		return keep_story(d, p, &w->story, err);
	}
	add_interleavings(p, same);
	add_cuts(d, p, next);
	return HX_OK;
}

/* How a function ends that nobody has cut, where that says something. */
static void note_end(struct drill *d, struct walk *w)
{
	LOCAL_STRBUF(words, 1000);

	if (d->play->broken || !d->play->status || strcmp(d->play->status, "FAILED") != 0)
		return;
	strbuf_addf(
		&words,
		"how it goes on: without any mishap %s is FAILED; a world file gives inputs, and what comes with events",
		d->function);
	w->failed = arena_copy(d->arena, strbuf_slice(&words)).p;
}

static enum hx_code walk_input(struct drill *d, size_t input, struct walk *w, struct hx_error *err)
{
	struct queue level = {0}, next = {0};
	struct drill_schedule plain = {.input = input};
	uint64_t from = d->calls;
	enum hx_code code;

	memset(d->bases, 0, sizeof d->bases);
	code = carry_out(d, &plain, &level, &next, w, err);
	if (!code)
		note_end(d, w);
	if (!code && !w->story) {
		add_people(d->play, &level);
		struct queue none = {0}; /* the same cuts again are no others */

		code = carry_out(d, &plain, &none, &none, w, err);
		free(none.items);
	}
	for (unsigned mishaps = 0; !code && !w->story; mishaps++) {
		for (size_t i = 0; i < level.n && !code && !w->story; i++) {
			if (is_spent(d, from)) {
				w->complete = false;
				w->levels = w->levels < mishaps ? w->levels : mishaps;
				goto out;
			}
			code = carry_out(d, &level.items[i], &level, &next, w, err);
		}
		if (!next.n)
			break;
		free(level.items);
		level = next;
		next = (struct queue){0};
		shuffle(&level, 0, d->options->seed);
	}
out:
	free(level.items);
	free(next.items);
	return code;
}

static enum hx_code walk_all(struct drill *d, struct walk *w, struct hx_error *err)
{
	size_t inputs = d->world->inputs_n ? d->world->inputs_n : 1;
	enum hx_code code = HX_OK;

	*w = (struct walk){.complete = true, .levels = d->options->mishaps + 1};
	for (size_t i = 0; i < inputs && !code && !w->story; i++)
		code = walk_input(d, i, w, err);
	if (d->spare)
		puppet_kill(d->spare);
	free(d->spare);
	d->spare = NULL;
	return code;
}

/* ---- what is suggested ---- */

static enum hx_code try_change(struct drill *d, const struct trial_story *story, const char *change,
			       const char *options, const char *provided, struct trial_report *r, struct hx_error *err)
{
	struct drill other = *d;
	struct trial_suggestion *s = &r->suggestions[r->suggestions_n];
	struct walk w;
	enum hx_code code;
	LOCAL_STRBUF(tries, 500);
	LOCAL_STRBUF(where, 300);

	strbuf_add_char(&tries, '{');
	json_quote(slice_str(story->step), &tries);
	strbuf_addf(&tries, ":%s}", options);
	strbuf_addf(&where, "step %s", story->step);
	if (tries.failed)
		return HX_OK;
	other.tries = tries.p;
	other.spare = NULL;
	code = walk_all(&other, &w, err);
	d->schedules = other.schedules; /* they are keys of runs */
	if (code || w.story)
		return code;
	*s = (struct trial_suggestion){.change = change,
				       .where = arena_copy(d->arena, strbuf_slice(&where)).p,
				       .provided = provided,
				       .clean = true,
				       .complete = w.complete};
	r->suggestions_n++;
	return HX_OK;
}

/* A client that does not know HAPAX_TRY goes on as before, and nothing is clean then. */
static enum hx_code suggest(struct drill *d, const struct walk *w, struct trial_report *r, struct hx_error *err)
{
	const struct trial_story *s = w->story;
	enum hx_code code = HX_OK;

	if (!s || s->rule != RULE_ONCE || !s->step || d->options->brief || strchr(s->step, '#'))
		return HX_OK;
	if (w->claimed && w->retries)
		code = try_change(d, s, "onUnknown: hold", "{\"onUnknown\":\"hold\"}", NULL, r, err);
	if (!code && w->claimed)
		code = try_change(d, s, "effect: keyed", "{\"effect\":\"keyed\"}",
				  "the service dedupes by the key of the step", r, err);
	if (!code && !w->claimed)
		code = try_change(d, s, "effect: claimed", "{\"effect\":\"claimed\"}", NULL, r, err);
	return code;
}

/* ---- the report ---- */

static void leave_out(struct trial_report *r, const char *words)
{
	if (words && r->left_out_n < TRIAL_LEFT_OUT_MAX)
		r->left_out[r->left_out_n++] = words;
}

static void say_assumed(struct drill *d, struct trial_report *r)
{
	for (size_t i = 0; i < d->repeated_n; i++) {
		LOCAL_STRBUF(words, 500);

		strbuf_addf(
			&words,
			"whether the service of %s%s dedupes (A5): it is executed again under its key after a crash; a world file or HAPAX_LEDGER tells",
			d->repeated[i].name, d->repeated[i].undo ? "'s undo" : "");
		leave_out(r, arena_copy(d->arena, strbuf_slice(&words)).p);
	}
}

static void say_silent(struct drill *d, struct trial_report *r)
{
	LOCAL_STRBUF(words, 500);

	if (!d->silent)
		return;
	strbuf_addf(
		&words,
		"%s in a run that is cancelled meanwhile and whose worker is lost: keyed, it is written down when it has ended, and was done without being known; claimed is written down before",
		d->silent);
	leave_out(r, arena_copy(d->arena, strbuf_slice(&words)).p);
}

/* NULL: there is no memory, and it is said. */
static struct trial_story *never_was(struct drill *d, const struct user_rule *rule, struct hx_error *err)
{
	struct trial_story *story = arena_zalloc(d->arena, sizeof *story);
	LOCAL_STRBUF(words, 1000);

	if (!story) {
		(void)arena_error(d->arena, err);
		return NULL;
	}
	strbuf_addf(&words, "what is to be sometimes never was: %s", rule->text);
	story->rule = RULE_SOMETIMES;
	story->scenario = story->workflow = d->function;
	story->broken = arena_copy(d->arena, strbuf_slice(&words)).p;
	story->shortest = true;
	story->file = rule->file;
	story->line = rule->line;
	return story;
}

static void check_sometimes(struct drill *d, struct walk *w, struct hx_error *err)
{
	const struct user_rules *rules = &d->world->rules;

	for (size_t i = 0; i < rules->n && !w->story; i++)
		if (rules->items[i].kind == RULE_IS_SOMETIMES && !(d->own_reached & 1u << i))
			w->story = never_was(d, &rules->items[i], err);
}

static void fill(struct drill *d, const struct walk *w, struct trial_report *r)
{
	r->worker = true;
	r->story = w->story;
	r->complete = w->complete && !w->story;
	r->complete_mishaps = w->levels - 1; /* -1u: not even those without */
	r->scenarios_n = d->world->inputs_n ? d->world->inputs_n : 1;
	r->walked.states = d->schedules;
	r->walked.edges = d->calls;
	for (size_t i = 0; i < d->labels_n && r->covered_n < TRIAL_COVERED_MAX; i++) {
		char step[32];

		snprintf(step, sizeof step, "call %zu", i + 1);
		r->covered[r->covered_n++] = (struct trial_covered){.workflow = d->function,
								    .step = arena_copy(d->arena, slice_str(step)).p,
								    .what = d->labels[i],
								    .may = d->may[i],
								    .seen = d->seen[i],
								    .reached = true,
								    .names = drill_cut_names,
								    .names_n = DRILL_CUTS_N};
	}
	leave_out(r, w->failed);
	if (!d->bases[PEOPLE_WILLING].steady && d->bases[PEOPLE_WILLING].known)
		leave_out(r, "outputs and effects are not compared: they differ from run to run without any mishap");
	if (d->late_left_out)
		leave_out(r, "an answer to `begun` after the lease: the worker's lease is more than 3 s of real time");
	leave_out(r, "a worker that is killed in the middle of a step: it is killed before and after each call");
	if (!d->world->inputs_n)
		leave_out(r, "inputs other than {}: a world file names some");
	say_assumed(d, r);
	say_silent(d, r);
}

/* ---- the engine ---- */

static enum hx_code define(struct hx_engine *engine, const char *path, struct hx_error *err)
{
	LOCAL_ARENA(arena, 16u << 20);
	LOCAL_STRBUF(text, FILE_BYTES_MAX);
	struct findings findings;

	findings_init(&findings, &arena);
	if (!file_load(path, &text, &findings))
		return error_set(err, HX_VALIDATION_ERROR, "%s cannot be read", path);
	return hx_engine_define(engine, path, text.p, err);
}

enum hx_code drill_run(const char *command, const struct drill_files *files, const struct trial_world *world,
		       const struct trial_options *options, struct arena *arena, struct trial_report *ret_report,
		       struct hx_error *err)
{
	struct hx_engine_options engine = {HX_SIZE(hx_engine_options), .store = "sqlite::memory:", .node = "drill"};
	struct drill *d = calloc(1, sizeof *d);
	struct test_clock clock;
	struct walk w = {0};
	enum hx_code code = HX_OK;

	if (!d || !(d->play = calloc(1, sizeof *d->play))) {
		free(d);
		return error_set(err, HX_NO_MEMORY, "no memory");
	}
	d->command = command;
	d->world = world;
	d->options = options;
	d->arena = arena;
	test_clock_init(&clock, clock_system());
	test_clock_stand(&clock);
	code = embed_open(&engine, &clock, &d->engine, err);
	for (size_t i = 0; i < files->n && !code; i++)
		code = define(d->engine, files->paths[i], err);
	if (!code)
		code = walk_all(d, &w, err);
	if (!code && !w.story && w.complete)
		check_sometimes(d, &w, err);
	if (!code)
		fill(d, &w, ret_report);
	if (!code)
		code = suggest(d, &w, ret_report, err);
	hx_engine_close(d->engine);
	arena_release(&d->play->arena);
	free(d->play);
	free(d);
	return code ? code : arena->failed ? arena_error(arena, err) : HX_OK;
}
