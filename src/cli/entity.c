/*
 * hapax entity create | show | fire | list | history | resolve: the entities of a workflow, over HTTP.
 *
 * With --json the answer of the server is printed as it came. Without, it is put into words and tables.
 */
#include <stdio.h>
#include <string.h>

#include "base/excerpt.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "cli/client.h"
#include "cli/table.h"

#define LINE_BYTES_MAX (64u << 20)

static const struct command_option option_data = {
	.name = "data",
	.value = "JSON",
	.help = "what the entity carries along [default: {}]",
};
static const struct command_option option_input = {
	.name = "input",
	.value = "JSON",
	.help = "the input of the action [default: null]",
};
static const struct command_option option_version = {
	.name = "version",
	.value = "N",
	.help = "fire only if the entity still has this version",
};
static const struct command_option option_status = {
	.name = "status",
	.value = "STATUS",
	.help = "only those in this status",
};
static const struct command_option option_held = {
	.name = "held",
	.help = "only those whose claim is held for a person",
};
static const struct command_option option_output = {
	.name = "output",
	.value = "JSON",
	.help = "with done: the output that the action would have given",
};

/* ---- operands and options ---- */

static enum hx_code check_operands(const struct command_args *args, size_t least, size_t most, struct hx_error *err)
{
	char words[COMMAND_WORDS_BYTES];

	if (args->operands_n < least || args->operands_n > most)
		return error_set(err, HX_VALIDATION_ERROR, "%s wants %s", command_words(args->command, words),
				 args->command->operands);
	for (size_t i = 0; i < args->operands_n; i++)
		if (!*args->operands[i])
			return error_set(err, HX_VALIDATION_ERROR, "%s wants %s, and one of them is empty",
					 command_words(args->command, words), args->command->operands);
	return HX_OK;
}

/* Opens the client on /api/v1/NOUN/OPERAND…, with so many of the operands. */
static enum hx_code start(struct client *client, const struct command_args *args, const char *path, size_t operands_n,
			  struct hx_error *err)
{
	enum hx_code code = client_init(client, args, err);

	client_path(client, path);
	for (size_t i = 0; i < operands_n; i++)
		client_segment(client, args->operands[i]);
	return code;
}

static void begin_member(struct strbuf *body, const char *name)
{
	strbuf_add_str(body, body->n ? "," : "{");
	strbuf_addf(body, "\"%s\":", name);
}

/* `"name":JSON` out of an option, if it was given. */
static enum hx_code add_json(struct client *client, const struct command_args *args,
			     const struct command_option *option, struct hx_error *err)
{
	const char *text = command_value(args, option);
	struct json value;

	if (!text)
		return HX_OK;
	if (json_check(slice_str(text), err, &value))
		return error_set(err, HX_VALIDATION_ERROR, "--%s is not JSON: %s", option->name, err->detail);
	begin_member(&client->body, option->name);
	strbuf_add_slice(&client->body, value.raw);
	return HX_OK;
}

static enum hx_code add_version(struct client *client, const struct command_args *args, struct hx_error *err)
{
	const char *text = command_value(args, &option_version);

	if (!text)
		return HX_OK;
	if (text[strspn(text, "0123456789")] || text[0] == '0')
		return error_set(err, HX_VALIDATION_ERROR, "--version is a whole number from 1 on, not %s",
				 excerpt_of(slice_str(text)).text);
	begin_member(&client->body, "version");
	strbuf_add_str(&client->body, text);
	return HX_OK;
}

static void end_body(struct client *client)
{
	strbuf_add_str(&client->body, client->body.n ? "}" : "{}");
}

/* ---- answers in words ---- */

static void print_json(struct json answer)
{
	printf("%.*s\n", SLICE_ARGS(answer.raw));
}

static void add_text(struct client *client, struct strbuf *out, struct json object, const char *name)
{
	text_add_shown(out, text_of_member(object, name, &client->arena));
}

static enum hx_code print_line(struct strbuf *line, struct hx_error *err)
{
	enum hx_code code = line->failed ? strbuf_error(line, err) : HX_OK;

	if (!code)
		puts(line->p);
	strbuf_release(line);
	return code;
}

/* "invoice inv-1: approved, version 2" */
static enum hx_code print_entity(struct client *client, struct json entity, struct hx_error *err)
{
	struct strbuf line;

	strbuf_init(&line, LINE_BYTES_MAX);
	add_text(client, &line, entity, "workflow");
	strbuf_add_char(&line, ' ');
	add_text(client, &line, entity, "id");
	strbuf_add_str(&line, ": ");
	add_text(client, &line, entity, "status");
	strbuf_add_str(&line, ", version ");
	add_text(client, &line, entity, "version");
	return print_line(&line, err);
}

