/*
 * hapax job push | list | show | redrive: work that somebody pulls, over HTTP. Jobs are pushed here or over the API, written by
 * the `worker` steps of runs, and by the after-effects of entities.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/excerpt.h"
#include "base/json_string.h"
#include "base/json_walk.h"
#include "cli/question.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "flow/job.h"
#include "model/text.h"

#define JOB_PATH "/api/v1/jobs"

static const struct command_option option_status = {
	.name = "status",
	.value = "STATUS",
	.help = "only those in this status [default: any]",
	.words = job_statuses,
};
static const struct command_option option_queue = {
	.name = "queue",
	.value = "QUEUE",
	.help = "only those of this queue [default: any]",
};
static const struct command_option option_payload = {
	.name = "payload",
	.value = "JSON",
	.help = "what the worker gets; @FILE or - (standard input) has it [default: null]",
};
static const struct command_option option_key = {
	.name = "key",
	.value = "KEY",
	.help = "one job for this key in its queue, however often it is pushed [default: none]",
};
static const struct command_option option_run_at = {
	.name = "run-at",
	.value = "TIME",
	.help = "not before: a time (RFC 3339), or a duration from now on [default: now]",
};
static const struct command_option option_priority = {
	.name = "priority",
	.value = "N",
	.help = "-1000 to 1000, the highest first [default: 0]",
};

static struct slice member(struct client *client, struct json job, const char *name)
{
	return text_of_member(job, name, &client->arena);
}

/* ---- push ---- */

/* A duration is counted by the clock of this machine. */
static enum hx_code add_run_at(struct client *client, const struct command_args *args, struct hx_error *err)
{
	const char *text = command_value(args, &option_run_at);
	char at[WALL_TIME_TEXT_BYTES];
	struct wall_time time;
	int64_t ms;

	if (!text)
		return HX_OK;
	if (duration_parse("", slice_str(text), err, &ms) == HX_OK)
		time = wall_add_ms(clock_wall(clock_system()), ms);
	else if (wall_time_parse("--run-at", slice_str(text), /* err= */ NULL, &time))
		return error_set(err, HX_VALIDATION_ERROR,
				 "--run-at is a time like 2026-11-15T05:39:00Z, or a duration like 5m, not \"%s\"",
				 excerpt_of(slice_str(text)).text);
	wall_time_format(time, at);
	question_text(client, "runAt", at);
	return HX_OK;
}

static enum hx_code add_priority(struct client *client, const struct command_args *args, struct hx_error *err)
{
	const char *text = command_value(args, &option_priority), *digits;

	if (!text)
		return HX_OK;
	digits = text + (text[0] == '-');
	if (!text_is_number_up_to(digits, 1000))
		return error_set(err, HX_VALIDATION_ERROR, "--priority is a whole number from -1000 to 1000, not %s",
				 excerpt_of(slice_str(text)).text);
	question_member(client, "priority");
	strbuf_add_str(&client->body, text);
	return HX_OK;
}

/* "job_0ahqhgtdhmw01" */
static enum hx_code print_pushed(struct client *client, struct json answer, struct hx_error *err)
{
	struct json jobs = json_trust(slice_str("[]")), job, created;
	struct json_iter it;

	(void)json_find(answer, slice_str("jobs"), &jobs); /* absent: refused below */
	it = json_iter_of(jobs);
	if (!json_iter_element(&it, &job))
		return error_set(err, HX_BAD_GATEWAY, "%s: there is no job in the answer", client->server);
	printf("%s%s\n", excerpt_of(member(client, job, "id")).text,
	       json_find(job, slice_str("created"), &created) && slice_is(created.raw, "false")
		       ? ", pushed before with this key"
		       : "");
	return HX_OK;
}

static enum hx_code push(const struct command_args *args, struct hx_error *err)
{
	const char *key = command_value(args, &option_key);
	struct client client;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = question_start(&client, args, JOB_PATH, 0, err);
	question_text(&client, "queue", args->operands[0]);
	if (key)
		question_text(&client, "key", key);
	if (!code)
		code = question_json(&client, args, &option_payload, err);
	if (!code)
		code = add_run_at(&client, args, err);
	if (!code)
		code = add_priority(&client, args, err);
	question_end(&client);
	return client_run(&client, code, "POST", print_pushed, err);
}

