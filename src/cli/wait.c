/* See wait.h. */
#include "cli/wait.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/excerpt.h"
#include "base/json_walk.h"
#include "cli/question.h"
#include "cli/table.h"
#include "cli/terminal.h"

#define PIECE_MS 20000
#define WORDS_BYTES_MAX (64u << 10)

enum hx_code wait_read(const struct command_args *args, int64_t *ret_ms, struct hx_error *err)
{
	const char *text = command_value(args, "wait");

	*ret_ms = text ? INT64_MAX : 0;
	return text && *text ? duration_parse("--wait", slice_str(text), err, ret_ms) : HX_OK;
}

bool wait_has_ended(struct client *client, struct json subject)
{
	struct slice status = client_member(client, subject, "status");

	return slice_is(status, "COMPLETED") || slice_is(status, "FAILED") || slice_is(status, "CANCELLED");
}

/* ---- who stops waiting ---- */

/* Made before the signal comes: its handler may do little more than write. */
static char farewell[256];

static void on_interrupt(int number)
{
	(void)!write(STDERR_FILENO, farewell, strlen(farewell)); /* nobody is left to be told that it failed */
	(void)raise(number);                                     /* taken as if there had been no handler */
}

static void expect_interrupt(const struct wait *wait, const char *id, bool watched, struct sigaction *ret_before)
{
	struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND};
	struct excerpt shown = excerpt_of(slice_str(id));

	snprintf(farewell, sizeof farewell, "%s%s goes on: hapax %s show %s tells how far it is\n",
		 watched ? "\r\033[K" : "", shown.text, wait->noun, shown.text);
	sigaction(SIGINT, NULL, ret_before);
	if (ret_before->sa_handler != SIG_IGN)
		sigaction(SIGINT, &action, NULL);
}

/* ---- waiting ---- */

static enum hx_code ask_piece(const struct wait *wait, struct client *client, const char *id, int64_t piece_ms,
			      struct json *ret_subject, struct hx_error *err)
{
	int64_t timeout_ms = client->timeout_ms;
	enum hx_code code;

	client_next(client, wait->path);
	client_segment(client, id);
	client_query(client, "wait", duration_text(piece_ms).text);
	client->timeout_ms += piece_ms; /* --timeout is for the answer once there is one */
	code = client_ask(client, "GET", ret_subject, err);
	client->timeout_ms = timeout_ms;
	return code;
}

static enum hx_code ask_on(const struct wait *wait, struct client *client, const char *id, int64_t wait_ms,
			   struct json *ret_subject, struct hx_error *err)
{
	bool watched = terminal_is_watched() && !client->json;
	int64_t piece_max_ms = watched ? wait->watched_ms : PIECE_MS, waited_ms = 0;
	struct mono_time begun = clock_mono(clock_system());
	struct arena_mark mark = arena_mark(&client->arena);
	struct sigaction before;
	enum hx_code code;

	expect_interrupt(wait, id, watched, &before);
	for (;;) {
		int64_t left_ms = wait_ms - waited_ms;

		code = ask_piece(wait, client, id, left_ms < piece_max_ms ? left_ms : piece_max_ms, ret_subject, err);
		waited_ms = (clock_mono(clock_system()).ns - begun.ns) / 1000000;
		if (code || wait_has_ended(client, *ret_subject) || waited_ms >= wait_ms)
			break;
		if (watched)
			wait->tell(client, *ret_subject, waited_ms);
		arena_rewind(&client->arena, mark);
	}
	sigaction(SIGINT, &before, NULL);
	if (watched)
		terminal_tell("");
	return code;
}

enum hx_code wait_keep(struct client *client, struct json answer, struct json *ret_kept, struct hx_error *err)
{
	struct slice copy = arena_copy(&client->arena, answer.raw);

	*ret_kept = json_trust(copy);
	return copy.p ? HX_OK : arena_error(&client->arena, err);
}

/* The id of it, which outlives the answer. */
static const char *id_of(struct client *client, struct json subject)
{
	return arena_copy(&client->arena, client_member(client, subject, "id")).p;
}

enum hx_code wait_for_end(const struct wait *wait, struct client *client, int64_t wait_ms, struct json *subject,
			  struct hx_error *err)
{
	const char *id;

	if (wait_ms == 0 || wait_has_ended(client, *subject))
		return HX_OK;
	id = id_of(client, *subject);
	if (!id || !*id)
		return error_set(err, HX_BAD_GATEWAY, "%s: there is no %s in the answer", client->server, wait->noun);
	return ask_on(wait, client, id, wait_ms, subject, err);
}

enum hx_code wait_for_started(const struct wait *wait, struct client *client, int64_t wait_ms, struct json *subject,
			      struct hx_error *err)
{
	const char *id = id_of(client, *subject);

	if (wait_for_end(wait, client, wait_ms, subject, err) == HX_OK)
		return HX_OK;
	return error_set(err, HX_OUTCOME_UNKNOWN, "%s has been started, and how it ended is not known: %s",
			 id ? id : wait->noun, err->detail);
}

/* ---- how it ended ---- */

/* "the run is FAILED at step charge: no more stock" */
static enum hx_code tell_failure(const struct wait *wait, struct client *client, struct json subject,
				 const char *status, struct hx_error *err)
{
	struct slice step = {"", 0}, message = client_member(client, subject, "error");
	struct json error;

	if (json_find(subject, slice_str("error"), &error) && json_type(error) == JSON_OBJECT) {
		step = client_member(client, error, "step");
		message = client_member(client, error, "message");
	}
	LOCAL_STRBUF(words, WORDS_BYTES_MAX);
	strbuf_addf(&words, "the %s is %s%s", wait->noun, status, step.n ? " at step " : "");
	text_add_shown(&words, step);
	strbuf_add_str(&words, message.n ? ": " : "");
	text_add_shown(&words, message);
	error_set(err, HX_ACTION_FAILED, "%s", words.p);
	return HX_ACTION_FAILED;
}

enum hx_code wait_verdict(const struct wait *wait, struct client *client, struct json subject, int64_t wait_ms,
			  struct hx_error *err)
{
	struct excerpt status = excerpt_of(client_member(client, subject, "status"));

	if (slice_is(slice_str(status.text), "COMPLETED"))
		return HX_OK;
	if (wait_has_ended(client, subject))
		return tell_failure(wait, client, subject, status.text, err);
	return error_set(err, HX_WRONG_STATUS, "the %s has not ended within %s, it is %s", wait->noun,
			 duration_text(wait_ms).text, status.text);
}

enum hx_code wait_show(const struct wait *wait, struct client *client, const struct command_args *args,
		       struct verb_answer *ret, struct hx_error *err)
{
	int64_t wait_ms;
	enum hx_code code = wait_read(args, &wait_ms, err);

	if (!code)
		code = question_ask(client, args, &ret->json, err);
	if (!code)
		code = wait_for_end(wait, client, wait_ms, &ret->json, err);
	if (!code && wait_ms > 0)
		ret->verdict = wait_verdict(wait, client, ret->json, wait_ms, &ret->why);
	return code;
}
