/* See hint.h. */
#include "cli/hint.h"

#include <string.h>

#include "base/excerpt.h"
#include "base/json_walk.h"
#include "cli/table.h"
#include "model/nearest.h"

#define NAMES_MAX 1000

struct names {
	size_t n;
	const char *items[NAMES_MAX + 1];
};

/* Adds the names of what is listed there, of workflows those of this kind (NULL: all); false: one of them is the wanted one. */
static bool collect(struct client *client, const char *path, const char *wanted, const char *kind, struct names *names)
{
	struct hx_error ignored; /* a hint that cannot be given is none */
	struct json answer, item;

	client_next(client, path);
	if (client_ask(client, "GET", &answer, &ignored))
		return false;
	for (struct json_iter it = json_iter_of(text_items(answer));
	     names->n < NAMES_MAX && json_iter_element(&it, &item);) {
		struct slice name = client_member(client, item, "name");

		if (kind && !slice_is(client_member(client, item, "kind"), kind))
			continue;
		if (slice_is(name, wanted))
			return false;
		names->items[names->n] = arena_copy(&client->arena, name).p;
		names->n += names->items[names->n] != NULL;
	}
	return true;
}

static void tell_nearest(struct client *client, const char *workflow, const char *kind)
{
	struct names names = {0};

	if (!collect(client, "/api/v1/definitions", workflow, kind, &names))
		return;
	/* A function is a run without a definition, known by who polls for it. */
	if (strcmp(kind, "run") == 0 &&
	    !collect(client, "/api/v1/functions?limit=500", workflow, /* kind= */ NULL, &names))
		return;
	names.items[names.n] = NULL;
	(void)fflush(stdout); /* what was said before stands before it; main looks whether it could be written */
	fprintf(stderr, "hapax: no workflow \"%s\"%s\n", excerpt_of(slice_str(workflow)).text,
		nearest_words(slice_str(workflow), names.items, "\"", "\"").text);
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
