/* See hint.h. */
#include "cli/hint.h"

#include "base/excerpt.h"
#include "base/json_walk.h"
#include "cli/table.h"
#include "model/nearest.h"

#define NAMES_MAX 1000

/* The names of the workflows of this kind; false: one of them is the wanted one. */
static bool collect(struct client *client, struct json answer, const char *wanted, const char *kind, const char **names)
{
	struct json_iter it = json_iter_of(text_items(answer));
	struct json workflow;
	size_t n = 0;

	while (n < NAMES_MAX && json_iter_element(&it, &workflow)) {
		struct slice name = client_member(client, workflow, "name");

		if (!slice_is(client_member(client, workflow, "kind"), kind))
			continue;
		if (slice_is(name, wanted))
			return false;
		names[n] = arena_copy(&client->arena, name).p;
		n += names[n] != NULL;
	}
	return true;
}

static void tell_nearest(struct client *client, const char *workflow, const char *kind)
{
	const char *names[NAMES_MAX + 1] = {NULL};
	struct hx_error ignored; /* a hint that cannot be given is none */
	struct json answer;

	client_next(client, "/api/v1/definitions");
	if (client_ask(client, "GET", &answer, &ignored) || !collect(client, answer, workflow, kind, names))
		return;
	(void)fflush(stdout); /* what was said before stands before it; main looks whether it could be written */
	fprintf(stderr, "hapax: no workflow \"%s\"%s\n", excerpt_of(slice_str(workflow)).text,
		nearest_words(slice_str(workflow), names, "\"", "\"").text);
}

bool hint_is_empty(struct json answer)
{
	struct json items, item;
	struct json_iter it;

	if (!json_find(answer, slice_str("items"), &items))
		return false;
	it = json_iter_of(items);
	return !json_iter_element(&it, &item);
}

void hint_workflow(struct client *client, const struct command_args *args)
{
	const struct command_option *option;

	for (size_t i = 0; (option = command_option(args->command, i)); i++)
		if (option->workflows && args->values[i])
			tell_nearest(client, args->values[i], option->workflows);
}
