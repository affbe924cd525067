/*
 * hapax run start | show | list | history | cancel | retry | pause | resume | signal | approve | resolve: runs, over HTTP.
 *
 * With --json the server's answer is printed as it came; without, it is put into words, a table, or a picture
 * (run_show.c). `start` without a key begins a run with every call; whoever may have to call again gives one.
 */
#include <stdio.h>
#include <string.h>

#include "base/excerpt.h"
#include "base/json_walk.h"
#include "cli/hint.h"
#include "cli/history.h"
#include "cli/question.h"
#include "cli/run_parts.h"
#include "cli/table.h"
#include "flow/run.h"

#define LINE_BYTES_MAX (64u << 20)
#define ID_BYTES 64

static const struct command_option option_input = {
	.name = "input",
	.value = "JSON",
	.help = "the input of the run, an object; @FILE or - (standard input) has it [default: {}]",
};
static const struct command_option option_key = {
	.name = "key",
	.value = "KEY",
	.help = "one run for this key, however often it is started [default: none]",
};
static const struct command_option option_status = {
	.name = "status",
	.value = "STATUS",
	.help = "only those in this status [default: any]",
	.words = run_statuses,
};
static const struct command_option option_workflow = {
	.name = "workflow",
	.value = "NAME",
	.help = "only those of this workflow [default: any]",
};
static const struct command_option option_unknown = {
	.name = "unknown",
	.help = "only those with a step whose outcome is unknown, held for a person",
};
static const struct command_option option_id = {
	.name = "id",
	.value = "ID",
	.help = "of the event: the same one again changes nothing [default: a fresh one]",
};
static const struct command_option option_data = {
	.name = "data",
	.value = "JSON",
	.help = "of the event; @FILE or - (standard input) has it [default: null]",
};
static const struct command_option option_reject = {
	.name = "reject",
	.help = "say no: the run fails",
};
static const struct command_option option_by = {
	.name = "by",
	.value = "NAME",
	.help = "who decides [default: the requester]",
};
static const struct command_option option_comment = {
	.name = "comment",
	.value = "TEXT",
	.help = "why [default: none]",
};
static const struct command_option option_output = {
	.name = "output",
	.value = "JSON",
	.help = "with done: what the step would have given back; @FILE or - has it [default: null]",
};

/* ---- which run ---- */

/* By its id, or WORKFLOW/KEY: names of workflows and ids have no slash, and keys may have any. */
static enum hx_code ask_about(struct client *client, const struct command_args *args, struct hx_error *err)
{
	const char *run = args->operands[0], *slash = strchr(run, '/');
	char workflow[WORKFLOW_NAME_MAX + 1];
	enum hx_code code;

	if (!slash)
		return question_start(client, args, RUN_PATH, 1, err);
	code = question_start(client, args, RUN_PATH "/by-key", 0, err);
	if (!code && (slash == run || (size_t)(slash - run) > WORKFLOW_NAME_MAX || !slash[1]))
		return error_set(err, HX_VALIDATION_ERROR, "%s is neither the id of a run nor WORKFLOW/KEY",
				 excerpt_of(slice_str(run)).text);
	snprintf(workflow, sizeof workflow, "%.*s", (int)(slash - run), run);
	client_segment(client, workflow);
	client_segment(client, slash + 1);
	return code;
}

/* ---- the answer in words ---- */

static struct slice member(struct client *client, struct json object, const char *name)
{
	return text_of_member(object, name, &client->arena);
}

enum hx_code run_print_line(struct client *client, struct json run, const char *more, struct hx_error *err)
{
	struct slice workflow = member(client, run, "definitionId");
	struct strbuf line;

	strbuf_init(&line, LINE_BYTES_MAX);
	text_add_shown(&line, workflow);
	strbuf_add_str(&line, workflow.n ? " " : "");
	text_add_shown(&line, member(client, run, "id"));
	strbuf_add_str(&line, ": ");
	text_add_shown(&line, member(client, run, "status"));
	strbuf_add_str(&line, ", version ");
	text_add_shown(&line, member(client, run, "version"));
	strbuf_add_str(&line, more);
	return text_print_line(&line, err);
}

/* The run in an answer, or the answer itself where it is the run. */
static struct json run_of(struct json answer)
{
	struct json run = answer;

