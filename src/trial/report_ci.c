/* What a trial came to, for the machines that build: JUnit's XML and SARIF 2.1.0. */
#include "base/json_string.h"
#include "base/json_write.h"
#include "trial/trial.h"

/* ---- JUnit: a case for each rule; the one that was broken has failed, and the others were not seen to their end ---- */

void trial_add_xml(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			strbuf_add_str(out, "&lt;");
		else if (*text == '>')
			strbuf_add_str(out, "&gt;");
		else if (*text == '&')
			strbuf_add_str(out, "&amp;");
		else if (*text == '"')
			strbuf_add_str(out, "&quot;");
		else if ((unsigned char)*text >= 0x20 || *text == '\n')
			strbuf_add_char(out, *text);
	}
}

static void add_failure(const struct trial_story *s, struct strbuf *out)
{
	strbuf_add_str(out, "<failure message=\"");
	trial_add_xml(out, s->broken);
	strbuf_add_str(out, "\">");
	if (s->file) {
		trial_add_xml(out, s->file);
		strbuf_addf(out, ":%zu", s->line);
	}
	for (size_t i = 0; i < s->events_n; i++) {
		strbuf_addf(out, "\n%zu. ", i + 1);
		trial_add_xml(out, s->events[i].who);
		strbuf_add_char(out, ' ');
		trial_add_xml(out, s->events[i].what);
	}
	strbuf_add_str(out, "</failure>");
}

void trial_report_junit(const struct trial_report *r, struct strbuf *out)
{
	strbuf_addf(out,
		    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		    "<testsuite name=\"hapax explore\" tests=\"%d\" failures=\"%d\" skipped=\"%d\">\n",
		    RULES_N, r->story ? 1 : 0, r->story ? RULES_N - 1 : 0);
	for (enum trial_rule rule = 0; rule < RULES_N; rule++) {
		strbuf_addf(out, "  <testcase classname=\"explore\" name=\"%s\">", trial_rule_name(rule));
		if (r->story && r->story->rule == rule)
			add_failure(r->story, out);
		else if (r->story)
			strbuf_add_str(out, "<skipped/>");
		strbuf_add_str(out, "</testcase>\n");
	}
	strbuf_addf(out, "  <system-out>%s: %llu %s, %llu %s</system-out>\n</testsuite>\n",
		    r->story      ? "found"
		    : r->complete ? "complete"
				  : "bounded",
		    (unsigned long long)r->walked.states, r->worker ? "schedules" : "states",
		    (unsigned long long)r->walked.edges, r->worker ? "calls" : "edges");
}

/* ---- SARIF ---- */

/* "location": with the place, if there is one, and the words. */
static void add_location(struct strbuf *out, const char *file, size_t line, const char *words)
{
	strbuf_add_char(out, '{');
	if (file && line) {
		json_more(out, "physicalLocation");
		strbuf_add_str(out, "{\"artifactLocation\":{\"uri\":");
		json_quote(slice_str(file), out);
		strbuf_addf(out, "},\"region\":{\"startLine\":%zu}}", line);
	}
	if (words) {
		json_more(out, "message");
		strbuf_add_str(out, "{\"text\":");
		json_quote(slice_str(words), out);
		strbuf_add_char(out, '}');
	}
	strbuf_add_char(out, '}');
}

static void add_flow(const struct trial_story *s, struct strbuf *out)
{
	strbuf_add_str(out, ",\"codeFlows\":[{\"threadFlows\":[{\"locations\":[");
	for (size_t i = 0; i < s->events_n; i++) {
		LOCAL_STRBUF(words, 4096);

		strbuf_addf(&words, "%s %s", s->events[i].who, s->events[i].what);
		strbuf_add_str(out, i ? ",{\"location\":" : "{\"location\":");
		add_location(out, s->events[i].file, s->events[i].line, words.p);
		strbuf_add_char(out, '}');
	}
	strbuf_add_str(out, "]}]}]");
}

static void add_result(const struct trial_story *s, struct strbuf *out)
{
	LOCAL_STRBUF(words, 4096);

	strbuf_addf(&words, "%s%s%s%s%s", s->broken, s->field ? ": " : "", s->field ? s->field : "", s->why ? ": " : "",
		    s->why ? s->why : "");
	strbuf_addf(out, "{\"ruleId\":\"%s\",\"level\":\"error\",\"message\":{\"text\":", trial_rule_name(s->rule));
	json_quote(strbuf_slice(&words), out);
	strbuf_add_str(out, "},\"locations\":[");
	add_location(out, s->file, s->line ? s->line : 1, NULL);
	strbuf_add_char(out, ']');
	if (s->events_n)
		add_flow(s, out);
	strbuf_add_char(out, '}');
}

void trial_report_sarif(const struct trial_report *r, struct strbuf *out)
{
	strbuf_add_str(out,
		       "{\"version\":\"2.1.0\",\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"runs\":["
		       "{\"tool\":{\"driver\":{\"name\":\"hapax explore\",\"version\":\"" HX_VERSION "\",\"rules\":[");
	for (enum trial_rule rule = 0; rule < RULES_N; rule++)
		strbuf_addf(out, "%s{\"id\":\"%s\"}", rule ? "," : "", trial_rule_name(rule));
	strbuf_add_str(out, "]}},\"results\":[");
	if (r->story)
		add_result(r->story, out);
	strbuf_add_str(out, "]}]}\n");
}
