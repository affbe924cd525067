/* The history of a subject, in a table: what `entity history` and `run history` show. */
#ifndef HX_CLI_HISTORY_H
#define HX_CLI_HISTORY_H

#include "cli/client.h"

/* Asks for the history of a subject ("entity:invoice:inv-1", "run_…") and prints it, page by page. */
enum hx_code history_show(const struct command_args *args, const char *subject, struct hx_error *err) HX_MUST_CHECK;

#endif
