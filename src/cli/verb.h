/*
 * Carrying a command out: what its row in the table says, or its function does; then the result is printed, as JSON or in words.
 */
#pragma once

#include "cli/client.h"

/* What came of asking. */
struct verb_answer {
	struct json json;
	const struct view *view; /* how it is shown; NULL: as the row says */
	/* That it is printed is not the end of it: a run that was waited for has failed. Told, and the exit code, after the result. */
	enum hx_code verdict;
	struct hx_error why;
};

/* Declares an `ask` of a row (command.h). */
#define VERB_ASKS(name)                                                                                                \
	enum hx_code name(struct client *client, const struct command_args *args, struct verb_answer *ret_answer,      \
			  struct hx_error *err) HX_MUST_CHECK

/* Any command, once its arguments are read. */
enum hx_code verb_run(const struct command_args *args, struct hx_error *err) HX_MUST_CHECK;
