/*
 * hapax entity create | show | list | fire | resolve | history: the entities of a workflow, over HTTP.
 *
 * With --json the server's answer is printed as it came; without, it is put into words and tables.
 */
#include <stdio.h>
#include <string.h>

#include "base/excerpt.h"
#include "base/json_walk.h"
#include "cli/attention.h"
#include "cli/history.h"
#include "cli/question.h"
#include "cli/table.h"

#define LINE_BYTES_MAX (64u << 20)
#define SUBJECT_BYTES 512

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
static const struct command_option option_output = {
	.name = "output",
	.value = "JSON",
	.help = "with done: what the action would have given back [default: null]",
};
static const struct command_option option_status = {
	.name = "status",
	.value = "STATUS",
	.help = "only those in this status [default: any]",
};
static const struct command_option option_held = {
	.name = "held",
	.help = "only those whose claim is held for a person",
};

/* ---- the answer in words ---- */

static struct slice member(struct client *client, struct json object, const char *name)
{
	return text_of_member(object, name, &client->arena);
}

/* "invoice inv-1: approved, version 2" */
static enum hx_code print_entity(struct client *client, struct json entity, struct hx_error *err)
{
	struct strbuf line;

	strbuf_init(&line, LINE_BYTES_MAX);
	text_add_shown(&line, member(client, entity, "workflow"));
	strbuf_add_char(&line, ' ');
	text_add_shown(&line, member(client, entity, "id"));
	strbuf_add_str(&line, ": ");
	text_add_shown(&line, member(client, entity, "status"));
	strbuf_add_str(&line, ", version ");
	text_add_shown(&line, member(client, entity, "version"));
	return text_print_line(&line, err);
}

/* The entity that a step has moved, and below it what the action gave back, if anything. */
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
	return text_print_line(&line, err);
}

/* "close by admin", and with `whole` everything about it. Empty where there is no claim. */
static struct slice claim_words(struct client *client, struct json entity, bool whole)
{
	struct json claim, held;
	struct strbuf words;
	struct slice text;

	if (!json_find(entity, slice_str("claim"), &claim) || json_type(claim) != JSON_OBJECT)
		return slice_of("", 0);
	strbuf_init(&words, LINE_BYTES_MAX);
	strbuf_addf(&words, "%.*s", SLICE_ARGS(member(client, claim, "step")));
	strbuf_addf(&words, " by %.*s", SLICE_ARGS(member(client, claim, "requester")));
	if (json_find(claim, slice_str("held"), &held) && slice_is(held.raw, "true"))
		strbuf_add_str(&words, ", held for a person");
	else if (whole)
		strbuf_addf(&words, ", until %.*s", SLICE_ARGS(member(client, claim, "until")));
	if (whole)
		strbuf_addf(&words, ", fence %.*s", SLICE_ARGS(member(client, claim, "fence")));
	text = arena_copy(&client->arena, strbuf_slice(&words));
	strbuf_release(&words);
	return text;
}

static enum hx_code print_whole(struct client *client, struct json entity, struct hx_error *err)
{
	static const char *const rows[][2] = {
		{"workflow", "workflow"}, {"id", "id"},     {"status", "status"}, {"version", "version"},
		{"updated", "updatedAt"}, {"data", "data"},
	};
	struct slice claim = claim_words(client, entity, /* whole= */ true);
	struct table table;

	table_init(&table, &client->arena, 2);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		TABLE_ADD(&table, slice_str(rows[i][0]), member(client, entity, rows[i][1]));
	TABLE_ADD(&table, slice_str("claim"), claim.n ? claim : slice_str("none"));
	return table_print(&table, stdout, err);
}

static enum hx_code print_list(struct client *client, struct json answer, struct hx_error *err)
{
	struct json_iter it = json_iter_of(text_items(answer));
	struct table table;
	struct json entity;
	enum hx_code code;

	table_init(&table, &client->arena, 5);
	TABLE_ADD(&table, slice_str("ID"), slice_str("STATUS"), slice_str("VERSION"), slice_str("UPDATED"),
		  slice_str("CLAIM"));
	while (json_iter_element(&it, &entity))
		TABLE_ADD(&table, member(client, entity, "id"), member(client, entity, "status"),
			  member(client, entity, "version"), member(client, entity, "updatedAt"),
			  claim_words(client, entity, /* whole= */ false));
	code = table_print(&table, stdout, err);
	if (!code)
		text_print_more(answer, &client->arena, stdout);
	return code;
}

/* ---- the verbs ---- */

