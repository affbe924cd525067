/* Parsing and help for any command, out of its row in a table; see command.h. */
#include "cli/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/excerpt.h"
#include "model/nearest.h"

#define HELP_OPTION "help"
#define ELLIPSIS "…"

bool command_store_is_missing(const char *url)
{
	return strncmp(url, "sqlite:", 7) == 0 && strcmp(url, "sqlite::memory:") != 0 && url[7] &&
	       access(url + 7, F_OK) != 0 && errno == ENOENT;
}

enum hx_code command_want_store(const char *url, const char *hint, struct hx_error *err)
{
	if (!command_store_is_missing(url))
		return HX_OK;
	return error_set(err, HX_NOT_FOUND, "%s: there is no store here (%s)", url + 7, hint);
}

const struct command *command_at(size_t i)
{
	static const struct command *const tables[] = {verbs_serving, verbs_flow, verbs_store};

	for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
		for (const struct command *command = tables[table]; command->noun; command++)
			if (i-- == 0)
				return command;
	return NULL;
}

const struct command_option *command_option(const struct command *command, size_t i)
{
	size_t own_n = 0;

	while (command->options && command->options[own_n])
		own_n++;
	ASSERT(i < COMMAND_OPTIONS_MAX);
	if (i < own_n)
		return command->options[i];
	if (!command->method)
		return NULL;
	return (command->to_gate ? gate_options : server_options)[i - own_n];
}

const struct command_exit *command_exit(const struct command *command, size_t i)
{
	for (const struct command_exit *shared = asking_exits; command->method && shared->code; shared++)
		if (i-- == 0)
			return shared;
	return command->exits && command->exits[i].code ? &command->exits[i] : NULL;
}

struct command_words command_words(const struct command *command)
{
	struct command_words words = {0};

	snprintf(words.text, sizeof words.text, "%s%s%s", command->noun, command->verb ? " " : "",
		 command->verb ? command->verb : "");
	return words;
}

/* ---- parsing ---- */

static const struct command_option *find_option(const struct command *command, struct slice name, size_t *ret_i)
{
	for (size_t i = 0; command_option(command, i); i++)
		if (slice_is(name, command_option(command, i)->name)) {
			*ret_i = i;
			return command_option(command, i);
		}
	return NULL;
}

static enum hx_code unknown_option(const struct command *command, struct slice name, struct hx_error *err)
{
	const char *known[COMMAND_OPTIONS_MAX + 1] = {HELP_OPTION};

	for (size_t i = 0; command_option(command, i); i++)
		known[i + 1] = command_option(command, i)->name;
	return error_set(err, HX_VALIDATION_ERROR, "%s has no option --%s%s", command_words(command).text,
			 excerpt_of(name).text, nearest_words(name, known, "--", "").text);
}

static enum hx_code check_word(const struct command_option *option, const char *value, struct hx_error *err)
{
	for (const char *const *word = option->words; word && *word; word++)
		if (strcmp(*word, value) == 0)
			return HX_OK;
	if (!option->words)
		return HX_OK;
	return error_set(err, HX_VALIDATION_ERROR, "--%s cannot be \"%s\"%s", option->name,
			 excerpt_of(slice_str(value)).text,
			 nearest_words(slice_str(value), option->words, "", "").text);
}

/* What stands after the dashes of "--output=x", and "output" for "-o"; NULL: this is no option. */
static const char *option_text(const struct command *command, const char *argument)
{
	if (strncmp(argument, "--", 2) == 0)
		return argument + 2;
	for (size_t i = 0; argument[0] == '-' && argument[1] && !argument[2] && command_option(command, i); i++)
		if (command_option(command, i)->letter == argument[1])
			return command_option(command, i)->name;
	return NULL;
}

/* One argument that is an option; *at moves on when the next one is its value. */
static enum hx_code take_option(const struct command *command, int argc, char *const argv[], int *at,
				struct command_args *args, struct hx_error *err)
{
	const char *text = option_text(command, argv[*at]), *equals = strchr(text, '=');
	struct slice name = equals ? slice_of(text, (size_t)(equals - text)) : slice_str(text);
	const struct command_option *option;
	bool digit_follows = *at + 1 < argc && argv[*at + 1][0] >= '0' && argv[*at + 1][0] <= '9';
	size_t i = 0;

	if (slice_is(name, HELP_OPTION) && !equals) {
		args->help = true;
		return HX_OK;
	}
	option = find_option(command, name, &i);
	if (!option)
		return unknown_option(command, name, err);
	if (!option->value && equals)
		return error_set(err, HX_VALIDATION_ERROR, "--%s takes no value", option->name);
	if (!option->value || (!equals && option->alone && !digit_follows)) {
		args->values[i] = "";
		return HX_OK;
	}
	if (!equals && *at + 1 >= argc)
		return error_set(err, HX_VALIDATION_ERROR, "--%s needs a value: --%s %s", option->name, option->name,
				 option->value);
	args->values[i] = equals ? equals + 1 : argv[++*at];
	if (*args->values[i] == '\0')
		return error_set(err, HX_VALIDATION_ERROR, "--%s is empty", option->name);
	return check_word(option, args->values[i], err);
}

