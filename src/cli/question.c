/* See question.h. */
#include "cli/question.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/excerpt.h"
#include "base/json_string.h"
#include "model/workflow.h"

#define FILE_BYTES_MAX (16u << 20)
#define PIECE_BYTES 65536

/* One value, and what it is called where it is wrong. */
struct given {
	const char *text;
	const char *name; /* of the member */
	char told[COMMAND_WORDS_BYTES];
	const struct command_place *to;
};

/* ---- the body ---- */

void question_member(struct client *client, const char *name)
{
	strbuf_addf(&client->body, "%s\"%s\":", client->body.n ? "," : "{", name);
}

void question_text(struct client *client, const char *name, const char *text)
{
	question_member(client, name);
	json_quote(slice_str(text), &client->body);
}

void question_end(struct client *client)
{
	strbuf_add_str(&client->body, client->body.n ? "}" : "{}");
}

/* ---- JSON ---- */

static enum hx_code question_read_all(FILE *file, const char *name, struct strbuf *out, struct hx_error *err)
{
	char piece[PIECE_BYTES];
	size_t n;

	while (!out->failed && (n = fread(piece, 1, sizeof piece, file)) > 0)
		strbuf_add(out, piece, n);
	if (out->failed)
		return strbuf_error(out, err);
	if (ferror(file))
		return error_set(err, HX_VALIDATION_ERROR, "%s cannot be read: %s", name, strerror(errno));
	return HX_OK;
}

enum hx_code question_read_file(const char *path, struct strbuf *out, struct hx_error *err)
{
	struct excerpt name = excerpt_of(slice_str(path));
	enum hx_code code;
	FILE *file;

	if (strcmp(path, "-") == 0)
		return question_read_all(stdin, "standard input", out, err);
	file = fopen(path, "re");
	if (!file)
		return error_set(err, HX_VALIDATION_ERROR, "%s cannot be read: %s", name.text, strerror(errno));
	code = question_read_all(file, name.text, out, err);
	fclose(file);
	return code;
}

/* No JSON is a lone dash, or begins with @. */
static enum hx_code fetch(const char *value, struct strbuf *out, struct hx_error *err)
{
	if (strcmp(value, "-") == 0 || value[0] == '@')
		return question_read_file(value + (value[0] == '@'), out, err);
	strbuf_add_str(out, value);
	return out->failed ? strbuf_error(out, err) : HX_OK;
}

enum hx_code question_json(struct client *client, const char *name, const char *given, const char *told,
			   struct hx_error *err)
{
	struct json value;
	LOCAL_STRBUF(text, FILE_BYTES_MAX);
	enum hx_code code = fetch(given, &text, err);

	if (!code && json_check(strbuf_slice(&text), err, &value))
		code = error_set(err, HX_VALIDATION_ERROR, "%s is not JSON: %s", told, err->detail);
	if (!code) {
		question_member(client, name);
		strbuf_add_slice(&client->body, value.raw);
	}
	return code;
}

static enum hx_code add_json(struct client *client, const struct given *given, struct hx_error *err)
{
	return question_json(client, given->name, given->text, given->told, err);
}

/* ---- numbers, times, words ---- */

static bool read_number(const char *text, bool negative_allowed, int64_t *ret)
{
	const char *digits = text + (negative_allowed && text[0] == '-');
	size_t n = strspn(digits, "0123456789");

	if (n == 0 || digits[n])
		return false;
	errno = 0;
	*ret = strtoll(text, NULL, 10);
	return errno == 0;
}

/* In digits alone, so that nobody has to know what 1e3 or 5.0 would have meant. */
static enum hx_code question_add_number(struct client *client, const struct given *given, struct hx_error *err)
{
	int64_t min = given->to->min, max = given->to->max ? given->to->max : INT64_MAX, n = 0;
	const char *unit = given->to->kind == PLACE_MONEY ? " of the smallest unit," : "";
	char range[80];

	if (read_number(given->text, min < 0, &n) && n >= min && n <= max) {
		question_member(client, given->name);
		strbuf_addf(&client->body, "%lld", (long long)n);
		return HX_OK;
	}
	if (max == INT64_MAX)
		snprintf(range, sizeof range, "from %lld on", (long long)min);
	else
		snprintf(range, sizeof range, "from %lld to %lld", (long long)min, (long long)max);
	return error_set(err, HX_VALIDATION_ERROR, "%s is a whole number%s %s, not %s", given->told, unit, range,
			 excerpt_of(slice_str(given->text)).text);
}