static enum hx_code create(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 1, 2, err);

	if (code)
		return code;
	code = question_start(&client, args, "/api/v1/entities", 1, err);
	if (args->operands_n == 2)
		question_text(&client, "id", args->operands[1]);
	if (!code)
		code = question_json(&client, args, &option_data, err);
	question_end(&client);
	return client_run(&client, code, "POST", print_entity, err);
}

static enum hx_code show(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 2, 2, err);

	if (code)
		return code;
	code = question_start(&client, args, "/api/v1/entities", 2, err);
	return client_run(&client, code, "GET", print_whole, err);
}

static enum hx_code list(const struct command_args *args, struct hx_error *err)
{
	const char *status = command_value(args, &option_status);
	struct client client;
	bool held = command_value(args, &option_held);
	enum hx_code code = command_want_operands(args, held && !status ? 0 : 1, 1, err);

	if (code)
		return code;
	if (args->operands_n == 0)
		return attention_show(args, "held_claim", err);
	code = question_start(&client, args, "/api/v1/entities", 1, err);
	client_page(&client, args);
	if (status)
		client_query(&client, "status", status);
	if (held)
		client_query(&client, "held", "true");
	return client_run(&client, code, "GET", print_list, err);
}

static enum hx_code fire(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 3, 3, err);

	if (code)
		return code;
	code = question_start(&client, args, "/api/v1/entities", 2, err);
	client_path(&client, "/steps");
	client_segment(&client, args->operands[2]);
	if (!code)
		code = question_json(&client, args, &option_input, err);
	if (!code)
		code = question_version(&client, args, err);
	question_end(&client);
	return client_run(&client, code, "POST", print_moved, err);
}

static enum hx_code resolve(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 4, 4, err);

	if (code)
		return code;
	code = question_start(&client, args, "/api/v1/entities", 2, err);
	client_path(&client, "/steps");
	client_segment(&client, args->operands[2]);
	client_path(&client, "/resolve");
	if (!code)
		code = question_outcome(&client, args->operands[3], err);
	if (!code)
		code = question_json(&client, args, &option_output, err);
	question_end(&client);
	return client_run(&client, code, "POST", print_moved, err);
}

static enum hx_code history(const struct command_args *args, struct hx_error *err)
{
	char subject[SUBJECT_BYTES];
	enum hx_code code = command_want_operands(args, 2, 2, err);
	int n;

	if (code)
		return code;
	n = snprintf(subject, sizeof subject, "entity:%s:%s", args->operands[0], args->operands[1]);
	if (n < 0 || (size_t)n >= sizeof subject)
		return error_set(err, HX_VALIDATION_ERROR, "the name of a workflow or an id is never so long");
	return history_show(args, subject, err);
}

/* clang-format off */
/* What firing and resolving may end with, besides what every verb may. */
#define STEP_EXITS                                                                                                     \
	{HX_INVALID, "the action rejected its input"},                                                                 \
	{HX_CLAIM_FAILED, "another operation is in progress, or the status or version is another one"},                \
	{HX_ACTION_FAILED, "the action failed"},                                                                       \
	{HX_REQUESTER_NOT_ALLOWED, "this requester may not do it"}
/* clang-format on */

const struct command command_entity_create = {
	.noun = "entity",
	.verb = "create",
	.operands = "WORKFLOW [ID]",
	.summary = "makes an entity in the first status of its workflow; without ID it gets one",
	.options = {&option_data, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, {HX_ALREADY_EXISTS, "an entity of this id exists already"}},
	.run = create,
};

const struct command command_entity_show = {
	.noun = "entity",
	.verb = "show",
	.operands = "WORKFLOW ID",
	.summary = "shows where an entity stands, and who is working on it",
	.options = {CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = show,
};

const struct command command_entity_list = {
	.noun = "entity",
	.verb = "list",
	.operands = "WORKFLOW",
	.summary = "lists the entities of a workflow, by id; with --held and no WORKFLOW, of all",
	.options = {&option_status, &option_held, CLIENT_PAGE_OPTIONS, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = list,
};

const struct command command_entity_fire = {
	.noun = "entity",
	.verb = "fire",
	.operands = "WORKFLOW ID STEP",
	.summary = "fires a step, and answers when it is done",
	.options = {&option_input, &option_version, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, STEP_EXITS},
	.run = fire,
};

const struct command command_entity_resolve = {
	.noun = "entity",
	.verb = "resolve",
	.operands = "WORKFLOW ID STEP done|not_done",
	.summary = "says what became of a step whose claim is held for a person",
	.options = {&option_output, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, STEP_EXITS},
	.run = resolve,
};

const struct command command_entity_history = {
	.noun = "entity",
	.verb = "history",
	.operands = "WORKFLOW ID",
	.summary = "tells every change of an entity's status",
	.options = {CLIENT_PAGE_OPTIONS, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = history,
};