static enum hx_code take_operand(const struct command *command, const char *text, bool dash_allowed,
				 struct command_args *args, struct hx_error *err)
{
	if (!command->operands || (text[0] == '-' && text[1] && !dash_allowed))
		return error_set(err, HX_VALIDATION_ERROR, "%s does not know what to do with \"%s\"",
				 command_words(command).text, excerpt_of(slice_str(text)).text);
	if (args->operands_n == COMMAND_OPERANDS_MAX)
		return error_set(err, HX_VALIDATION_ERROR, "%s takes at most %d of %s", command_words(command).text,
				 COMMAND_OPERANDS_MAX, command->operands);
	args->operands[args->operands_n++] = text;
	return HX_OK;
}

/* What no flag said: the environment (an empty variable says nothing), then the default. */
static void fill_in(const struct command *command, struct command_args *args)
{
	for (size_t i = 0; command_option(command, i); i++) {
		const struct command_option *option = command_option(command, i);
		const char *env = option->env ? getenv(option->env) : NULL;

		if (!args->values[i])
			args->values[i] = env && *env ? env : option->fallback;
	}
}

enum hx_code command_parse(const struct command *command, int argc, char *const argv[], struct command_args *ret_args,
			   struct hx_error *err)
{
	struct command_args args = {.command = command};
	bool only_operands = false; /* after "--" */
	enum hx_code code = HX_OK;

	for (int i = 0; i < argc && !code; i++) {
		if (only_operands)
			code = take_operand(command, argv[i], /* dash_allowed= */ true, &args, err);
		else if (strcmp(argv[i], "--") == 0)
			only_operands = true;
		else if (strcmp(argv[i], "-h") == 0)
			args.help = true;
		else if (option_text(command, argv[i]))
			code = take_option(command, argc, argv, &i, &args, err);
		else
			code = take_operand(command, argv[i], /* dash_allowed= */ command->dashed, &args, err);
	}
	if (code)
		return code;
	fill_in(command, &args);
	*ret_args = args;
	return HX_OK;
}

/* ---- are they all there? ---- */

static bool ends_with(struct slice text, const char *end)
{
	size_t n = strlen(end);

	return text.n >= n && memcmp(text.p + text.n - n, end, n) == 0;
}

static struct slice next_word(const char **at)
{
	const char *start = *at + strspn(*at, " ");

	*at = start + strcspn(start, " ");
	return slice_of(start, (size_t)(*at - start));
}

bool command_next_operand(const char **at, struct operand *ret)
{
	struct slice word = next_word(at);

	if (word.n == 0)
		return false;
	*ret = (struct operand){.optional = word.p[0] == '[', .many = ends_with(word, ELLIPSIS)};
	if (ret->optional)
		word = slice_of(word.p + 1, word.n - 2);
	if (ret->many)
		word.n -= strlen(ELLIPSIS);
	ret->text = word;
	if (strncmp(*at, " | ", 3) == 0) {
		*at += 3;
		(void)next_word(at); /* the other one */
	}
	return true;
}

static void count_operands(const struct command *command, size_t *ret_least, size_t *ret_most)
{
	const char *at = command->operands ? command->operands : "";
	struct operand operand;

	*ret_least = *ret_most = 0;
	while (command_next_operand(&at, &operand)) {
		*ret_least += !operand.optional;
		*ret_most += operand.many ? COMMAND_OPERANDS_MAX : 1;
	}
	if (command->fewer)
		*ret_least = 0;
}

static enum hx_code check_operands(const struct command_args *args, struct hx_error *err)
{
	const char *wanted = args->command->operands;
	struct command_words words = command_words(args->command);
	size_t least, most;

	count_operands(args->command, &least, &most);
	if (args->operands_n < least)
		return error_set(err, HX_VALIDATION_ERROR, "%s wants %s (hapax %s --help)", words.text, wanted,
				 words.text);
	if (args->operands_n > most)
		return error_set(err, HX_VALIDATION_ERROR, "%s wants %s, and \"%s\" is too many (hapax %s --help)",
				 words.text, wanted, excerpt_of(slice_str(args->operands[most])).text, words.text);
	for (size_t i = 0; i < args->operands_n; i++)
		if (!*args->operands[i])
			return error_set(err, HX_VALIDATION_ERROR, "%s wants %s, and one of these is empty", words.text,
					 wanted);
	return HX_OK;
}

enum hx_code command_check(const struct command_args *args, struct hx_error *err)
{
	const struct command_option *option;

