/*
 * Waiting for the end of a run or a batch. The server answers when it has come, so one question would do; it is asked in
 * pieces, so that no connection has to last for hours, and in short ones where somebody watches, to show how far it is.
 *
 * Who stops waiting (^C) stops nothing but that, and is told so.
 */
#pragma once

#include "cli/verb.h"

/* What is waited for. */
struct wait {
	const char *noun;   /* "run": the word of its commands */
	const char *path;   /* where it is asked for, without its id */
	int64_t watched_ms; /* how often a person sees how far it is */
	/* Says that on standard error. */
	void (*tell)(struct client *client, struct json subject, int64_t waited_ms);
};

/* How long --wait says: 0, not at all; INT64_MAX, until the end. */
enum hx_code wait_read(const struct command_args *args, int64_t *ret_ms, struct hx_error *err) HX_MUST_CHECK;
/* Has it come to its end: COMPLETED, FAILED or CANCELLED? */
bool wait_has_ended(struct client *client, struct json subject);
/* A copy of an answer that outlives the questions after it. */
enum hx_code wait_keep(struct client *client, struct json answer, struct json *ret_kept,
		       struct hx_error *err) HX_MUST_CHECK;
/* Asks until it has ended, or the time is over: *subject is what it was then. Not at all if it has ended, or wait_ms is 0. */
enum hx_code wait_for_end(const struct wait *wait, struct client *client, int64_t wait_ms, struct json *subject,
			  struct hx_error *err) HX_MUST_CHECK;
/* The same for one that was started a moment ago: whatever goes wrong from here on, that is not undone, and the error says
 * so (HX_OUTCOME_UNKNOWN). */
enum hx_code wait_for_started(const struct wait *wait, struct client *client, int64_t wait_ms, struct json *subject,
			      struct hx_error *err) HX_MUST_CHECK;
/* HX_OK: it is COMPLETED. HX_ACTION_FAILED: FAILED or CANCELLED. HX_WRONG_STATUS: it has not ended yet. */
enum hx_code wait_verdict(const struct wait *wait, struct client *client, struct json subject, int64_t wait_ms,
			  struct hx_error *err) HX_MUST_CHECK;
/* What a verb that shows something does: asks as its row says, and waits if --wait is given. */
enum hx_code wait_show(const struct wait *wait, struct client *client, const struct command_args *args,
		       struct verb_answer *ret_answer, struct hx_error *err) HX_MUST_CHECK;
