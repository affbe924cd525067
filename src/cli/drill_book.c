/* What was executed, as far as it shows, and the words of a story: see drill.h. */
#include <stdarg.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/json_number.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "cli/drill_parts.h"

const char *drill_worker_name(unsigned worker)
{
	static const char *const names[DRILL_CAST_MAX] = {"worker-a", "worker-b", "worker-c", "worker-d",
							  "worker-e", "worker-f", "worker-g", "worker-h"};

	return names[worker];
}

const char *drill_plain(struct drill_play *p, const char *text)
{
	LOCAL_STRBUF(out, 65536);

	for (const char *at = text; *at;) {
		bool found = false;

		for (size_t i = 0; i < p->runs_n && !found; i++) {
			size_t n = strlen(p->runs[i]);

			if (strncmp(at, p->runs[i], n) != 0)
				continue;
			found = true;
			at += n;
			strbuf_add_str(&out, "RUN");
			if (i)
				strbuf_addf(&out, "%zu", i + 1);
		}
		if (!found)
			strbuf_add_char(&out, *at++);
	}
	return arena_keep(&p->arena, &out).p;
}

void drill_tell(struct drill_play *p, const char *who, enum trial_lane lane, const char *format, ...)
{
	struct trial_story *s = &p->story;
	LOCAL_STRBUF(text, 4096);
	char words[2000];
	va_list args;

	if (s->events_n >= TRIAL_EVENTS_MAX)
		return;
	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	s->events[s->events_n++] = (struct trial_event){.who = who, .what = drill_plain(p, words), .lane = lane};
}

struct drill_effect *drill_effect_of(struct drill_play *p, const char *run, const char *name, bool undo)
{
	struct drill_effect *e = p->effects;

	for (; e < p->effects + p->effects_n; e++)
		if (strcmp(e->run, run) == 0 && strcmp(e->name, name) == 0 && e->undo == undo)
			return e;
	if (p->effects_n == DRILL_EFFECTS_MAX)
		return NULL;
	*e = (struct drill_effect){.run = run, .name = name, .undo = undo};
	p->effects_n++;
	return e;
}

static const char *entry_name(struct drill_play *p, struct json entry)
{
	const char *name = drill_member_text(p, entry, "name");
	struct json n;
	LOCAL_STRBUF(text, 2048);

	strbuf_add_str(&text, name ? name : "");
	if (json_find(entry, slice_str("n"), &n) && !slice_is(n.raw, "0"))
		strbuf_addf(&text, "#%.*s", SLICE_ARGS(n.raw));
	return arena_keep(&p->arena, &text).p;
}

static bool is(const char *text, const char *what)
{
	return text && strcmp(text, what) == 0;
}

/* What the first word about a step says of it. */
static void note_kind(struct drill_play *p, struct drill_effect *e, struct json entry)
{
	const char *effect = drill_member_text(p, entry, "effect");
	const char *unknown = drill_member_text(p, entry, "onUnknown");

	if (effect)
		e->claimed = is(effect, "claimed");
	if (unknown) {
		e->probes = is(unknown, "probe");
		e->retries = is(unknown, "retry");
	}
}

/*
 * An outcome. It is one of an execution, but for that of a probe: somebody had begun the step, and this one has not. An outcome that
 * is said again (in another call, since the first was refused) is no second execution, unless there was another try between.
 */
static void note_outcome(struct drill_play *p, struct drill_effect *e, unsigned worker, struct json entry, bool done)
{
	struct json more;
	bool again = json_find(entry, slice_str("retryAfterMs"), &more);
	bool probed = e->begun_ever && !e->said[worker] && (e->claimed || e->probes);

	if (e->said[worker] == 2)
		return;
	e->said[worker] = !again ? 2 : e->begun_ever ? 1 : 0;
	if (probed)
		return;
	e->executed++;
	if (!done)
		return;
	e->done++;
	e->order = e->order ? e->order : ++p->outcomes;
	if (json_find(entry, slice_str("output"), &more))
		e->output = json_trust(arena_copy(&p->arena, more.raw)); /* the call does not last */
	for (size_t i = 0; i < p->ledger_n; i++)
		if (p->ledger[i].worker == worker && !p->ledger[i].step)
			p->ledger[i].step = e->name;
}

static void book_step(struct drill_play *p, unsigned worker, const char *run, const char *name, bool undo,
		      struct json entry, struct strbuf *words)
{
	struct drill_effect *e = drill_effect_of(p, run, name, undo);
	const char *state = drill_member_text(p, entry, "state");
	struct json error;

	if (!e || !state)
		return;
	note_kind(p, e, entry);
	if (is(state, "begun")) {
		e->said[worker] = 1;
		e->begun_ever = true;
		strbuf_addf(words, "begins %s%s", undo ? "to undo " : "", name);
		return;
	}
	note_outcome(p, e, worker, entry, is(state, "done"));
	strbuf_addf(words, "%s %s: %s", undo ? "has undone" : "has executed", name, state);
	if (json_find(entry, slice_str("error"), &error)) {
		const char *message = drill_member_text(p, error, "message");

		strbuf_addf(words, " (%s)", message ? message : "");
	}
}