/* A duration is counted by the clock of this machine. */
static enum hx_code add_time(struct client *client, const struct given *given, struct hx_error *err)
{
	char at[WALL_TIME_TEXT_BYTES];
	struct wall_time time;
	int64_t ms;

	if (duration_parse("", slice_str(given->text), err, &ms) == HX_OK)
		time = wall_add_ms(clock_wall(clock_system()), ms);
	else if (wall_time_parse(given->told, slice_str(given->text), /* err= */ NULL, &time))
		return error_set(err, HX_VALIDATION_ERROR,
				 "%s is a time like 2026-11-15T05:39:00Z, or a duration like 5m, not \"%s\"",
				 given->told, excerpt_of(slice_str(given->text)).text);
	wall_time_format(time, at);
	question_text(client, given->name, at);
	return HX_OK;
}

static enum hx_code add_word(struct client *client, const struct given *given, struct hx_error *err)
{
	if (strcmp(given->text, "done") != 0 && strcmp(given->text, "not_done") != 0)
		return error_set(err, HX_VALIDATION_ERROR, "the outcome is done or not_done, not %s",
				 excerpt_of(slice_str(given->text)).text);
	question_text(client, given->name, given->text);
	return HX_OK;
}

/* a=b,c=d */
static enum hx_code add_names(struct client *client, const struct given *given, struct hx_error *err)
{
	const char *at = given->text;

	question_member(client, given->name);
	strbuf_add_char(&client->body, '{');
	for (;;) {
		size_t n = strcspn(at, ",");
		struct slice pair = slice_of(at, n);
		const char *equals = memchr(at, '=', n);

		if (!equals || equals == at || equals == at + n - 1)
			return error_set(err, HX_VALIDATION_ERROR, "%s is OLD=NEW, with commas between several, not %s",
					 given->told, excerpt_of(pair).text);
		json_quote(slice_of(at, (size_t)(equals - at)), &client->body);
		strbuf_add_char(&client->body, ':');
		json_quote(slice_of(equals + 1, n - (size_t)(equals - at) - 1), &client->body);
		at += n;
		if (!*at)
			break;
		at++;
		strbuf_add_char(&client->body, ',');
	}
	strbuf_add_char(&client->body, '}');
	return HX_OK;
}

static enum hx_code add_given(struct client *client, const struct given *given, struct hx_error *err)
{
	switch (given->to->kind) {
	case PLACE_NONE:
	case PLACE_HEADER: /* which the client has */
		break;
	case PLACE_QUERY:
		client_query(client, given->name, given->text);
		break;
	case PLACE_TEXT:
		question_text(client, given->name, given->text);
		break;
	case PLACE_JSON:
		return add_json(client, given, err);
	case PLACE_NUMBER:
	case PLACE_MONEY:
		return question_add_number(client, given, err);
	case PLACE_TIME:
		return add_time(client, given, err);
	case PLACE_NAMES:
		return add_names(client, given, err);
	case PLACE_WORD:
		return add_word(client, given, err);
	}
	return HX_OK;
}

/* ---- operands ---- */

static void add_by_key(struct client *client, const char *workflow, const char *key)
{
	client_path(client, "by-key");
	client_segment(client, workflow);
	client_segment(client, key);
}

/* By its id, or WORKFLOW/KEY: names of workflows and ids have no slash, and keys may have any. With a key of its own (--key) it is
 * the workflow. */
static enum hx_code add_run(struct client *client, const char *run, const char *key, struct hx_error *err)
{
	const char *slash = strchr(run, '/');
	char workflow[WORKFLOW_NAME_MAX + 1];

	if (key) {
		add_by_key(client, run, key);
		return HX_OK;
	}
	if (!slash) {
		client_encoded(client, run);
		return HX_OK;
	}
	if (slash == run || (size_t)(slash - run) > WORKFLOW_NAME_MAX || !slash[1])
		return error_set(err, HX_VALIDATION_ERROR, "%s is neither the id of a run nor WORKFLOW/KEY",
				 excerpt_of(slice_str(run)).text);
	snprintf(workflow, sizeof workflow, "%.*s", (int)(slash - run), run);
	add_by_key(client, workflow, slash + 1);
	return HX_OK;
}

