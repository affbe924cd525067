/* What a trial came to, in words and as JSON. */
#include <stdio.h>

#include "base/json_string.h"
#include "base/json_write.h"
#include "trial/trial.h"

#define WHO_COLUMNS 14

/* ---- words ---- */

static void add_count(struct strbuf *out, uint64_t n)
{
	char digits[32];
	int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);

	for (int i = 0; i < length; i++) {
		strbuf_add_char(out, digits[i]);
		if (i + 1 < length && (length - i - 1) % 3 == 0)
			strbuf_add_char(out, ',');
	}
}

static void add_counted(struct strbuf *out, uint64_t n, const char *what, const char *end)
{
	add_count(out, n);
	strbuf_addf(out, " %s%s%s", what, n == 1 ? "" : "s", end);
}

void trial_events_words(const struct trial_story *s, struct strbuf *out)
{
	for (size_t i = 0; i < s->events_n; i++) {
		const struct trial_event *e = &s->events[i];

		strbuf_addf(out, "  %2zu. %-*s %s", i + 1, WHO_COLUMNS, e->who, e->what);
		if (e->line)
			strbuf_addf(out, "  (%s:%zu)", e->file, e->line);
		strbuf_add_char(out, '\n');
	}
}

static void story_words(const struct trial_story *s, struct strbuf *out)
{
	strbuf_addf(out, "found: %s: %s\n", trial_rule_name(s->rule), s->broken);
	if (s->field && !s->line)
		strbuf_addf(out, "  function %s%s%s, %s: %s\n", s->workflow, s->step ? ", step " : "",
			    s->step ? s->step : "", s->field, s->why);
	else if (s->field)
		strbuf_addf(out, "  %s:%zu: workflow %s%s%s, %s: %s\n", s->file, s->line, s->workflow,
			    s->step ? ", step " : "", s->step ? s->step : "", s->field, s->why);
	if (s->assumption)
		strbuf_addf(out, "  to blame: assumption %s of docs/guarantees.md, and not the definition\n",
			    s->assumption);
	strbuf_addf(out, "\n%s, %u mishap%s, %zu events%s:\n", s->scenario, s->mishaps, s->mishaps == 1 ? "" : "s",
		    s->events_n, s->shortest ? "" : " (there may be a shorter way)");
	trial_events_words(s, out);
	strbuf_add_char(out, '\n');
}

/* Only what was tried, and came out clean. */
static void suggestion_words(const struct trial_suggestion *s, struct strbuf *out)
{
	strbuf_addf(out, "tried: %s, %s", s->change, s->where);
	if (s->line)
		strbuf_addf(out, " (%s:%zu)", s->file, s->line);
	strbuf_addf(out, ": explored again, 0 found, %s", s->complete ? "complete" : "bounded");
	if (s->provided)
		strbuf_addf(out, "; provided that %s", s->provided);
	strbuf_add_char(out, '\n');
}

static const char *bit_name(const struct trial_covered *c, int bit)
{
	return c->names ? c->names[bit] : trial_may_name((enum trial_may)bit);
}

static int bits_n(const struct trial_covered *c)
{
	return c->names ? c->names_n : MAYS_N;
}

static void names(const struct trial_covered *c, unsigned bits, struct strbuf *out)
{
	for (int may = 0; may < bits_n(c); may++)
		if (bits & 1u << may)
			strbuf_addf(out, " %s", bit_name(c, may));
}

static void covered_words(const struct trial_covered *c, struct strbuf *out)
{
	strbuf_addf(out, "  %s %s", c->workflow, c->step);
	if (c->what[0])
		strbuf_addf(out, ": %s:", c->what);
	names(c, c->seen, out);
	if (!c->reached)
		strbuf_add_str(out, " not reached");
	else if (c->may & ~c->seen) {
		strbuf_add_str(out, c->seen ? "; not reached:" : " not reached:");
		names(c, c->may & ~c->seen, out);
	}
	strbuf_add_char(out, '\n');
}

static void bounds_words(const struct trial_options *o, struct strbuf *out)
{
	add_counted(out, o->nodes, "node", ", ");
	add_counted(out, o->callers, "caller", "; at most ");
	strbuf_addf(out, "%u crash%s, ", o->crashes, o->crashes == 1 ? "" : "es");
	add_counted(out, o->pauses, "pause", ", ");
	add_counted(out, o->lost, "lost answer", ", ");
	add_counted(out, o->failures, "failure", ", ");
	strbuf_addf(out, "%u of these together", o->mishaps);
}

