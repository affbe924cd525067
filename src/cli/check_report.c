/* See check_report.h. */
#include "cli/check_report.h"

#include <string.h>

#include "base/error.h"

/* The word "error" or "warning" is what the colour is for. */
static void add_coloured(const char *line, enum finding_severity severity, struct strbuf *out)
{
	const char *name = finding_severity_name(severity);
	const char *at = strstr(line, name);

	strbuf_add(out, line, (size_t)(at - line));
	strbuf_addf(out, "\033[%sm%s\033[0m%s", severity == FINDING_ERROR ? "1;31" : "1;33", name, at + strlen(name));
}

void check_report_words(const struct findings *findings, size_t files_n, bool colour, struct strbuf *out)
{
	LOCAL_STRBUF(line, CHECK_REPORT_BYTES_MAX);

	for (const struct finding *f = findings->first; f; f = f->next) {
		strbuf_reset(&line);
		finding_print(f, &line);
		if (colour)
			add_coloured(line.p, f->severity, out);
		else
			strbuf_add_str(out, line.p);
		strbuf_add_char(out, '\n');
	}
	strbuf_addf(out, "%zu file%s, %zu error%s, %zu warning%s\n", files_n, files_n == 1 ? "" : "s", findings->errors,
		    findings->errors == 1 ? "" : "s", findings->warnings, findings->warnings == 1 ? "" : "s");
}

void check_report_json(const struct findings *findings, size_t files_n, struct strbuf *out)
{
	strbuf_add_str(out, "{\"findings\":[");
	for (const struct finding *f = findings->first; f; f = f->next) {
		finding_print_json(f, out);
		strbuf_add_str(out, f->next ? "," : "");
	}
	strbuf_addf(out, "],\"files\":%zu,\"errors\":%zu,\"warnings\":%zu}\n", files_n, findings->errors,
		    findings->warnings);
}

enum hx_code check_verdict(const struct findings *findings, bool strict, struct hx_error *err)
{
	if (findings->errors)
		return error_set(err, HX_DEFINITION_INVALID, "%zu error%s", findings->errors,
				 findings->errors == 1 ? "" : "s");
	if (strict && findings->warnings)
		return error_set(err, HX_DEFINITION_INVALID, "%zu warning%s, which --strict does not allow",
				 findings->warnings, findings->warnings == 1 ? "" : "s");
	return HX_OK;
}