	(void)json_find(answer, slice_str("run"), &run); /* absent: as said */
	return run;
}

static enum hx_code print_moved(struct client *client, struct json answer, struct hx_error *err)
{
	return run_print_line(client, run_of(answer), "", err);
}

static enum hx_code print_signalled(struct client *client, struct json answer, struct hx_error *err)
{
	return run_print_line(
		client, answer,
		text_member_is_true(answer, "duplicate") ? ", the event was there already: nothing was done" : "", err);
}

static enum hx_code print_list(struct client *client, struct json answer, struct hx_error *err)
{
	static const char *const columns[] = {"id",          "definitionId", "status",        "version",
					      "currentStep", "createdAt",    "idempotencyKey"};
	enum { COLUMNS_N = sizeof columns / sizeof *columns };
	struct json_iter it = json_iter_of(text_items(answer));
	struct table table;
	struct json run;
	enum hx_code code;

	table_init(&table, &client->arena, COLUMNS_N);
	TABLE_ADD(&table, slice_str("ID"), slice_str("WORKFLOW"), slice_str("STATUS"), slice_str("VERSION"),
		  slice_str("STEP"), slice_str("CREATED"), slice_str("KEY"));
	while (json_iter_element(&it, &run)) {
		struct slice cells[COLUMNS_N];

		for (size_t i = 0; i < COLUMNS_N; i++)
			cells[i] = member(client, run, columns[i]);
		table_add(&table, cells);
	}
	code = table_print(&table, stdout, err);
	if (!code)
		text_print_more(answer, &client->arena, stdout);
	return code;
}

/* ---- waiting ---- */

/* How a run that was waited for has ended, in a line and below it its output. */
static enum hx_code print_end(struct client *client, struct json run, const char *before, struct hx_error *err)
{
	enum hx_code code = run_print_line(client, run, before, err);
	struct json output;
	struct strbuf line;

	if (code || !json_find(run, slice_str("output"), &output) || json_type(output) == JSON_NULL)
		return code;
	strbuf_init(&line, LINE_BYTES_MAX);
	strbuf_add_str(&line, "output: ");
	text_add_shown(&line, output.raw);
	return text_print_line(&line, err);
}

/* What is told of a run that the key had started already. */
static const char *words_before(struct json answer)
{
	if (text_member_is_true(answer, "created"))
		return "";
	return text_member_is_true(answer, "inputDiffers") ? ", started before with this key, and with another input"
							   : ", started before with this key";
}

static enum hx_code end_of_started(struct client *client, const char *id, struct json answer, int64_t wait_ms,
				   struct hx_error *err)
{
	const char *before = words_before(answer);
	bool created = text_member_is_true(answer, "created"), differs = text_member_is_true(answer, "inputDiffers");
	struct json run;
	enum hx_code code = wait_for_started(&run_wait, client, id, wait_ms, &run, err);

	if (code)
		return code;
	if (client->json)
		printf("{\"run\":%.*s,\"created\":%s%s}\n", SLICE_ARGS(run.raw), created ? "true" : "false",
		       differs ? ",\"inputDiffers\":true" : "");
	else
		code = print_end(client, run, before, err);
	return code ? code : wait_verdict(&run_wait, client, run, wait_ms, err);
}

/* ---- start, show, list, history ---- */

static enum hx_code started(struct client *client, struct json answer, int64_t wait_ms, struct hx_error *err)
{
	struct json run = run_of(answer);
	struct slice id = member(client, run, "id");
	char text[ID_BYTES];

	if (id.n == 0 || id.n >= sizeof text)
		return error_set(err, HX_BAD_GATEWAY, "%s: there is no run in the answer", client->server);
	snprintf(text, sizeof text, "%.*s", SLICE_ARGS(id));
	if (wait_ms > 0)
		return end_of_started(client, text, answer, wait_ms, err);
	if (!client->json)
		return print_end(client, run, words_before(answer), err);
	printf("%.*s\n", SLICE_ARGS(answer.raw));
	return HX_OK;
}

