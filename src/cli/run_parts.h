/* What the verbs of runs do besides what their rows in the table say; private to src/cli/run*.c and the table. */
#pragma once

#include "cli/verb.h"
#include "cli/wait.h"

/* Both wait for the end, if they are to. */
VERB_ASKS(run_ask_start);
VERB_ASKS(run_ask_show);

/* ---- run_show.c ---- */

/* The run as a picture: what it is, a line for each step, what it waits for. Asks the server for the last. */
enum hx_code run_print_picture(struct client *client, struct json run, struct hx_error *err) HX_MUST_CHECK;

/* Waiting for it: the line on standard error says at which step it is. */
extern const struct wait run_wait;
