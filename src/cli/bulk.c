/*
 * hapax bulk: one thing to all runs, batches, entities or jobs that match, and how far it is.
 *
 *	bulk      bulk_0ajj0c1cvs401
 *	does      cancel, where customer == "c-1"
 *	status    RUNNING
 *	created   2026-11-17T21:24:39.911Z
 *
 *	██████████████████████░░░░░░░░░░░░░░░░░░  55%
 *
 *	SELECTED  DONE  UNCHANGED  REFUSED  SKIPPED  CANCELLED
 *	200       108   1          1        0        0
 */
#include "cli/bulk.h"

#include "base/json_number.h"
#include "base/json_walk.h"
#include "base/json_write.h"
#include "cli/bar.h"
#include "cli/question.h"
#include "cli/terminal.h"
#include "cli/view.h"
#include "cli/wait.h"

#define BULK_PATH "/api/v1/bulk"
#define LINE_BYTES_MAX (1u << 20)
#define BODY_BYTES_MAX (16u << 20)
#define WATCHED_MS 250

/* ---- how far it is ---- */

static int64_t number_of(struct json bulk, const char *name)
{
	struct json value;
	int64_t n;

	return json_find(bulk, slice_str(name), &value) && json_int64(value, /* err= */ NULL, &n) == HX_OK ? n : 0;
}

/* Items that have their result. */
static int64_t items_ended(struct json bulk)
{
	return number_of(bulk, "done") + number_of(bulk, "unchanged") + number_of(bulk, "refused") +
	       number_of(bulk, "skipped") + number_of(bulk, "cancelled");
}

/* "RUNNING ███░░░ 55%  110/200  ✓ 108  ✗ 2  84.0/s" */
static void tell_bulk(struct client *client, struct json bulk, int64_t waited_ms)
{
	int64_t ended = items_ended(bulk), selected = number_of(bulk, "selected");
	LOCAL_STRBUF(line, LINE_BYTES_MAX);

	text_add_shown(&line, client_member(client, bulk, "status"));
	strbuf_add_char(&line, ' ');
	bar_add(&line, ended, selected, bar_told_columns());
	strbuf_addf(&line, " %d%%  %lld/%lld", bar_percent(ended, selected), (long long)ended, (long long)selected);
	strbuf_addf(&line, "  ✓ %lld  ✗ %lld", (long long)number_of(bulk, "done"),
		    (long long)number_of(bulk, "refused"));
	bar_add_rate(&line, ended, waited_ms);
	terminal_tell(line.p);
}

static const struct wait bulk_wait = {.noun = "bulk", .path = BULK_PATH, .watched_ms = WATCHED_MS, .tell = tell_bulk};

static const struct view *const head = FIELDS(
	{"bulk", "{id}"}, {"does", "{verb}[{kind=run}| of {kind}], where {where}"}, {"with", "{arguments:raw}"},
	{"status", "{status}"}, {"key", "{idempotencyKey}"}, {"requester", "{requester}"}, {"created", "{createdAt}"},
	{"ended", "{completedAt}"});
static const struct view *const counts = ONE_ROW({"SELECTED", "{+selected}"}, {"DONE", "{+done}"},
						 {"UNCHANGED", "{+unchanged}"}, {"REFUSED", "{+refused}"},
						 {"SKIPPED", "{+skipped}"}, {"CANCELLED", "{+cancelled}"});

enum hx_code bulk_print_picture(struct client *client, struct json bulk, struct hx_error *err)
{
	int64_t ended = items_ended(bulk), selected = number_of(bulk, "selected");
	enum hx_code code = view_print(head, client, &client->arena, bulk, err);
	LOCAL_STRBUF(line, LINE_BYTES_MAX);

	strbuf_add_char(&line, '\n');
	bar_add(&line, ended, selected, BAR_COLUMNS);
	strbuf_addf(&line, "  %d%%\n", selected ? bar_percent(ended, selected) : 100);
	if (!code)
		code = text_print_line(&line, err);
	return code ? code : view_print(counts, client, &client->arena, bulk, err);
}

