/* What waits for a person, shown: for `hapax attention`, and for whoever lists a part of it. */
#ifndef HX_CLI_ATTENTION_H
#define HX_CLI_ATTENTION_H

#include "cli/command.h"

/* A page of it; kind NULL: of every kind. */
enum hx_code attention_show(const struct command_args *args, const char *kind, struct hx_error *err) HX_MUST_CHECK;

#endif
