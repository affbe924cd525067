/* What the verbs of bulks do besides what their rows in the table say (verbs_flow.c). */
#pragma once

#include "cli/verb.h"

/* One thing to all that match. What the row puts into the body goes there, or into its `arguments`. */
VERB_ASKS(bulk_ask_start);
/* Of a bulk, by its ID; without one it is the verb, of the runs that match. */
VERB_ASKS(bulk_ask_cancel);
VERB_ASKS(bulk_ask_show);
/* What it is, how far it is, and what has come of how many. */
enum hx_code bulk_print_picture(struct client *client, struct json bulk, struct hx_error *err) HX_MUST_CHECK;
