/*
 * When a list is empty: was the name of the workflow that it was asked for misspelt? If the server has none of this name and kind,
 * standard error says so, with the nearest. That is no error: a workflow may be gone.
 */
#pragma once

#include "cli/client.h"

/* Is it a list, without an element? */
bool hint_is_empty(struct json answer);
/* Looks at the option of the command that names a workflow, if it has one. The answer before it is gone. */
void hint_workflow(struct client *client, const struct command_args *args);
