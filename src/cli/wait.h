/*
 * Waiting for the end of a run or a batch. The server answers when it has come, so one question would do; it is asked in
 * pieces, so that no connection has to last for hours, and in short ones where somebody watches, to show how far it is.
 *
 * Who stops waiting (^C) stops nothing but that, and is told so.
 */
#ifndef HX_CLI_WAIT_H
#define HX_CLI_WAIT_H

#include "cli/client.h"

extern const struct command_option option_wait;

/* What is waited for. */
struct wait {
	const char *noun;   /* "run": the word of its commands */
	const char *path;   /* where it is asked for, without its id */
	int64_t watched_ms; /* how often a person sees how far it is */
	/* Says that on standard error. */
	void (*tell)(struct wait *wait, struct client *client, struct json subject, int64_t waited_ms);
};

/* How long --wait says: 0, not at all; INT64_MAX, until the end. */
enum hx_code wait_read(const struct command_args *args, int64_t *ret_ms, struct hx_error *err) HX_MUST_CHECK;
/* Has it come to its end: COMPLETED, FAILED or CANCELLED? */
bool wait_has_ended(struct client *client, struct json subject);
/* Asks until it has ended, or the time is over: *ret_subject is what it was then. */
enum hx_code wait_for_end(struct wait *wait, struct client *client, const char *id, int64_t wait_ms,
			  struct json *ret_subject, struct hx_error *err) HX_MUST_CHECK;
/* The same for one that was started a moment ago: whatever goes wrong from here on, that is not undone, and the error says
 * so (HX_OUTCOME_UNKNOWN). */
enum hx_code wait_for_started(struct wait *wait, struct client *client, const char *id, int64_t wait_ms,
			      struct json *ret_subject, struct hx_error *err) HX_MUST_CHECK;
/* HX_OK: it is COMPLETED. HX_ACTION_FAILED: FAILED or CANCELLED. HX_WRONG_STATUS: it has not ended yet. */
enum hx_code wait_verdict(const struct wait *wait, struct client *client, struct json subject, int64_t wait_ms,
			  struct hx_error *err) HX_MUST_CHECK;

/* clang-format off */
#define WAIT_EXITS                                                                                                     \
	{HX_ACTION_FAILED, "with --wait: it failed, or was cancelled"},                                                \
	{HX_WRONG_STATUS, "with --wait: it has not ended within that time, and goes on"}
/* clang-format on */

#endif