	enum hx_code code = check_operands(args, err);

	for (size_t i = 0; (option = command_option(args->command, i)) && !code; i++)
		if (option->needed && !args->values[i])
			code = error_set(err, HX_VALIDATION_ERROR, "%s wants --%s %s, and --%s is missing: %s",
					 command_words(args->command).text, option->name, option->value, option->name,
					 option->help);
	return code;
}

bool command_has(const struct command *command, const char *option)
{
	size_t i;

	return find_option(command, slice_str(option), &i) != NULL;
}

const char *command_value(const struct command_args *args, const char *option)
{
	size_t i;

	return find_option(args->command, slice_str(option), &i) ? args->values[i] : NULL;
}

const char *command_value_or(const struct command_args *args, const char *option, const char *configured,
			     const char *fallback)
{
	const char *value = command_value(args, option);

	return value ? value : configured ? configured : fallback;
}

/* ---- help ---- */

#define HELP_COLUMN 20 /* where explanations begin, after two blanks */
#define USAGE_COLUMNS 100

const char *command_help_more(const struct command_option *option)
{
	return option->needed ? "; needed" : "";
}

static void help_line(const char *what, const char *words, const char *more, FILE *out)
{
	fprintf(out, "  %-*s %s%s\n", HELP_COLUMN, what, words, more);
}

/* "--db URL", "--wait [DURATION]" */
static void flag_of(const struct command_option *option, char ret_flag[COMMAND_WORDS_BYTES])
{
	const char *before = option->alone ? " [" : option->value ? " " : "", *after = option->alone ? "]" : "";

	snprintf(ret_flag, COMMAND_WORDS_BYTES, "--%s%s%s%s", option->name, before, option->value ? option->value : "",
		 after);
}

static void help_option(const struct command_option *option, FILE *out)
{
	char flag[COMMAND_WORDS_BYTES];

	flag_of(option, flag);
	help_line(flag, option->help, command_help_more(option), out);
	if (option->words) {
		fprintf(out, "  %-*s one of:", HELP_COLUMN, "");
		for (const char *const *word = option->words; *word; word++)
			fprintf(out, " %s", *word);
		fprintf(out, "\n");
	}
	if (option->letter)
		fprintf(out, "  %-*s for short: -%c %s\n", HELP_COLUMN, "", option->letter,
			option->value ? option->value : "");
	if (option->env)
		fprintf(out, "  %-*s environment: %s\n", HELP_COLUMN, "", option->env);
	if (option->fallback)
		fprintf(out, "  %-*s default: %s\n", HELP_COLUMN, "", option->fallback);
}

static void help_usage(const struct command *command, FILE *out)
{
	char flag[COMMAND_WORDS_BYTES];
	int column = fprintf(out, "usage: hapax %s%s%s", command_words(command).text, command->operands ? " " : "",
			     command->operands ? command->operands : "");

	for (size_t i = 0; command_option(command, i); i++) {
		flag_of(command_option(command, i), flag);
		if (column + (int)strlen(flag) + 3 > USAGE_COLUMNS)
			column = fprintf(out, "\n         ");
		column += fprintf(out, command_option(command, i)->needed ? " %s" : " [%s]", flag);
	}
	fprintf(out, "\n\n");
}

/* A code stands once, with all its reasons. */
static void help_exit(int number, const struct command_exit *reason, bool *begun, FILE *out)
{
	if (hx_code_exit(reason->code) != number)
		return;
	if (*begun)
		fprintf(out, "; %s", reason->when);
	else
		fprintf(out, "  %-*d %s", HELP_COLUMN, number, reason->when);
	*begun = true;
}

static void help_exits(const struct command *command, FILE *out)
{
	enum { ALWAYS = 3, CODES_MAX = 256 };
	static const struct command_exit always[ALWAYS] = {
		{HX_OK, "done"},
		{HX_VALIDATION_ERROR, "the command line is not valid"},
		{HX_INTERNAL, "an internal error; also: standard output cannot be written"},
	};

	fprintf(out, "\nexit codes:\n");
	for (int n = 0; n < CODES_MAX; n++) {
		bool begun = false;

		for (size_t i = 0; i < ALWAYS; i++)
			help_exit(n, &always[i], &begun, out);
		for (size_t i = 0; command_exit(command, i); i++)
			help_exit(n, command_exit(command, i), &begun, out);
		if (begun)
			fprintf(out, "\n");
	}
}

void command_help(const struct command *command, FILE *out)
{
	fprintf(out, "hapax %s: %s\n\n", command_words(command).text, command->summary);
	help_usage(command, out);
	for (size_t i = 0; command_option(command, i); i++)
		help_option(command_option(command, i), out);
	help_line("--" HELP_OPTION, "this text", "", out);
	help_exits(command, out);
}