static enum hx_code start(const struct command_args *args, struct hx_error *err)
{
	const char *key = command_value(args, &option_key);
	struct client client;
	struct json answer = {0};
	int64_t wait_ms = 0;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = question_start(&client, args, RUN_PATH, 0, err);
	question_text(&client, "definitionId", args->operands[0]);
	if (key)
		question_text(&client, "idempotencyKey", key);
	if (!code)
		code = question_json(&client, args, &option_input, err);
	if (!code)
		code = wait_read(args, &wait_ms, err);
	question_end(&client);
	if (!code)
		code = client_ask(&client, "POST", &answer, err);
	if (!code)
		code = started(&client, answer, wait_ms, err);
	client_release(&client);
	return code;
}

/* The picture needs the answer, and asks again: how it ended is therefore found out first. */
static enum hx_code shown(struct client *client, struct json run, int64_t wait_ms, struct hx_error *err)
{
	enum hx_code verdict = wait_ms > 0 ? wait_verdict(&run_wait, client, run, wait_ms, err) : HX_OK;
	enum hx_code code = HX_OK;

	if (client->json)
		printf("%.*s\n", SLICE_ARGS(run.raw));
	else
		code = run_print_picture(client, run, err);
	return code ? code : verdict;
}

/* What was shown of it has the id, whatever it was asked for by. */
static enum hx_code end_of_shown(struct client *client, int64_t wait_ms, struct json *run, struct hx_error *err)
{
	struct slice id = member(client, *run, "id");
	char text[ID_BYTES];

	if (wait_has_ended(client, *run))
		return HX_OK;
	if (id.n == 0 || id.n >= sizeof text)
		return error_set(err, HX_BAD_GATEWAY, "%s: there is no run in the answer", client->server);
	snprintf(text, sizeof text, "%.*s", SLICE_ARGS(id));
	return wait_for_end(&run_wait, client, text, wait_ms, run, err);
}

static enum hx_code show(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	struct json run = {0};
	int64_t wait_ms = 0;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = ask_about(&client, args, err);
	if (!code)
		code = wait_read(args, &wait_ms, err);
	if (!code)
		code = client_ask(&client, "GET", &run, err);
	if (!code && wait_ms > 0)
		code = end_of_shown(&client, wait_ms, &run, err);
	if (!code)
		code = shown(&client, run, wait_ms, err);
	client_release(&client);
	return code;
}

static enum hx_code list(const struct command_args *args, struct hx_error *err)
{
	const char *status = command_value(args, &option_status), *workflow = command_value(args, &option_workflow);
	struct client client;
	enum hx_code code = question_start(&client, args, RUN_PATH, 0, err);

	client_page(&client, args);
	if (status)
		client_query(&client, "status", status);
	if (workflow)
		client_query(&client, "definitionId", workflow);
	if (command_value(args, &option_unknown))
		client_query(&client, "unknown", "true");
	return hint_run(&client, code, workflow, "run", print_list, err);
}

static enum hx_code history(const struct command_args *args, struct hx_error *err)
{
	enum hx_code code = command_want_operands(args, 1, 1, err);

	return code ? code : history_show(args, args->operands[0], err);
}

/* ---- what is done to a run ---- */

/* The verb is the last segment of the path. */
static enum hx_code move(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 1, 1, err);

	if (code)
		return code;
	code = ask_about(&client, args, err);
	client_segment(&client, args->command->verb);
	if (!code)
		code = question_version(&client, args, err);
	question_end(&client);
	return client_run(&client, code, "POST", print_moved, err);
}

static enum hx_code signal_event(const struct command_args *args, struct hx_error *err)
{
	const char *id = command_value(args, &option_id);
	struct client client;
	enum hx_code code = command_want_operands(args, 2, 2, err);

	if (code)
		return code;
	code = ask_about(&client, args, err);
	client_path(&client, "/events");
	client_segment(&client, args->operands[1]);
	if (id)
		question_text(&client, "id", id);
	if (!code)
		code = question_json(&client, args, &option_data, err);
	question_end(&client);
	return client_run(&client, code, "POST", print_signalled, err);
}

static enum hx_code approve(const struct command_args *args, struct hx_error *err)
{
	const char *by = command_value(args, &option_by), *comment = command_value(args, &option_comment);
	struct client client;
	enum hx_code code = command_want_operands(args, 2, 2, err);