/* Of a function: how many schedules, and what was cut in them. */
static void worker_words(const struct trial_report *r, const struct trial_options *o, struct strbuf *out)
{
	add_counted(out, r->scenarios_n, "input", ", ");
	add_counted(out, r->walked.states, "schedule", ", ");
	add_counted(out, r->walked.edges, "call", "; at most ");
	add_counted(out, o->crashes, "worker", " killed, ");
	add_counted(out, o->pauses, "late call", ", ");
	add_counted(out, o->lost, "lost or doubled call", ", ");
	strbuf_addf(out, "%u of these together\n", o->mishaps);
}

static void verdict_words(const struct trial_report *r, struct strbuf *out)
{
	if (r->story)
		strbuf_add_str(out, "stopped at the first that was found\n");
	else if (r->complete)
		strbuf_add_str(out, "complete: every schedule within these bounds, and no rule was broken\n");
	else if (r->complete_mishaps == -1u)
		strbuf_add_str(out, "bounded: not all schedules were seen; in those that were no rule was broken\n");
	else
		strbuf_addf(out,
			    "bounded: all schedules with up to %u mishap%s, and some with more; no rule was broken\n",
			    r->complete_mishaps, r->complete_mishaps == 1 ? "" : "s");
}

/* Whoever reads "no rule was broken" is told at once of what that says nothing. */
static void unreached_words(const struct trial_report *r, struct strbuf *out)
{
	size_t n = 0;

	for (size_t i = 0; i < r->covered_n; i++)
		n += !r->covered[i].reached;
	if (n && !r->story)
		strbuf_addf(
			out,
			"but %zu of %zu steps and calls were reached by none of them, so nothing is said of these: name inputs "
			"that lead there, \"world\": {\"inputs\": [ … ]} in the definition, or --world FILE\n",
			n, r->covered_n);
}

void trial_verdict_words(const struct trial_report *r, const struct trial_options *o, struct strbuf *out)
{
	if (r->worker) {
		worker_words(r, o, out);
		verdict_words(r, out);
		return;
	}
	add_counted(out, r->scenarios_n, "scenario", ", ");
	add_counted(out, r->walked.states, "state", ", ");
	add_counted(out, r->walked.edges, "edge", ", ");
	add_counted(out, r->walked.crash_points, "crash point", "; ");
	bounds_words(o, out);
	strbuf_add_char(out, '\n');
	verdict_words(r, out);
	unreached_words(r, out);
}

void trial_report_words(const struct trial_report *r, const struct trial_options *o, struct strbuf *out)
{
	if (r->story)
		story_words(r->story, out);
	for (size_t i = 0; i < r->suggestions_n; i++)
		suggestion_words(&r->suggestions[i], out);
	strbuf_add_str(out, r->suggestions_n ? "\n" : "");
	trial_verdict_words(r, o, out);
	strbuf_add_str(out, "covered:\n");
	for (size_t i = 0; i < r->covered_n; i++)
		covered_words(&r->covered[i], out);
	for (size_t i = 0; i < r->left_out_n; i++)
		strbuf_addf(out, "left out: %s\n", r->left_out[i]);
}

/* ---- JSON ---- */

static void add_text(struct strbuf *out, const char *member, const char *text)
{
	json_more_text(out, member, text ? slice_str(text) : slice_of(NULL, 0));
}

static void add_list(struct strbuf *out, const struct trial_covered *c, const char *member, unsigned bits)
{
	json_more(out, member);
	strbuf_add_char(out, '[');
	for (int may = 0, n = 0; may < bits_n(c); may++)
		if (bits & 1u << may)
			strbuf_addf(out, "%s\"%s\"", n++ ? "," : "", bit_name(c, may));
	strbuf_add_char(out, ']');
}

static void event_json(const struct trial_event *e, struct strbuf *out)
{
	strbuf_add_char(out, '{');
	add_text(out, "who", e->who);
	add_text(out, "what", e->what);
	if (e->line) {
		add_text(out, "file", e->file);
		json_more_int(out, "line", (int64_t)e->line);
	}
	strbuf_add_char(out, '}');
}

