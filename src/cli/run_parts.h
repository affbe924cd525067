/* What the verbs of runs have in common; private to src/cli/run*.c. */
#ifndef HX_CLI_RUN_PARTS_H
#define HX_CLI_RUN_PARTS_H

#include "cli/client.h"

#define RUN_PATH "/api/v1/workflow-runs"

/* Has it come to its end: COMPLETED, FAILED or CANCELLED? */
bool run_has_ended(struct client *client, struct json run);
/* "order run_0ahqhgtdhmw01: COMPLETED, version 7", and `more` behind it */
enum hx_code run_print_line(struct client *client, struct json run, const char *more,
			    struct hx_error *err) HX_MUST_CHECK;

/* ---- run_show.c ---- */

/* The run as a picture: what it is, a line for each step, what it waits for. Asks the server for the last. */
enum hx_code run_print_picture(struct client *client, struct json run, struct hx_error *err) HX_MUST_CHECK;

/* ---- run_wait.c ---- */

extern const struct command_option option_wait;

/*
 * Asks for a run until it has ended, or the time is over: *ret_run is what it was then. Where somebody watches, the
 * line on standard error says how far it is.
 */
enum hx_code run_wait(struct client *client, const char *id, int64_t wait_ms, struct json *ret_run,
		      struct hx_error *err) HX_MUST_CHECK;
/* HX_OK: it is COMPLETED. HX_ACTION_FAILED: FAILED or CANCELLED. HX_WRONG_STATUS: it has not ended yet. */
enum hx_code run_verdict(struct client *client, struct json run, int64_t wait_ms, struct hx_error *err) HX_MUST_CHECK;

/* clang-format off */
#define RUN_WAIT_EXITS                                                                                                 \
	{HX_ACTION_FAILED, "with --wait: the run failed, or was cancelled"},                                           \
	{HX_WRONG_STATUS, "with --wait: it has not ended within that time, and goes on"}
/* clang-format on */

#endif
