/* hapax why: one sentence on what a run, a batch, a job or an entity is waiting for, over HTTP. */
#include "cli/why.h"

#include "cli/question.h"
#include "cli/table.h"

#define WHY_PATH "/api/v1/why"

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
	code = question_start(&client, args, WHY_PATH, 1, err);
	return client_run(&client, code, "GET", print, err);
}

void why_print_below(struct client *client, const char *id)
{
	struct hx_error ignored;
	struct strbuf line;
	struct json answer;

	client_next(client, WHY_PATH);
	client_segment(client, id);
	if (client_ask(client, "GET", &answer, &ignored))
		return;
	strbuf_init(&line, LINE_BYTES_MAX);
	strbuf_add_str(&line, "\nwhy: ");
	text_add_shown(&line, text_of_member(answer, "why", &client->arena));
	if (text_print_line(&line, &ignored))
		return;
}

const struct command command_why = {
	.noun = "why",
	.operands = "ID",
	.summary = "says what a run, a batch, a job or an entity (entity:WORKFLOW:ID) is waiting for",
	.options = {CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = why,
};