void trial_events_json(const struct trial_story *s, struct strbuf *out)
{
	for (size_t i = 0; i < s->events_n; i++) {
		strbuf_add_str(out, i ? "," : "");
		event_json(&s->events[i], out);
	}
}

static void story_json(const struct trial_story *s, struct strbuf *out)
{
	json_more(out, "found");
	strbuf_add_char(out, '{');
	add_text(out, "rule", trial_rule_name(s->rule));
	add_text(out, "broken", s->broken);
	add_text(out, "scenario", s->scenario);
	json_more_int(out, "mishaps", s->mishaps);
	json_more_bool(out, "shortest", s->shortest);
	add_text(out, "file", s->file);
	json_more_int(out, "line", (int64_t)s->line);
	add_text(out, "workflow", s->workflow);
	add_text(out, "step", s->step);
	add_text(out, "action", s->action);
	add_text(out, "field", s->field);
	add_text(out, "why", s->why);
	add_text(out, "assumption", s->assumption);
	json_more(out, "story");
	strbuf_add_char(out, '[');
	trial_events_json(s, out);
	strbuf_add_str(out, "]}");
}

static void suggestions_json(const struct trial_report *r, struct strbuf *out)
{
	json_more(out, "tried");
	strbuf_add_char(out, '[');
	for (size_t i = 0; i < r->suggestions_n; i++) {
		const struct trial_suggestion *s = &r->suggestions[i];

		strbuf_add_str(out, i ? ",{" : "{");
		add_text(out, "change", s->change);
		add_text(out, "where", s->where);
		add_text(out, "file", s->file);
		json_more_int(out, "line", (int64_t)s->line);
		add_text(out, "provided", s->provided);
		json_more_int(out, "found", 0);
		json_more_bool(out, "complete", s->complete);
		strbuf_add_char(out, '}');
	}
	strbuf_add_char(out, ']');
}

static void covered_json(const struct trial_covered *c, struct strbuf *out)
{
	strbuf_add_char(out, '{');
	add_text(out, "workflow", c->workflow);
	add_text(out, "step", c->step);
	add_text(out, "calls", c->what[0] ? c->what : NULL);
	add_text(out, "file", c->file);
	json_more_int(out, "line", (int64_t)c->line);
	json_more_bool(out, "reached", c->reached);
	add_list(out, c, "seen", c->seen);
	add_list(out, c, "notSeen", c->may & ~c->seen);
	strbuf_add_char(out, '}');
}

static void bounds_json(const struct trial_options *o, struct strbuf *out)
{
	json_more(out, "bounds");
	strbuf_add_char(out, '{');
	json_more_int(out, "nodes", o->nodes);
	json_more_int(out, "callers", o->callers);
	json_more_int(out, "crashes", o->crashes);
	json_more_int(out, "pauses", o->pauses);
	json_more_int(out, "lost", o->lost);
	json_more_int(out, "failures", o->failures);
	json_more_int(out, "mishaps", o->mishaps);
	json_more_int(out, "edges", (int64_t)o->edges_max);
	json_more_int(out, "seed", (int64_t)o->seed);
	strbuf_add_char(out, '}');
}

void trial_report_json(const struct trial_report *r, const struct trial_options *o, struct strbuf *out)
{
	strbuf_add_char(out, '{');
	add_text(out, "verdict", r->story ? "found" : r->complete ? "complete" : "bounded");
	if (r->story)
		story_json(r->story, out);
	if (r->story)
		suggestions_json(r, out);
	json_more_int(out, r->worker ? "inputs" : "scenarios", (int64_t)r->scenarios_n);
	json_more_int(out, r->worker ? "schedules" : "states", (int64_t)r->walked.states);
	json_more_int(out, r->worker ? "calls" : "edges", (int64_t)r->walked.edges);
	if (!r->worker)
		json_more_int(out, "crashPoints", (int64_t)r->walked.crash_points);
	bounds_json(o, out);
	json_more(out, "covered");
	strbuf_add_char(out, '[');
	for (size_t i = 0; i < r->covered_n; i++) {
		strbuf_add_str(out, i ? "," : "");
		covered_json(&r->covered[i], out);
	}
	strbuf_add_str(out, "],\"leftOut\":[");
	for (size_t i = 0; i < r->left_out_n; i++) {
		strbuf_add_str(out, i ? "," : "");
		json_quote(slice_str(r->left_out[i]), out);
	}
	strbuf_add_str(out, "]}\n");
}