/* The one of this name; NULL: it was left out, or the command has none. */
static const char *operand_of(const struct command_args *args, struct slice name)
{
	const char *at = args->command->operands ? args->command->operands : "";
	struct operand operand;

	for (size_t i = 0; i < args->operands_n && command_next_operand(&at, &operand); i++)
		if (slice_eq(operand.text, name))
			return args->operands[i];
	return NULL;
}

static enum hx_code add_path(struct client *client, const struct command_args *args, struct hx_error *err)
{
	enum hx_code code = HX_OK;

	for (const char *at = args->command->path; *at && !code;) {
		size_t n = strcspn(at, "{");
		struct slice name;
		const char *operand;

		strbuf_add(&client->path, at, n);
		at += n;
		if (!*at)
			break;
		name = slice_of(at + 1, strcspn(at, "}") - 1);
		operand = operand_of(args, name);
		ASSERT(operand); /* one that the path names is not left out */
		at += name.n + 2;
		if (slice_is(name, "RUN"))
			code = add_run(client, operand, command_value(args, "key"), err);
		else
			client_encoded(client, operand);
	}
	return code;
}

static bool path_names(const char *path, struct slice operand)
{
	char wanted[COMMAND_WORDS_BYTES];

	snprintf(wanted, sizeof wanted, "{%.*s}", SLICE_ARGS(operand));
	return strstr(path, wanted) != NULL;
}

/* Those that are not in the path. */
static enum hx_code add_operands(struct client *client, const struct command_args *args, struct hx_error *err)
{
	const char *at = args->command->operands ? args->command->operands : "";
	const struct command_place *to = args->command->members;
	struct operand operand;
	enum hx_code code = HX_OK;

	for (size_t i = 0; i < args->operands_n && command_next_operand(&at, &operand) && !code; i++) {
		if (path_names(args->command->path, operand.text))
			continue;

		struct given given = {.text = args->operands[i], .name = to->name, .to = to};

		snprintf(given.told, sizeof given.told, "the %s", to->name);
		code = add_given(client, &given, err);
		to++;
	}
	return code;
}

/* ---- options ---- */

static void add_switch(struct client *client, const struct command_option *option, bool is_given)
{
	const char *name = option->to.name ? option->to.name : option->name;
	const char *text = is_given ? option->to.given : option->to.otherwise;

	if (option->to.kind == PLACE_TEXT && text)
		question_text(client, name, text);
	else if (option->to.kind == PLACE_QUERY && is_given)
		client_query(client, name, "true");
	else if (option->to.kind == PLACE_QUERY && text)
		client_query(client, text, "true");
	else if (option->to.kind == PLACE_JSON && is_given) {
		question_member(client, name);
		strbuf_add_str(&client->body, "true");
	}
}

static enum hx_code add_option(struct client *client, const struct command_option *option, const char *value,
			       struct hx_error *err)
{
	struct given given = {
		.text = value, .name = option->to.name ? option->to.name : option->name, .to = &option->to};

	if (!option->value)
		add_switch(client, option, value != NULL);
	if (!option->value || !value)
		return HX_OK;
	snprintf(given.told, sizeof given.told, option->to.kind == PLACE_MONEY ? "the %s" : "--%s", option->name);
	return add_given(client, &given, err);
}

enum hx_code question_build(struct client *client, const struct command_args *args, struct hx_error *err)
{
	const struct command *command = args->command;
	enum hx_code code = add_path(client, args, err);

	if (!code)
		code = add_operands(client, args, err);
	for (size_t i = 0; command_option(command, i) && !code; i++)
		code = add_option(client, command_option(command, i), args->values[i], err);
	if (strcmp(command->method, "GET") != 0)
		question_end(client);
	return code;
}

enum hx_code question_ask(struct client *client, const struct command_args *args, struct json *ret_answer,
			  struct hx_error *err)
{
	enum hx_code code = question_build(client, args, err);

	return code ? code : client_ask(client, args->command->method, ret_answer, err);
}
