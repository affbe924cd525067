/*
 * hapax completion bash | zsh: a script that completes nouns, verbs, options and their values. What of it does not depend on the
 * commands stands in text/completion.bash and text/completion.zsh; where these say @COMMANDS@, @VERBS@ and @NOUNS@, the tables
 * of verbs are put in.
 *
 * Both scripts know what the tables know and ask nobody: no server, no store, no other package. What can follow an option or
 * stand as an operand is told by the word that stands for it in the help:
 *
 *   FILE, PATH   files         DIR    folders        JSON   files, after an @
 *   a|b          these words   and so are the `words` of an option; everything else is the user's own
 *
 * For bash a command is `words` (how many it has), `options` and `operands`, lists of words:
 *
 *   --json   a switch         --input=KIND   with a value        --wait=?   its value begins with a digit, and may be missing
 *   KIND     file, dir, json, any, or the words themselves, a|b; of operands one for each place, the last with a + again and again
 *
 * bash hands over words that it has cut at = and : too, and replaces only the last piece: the pieces are put together again to
 * be understood, and what bash will not replace is taken off the answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/excerpt.h"
#include "cli/local.h"
#include "cli/text.h"
#include "model/nearest.h"

/* ---- what both scripts are made of ---- */

static bool is_first_of_noun(size_t i)
{
	return i == 0 || strcmp(command_at(i - 1)->noun, command_at(i)->noun) != 0;
}

static void print_words(const char *const *words, char between)
{
	for (size_t i = 0; words[i]; i++) {
		if (i)
			putchar(between);
		fputs(words[i], stdout);
	}
}

/* Those that stand alone have none. */
static void print_verbs_of(size_t first, const char *between)
{
	const char *noun = command_at(first)->noun, *before = "";

	for (size_t i = first; command_at(i) && strcmp(command_at(i)->noun, noun) == 0; i++)
		if (command_at(i)->verb) {
			printf("%s%s", before, command_at(i)->verb);
			before = between;
		}
}

static bool has_verbs(size_t first)
{
	return command_at(first)->verb ||
	       (command_at(first + 1) && strcmp(command_at(first + 1)->noun, command_at(first)->noun) == 0);
}

/* ---- bash ---- */

/* The script's name for it. */
static const char *bash_kind(struct slice value)
{
	if (slice_is(value, "FILE") || slice_is(value, "PATH"))
		return "file";
	return slice_is(value, "DIR") ? "dir" : slice_is(value, "JSON") ? "json" : "any";
}

static void bash_option(const struct command_option *option)
{
	printf(" --%s", option->name);
	if (option->alone)
		printf("=?");
	else if (option->words)
		putchar('='), print_words(option->words, '|');
	else if (option->value)
		printf("=%s", bash_kind(slice_str(option->value)));
	if (option->letter)
		printf(" -%c=%s", option->letter, bash_kind(slice_str(option->value)));
}

static void bash_command(const struct command *command)
{
	const char *at = command->operands ? command->operands : "";
	struct operand operand;

	if (command->verb)
		printf("\t'%s %s') words=2 operands='", command->noun, command->verb);
	else
		printf("\t'%s '*) words=1 operands='", command->noun);
	while (command_next_operand(&at, &operand)) {
		bool is_words = memchr(operand.text.p, '|', operand.text.n);

		if (is_words)
			printf(" %.*s", SLICE_ARGS(operand.text));
		else
			printf(" %s", bash_kind(operand.text));
		printf("%s", operand.many ? "+" : "");
	}
	printf("' options='");
	for (size_t i = 0; command_option(command, i); i++)
		bash_option(command_option(command, i));
	printf(" --help' ;;\n");
}

static void bash_verbs(size_t first)
{
	printf("\t%s) verbs='", command_at(first)->noun);
	print_verbs_of(first, " ");
	printf("' ;;\n");
}

static void bash_noun(size_t first)
{
	printf("%s ", command_at(first)->noun);
}

/* ---- zsh ---- */

/* Between single quotes, and between brackets, of which it may have none. */
static void zsh_text(const char *text)
{
	for (; *text; text++)
		if (*text == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*text == '[' ? '(' : *text == ']' ? ')' : *text);
}

/* ":URL: ", ":FILE:_files". Where an operand may stand, an option may too: it is not in the way of one. */
static void zsh_value(struct slice value, const char *const *words, bool is_operand)
{
	printf(":%.*s:", SLICE_ARGS(value));
	if (words)
		putchar('('), print_words(words, ' '), putchar(')');
	else if (slice_is(value, "FILE") || slice_is(value, "PATH"))
		fputs("_files", stdout);
	else if (slice_is(value, "DIR"))
		fputs("_files -/", stdout);
	else if (slice_is(value, "JSON"))
		fputs("_hapax_json", stdout);
	else if (is_operand)
		printf("_guard \"^-*\" %.*s", SLICE_ARGS(value));
	else
		putchar(' ');
}

