/* What the verbs of runs have in common; private to src/cli/run*.c. */
#ifndef HX_CLI_RUN_PARTS_H
#define HX_CLI_RUN_PARTS_H

#include "cli/client.h"
#include "cli/wait.h"

#define RUN_PATH "/api/v1/workflow-runs"

/* "order run_0ahqhgtdhmw01: COMPLETED, version 7", and `more` behind it */
enum hx_code run_print_line(struct client *client, struct json run, const char *more,
			    struct hx_error *err) HX_MUST_CHECK;

/* ---- run_show.c ---- */

/* The run as a picture: what it is, a line for each step, what it waits for. Asks the server for the last. */
enum hx_code run_print_picture(struct client *client, struct json run, struct hx_error *err) HX_MUST_CHECK;

/* Waiting for it: the line on standard error says at which step it is. */
extern struct wait run_wait;

#endif
