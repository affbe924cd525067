/* See entity.h. */
#include "cli/entity.h"

#include <string.h>

#include "cli/verb.h"

static const struct command *attention(void)
{
	for (size_t i = 0; command_at(i); i++)
		if (strcmp(command_at(i)->noun, "attention") == 0)
			return command_at(i);
	ASSERT(!"there is such a verb");
	return NULL;
}

/* The same page of the same server. */
static enum hx_code list_held(const struct command_args *args, struct hx_error *err)
{
	struct command_args asked = {.command = attention()};

	for (size_t i = 0; command_option(asked.command, i); i++) {
		const char *name = command_option(asked.command, i)->name;

		asked.values[i] = strcmp(name, "kind") == 0 ? "held_claim" : command_value(args, name);
	}
	return verb_ask(&asked, err);
}

enum hx_code entity_run_list(const struct command_args *args, struct hx_error *err)
{
	if (args->operands_n > 0)
		return verb_ask(args, err);
	if (command_value(args, "held") && !command_value(args, "status"))
		return list_held(args, err);
	return error_set(err, HX_VALIDATION_ERROR, "entity list wants %s", args->command->operands);
}