	if (code)
		return code;
	code = ask_about(&client, args, err);
	client_path(&client, "/approvals");
	client_segment(&client, args->operands[1]);
	question_text(&client, "decision", command_value(args, &option_reject) ? "reject" : "approve");
	if (by)
		question_text(&client, "by", by);
	if (comment)
		question_text(&client, "comment", comment);
	if (!code)
		code = question_version(&client, args, err);
	question_end(&client);
	return client_run(&client, code, "POST", print_moved, err);
}

static enum hx_code resolve(const struct command_args *args, struct hx_error *err)
{
	struct client client;
	enum hx_code code = command_want_operands(args, 3, 3, err);

	if (code)
		return code;
	code = ask_about(&client, args, err);
	client_path(&client, "/steps");
	client_segment(&client, args->operands[1]);
	client_path(&client, "/resolve");
	if (!code)
		code = question_outcome(&client, args->operands[2], err);
	if (!code)
		code = question_json(&client, args, &option_output, err);
	question_end(&client);
	return client_run(&client, code, "POST", print_moved, err);
}

/* ---- the table of verbs ---- */

#define RUN_EXPIRED_EXIT                                                                                               \
	{                                                                                                              \
		HX_RUN_EXPIRED, "the run has ended long ago, and only its key is kept"                                 \
	}
#define RUN_STATUS_EXIT                                                                                                \
	{                                                                                                              \
		HX_WRONG_STATUS, "the run is past it, or its version is another one"                                   \
	}

const struct command command_run_start = {
	.noun = "run",
	.verb = "start",
	.operands = "WORKFLOW",
	.summary = "starts a run, or finds the one that this key has started",
	.options = {&option_input, &option_key, &option_wait, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, WAIT_EXITS, RUN_EXPIRED_EXIT},
	.run = start,
};

const struct command command_run_show = {
	.noun = "run",
	.verb = "show",
	.operands = "RUN",
	.summary = "shows where a run stands, step by step",
	.options = {&option_wait, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, WAIT_EXITS, RUN_EXPIRED_EXIT},
	.run = show,
};

const struct command command_run_list = {
	.noun = "run",
	.verb = "list",
	.summary = "lists runs, the newest first",
	.options = {&option_status, &option_workflow, &option_unknown, CLIENT_PAGE_OPTIONS, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = list,
};

const struct command command_run_history = {
	.noun = "run",
	.verb = "history",
	.operands = "ID",
	.summary = "tells every change of a run's status",
	.options = {CLIENT_PAGE_OPTIONS, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = history,
};

const struct command command_run_cancel = {
	.noun = "run",
	.verb = "cancel",
	.operands = "RUN",
	.summary = "stops a run, and undoes in reverse order what its steps have done",
	.options = {&option_version, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, {HX_ALREADY_COMPLETED, "it is completed, or its version is another one"}},
	.run = move,
};

const struct command command_run_retry = {
	.noun = "run",
	.verb = "retry",
	.operands = "RUN",
	.summary = "goes on from the step that failed, with all its attempts",
	.options = {&option_version, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, RUN_STATUS_EXIT},
	.run = move,
};

const struct command command_run_pause = {
	.noun = "run",
	.verb = "pause",
	.operands = "RUN",
	.summary = "lets the step under way end, and begins no other",
	.options = {&option_version, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, RUN_STATUS_EXIT},
	.run = move,
};

const struct command command_run_resume = {
	.noun = "run",
	.verb = "resume",
	.operands = "RUN",
	.summary = "lets a paused run go on",
	.options = {&option_version, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, RUN_STATUS_EXIT},
	.run = move,
};

const struct command command_run_signal = {
	.noun = "run",
	.verb = "signal",
	.operands = "RUN EVENT",
	.summary = "sends a run the event that a step of it waits for, or will wait for",
	.options = {&option_id, &option_data, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, RUN_STATUS_EXIT},
	.run = signal_event,
};

const struct command command_run_approve = {
	.noun = "run",
	.verb = "approve",
	.operands = "RUN STEP",
	.summary = "decides the approval that a run waits for",
	.options = {&option_reject, &option_by, &option_comment, &option_version, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, RUN_STATUS_EXIT},
	.run = approve,
};

const struct command command_run_resolve = {
	.noun = "run",
	.verb = "resolve",
	.operands = "RUN STEP done|not_done",
	.summary = "says what became of a step whose outcome is unknown",
	.options = {&option_output, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS, RUN_STATUS_EXIT},
	.run = resolve,
};
