/* What examples came to: in words, as JSON, and as JUnit's XML. */
#include "base/json_write.h"
#include "trial/example.h"

static size_t reached_n(const struct example_report *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->covered_n; i++)
		n += r->covered[i].reached;
	return n;
}

static void result_words(const struct example_report *r, const struct example_result *result, struct strbuf *out)
{
	strbuf_addf(out, "%s %s\n", result->passed ? "ok    " : "FAILED", result->example->name);
	for (size_t i = 0; i < result->differences_n; i++) {
		const struct example_difference *d = &result->differences[i];

		strbuf_addf(out, "  %s:%zu: %s: expected %s, was %s\n", r->file, d->line, d->path, d->expected, d->was);
	}
	if (result->real)
		strbuf_addf(out, "  on a real server: %s\n", result->real[0] ? result->real : "the same end");
	if (!result->passed) {
		strbuf_add_str(out, "  what happened:\n");
		trial_events_words(result->story, out);
	}
}

void example_report_words(const struct example_report *r, struct strbuf *out)
{
	for (size_t i = 0; i < r->n; i++)
		result_words(r, &r->results[i], out);
	strbuf_addf(out, "%s: %zu test%s, %zu failed; %zu of %zu steps and calls reached\n", r->file, r->n,
		    r->n == 1 ? "" : "s", r->failed, reached_n(r), r->covered_n);
	for (size_t i = 0; i < r->covered_n; i++) {
		const struct trial_covered *c = &r->covered[i];

		if (!c->reached)
			strbuf_addf(out, "  not reached: %s %s%s%s (%s:%zu)\n", c->workflow, c->step,
				    c->what[0] ? ": " : "", c->what, c->file, c->line);
	}
}

static void result_json(const struct example_result *result, struct strbuf *out)
{
	strbuf_add_char(out, '{');
	json_more_text(out, "name", slice_str(result->example->name));
	json_more_int(out, "line", (int64_t)result->example->line);
	json_more_bool(out, "passed", result->passed);
	json_more(out, "differences");
	strbuf_add_char(out, '[');
	for (size_t i = 0; i < result->differences_n; i++) {
		const struct example_difference *d = &result->differences[i];

		strbuf_add_str(out, i ? ",{" : "{");
		json_more_text(out, "path", slice_str(d->path));
		json_more_text(out, "expected", slice_str(d->expected));
		json_more_text(out, "was", slice_str(d->was));
		json_more_int(out, "line", (int64_t)d->line);
		strbuf_add_char(out, '}');
	}
	strbuf_add_char(out, ']');
	if (result->end)
		json_more_json(out, "end", slice_str(result->end));
	if (result->real)
		json_more_text(out, "real", slice_str(result->real[0] ? result->real : "the same end"));
	strbuf_add_str(out, ",\"story\":[");
	if (!result->passed)
		trial_events_json(result->story, out);
	strbuf_add_str(out, "]}");
}

void example_report_json(const struct example_report *r, struct strbuf *out)
{
	strbuf_add_char(out, '{');
	json_more_text(out, "file", slice_str(r->file));
	json_more_int(out, "failed", (int64_t)r->failed);
	json_more_int(out, "reached", (int64_t)reached_n(r));
	json_more_int(out, "steps", (int64_t)r->covered_n);
	json_more(out, "tests");
	strbuf_add_char(out, '[');
	for (size_t i = 0; i < r->n; i++) {
		strbuf_add_str(out, i ? "," : "");
		result_json(&r->results[i], out);
	}
	strbuf_add_str(out, "]}");
}

static void failure_xml(const struct example_report *r, const struct example_result *result, struct strbuf *out)
{
	LOCAL_STRBUF(words, 1u << 20);

	result_words(r, result, &words);
	strbuf_add_str(out, "<failure message=\"");
	trial_add_xml(out, result->differences_n ? result->differences[0].path : "");
	strbuf_add_str(out, "\">");
	trial_add_xml(out, words.p);
	strbuf_add_str(out, "</failure>");
}

void example_report_junit(const struct example_report *r, struct strbuf *out)
{
	strbuf_add_str(out, "<testsuite name=\"");
	trial_add_xml(out, r->file);
	strbuf_addf(out, "\" tests=\"%zu\" failures=\"%zu\">\n", r->n, r->failed);
	for (size_t i = 0; i < r->n; i++) {
		strbuf_add_str(out, "  <testcase classname=\"");
		trial_add_xml(out, r->file);
		strbuf_add_str(out, "\" name=\"");
		trial_add_xml(out, r->results[i].example->name);
		strbuf_add_str(out, "\">");
		if (!r->results[i].passed)
			failure_xml(r, &r->results[i], out);
		strbuf_add_str(out, "</testcase>\n");
	}
	strbuf_add_str(out, "</testsuite>\n");
}
