/*
 * hapax check: definitions read and checked as the server would do it at boot, without a server and without a store.
 *
 * Every finding goes to standard output with its file and line, and a line sums up; what `hapax explore` finds at once is hinted at
 * after that, where a person looks or it is asked for, and is no error. Whether each claim has a
 * janitor is a question about the configuration, so it is asked only when one is given.
 */
#include <stdio.h>

#include "cli/check_report.h"
#include "cli/local.h"
#include "cli/terminal.h"
#include "model/load.h"

#define ARENA_BYTES_MAX (1u << 30)

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

enum hx_code check_run(const struct command_args *args, struct hx_error *err)
{
	const char *config = command_value(args, "config");
	struct definition_set set = {0};
	struct findings findings;
	LOCAL_ARENA(arena, ARENA_BYTES_MAX);

	findings_init(&findings, &arena);
	LOCAL_STRBUF(out, CHECK_REPORT_BYTES_MAX);
	for (size_t i = 0; i < args->operands_n; i++)
		definition_set_load(args->operands[i], &arena, &findings, &set);
	check_set(&set, config, &arena, &findings);
	if (command_value(args, "json"))
		check_report_json(&findings, set.files_n, &out);
	else
		check_report_words(&findings, set.files_n, terminal_wants_colour(), &out);
	if (!findings.errors && !command_value(args, "json") &&
	    (command_value(args, "explore") || terminal_is_watched()))
		explore_hint(&set, &arena, &out);
	fputs(out.p, stdout);
	return out.failed ? strbuf_error(&out, err) : check_verdict(&findings, command_value(args, "strict"), err);
}
