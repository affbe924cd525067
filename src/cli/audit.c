/*
 * hapax audit: does the store keep its promises? See flow/audit.h for what is looked at.
 *
 * It opens the store itself, to read, also beside running servers; with --bundle it reads that file, and no store. A person at a terminal sees how far it has come; the result
 * is one line, or one object.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/excerpt.h"
#include "base/json_write.h"
#include "cli/local.h"
#include "cli/question.h"
#include "cli/terminal.h"
#include "engine/audit.h"
#include "flow/evidence.h"

#define JSON_BYTES_MAX 8192

/* ---- how far it has come ---- */

static int64_t rows_of(const struct audit_counts *c)
{
	return c->subjects + c->history_rows + c->steps + c->accounts + c->entries + c->batches + c->items;
}

static void audit_tell(void *context, const struct auditor *auditor)
{
	struct mono_time *told = context;
	const struct audit_counts *c = &auditor->counts;
	char line[200], percent[16] = "";

	if (!auditor->pass || !terminal_is_due(told))
		return;
	if (auditor->percent >= 0)
		snprintf(percent, sizeof percent, " %d %%", auditor->percent);
	snprintf(line, sizeof line, "audit: %s%s, subjects %lld, rows %lld", auditor->pass, percent,
		 (long long)c->subjects, (long long)rows_of(c));
	terminal_tell(line);
}

/* ---- the result ---- */

/* "run_01h…, history row 5" */
static void name_place(const struct audit_finding *f, struct strbuf *out)
{
	if (f->subject[0])
		strbuf_add_str(out, excerpt_of(slice_str(f->subject)).text); /* --json has all of it */
	else
		strbuf_addf(out, "subject %lld", (long long)f->id);
	if (f->row)
		strbuf_addf(out, ", %s %lld", f->row, (long long)f->seq);
}

static enum hx_code broken(const struct audit_finding *f, struct hx_error *err)
{
	LOCAL_STRBUF(place, JSON_BYTES_MAX);

	name_place(f, &place);
	return error_set(err, HX_PROMISE_BROKEN, "%s: %s: expected %s, found %s", place.p, f->what, f->expected,
			 f->found);
}

static void add_finding(const struct audit_finding *f, struct strbuf *out)
{
	char id[24];

	snprintf(id, sizeof id, "%lld", (long long)f->id);
	json_more(out, "violation");
	strbuf_add_char(out, '{');
	json_more_word(out, "subject", f->subject[0] ? f->subject : id);
	json_more_int(out, "id", f->id);
	if (f->row) {
		json_more_word(out, "row", f->row);
		json_more_int(out, "seq", f->seq);
	}
	json_more_word(out, "what", f->what);
	json_more_word(out, "expected", f->expected);
	json_more_word(out, "found", f->found);
	strbuf_add_char(out, '}');
}

static void add_result(const struct auditor *a, int64_t ms, struct strbuf *out)
{
	const struct audit_counts *c = &a->counts;

	strbuf_add_char(out, '{');
	json_more_bool(out, "whole", !a->finding.there);
	json_more_int(out, "subjects", c->subjects);
	json_more_int(out, "historyRows", c->history_rows);
	json_more_int(out, "steps", c->steps);
	json_more_int(out, "accounts", c->accounts);
	json_more_int(out, "ledgerEntries", c->entries);
	json_more_int(out, "batches", c->batches);
	json_more_int(out, "items", c->items);
	json_more_int(out, "ms", ms);
	if (a->finding.there)
		add_finding(&a->finding, out);
	strbuf_add_char(out, '}');
}

static enum hx_code audit_it(const char *url, struct auditor *auditor, struct strbuf *out, struct hx_error *err)
{
	struct mono_time began = clock_mono(clock_system());
	struct mono_time told = {0};
	bool watched = terminal_is_watched();
	struct audit_options options = {.url = url, .told = watched ? audit_tell : NULL, .context = &told};
	enum hx_code code = audit_store(&options, auditor, err);
	int64_t ms = (clock_mono(clock_system()).ns - began.ns) / 1000000;

	if (watched)
		terminal_tell("");
	if (!code)
		add_result(auditor, ms, out);
	return code || !auditor->finding.there ? code : broken(&auditor->finding, err);
}

/* ---- a bundle ---- */

static void add_evidence(const struct evidence *e, struct strbuf *out)
{
	strbuf_add_char(out, '{');
	json_more_bool(out, "whole", !e->finding.there);
	json_more_word(out, "bundle", e->subject[0] ? e->subject : "evidence");
	json_more_time(out, "at", e->at);
	json_more_int(out, "historyRows", e->rows);
	json_more_int(out, "ledgerEntries", e->entries);
	json_more_word(out, "head", e->head[0] ? e->head : NULL);
	if (e->finding.there)
		add_finding(&e->finding, out);
	strbuf_add_char(out, '}');
}

static enum hx_code audit_bundle(const char *path, struct strbuf *out, struct hx_error *err)
{
	LOCAL_STRBUF(text, EVIDENCE_BYTES_MAX + 2);
	enum hx_code code = question_read_file(path, &text, err);
	struct evidence evidence;

	if (code)
		return code;
	code = evidence_check(strbuf_slice(&text), &evidence, err);
	if (code)
		return error_set(err, HX_VALIDATION_ERROR, "%s: %s", excerpt_of(slice_str(path)).text, err->detail);
	add_evidence(&evidence, out);
	return evidence.finding.there ? broken(&evidence.finding, err) : HX_OK;
}

enum hx_code audit_make(const struct command_args *args, struct strbuf *out, struct hx_error *err)
{
	const char *url = command_value(args, "db"), *bundle = command_value(args, "bundle");
	struct auditor *auditor;
	enum hx_code code;

	if (bundle)
		return audit_bundle(bundle, out, err);
	code = command_want_store(url, STORE_HINT, err);
	if (code)
		return code;
	auditor = malloc(sizeof *auditor);
	if (!auditor)
		return error_set(err, HX_NO_MEMORY, "the audit");
	code = audit_it(url, auditor, out, err);
	auditor_release(auditor);
	free(auditor);
	return code;
}
