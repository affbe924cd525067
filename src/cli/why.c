/* See why.h. */
#include "cli/why.h"

#include "cli/view.h"

void why_print_below(struct client *client, const char *id)
{
	struct hx_error ignored;
	struct json answer;

	client_next(client, "/api/v1/why");
	client_segment(client, id);
	if (client_ask(client, "GET", &answer, &ignored) ||
	    view_print(LINE("\nwhy: {why}"), client, &client->arena, answer, &ignored))
		return;
}
