/* The verb of entities that is more than its row in the table. */
#ifndef HX_CLI_ENTITY_H
#define HX_CLI_ENTITY_H

#include "cli/command.h"

/* `entity list`, and with --held and no WORKFLOW what `attention` lists of held claims. */
enum hx_code entity_run_list(const struct command_args *args, struct hx_error *err) HX_MUST_CHECK;

#endif