static void book_entry(struct drill_play *p, unsigned worker, const char *run, struct json entry, struct strbuf *words)
{
	const char *kind = drill_member_text(p, entry, "kind"), *name = entry_name(p, entry);

	if (is(kind, "step") || is(kind, "undo"))
		book_step(p, worker, run, name, is(kind, "undo"), entry, words);
	else if (is(kind, "sleep"))
		strbuf_addf(words, "sleeps (%s)", name);
	else if (is(kind, "event"))
		strbuf_addf(words, "waits for the event %s", drill_member_text(p, entry, "event"));
	else if (is(kind, "approval"))
		strbuf_addf(words, "asks for approval: %s", name);
	else if (is(kind, "child"))
		strbuf_addf(words, "starts %s as %s", drill_member_text(p, entry, "workflow"), name);
	else if (is(kind, "compensate")) {
		struct drill_effect *e = drill_effect_of(p, run, name, /* undo= */ false);

		if (e)
			e->to_undo = true;
	} else
		strbuf_addf(words, "%s %s", kind ? kind : "an entry", name);
}

static void add_brief(struct drill_play *p, struct json end, const char *member, struct strbuf *words)
{
	struct json brief;

	if (!json_find(end, slice_str(member), &brief))
		return;
	const char *kind = drill_member_text(p, brief, "kind"), *name = drill_member_text(p, brief, "name");

	if (is(kind, "end"))
		strbuf_add_str(words, "its end");
	else
		strbuf_addf(words, "%s %s", kind ? kind : "?", name ? name : "");
}

static void book_end(struct drill_play *p, struct json end, struct strbuf *words)
{
	const char *state = drill_member_text(p, end, "state");

	if (words->n)
		strbuf_add_str(words, "; ");
	if (!is(state, "diverged")) {
		strbuf_addf(words, "ends its turn: %s", state ? state : "?");
		return;
	}
	strbuf_add_str(words, "diverges: the journal has ");
	add_brief(p, end, "expected", words);
	strbuf_add_str(words, ", the code asks for ");
	add_brief(p, end, "found", words);
	LOCAL_STRBUF(broken, 1024);
	strbuf_add_str(&broken, "the code does not go the same way again: its journal has ");
	add_brief(p, end, "expected", &broken);
	strbuf_add_str(&broken, ", and it asks for ");
	add_brief(p, end, "found", &broken);
	drill_break(p, RULE_SAME, NULL, "%s", broken.p);
	p->why =
		"what is between the steps has to come to the same each time: time, chance and the world belong into steps, or are asked of ctx";
}

const char *drill_book(struct drill_play *p, unsigned worker, const char *run, struct json body)
{
	uint64_t hash = hash_bytes(0, body.raw.p, body.raw.n);
	bool again = hash == p->cast[worker].last_body;
	struct json entries, entry, end;
	LOCAL_STRBUF(words, 8192);

	p->cast[worker].last_body = hash;
	if (again)
		return worker + 1 == p->cast_n ? "says it again" : "";
	if (json_find(body, slice_str("entries"), &entries))
		for (struct json_iter it = json_iter_of(entries); json_iter_element(&it, &entry);) {
			size_t n = words.n;

			if (n)
				strbuf_add_str(&words, "; ");
			size_t with = words.n;

			book_entry(p, worker, run, entry, &words);
			if (words.n == with) { /* nothing to say about it */
				words.n = n;
				words.p[n] = '\0';
			}
		}
	if (json_find(body, slice_str("end"), &end) && json_type(end) == JSON_OBJECT)
		book_end(p, end, &words);
	return arena_keep(&p->arena, &words).p;
}

void drill_book_taken(struct drill_play *p, const char *run, struct json body)
{
	struct json entries, entry;

	if (!json_find(body, slice_str("entries"), &entries))
		return;
	for (struct json_iter it = json_iter_of(entries); json_iter_element(&it, &entry);) {
		const char *kind = drill_member_text(p, entry, "kind"), *name;
		size_t i = 0;

		if (!is(kind, "event") && !is(kind, "approval"))
			continue;
		name = entry_name(p, entry);
		while (i < p->asked_n && (strcmp(p->asked[i].run, run) != 0 || strcmp(p->asked[i].name, name) != 0))
			i++;
		if (i == p->asked_n && i < DRILL_EFFECTS_MAX)
			p->asked[p->asked_n++] = (struct drill_asked){
				.run = run, .name = name, .event = drill_member_text(p, entry, "event")};
	}
}

void drill_book_ledger(struct drill_play *p, unsigned worker, const char *name, const char *key)
{
	const struct trial_service_said *said = trial_world_service(p->drill->world, name);

	name = arena_copy(&p->arena, slice_str(name)).p; /* the call's own does not last */
	bool dedupes = key[0] && (!said || !said->dedupes_said || said->dedupes);

	for (size_t i = 0; i < p->ledger_n && dedupes; i++)
		if (strcmp(p->ledger[i].name, name) == 0 && strcmp(p->ledger[i].key, key) == 0) {
			drill_tell(p, name, LANE_SERVICE, "is called again with the key %s, and does nothing", key);
			return;
		}
	if (p->ledger_n == DRILL_LEDGER_MAX)
		return;
	p->ledger[p->ledger_n++] = (struct drill_ledger){
		.name = name, .key = arena_copy(&p->arena, slice_str(key)).p, .worker = worker};
	if (key[0])
		drill_tell(p, name, LANE_SERVICE, "does it for %s, key %s", drill_worker_name(worker), key);
	else
		drill_tell(p, name, LANE_SERVICE, "does it for %s, without a key", drill_worker_name(worker));
}