enum hx_code bulk_ask_show(struct client *client, const struct command_args *args, struct verb_answer *ret,
			   struct hx_error *err)
{
	return wait_show(&bulk_wait, client, args, ret, err);
}

/* ---- asking for one ---- */

static const char *kind_of(const char *verb)
{
	return strcmp(verb, "redrive") == 0 ? "job" : strcmp(verb, "start") == 0 ? "batch" : "run";
}

/* The flat body that the row has made, as the server wants it. */
static enum hx_code rewrite_body(struct client *client, const char *verb, struct hx_error *err)
{
	static const char *const outside[] = {"\"kind\"", "\"where\"", "\"dryRun\"", "\"idempotencyKey\"", NULL};
	struct slice flat = arena_copy(&client->arena, strbuf_slice(&client->body));
	struct json_iter it;
	struct json name, value;
	LOCAL_STRBUF(arguments, BODY_BYTES_MAX);

	if (!flat.p)
		return arena_error(&client->arena, err);
	client_next(client, BULK_PATH);
	question_text(client, "verb", verb);
	if (!json_find(json_trust(flat), slice_str("kind"), &value)) /* an option of verbs that several have */
		question_text(client, "kind", kind_of(verb));
	it = json_iter_of(json_trust(flat));
	while (json_iter_member(&it, &name, &value)) {
		if (slice_in(name.raw, outside)) {
			strbuf_addf(&client->body, ",%.*s:", SLICE_ARGS(name.raw));
			strbuf_add_slice(&client->body, value.raw);
			continue;
		}
		strbuf_addf(&arguments, "%s%.*s:", arguments.n ? "," : "", SLICE_ARGS(name.raw));
		strbuf_add_slice(&arguments, value.raw);
	}
	question_member(client, "arguments");
	strbuf_add_char(&client->body, '{');
	strbuf_add_slice(&client->body, strbuf_slice(&arguments));
	strbuf_add_char(&client->body, '}');
	question_end(client);
	return arguments.failed ? strbuf_error(&arguments, err) : HX_OK;
}

enum hx_code bulk_ask_start(struct client *client, const struct command_args *args, struct verb_answer *ret,
			    struct hx_error *err)
{
	bool dry = command_value(args, "dry-run");
	int64_t wait_ms;
	enum hx_code code = wait_read(args, &wait_ms, err);

	if (!code && dry && wait_ms)
		return error_set(err, HX_VALIDATION_ERROR, "--dry-run and --wait: what only counts does not end");
	if (!code)
		code = question_build(client, args, err);
	if (!code)
		code = rewrite_body(client, args->command->verb, err);
	if (!code)
		code = client_ask(client, "POST", &ret->json, err);
	if (code || wait_ms == 0)
		return code;
	code = wait_for_started(&bulk_wait, client, wait_ms, &ret->json, err);
	if (!code)
		ret->verdict = wait_verdict(&bulk_wait, client, ret->json, wait_ms, &ret->why);
	return code;
}

enum hx_code bulk_ask_cancel(struct client *client, const struct command_args *args, struct verb_answer *ret,
			     struct hx_error *err)
{
	bool of_bulk = args->operands_n > 0, of_runs = command_value(args, "where");

	if (of_bulk == of_runs)
		return error_set(
			err, HX_VALIDATION_ERROR,
			"bulk cancel wants --where and cancels what matches, or the ID of a bulk and ends that");
	if (of_runs)
		return bulk_ask_start(client, args, ret, err);
	if (command_value(args, "reason") || command_value(args, "dry-run") || command_value(args, "key") ||
	    command_value(args, "wait"))
		return error_set(
			err, HX_VALIDATION_ERROR,
			"--reason, --dry-run, --key and --wait are for what matches, not for a bulk that is there");
	client_next(client, BULK_PATH);
	client_segment(client, args->operands[0]);
	client_path(client, "/cancel");
	question_end(client);
	return client_ask(client, "POST", &ret->json, err);
}
