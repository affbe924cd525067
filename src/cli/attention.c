/* hapax attention: all that waits for a person, the oldest first, over HTTP. */
#include <stdio.h>

#include "base/json_walk.h"
#include "cli/attention.h"
#include "cli/question.h"
#include "cli/table.h"
#include "flow/attention.h"

static const struct command_option option_kind = {
	.name = "kind",
	.value = "KIND",
	.help = "only those of this kind, such as failed_run [default: any]",
	.words = attention_kinds,
};

static enum hx_code print_list(struct client *client, struct json answer, struct hx_error *err)
{
	static const char *const columns[] = {"since", "kind", "id", "workflow", "step", "detail"};
	enum { COLUMNS_N = sizeof columns / sizeof *columns };
	struct json_iter it = json_iter_of(text_items(answer));
	struct table table;
	struct json item;
	enum hx_code code;

	table_init(&table, &client->arena, COLUMNS_N);
	TABLE_ADD(&table, slice_str("SINCE"), slice_str("KIND"), slice_str("ID"), slice_str("WORKFLOW"),
		  slice_str("STEP"), slice_str("DETAIL"));
	while (json_iter_element(&it, &item)) {
		struct slice cells[COLUMNS_N];

		for (size_t i = 0; i < COLUMNS_N; i++)
			cells[i] = text_of_member(item, columns[i], &client->arena);
		table_add(&table, cells);
	}
	code = table_print(&table, stdout, err);
	if (!code)
		text_print_more(answer, &client->arena, stdout);
	return code;
}

enum hx_code attention_show(const struct command_args *args, const char *kind, struct hx_error *err)
{
	struct client client;
	enum hx_code code = question_start(&client, args, "/api/v1/attention", 0, err);

	client_page(&client, args);
	if (kind)
		client_query(&client, "kind", kind);
	return client_run(&client, code, "GET", print_list, err);
}

static enum hx_code attention(const struct command_args *args, struct hx_error *err)
{
	enum hx_code code = command_want_operands(args, 0, 0, err);

	return code ? code : attention_show(args, command_value(args, &option_kind), err);
}

const struct command command_attention = {
	.noun = "attention",
	.summary = "lists all that waits for a person, the oldest first",
	.options = {&option_kind, CLIENT_PAGE_OPTIONS, CLIENT_OPTIONS},
	.exits = {CLIENT_EXITS},
	.run = attention,
};
