/* hapax why: one sentence on what a run or a job is waiting for, over HTTP. */
#include "cli/question.h"
#include "cli/table.h"

#define LINE_BYTES_MAX (1u << 20)

/* "run_0ahqhgtdhmw01 is WAITING: it waits for the event payment" */
static enum hx_code print(struct client *client, struct json answer, struct hx_error *err)
{
	struct strbuf line;

	strbuf_init(&line, LINE_BYTES_MAX);
	text_add_shown(&line, text_of_member(answer, "id", &client->arena));
	strbuf_add_str(&line, " is ");
	text_add_shown(&line, text_of_member(answer, "status", &client->arena));
	strbuf_add_str(&line, ": ");
	text_add_shown(&line, text_of_member(answer, "why", &client->arena));
	return text_print_line(&line, err);
}

static enum hx_code why(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = question_start(&client, args, "/api/v1/why", 1, err);
	return client_run(&client, code, "GET", print, err);
}

const struct command command_why = {
	.noun = "why",
	.operands = "ID",
	.summary = "says what a run, a job or an entity (entity:WORKFLOW:ID) is waiting for",
	.options = {CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = why,
};