/* A value that may be missing cannot be told from an operand: it counts as one more of these. */
static bool zsh_option(const struct command_option *option)
{
	bool has_value = option->value && !option->alone;
	const char *equals = has_value ? "=" : "";

	if (option->letter)
		printf("\t\t\t'(-%c --%s)'{-%c,--%s%s}'[", option->letter, option->name, option->letter, option->name,
		       equals);
	else
		printf("\t\t\t'--%s%s[", option->name, equals);
	zsh_text(option->help);
	zsh_text(command_help_more(option));
	putchar(']');
	if (has_value)
		zsh_value(slice_str(option->value), option->words, /* is_operand= */ false);
	printf("' \\\n");
	return option->alone;
}

static void zsh_operand(const struct operand *operand)
{
	struct slice text = operand->text;

	printf("\t\t\t'%s", operand->many ? "*" : operand->optional ? ":" : "");
	if (memchr(text.p, '|', text.n)) {
		printf(":word:(");
		for (size_t i = 0; i < text.n; i++)
			putchar(text.p[i] == '|' ? ' ' : text.p[i]);
		putchar(')');
	} else {
		zsh_value(text, /* words= */ NULL, /* is_operand= */ true);
	}
	printf("' \\\n");
}

static void zsh_command(const struct command *command)
{
	const char *at = command->operands ? command->operands : "";
	int words_n = command->verb ? 2 : 1;
	struct operand operand;
	bool more = false;

	if (command->verb)
		printf("\t'%s %s')\n", command->noun, command->verb);
	else
		printf("\t'%s '*)\n", command->noun);
	printf("\t\tshift %d words\n\t\t(( CURRENT -= %d ))\n\t\t_arguments -S \\\n", words_n, words_n);
	for (size_t i = 0; command_option(command, i); i++)
		more |= zsh_option(command_option(command, i));
	while (command_next_operand(&at, &operand))
		zsh_operand(&operand);
	printf("%s\t\t\t'--help[this text]'\n\t\t;;\n", more ? "\t\t\t'*: :()' \\\n" : "");
}

/* 'serve:runs the engine', 'entity:create, show, list' */
static void zsh_noun(size_t i)
{
	printf("\t\t'%s:", command_at(i)->noun);
	if (!command_at(i)->verb)
		zsh_text(command_at(i)->summary);
	else
		print_verbs_of(i, ", ");
	printf("'\n");
}

static void zsh_verbs(size_t first)
{
	const char *noun = command_at(first)->noun;

	printf("\t%s)\n\t\tverbs=(\n", noun);
	for (size_t i = first; command_at(i) && strcmp(command_at(i)->noun, noun) == 0; i++)
		if (command_at(i)->verb) {
			printf("\t\t\t'%s:", command_at(i)->verb);
			zsh_text(command_at(i)->summary);
			printf("'\n");
		}
	printf("\t\t)\n\t\t;;\n");
}

/* ---- the script ---- */

static const struct shell {
	const char *name;
	const struct packed *script;
	void (*command)(const struct command *command);
	void (*verbs)(size_t first), (*noun)(size_t first); /* by the first command of the noun */
} shells[] = {
	{"bash", &text_completion_bash, bash_command, bash_verbs, bash_noun},
	{"zsh", &text_completion_zsh, zsh_command, zsh_verbs, zsh_noun},
};

/* A command without a verb stands after those of its noun that have one, since its pattern fits them too. */
static void print_commands(const struct shell *shell)
{
	for (int alone = 0; alone <= 1; alone++)
		for (size_t i = 0; command_at(i); i++)
			if ((command_at(i)->verb == NULL) == alone)
				shell->command(command_at(i));
}

static void print_verbs(const struct shell *shell)
{
	for (size_t i = 0; command_at(i); i++)
		if (is_first_of_noun(i) && has_verbs(i))
			shell->verbs(i);
}

static void print_nouns(const struct shell *shell)
{
	for (size_t i = 0; command_at(i); i++)
		if (is_first_of_noun(i))
			shell->noun(i);
}

static void print_script(const struct shell *shell)
{
	static const struct {
		const char *mark;
		void (*print)(const struct shell *shell);
	} parts[] = {{"@COMMANDS@", print_commands}, {"@VERBS@", print_verbs}, {"@NOUNS@", print_nouns}};
	char *script = packed_text(shell->script);
	const char *at = script;

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		const char *mark = strstr(at, parts[i].mark);

		ASSERT(mark);
		fwrite(at, 1, (size_t)(mark - at), stdout);
		parts[i].print(shell);
		at = mark + strlen(parts[i].mark);
		at += *at == '\n'; /* those who have lines have ended the last one */
	}
	fputs(at, stdout);
	free(script);
}

enum hx_code completion_run(const struct command_args *args, struct hx_error *err)
{
	const char *names[] = {shells[0].name, shells[1].name, NULL};
	struct slice wanted = slice_str(args->operands[0]);

	for (size_t i = 0; names[i]; i++)
		if (slice_is(wanted, names[i])) {
			print_script(&shells[i]);
			return HX_OK;
		}
	return error_set(err, HX_VALIDATION_ERROR, "no completion for \"%s\"%s", excerpt_of(wanted).text,
			 nearest_words(wanted, names, "", "").text);
}