/* ---- list and show ---- */

/* What made the job, "MailInvoices of invoice inv-1"; of one that was pushed, its key. */
static struct slice about(struct client *client, struct json job)
{
	struct slice action = member(client, job, "action"), id = slice_of("", 0);
	struct json payload;
	const char *text;

	if (action.n == 0)
		return member(client, job, "key");
	if (json_find(job, slice_str("payload"), &payload))
		id = member(client, payload, "id");
	text = text_printf(&client->arena, "%.*s of %.*s %.*s", SLICE_ARGS(action),
			   SLICE_ARGS(member(client, job, "workflow")), SLICE_ARGS(id));
	return text ? slice_str(text) : action;
}

static enum hx_code print_list(struct client *client, struct json answer, struct hx_error *err)
{
	struct json_iter it = json_iter_of(text_items(answer));
	struct table table;
	struct json job;
	enum hx_code code;

	table_init(&table, &client->arena, 6);
	table.line_max = terminal_columns();
	TABLE_ADD(&table, slice_str("ID"), slice_str("STATUS"), slice_str("QUEUE"), slice_str("ATTEMPT"),
		  slice_str("ABOUT"), slice_str("ERROR"));
	while (json_iter_element(&it, &job))
		TABLE_ADD(&table, member(client, job, "id"), member(client, job, "status"),
			  member(client, job, "queue"), member(client, job, "attempt"), about(client, job),
			  member(client, job, "error"));
	code = table_print(&table, stdout, err);
	if (!code)
		text_print_more(answer, &client->arena, stdout);
	return code;
}

static enum hx_code list(const struct command_args *args, struct hx_error *err)
{
	const char *status = command_value(args, &option_status), *queue = command_value(args, &option_queue);
	struct client client;
	enum hx_code code = question_start(&client, args, JOB_PATH, 0, err);

	client_page(&client, args);
	if (status)
		client_query(&client, "status", status);
	if (queue)
		client_query(&client, "queue", queue);
	return client_run(&client, code, "GET", print_list, err);
}

/* Every member that says something, under its own name. */
static enum hx_code print_whole(struct client *client, struct json job, struct hx_error *err)
{
	struct json_iter it = json_iter_of(job);
	struct json name, value;
	struct table table;

	table_init(&table, &client->arena, 2);
	while (json_iter_member(&it, &name, &value)) {
		struct slice text = json_string_decode(name, &client->arena);

		if (json_type(value) != JSON_NULL && text.p)
			TABLE_ADD(&table, text, member(client, job, text.p));
	}
	return table_print(&table, stdout, err);
}

static enum hx_code show(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = question_start(&client, args, JOB_PATH, 1, err);
	return client_run(&client, code, "GET", print_whole, err);
}

/* ---- redrive ---- */

static enum hx_code print_redriven(struct client *client, struct json job, struct hx_error *err)
{
	struct slice id = member(client, job, "id"), status = member(client, job, "status");

	(void)err; /* a short line cannot fail */
	printf("%s: %s\n", excerpt_of(id).text, excerpt_of(status).text);
	return HX_OK;
}

static enum hx_code redrive(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = question_start(&client, args, JOB_PATH, 1, err);
	client_path(&client, "/redrive");
	return client_run(&client, code, "POST", print_redriven, err);
}

const struct command command_job_push = {
	.noun = "job",
	.verb = "push",
	.operands = "QUEUE",
	.summary = "pushes a job for the workers of a queue, or finds the one that this key has pushed",
	.options = {&option_payload, &option_key, &option_run_at, &option_priority, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = push,
};

const struct command command_job_list = {
	.noun = "job",
	.verb = "list",
	.summary = "lists jobs, those of runs and after-effects among them, the oldest first",
	.options = {&option_status, &option_queue, CLIENT_PAGE_OPTIONS, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = list,
};

const struct command command_job_show = {
	.noun = "job",
	.verb = "show",
	.operands = "ID",
	.summary = "shows a job, and who is working on it",
	.options = {CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = show,
};

const struct command command_job_redrive = {
	.noun = "job",
	.verb = "redrive",
	.operands = "ID",
	.summary = "gives a parked job another try, with the same key",
	.options = {CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, {HX_WRONG_STATUS, "it is not parked, or it is a step of a run"}},
	.run = redrive,
};