/* A moved entity, and below it what the action gave back, if anything. */
static enum hx_code print_moved(struct client *client, struct json answer, struct hx_error *err)
{
	struct json entity, output;
	struct strbuf line;
	enum hx_code code;

	if (!json_find(answer, slice_str("entity"), &entity))
		return error_set(err, HX_BAD_GATEWAY, "%s: there is no entity in the answer", client->server);
	code = print_entity(client, entity, err);
	if (code || !json_find(answer, slice_str("output"), &output) || json_type(output) == JSON_NULL)
		return code;
	strbuf_init(&line, LINE_BYTES_MAX);
	strbuf_add_str(&line, "output: ");
	text_add_shown(&line, output.raw);
	return print_line(&line, err);
}

static bool is_held(struct json claim)
{
	struct json held;

	return json_find(claim, slice_str("held"), &held) && json_type(held) == JSON_BOOL && json_bool(held);
}

/* "close by admin" while there is a claim; empty otherwise. */
static struct slice claim_in_words(struct client *client, struct json entity, bool whole)
{
	struct json claim;
	struct strbuf words;
	struct slice text;

	if (!json_find(entity, slice_str("claim"), &claim) || json_type(claim) != JSON_OBJECT)
		return slice_of("", 0);
	strbuf_init(&words, LINE_BYTES_MAX);
	add_text(client, &words, claim, "step");
	strbuf_add_str(&words, " by ");
	add_text(client, &words, claim, "requester");
	if (is_held(claim)) {
		strbuf_add_str(&words, ", held for a person");
	} else if (whole) {
		strbuf_add_str(&words, ", owner ");
		add_text(client, &words, claim, "owner");
		strbuf_add_str(&words, ", until ");
		add_text(client, &words, claim, "until");
	}
	if (whole) {
		strbuf_add_str(&words, ", fence ");
		add_text(client, &words, claim, "fence");
	}
	text = arena_copy(&client->arena, strbuf_slice(&words));
	strbuf_release(&words);
	return text;
}

static enum hx_code print_more(struct client *client, struct json answer, struct hx_error *err)
{
	struct slice cursor = text_of_member(answer, "cursor", &client->arena);
	struct strbuf line;

	if (cursor.n == 0)
		return HX_OK;
	strbuf_init(&line, LINE_BYTES_MAX);
	strbuf_add_str(&line, "there are more: --cursor ");
	text_add_shown(&line, cursor);
	return print_line(&line, err);
}

/* ---- create ---- */

static enum hx_code create(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	struct json answer;
	enum hx_code code = check_operands(args, 1, 2, err);

	if (code)
		return code;
	code = start(&client, args, "/api/v1/entities", 1, err);
	if (args->operands_n == 2) {
		begin_member(&client.body, "id");
		json_quote(slice_str(args->operands[1]), &client.body);
	}
	if (!code)
		code = add_json(&client, args, &option_data, err);
	end_body(&client);
	if (!code)
		code = client_ask(&client, "POST", &answer, err);
	if (!code && client.json)
		print_json(answer);
	else if (!code)
		code = print_entity(&client, answer, err);
	client_release(&client);
	return code;
}

const struct command command_entity_create = {
	.noun = "entity",
	.verb = "create",
	.operands = "WORKFLOW [ID]",
	.summary = "makes an entity in the first status of its workflow; without ID it gets one",
	.options = {&option_data, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, {HX_ALREADY_EXISTS, "an entity of this id exists already"}},
	.run = create,
};

/* ---- show ---- */

static enum hx_code print_whole(struct client *client, struct json entity, struct hx_error *err)
{
	static const char *const headings[] = {"workflow", "", NULL};
	static const char *const members[] = {"id", "status", "version", NULL};
	struct slice claim = claim_in_words(client, entity, /* whole= */ true);
	struct table table;

	table_init(&table, &client->arena,
		   (const char *const[]){headings[0], text_of_member(entity, "workflow", &client->arena).p, NULL});
	for (size_t i = 0; members[i]; i++)
		table_add(&table, (struct slice[]){slice_str(members[i]), text_of_member(entity, members[i], &client->arena)});
	table_add(&table, (struct slice[]){slice_str("claim"), claim.n ? claim : slice_str("none")});
	table_add(&table, (struct slice[]){slice_str("updated"), text_of_member(entity, "updatedAt", &client->arena)});
	table_add(&table, (struct slice[]){slice_str("data"), text_of_member(entity, "data", &client->arena)});
	return table_print(&table, stdout, err);
}
