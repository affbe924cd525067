/* See findings.h. Foreign names and paths are made printable where they are printed, not where they are kept. */
#include "model/findings.h"

#include <stdint.h>

#include "base/excerpt.h"
#include "base/json_string.h"
#include "model/text.h"

void findings_init(struct findings *findings, struct arena *arena)
{
	*findings = (struct findings){.arena = arena};
	findings->last = &findings->first;
}

static const char *kept_text(struct findings *findings, const char *text)
{
	return text && *text ? arena_copy(findings->arena, slice_str(text)).p : "";
}

static void findings_append(struct findings *findings, struct finding *finding)
{
	finding->next = NULL;
	*findings->last = finding;
	findings->last = &finding->next;
}

/* What cannot be kept is still seen: one finding, part of the struct itself, stands for all of them. */
static void note_overflow(struct findings *findings, const struct finding *lost)
{
	struct finding *o = &findings->overflow;

	if (!o->text) {
		*o = (struct finding){.severity = lost->severity, .file = "", .workflow = "", .step = ""};
		o->requester = "";
		o->rule = "limit";
		o->text = "there is more than can be shown here";
		findings_append(findings, o);
	}
	if (lost->severity == FINDING_ERROR)
		o->severity = FINDING_ERROR;
}

static struct finding *findings_keep(struct findings *findings, const struct finding *finding, const char *format,
				     va_list args)
{
	struct finding *f;

	if (findings->kept >= FINDINGS_MAX)
		return NULL;
	f = arena_alloc(findings->arena, sizeof *f);
	if (!f)
		return NULL;
	*f = *finding;
	f->file = kept_text(findings, finding->file);
	f->workflow = kept_text(findings, finding->workflow);
	f->step = kept_text(findings, finding->step);
	f->requester = kept_text(findings, finding->requester);
	f->rule = finding->rule ? finding->rule : "";
	f->text = text_vprintf(findings->arena, format, args);
	return f->file && f->workflow && f->step && f->requester && f->text ? f : NULL;
}

void findings_addv(struct findings *findings, struct finding finding, const char *format, va_list args)
{
	struct finding *kept = findings_keep(findings, &finding, format, args);

	if (finding.severity == FINDING_ERROR)
		findings->errors++;
	else
		findings->warnings++;
	if (!kept) {
		note_overflow(findings, &finding);
		return;
	}
	findings->kept++;
	findings_append(findings, kept);
}

void findings_add(struct findings *findings, struct finding finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	findings_addv(findings, finding, format, args);
	va_end(args);
}

static size_t sort_key(const struct findings *findings, const struct finding *finding)
{
	return finding == &findings->overflow ? SIZE_MAX : finding->line;
}

/* Insertion is quadratic, and FINDINGS_MAX bounds it. */
void findings_sort(struct findings *findings, struct finding **from)
{
	struct finding *rest = *from;

	*from = NULL;
	while (rest) {
		struct finding *f = rest;
		struct finding **at = from;

		rest = rest->next;
		while (*at && sort_key(findings, *at) <= sort_key(findings, f))
			at = &(*at)->next;
		f->next = *at;
		*at = f;
	}
	while (*from)
		from = &(*from)->next;
	findings->last = from;
}

const char *finding_severity_name(enum finding_severity severity)
{
	return severity == FINDING_ERROR ? "error" : "warning";
}

static void add_printable(struct strbuf *out, const char *text)
{
	struct slice rest = slice_str(text);
	char piece[EXCERPT_PIECE_BYTES];

	while (rest.n > 0)
		strbuf_add(out, piece, excerpt_take(&rest, /* quoted= */ false, piece));
}

static void add_named(struct strbuf *out, const char **separator, const char *noun, const char *name)
{
	if (!*name)
		return;
	strbuf_addf(out, "%s%s ", *separator, noun);
	add_printable(out, name);
	*separator = ", ";
}

void finding_print(const struct finding *finding, struct strbuf *out)
{
	const char *separator = " ";

	if (*finding->file) {
		add_printable(out, finding->file);
		if (finding->line)
			strbuf_addf(out, ":%zu", finding->line);
		strbuf_add_str(out, ": ");
	}
	strbuf_addf(out, "%s:", finding_severity_name(finding->severity));
	add_named(out, &separator, "workflow", finding->workflow);
	add_named(out, &separator, "step", finding->step);
	add_named(out, &separator, "requester", finding->requester);
	if (separator[0] == ',')
		strbuf_add_char(out, ':');
	if (*finding->rule)
		strbuf_addf(out, " %s:", finding->rule);
	strbuf_add_char(out, ' ');
	add_printable(out, finding->text);
}

void findings_print(const struct findings *findings, FILE *out)
{
	for (const struct finding *f = findings->first; f; f = f->next) {
		LOCAL_STRBUF(line, 1u << 16);
		finding_print(f, &line);
		fprintf(out, "%s\n", line.p);
	}
}

void findings_log(const struct findings *findings, struct log *log, const char *if_error, const char *if_warning)
{
	for (const struct finding *f = findings->first; f; f = f->next) {
		bool error = f->severity == FINDING_ERROR;

		LOCAL_STRBUF(line, LOG_LINE_BYTES_MAX);
		finding_print(f, &line);
		log_write(log, error ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, error ? if_error : if_warning,
			  LOG_FIELDS(log_text("file", f->file), log_int("line", (int64_t)f->line),
				     log_slice("finding", strbuf_slice(&line))));
	}
}

void finding_print_json(const struct finding *finding, struct strbuf *out)
{
	const struct {
		const char *name, *value;
	} texts[] = {{"workflow", finding->workflow},
		     {"step", finding->step},
		     {"requester", finding->requester},
		     {"rule", finding->rule},
		     {"text", finding->text}};

	strbuf_addf(out, "{\"severity\":\"%s\",\"file\":", finding_severity_name(finding->severity));
	json_quote(slice_str(finding->file), out);
	strbuf_addf(out, ",\"line\":%zu", finding->line);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		strbuf_addf(out, ",\"%s\":", texts[i].name);
		json_quote(slice_str(texts[i].value), out);
	}
	strbuf_add_char(out, '}');
}
