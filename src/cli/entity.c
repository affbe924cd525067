/* See entity.h. */
#include "cli/entity.h"

#include <string.h>

#include "cli/question.h"

static const struct command *attention(void)
{
	for (size_t i = 0; command_at(i); i++)
		if (strcmp(command_at(i)->noun, "attention") == 0)
			return command_at(i);
	ASSERT(!"there is such a verb");
	return NULL;
}

/* The same page of the same server, shown as it is there. */
static enum hx_code ask_held(struct client *client, const struct command_args *args, struct verb_answer *ret_answer,
			     struct hx_error *err)
{
	struct command_args asked = {.command = attention()};

	for (size_t i = 0; command_option(asked.command, i); i++) {
		const char *name = command_option(asked.command, i)->name;

		asked.values[i] = strcmp(name, "kind") == 0 ? "held_claim" : command_value(args, name);
	}
	ret_answer->view = asked.command->view;
	return question_ask(client, &asked, &ret_answer->json, err);
}

enum hx_code entity_ask_list(struct client *client, const struct command_args *args, struct verb_answer *ret_answer,
			     struct hx_error *err)
{
	if (args->operands_n > 0)
		return question_ask(client, args, &ret_answer->json, err);
	if (command_value(args, "held") && !command_value(args, "status"))
		return ask_held(client, args, ret_answer, err);
	return error_set(err, HX_VALIDATION_ERROR, "entity list wants %s", args->command->operands);
}
