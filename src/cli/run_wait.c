/*
 * Waiting for a run. The server answers when it has ended, so one question would do; it is asked in pieces, so that no
 * connection has to last for hours, and in short ones where somebody watches, to show how far it is.
 */
#include "base/clock.h"
#include "base/duration.h"
#include "base/excerpt.h"
#include "base/json_walk.h"
#include "cli/run_parts.h"
#include "cli/table.h"
#include "cli/terminal.h"

#define PIECE_MS 20000
#define WATCHED_PIECE_MS 500
#define LINE_BYTES 400
#define WORDS_BYTES_MAX (64u << 10)

const struct command_option option_wait = {
	.name = "wait",
	.value = "DURATION",
	.help = "wait so long for the end of the run [default: not at all]",
};

static struct slice member(struct client *client, struct json run, const char *name)
{
	return text_of_member(run, name, &client->arena);
}

bool run_has_ended(struct client *client, struct json run)
{
	struct slice status = member(client, run, "status");

	return slice_is(status, "COMPLETED") || slice_is(status, "FAILED") || slice_is(status, "CANCELLED");
}

/* "run_0ahqhgtdhmw01 RUNNING, step charge, 3s" */
static void tell_progress(struct client *client, struct json run, int64_t waited_ms)
{
	struct slice step = member(client, run, "currentStep");
	char line[LINE_BYTES], waited[DURATION_TEXT_BYTES];

	duration_format(waited_ms < 1000 ? 1000 : waited_ms / 1000 * 1000, waited);
	snprintf(line, sizeof line, "%s %s%s%s, %s", excerpt_of(member(client, run, "id")).text,
		 excerpt_of(member(client, run, "status")).text, step.n ? ", step " : "", excerpt_of(step).text,
		 waited);
	terminal_tell(line);
}

static enum hx_code ask_piece(struct client *client, const char *id, int64_t piece_ms, struct json *ret_run,
			      struct hx_error *err)
{
	int64_t timeout_ms = client->timeout_ms;
	char piece[DURATION_TEXT_BYTES];
	enum hx_code code;

	duration_format(piece_ms, piece);
	client_next(client, RUN_PATH);
	client_segment(client, id);
	client_query(client, "wait", piece);
	client->timeout_ms += piece_ms; /* --timeout is for the answer once there is one */
	code = client_ask(client, "GET", ret_run, err);
	client->timeout_ms = timeout_ms;
	return code;
}

enum hx_code run_wait(struct client *client, const char *id, int64_t wait_ms, struct json *ret_run,
		      struct hx_error *err)
{
	bool watched = terminal_is_watched() && !client->json;
	int64_t piece_max_ms = watched ? WATCHED_PIECE_MS : PIECE_MS, waited_ms = 0;
	struct mono_time begun = clock_mono(clock_system());
	struct arena_mark mark = arena_mark(&client->arena);
	enum hx_code code;

	for (;;) {
		int64_t left_ms = wait_ms - waited_ms;

		code = ask_piece(client, id, left_ms < piece_max_ms ? left_ms : piece_max_ms, ret_run, err);
		waited_ms = (clock_mono(clock_system()).ns - begun.ns) / 1000000;
		if (code || run_has_ended(client, *ret_run) || waited_ms >= wait_ms)
			break;
		if (watched)
			tell_progress(client, *ret_run, waited_ms);
		arena_rewind(&client->arena, mark);
	}
	if (watched)
		terminal_tell("");
	return code;
}

/* "the run is FAILED at step charge: no more stock" */
static enum hx_code tell_failure(struct client *client, struct json run, const char *status, struct hx_error *err)
{
	struct slice step = {"", 0}, message = {"", 0};
	struct strbuf words;
	struct json error;

	if (json_find(run, slice_str("error"), &error) && json_type(error) == JSON_OBJECT) {
		step = member(client, error, "step");
		message = member(client, error, "message");
	}
	strbuf_init(&words, WORDS_BYTES_MAX);
	strbuf_addf(&words, "the run is %s%s", status, step.n ? " at step " : "");
	text_add_shown(&words, step);
	strbuf_add_str(&words, message.n ? ": " : "");
	text_add_shown(&words, message);
	error_set(err, HX_ACTION_FAILED, "%s", words.p);
	strbuf_release(&words);
	return HX_ACTION_FAILED;
}

enum hx_code run_verdict(struct client *client, struct json run, int64_t wait_ms, struct hx_error *err)
{
	struct excerpt status = excerpt_of(member(client, run, "status"));
	char waited[DURATION_TEXT_BYTES];

	if (slice_is(slice_str(status.text), "COMPLETED"))
		return HX_OK;
	if (run_has_ended(client, run))
		return tell_failure(client, run, status.text, err);
	duration_format(wait_ms, waited);
	return error_set(err, HX_WRONG_STATUS, "the run has not ended within %s, it is %s", waited, status.text);
}
