/* See history.h. */
#include "cli/history.h"

#include "base/json_walk.h"
#include "cli/table.h"

static enum hx_code print(struct client *client, struct json answer, struct hx_error *err)
{
	static const char *const columns[] = {"seq", "from", "to", "version", "fence", "time", "node"};
	enum { COLUMNS_N = sizeof columns / sizeof *columns };
	struct json_iter it = json_iter_of(text_items(answer));
	struct table table;
	struct json row;
	enum hx_code code;

	table_init(&table, &client->arena, COLUMNS_N);
	TABLE_ADD(&table, slice_str("SEQ"), slice_str("FROM"), slice_str("TO"), slice_str("VERSION"),
		  slice_str("FENCE"), slice_str("TIME"), slice_str("NODE"));
	while (json_iter_element(&it, &row)) {
		struct slice cells[COLUMNS_N];

		for (size_t i = 0; i < COLUMNS_N; i++)
			cells[i] = text_of_member(row, columns[i], &client->arena);
		table_add(&table, cells);
	}
	code = table_print(&table, stdout, err);
	if (!code)
		text_print_more(answer, &client->arena, stdout);
	return code;
}

enum hx_code history_show(const struct command_args *args, const char *subject, struct hx_error *err)
{
	struct client client;
	enum hx_code code = client_init(&client, args, err);

	client_path(&client, "/api/v1/history");
	client_segment(&client, subject);
	client_page(&client, args);
	return client_run(&client, code, "GET", print, err);
}
