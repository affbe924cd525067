/*
 * hapax graph: the picture of a definition, as SVG, on standard output or in a file. Needs no server and no store.
 *
 * A definition with errors is not drawn: what is wrong with it goes to standard error, as hapax check says it, so that it
 * does not end up in a file that was to be a picture.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/check_report.h"
#include "cli/local.h"
#include "cli/out_file.h"
#include "model/graph_picture.h"
#include "model/load.h"

#define ARENA_BYTES_MAX (1u << 30)

/* Warnings are told too, beside the picture. */
static enum hx_code report(const struct findings *findings, bool json, struct hx_error *err)
{
	LOCAL_STRBUF(out, CHECK_REPORT_BYTES_MAX);

	if (json)
		check_report_json(findings, 1, &out);
	else
		check_report_words(findings, 1, /* colour= */ false, &out);
	if (findings->errors || findings->warnings)
		fputs(out.p, stderr);
	return check_verdict(findings, /* strict= */ false, err);
}

/* One file; the same rules as when it is checked alone. NULL: it has errors. */
static const struct definition *load(const char *path, struct arena *arena, struct findings *findings)
{
	const struct definition *definition = NULL;
	LOCAL_STRBUF(text, (size_t)WORKFLOW_TEXT_BYTES_MAX + 1);

	if (file_load(path, &text, findings))
		definition_parse(path, strbuf_slice(&text), arena, findings, &definition);
	if (definition)
		definition_set_check(&definition, 1, /* config= */ NULL, findings);
	return definition;
}

/* Who names a .png gets no SVG in it. What has no ending may be anything: a pipe, a device. */
static enum hx_code check_ending(const char *path, struct hx_error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');

	if (!dot || dot == name || strcasecmp(dot, ".svg") == 0)
		return HX_OK;
	return error_set(err, HX_VALIDATION_ERROR,
			 "--output %s: a picture is SVG: its name ends with .svg, not with %s", path, dot);
}

static enum hx_code draw(const struct definition *definition, const char *path, struct hx_error *err)
{
	LOCAL_STRBUF(svg, GRAPH_BYTES_MAX);
	enum hx_code code = graph_picture(definition, &svg, err);

	if (!code && strcmp(path, "-") == 0)
		fwrite(svg.p, 1, svg.n, stdout); /* main looks whether that went well */
	else if (!code)
		code = out_file_write(path, strbuf_slice(&svg), err);
	return code;
}

enum hx_code graph_run(const struct command_args *args, struct hx_error *err)
{
	const char *path = command_value(args, "output");
	enum hx_code code = check_ending(path, err);
	const struct definition *definition;
	struct findings findings;

	if (code)
		return code;
	LOCAL_ARENA(arena, ARENA_BYTES_MAX);
	findings_init(&findings, &arena);
	definition = load(args->operands[0], &arena, &findings);
	code = report(&findings, command_value(args, "json"), err);
	return code ? code : draw(definition, path, err);
}
