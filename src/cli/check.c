/*
 * hapax check: definitions read and checked as the server would do it at boot, without a server and without a store.
 *
 * Every finding goes to standard output with its file and line, and a last line sums up. Whether each claim has a
 * janitor is a question about the configuration, so it is asked only when one is given.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/terminal.h"
#include "model/load.h"

#define ARENA_BYTES_MAX (1u << 30)
#define OUTPUT_BYTES_MAX (64u << 20)

static const struct command_option option_config = {
	.name = "config",
	.value = "FILE",
	.env = "HAPAX_CONFIG",
	.help = "check this configuration too, and that a janitor covers every claim;\n"
		"                       without it, coverage is not checked",
};

static const struct command_option option_strict = {
	.name = "strict",
	.help = "warnings are errors",
};

/* The word "error" or "warning" is what the colour is for. */
static void add_coloured(const char *line, enum finding_severity severity, struct strbuf *out)
{
	const char *name = finding_severity_name(severity);
	const char *at = strstr(line, name);

	strbuf_add(out, line, (size_t)(at - line));
	strbuf_addf(out, "\033[%sm%s\033[0m%s", severity == FINDING_ERROR ? "1;31" : "1;33", name, at + strlen(name));
}

static void add_words(const struct findings *findings, const struct definition_set *set, struct strbuf *out)
{
	bool colour = terminal_wants_colour();
	struct strbuf line;

	strbuf_init(&line, OUTPUT_BYTES_MAX);
	for (const struct finding *f = findings->first; f; f = f->next) {
		strbuf_reset(&line);
		finding_print(f, &line);
		if (colour)
			add_coloured(line.p, f->severity, out);
		else
			strbuf_add_str(out, line.p);
		strbuf_add_char(out, '\n');
	}
	strbuf_release(&line);
	strbuf_addf(out, "%zu file%s, %zu error%s, %zu warning%s\n", set->files_n, set->files_n == 1 ? "" : "s",
		    findings->errors, findings->errors == 1 ? "" : "s", findings->warnings,
		    findings->warnings == 1 ? "" : "s");
}

static void add_json(const struct findings *findings, const struct definition_set *set, struct strbuf *out)
{
	strbuf_add_str(out, "{\"findings\":[");
	for (const struct finding *f = findings->first; f; f = f->next) {
		finding_print_json(f, out);
		strbuf_add_str(out, f->next ? "," : "");
	}
	strbuf_addf(out, "],\"files\":%zu,\"errors\":%zu,\"warnings\":%zu}\n", set->files_n, findings->errors,
		    findings->warnings);
}

/* With a configuration that has errors itself, coverage would blame definitions for what was not read. */
static void check_set(const struct definition_set *set, const char *config_path, struct arena *arena,
		      struct findings *findings)
{
	struct config config;
	size_t errors = findings->errors;

	if (config_path)
		config_load(config_path, arena, findings, &config);
	definition_set_check(set->items, set->n, config_path && findings->errors == errors ? &config : NULL, findings);
}

static enum hx_code verdict(const struct findings *findings, bool strict, struct hx_error *err)
{
	if (findings->errors)
		return error_set(err, HX_DEFINITION_INVALID, "%zu error%s", findings->errors,
				 findings->errors == 1 ? "" : "s");
	if (strict && findings->warnings)
		return error_set(err, HX_DEFINITION_INVALID, "%zu warning%s, which --strict does not allow",
				 findings->warnings, findings->warnings == 1 ? "" : "s");
	return HX_OK;
}

static enum hx_code check(const struct command_args *args, struct hx_error *err)
{
	const char *config = command_value(args, &option_config);
	struct definition_set set = {0};
	struct findings findings;
	struct arena arena;
	struct strbuf out;
	enum hx_code code;

	if (args->operands_n == 0)
		return error_set(err, HX_VALIDATION_ERROR,
				 "check needs the PATH of a definition or of a folder of them");
	arena_init(&arena, ARENA_BYTES_MAX);
	findings_init(&findings, &arena);
	strbuf_init(&out, OUTPUT_BYTES_MAX);
	for (size_t i = 0; i < args->operands_n; i++)
		definition_set_load(args->operands[i], &arena, &findings, &set);
	check_set(&set, config, &arena, &findings);
	if (command_value(args, &option_json))
		add_json(&findings, &set, &out);
	else
		add_words(&findings, &set, &out);
	fputs(out.p, stdout);
	code = out.failed ? strbuf_error(&out, err) : verdict(&findings, command_value(args, &option_strict), err);
	strbuf_release(&out);
	arena_release(&arena);
	return code;
}

const struct command command_check = {
	.noun = "check",
	.operands = "PATH…",
	.summary = "checks definitions: files, or the *.json of folders",
	.options = {&option_config, &option_strict, &option_json},
	.exits = {{HX_DEFINITION_INVALID, "there are errors; with --strict also: there are warnings"}},
	.run = check,
};
