/*
 * hapax: reads which command is meant, runs it, says what went wrong, and turns the code into an exit code.
 *
 * Results go to standard output, everything else to standard error. With --json an error is an object too.
 */
#include <stdio.h>
#include <string.h>

#include "base/excerpt.h"
#include "base/json_write.h"
#include "cli/verb.h"
#include "db/sqlite_memory.h"
#include "model/nearest.h"

#define WORDS_MAX 96
#define ERROR_BYTES_MAX 4096

/* ---- help ---- */

static void help(FILE *out)
{
	fprintf(out, "hapax: moves a business process forward step by step, each step's effect once\n\n"
		     "usage: hapax COMMAND [OPTIONS]\n\n");
	for (size_t i = 0; command_at(i); i++)
		fprintf(out, "  %-18s %s\n", command_words(command_at(i)).text, command_at(i)->summary);
	fprintf(out, "\n  %-18s this text, or the options of a command\n  %-18s %s\n", "--help, help", "--version",
		HX_VERSION);
}

/* ---- finding the command ---- */

static const char any_verb[] = "";

/* The command of this noun and verb. A verb of NULL: the first of the noun; any_verb: the first that has one. */
static const struct command *main_find(const char *noun, const char *verb)
{
	for (size_t i = 0; command_at(i); i++) {
		const struct command *command = command_at(i);

		if (strcmp(command->noun, noun) != 0)
			continue;
		if (!verb || (command->verb && (verb == any_verb || strcmp(command->verb, verb) == 0)))
			return command;
	}
	return NULL;
}

static enum hx_code misplaced_option(const char *option, struct hx_error *err)
{
	static const char *const alone[] = {"--version", "--help", NULL};

	return error_set(err, HX_VALIDATION_ERROR, "there is no command \"%s\": options stand after the command%s",
			 excerpt_of(slice_str(option)).text, nearest_words(slice_str(option), alone, "\"", "\"").text);
}

static enum hx_code unknown_noun(const char *noun, struct hx_error *err)
{
	const char *known[WORDS_MAX + 1] = {NULL};
	struct suggestion near;
	size_t n = 0;

	if (noun[0] == '-')
		return misplaced_option(noun, err);
	while (n < WORDS_MAX - 2 && command_at(n)) {
		known[n] = command_at(n)->noun;
		n++;
	}
	known[n++] = "--help";
	known[n] = "--version";
	near = nearest_words(slice_str(noun), known, "\"", "\"");
	return error_set(err, HX_VALIDATION_ERROR, "there is no command \"%s\"%s", excerpt_of(slice_str(noun)).text,
			 *near.text ? near.text : ": `hapax --help` lists them");
}

static enum hx_code unknown_verb(const char *noun, const char *verb, struct hx_error *err)
{
	const char *known[WORDS_MAX + 1] = {NULL};
	char before[COMMAND_WORDS_BYTES];
	size_t n = 0;

	if (verb[0] == '-')
		return misplaced_option(verb, err);
	snprintf(before, sizeof before, "\"%s ", noun);
	for (size_t i = 0; command_at(i); i++)
		if (strcmp(command_at(i)->noun, noun) == 0 && command_at(i)->verb)
			known[n++] = command_at(i)->verb;
	return error_set(err, HX_VALIDATION_ERROR, "there is no command \"%s %s\"%s", noun,
			 excerpt_of(slice_str(verb)).text, nearest_words(slice_str(verb), known, before, "\"").text);
}

static void help_noun(const char *noun, FILE *out)
{
	bool first = true;

	for (size_t i = 0; command_at(i); i++)
		if (strcmp(command_at(i)->noun, noun) == 0) {
			fprintf(out, "%s", first ? "" : "\n");
			command_help(command_at(i), out);
			first = false;
		}
}

/* ---- running it ---- */

/* A full disk or a closed pipe must not look like success. */
static enum hx_code flush(struct hx_error *err)
{
	if (fflush(stdout) || ferror(stdout))
		return error_set(err, HX_INTERNAL, "standard output cannot be written");
	return HX_OK;
}

static void main_tell(const struct hx_error *err, bool json)
{
	(void)fflush(stdout); /* what was said before stands before it; that it failed is not what is told here */
	if (!json) {
		fprintf(stderr, "hapax: %s\n", err->detail);
		return;
	}
	LOCAL_STRBUF(text, ERROR_BYTES_MAX);
	strbuf_addf(&text, "{\"code\":\"%s\",\"title\":\"%s\"", hx_code_name(err->code), hx_code_text(err->code));
	json_more_word(&text, "detail", err->detail);
	strbuf_add_str(&text, "}\n");
	fputs(text.p, stderr);
}

static enum hx_code run_command(const struct command *command, int argc, char *argv[], struct hx_error *err)
{
	struct command_args args;
	enum hx_code code = command_parse(command, argc, argv, &args, err);

	if (code)
		return code;
	if (args.help)
		command_help(command, stdout);
	else
		code = verb_run(&args, err);
	return code ? code : flush(err);
}

/* hapax help [NOUN [VERB]], for those whose fingers type it so. */
static enum hx_code help_about(int argc, char *argv[], struct hx_error *err)
{
	const struct command *command = argc > 3 ? main_find(argv[2], argv[3]) : NULL;

	if (argc == 2)
		help(stdout);
	else if (!main_find(argv[2], /* verb= */ NULL))
		return unknown_noun(argv[2], err);
	else if (argc == 3)
		help_noun(argv[2], stdout);
	else if (command)
		command_help(command, stdout);
	else
		return unknown_verb(argv[2], argv[3], err);
	return flush(err);
}

static enum hx_code main_run(int argc, char *argv[], struct hx_error *err)
{
	const struct command *command;

	if (argc < 2) {
		help(stderr);
		return error_set(err, HX_VALIDATION_ERROR, "a command is missing");
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		help(stdout);
		return flush(err);
	}
	if (strcmp(argv[1], "help") == 0)
		return help_about(argc, argv, err);
	if (strcmp(argv[1], "--version") == 0) {
		printf("hapax %s\n", hx_version());
		return flush(err);
	}
	if (!main_find(argv[1], /* verb= */ NULL))
		return unknown_noun(argv[1], err);
	if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
		help_noun(argv[1], stdout);
		return flush(err);
	}
	command = argc > 2 ? main_find(argv[1], argv[2]) : NULL;
	if (command)
		return run_command(command, argc - 3, argv + 3, err);
	command = main_find(argv[1], /* verb= */ NULL);
	if (!command->verb && !(main_find(argv[1], any_verb) && argc > 2 && argv[2][0] != '-'))
		return run_command(command, argc - 2, argv + 2, err);
	if (argc < 3)
		return error_set(err, HX_VALIDATION_ERROR, "\"%s\" alone does nothing: see hapax %s --help", argv[1],
				 argv[1]);
	return unknown_verb(argv[1], argv[2], err);
}

static bool wants_json(int argc, char *argv[])
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--json") == 0)
			return true;
	return false;
}

int main(int argc, char *argv[])
{
	struct hx_error err = {0};
	enum hx_code code;

	sqlite_memory_own();
	code = main_run(argc, argv, &err);

	if (code) {
		err.code = code;
		main_tell(&err, wants_json(argc, argv));
	}
	return hx_code_exit(code);
}
