/* When a list is empty: was the name of the workflow that it was asked for misspelt? */
#ifndef HX_CLI_HINT_H
#define HX_CLI_HINT_H

#include "cli/client.h"

/*
 * client_run() of a GET, for a list of the runs or batches of one workflow (NULL: of all). Below an empty one, for people: if
 * the server has no workflow of this name and kind, standard error says so, with the nearest. That is no error: a workflow may
 * be gone.
 */
enum hx_code hint_run(struct client *client, enum hx_code so_far, const char *workflow, const char *kind,
		      enum hx_code (*print)(struct client *, struct json answer, struct hx_error *),
		      struct hx_error *err) HX_MUST_CHECK;

#endif
